//! The turns behind one answer: asks the upstream, runs the turn's memory calls, and asks again.

use axum::body::Body;
use axum::http::Response;
use quipu_core::backend::Sequence;
use serde_json::{Map, Value, json};

use super::super::pass::{Forwarding, Unsent};
use super::budget::Held;
use super::opened::Opened;
use super::recall::Hidden;
use super::turn::{MEMORY, MemoryCall, Turn, add_usage};
use crate::answer::Failure;

/// How many calls of one turn are carried out; a model makes a few.
const CALLS_PER_TURN_MAX: usize = 64;

/// A request, and what has been said for it so far.
pub(super) struct Conversation {
    pub(super) forwarding: Forwarding,
    /// Room for what is held of it.
    pub(super) held: Held,
    opened: Opened,
    body: Map<String, Value>,
    /// What was said since the request that the app knows nothing of.
    hidden: Vec<Value>,
    /// What all turns have used.
    pub(super) usage: Value,
    turns_count: usize,
    /// How large the request may become.
    size_bytes_max: usize,
}

/// What follows a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The model has the results of its calls and goes on.
    GoOn,
    /// The answer is complete.
    Done(Ending),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// As the model has said.
    Complete,
    /// The model calls its memory again, although it was told to conclude.
    TurnLimitReached,
}

impl Conversation {
    pub(super) fn new(
        (forwarding, held): (Forwarding, Held),
        opened: Opened,
        body: Map<String, Value>,
    ) -> Self {
        let size_bytes_max = forwarding.upstream.settings.body_size_bytes_max;
        Self {
            forwarding,
            held,
            opened,
            body,
            hidden: Vec::new(),
            usage: Value::Null,
            turns_count: 0,
            size_bytes_max,
        }
    }

    /// Asks for the next turn.
    pub(super) async fn ask(&mut self) -> Result<Response<hyper::body::Incoming>, Failure> {
        self.turns_count += 1;
        if self.is_last_turn() {
            // The model concludes: it cannot call anything anymore.
            self.body.insert("tool_choice".to_owned(), json!({"type": "none"}));
        }
        let body = serde_json::to_vec(&self.body).expect("JSON can be written");
        if body.len() > self.size_bytes_max.saturating_mul(2) {
            return Err(Failure::invalid("the conversation with its memory has become too long"));
        }
        self.held.grow_to(body.len())?;
        let headers = self.forwarding.headers.clone();
        let sent: Result<_, Unsent> = self.forwarding.send(&headers, Body::from(body)).await;
        sent.map_err(|unsent| self.forwarding.failure(unsent))
    }

    /// Counts what a turn has used.
    pub(super) fn count(&mut self, usage: &Value) {
        add_usage(&mut self.usage, usage);
    }

    fn is_last_turn(&self) -> bool {
        self.turns_count >= self.forwarding.upstream.settings.turns_max.max(2)
    }

    /// Runs the memory calls of a turn.
    pub(super) async fn after(&mut self, turn: Turn) -> Result<Next, Failure> {
        let calls = turn.memory_calls();
        let of_app = turn.first_call().map(str::to_owned);
        if of_app.is_none() && !calls.is_empty() && self.is_last_turn() {
            return Ok(Next::Done(Ending::TurnLimitReached));
        }
        let results = self.results(calls).await?;
        let is_hidden = !self.hidden.is_empty() || !results.is_empty();
        if let Some(id) = of_app {
            if is_hidden {
                self.hidden.push(json!({"role": "assistant", "content": turn.content}));
                let hidden = Hidden {
                    messages: std::mem::take(&mut self.hidden),
                    results,
                    sequence: self.sequence(),
                };
                self.forwarding.upstream.recall.keep(self.opened.scope, &id, hidden);
            }
            return Ok(Next::Done(Ending::Complete));
        }
        if results.is_empty() {
            return Ok(Next::Done(Ending::Complete));
        }
        let said = [
            json!({"role": "assistant", "content": turn.content}),
            json!({"role": "user", "content": results}),
        ];
        if let Some(Value::Array(messages)) = self.body.get_mut("messages") {
            messages.extend(said.clone());
        }
        self.hidden.extend(said);
        self.release_choice();
        Ok(Next::GoOn)
    }

    /// Returns the newest change before the model saw anything of its memory.
    fn sequence(&self) -> Sequence {
        self.opened.sequence
    }

    /// Lets the model choose, if it was made to call its memory and has done so. It would have to call it
    /// again and again.
    fn release_choice(&mut self) {
        let Some(Value::Object(choice)) = self.body.get_mut("tool_choice") else { return };
        if choice.get("name").and_then(Value::as_str) == Some(MEMORY) {
            choice.remove("name");
            choice.insert("type".to_owned(), json!("auto"));
        }
    }

    async fn results(&self, calls: Vec<MemoryCall>) -> Result<Vec<Value>, Failure> {
        let mut results = Vec::with_capacity(calls.len());
        for (place, call) in calls.into_iter().enumerate() {
            let (content, is_error) = if place < CALLS_PER_TURN_MAX {
                let answer = self.opened.call(call.input).await?;
                (answer.content, answer.is_error)
            } else {
                (format!("Error: at most {CALLS_PER_TURN_MAX} calls in a turn"), true)
            };
            self.forwarding.upstream.tally.count_memory_call(is_error.into());
            let mut result =
                json!({"type": "tool_result", "tool_use_id": call.id, "content": content});
            if is_error && let Some(result) = result.as_object_mut() {
                result.insert("is_error".to_owned(), true.into());
            }
            results.push(result);
        }
        Ok(results)
    }
}
