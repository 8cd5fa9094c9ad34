//! Connections: accepting, TLS, limits, and graceful shutdown.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tower::ServiceExt as _;

use super::slots::{Slot, Slots};
use super::socket::{Socket, SocketStream};
use super::stream::Stream;
use super::{App, frame};

/// How long a client may take for the handshake or for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// The size of a connection's buffer, and so of the longest head of a request.
const BUFFER_SIZE_BYTES_MAX: usize = 64 * 1024;

/// The size of a connection's send buffer in the kernel, which would otherwise grow to megabytes for
/// each client that does not read.
const SEND_BUFFER_SIZE_BYTES: u32 = 256 * 1024;

/// How many connections wait in the kernel to be accepted.
const BACKLOG: u32 = 1024;

/// How long running requests may take after the shutdown has begun.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why a certificate or its key cannot be used.
#[derive(Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

impl Tls {
    /// Reads a certificate chain and a private key from PEM files.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let unreadable = |file: &Path, error: &dyn fmt::Display| {
            TlsError(format!("{}: {error}", file.display()))
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unreadable(certificate, &error))?;
        let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key_der)
            .map_err(|error| unreadable(certificate, &error))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(…)")
    }
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    tls: Option<Tls>,
}

impl Listener {
    /// Starts to listen; port 0 picks a free one. Must be called inside a runtime.
    pub fn bind(address: SocketAddr, tls: Option<Tls>) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // On Windows, this would let two servers listen on one port.
        #[cfg(not(windows))]
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(SEND_BUFFER_SIZE_BYTES)?;
        socket.bind(address)?;
        Ok(Self { socket: socket.listen(BACKLOG)?, tls })
    }

    /// Returns the address that clients use.
    pub fn url(&self) -> io::Result<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.socket.local_addr()?))
    }

    /// Serves until `stop` is ready, then finishes the running requests.
    pub async fn serve(self, app: &App, stop: impl Future<Output = ()>) {
        let router = app.router();
        let graceful = GracefulShutdown::new();
        let slots = Slots::new(app.settings().connections_max);
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = async {
                slots.available().await;
                self.socket.accept().await
            };
            let accepted = tokio::select! {
                accepted = accepted => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let slot = Arc::new(slots.take(peer.ip()));
                    let connection =
                        Connection { app: app.clone(), router: router.clone(), peer, slot };
                    tokio::spawn(connection.run(stream, self.tls.clone(), graceful.watcher()));
                }
                Err(error) => {
                    // Most likely out of file descriptors. Retrying immediately would spin until
                    // one is closed.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(self.socket);
        app.stop_streams();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await.is_err() {
            tracing::warn!("some requests were cut off after the shutdown timeout");
        }
    }
}

/// One connection, with any number of requests.
struct Connection {
    app: App,
    router: Router,
    peer: SocketAddr,
    slot: Arc<Slot>,
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<Tls>, watcher: Watcher) {
        let slot = Arc::clone(&self.slot);
        tokio::select! {
            () = self.serve(stream, tls, watcher) => {}
            () = slot.evicted() => {
                tracing::debug!("a connection without a valid key was evicted");
            }
        }
    }

    async fn serve(self, stream: TcpStream, tls: Option<Tls>, watcher: Watcher) {
        // Answers are written at once, so Nagle's algorithm would only add latency.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "the connection was closed");
            return;
        }
        let socket = Socket::new(stream);
        let stream = SocketStream(Arc::clone(&socket));
        let Some(tls) = tls else {
            return self.serve_http(stream, socket, watcher).await;
        };
        match tokio::time::timeout(HEAD_TIMEOUT, tls.0.accept(stream)).await {
            Ok(Ok(stream)) => self.serve_http(stream, socket, watcher).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn serve_http(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        socket: Arc<Socket>,
        watcher: Watcher,
    ) {
        let Self { app, router, peer, slot } = self;
        let with_peer = router.map_request(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(Arc::clone(&slot));
            request.extensions_mut().insert(Arc::clone(&socket));
            request.map(axum::body::Body::new)
        });
        let write_timeout = app.settings().write_timeout;
        let refuse = Box::new(move |status| frame::unreadable(&app, status));
        let stream = Stream::new(stream, write_timeout, refuse);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // A client may shut down its sending side after the request, and still gets its answer.
            .half_close(true)
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(BUFFER_SIZE_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(with_peer));
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
