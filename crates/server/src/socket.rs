//! The socket of a connection, of which others than its reader can tell whether the peer has closed it.
//!
//! hyper does not read while it waits for a handler, because a client may shut down its sending side
//! and still wait for its answer. Whoever asks another server on behalf of the client has to know
//! whether anybody is still there.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// How long to wait before looking again, while the peer has sent more than was read.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

/// A connected socket.
#[derive(Debug)]
pub(super) struct Socket(TcpStream);

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Arc<Self> {
        Arc::new(Self(stream))
    }

    /// Waits until the peer has closed the connection, or at least its sending side.
    pub(super) async fn closed(&self) {
        loop {
            match self.0.ready(Interest::READABLE).await {
                Ok(ready) if ready.is_read_closed() => return,
                // It has sent its next request already.
                Ok(_) => tokio::time::sleep(LOOK_PERIOD).await,
                Err(_) => return,
            }
        }
    }
}

/// The end of a socket that reads and writes.
#[derive(Debug)]
pub(super) struct SocketStream(pub(super) Arc<Socket>);

impl SocketStream {
    fn tcp(&self) -> &TcpStream {
        &self.0.0
    }
}

impl AsyncRead for SocketStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.tcp().poll_read_ready(cx))?;
            match self.tcp().try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for SocketStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.tcp().poll_write_ready(cx))?;
            match self.tcp().try_write_vectored(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Closes the sending side. A shared socket offers no such call, but the protocols here need none: the
    /// socket itself is closed when its last owner is gone.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
