//! The HTTP client: connections to the one host of the upstream, which are kept and used again.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Client as Pooled, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tower::Service;

use super::settings::{BaseUrl, UpstreamSettings};

/// How long a connection is kept while nobody uses it. Servers close theirs after a minute or more.
const KEPT_FOR: Duration = Duration::from_secs(50);

/// How many connections are kept while nobody uses them.
const KEPT_MAX: usize = 256;

/// The longest head of an answer.
const HEAD_SIZE_BYTES_MAX: usize = 128 * 1024;

/// How many names are looked up concurrently. A lookup occupies a thread and cannot be cancelled, so
/// a name server that does not answer must not use up the threads that the engine needs.
const LOOKUPS_MAX: usize = 2;

/// The client of one upstream.
pub(super) struct Client {
    pooled: Pooled<Connector, Body>,
    first_byte_timeout: Duration,
}

/// Why there is no answer of the upstream.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// It cannot be reached, or what it says is not HTTP.
    Failed(Error),
    /// It takes too long.
    TimedOut,
}

impl Client {
    pub(super) fn new(settings: &UpstreamSettings) -> Self {
        let connector = Connector {
            base: Arc::new(settings.base_url.clone()),
            tls: TlsConnector::from(settings.tls.config()),
            timeout: settings.connect_timeout,
            lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        };
        let pooled = Pooled::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT_FOR)
            .pool_max_idle_per_host(KEPT_MAX)
            .http1_max_buf_size(HEAD_SIZE_BYTES_MAX)
            .build(connector);
        Self { pooled, first_byte_timeout: settings.first_byte_timeout }
    }

    /// Sends a request, and returns when the head of its answer has arrived. Dropping the future, or
    /// the body of the answer, closes the connection.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let answering = self.pooled.request(request);
        match tokio::time::timeout(self.first_byte_timeout, answering).await {
            Ok(answered) => answered.map_err(Unanswered::Failed),
            Err(_elapsed) => Err(Unanswered::TimedOut),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// Connects to the host of the settings, whatever a request names.
#[derive(Clone)]
struct Connector {
    base: Arc<BaseUrl>,
    tls: TlsConnector,
    timeout: Duration,
    lookups: Arc<Semaphore>,
}

impl Connector {
    async fn connect(self) -> io::Result<TokioIo<Socket>> {
        match tokio::time::timeout(self.timeout, self.connected()).await {
            Ok(connected) => connected.map(TokioIo::new),
            Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn connected(&self) -> io::Result<Socket> {
        let addresses = self.addresses().await?;
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return self.secured(stream).await,
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Looks the host up. The lookup goes on when nobody waits for it anymore, and keeps its permit.
    async fn addresses(&self) -> io::Result<Vec<std::net::SocketAddr>> {
        let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let base = Arc::clone(&self.base);
        let looking_up = tokio::spawn(async move {
            let _permit = permit;
            let found = tokio::net::lookup_host((base.host(), base.port())).await?;
            Ok(found.collect())
        });
        looking_up.await.map_err(io::Error::other)?
    }

    async fn secured(&self, stream: TcpStream) -> io::Result<Socket> {
        // Requests are written at once, so Nagle's algorithm would only add latency.
        stream.set_nodelay(true)?;
        if !self.base.is_encrypted() {
            return Ok(Socket::Plain(stream));
        }
        let name = ServerName::try_from(self.base.host().to_owned()).map_err(io::Error::other)?;
        Ok(Socket::Encrypted(Box::new(self.tls.connect(name, stream).await?)))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Socket>>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

/// A connection to the upstream.
enum Socket {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Encrypted(stream) => stream.is_write_vectored(),
        }
    }
}
