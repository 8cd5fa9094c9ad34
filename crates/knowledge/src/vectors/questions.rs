//! The vectors of questions.
//!
//! An encoder may be a server that hangs, and a search must not hang with it. So the encoder is called
//! on threads of its own, as many as it takes at once, and searches wait for a bounded time, in the order
//! in which they came. A call that has taken longer is abandoned, by later searches too, and no further
//! one is made while the encoder seems to hang: otherwise threads would pile up in front of a server that is
//! down.
//!
//! The last vectors are kept, so that the pages of one search have the same order, and cost nothing. So are
//! the last rejections: that an encoder does not take one question says nothing about others, which
//! may be those of other callers. What one caller has asked is not remembered for another, who would
//! see by the time that an answer takes what was asked before.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::model::Actor;
use quipu_vectors::quantized::Question;
use quipu_vectors::{EncodeError, Encoder, Purpose, estimated_tokens};

use super::encode;

/// How long a search waits for the vector of its question.
const WAIT: Duration = Duration::from_millis(300);

/// How long after a failure the encoder is not asked again.
const PAUSE: Duration = Duration::from_secs(5);

/// How many questions are remembered.
const KNOWN_MAX: usize = 64;

/// How much of a question is encoded: what small encoders read. Servers reject what is too long for them.
const TOKENS_MAX: usize = 256;

/// With this many calls that do not return, and none that has returned since, an encoder hangs. One of
/// several may just be a long question.
const HANGING_MIN: usize = 2;

/// The questions of this process.
#[derive(Debug)]
pub(super) struct Questions {
    encoder: Arc<dyn Encoder>,
    shared: Arc<Shared>,
    wait: Duration,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The calls that are under way.
    calls: Vec<Begun>,
    /// When the encoder last answered.
    answered: Option<Instant>,
    /// The searches that wait for a call of theirs, the first in front.
    queue: VecDeque<u64>,
    /// The number of the last call or search.
    numbers: u64,
    /// The last questions, the newest first.
    known: VecDeque<Known>,
    /// When the encoder last failed, and why, unless a later call succeeded.
    failed: Option<(Instant, String)>,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    text: String,
    asked_by: Option<Actor>,
}

/// A call that is under way.
#[derive(Debug)]
struct Begun {
    number: u64,
    text: Text,
    at: Instant,
}

/// A question, and its vector or why it has none.
#[derive(Debug)]
struct Known {
    text: Text,
    vector: Result<Arc<Question>, String>,
}

impl Questions {
    pub(super) fn new(encoder: Arc<dyn Encoder>) -> Self {
        Self { encoder, shared: Arc::default(), wait: WAIT }
    }

    /// Returns the vector of a question of somebody, or says why there is none.
    pub(super) fn ask(
        &self,
        text: &str,
        asked_by: Option<&Actor>,
    ) -> Result<Arc<Question>, String> {
        let text = Text { text: beginning(text).to_owned(), asked_by: asked_by.cloned() };
        let deadline = Instant::now() + self.wait;
        let mut state = self.shared.state();
        let mut place = Place { number: None };
        let answer = loop {
            if let Some(answer) = self.proceed(&mut state, &mut place, &text) {
                break answer;
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                break Err(self.too_slow());
            }
            let waited = self.shared.changed.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        place.leave(&mut state);
        drop(state);
        // The next one in the queue may begin.
        self.shared.changed.notify_all();
        answer
    }

    /// Begins a call if it is time, and returns the answer if there is one.
    fn proceed(
        &self,
        state: &mut State,
        place: &mut Place,
        text: &Text,
    ) -> Option<Result<Arc<Question>, String>> {
        if let Some(known) = state.known.iter().find(|known| known.text == *text) {
            return Some(known.vector.clone());
        }
        if let Some((at, reason)) = &state.failed
            && at.elapsed() < PAUSE
        {
            return Some(Err(reason.clone()));
        }
        if state.calls.iter().any(|call| call.text == *text) {
            return None;
        }
        if let Some(reason) = self.hangs(state) {
            return Some(Err(reason));
        }
        if state.calls.len() >= self.encoder.questions_max() || !place.is_first(state) {
            place.take(state);
            return None;
        }
        place.leave(state);
        if let Err(reason) = self.begin(state, text) {
            return Some(Err(reason));
        }
        // There may be room for the next one, too.
        self.shared.changed.notify_all();
        None
    }

    /// Returns why no call is begun, if the encoder seems to hang.
    fn hangs(&self, state: &State) -> Option<String> {
        let is_late = |call: &&Begun| {
            call.at.elapsed() >= self.wait && state.answered.is_none_or(|at| at < call.at)
        };
        let least = self.encoder.questions_max().min(HANGING_MIN);
        let hangs = state.calls.iter().filter(is_late).count() >= least;
        hangs.then(|| self.too_slow())
    }

    fn too_slow(&self) -> String {
        format!("it has not answered within {} ms", self.wait.as_millis())
    }

    fn begin(&self, state: &mut State, text: &Text) -> Result<(), String> {
        let (encoder, text) = (Arc::clone(&self.encoder), text.clone());
        let shared = Arc::clone(&self.shared);
        state.numbers += 1;
        let begun = Begun { number: state.numbers, text: text.clone(), at: Instant::now() };
        let number = begun.number;
        let work = move || {
            // Made here: dropped with the closure of a thread that cannot be started, it would wait for
            // the lock that the caller holds.
            let mut call = Call { number, shared, outcome: Outcome::Crashed };
            let made = encode(&*encoder, Purpose::Question, &[&text.text], Question::new);
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
                state.calls.push(begun);
                Ok(())
            }
            Err(error) => Err(format!("no thread for the encoder: {error}")),
        }
    }
}

/// The place of a search in the queue.
struct Place {
    number: Option<u64>,
}

impl Place {
    fn is_first(&self, state: &State) -> bool {
        state.queue.front().copied() == self.number || state.queue.is_empty()
    }

    fn take(&mut self, state: &mut State) {
        if self.number.is_none() {
            state.numbers += 1;
            state.queue.push_back(state.numbers);
            self.number = Some(state.numbers);
        }
    }

    fn leave(&mut self, state: &mut State) {
        if let Some(number) = self.number.take() {
            state.queue.retain(|waiting| *waiting != number);
        }
    }
}

/// Returns the words at the beginning of a question that are encoded.
fn beginning(text: &str) -> &str {
    // No token takes more bytes on average; so a long text is not read to its end.
    let text = text.get(..text.floor_char_boundary(TOKENS_MAX * 16)).unwrap_or(text);
    let (mut end, mut tokens) = (0, 0);
    for word in text.split_inclusive(char::is_whitespace) {
        tokens += estimated_tokens(word);
        if tokens > TOKENS_MAX && end > 0 {
            break;
        }
        end += word.len();
    }
    text.get(..end).unwrap_or(text)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way. It ends when it is dropped, even if the encoder panics.
struct Call {
    number: u64,
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
        state.calls.retain(|call| call.number != self.number);
        match std::mem::replace(&mut self.outcome, Outcome::Crashed) {
            Outcome::Known(known) => {
                state.known.push_front(known);
                state.known.truncate(KNOWN_MAX);
                state.failed = None;
                state.answered = Some(Instant::now());
            }
            Outcome::Failed(reason) => state.failed = Some((Instant::now(), reason)),
            Outcome::Crashed => state.failed = Some((Instant::now(), "it crashed".to_owned())),
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}
