use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use super::*;

/// What the server does with a request.
enum Reply {
    Json(u16, Value),
    Raw(Vec<u8>),
    /// Reads the request and never answers.
    Hang,
    /// Begins an answer and never ends it.
    Trickle,
}

/// A server that gives these replies in order and then is gone.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    /// Connections stay open until it is joined.
    thread: JoinHandle<Vec<TcpStream>>,
}

impl Server {
    fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requests);
        let thread = thread::spawn(move || {
            let mut kept = Vec::new();
            for reply in replies {
                let (mut stream, _) = listener.accept().unwrap();
                seen.lock().unwrap().push(request(&mut stream));
                match reply {
                    Reply::Json(status, body) => {
                        let text = body.to_string();
                        let head =
                            format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", text.len());
                        write!(stream, "{head}connection: close\r\n\r\n{text}").unwrap();
                    }
                    // The client may stop reading in the middle.
                    Reply::Raw(bytes) => drop(stream.write_all(&bytes)),
                    Reply::Hang => kept.push(stream),
                    Reply::Trickle => {
                        stream
                            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")
                            .unwrap();
                        kept.push(stream);
                    }
                }
            }
            kept
        });
        Self { url, requests, thread }
    }

    /// Returns the requests, once all replies were given.
    fn requests(self) -> Vec<String> {
        drop(self.thread.join().unwrap());
        self.requests.lock().unwrap().clone()
    }
}

fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        text.extend(byte);
    }
    let head = String::from_utf8(text).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn encoder(url: &str) -> EndpointEncoder {
    let limits = Limits {
        question_timeout: Duration::from_secs(1),
        memory_timeout: Duration::from_secs(1),
        pause: Duration::ZERO,
    };
    EndpointEncoder::with_limits(url, "tiny", Some("sk-secret".to_owned()), limits).unwrap()
}

fn vectors(vectors: &[&[f32]]) -> Reply {
    let item = |(index, vector): (usize, &&[f32])| json!({"index": index, "embedding": vector});
    let data: Vec<_> = vectors.iter().enumerate().map(item).collect();
    Reply::Json(200, json!({"data": data}))
}

/// Asserts that one text fails with these words, which do not contain the key.
fn check_failure(reply: Reply, expected: &str) {
    let server = Server::start(vec![reply]);
    let encoder = encoder(&server.url);
    let error = encoder.encode(Purpose::Question, &["tea"]).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains("127.0.0.1"), "{error}");
    assert!(!format!("{error} {encoder:?}").contains("sk-secret"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn vectors_are_normalized_and_in_the_order_of_the_texts() {
    let data = json!([
        {"index": 1, "embedding": [0.0, 2.0]},
        {"index": 0, "embedding": [3.0, 4.0]},
    ]);
    let server = Server::start(vec![Reply::Json(200, json!({"data": data}))]);
    let encoder = encoder(&server.url);
    let vectors = encoder.encode(Purpose::Memory, &["tea", "car"]).unwrap();
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 1.0]]);
    assert_eq!(encoder.dimensions(), 2);
    assert_eq!(encoder.identity(), format!("endpoint:{} tiny", server.url));
    let request = server.requests().remove(0);
    assert!(request.starts_with("post /v1/embeddings "), "{request}");
    assert!(request.contains("authorization: bearer sk-secret"), "{request}");
    assert!(request.contains(r#""model":"tiny","input":["tea","car"]"#), "{request}");
}

#[test]
fn many_texts_are_sent_in_batches() {
    let full = vec![[1.0_f32, 0.0].as_slice(); BATCH_TEXTS_MAX];
    let server = Server::start(vec![vectors(&full), vectors(&[&[0.0, 1.0]])]);
    let texts = vec!["tea"; BATCH_TEXTS_MAX + 1];
    let vectors = encoder(&server.url).encode(Purpose::Memory, &texts).unwrap();
    assert_eq!((vectors.len(), vectors.last().unwrap().as_slice()), (33, [0.0, 1.0].as_slice()));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn blank_texts_are_not_sent_and_have_the_zero_vector() {
    let server = Server::start(vec![vectors(&[&[1.0, 0.0]])]);
    let vectors = encoder(&server.url).encode(Purpose::Memory, &["", "tea", " \n"]).unwrap();
    assert_eq!(vectors, [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]);
    assert!(server.requests().remove(0).contains(r#""input":["tea"]"#));
}

#[test]
fn prefixes_are_sent_in_front_of_texts_and_tell_vectors_apart() {
    let server = Server::start(vec![vectors(&[&[1.0]]), vectors(&[&[1.0]])]);
    let plain = encoder(&server.url);
    let identity = plain.identity().to_owned();
    let prefixes = Prefixes { question: "query: ".to_owned(), passage: "passage: ".to_owned() };
    let encoder = plain.with_prefixes(prefixes);
    assert_ne!(encoder.identity(), identity);
    encoder.encode(Purpose::Question, &["tea"]).unwrap();
    encoder.encode(Purpose::Memory, &["", "cups"]).unwrap();
    assert!(encoder.tokens_max() < TOKENS_MAX_ASSUMED);
    let requests = server.requests();
    assert!(requests[0].contains(r#""input":["query: tea"]"#), "{requests:?}");
    assert!(requests[1].contains(r#""input":["passage: cups"]"#), "{requests:?}");
}

#[test]
fn the_length_is_asked_for_once() {
    let server = Server::start(vec![vectors(&[&[1.0, 0.0, 0.0]])]);
    let encoder = encoder(&server.url);
    assert_eq!((encoder.dimensions(), encoder.dimensions()), (3, 3));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn hanging_servers_are_not_waited_for() {
    check_failure(Reply::Hang, "timeout");
    check_failure(Reply::Trickle, "timeout");
}

#[test]
fn servers_that_drop_the_connection_fail() {
    check_failure(Reply::Raw(Vec::new()), "failed");
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"data\"".to_vec();
    check_failure(Reply::Raw(cut), "failed");
}

#[test]
fn servers_that_are_gone_fail() {
    let server = Server::start(Vec::new());
    let encoder = encoder(&server.url);
    server.requests();
    assert!(encoder.encode(Purpose::Question, &["tea"]).is_err());
    assert_eq!(encoder.dimensions(), 0);
}

#[test]
fn refusals_fail_without_their_text() {
    check_failure(Reply::Json(500, json!("sk-secret")), "answered 500");
    check_failure(Reply::Json(429, json!({})), "too many requests");
    check_failure(Reply::Json(401, json!("sk-secret")), "refused the key");
    check_failure(Reply::Json(404, json!({})), "check the address and the model");
}

#[test]
fn a_server_that_refuses_a_text_is_asked_for_the_next_one() {
    for status in [400, 413, 422] {
        let server = Server::start(vec![Reply::Json(status, json!({})), vectors(&[&[1.0]])]);
        let limits = Limits { pause: Duration::from_hours(1), ..Limits::default() };
        let encoder = EndpointEncoder::with_limits(&server.url, "tiny", None, limits).unwrap();
        let error = encoder.encode(Purpose::Memory, &["too long"]).unwrap_err().to_string();
        assert!(error.contains("rejected this text"), "{error}");
        encoder.encode(Purpose::Question, &["tea"]).unwrap();
    }
}

#[test]
fn a_failure_is_that_of_the_text_if_the_server_takes_another_one() {
    let lie = || Reply::Json(200, json!({"data": [{"index": 0, "embedding": [null]}]}));
    for reply in [Reply::Json(500, json!({})), lie()] {
        let server = Server::start(vec![reply, vectors(&[&[1.0]]), vectors(&[&[1.0]])]);
        let limits = Limits { pause: Duration::from_hours(1), ..Limits::default() };
        let encoder = EndpointEncoder::with_limits(&server.url, "tiny", None, limits).unwrap();
        assert!(encoder.encode(Purpose::Question, &["too long"]).unwrap_err().is_of_text());
        encoder.encode(Purpose::Question, &["tea"]).unwrap();
        assert!(server.requests()[1].contains(r#""input":["?"]"#));
    }
}

#[test]
fn redirects_are_not_followed() {
    let head = b"HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n";
    check_failure(Reply::Raw(head.to_vec()), "redirect");
}

#[test]
fn answers_that_lie_fail() {
    let answer = |data: Value| Reply::Json(200, json!({"data": data}));
    check_failure(answer(json!([])), "returned 0 embeddings for 1 text");
    check_failure(vectors(&[&[1.0], &[1.0]]), "returned 2 embeddings for 1 text");
    check_failure(answer(json!([{"index": 1, "embedding": [1.0]}])), "`index` values");
    check_failure(
        answer(json!([{"index": 0, "embedding": [1.0, null]}])),
        "not a list of embeddings",
    );
    check_failure(answer(json!([{"index": 0, "embedding": [1e39]}])), "NaN or infinity");
    check_failure(answer(json!([{"index": 0, "embedding": []}])), "length 0");
    check_failure(Reply::Json(200, json!("<html>")), "not a list of embeddings");
    let nan = r#"{"data":[{"index":0,"embedding":[NaN]}]}"#;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{nan}", nan.len());
    check_failure(Reply::Raw(head.into_bytes()), "not a list of embeddings");
}

#[test]
fn huge_answers_are_not_read_to_the_end() {
    let mut bytes = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
    bytes.resize(bytes.len() + usize::try_from(RESPONSE_SIZE_BYTES_MAX).unwrap() + 1, b' ');
    let server = Server::start(vec![Reply::Raw(bytes)]);
    let limits = Limits { pause: Duration::ZERO, ..Limits::default() };
    let encoder = EndpointEncoder::with_limits(&server.url, "tiny", None, limits).unwrap();
    let error = encoder.encode(Purpose::Memory, &["tea"]).unwrap_err().to_string();
    assert!(error.contains("large"), "{error}");
}

#[test]
fn the_length_of_vectors_stays_the_same() {
    let server = Server::start(vec![vectors(&[&[1.0, 0.0]]), vectors(&[&[1.0]])]);
    let encoder = encoder(&server.url);
    encoder.encode(Purpose::Memory, &["tea"]).unwrap();
    let error = encoder.encode(Purpose::Memory, &["tea"]).unwrap_err().to_string();
    assert!(error.contains("length 1 after 2"), "{error}");
}

#[test]
fn an_answer_that_lies_does_not_say_how_long_vectors_are() {
    let lie = json!({"data": [{"index": 0, "embedding": [1e39, 1.0]}]});
    let server = Server::start(vec![Reply::Json(200, lie), vectors(&[&[1.0, 0.0, 0.0]])]);
    let encoder = encoder(&server.url);
    encoder.encode(Purpose::Memory, &["tea"]).unwrap_err();
    assert_eq!(encoder.dimensions(), 3);
}

#[test]
fn after_a_failure_the_server_is_left_alone() {
    let server = Server::start(vec![Reply::Json(500, json!({}))]);
    let limits = Limits { pause: Duration::from_hours(1), ..Limits::default() };
    let encoder = EndpointEncoder::with_limits(&server.url, "tiny", None, limits).unwrap();
    let first = encoder.encode(Purpose::Question, &["tea"]).unwrap_err();
    assert_eq!(encoder.encode(Purpose::Question, &["tea"]).unwrap_err(), first);
    assert_eq!(encoder.state().question.as_ref().unwrap().pause, PAUSE_MAX);
    assert_eq!(server.requests().len(), 1);
}

fn patient(url: &str) -> EndpointEncoder {
    let limits = Limits { pause: Duration::from_hours(1), ..Limits::default() };
    EndpointEncoder::with_limits(url, "tiny", None, limits).unwrap()
}

#[test]
fn a_failure_with_memories_does_not_keep_questions_from_being_asked() {
    for (fails, works) in
        [(Purpose::Memory, Purpose::Question), (Purpose::Question, Purpose::Memory)]
    {
        let server = Server::start(vec![Reply::Json(503, json!({})), vectors(&[&[1.0]])]);
        let encoder = patient(&server.url);
        encoder.encode(fails, &["tea"]).unwrap_err();
        encoder.encode(works, &["tea"]).unwrap();
        encoder.encode(fails, &["tea"]).unwrap_err();
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn a_server_that_is_gone_is_gone_for_questions_and_memories() {
    let server = Server::start(Vec::new());
    let encoder = patient(&server.url);
    server.requests();
    let error = encoder.encode(Purpose::Memory, &["tea"]).unwrap_err();
    assert_eq!(error.to_string(), "the endpoint failed: connection refused");
    // Nothing is asked: that would be another connection that is refused.
    assert_eq!(encoder.encode(Purpose::Question, &["tea"]).unwrap_err(), error);
    assert!(encoder.state().question.is_some() && encoder.state().memory.is_some());
}

#[test]
fn blank_texts_say_nothing_about_the_server() {
    let server = Server::start(vec![Reply::Json(503, json!({}))]);
    let encoder = patient(&server.url);
    encoder.encode(Purpose::Memory, &["tea"]).unwrap_err();
    assert!(encoder.encode(Purpose::Memory, &["", " "]).is_err());
    assert!(encoder.state().memory.is_some());
    assert_eq!(server.requests().len(), 1);
}

/// The words of TLS about a certificate name the host.
#[test]
fn errors_of_connections_do_not_say_where_the_server_is() {
    let certificate = "certificate not valid for name \"embeddings.internal.example\"";
    for error in [
        ureq::Error::Io(io::Error::new(io::ErrorKind::InvalidData, certificate)),
        ureq::Error::Io(io::Error::other(certificate)),
        ureq::Error::Io(io::Error::new(io::ErrorKind::ConnectionReset, certificate)),
        ureq::Error::BadUri("https://embeddings.internal.example".to_owned()),
    ] {
        let (Why::Server(error) | Why::Unreachable(error)) = Why::of(error) else { panic!() };
        assert!(!error.to_string().contains("internal"), "{error}");
        assert!(error.in_detail().contains("internal"), "{error:?}");
    }
    let server = Server::start(vec![Reply::Raw(b"this is no TLS".to_vec())]);
    let encoder = encoder(&server.url.replace("http://127.0.0.1", "https://localhost"));
    let error = encoder.encode(Purpose::Question, &["tea"]).unwrap_err().to_string();
    assert!(error.starts_with("the endpoint failed: ") && !error.contains("localhost"), "{error}");
}

#[test]
fn pauses_grow_until_a_call_succeeds() {
    let encoder = encoder("http://localhost:9/v1");
    let fail = || encoder.failed(&[Purpose::Memory], failure("x"));
    fail();
    encoder.state().memory.as_mut().unwrap().pause = Duration::from_secs(4);
    fail();
    assert_eq!(encoder.state().memory.as_ref().unwrap().pause, Duration::from_secs(8));

    let server = Server::start(vec![Reply::Json(503, json!({})), vectors(&[&[1.0]])]);
    let encoder = self::encoder(&server.url);
    encoder.encode(Purpose::Question, &["tea"]).unwrap_err();
    encoder.encode(Purpose::Question, &["tea"]).unwrap();
    assert!(encoder.state().question.is_none());
}

#[test]
fn addresses_that_are_none_or_contain_secrets_are_refused() {
    for url in ["", "localhost:11434", "ftp://localhost", "http://", "file:///etc/passwd"] {
        assert!(EndpointEncoder::new(url, "tiny", None).is_err(), "{url}");
    }
    for url in ["http://ada:sk-secret@localhost/v1", "http://localhost/v1?key=sk-secret"] {
        let error = EndpointEncoder::new(url, "tiny", None).unwrap_err().to_string();
        assert!(!error.contains("sk-secret"), "{error}");
    }
    assert!(EndpointEncoder::new("http://localhost/v1", "", None).is_err());
}
