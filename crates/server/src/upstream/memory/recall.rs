//! What was left out of an answer that ended in calls of the app's own tools.
//!
//! The API wants all results of a turn together, so when the app sends the results of its tools, those
//! of the memory tool have to be among them, and the calls have to be in the turn that they answer. The
//! app knows neither. Both are kept here under the id of the first of the app's calls, which the upstream
//! has made up and nobody can guess, and only for the same key and store.
//!
//! Nothing is lost if an entry is: the conversation is valid without it, and the model looks again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::backend::Sequence;
use serde_json::Value;

use super::opened::Scope;

/// How much is kept altogether.
const SIZE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How much is kept of one answer.
const ENTRY_SIZE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How many answers are kept.
const ENTRIES_MAX: usize = 8192;

/// How long an entry is kept: a person may have to approve the call of a tool.
const KEPT_FOR: Duration = Duration::from_hours(2);

/// What was left out of an answer.
#[derive(Debug, PartialEq)]
pub(super) struct Hidden {
    /// The messages that the answer was put together of; the last one is of the assistant.
    pub(super) messages: Vec<Value>,
    /// The results of the calls in the last message that were answered here.
    pub(super) results: Vec<Value>,
    /// The newest change when the first of them was made.
    pub(super) sequence: Sequence,
}

type Name = (Scope, String);

/// What was left out of recent answers.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Recall(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<Name, Entry>,
    /// The names by age.
    ages: BTreeMap<u64, Name>,
    next: u64,
    size_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    hidden: Arc<Hidden>,
    age: u64,
    size_bytes: usize,
    kept_at: Instant,
}

impl Recall {
    /// Keeps what was left out of an answer whose first call for the app has this id.
    pub(super) fn keep(&self, scope: Scope, id: &str, hidden: Hidden) {
        let texts = hidden.messages.iter().chain(&hidden.results);
        let size_bytes = texts.map(|value| value.to_string().len()).sum::<usize>() + id.len();
        if size_bytes > ENTRY_SIZE_BYTES_MAX {
            return;
        }
        let name = (scope, id.to_owned());
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.remove(&name);
        table.next += 1;
        let age = table.next;
        let entry = Entry { hidden: Arc::new(hidden), age, size_bytes, kept_at: Instant::now() };
        table.size_bytes += size_bytes;
        table.ages.insert(age, name.clone());
        table.entries.insert(name, entry);
        table.shrink(Instant::now());
    }

    /// Returns what was left out of the answer whose first call for the app has this id.
    pub(super) fn get(&self, scope: Scope, id: &str) -> Option<Arc<Hidden>> {
        self.get_at(Instant::now(), scope, id)
    }

    fn get_at(&self, now: Instant, scope: Scope, id: &str) -> Option<Arc<Hidden>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.shrink(now);
        let entry = table.entries.get(&(scope, id.to_owned()))?;
        Some(Arc::clone(&entry.hidden))
    }

    pub(super) fn forget(&self, scope: Scope, id: &str) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.remove(&(scope, id.to_owned()));
    }
}

impl Table {
    /// Removes the oldest entries until the others fit and none is too old.
    fn shrink(&mut self, now: Instant) {
        while let Some((_, name)) = self.ages.first_key_value() {
            let is_old = self
                .entries
                .get(name)
                .is_none_or(|entry| now.saturating_duration_since(entry.kept_at) > KEPT_FOR);
            let fits = self.size_bytes <= SIZE_BYTES_MAX && self.entries.len() <= ENTRIES_MAX;
            if fits && !is_old {
                return;
            }
            let name = name.clone();
            self.remove(&name);
        }
    }

    fn remove(&mut self, name: &Name) {
        if let Some(entry) = self.entries.remove(name) {
            self.ages.remove(&entry.age);
            self.size_bytes -= entry.size_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::model::{Id as _, KeyId, StoreId};
    use serde_json::json;

    use super::*;

    fn scope(key: u128, store: u128) -> Scope {
        Scope { key: KeyId::from_bits(key), store: StoreId::from_bits(store) }
    }

    fn hidden(text: &str) -> Hidden {
        Hidden { messages: vec![json!(text)], results: Vec::new(), sequence: Sequence(1) }
    }

    #[test]
    fn nothing_is_found_by_another_key_or_for_another_store() {
        let recall = Recall::default();
        recall.keep(scope(1, 1), "toolu_1", hidden("x"));
        assert_eq!(recall.get(scope(1, 1), "toolu_1").as_deref(), Some(&hidden("x")));
        for (scope, id) in
            [(scope(2, 1), "toolu_1"), (scope(1, 2), "toolu_1"), (scope(1, 1), "toolu_2")]
        {
            assert_eq!(recall.get(scope, id), None);
        }
        recall.forget(scope(1, 1), "toolu_1");
        assert_eq!(recall.get(scope(1, 1), "toolu_1"), None);
    }

    #[test]
    fn nothing_is_kept_for_more_than_two_hours() {
        let recall = Recall::default();
        recall.keep(scope(1, 1), "toolu_1", hidden("x"));
        let now = Instant::now();
        let hours = |hours| now + Duration::from_hours(hours);
        assert!(recall.get_at(hours(1), scope(1, 1), "toolu_1").is_some());
        assert_eq!(recall.get_at(hours(3), scope(1, 1), "toolu_1"), None);
        assert_eq!(recall.0.lock().unwrap().size_bytes, 0);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        let recall = Recall::default();
        let text = "x".repeat(1024 * 1024);
        for number in 0..70 {
            recall.keep(scope(1, 1), &format!("toolu_{number}"), hidden(&text));
        }
        assert_eq!(recall.get(scope(1, 1), "toolu_0"), None);
        assert!(recall.get(scope(1, 1), "toolu_69").is_some());
        let table = recall.0.lock().unwrap();
        assert!(table.size_bytes <= SIZE_BYTES_MAX);
        assert_eq!(table.ages.len(), table.entries.len());
        let sizes: usize = table.entries.values().map(|entry| entry.size_bytes).sum();
        assert_eq!(sizes, table.size_bytes);
        drop(table);
        recall.keep(scope(1, 1), "huge", hidden(&"x".repeat(ENTRY_SIZE_BYTES_MAX)));
        assert_eq!(recall.get(scope(1, 1), "huge"), None);
        for number in 0..2 * ENTRIES_MAX {
            recall.keep(scope(2, 2), &number.to_string(), hidden("y"));
        }
        assert!(recall.0.lock().unwrap().entries.len() <= ENTRIES_MAX);
    }
}
