//! A closed-loop HTTP load generator: each connection sends the next request once the last is
//! answered.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::table::per_second;

/// The result of a load.
pub(crate) struct Load {
    /// Responses per second.
    pub(crate) rate: f64,
    /// The median latency.
    pub(crate) median: Duration,
    /// The 99th percentile of the latency.
    pub(crate) p99: Duration,
    /// The number of responses.
    pub(crate) answers: f64,
    /// The server's CPU time per response, if it was measured.
    pub(crate) cpu: Option<Duration>,
}

/// A request without the `Host` and `Content-Length` headers, which are added.
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) key: String,
    pub(crate) body: String,
}

/// Sends requests over this many connections for a while; `request` gets the number of the
/// connection and of the request on it.
pub(crate) fn load(
    address: &str,
    connections: usize,
    span: Duration,
    request: impl Fn(usize, usize) -> Request + Sync,
) -> Load {
    let start = Instant::now();
    let ask = |connection: usize| {
        let mut client = Client::connect(address);
        let mut times = Vec::new();
        while start.elapsed() < span {
            let request = request(connection, times.len());
            let asked = Instant::now();
            client.ask(&request);
            times.push(asked.elapsed());
        }
        times
    };
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let ask = &ask;
        let asking: Vec<_> =
            (0..connections).map(|connection| scope.spawn(move || ask(connection))).collect();
        asking.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let elapsed = start.elapsed();
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let rate = per_second(times.len(), elapsed);
    Load { rate, median: at(50), p99: at(99), answers: rate * elapsed.as_secs_f64(), cpu: None }
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("it is connected");
        let reader = BufReader::new(stream.try_clone().expect("a second handle"));
        Self { stream, reader, body: Vec::new() }
    }

    /// Sends a request, and returns the body of the response, which must be a success.
    pub(crate) fn ask(&mut self, request: &Request) -> &[u8] {
        let Request { line, key, body } = request;
        let length = body.len();
        let text = format!(
            "{line} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(text.as_bytes()).expect("it is sent");
        let mut head = String::new();
        let mut length = 0;
        while !head.ends_with("\r\n\r\n") {
            let begin = head.len();
            assert_ne!(self.reader.read_line(&mut head).expect("a head"), 0, "it was hung up");
            let line = head.get(begin..).unwrap_or_default();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim_end().parse().expect("a length");
            }
        }
        self.body.resize(length, 0);
        self.reader.read_exact(&mut self.body).expect("a body");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}{}", String::from_utf8_lossy(&self.body));
        &self.body
    }
}
