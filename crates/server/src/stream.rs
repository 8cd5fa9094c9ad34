//! The byte stream of a connection: blocked writes time out, and hyper's own error answers get our
//! envelope.
//!
//! hyper answers malformed requests itself and offers no hook for it, so its answers are recognized
//! on the way out and replaced.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// The longest error answer of hyper.
const REFUSAL_SIZE_BYTES_MAX: usize = 256;

/// Returns the answer that replaces one of hyper's with this status.
pub(super) type Refuse = Box<dyn Fn(u16) -> Vec<u8> + Send>;

/// A byte stream whose writes fail when the peer reads nothing for too long.
pub(super) struct Stream<S> {
    inner: S,
    write_timeout: Duration,
    /// Runs while a write is blocked.
    blocked: Option<Pin<Box<Sleep>>>,
    refuse: Refuse,
    /// The replacement that is being written: the length of hyper's answer, ours, and how much of
    /// ours has been written.
    replaced: Option<(usize, Vec<u8>, usize)>,
}

impl<S> fmt::Debug for Stream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl<S: AsyncWrite + Unpin> Stream<S> {
    pub(super) fn new(inner: S, write_timeout: Duration, refuse: Refuse) -> Self {
        Self { inner, write_timeout, blocked: None, refuse, replaced: None }
    }

    /// Passes on the result of a write, and runs the timeout while it is blocked.
    fn timed<T>(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.blocked = None;
            return progress;
        }
        let until = Instant::now() + self.write_timeout;
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        ready!(blocked.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes the rest of the replacement, and returns the length of what it replaces.
    fn poll_replaced(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            let Some((size, answer, written)) = &mut self.replaced else {
                return Poll::Ready(Ok(0));
            };
            let rest = answer.get(*written..).unwrap_or_default();
            if rest.is_empty() {
                let size = *size;
                self.replaced = None;
                return Poll::Ready(Ok(size));
            }
            let progress = Pin::new(&mut self.inner).poll_write(cx, rest);
            if let Poll::Ready(Ok(more)) = &progress {
                if *more == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                *written += more;
            }
            ready!(self.timed(cx, progress))?;
        }
    }

    /// Replaces an error answer of hyper; `None` if the bytes are something else.
    fn poll_refusal(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.replaced.is_none() {
            let answer = (self.refuse)(refusal_status(bytes)?);
            self.replaced = Some((bytes.len(), answer, 0));
        }
        Some(self.poll_replaced(cx))
    }
}

/// Returns the status of an answer that hyper has made itself, to a request that it cannot read.
///
/// Such an answer is written in one piece, with these headers only and without a body. None of ours
/// looks like that: they all have a request id.
fn refusal_status(bytes: &[u8]) -> Option<u16> {
    let rest = bytes.strip_prefix(b"HTTP/1.1 4")?;
    if bytes.len() > REFUSAL_SIZE_BYTES_MAX || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let text = str::from_utf8(rest).ok()?;
    let status: u16 = text.get(..2)?.parse().ok()?;
    let mut headers = text.lines().skip(1).filter(|line| !line.is_empty());
    let is_refusal = text.contains("content-length: 0\r\n")
        && headers.all(|line| {
            ["connection: close", "content-length: 0"].contains(&line) || line.starts_with("date: ")
        });
    is_refusal.then_some(400 + status)
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(progress) = self.poll_refusal(cx, bytes) {
            return progress;
        }
        let progress = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.timed(cx, progress)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.inner).poll_flush(cx);
        self.timed(cx, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.timed(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = parts
            && let Some(progress) = self.poll_refusal(cx, only)
        {
            return progress;
        }
        let progress = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.timed(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn stream<S: AsyncWrite + Unpin>(inner: S) -> Stream<S> {
        Stream::new(inner, TIMEOUT, Box::new(|status| format!("refused: {status}").into_bytes()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_is_never_read_times_out() {
        let (ours, _theirs) = duplex(8);
        let start = Instant::now();
        let error = stream(ours).write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_served_as_long_as_it_reads() {
        let (ours, mut theirs) = duplex(8);
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            while theirs.read_buf(&mut all).await.unwrap() > 0 {
                tokio::time::sleep(TIMEOUT * 9 / 10).await;
            }
            all.len()
        });
        let mut stream = stream(ours);
        stream.write_all(&[0; 64]).await.unwrap();
        drop(stream);
        assert_eq!(reading.await.unwrap(), 64);
    }

    #[tokio::test]
    async fn only_error_answers_of_hyper_are_replaced() {
        let refusal = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\
                       content-length: 0\r\ndate: Tue, 17 Nov 2026 00:00:00 GMT\r\n\r\n";
        let ours = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nrequest-id: req_1\r\n\r\n";
        for (written, expected) in [(refusal, "refused: 431"), (ours, ours)] {
            let (inner, mut theirs) = duplex(512);
            stream(inner).write_all(written.as_bytes()).await.unwrap();
            let mut read = String::new();
            theirs.read_to_string(&mut read).await.unwrap();
            assert_eq!(read, expected);
        }
    }
}
