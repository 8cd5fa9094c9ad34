//! The vectors of questions.
//!
//! An encoder may be a server that hangs, and a search must not hang with it. So the encoder is called
//! on a thread of its own, one at a time, and searches wait for a bounded time. A call that has taken
//! longer is not waited for any more, also not by later searches, and no further call is made until it
//! returns: otherwise threads would pile up in front of a server that is down.
//!
//! The last vectors are kept, so that the pages of one search have the same order, and cost nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quipu_vectors::quantized::Question;
use quipu_vectors::{Encoder, Purpose};

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
    known: VecDeque<(String, Arc<Question>)>,
    /// When the last call failed, and why, unless a later one succeeded.
    failed: Option<(Instant, String)>,
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
            if let Some((_, known)) = state.known.iter().find(|(known, _)| known == text) {
                return Ok(Arc::clone(known));
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
            let mut call = Call { shared, answer: None };
            let made = encode(&*encoder, Purpose::Question, &[&text], Question::new);
            let one = made.map(|made| made.into_iter().next());
            call.answer = match one {
                Ok(Some(question)) => Some(Ok((text, Arc::new(question)))),
                Ok(None) => None,
                Err(reason) => Some(Err(reason)),
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
    answer: Option<Result<(String, Arc<Question>), String>>,
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.begun = None;
        match self.answer.take() {
            Some(Ok(known)) => {
                state.known.push_front(known);
                state.known.truncate(KNOWN_MAX);
                state.failed = None;
            }
            Some(Err(reason)) => state.failed = Some((Instant::now(), reason)),
            None => state.failed = Some((Instant::now(), "it crashed".to_owned())),
        }
        drop(state);
        self.shared.answered.notify_all();
    }
}
