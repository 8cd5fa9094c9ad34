//! Rules out of the stores that only people can change.
//!
//! Every call waits for them, and a store may hold thousands of notes that are no rules. So the notes that
//! say something about rules are kept in a file, with what tells whether they still are all there is: of
//! each reserved store the newest version and the number of memories. Both are looked up at each call. A
//! memory that has changed has a newer version. One that was deleted has that as well, and once its versions
//! are pruned, there is one memory less and no newer version that would make up for it.

use std::collections::BTreeMap;
use std::ops::Bound;

use quipu_core::backend::{
    Archived, MemoryQuery, Reader, Span, StoreQuery, VersionFilter, VersionQuery,
};
use quipu_core::model::{Directory, Store, StoreId, VersionId, View, Writers};
use quipu_core::{Error, ErrorKind};
use quipu_rules::{Failing, ParsedRule, Rule, RuleSet};
use serde::{Deserialize, Serialize};

use crate::context::Data;
use crate::failure::Failure;
use crate::hook_files::HookFiles;
use crate::settings::Settings;

/// How many memories of reserved stores are looked at for rules, unless set. With more, rules cannot be
/// applied: reading them all must not take longer than a hook may.
const MEMORIES_MAX: u64 = 50_000;

/// How many are read at a time.
const PAGE: usize = 1000;

/// How many stores there may be to look for reserved ones among.
const STORES_MAX: usize = 10_000;

/// The format of the file. Whoever changes what is kept of a note increments it.
const FORMAT: u32 = 1;

/// The rules that apply now.
#[derive(Debug, Default)]
pub(in crate::commands) struct LoadedRules {
    pub(in crate::commands) set: RuleSet,
    /// The versions of the memories, by the names of the rules.
    versions: BTreeMap<String, VersionId>,
    /// The stores that they are from.
    pub(in crate::commands) stores: Vec<Store>,
}

impl LoadedRules {
    pub(in crate::commands) fn version(&self, rule: &str) -> Option<VersionId> {
        self.versions.get(rule).copied()
    }
}

/// The notes of reserved stores that say something about rules.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Kept {
    format: u32,
    stores: Vec<KeptStore>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct KeptStore {
    state: StoreState,
    notes: Vec<KeptNote>,
}

/// What tells whether the memories of a store are the same as before.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct StoreState {
    store: String,
    newest_version: Option<String>,
    memories_count: u64,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct KeptNote {
    path: String,
    version: String,
    text: String,
}

/// How rules are read.
#[derive(Clone, Debug)]
pub(in crate::commands) struct Loader {
    files: HookFiles,
    memories_max: u64,
    failing: Failing,
    reading: Reading,
}

/// Whether the kept notes are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Reading {
    /// They are, if they are all there is.
    Kept,
    /// All notes are read and kept.
    Fresh,
}

impl Loader {
    pub(in crate::commands) fn new(
        settings: &Settings,
        failing: Failing,
        reading: Reading,
    ) -> Self {
        let memories_max = settings.rules.memories_max.unwrap_or(MEMORIES_MAX);
        Self { files: HookFiles::of(&settings.data), memories_max, failing, reading }
    }

    /// Reads the rules of all stores that only people can change.
    ///
    /// A note with a `rule` in another store is none: an agent could have written it, or could rewrite it.
    /// Which stores count does not depend on their names, so that nobody can put one in the place of
    /// another.
    pub(in crate::commands) fn load(&self, data: &Data) -> Result<LoadedRules, Failure> {
        let bytes = if self.reading == Reading::Kept { self.files.rules() } else { None };
        let kept = bytes.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        let kept = kept.filter(|kept| kept.format == FORMAT);
        // On one snapshot: the kept notes are those of the stores that are found here, or all are read here.
        let (stores, fresh) = data.engine.read(|reader| {
            let stores = reserved(reader, data)?;
            let states = states(reader, &stores)?;
            if kept.as_ref().is_some_and(|kept| kept.is_of(&states)) {
                return Ok((stores, None));
            }
            self.require_few(&states)?;
            let read = states.into_iter().zip(&stores);
            let read = read
                .map(|(state, store)| Ok(KeptStore { state, notes: notes(reader, store.id)? }))
                .collect::<Result<_, Error>>()?;
            Ok((stores, Some(Kept { format: FORMAT, stores: read })))
        })?;
        if let Some(fresh) = &fresh {
            self.keep(data, fresh);
        }
        let kept = fresh.or(kept);
        Ok(applied(stores, kept.iter().flat_map(|it| &it.stores), self.failing))
    }

    fn require_few(&self, states: &[StoreState]) -> Result<(), Error> {
        let count: u64 = states.iter().map(|state| state.memories_count).sum();
        if count <= self.memories_max {
            return Ok(());
        }
        let message = format!(
            "the stores that are reserved for people hold {count} memories, and rules are looked for in at \
             most {} (`rules.memories_max`)",
            self.memories_max
        );
        Err(Error::new(ErrorKind::LimitReached, message)
            .with_hint("keep rules in a store of their own, and open the others for everyone"))
    }

    /// Keeps notes for the next call. What cannot be kept is read again.
    fn keep(&self, data: &Data, fresh: &Kept) {
        let Ok(copy) = serde_json::to_vec(fresh) else { return };
        let is_current = || {
            let now = data.engine.read(|reader| {
                let stores = reserved(reader, data)?;
                states(reader, &stores)
            });
            now.is_ok_and(|now| fresh.is_of(&now))
        };
        self.files.keep_rules(&copy, is_current).unwrap_or_default();
    }
}

impl Kept {
    /// Returns whether it holds all that stores in these states say.
    fn is_of(&self, states: &[StoreState]) -> bool {
        self.stores.iter().map(|store| &store.state).eq(states)
    }
}

/// Returns the stores that only people can change, the oldest first.
fn reserved(reader: &dyn Reader, data: &Data) -> Result<Vec<Store>, Error> {
    let mut stores = reader.stores(&StoreQuery {
        workspace: data.workspace,
        archived: Archived::Hide,
        created: Span::default(),
        before: None,
        limit: STORES_MAX + 1,
    })?;
    if stores.len() > STORES_MAX {
        let message = format!("there are more than {STORES_MAX} stores to look for rules in");
        return Err(Error::new(ErrorKind::LimitReached, message));
    }
    stores.retain(|store| store.policy.writers == Writers::People);
    stores.sort_by_key(|store| store.id);
    Ok(stores)
}

fn states(reader: &dyn Reader, stores: &[Store]) -> Result<Vec<StoreState>, Error> {
    let newest = VersionQuery {
        filter: VersionFilter::default(),
        before: None,
        limit: 1,
        view: View::Basic,
    };
    let mut states = Vec::new();
    for store in stores {
        let memories_count = reader.usage(store.id)?.memories_count;
        let newest = reader.versions(store.id, &newest)?;
        states.push(StoreState {
            store: store.id.to_string(),
            newest_version: newest.first().map(|version| version.id.to_string()),
            memories_count,
        });
    }
    Ok(states)
}

/// Returns the notes of a store that say something about rules, in byte order of their paths.
fn notes(reader: &dyn Reader, store: StoreId) -> Result<Vec<KeptNote>, Error> {
    let mut notes = Vec::new();
    let mut start = Bound::Unbounded;
    loop {
        let query = MemoryQuery {
            directory: Directory::root(),
            start: start.clone(),
            limit: PAGE,
            view: View::Full,
        };
        let memories = reader.memories(store, &query)?;
        let Some(last) = memories.last() else { return Ok(notes) };
        start = Bound::Excluded(last.path.to_string());
        for memory in memories {
            let Some(content) = memory.content else { continue };
            if Rule::concerns(content.as_str()) {
                notes.push(KeptNote {
                    path: memory.path.to_string(),
                    version: memory.version.to_string(),
                    text: content.as_str().to_owned(),
                });
            }
        }
    }
}

fn applied<'k>(
    stores: Vec<Store>,
    kept: impl Iterator<Item = &'k KeptStore>,
    failing: Failing,
) -> LoadedRules {
    let mut loaded = LoadedRules::default();
    loaded.set.failing = failing;
    for (store, kept) in stores.iter().zip(kept) {
        let mut parsed: Vec<ParsedRule> = Vec::new();
        for note in &kept.notes {
            let name = format!("{}:{}", store.name, note.path);
            parsed.push(Rule::parse(&name, &note.text));
            if let Ok(version) = note.version.parse() {
                loaded.versions.insert(name, version);
            }
        }
        loaded.set.add_store(parsed);
    }
    loaded.stores = stores;
    loaded
}
