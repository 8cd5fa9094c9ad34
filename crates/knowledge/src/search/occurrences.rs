//! Looking up the occurrences of phrases.

use std::collections::BTreeSet;

use quipu_notes::{Phrase, TermMatch};

use super::scoring::Scoring;
use crate::index::{
    Bits, Counts, Doc, Field, Fields, IndexError, List, Place, Positions, Posting, Postings,
    SegmentView, Space, Weights, each_place, word,
};

/// The frequency of a phrase in a document, weighted by field.
pub(crate) type Weight = f32;

/// The phrases of a search, prepared for lookups in many segments.
#[derive(Debug)]
pub(crate) struct Phrases {
    space: Space,
    scoring: Scoring,
    all: Vec<Prepared>,
}

/// The index of a phrase in a [`Phrases`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PhraseId(usize);

#[derive(Debug)]
struct Prepared {
    phrase: Phrase,
    fields: Fields,
    weights: Weights,
    /// The index terms of its words.
    terms: Vec<Vec<u8>>,
}

impl Phrases {
    pub(crate) fn new(space: Space, scoring: Scoring) -> Self {
        Self { space, scoring, all: Vec::new() }
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }

    pub(crate) fn scoring(&self) -> Scoring {
        self.scoring
    }

    /// Adds a phrase to look up in some fields, unless it is present.
    pub(crate) fn add(&mut self, phrase: Phrase, fields: Fields) -> PhraseId {
        let is_same = |known: &Prepared| known.fields == fields && known.phrase == phrase;
        let known = self.all.iter().position(is_same);
        PhraseId(known.unwrap_or_else(|| {
            let terms = phrase.terms.iter().map(|term| word(self.space, term)).collect();
            let weigh =
                |field| if fields.contains(field) { self.scoring.weight(field) } else { 0.0 };
            self.all.push(Prepared { phrase, fields, weights: Weights::new(weigh), terms });
            self.all.len() - 1
        }))
    }

    /// Adds a phrase to look up in all fields.
    ///
    /// Unlike [`add`](Self::add) it does not look for the phrase among the others, of which there may
    /// be hundreds; the caller has each word once.
    pub(crate) fn add_to_text(&mut self, phrase: Phrase) -> PhraseId {
        let terms = phrase.terms.iter().map(|term| word(self.space, term)).collect();
        let weights = Weights::new(|field| self.scoring.weight(field));
        self.all.push(Prepared { phrase, fields: Fields::ALL, weights, terms });
        PhraseId(self.all.len() - 1)
    }

    pub(crate) fn get(&self, id: PhraseId) -> Option<&Phrase> {
        self.all.get(id.0).map(|prepared| &prepared.phrase)
    }

    /// Returns the live documents with a phrase, in ascending order, and its weighted frequency in
    /// each.
    pub(crate) fn look_up(
        &self,
        id: PhraseId,
        segment: &SegmentView<'_>,
        live: &Bits,
    ) -> Result<Vec<(Doc, Weight)>, IndexError> {
        let Some(prepared) = self.all.get(id.0) else { return Ok(Vec::new()) };
        self.look_up_weighted(prepared, &prepared.weights, (segment, live))
    }

    /// Returns how often a phrase occurs in each field that is searched, where it does, for each of some
    /// documents, which must be sorted.
    pub(crate) fn frequencies(
        &self,
        id: PhraseId,
        segment: &SegmentView<'_>,
        docs: &[Doc],
    ) -> Result<Vec<Vec<(Field, Weight)>>, IndexError> {
        let mut counts = vec![Counts::default(); docs.len()];
        let Some(Prepared { phrase, terms, fields, .. }) = self.all.get(id.0) else {
            return Ok(Vec::new());
        };
        match (terms.as_slice(), phrase.last) {
            ([term], TermMatch::Exact) => {
                segment.with_postings(term, |list| count_in(list, docs, &mut counts))?;
            }
            ([prefix], TermMatch::Prefix) => {
                segment.each_with_prefix(prefix, |_, list| count_in(list, docs, &mut counts))?;
            }
            _ => self.each_place(id, (segment, docs), |number, place| {
                if let Some(counts) = counts.get_mut(number) {
                    counts.add(place.field(), 1);
                }
            })?,
        }
        let searched = Field::ALL.into_iter().filter(|field| fields.contains(*field));
        let found = |counts: &Counts| -> Vec<_> {
            let found = searched.clone().filter(|field| counts.of(*field) > 0);
            found.map(|field| (field, frequency(counts.of(field)))).collect()
        };
        Ok(counts.iter().map(found).collect())
    }

    /// Calls `visit` with each place of a phrase in some documents, and with the number of the document
    /// among these, which must be sorted. Of a phrase of several words it is the place of the first.
    pub(crate) fn each_place(
        &self,
        id: PhraseId,
        (segment, docs): (&SegmentView<'_>, &[Doc]),
        mut visit: impl FnMut(usize, Place),
    ) -> Result<(), IndexError> {
        let Some(Prepared { phrase, terms, fields, .. }) = self.all.get(id.0) else {
            return Ok(());
        };
        let Some(words) = lists(segment, terms, phrase.last)? else { return Ok(()) };
        let mut visit_searched = |number: usize, place: Place| {
            if fields.contains(place.field()) {
                visit(number, place);
            }
        };
        if let [word] = words.as_slice() {
            for List { postings, positions } in word {
                each_place((postings, positions), docs, &mut visit_searched)?;
            }
            return Ok(());
        }
        let mut walks: Vec<_> = words.iter().map(|lists| Walk::new(lists)).collect();
        for (number, &doc) in docs.iter().enumerate() {
            let mut is_everywhere = true;
            for walk in &mut walks {
                is_everywhere &= walk.advance_to(doc)? == Some(doc);
            }
            if is_everywhere {
                walks.iter_mut().try_for_each(Walk::read_places)?;
                each_match(&mut walks, |place| visit_searched(number, place));
            }
        }
        Ok(())
    }

    fn look_up_weighted(
        &self,
        Prepared { phrase, terms, .. }: &Prepared,
        weights: &Weights,
        (segment, live): (&SegmentView<'_>, &Bits),
    ) -> Result<Vec<(Doc, Weight)>, IndexError> {
        match (terms.as_slice(), phrase.last) {
            ([term], TermMatch::Exact) => exact(segment, term, weights, live),
            ([prefix], TermMatch::Prefix) => {
                let sums = vec![0.0; segment.count(self.space)];
                with_prefix(segment, prefix, weights, (live, sums))
            }
            (terms, last) => {
                let words = lists(segment, terms, last)?;
                words.map_or(Ok(Vec::new()), |words| adjacent(&words, weights, live))
            }
        }
    }
}

/// Adds how often a term occurs in each field of some documents, which must be sorted.
fn count_in(list: &[u8], docs: &[Doc], counts: &mut [Counts]) -> Result<(), IndexError> {
    let mut wanted = docs.iter().zip(counts).peekable();
    for posting in Postings::new(list) {
        let Posting { doc, counts: found } = posting?;
        while wanted.next_if(|(wanted, _)| **wanted < doc).is_some() {}
        if wanted.peek().is_none() {
            break;
        }
        if let Some((_, counts)) = wanted.next_if(|(wanted, _)| **wanted == doc) {
            for field in Field::ALL {
                counts.add(field, found.of(field));
            }
        }
    }
    Ok(())
}

fn frequency(count: u32) -> Weight {
    Weight::from(u16::try_from(count).unwrap_or(u16::MAX))
}

fn exact(
    segment: &SegmentView<'_>,
    term: &[u8],
    weights: &Weights,
    live: &Bits,
) -> Result<Vec<(Doc, Weight)>, IndexError> {
    let mut found = Vec::new();
    let mut add = |doc, weight| {
        if weight > 0.0 && live.contains(doc) {
            found.push((doc, weight));
        }
    };
    segment.with_postings(term, |postings| Ok(weights.each(postings, &mut add)?))?;
    Ok(found)
}

fn with_prefix(
    segment: &SegmentView<'_>,
    prefix: &[u8],
    weights: &Weights,
    (live, mut sums): (&Bits, Vec<Weight>),
) -> Result<Vec<(Doc, Weight)>, IndexError> {
    // A document number beyond the segment is not live either.
    let mut add = |doc: Doc, weight: Weight| {
        if let Some(sum) = usize::try_from(doc).ok().and_then(|doc| sums.get_mut(doc)) {
            *sum += weight;
        }
    };
    segment.each_with_prefix(prefix, |_, postings| Ok(weights.each(postings, &mut add)?))?;
    let found = (0..).zip(sums).filter(|(doc, sum)| *sum > 0.0 && live.contains(*doc));
    Ok(found.collect())
}

/// Returns the posting lists of each word of a phrase; `None` if a word has none.
fn lists(
    segment: &SegmentView<'_>,
    terms: &[Vec<u8>],
    last: TermMatch,
) -> Result<Option<Vec<Vec<List>>>, IndexError> {
    let mut words = Vec::new();
    for (place, term) in terms.iter().enumerate() {
        let is_prefix = last == TermMatch::Prefix && place + 1 == terms.len();
        let lists = if is_prefix {
            lists_with_prefix(segment, term)?
        } else {
            segment.list(term)?.into_iter().collect()
        };
        if lists.is_empty() {
            return Ok(None);
        }
        words.push(lists);
    }
    Ok(Some(words))
}

fn lists_with_prefix(segment: &SegmentView<'_>, prefix: &[u8]) -> Result<Vec<List>, IndexError> {
    let mut terms = Vec::new();
    segment.each_with_prefix(prefix, |term, _| {
        terms.push(term.to_vec());
        Ok(())
    })?;
    let mut lists = Vec::new();
    for term in terms {
        lists.extend(segment.list(&term)?);
    }
    Ok(lists)
}

/// Returns the documents in which words are adjacent. Each word is one or more posting lists.
///
/// All lists are intersected at once, and positions are decoded only for documents that have every
/// word.
fn adjacent(
    words: &[Vec<List>],
    weights: &Weights,
    live: &Bits,
) -> Result<Vec<(Doc, Weight)>, IndexError> {
    let mut walks: Vec<_> = words.iter().map(|lists| Walk::new(lists)).collect();
    let mut found = Vec::new();
    let mut doc = 0;
    'documents: loop {
        let mut is_everywhere = true;
        for walk in &mut walks {
            match walk.advance_to(doc)? {
                None => break 'documents,
                Some(at) if at > doc => {
                    doc = at;
                    is_everywhere = false;
                }
                Some(_) => {}
            }
        }
        if !is_everywhere {
            continue;
        }
        if live.contains(doc) {
            for walk in &mut walks {
                walk.read_places()?;
            }
            let sum = phrase_weight(&mut walks, weights);
            if sum > 0.0 {
                found.push((doc, sum));
            }
        }
        // No document has the highest number; only a damaged list contains it.
        let Some(next) = doc.checked_add(1) else { break };
        doc = next;
    }
    Ok(found)
}

/// Returns the weighted frequency of the phrase in the current document.
fn phrase_weight(walks: &mut [Walk<'_>], weights: &Weights) -> Weight {
    let mut sum = 0.0;
    each_match(walks, |place| sum += weights.of(place.field()));
    sum
}

/// Calls `visit` with each place of the phrase in the current document.
fn each_match(walks: &mut [Walk<'_>], mut visit: impl FnMut(Place)) {
    let Some((first, rest)) = walks.split_first_mut() else { return };
    for &place in &first.places {
        let follows = |(walk, distance): (&mut Walk<'_>, u32)| walk.has_place(place.plus(distance));
        if rest.iter_mut().zip(1..).all(follows) {
            visit(place);
        }
    }
}

/// Iterates over the documents of a word.
struct Walk<'l> {
    lists: Vec<ListWalk<'l>>,
    /// The positions of the word in the current document, sorted.
    places: Vec<Place>,
    /// The first position that may still match.
    next_place: usize,
}

struct ListWalk<'l> {
    postings: Postings<'l>,
    positions: Positions<'l>,
    current: Option<Posting>,
    /// Whether the positions of the current document were decoded.
    is_read: bool,
}

impl<'l> Walk<'l> {
    fn new(lists: &'l [List]) -> Self {
        let walk = |list: &'l List| ListWalk {
            postings: Postings::new(&list.postings),
            positions: Positions::new(&list.positions),
            current: None,
            is_read: false,
        };
        Self { lists: lists.iter().map(walk).collect(), places: Vec::new(), next_place: 0 }
    }

    /// Returns whether the word occurs at a position. Positions must be queried in ascending order.
    fn has_place(&mut self, wanted: Place) -> bool {
        while let Some(place) = self.places.get(self.next_place) {
            if *place >= wanted {
                return *place == wanted;
            }
            self.next_place += 1;
        }
        false
    }

    /// Advances to the first document at or after `doc`, and returns it.
    fn advance_to(&mut self, doc: Doc) -> Result<Option<Doc>, IndexError> {
        let mut first = None;
        for list in &mut self.lists {
            list.advance_to(doc)?;
            let at = list.current.map(|posting| posting.doc);
            first = first.into_iter().chain(at).min();
        }
        Ok(first)
    }

    fn read_places(&mut self) -> Result<(), IndexError> {
        self.places.clear();
        self.next_place = 0;
        let doc = self.lists.iter().filter_map(|list| list.current).map(|it| it.doc).min();
        for list in &mut self.lists {
            let Some(posting) = list.current.filter(|posting| Some(posting.doc) == doc) else {
                continue;
            };
            list.positions.read_into(&posting, &mut self.places)?;
            list.is_read = true;
        }
        if self.lists.len() > 1 {
            // A document may have several terms with the prefix.
            let places: BTreeSet<_> = self.places.drain(..).collect();
            self.places.extend(places);
        }
        Ok(())
    }
}

impl ListWalk<'_> {
    fn advance_to(&mut self, doc: Doc) -> Result<(), IndexError> {
        loop {
            match &self.current {
                Some(posting) if posting.doc >= doc => return Ok(()),
                Some(posting) if !self.is_read => {
                    self.positions.take(posting)?;
                }
                Some(_) | None => {}
            }
            self.is_read = false;
            self.current = self.postings.next().transpose()?;
            if self.current.is_none() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
