//! Encoders for tests: one that knows a few concepts, and what an encoder can do wrong.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use quipu_vectors::{EncodeError, Encoder, Purpose};

/// Words with the same meaning, each group in a dimension of its own.
const CONCEPTS: [&[&str]; 8] = [
    &["car", "automobile", "vehicle", "sedan"],
    &["doctor", "physician", "surgeon", "clinic"],
    &["happy", "joyful", "glad", "delighted"],
    &["money", "cash", "salary", "payment"],
    &["house", "home", "apartment", "dwelling"],
    &["dog", "puppy", "hound", "canine"],
    &["begin", "start", "commence", "launch"],
    &["ocean", "sea", "beach", "shore"],
];

/// The dimensions in which all other words are, by a hash.
const OTHERS: usize = 24;

/// The length of the vectors of a [`ConceptEncoder`].
pub const DIMENSIONS: usize = CONCEPTS.len() + OTHERS;

/// What an encoder does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behavior {
    /// It works.
    #[default]
    Works,
    /// It fails.
    Fails,
    /// It fails if a text contains the word `poison`.
    FailsOnPoison,
    /// It rejects texts that contain the word `poison`.
    RejectsPoison,
    /// It does not return before it is told otherwise.
    Hangs,
    /// It returns vectors of another length.
    WrongLength,
    /// It returns a vector too few.
    TooFew,
    /// It returns values that are no numbers.
    NotANumber,
    /// It panics.
    Panics,
}

/// What is done in the middle of a call, with the texts.
type Hook = Arc<dyn Fn(&[&str]) + Send + Sync>;

/// An encoder that knows which words mean the same, and misbehaves on request.
#[derive(Clone)]
pub struct ConceptEncoder {
    identity: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    behavior: Behavior,
    hook: Option<Hook>,
    question_count: usize,
    memory_count: usize,
}

impl ConceptEncoder {
    /// Returns an encoder with an identity.
    pub fn new(identity: &str) -> Self {
        Self { identity: identity.to_owned(), shared: Arc::default() }
    }

    /// Changes what it does from now on, also in calls that hang.
    pub fn behave(&self, behavior: Behavior) {
        self.state().behavior = behavior;
        self.shared.changed.notify_all();
    }

    /// Runs `hook` in each call for memories, before it returns.
    pub fn in_the_middle(&self, hook: impl Fn(&[&str]) + Send + Sync + 'static) {
        self.state().hook = Some(Arc::new(hook));
    }

    /// Returns how many questions, and how many passages of memories, it was given.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.question_count, state.memory_count)
    }

    /// Returns the vector of a text.
    pub fn vector(text: &str) -> Vec<f32> {
        let mut vector = vec![0.0_f32; DIMENSIONS];
        for word in text.split(|letter: char| !letter.is_alphanumeric()) {
            let word = word.to_lowercase();
            if word.is_empty() {
                continue;
            }
            let concept = CONCEPTS.iter().position(|words| words.contains(&word.as_str()));
            let (place, value) = match concept {
                Some(place) => (place, 1.0),
                None => (CONCEPTS.len() + hash(&word) % OTHERS, 0.2),
            };
            if let Some(dimension) = vector.get_mut(place) {
                *dimension += value;
            }
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if length > 0.0 {
            for value in &mut vector {
                *value /= length;
            }
        }
        vector
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(word: &str) -> usize {
    word.bytes().fold(7, |sum, byte| (sum * 31 + usize::from(byte)) % 1_000_003)
}

impl fmt::Debug for ConceptEncoder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ConceptEncoder").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Encoder for ConceptEncoder {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn encode(&self, purpose: Purpose, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut state = self.state();
        match purpose {
            Purpose::Question => state.question_count += texts.len(),
            Purpose::Memory => state.memory_count += texts.len(),
        }
        while state.behavior == Behavior::Hangs {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let behavior = state.behavior;
        let hook = state.hook.clone().filter(|_| purpose == Purpose::Memory);
        drop(state);
        let is_poison = texts.iter().any(|text| text.contains("poison"));
        let mut vectors: Vec<_> = texts.iter().map(|text| Self::vector(text)).collect();
        if let Some(hook) = hook {
            hook(texts);
        }
        let failed = || Err(EncodeError::new("the model is out of order"));
        match behavior {
            Behavior::Fails => return failed(),
            Behavior::FailsOnPoison if is_poison => return failed(),
            Behavior::RejectsPoison if is_poison => {
                return Err(EncodeError::of_text("the model rejects this text"));
            }
            Behavior::Works
            | Behavior::Hangs
            | Behavior::FailsOnPoison
            | Behavior::RejectsPoison => {}
            Behavior::WrongLength => vectors.iter_mut().for_each(|vector| vector.truncate(7)),
            Behavior::TooFew => drop(vectors.pop()),
            Behavior::NotANumber => vectors.iter_mut().for_each(|vector| vector.fill(f32::NAN)),
            Behavior::Panics => panic!("the model is out of its mind"),
        }
        Ok(vectors)
    }
}
