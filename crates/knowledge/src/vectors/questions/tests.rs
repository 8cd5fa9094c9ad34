use std::sync::MutexGuard;

use quipu_core::model::PrincipalName;

use super::*;

/// An encoder that answers when it is told.
#[derive(Debug)]
struct Gated {
    questions_max: usize,
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_open: bool,
    /// The questions that it was given, in order.
    given: Vec<String>,
    inside: usize,
}

impl Gated {
    fn new(questions_max: usize) -> Arc<Self> {
        Arc::new(Self { questions_max, state: Mutex::default(), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap()
    }

    fn open(&self) {
        self.state().is_open = true;
        self.changed.notify_all();
    }

    fn wait_for(&self, inside: usize) {
        drop(self.changed.wait_while(self.state(), |state| state.inside < inside).unwrap());
    }
}

impl Encoder for Gated {
    fn identity(&self) -> &'static str {
        "gated"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn questions_max(&self) -> usize {
        self.questions_max
    }

    fn encode(&self, _: Purpose, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut state = self.state();
        state.given.extend(texts.iter().map(|text| (*text).to_owned()));
        state.inside += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| !state.is_open).unwrap();
        state.inside -= 1;
        Ok(texts.iter().map(|_| vec![1.0]).collect())
    }
}

fn questions(encoder: &Arc<Gated>, wait: Duration) -> Questions {
    Questions { wait, ..Questions::new(Arc::clone(encoder) as _) }
}

const LONG: Duration = Duration::from_mins(5);

#[test]
fn questions_are_encoded_side_by_side_if_the_encoder_can() {
    let encoder = Gated::new(8);
    let questions = questions(&encoder, LONG);
    thread::scope(|scope| {
        for number in 0..20 {
            let questions = &questions;
            scope.spawn(move || questions.ask(&format!("question {number}"), None).unwrap());
        }
        encoder.wait_for(8);
        encoder.open();
    });
    assert_eq!(encoder.state().given.len(), 20);
    let state = questions.shared.state();
    assert_eq!((state.calls.len(), state.queue.len()), (0, 0));
}

#[test]
fn equal_questions_are_encoded_once() {
    let encoder = Gated::new(8);
    let questions = questions(&encoder, LONG);
    thread::scope(|scope| {
        let asked: Vec<_> =
            (0..4).map(|_| scope.spawn(|| questions.ask("tea", None).unwrap())).collect();
        encoder.wait_for(1);
        encoder.open();
        for asked in asked {
            asked.join().unwrap();
        }
    });
    assert_eq!(encoder.state().given, ["tea"]);
}

#[test]
fn what_one_caller_has_asked_is_not_remembered_for_another() {
    let encoder = Gated::new(8);
    encoder.open();
    let questions = questions(&encoder, LONG);
    let [ada, bob] = ["ada", "bob"].map(|name| Actor::User(PrincipalName::from_host(name)));
    for asked_by in [Some(&ada), Some(&ada), Some(&bob), None, None] {
        questions.ask("tea", asked_by).unwrap();
    }
    assert_eq!(encoder.state().given, ["tea"; 3]);
}

#[test]
fn searches_that_wait_are_served_in_the_order_in_which_they_came() {
    let encoder = Gated::new(1);
    let questions = questions(&encoder, LONG);
    let expected: Vec<_> = (0..6).map(|number| format!("question {number}")).collect();
    thread::scope(|scope| {
        for (waiting, text) in expected.iter().enumerate() {
            let questions = &questions;
            scope.spawn(move || questions.ask(text, None).unwrap());
            encoder.wait_for(1);
            while questions.shared.state().queue.len() < waiting {
                thread::yield_now();
            }
        }
        encoder.open();
    });
    assert_eq!(encoder.state().given, expected);
}

#[test]
fn an_encoder_that_hangs_is_left_alone() {
    for questions_max in [1, 8] {
        let encoder = Gated::new(questions_max);
        let questions = questions(&encoder, Duration::from_millis(1));
        for number in 0..20 {
            assert!(
                questions.ask(&format!("question {number}"), None).unwrap_err().contains("1 ms")
            );
        }
        // A single call may just be a long question, so a second one tries.
        let calls = questions_max.min(HANGING_MIN);
        encoder.wait_for(calls);
        assert_eq!(encoder.state().given.len(), calls);
        assert!(questions.shared.state().queue.is_empty());
        encoder.open();
        while !questions.shared.state().calls.is_empty() {
            thread::yield_now();
        }
        let patient = Questions { wait: LONG, ..questions };
        patient.ask("another question", None).unwrap();
    }
}

#[test]
fn only_the_beginning_of_a_question_is_encoded() {
    assert_eq!(beginning("what is tea"), "what is tea");
    let long = "word ".repeat(10_000);
    assert_eq!(beginning(&long), "word ".repeat(TOKENS_MAX));
    let encoded = "x".repeat(10_000);
    assert_eq!(beginning(&encoded).len(), TOKENS_MAX * 16);
    assert_eq!(beginning(&"漢".repeat(10_000)).chars().count(), TOKENS_MAX * 16 / 3);
}
