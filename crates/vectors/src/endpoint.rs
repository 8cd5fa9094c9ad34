//! An encoder behind HTTP, as `OpenAI` defined it: Ollama, TEI, vLLM and others answer `POST /v1/embeddings`.
//!
//! A server may hang, lie or be gone. Every wait has an end, every answer is checked before it is used, and
//! after a failure the server is left alone for a while, so that not every search waits for it anew.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use ureq::http::Uri;

use crate::{EncodeError, Encoder, Prefixes, Purpose, TOKENS_MAX_ASSUMED, normalized};

/// An encoder that asks a server.
#[derive(Debug)]
pub struct EndpointEncoder {
    address: String,
    model: String,
    key: Option<Key>,
    prefixes: Prefixes,
    identity: String,
    agent: ureq::Agent,
    limits: Limits,
    state: Mutex<State>,
}

/// A credential, which no output shows.
struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// How long is waited.
#[derive(Clone, Copy, Debug)]
struct Limits {
    question_timeout: Duration,
    memory_timeout: Duration,
    /// The pause after the first failure. It doubles with each further one.
    pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            question_timeout: Duration::from_secs(5),
            memory_timeout: Duration::from_mins(1),
            pause: Duration::from_secs(1),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The length of the vectors, once one was seen.
    dimensions: Option<usize>,
    /// The failures of questions and of memories. A batch of passages that takes a slow server longer than a
    /// minute says nothing about a question, which takes it a moment.
    question: Option<Failure>,
    memory: Option<Failure>,
}

impl State {
    fn failure(&mut self, purpose: Purpose) -> &mut Option<Failure> {
        match purpose {
            Purpose::Question => &mut self.question,
            Purpose::Memory => &mut self.memory,
        }
    }
}

/// The last failure, until a call succeeds.
#[derive(Clone, Debug)]
struct Failure {
    error: EncodeError,
    pause: Duration,
    until: Instant,
}

/// Why a call has failed.
enum Why {
    /// No connection can be made, whatever it is for.
    Unreachable(EncodeError),
    /// The server fails, for this reason.
    Server(EncodeError),
    /// The server works, and has rejected one of these texts, for this reason.
    Texts(String),
    /// Something is wrong with the server or with one of these texts.
    Unclear(String),
}

impl From<String> for Why {
    fn from(why: String) -> Self {
        Self::Server(failure(&why))
    }
}

#[derive(Serialize)]
struct Request<'r> {
    model: &'r str,
    input: &'r [&'r str],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Response {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const IDLE_MAX: Duration = Duration::from_secs(3);
const PAUSE_MAX: Duration = Duration::from_mins(1);
const BATCH_TEXTS_MAX: usize = 32;
/// How many questions the server is asked at the same time.
const QUESTIONS_MAX: usize = 8;
const RESPONSE_SIZE_BYTES_MAX: u64 = 32 * 1024 * 1024;
const DIMENSIONS_MAX: usize = 16 * 1024;
/// A text that every server takes.
const PROBE: &str = "?";

impl EndpointEncoder {
    /// Returns an encoder for the server below an address such as `http://localhost:11434/v1`. Asks nothing
    /// yet.
    pub fn new(url: &str, model: &str, key: Option<String>) -> Result<Self, EncodeError> {
        Self::with_limits(url, model, key, Limits::default())
    }

    fn with_limits(
        url: &str,
        model: &str,
        key: Option<String>,
        limits: Limits,
    ) -> Result<Self, EncodeError> {
        let url = url.trim_end_matches('/');
        let parsed = url.parse::<Uri>().ok().filter(|url| {
            let is_http = matches!(url.scheme_str(), Some("http" | "https"));
            is_http && url.host().is_some_and(|host| !host.is_empty())
        });
        let Some(parsed) = parsed else {
            let message = "the address of the endpoint must begin with `http://` or `https://`";
            return Err(EncodeError::new(message.to_owned()));
        };
        // The address is shown in messages and stored with the vectors, so it must be no secret.
        if parsed.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            let message = "the address of the endpoint must not contain a password";
            return Err(EncodeError::new(message.to_owned()));
        }
        if parsed.query().is_some() {
            return Err(EncodeError::new(
                "the address of the endpoint must not have a query".to_owned(),
            ));
        }
        if model.is_empty() {
            return Err(EncodeError::new("the endpoint needs the name of a model".to_owned()));
        }
        let agent = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            // Servers close idle connections, uvicorn after 5 s; a request on one of them would fail.
            .max_idle_age(IDLE_MAX)
            // A redirect could lead the texts, and the key, to another host.
            .max_redirects(0)
            .http_status_as_error(false)
            .build()
            .into();
        Ok(Self {
            address: format!("{url}/embeddings"),
            model: model.to_owned(),
            key: key.map(Key),
            prefixes: Prefixes::default(),
            identity: format!("endpoint:{url} {model}"),
            agent,
            limits,
            state: Mutex::default(),
        })
    }

    /// Returns the same encoder with something in front of questions and passages.
    #[must_use]
    pub fn with_prefixes(mut self, prefixes: Prefixes) -> Self {
        self.identity = prefixes.identified(self.identity);
        self.prefixes = prefixes;
        self
    }

    /// Asks the server, unless it failed a moment ago.
    fn ask(&self, purpose: Purpose, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeError> {
        if let Some(failure) = self.state().failure(purpose)
            && Instant::now() < failure.until
        {
            return Err(failure.error.clone());
        }
        let mut vectors = Vec::new();
        for batch in texts.chunks(BATCH_TEXTS_MAX) {
            match self.post(purpose, batch) {
                Ok(batch) => vectors.extend(batch),
                Err(Why::Texts(why)) => return Err(EncodeError::of_text(why)),
                // Servers report some texts that are too long for them as their own failure. Taken for one,
                // a single text would cost all others their vectors.
                Err(Why::Unclear(why)) if self.works(purpose, batch) => {
                    return Err(EncodeError::of_text(why));
                }
                Err(Why::Unclear(why)) => return Err(self.failed(&[purpose], failure(&why))),
                Err(Why::Server(error)) => return Err(self.failed(&[purpose], error)),
                Err(Why::Unreachable(error)) => return Err(self.failed(&Purpose::ALL, error)),
            }
        }
        if !texts.is_empty() {
            *self.state().failure(purpose) = None;
        }
        Ok(vectors)
    }

    /// Returns whether the server takes another text than the ones on which it has failed.
    fn works(&self, purpose: Purpose, failed: &[&str]) -> bool {
        failed != [PROBE] && self.post(purpose, &[PROBE]).is_ok()
    }

    fn post(&self, purpose: Purpose, texts: &[&str]) -> Result<Vec<Vec<f32>>, Why> {
        let timeout = match purpose {
            Purpose::Question => self.limits.question_timeout,
            Purpose::Memory => self.limits.memory_timeout,
        };
        let request = Request { model: &self.model, input: texts, encoding_format: "float" };
        let body = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
        let mut post = self.agent.post(&self.address).header("content-type", "application/json");
        if let Some(Key(key)) = &self.key {
            post = post.header("authorization", format!("Bearer {key}"));
        }
        let post = post.config().timeout_global(Some(timeout)).build();
        let mut response = post.send(&body).map_err(Why::of)?;
        // The body of a refusal is not shown: it may repeat the texts, or the key.
        match response.status().as_u16() {
            200 => {}
            status @ (400 | 413 | 422) => {
                return Err(Why::Texts(format!("it rejected this text ({status})")));
            }
            500 => return Err(Why::Unclear("it answered 500".to_owned())),
            401 | 403 => return Err("it refused the key".to_owned().into()),
            404 => {
                return Err("it answered 404; check the address and the model".to_owned().into());
            }
            429 => return Err("it answered 429, too many requests".to_owned().into()),
            status if response.status().is_redirection() => {
                return Err(format!("it answered {status}, a redirect").into());
            }
            status => return Err(format!("it answered {status}").into()),
        }
        let body = response.body_mut().with_config().limit(RESPONSE_SIZE_BYTES_MAX).read_to_vec();
        let body = body.map_err(Why::of)?;
        let response: Response = serde_json::from_slice(&body).map_err(|error| {
            Why::Unclear(format!("its response is not a list of embeddings ({})", place(&error)))
        })?;
        self.checked(response, texts.len())
    }

    /// Reads an answer as if it was one to this number of texts.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn read_any(body: &[u8], count: usize) -> Option<Vec<Vec<f32>>> {
        let encoder = Self::new("http://localhost/v1", "any", None).ok()?;
        let response = serde_json::from_slice(body).ok()?;
        encoder.checked(response, count).ok()
    }

    /// Returns the vectors of an answer in the order of the texts.
    fn checked(&self, response: Response, count: usize) -> Result<Vec<Vec<f32>>, Why> {
        let mut items = response.data;
        if items.len() != count {
            let texts = if count == 1 { "text" } else { "texts" };
            let why = format!("it returned {} embeddings for {count} {texts}", items.len());
            return Err(why.into());
        }
        if items.iter().any(|item| item.index.is_some()) {
            items.sort_by_key(|item| item.index);
            let indexes = items.iter().map(|item| item.index);
            if !indexes.eq((0..count).map(Some)) {
                return Err("the `index` values in its response are wrong".to_owned().into());
            }
        }
        let mut known = self.state().dimensions;
        let mut vectors = Vec::new();
        for item in items {
            let length = item.embedding.len();
            if !(1..=DIMENSIONS_MAX).contains(&length) {
                return Err(format!("it returned an embedding of length {length}").into());
            }
            let expected = *known.get_or_insert(length);
            if length != expected {
                let why = format!("it returned an embedding of length {length} after {expected}");
                return Err(why.into());
            }
            let vector = normalized(item.embedding);
            vectors.push(vector.map_err(|error| Why::Unclear(error.to_string()))?);
        }
        // An answer that is wrong says nothing about the length of right ones.
        self.state().dimensions = known;
        Ok(vectors)
    }

    /// Notes a failure and how long to leave the server alone.
    fn failed(&self, purposes: &[Purpose], error: EncodeError) -> EncodeError {
        let mut state = self.state();
        for purpose in purposes {
            let known = state.failure(*purpose);
            let last = known.as_ref().map(|failure| failure.pause.saturating_mul(2));
            let pause = last.unwrap_or(self.limits.pause).min(PAUSE_MAX);
            *known = Some(Failure { error: error.clone(), pause, until: Instant::now() + pause });
        }
        error
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is kept here is valid after any assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Encoder for EndpointEncoder {
    fn identity(&self) -> &str {
        &self.identity
    }

    /// Asks the server if no vector was seen yet; zero if it does not answer.
    fn dimensions(&self) -> usize {
        let known = self.state().dimensions;
        known.unwrap_or_else(|| {
            let probe = self.ask(Purpose::Question, &[PROBE]).unwrap_or_default();
            probe.first().map_or(0, Vec::len)
        })
    }

    fn tokens_max(&self) -> usize {
        TOKENS_MAX_ASSUMED.saturating_sub(self.tokens(&self.prefixes.passage))
    }

    fn questions_max(&self) -> usize {
        QUESTIONS_MAX
    }

    fn encode(&self, purpose: Purpose, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeError> {
        // Servers refuse empty texts, and with them the whole batch.
        let is_blank = |text: &str| text.trim().is_empty();
        let asked = texts.iter().copied().filter(|text| !is_blank(text));
        let asked: Vec<_> = asked.map(|text| self.prefixes.add(purpose, text)).collect();
        let asked: Vec<_> = asked.iter().map(|text| &**text).collect();
        let mut vectors = self.ask(purpose, &asked)?.into_iter();
        let dimensions = if asked.len() == texts.len() { 0 } else { self.dimensions() };
        let vector = |text: &&str| {
            if is_blank(text) { Some(vec![0.0; dimensions]) } else { vectors.next() }
        };
        Ok(texts.iter().filter_map(vector).collect())
    }
}

impl Why {
    /// Classifies an error of a connection. Its own words may name the server, as those about a certificate
    /// do, and every caller of a search would read them.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "both kinds of errors will get more variants"
    )]
    fn of(error: ureq::Error) -> Self {
        let detail = error.to_string();
        let server = |why: &str| Self::Server(failure(why).with_detail(&*detail));
        let unreachable = |why: &str| Self::Unreachable(failure(why).with_detail(&*detail));
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                unreachable("timeout: it cannot be reached")
            }
            ureq::Error::Timeout(_) => server("timeout: it did not answer in time"),
            ureq::Error::HostNotFound => unreachable("its name cannot be resolved"),
            ureq::Error::ConnectionFailed => unreachable("it cannot be reached"),
            ureq::Error::Io(error) => match error.kind() {
                // An error of TLS, which has a text of its own.
                io::ErrorKind::InvalidData | io::ErrorKind::Other => {
                    server("the connection failed")
                }
                kind @ (io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable) => unreachable(&kind.to_string()),
                kind => server(&kind.to_string()),
            },
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => server("the TLS connection failed"),
            ureq::Error::BodyExceedsLimit(_) => server("its response is too large"),
            _ => server("the connection failed"),
        }
    }
}

/// Returns an error that every caller of a search may read, and so without the address of the server.
fn failure(why: &str) -> EncodeError {
    EncodeError::new(format!("the endpoint failed: {why}"))
}

/// Returns where an answer went wrong. The message of the parser would quote the answer.
fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests;
