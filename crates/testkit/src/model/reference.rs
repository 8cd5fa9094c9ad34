//! The rules in their most obvious form.

use quipu_core::model::{MemoryId, Operation, Timestamp, VersionId};

/// One store as two lists.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// What lives, in no particular order.
    pub memories: Vec<LiveMemory>,
    /// What happened, the oldest first.
    pub versions: Vec<PastVersion>,
    /// Whether the store is archived.
    pub is_archived: bool,
}

/// A memory that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveMemory {
    /// Its id, as the engine chose it.
    pub id: MemoryId,
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastVersion {
    /// Its id, as the engine chose it.
    pub id: VersionId,
    /// Its memory.
    pub memory: MemoryId,
    /// What kind of change it was.
    pub operation: Operation,
    /// Its path, unless redacted.
    pub path: Option<String>,
    /// Its text, unless redacted or a deletion.
    pub text: Option<String>,
    /// Whether it is redacted.
    pub is_redacted: bool,
    /// When it was made.
    pub at: Timestamp,
}

/// A change that the rules predict; a new memory has no id yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicted {
    /// Which memory changes.
    pub memory: Option<MemoryId>,
    /// How.
    pub operation: Operation,
    /// Its path after the change.
    pub path: String,
    /// Its text after the change.
    pub text: Option<String>,
}

/// Why the rules refuse something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// See [`quipu_core::ErrorKind::InvalidInput`].
    InvalidInput,
    /// See [`quipu_core::ErrorKind::NotFound`].
    NotFound,
    /// See [`quipu_core::ErrorKind::PathConflict`].
    PathConflict,
    /// See [`quipu_core::ErrorKind::PreconditionFailed`].
    PreconditionFailed,
    /// See [`quipu_core::ErrorKind::StoreArchived`].
    StoreArchived,
    /// See [`quipu_core::ErrorKind::ContentTooLarge`].
    ContentTooLarge,
    /// See [`quipu_core::ErrorKind::LimitReached`].
    LimitReached,
    /// See [`quipu_core::ErrorKind::HeadNotRedactable`].
    HeadNotRedactable,
}

/// The longest text.
pub(super) const TEXT_BYTES_MAX: usize = 20;
/// The most memories.
pub(super) const MEMORIES_MAX: usize = 4;
/// The most text in the store.
pub(super) const STORE_BYTES_MAX: usize = 40;
/// How long versions are kept, in days.
pub(super) const KEPT_DAYS: u64 = 30;
/// How many versions of a live memory are always kept.
pub(super) const KEPT_MIN: usize = 3;

/// What a step would do.
pub(super) type Prediction = Result<Vec<Predicted>, Refusal>;

fn lies_below(lower: &str, upper: &str) -> bool {
    lower.starts_with(&format!("{upper}/"))
}

fn overlap(one: &str, other: &str) -> bool {
    one == other || lies_below(one, other) || lies_below(other, one)
}

impl Reference {
    fn at(&self, path: &str) -> Option<&LiveMemory> {
        self.memories.iter().find(|memory| memory.path == path)
    }

    fn with_id(&self, id: MemoryId) -> Result<&LiveMemory, Refusal> {
        self.memories.iter().find(|memory| memory.id == id).ok_or(Refusal::NotFound)
    }

    fn at_or_below(&self, path: &str) -> Result<Vec<&LiveMemory>, Refusal> {
        let mut found: Vec<_> = self
            .memories
            .iter()
            .filter(|memory| memory.path == path || lies_below(&memory.path, path))
            .collect();
        found.sort_by(|left, right| left.path.cmp(&right.path));
        if found.is_empty() { Err(Refusal::NotFound) } else { Ok(found) }
    }

    fn require_open(&self) -> Result<(), Refusal> {
        if self.is_archived { Err(Refusal::StoreArchived) } else { Ok(()) }
    }

    fn require_room(&self, old: Option<&str>, new: &str) -> Result<(), Refusal> {
        if new.len() > TEXT_BYTES_MAX {
            return Err(Refusal::ContentTooLarge);
        }
        if old.is_none() && self.memories.len() >= MEMORIES_MAX {
            return Err(Refusal::LimitReached);
        }
        let old_bytes = old.map_or(0, str::len);
        let total: usize = self.memories.iter().map(|memory| memory.text.len()).sum();
        if new.len() > old_bytes && total - old_bytes + new.len() > STORE_BYTES_MAX {
            return Err(Refusal::LimitReached);
        }
        Ok(())
    }

    fn change(
        &self,
        memory: &LiveMemory,
        path: &str,
        text: &str,
        expected: Option<&str>,
    ) -> Prediction {
        if memory.path == path && memory.text == text {
            return Ok(Vec::new());
        }
        if expected.is_some_and(|expected| expected != memory.text) {
            return Err(Refusal::PreconditionFailed);
        }
        let in_the_way = |other: &&LiveMemory| other.id != memory.id && overlap(&other.path, path);
        if memory.path != path && self.memories.iter().any(|other| in_the_way(&other)) {
            return Err(Refusal::PathConflict);
        }
        if memory.text != text {
            self.require_room(Some(&memory.text), text)?;
        }
        Ok(vec![Predicted {
            memory: Some(memory.id),
            operation: Operation::Modified,
            path: path.to_owned(),
            text: Some(text.to_owned()),
        }])
    }

    fn deletion(memory: &LiveMemory) -> Predicted {
        Predicted {
            memory: Some(memory.id),
            operation: Operation::Deleted,
            path: memory.path.clone(),
            text: None,
        }
    }

    /// Predicts a creation; `id` brings a deleted memory back.
    pub fn create(&self, path: &str, text: &str, id: Option<MemoryId>) -> Prediction {
        self.require_open()?;
        if self.memories.iter().any(|memory| overlap(&memory.path, path)) {
            return Err(Refusal::PathConflict);
        }
        self.require_room(None, text)?;
        Ok(vec![Predicted {
            memory: id,
            operation: Operation::Created,
            path: path.to_owned(),
            text: Some(text.to_owned()),
        }])
    }

    /// Predicts creating or changing the text at a path.
    pub fn put(&self, path: &str, text: &str) -> Prediction {
        self.require_open()?;
        match self.at(path) {
            Some(memory) => self.change(memory, path, text, None),
            None => self.create(path, text, None),
        }
    }

    /// Predicts changing a memory.
    pub fn update(
        &self,
        id: MemoryId,
        text: Option<&str>,
        path: Option<&str>,
        expected: Option<&str>,
    ) -> Prediction {
        self.require_open()?;
        let memory = self.with_id(id)?;
        let (path, text) = (path.unwrap_or(&memory.path), text.unwrap_or(&memory.text));
        self.change(memory, path, text, expected)
    }

    /// Predicts appending to a memory.
    pub fn append(&self, path: &str, text: &str) -> Prediction {
        self.require_open()?;
        let memory = self.at(path).ok_or(Refusal::NotFound)?;
        self.change(memory, path, &format!("{}{text}", memory.text), None)
    }

    /// Predicts moving a memory or a directory.
    pub fn rename(&self, from: &str, to: &str) -> Prediction {
        self.require_open()?;
        let moving = self.at_or_below(from)?;
        if from == to {
            return Ok(Vec::new());
        }
        if lies_below(to, from) {
            return Err(Refusal::InvalidInput);
        }
        if self.memories.iter().any(|memory| overlap(&memory.path, to)) {
            return Err(Refusal::PathConflict);
        }
        let moved = |memory: &&LiveMemory| Predicted {
            memory: Some(memory.id),
            operation: Operation::Modified,
            path: format!("{to}{}", memory.path.strip_prefix(from).unwrap_or_default()),
            text: Some(memory.text.clone()),
        };
        Ok(moving.iter().map(moved).collect())
    }

    /// Predicts deleting a memory.
    pub fn delete(&self, id: MemoryId, expected: Option<&str>) -> Prediction {
        let memory = self.with_id(id)?;
        if expected.is_some_and(|expected| expected != memory.text) {
            return Err(Refusal::PreconditionFailed);
        }
        Ok(vec![Self::deletion(memory)])
    }

    /// Predicts deleting a memory or a directory.
    pub fn delete_at(&self, path: &str) -> Prediction {
        Ok(self.at_or_below(path)?.into_iter().map(Self::deletion).collect())
    }

    /// Predicts writing an old version again.
    pub fn restore(&self, version: &PastVersion, to: Option<&str>) -> Prediction {
        self.require_open()?;
        let text = version.text.as_deref().ok_or(Refusal::InvalidInput)?;
        match self.with_id(version.memory) {
            Ok(memory) => self.change(memory, to.unwrap_or(&memory.path), text, None),
            Err(_) => {
                let path = to.or(version.path.as_deref()).unwrap_or_default();
                self.create(path, text, Some(version.memory))
            }
        }
    }

    /// Redacts a version, or says why not.
    pub fn redact(&mut self, number: usize) -> Result<(), Refusal> {
        let version = self.versions[number].clone();
        let newest = self.versions.iter().rfind(|other| other.memory == version.memory);
        let is_head = newest.is_some_and(|newest| newest.id == version.id)
            && self.with_id(version.memory).is_ok();
        if is_head && !version.is_redacted {
            return Err(Refusal::HeadNotRedactable);
        }
        self.versions[number] =
            PastVersion { path: None, text: None, is_redacted: true, ..version };
        Ok(())
    }

    /// Gives up versions made before a moment, except the newest of memories that lived then.
    pub fn prune(&mut self, before: Timestamp) {
        let all = self.versions.clone();
        let live: Vec<_> = self.memories.iter().map(|memory| memory.id).collect();
        self.versions.retain(|version| {
            let newer =
                all.iter().filter(|other| other.memory == version.memory && other.id > version.id);
            let was_there = live.contains(&version.memory)
                || all.iter().any(|other| other.memory == version.memory && other.at >= before);
            let is_kept = was_there && newer.count() < KEPT_MIN;
            version.at >= before || is_kept
        });
    }

    /// Makes a predicted change happen, now that its ids are known.
    pub fn apply(&mut self, version: PastVersion) {
        self.memories.retain(|memory| memory.id != version.memory);
        if let (Some(path), Some(text)) = (version.path.clone(), version.text.clone()) {
            self.memories.push(LiveMemory { id: version.memory, path, text });
        }
        self.versions.push(version);
    }
}
