//! The layers of the index against naive structures, without an engine.

mod batch;
mod bits;
mod block;
mod cache;
mod codec;
mod columns;
mod error;
mod file;
mod merge;
mod notes;
mod postings;
mod replacing;
mod scrub;
mod segment;
mod segment_rows;
mod stores;
mod term_keys;
mod tiers;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use quipu_core::backend::Sequence;
use quipu_core::model::{Id as _, MemoryId, StoreId, Timestamp};

use super::batch::{Applied, BatchBuilder};
use super::columns::MemoryRow;
use super::file::IndexFile;
use super::postings::{Doc, Field, Positions, Postings};
use super::rows::{self, SegmentRow};
use super::scrub::scrub;
use super::segment::{Document, Documents, Totals};
use super::store_rows::{self, Cursor, StoreRow, add_store};
use super::term::{self, Mark, Space};
use super::view::{SegmentView, StoreView};

fn memory(number: u32) -> MemoryId {
    MemoryId::from_bits(u128::from(number))
}

fn store_id(number: u32) -> StoreId {
    StoreId::from_bits(u128::from(number))
}

/// A note as the index sees it: words of its text, and of each observation and relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Text {
    words: Vec<String>,
    tags: BTreeSet<String>,
    observations: Vec<Vec<String>>,
    relations: Vec<Vec<String>>,
}

impl Text {
    fn of(words: &str) -> Self {
        Self { words: words.split(' ').map(str::to_owned).collect(), ..Self::default() }
    }
}

fn document(space: Space, words: &[String], tags: &BTreeSet<String>) -> Document {
    let places = words.iter().zip(0..);
    Document {
        length: u32::try_from(words.len()).unwrap(),
        words: places.map(|(word, at)| (term::word(space, word), Field::Body, at)).collect(),
        marks: tags.iter().map(|tag| Mark::Tag(tag).term(space)).collect(),
    }
}

fn path(number: u32) -> String {
    format!("/path{number}x.md")
}

fn documents(number: u32, text: &Text) -> Documents {
    let none = BTreeSet::new();
    let facts = |space, all: &[Vec<String>]| {
        all.iter().map(|words| document(space, words, &none)).collect::<Vec<_>>()
    };
    Documents {
        row: MemoryRow {
            id: memory(number),
            updated_at: Timestamp::from_micros(i64::from(number)),
            path: path(number),
        },
        memory: document(Space::Memories, &text.words, &text.tags),
        observations: facts(Space::Observations, &text.observations),
        relations: facts(Space::Relations, &text.relations),
    }
}

fn words(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-d]{1,3}", count)
}

fn text() -> impl Strategy<Value = Text> {
    let facts = || prop::collection::vec(words(1..4), 0..3);
    let tags = prop::collection::btree_set("[x-z]{1,2}", 0..3);
    (words(0..10), tags, facts(), facts()).prop_map(|(words, tags, observations, relations)| Text {
        words,
        tags,
        observations,
        relations,
    })
}

/// What a store holds, by the number of the memory.
type Model = BTreeMap<u32, Text>;

fn model_totals(model: &Model) -> Totals {
    let mut totals = Totals::default();
    for (number, text) in model {
        totals.add(&documents(*number, text).totals());
    }
    totals
}

/// An index of one store, and what it must hold.
struct Fixture {
    directory: tempfile::TempDir,
    file: IndexFile,
    store: StoreId,
    model: Model,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = IndexFile::new(directory.path());
        let fixture = Self { directory, file, store: store_id(1), model: Model::new() };
        fixture.add(fixture.store);
        fixture
    }

    fn add(&self, store: StoreId) -> i64 {
        self.file.write(|connection| add_store(connection, store, Sequence(1))).unwrap().num
    }

    fn row(&self) -> StoreRow {
        let row = self.file.read(|snapshot| store_rows::store(snapshot.connection, self.store));
        row.unwrap().unwrap()
    }

    /// Writes some memories and removes others, as one batch.
    fn apply(&mut self, put: &[(u32, Text)], removed: &[u32]) {
        let put: Model = put.iter().cloned().collect();
        let mut batch = BatchBuilder::default();
        for (number, text) in &put {
            batch.add(documents(*number, text), number.to_be_bytes().to_vec());
        }
        let removed: Vec<_> = removed.iter().filter(|it| !put.contains_key(it)).collect();
        for number in &removed {
            batch.remove(memory(**number));
        }
        let (batch, from) = (batch.finish(), self.row().cursor);
        let to = Cursor { sequence: Sequence(from.sequence.0 + 1), ..from };
        let applied = self
            .file
            .write(|connection| batch.apply(connection, self.store, (from, to), Sequence(1 << 40)));
        assert_eq!(applied.unwrap(), Applied::Done);
        for number in removed {
            self.model.remove(number);
        }
        self.model.extend(put);
    }

    fn put(&mut self, number: u32, words: &str) {
        self.apply(&[(number, Text::of(words))], &[]);
    }

    fn segments(&self) -> Vec<SegmentRow> {
        let num = self.row().num;
        self.file.read(|snapshot| rows::segments(snapshot.connection, num)).unwrap()
    }

    fn scrub(&self, numbers: &[u32], purged: u64) {
        let memories: Vec<_> = numbers.iter().copied().map(memory).collect();
        let scrubbed = self.file.write(|connection| {
            let row = store_rows::store(connection, self.store)?.unwrap();
            scrub(connection, &row, &memories, Sequence(purged))
        });
        scrubbed.unwrap();
    }

    /// Reads the store.
    fn view<T>(&self, work: impl FnOnce(&StoreView<'_>) -> T) -> T {
        let read = self.file.read(|snapshot| {
            let row = store_rows::store(snapshot.connection, self.store)?;
            Ok(work(&StoreView::new(snapshot, self.store, row.as_ref(), None)?))
        });
        read.unwrap()
    }

    fn with(&self, word: &str) -> Vec<u32> {
        self.view(|view| numbers(view, &term::word(Space::Memories, word)))
    }

    /// Fails unless the index holds exactly what it must.
    fn assert_holds_its_model(&self) {
        self.view(|view| assert_holds(view, &self.model));
    }

    /// Returns whether any file of the index contains a text.
    fn has_on_disk(&self, text: &str) -> bool {
        let files = std::fs::read_dir(self.directory.path()).unwrap();
        let has = |bytes: Vec<u8>| bytes.windows(text.len()).any(|it| it == text.as_bytes());
        files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).any(has)
    }
}

/// Returns the memories with a term, by number.
fn numbers(view: &StoreView<'_>, term: &[u8]) -> Vec<u32> {
    let found = view.memories_with(term).unwrap();
    let mut found: Vec<_> = found.into_iter().map(|id| u32::try_from(id.bits()).unwrap()).collect();
    found.sort_unstable();
    found
}

/// Fails unless a view shows exactly the memories of a model: every word, tag, card, fact and
/// total.
fn assert_holds(view: &StoreView<'_>, model: &Model) {
    assert_eq!(view.totals, model_totals(model));
    let mut by_word: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut by_tag: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (number, text) in model {
        for word in text.words.iter().collect::<BTreeSet<_>>() {
            by_word.entry(word).or_default().push(*number);
        }
        for tag in &text.tags {
            by_tag.entry(tag).or_default().push(*number);
        }
        assert_eq!(numbers(view, &term::memory(memory(*number))), [*number]);
        let card = view.with_card(memory(*number), |card| Ok(card.to_vec())).unwrap();
        assert_eq!(card, Some(number.to_be_bytes().to_vec()));
    }
    for (word, expected) in &by_word {
        assert_eq!(&numbers(view, &term::word(Space::Memories, word)), expected, "{word}");
    }
    for (tag, expected) in &by_tag {
        assert_eq!(&numbers(view, &Mark::Tag(tag).term(Space::Memories)), expected, "{tag}");
    }
    let mut cards = BTreeSet::new();
    let listed = view.each_card(|memory, _| {
        assert!(cards.insert(u32::try_from(memory.bits()).unwrap()), "a card is listed once");
        Ok(true)
    });
    listed.unwrap();
    assert!(cards.iter().eq(model.keys()));
    assert_eq!(facts(view), model_facts(model));
}

/// A fact: its space, its memory, its position, and its words by position.
type Fact = (Space, u32, u32, Vec<String>);

fn model_facts(model: &Model) -> BTreeSet<Fact> {
    let mut facts = BTreeSet::new();
    for (number, text) in model {
        let all = [(Space::Observations, &text.observations), (Space::Relations, &text.relations)];
        for (space, all) in all {
            for (position, words) in (0..).zip(all) {
                facts.insert((space, *number, position, words.clone()));
            }
        }
    }
    facts
}

/// Reads every live observation and relation back from the lists and their positions.
fn facts(view: &StoreView<'_>) -> BTreeSet<Fact> {
    let mut facts = BTreeSet::new();
    for segment in &view.segments {
        for space in [Space::Observations, Space::Relations] {
            let mut texts = fact_texts(segment, space);
            for doc in segment.live(space).unwrap().iter() {
                let fact = segment.fact(space, doc).unwrap();
                let number = segment.memory(fact.memory).unwrap().bits();
                let words = texts.remove(&doc).unwrap_or_default().into_values().collect();
                facts.insert((space, u32::try_from(number).unwrap(), fact.position, words));
            }
        }
    }
    facts
}

/// Returns the words of each document of a space, by position.
fn fact_texts(segment: &SegmentView<'_>, space: Space) -> BTreeMap<Doc, BTreeMap<u32, String>> {
    let mut texts: BTreeMap<Doc, BTreeMap<u32, String>> = BTreeMap::new();
    let prefix = term::word(space, "");
    let read = segment.each_list(|term, postings, positions| {
        let Some(word) = term.strip_prefix(prefix.as_slice()) else { return Ok(()) };
        let word = String::from_utf8(word.to_vec()).unwrap();
        let mut positions = Positions::new(positions);
        for posting in Postings::new(postings) {
            let posting = posting?;
            let places = positions.read(&posting)?.into_iter();
            let text = texts.entry(posting.doc).or_default();
            text.extend(places.map(|(_, at)| (at, word.clone())));
        }
        Ok(())
    });
    read.unwrap();
    texts
}
