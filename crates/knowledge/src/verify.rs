//! Verifying that the index matches the texts.
//!
//! Every memory is read and indexed again, and compared with the segments. Both are reduced to one
//! digest per document that does not depend on the order of its parts, so that the posting lists
//! are walked only once.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Bound;

use quipu_core::Error;
use quipu_core::backend::{MemoryQuery, Reader};
use quipu_core::engine::{CheckReport, Remedy};
use quipu_core::model::{Directory, Memory, MemoryId, StoreId, View};
use quipu_notes::tokenizer::Lexicon;

use crate::Knowledge;
use crate::card::Card;
use crate::entry::Entry;
use crate::index::{
    Document, Documents, Field, IndexError, Positions, Posting, Postings, SegmentView, Space,
    StoreView, Totals, each_vectors_after, embeddings, encoder, memory_term, note,
};
use crate::lookup::Lookup;

/// How many memories are read per page.
const PAGE: usize = 256;

/// A document, by its memory and its index in it.
type Place = (MemoryId, Space, u32);

/// The digest of each indexed document.
type Digests = HashMap<Place, u64>;

impl Knowledge {
    /// Verifies every invariant of the data, and that the index matches the texts.
    pub fn check(&self) -> Result<CheckReport, Error> {
        self.check_with(&|_| ())
    }

    /// Like [`check`](Self::check), and calls `progress` with what was checked so far.
    pub fn check_with(&self, progress: &dyn Fn(&CheckReport)) -> Result<CheckReport, Error> {
        let mut report = self.engine.check_with(progress)?;
        for store in self.indexer.all_stores()? {
            for message in self.lookup(&[store], |lookup| differences(lookup, store))? {
                report.add(message, Remedy::Rebuild);
            }
        }
        Ok(report)
    }

    /// Recomputes everything that is derived, including the whole index.
    pub fn rebuild(&self) -> Result<(), Error> {
        self.engine.rebuild()?;
        self.indexer.discard()?;
        self.follow(None).map(drop)
    }
}

/// Returns a sentence for each inconsistency in the index of a store.
fn differences(lookup: &Lookup<'_>, store: StoreId) -> Result<Vec<String>, Error> {
    // The store may have been deleted, or the index may lack what cannot be written now.
    let Some(view) = lookup.view(store).filter(|_| !lookup.is_behind) else {
        return Ok(Vec::new());
    };
    let reached = lookup.reached(store);
    // What is written during the check is in the texts but not in the index.
    let is_changing = lookup.reader.changed_at(store)? > reached;
    let mut indexed = digests(view).map_err(|error| lookup.failed(error))?;
    let mut problems = Vec::new();
    let mut totals = Totals::default();
    let mut lexicon = Lexicon::default();
    let mut start = Bound::Unbounded;
    loop {
        let memories = page(lookup.reader, store, start)?;
        let Some(last) = memories.last() else { break };
        start = Bound::Excluded(last.path.as_str().to_owned());
        for memory in memories {
            let card = lookup.full_note(store, memory.id)?;
            let entry = Entry::read(&memory, &mut lexicon);
            totals.add(&entry.documents.totals());
            let is_wrong_card = card.as_ref() != Some(&entry.card);
            let is_newer = card.is_none_or(|card| card.version != memory.version);
            let is_wrong = !holds(&mut indexed, memory.id, &entry.documents) || is_wrong_card;
            // It may have changed after the index was read.
            let is_later = is_newer && memory.updated_at > reached;
            if is_wrong && !is_later {
                let Memory { id, path, .. } = &memory;
                problems.push(format!(
                    "the index does not hold the memory `{id}` at `{path}` as it is"
                ));
            }
        }
    }
    problems.extend(wrong_vectors(lookup, store)?);
    if is_changing {
        return Ok(problems);
    }
    let further: BTreeSet<_> = indexed.into_keys().map(|(memory, ..)| memory).collect();
    for memory in further {
        problems.push(format!("the index holds more of the memory `{memory}` than there is"));
    }
    if totals != view.totals {
        let (counted, known) = (totals.counts, view.totals.counts);
        problems.push(format!(
            "the index counts {known:?} documents in the store `{store}`, of which it has {counted:?}"
        ));
    }
    Ok(problems)
}

/// Returns a sentence for each memory whose vectors are not of the version in the index.
///
/// That vectors are missing is no problem: they are made later. Which values they should have is known to
/// the encoder alone.
fn wrong_vectors(lookup: &Lookup<'_>, store: StoreId) -> Result<Vec<String>, Error> {
    let stored = lookup.view(store).and_then(StoreView::stored);
    let Some((connection, num)) = stored else { return Ok(Vec::new()) };
    let mut problems = Vec::new();
    let (mut memories, mut rejected, mut passages) = (0, 0, 0);
    let mut read = || -> Result<(), IndexError> {
        let Some(current) = encoder(connection)? else { return Ok(()) };
        each_vectors_after(connection, (num, &current), 0, |mut vectors| {
            let note = note(connection, num, vectors.memory)?;
            let card = note.map(|note| Card::read_row(store, vectors.memory, &note.card));
            let card = card.transpose()?;
            let is_right = card.is_some_and(|card| {
                (card.version, card.updated_at) == (vectors.version, vectors.updated_at)
            });
            if !is_right {
                let memory = vectors.memory;
                problems.push(format!("the index has vectors of another text for `{memory}`"));
            }
            let before = passages;
            while vectors.passages.next()?.is_some() {
                passages += 1;
            }
            *(if passages > before { &mut memories } else { &mut rejected }) += 1;
            Ok(())
        })?;
        let known = embeddings(connection, num)?.filter(|known| known.encoder == current.num);
        let counted = known.map_or((0, 0, 0), |it| (it.memories, it.rejected, it.passages));
        if counted != (memories, rejected, passages) {
            problems.push(format!("the index counts vectors of the store `{store}` wrongly"));
        }
        Ok(())
    };
    read().map_err(|error| lookup.failed(error))?;
    Ok(problems)
}

/// Removes the digests of a memory's documents; returns whether they are as expected.
fn holds(indexed: &mut Digests, memory: MemoryId, documents: &Documents) -> bool {
    let mut is_right = true;
    let mut compare = |place: Place, document: &Document, id: Option<MemoryId>| {
        is_right &= indexed.remove(&place) == Some(digest(document, id));
    };
    compare((memory, Space::Memories, 0), &documents.memory, Some(memory));
    let facts =
        [(Space::Observations, &documents.observations), (Space::Relations, &documents.relations)];
    for (space, facts) in facts {
        for (position, fact) in (0..).zip(facts) {
            compare((memory, space, position), fact, None);
        }
    }
    is_right
}

fn page(reader: &dyn Reader, store: StoreId, start: Bound<String>) -> Result<Vec<Memory>, Error> {
    let directory = Directory::root();
    reader.memories(store, &MemoryQuery { directory, start, limit: PAGE, view: View::Full })
}

fn digests(view: &StoreView<'_>) -> Result<Digests, IndexError> {
    let mut digests = Digests::new();
    for segment in &view.segments {
        for space in Space::ALL {
            add_lengths(segment, space, &mut digests)?;
        }
        let live = [
            segment.live(Space::Memories)?,
            segment.live(Space::Observations)?,
            segment.live(Space::Relations)?,
        ];
        segment.each_list(|term, postings, positions| {
            let space = Space::of_term(term).ok_or(IndexError::Damaged)?;
            let mut positions = Positions::new(positions);
            for posting in Postings::new(postings) {
                let posting = posting?;
                let parts = parts_of(term, &posting, &mut positions)?;
                if space.pick(live.each_ref()).contains(posting.doc) {
                    let sum = digests.entry(place(segment, space, posting.doc)?).or_default();
                    *sum = sum.wrapping_add(parts);
                }
            }
            Ok(())
        })?;
    }
    Ok(digests)
}

/// Returns the digest of a document's entry in a posting list.
fn parts_of(
    term: &[u8],
    posting: &Posting,
    positions: &mut Positions<'_>,
) -> Result<u64, IndexError> {
    if positions.is_empty() && posting.counts.is_mark() {
        return Ok(hashed(&term));
    }
    let mut places = if positions.is_empty() { Vec::new() } else { positions.read(posting)? };
    for field in [Field::TitleForms, Field::Forms] {
        if posting.counts.of(field) > 0 {
            places.push((field, 0));
        }
    }
    let hashes = places.into_iter().map(|(field, position)| hashed(&(term, field, position)));
    Ok(hashes.fold(0, u64::wrapping_add))
}

/// Adds the documents of a segment with their lengths.
fn add_lengths(
    segment: &SegmentView<'_>,
    space: Space,
    digests: &mut Digests,
) -> Result<(), IndexError> {
    let lengths = segment.lengths(space)?;
    for doc in segment.live(space)?.iter() {
        let sum = digests.entry(place(segment, space, doc)?).or_default();
        *sum = sum.wrapping_add(hashed(&lengths.get(doc)?));
    }
    Ok(())
}

fn place(segment: &SegmentView<'_>, space: Space, doc: u32) -> Result<Place, IndexError> {
    let fact = segment.fact(space, doc)?;
    Ok((segment.memory(fact.memory)?, space, fact.position))
}

/// Returns the digest of a document to be indexed.
fn digest(document: &Document, memory: Option<MemoryId>) -> u64 {
    let mut sum = hashed(&document.length);
    for (term, field, position) in &document.words {
        sum = sum.wrapping_add(hashed(&(term.as_slice(), *field, *position)));
    }
    for mark in &document.marks {
        sum = sum.wrapping_add(hashed(&mark.as_slice()));
    }
    if let Some(memory) = memory {
        sum = sum.wrapping_add(hashed(&memory_term(memory).as_slice()));
    }
    sum
}

fn hashed(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
