//! A server that makes vectors as `OpenAI`'s does, or does what servers do wrong.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use quipu_testkit::encoders::ConceptEncoder;
use serde_json::{Value, json};

use crate::support::Quipu;

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Behavior {
    /// It answers with the vectors of a [`ConceptEncoder`].
    Works,
    /// It answers with vectors of so many dimensions.
    Truncates(usize),
    /// It answers with this status.
    Refuses(u16),
    /// It answers texts with these words with this status.
    RefusesText(&'static str, u16),
    /// It answers with this body.
    Says(&'static str),
    /// It keeps the connection and says nothing.
    Hangs,
    /// It answers once it behaves otherwise.
    Holds,
    /// It closes the connection.
    Closes,
    /// It answers with one vector too few.
    Forgets,
}

/// A running server. It stops with the process.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    behavior: Behavior,
    /// Every text that it was given.
    texts: Vec<String>,
    requests_count: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, mut is_reached: impl FnMut(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_while(self.state(), |state| !is_reached(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let state = State { behavior: Behavior::Works, texts: Vec::new(), requests_count: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let seen = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&seen);
                // Whoever is killed in the middle of a request breaks the connection.
                thread::spawn(move || drop(answer(stream.expect("a connection"), &shared)));
            }
        });
        Self { url, shared }
    }

    pub(crate) fn behave(&self, behavior: Behavior) {
        self.shared.state().behavior = behavior;
        self.shared.changed.notify_all();
    }

    /// Waits until it was given a text that contains these words.
    pub(crate) fn wait_for_text(&self, words: &str) {
        drop(self.shared.wait_until(|state| state.texts.iter().any(|it| it.contains(words))));
    }

    /// Waits until it was asked so many times.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        drop(self.shared.wait_until(|state| state.requests_count >= count));
    }

    /// Returns every text that it was given.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.shared.state().texts.clone()
    }

    pub(crate) fn forget_texts(&self) {
        self.shared.state().texts.clear();
    }

    pub(crate) fn requests_count(&self) -> usize {
        self.shared.state().requests_count
    }

    /// Writes settings that name the server.
    pub(crate) fn is_used_by(&self, quipu: &Quipu) {
        self.is_used_by_as(quipu, "concepts");
    }

    /// Writes settings that name the server and what it calls its model.
    pub(crate) fn is_used_by_as(&self, quipu: &Quipu, model: &str) {
        let settings =
            format!("[vectors]\nendpoint = '{}'\nendpoint_model = '{model}'\n", self.url);
        std::fs::write(quipu.data().join("quipu.toml"), settings).expect("it is written");
    }
}

fn answer(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while input.read_line(&mut line)? > 0 && line != "\r\n" {
            let header = line.to_ascii_lowercase();
            if let Some(text) = header.strip_prefix("content-length:") {
                length = text.trim().parse().expect("a length");
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        let body: Value = serde_json::from_slice(&body).expect("a request is JSON");
        let texts = body["input"].as_array().expect("texts").iter();
        let texts: Vec<_> = texts.map(|text| text.as_str().expect("a text").to_owned()).collect();
        let mut state = shared.state();
        state.requests_count += 1;
        state.texts.extend(texts.iter().cloned());
        drop(state);
        shared.changed.notify_all();
        let waited = shared.wait_until(|state| !matches!(state.behavior, Behavior::Holds));
        let behavior = waited.behavior.clone();
        drop(waited);
        // A model of another size by another name.
        let most = if body["model"] == "short" { 16 } else { usize::MAX };
        let (status, body) = match behavior {
            Behavior::Truncates(dimensions) => (200, vectors(&texts, dimensions)),
            Behavior::RefusesText(words, status) if texts.iter().any(|it| it.contains(words)) => {
                (status, json!({"error": texts}).to_string())
            }
            Behavior::Works | Behavior::RefusesText(..) => (200, vectors(&texts, most)),
            Behavior::Forgets => (200, vectors(&texts[1..], most)),
            Behavior::Refuses(status) => (status, json!({"error": texts}).to_string()),
            Behavior::Says(body) => (200, body.to_owned()),
            Behavior::Hangs => {
                // Until the client gives up.
                input.read_line(&mut line)?;
                return Ok(());
            }
            Behavior::Closes | Behavior::Holds => return Ok(()),
        };
        let length = body.len();
        write!(output, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}")?;
    }
}

fn vectors(texts: &[String], dimensions: usize) -> String {
    let data = texts.iter().enumerate().map(|(index, text)| {
        let mut vector = ConceptEncoder::vector(text);
        vector.truncate(dimensions);
        json!({"index": index, "embedding": vector})
    });
    json!({"data": data.collect::<Vec<_>>()}).to_string()
}
