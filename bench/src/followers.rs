//! Clients that subscribe to the events of a server.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// How much of the end of each stream is kept; events are shorter.
const TAIL_SIZE_BYTES: usize = 4096;

/// Clients that subscribe to events.
pub(crate) struct Followers {
    runtime: tokio::runtime::Runtime,
    tails: Vec<Arc<Mutex<Vec<u8>>>>,
}

impl Followers {
    /// Opens this many streams, one after the other.
    pub(crate) fn new(address: &str, key: &str, count: usize) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let tails: Vec<Arc<Mutex<Vec<u8>>>> = (0..count).map(|_| Arc::default()).collect();
        for tail in &tails {
            let (ready, is_ready) = channel();
            let head = format!("GET /quipu/events HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n");
            runtime.spawn(follow(address.to_owned(), head, Arc::clone(tail), ready));
            is_ready.recv().expect("it follows");
        }
        Self { runtime, tails }
    }

    /// Waits until each client has received the change with this number, and returns how long it
    /// took.
    pub(crate) fn lag(self, newest: u64) -> Duration {
        let start = Instant::now();
        let wanted = format!("id: {newest}\n");
        let is_behind = |tail: &Arc<Mutex<Vec<u8>>>| {
            !String::from_utf8_lossy(&tail.lock().expect("no panic")).contains(&wanted)
        };
        while self.tails.iter().any(is_behind) {
            assert!(start.elapsed() < Duration::from_mins(2), "events are missing");
            thread::sleep(Duration::from_millis(1));
        }
        self.runtime.shutdown_background();
        start.elapsed()
    }
}

/// Reads one event stream until it ends. It barely parses anything, so that the server is measured
/// and not the client.
async fn follow(address: String, head: String, tail: Arc<Mutex<Vec<u8>>>, ready: Sender<()>) {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    let mut bytes = vec![0; 256 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut bytes).await {
        let read = bytes.get(..length).unwrap_or_default();
        let mut tail = tail.lock().expect("no panic");
        tail.extend_from_slice(read.get(length.saturating_sub(TAIL_SIZE_BYTES)..).unwrap_or(read));
        let before = tail.len().saturating_sub(TAIL_SIZE_BYTES);
        tail.drain(..before);
        // The first read is the response head.
        ready.send(()).unwrap_or_default();
    }
}
