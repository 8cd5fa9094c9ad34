//! Encoding: the vectors of a batch of memories.

use quipu_core::backend::Sequence;
use quipu_core::model::{Memory, StoreId};
use quipu_vectors::EncodeError;
use quipu_vectors::quantized::Quantized;

use crate::card::Card;
use crate::index::{Lines, MemoryVectors, PassageVector};
use crate::vectors::{Meaning, Passage};

/// How many passages are encoded in one call. More would be hardly faster, and an encoder holds what it
/// computes of all of them in memory.
const PASSAGES_MAX: usize = 32;

/// Memories without vectors.
pub(super) struct Unembedded {
    pub(super) store: StoreId,
    pub(super) cards: Vec<Card>,
    /// The memories that still exist, in the order of the cards.
    pub(super) memories: Vec<Memory>,
    pub(super) read_at: Sequence,
}

/// A memory and its passages.
type Parts<'b> = (&'b Memory, Vec<Passage>);

impl Unembedded {
    /// Returns the memories that are as they were indexed with their passages, in groups for one call of
    /// the encoder each.
    pub(super) fn groups(&self, meaning: &Meaning) -> Vec<Group<'_>> {
        let mut groups: Vec<Vec<Parts<'_>>> = Vec::new();
        let mut count = PASSAGES_MAX;
        for memory in &self.memories {
            let card = self.cards.iter().find(|card| card.memory == memory.id);
            // One that has changed is indexed again first.
            let Some(card) = card.filter(|card| card.version == memory.version) else { continue };
            let text = memory.content.as_ref().map_or("", |content| content.as_str());
            let passages = meaning.passages(&card.title, text);
            if count >= PASSAGES_MAX {
                groups.push(Vec::new());
                count = 0;
            }
            count += passages.len();
            if let Some(group) = groups.last_mut() {
                group.push((memory, passages));
            }
        }
        groups.into_iter().map(Group).collect()
    }
}

/// Memories that are encoded in one call.
pub(super) struct Group<'b>(Vec<Parts<'b>>);

impl Group<'_> {
    /// Returns the vectors of the memories. One whose text the encoder rejects has none, and keeps no other
    /// from having some.
    pub(super) fn encoded(&self, meaning: &Meaning) -> Result<Vec<MemoryVectors>, EncodeError> {
        match self.together(meaning) {
            Err(error) if error.is_of_text() => self.one_by_one(meaning),
            encoded => encoded,
        }
    }

    fn together(&self, meaning: &Meaning) -> Result<Vec<MemoryVectors>, EncodeError> {
        let passages = self.0.iter().flat_map(|(_, passages)| passages);
        let texts: Vec<_> = passages.map(|passage| passage.text.as_str()).collect();
        let mut vectors = Vec::with_capacity(texts.len());
        for texts in texts.chunks(PASSAGES_MAX) {
            vectors.extend(meaning.embed(texts)?);
        }
        let mut vectors = vectors.into_iter();
        let of_memory = |(memory, passages): &Parts<'_>| {
            let vectors = passages.iter().zip(&mut vectors);
            let vector =
                |(passage, vector): (&Passage, _)| PassageVector { lines: passage.lines, vector };
            made(memory, vectors.map(vector).collect())
        };
        Ok(self.0.iter().map(of_memory).collect())
    }

    /// Encodes each passage alone, and leaves out those that are rejected.
    fn one_by_one(&self, meaning: &Meaning) -> Result<Vec<MemoryVectors>, EncodeError> {
        let mut all = Vec::with_capacity(self.0.len());
        for (memory, passages) in &self.0 {
            let mut accepted = Vec::new();
            for passage in passages {
                match meaning.embed(&[&passage.text]) {
                    Ok(vectors) => {
                        let lines = passage.lines;
                        let vectors = vectors.into_iter();
                        accepted.extend(vectors.map(|vector| PassageVector { lines, vector }));
                    }
                    Err(error) if error.is_of_text() => {}
                    Err(error) => return Err(error),
                }
            }
            all.push(made(memory, accepted));
        }
        Ok(all)
    }
}

/// Returns the vectors of a memory: those of its passages and, if it has several, that of all of it. No
/// passage of a long memory may say by itself what the memory is about.
fn made(memory: &Memory, mut passages: Vec<PassageVector>) -> MemoryVectors {
    if passages.len() > 1 {
        let mean = Quantized::mean(passages.iter().map(|passage| &passage.vector));
        let whole = mean.map(|vector| PassageVector { lines: Lines::WHOLE, vector });
        passages.extend(whole);
    }
    let Memory { id, version, updated_at, .. } = *memory;
    MemoryVectors { memory: id, version, updated_at, passages }
}
