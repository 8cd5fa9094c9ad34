//! The simplest index: every question looks at every entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_core::index::{
    Document, Entry, FactKind, IndexHit, IndexMatches, IndexQuery, LinkQuery, LinkRow, NoteName,
    NoteRow, Phrase, Total, What,
};
use quipu_core::model::{Memory, MemoryId, MemoryPath, StoreId};

use super::State;

/// The entries by memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Index(BTreeMap<MemoryId, Arc<Entry>>);

impl Index {
    pub(super) fn put(&mut self, entry: &Arc<Entry>) {
        self.0.insert(entry.row.memory, Arc::clone(entry));
    }

    pub(super) fn remove(&mut self, is_gone: impl Fn(&NoteRow) -> bool) {
        self.0.retain(|_, entry| !is_gone(&entry.row));
    }

    fn of_store(&self, store: StoreId) -> impl Iterator<Item = &Arc<Entry>> {
        self.0.values().filter(move |entry| entry.row.store == store)
    }

    /// Compares entries with what is made of their versions.
    pub(super) fn differences(&self, state: &State) -> Vec<String> {
        let is_right = |entry: &Entry| {
            let row = &entry.row;
            let version = state.versions.get(&row.version);
            version
                .and_then(|version| version.path.clone().zip(version.content.clone()))
                .is_some_and(|(path, content)| {
                    *entry
                        == Entry::read(&Memory {
                            id: row.memory,
                            store: row.store,
                            path,
                            hash: content.hash(),
                            size_bytes: content.size_bytes(),
                            content: Some(content),
                            version: row.version,
                            created_at: row.created_at,
                            updated_at: row.updated_at,
                        })
                })
        };
        let wrong = self.0.values().filter(|entry| !is_right(entry));
        wrong.map(|entry| format!("the index of `{}` is wrong", entry.row.path)).collect()
    }

    pub(super) fn search(&self, query: &IndexQuery) -> IndexMatches {
        let phrases = query.terms.phrases();
        let mut hits = Vec::new();
        for entry in query.stores.iter().flat_map(|store| self.of_store(*store)) {
            if !is_selected(entry, query) {
                continue;
            }
            for (position, document) in documents(entry, query.what) {
                if query.terms.accepts(document) {
                    hits.push((
                        entry.row.updated_at,
                        IndexHit {
                            store: entry.row.store,
                            memory: entry.row.memory,
                            position,
                            score: score(document, &phrases),
                        },
                    ));
                }
            }
        }
        hits.sort_by(|(left_at, left), (right_at, right)| {
            let order = right.score.total_cmp(&left.score).then(right_at.cmp(left_at));
            order.then(left.memory.cmp(&right.memory)).then(left.position.cmp(&right.position))
        });
        let total = Total { count: hits.len(), is_lower_bound: false };
        let hits = hits.into_iter().map(|(_, hit)| hit).take(query.limit).collect();
        IndexMatches { hits, total }
    }

    pub(super) fn note(&self, store: StoreId, memory: MemoryId) -> Option<NoteRow> {
        let entry = self.0.get(&memory).filter(|entry| entry.row.store == store);
        entry.map(|entry| entry.row.clone())
    }

    pub(super) fn notes(
        &self,
        store: StoreId,
        after: Option<&MemoryPath>,
        limit: usize,
    ) -> Vec<NoteRow> {
        let later = self.of_store(store).filter(|entry| Some(&entry.row.path) > after);
        let mut rows: Vec<_> = later.map(|entry| entry.row.clone()).collect();
        rows.sort_by(|left, right| left.path.cmp(&right.path));
        rows.truncate(limit);
        rows
    }

    pub(super) fn notes_named(&self, store: StoreId, name: &NoteName) -> Vec<NoteRow> {
        let is_named = |entry: &Entry| match name {
            NoteName::Permalink(permalink) => entry.row.permalink == *permalink,
            NoteName::Title(title) => entry.row.title == *title,
            NoteName::Alias(key) => entry.names.contains(key),
        };
        let named = self.of_store(store).filter(|entry| is_named(entry));
        named.map(|entry| entry.row.clone()).collect()
    }

    pub(super) fn links(&self, store: StoreId, query: &LinkQuery, limit: usize) -> Vec<LinkRow> {
        let links = self.of_store(store).flat_map(|entry| &entry.links);
        let selected = links.filter(|link| match query {
            LinkQuery::From(memory) => link.row.from == *memory,
            LinkQuery::Towards(keys) => link.keys.iter().any(|key| keys.contains(key)),
        });
        selected.map(|link| link.row.clone()).take(limit).collect()
    }
}

fn is_selected(entry: &Entry, query: &IndexQuery) -> bool {
    query.changed_after.is_none_or(|after| entry.row.updated_at > after)
        && query.paths.iter().all(|filter| filter.accepts(&entry.row.path))
        && query.fields.iter().all(|filter| {
            let of_key = entry.fields.iter().filter(|(key, _)| *key == filter.key);
            filter.accepts(of_key.map(|(_, value)| value.as_str()))
        })
}

fn documents(entry: &Entry, what: What) -> Vec<(usize, &Document)> {
    let facts = |kind| {
        let facts = entry.facts.iter().filter(move |fact| fact.kind == kind);
        facts.map(|fact| (fact.position, &fact.document)).collect()
    };
    match what {
        What::Memories => vec![(0, &entry.document)],
        What::Observations => facts(FactKind::Observation),
        What::Relations => facts(FactKind::Relation),
    }
}

/// Adds up the weights of the columns in which the phrases stand.
fn score(document: &Document, phrases: &[&Phrase]) -> f64 {
    let found = phrases.iter().flat_map(|phrase| phrase.occurrences(document));
    found.map(|(column, _)| column.weight()).sum()
}
