//! A server that answers each request as a script says, byte by byte.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// One request as it has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// Returns everything that was sent.
    pub(crate) fn everything(&self) -> String {
        format!("{} {:?} {}", self.line, self.headers, String::from_utf8_lossy(&self.body))
    }
}

/// What to do next on a connection.
pub(crate) enum Step {
    Write(Vec<u8>),
    /// Wait until there is a permit.
    Wait(Arc<Semaphore>),
    /// Wait until the other side has closed the connection, and add a permit.
    Closed(Arc<Semaphore>),
    /// Write until nobody reads for a while, and note how much that was; then go on to so many bytes.
    Flood {
        bytes: usize,
        stalled_at: Arc<Mutex<Option<usize>>>,
    },
    Close,
}

/// A connection, plain or encrypted.
trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<C: AsyncRead + AsyncWrite + Unpin + Send> Connection for C {}

type Stream = BufReader<Box<dyn Connection>>;

type Script = dyn Fn(&Seen, usize) -> Vec<Step> + Send + Sync;

/// A running server.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// A permit for each request that has arrived.
    pub(crate) arrived: Arc<Semaphore>,
    connections_count: Arc<AtomicUsize>,
}

impl Upstream {
    /// Starts a server; the script gets each request with its number, from 0.
    pub(crate) async fn start(
        script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(None, script).await
    }

    /// Starts a server behind TLS.
    pub(crate) async fn start_with(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().expect("an address"));
        let upstream = Self {
            url,
            seen: Arc::default(),
            arrived: Arc::new(Semaphore::new(0)),
            connections_count: Arc::default(),
        };
        let script: Arc<Script> = Arc::new(script);
        let started = upstream.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                started.connections_count.fetch_add(1, Ordering::Relaxed);
                let (started, script, tls) = (started.clone(), Arc::clone(&script), tls.clone());
                tokio::spawn(async move {
                    let connection: Box<dyn Connection> = match tls {
                        None => Box::new(stream),
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => Box::new(stream),
                            // The client does not trust the certificate.
                            Err(_refused) => return,
                        },
                    };
                    started.serve(BufReader::new(connection), script).await;
                });
            }
        });
        upstream
    }

    /// Starts a server that gives these answers, one after the other.
    pub(crate) async fn answering(answers: Vec<Vec<u8>>) -> Self {
        Self::start(move |_, number| {
            vec![Step::Write(answers.get(number).expect("an answer for each request").clone())]
        })
        .await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections_count.load(Ordering::Relaxed)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("unpoisoned").clone()
    }

    async fn serve(self, mut stream: Stream, script: Arc<Script>) {
        while let Some(seen) = request(&mut stream).await {
            let number = {
                let mut all = self.seen.lock().expect("unpoisoned");
                all.push(seen.clone());
                all.len() - 1
            };
            self.arrived.add_permits(1);
            for step in script(&seen, number) {
                if !perform(&mut stream, step).await {
                    return;
                }
            }
        }
    }
}

/// Performs a step; `false` ends the connection.
async fn perform(stream: &mut Stream, step: Step) -> bool {
    match step {
        Step::Write(bytes) => stream.write_all(&bytes).await.is_ok(),
        Step::Wait(permits) => {
            permits.acquire().await.expect("it stays open").forget();
            true
        }
        Step::Closed(permits) => {
            let mut rest = Vec::new();
            drop(stream.read_to_end(&mut rest).await);
            permits.add_permits(1);
            false
        }
        Step::Flood { bytes, stalled_at } => {
            let chunk = vec![b'x'; 64 * 1024];
            let mut written = 0;
            while written < bytes {
                let chunk = &chunk[..chunk.len().min(bytes - written)];
                let writing = stream.get_mut().write(chunk);
                tokio::pin!(writing);
                let patience = Duration::from_millis(200);
                let more = match tokio::time::timeout(patience, &mut writing).await {
                    Ok(more) => more,
                    Err(_stalled) => {
                        stalled_at.lock().expect("unpoisoned").get_or_insert(written);
                        writing.await
                    }
                };
                let Ok(more) = more else { return false };
                written += more;
            }
            true
        }
        Step::Close => false,
    }
}

async fn request(stream: &mut Stream) -> Option<Seen> {
    let line = line(stream).await.filter(|line| !line.is_empty())?;
    let mut headers = BTreeMap::new();
    while let Some(header) = self::line(stream).await.filter(|line| !line.is_empty()) {
        let (name, value) = header.split_once(':').expect("a header");
        let values: &mut String = headers.entry(name.to_ascii_lowercase()).or_default();
        let separator = if values.is_empty() { "" } else { ", " };
        *values += &format!("{separator}{}", value.trim());
    }
    let mut body = Vec::new();
    if let Some(length) = headers.get("content-length") {
        body.resize(length.parse().expect("a length"), 0);
        stream.read_exact(&mut body).await.ok()?;
    } else if headers.contains_key("transfer-encoding") {
        loop {
            let size = usize::from_str_radix(&self::line(stream).await?, 16).ok()?;
            let mut chunk = vec![0; size];
            stream.read_exact(&mut chunk).await.ok()?;
            self::line(stream).await?;
            if size == 0 {
                break;
            }
            body.extend(chunk);
        }
    }
    Some(Seen { line, headers, body })
}

async fn line(stream: &mut Stream) -> Option<String> {
    let mut line = String::new();
    match stream.read_line(&mut line).await {
        Ok(1..) => Some(line.trim_end().to_owned()),
        Ok(0) | Err(_) => None,
    }
}

/// Returns an answer with a JSON body.
pub(crate) fn json(status: u16, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         {headers}\r\n{body}"
    )
    .into_bytes()
}

/// Returns the head of an answer that is a stream of events.
pub(crate) fn events_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_up\r\n\
      transfer-encoding: chunked\r\n\r\n"
        .to_vec()
}

/// Returns a piece of a chunked body; an empty one ends it.
pub(crate) fn piece(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Returns an answer that is this stream of events.
pub(crate) fn events(text: &str) -> Vec<u8> {
    [events_head(), piece(text), piece("")].concat()
}
