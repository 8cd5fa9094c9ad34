//! The vectors of questions.
//!
//! An encoder may be a server that hangs, and a search must not hang with it. So the encoder is called
//! on a thread of its own, one at a time, and searches wait for a bounded time. A call that has taken
//! longer is not waited for any more, also not by later searches, and no further call is made until it
//! returns: otherwise threads would pile up in front of a server that is down.
//!
//! The last vectors are kept, so that the pages of one search have the same order, and cost nothing. So are
//! the last rejections: that an encoder does not take one question says nothing about others, which
//! may be those of other callers.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quipu_vectors::quantized::Question;
use quipu_vectors::{EncodeError, Encoder, Purpose};

use super::encode;

/// How long a search waits for the vector of its question.
const WAIT: Duration = Duration::from_millis(300);

/// How long after a failure the encoder is not asked again.
const PAUSE: Duration = Duration::from_secs(5);

/// How many questions are remembered.
const KNOWN_MAX: usize = 64;

/// The maximum size of a question. An encoder reads no more than its beginning anyway.
const SIZE_BYTES_MAX: usize = 8 * 1024;

/// The questions of this process.
#[derive(Debug)]
pub(super) struct Questions {
    encoder: Arc<dyn Encoder>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// When the call began that is under way.
    begun: Option<Instant>,
    /// The last questions, the newest first.
    known: VecDeque<Known>,
    /// When the encoder last failed, and why, unless a later call succeeded.
    failed: Option<(Instant, String)>,
}

/// A question, and its vector or why it has none.
#[derive(Debug)]
struct Known {
    text: String,
    vector: Result<Arc<Question>, String>,
}

impl Questions {
    pub(super) fn new(encoder: Arc<dyn Encoder>) -> Self {
        Self { encoder, shared: Arc::default() }
    }

    /// Returns the vector of a question, or says why there is none.
    pub(super) fn ask(&self, text: &str) -> Result<Arc<Question>, String> {
        let text = text.get(..text.floor_char_boundary(SIZE_BYTES_MAX)).unwrap_or(text);
        let deadline = Instant::now() + WAIT;
        let mut state = self.shared.state();
        loop {
            if let Some(known) = state.known.iter().find(|known| known.text == text) {
                return known.vector.clone();
            }
            if let Some((at, reason)) = &state.failed
                && at.elapsed() < PAUSE
            {
                return Err(reason.clone());
            }
            match state.begun {
                Some(begun) if begun.elapsed() >= WAIT => return Err(too_slow()),
                Some(_) => {}
                None => self.begin(&mut state, text)?,
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(too_slow());
            }
            let waited = self.shared.answered.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn begin(&self, state: &mut State, text: &str) -> Result<(), String> {
        let (encoder, text) = (Arc::clone(&self.encoder), text.to_owned());
        let shared = Arc::clone(&self.shared);
        let begun = Instant::now();
        let work = move || {
            // Made here: dropped with the closure of a thread that cannot be started, it would wait for
            // the lock that the caller holds.
            let mut call = Call { shared, outcome: Outcome::Crashed };
            let made = encode(&*encoder, Purpose::Question, &[&text], Question::new);
            let first = |made: Vec<Question>| {
                made.into_iter().next().ok_or_else(|| EncodeError::new("it returned nothing"))
            };
            call.outcome = match made.and_then(first) {
                Ok(question) => Outcome::Known(Known { text, vector: Ok(Arc::new(question)) }),
                Err(error) if error.is_of_text() => {
                    Outcome::Known(Known { text, vector: Err(error.to_string()) })
                }
                Err(error) => Outcome::Failed(error.to_string()),
            };
        };
        match thread::Builder::new().name("question".to_owned()).spawn(work) {
            Ok(_) => {
                state.begun = Some(begun);
                Ok(())
            }
            Err(error) => Err(format!("no thread for the encoder: {error}")),
        }
    }
}

fn too_slow() -> String {
    format!("it has not answered within {} ms", WAIT.as_millis())
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way. It ends when it is dropped, even if the encoder panics.
struct Call {
    shared: Arc<Shared>,
    outcome: Outcome,
}

enum Outcome {
    /// The encoder works.
    Known(Known),
    /// The encoder does not work, for this reason.
    Failed(String),
    Crashed,
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.begun = None;
        match std::mem::replace(&mut self.outcome, Outcome::Crashed) {
            Outcome::Known(known) => {
                state.known.push_front(known);
                state.known.truncate(KNOWN_MAX);
                state.failed = None;
            }
            Outcome::Failed(reason) => state.failed = Some((Instant::now(), reason)),
            Outcome::Crashed => state.failed = Some((Instant::now(), "it crashed".to_owned())),
        }
        drop(state);
        self.shared.answered.notify_all();
    }
}
