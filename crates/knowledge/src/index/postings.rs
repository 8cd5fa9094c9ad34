//! Posting lists: which documents contain a term, in which fields, how often and where.
//!
//! A list is two byte strings. The first is all that ranking reads: for each document, in ascending
//! order, the delta to the previous one and the term frequency in each field. Most terms occur once
//! in the body of a document and nowhere else, which takes one bit. The second holds the positions,
//! and is read for phrases only.

use super::codec::{Damaged, Input, put_varint};

/// The number of a document in its segment, 0-based.
pub(crate) type Doc = u32;

/// The field of a document in which a term occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Field {
    /// The title; the category of an observation, the type of a relation.
    Title,
    /// The tags.
    Tags,
    /// The headings, which are in the body too.
    Headings,
    /// The body.
    Body,
    /// Variants of the words of the title, without positions.
    TitleForms,
    /// Variants of the words of the body, and the words of the path and the frontmatter.
    Forms,
}

impl Field {
    /// Every field, in the order of the encoding.
    pub(crate) const ALL: [Self; 6] =
        [Self::Title, Self::Tags, Self::Headings, Self::Body, Self::TitleForms, Self::Forms];

    /// The fields with positions, in which phrases can be matched.
    const WITH_POSITIONS: [Self; 4] = [Self::Title, Self::Tags, Self::Headings, Self::Body];

    const fn has_positions(self) -> bool {
        match self {
            Self::Title | Self::Tags | Self::Headings | Self::Body => true,
            Self::TitleForms | Self::Forms => false,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the element for this field.
    fn pick<T>(self, [title, tags, headings, body, title_forms, forms]: [T; 6]) -> T {
        match self {
            Self::Title => title,
            Self::Tags => tags,
            Self::Headings => headings,
            Self::Body => body,
            Self::TitleForms => title_forms,
            Self::Forms => forms,
        }
    }
}

/// A set of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fields(u8);

impl Fields {
    /// Every field.
    pub(crate) const ALL: Self = Self(0b11_1111);
    /// The names of a memory.
    pub(crate) const TITLE: Self = Self(Field::Title.bit() | Field::TitleForms.bit());
    /// The names and the path of a memory.
    pub(crate) const NAMES: Self = Self(Self::TITLE.0 | Field::Forms.bit());

    pub(crate) fn contains(self, field: Field) -> bool {
        self.0 & field.bit() != 0
    }
}

/// The frequency of a term in each field of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts([u32; 6]);

impl Counts {
    const PLAIN: Self = Self([0, 0, 0, 1, 0, 0]);

    pub(crate) fn of(&self, field: Field) -> u32 {
        field.pick(self.0)
    }

    /// Returns whether these are the counts of a term without occurrences.
    pub(crate) fn is_mark(&self) -> bool {
        *self == Self::PLAIN
    }

    /// Adds occurrences in a field.
    pub(crate) fn add(&mut self, field: Field, count: u32) {
        let known = self.of_mut(field);
        *known = known.saturating_add(count);
    }

    fn of_mut(&mut self, field: Field) -> &mut u32 {
        field.pick(self.0.each_mut())
    }
}

/// An entry of a posting list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) doc: Doc,
    pub(crate) counts: Counts,
}

/// An occurrence of a term. Variants are at position 0.
pub(crate) type Occurrence = (Field, u32);

/// A field and a position packed into one number, because phrases compare many of them: the field
/// is in the upper bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

impl Place {
    fn new(field: Field, position: u32) -> Self {
        Self(u64::from(field as u8) << 32 | u64::from(position))
    }

    /// Returns the place at this distance, saturating at the last position.
    pub(crate) fn plus(self, distance: u32) -> Self {
        let position = self.0 & u64::from(u32::MAX);
        Self((self.0 - position) | (position + u64::from(distance)).min(u64::from(u32::MAX)))
    }

    /// Returns the field; only fields with positions have places.
    pub(crate) fn field(self) -> Field {
        match self.0 >> 32 {
            0 => Field::Title,
            1 => Field::Tags,
            2 => Field::Headings,
            _ => Field::Body,
        }
    }

    /// Returns the position in the field.
    pub(crate) fn position(self) -> u32 {
        u32::try_from(self.0 & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    fn occurrence(self) -> Occurrence {
        (self.field(), self.position())
    }
}

/// A posting list under construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PostingList {
    pub(crate) postings: Vec<u8>,
    pub(crate) positions: Vec<u8>,
    next_doc: Doc,
}

impl PostingList {
    /// Adds a document, which must come after all others in the list, with the distinct occurrences
    /// of the term, sorted by field and position.
    pub(crate) fn push(&mut self, doc: Doc, occurrences: &[Occurrence]) {
        let mut counts = Counts::default();
        for (field, _) in occurrences {
            *counts.of_mut(*field) += 1;
        }
        self.push_counts(Posting { doc, counts });
        let mut previous = None;
        for &(field, position) in occurrences {
            if !field.has_positions() {
                continue;
            }
            let base = previous.filter(|(it, _)| *it == field).map_or(0, |(_, at)| at);
            put_varint(&mut self.positions, u64::from(position.saturating_sub(base)));
            previous = Some((field, position));
        }
    }

    /// Adds a document without occurrences, for terms that are either present or not.
    pub(crate) fn push_mark(&mut self, doc: Doc) {
        self.push_counts(Posting { doc, counts: Counts::PLAIN });
    }

    /// Adds a document of another list, with its encoded positions.
    pub(crate) fn push_encoded(&mut self, posting: Posting, positions: &[u8]) {
        self.push_counts(posting);
        self.positions.extend_from_slice(positions);
    }

    fn push_counts(&mut self, Posting { doc, counts }: Posting) {
        let distance = u64::from(doc.saturating_sub(self.next_doc));
        self.next_doc = doc.saturating_add(1);
        let is_plain = counts == Counts::PLAIN;
        put_varint(&mut self.postings, (distance << 1) | u64::from(is_plain));
        if is_plain {
            return;
        }
        let present = Field::ALL.into_iter().filter(|field| counts.of(*field) > 0);
        self.postings.push(present.clone().fold(0, |mask, field| mask | field.bit()));
        for field in present.filter(|field| field.has_positions()) {
            put_varint(&mut self.postings, u64::from(counts.of(field)));
        }
    }
}

/// Iterates over the documents of a posting list.
#[derive(Clone, Debug)]
pub(crate) struct Postings<'a> {
    input: Input<'a>,
    next_doc: u64,
}

impl<'a> Postings<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { input: Input::new(bytes), next_doc: 0 }
    }

    fn read(&mut self) -> Result<Posting, Damaged> {
        let head = self.input.varint()?;
        let doc = self.next_doc.checked_add(head >> 1).ok_or(Damaged)?;
        self.next_doc = doc + 1;
        let doc = Doc::try_from(doc).ok().ok_or(Damaged)?;
        if head & 1 == 1 {
            return Ok(Posting { doc, counts: Counts::PLAIN });
        }
        let mask = self.input.byte()?;
        if mask == 0 || mask & !Fields::ALL.0 != 0 {
            return Err(Damaged);
        }
        let mut counts = Counts::default();
        for field in Field::ALL.into_iter().filter(|field| mask & field.bit() != 0) {
            let has_positions = field.has_positions();
            *counts.of_mut(field) = if has_positions { self.input.varint_u32()? } else { 1 };
        }
        Ok(Posting { doc, counts })
    }
}

impl Iterator for Postings<'_> {
    type Item = Result<Posting, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.input.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.input = Input::new(&[]);
        }
        Some(read)
    }
}

/// The weight of an occurrence in each field; 0 for fields that are not searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights([f32; 6]);

impl Weights {
    pub(crate) fn new(weight: impl Fn(Field) -> f32) -> Self {
        Self(Field::ALL.map(weight))
    }

    /// Returns the weight of an occurrence in a field.
    pub(crate) fn of(&self, field: Field) -> f32 {
        field.pick(self.0)
    }

    /// Calls `visit` with each document of a list and the weighted frequency of the term in it.
    ///
    /// This is where a search spends its time, so it does not go through [`Postings`]: most
    /// documents take one byte, and of the others only the weight is computed.
    pub(crate) fn each(
        &self,
        postings: &[u8],
        mut visit: impl FnMut(Doc, f32),
    ) -> Result<(), Damaged> {
        let plain = self.of(Field::Body);
        let mut input = Input::new(postings);
        let mut next_doc: Doc = 0;
        while !input.is_empty() {
            let head = input.varint()?;
            let distance = Doc::try_from(head >> 1).ok().ok_or(Damaged)?;
            let doc = next_doc.checked_add(distance).ok_or(Damaged)?;
            next_doc = doc.checked_add(1).ok_or(Damaged)?;
            if head & 1 == 1 {
                visit(doc, plain);
                continue;
            }
            let mask = input.byte()?;
            if mask == 0 || mask & !Fields::ALL.0 != 0 {
                return Err(Damaged);
            }
            let mut sum = 0.0;
            for field in Field::ALL {
                if mask & field.bit() == 0 {
                    continue;
                }
                let count = if field.has_positions() { input.varint_u32()? } else { 1 };
                sum += self.of(field) * f32::from(u16::try_from(count).unwrap_or(u16::MAX));
            }
            visit(doc, sum);
        }
        Ok(())
    }
}

/// Calls `visit` with each place of a term in some documents, and with the number of the document
/// among these, which must be sorted.
///
/// Few documents of a list are wanted, so this does not go through [`Postings`]: the positions of the
/// others are counted and skipped together.
pub(crate) fn each_place(
    (postings, positions): (&[u8], &[u8]),
    docs: &[Doc],
    mut visit: impl FnMut(usize, Place),
) -> Result<(), Damaged> {
    let (mut input, mut positions) = (Input::new(postings), Input::new(positions));
    let (mut next_doc, mut skipped) = (0_u64, 0_usize);
    let mut wanted = docs.iter().enumerate().peekable();
    while wanted.peek().is_some() && !input.is_empty() {
        let head = input.varint()?;
        let at = next_doc.checked_add(head >> 1).ok_or(Damaged)?;
        next_doc = at.checked_add(1).ok_or(Damaged)?;
        let counts = if head & 1 == 1 { [0, 0, 0, 1] } else { position_counts(&mut input)? };
        while wanted.next_if(|(_, doc)| u64::from(**doc) < at).is_some() {}
        if let Some((number, _)) = wanted.next_if(|(_, doc)| u64::from(**doc) == at) {
            positions.skip_varints(std::mem::take(&mut skipped))?;
            for (field, count) in Field::WITH_POSITIONS.into_iter().zip(counts) {
                let mut position = 0_u32;
                for _ in 0..count {
                    position = position.checked_add(positions.varint_u32()?).ok_or(Damaged)?;
                    visit(number, Place::new(field, position));
                }
            }
        } else {
            let count = counts.iter().fold(0_u32, |sum, count| sum.saturating_add(*count));
            skipped = skipped.saturating_add(usize::try_from(count).ok().ok_or(Damaged)?);
        }
    }
    Ok(())
}

/// Reads how often a term occurs in each field with positions.
fn position_counts(input: &mut Input<'_>) -> Result<[u32; 4], Damaged> {
    let mask = input.byte()?;
    if mask == 0 || mask & !Fields::ALL.0 != 0 {
        return Err(Damaged);
    }
    let mut counts = [0; 4];
    for (field, count) in Field::WITH_POSITIONS.into_iter().zip(&mut counts) {
        if mask & field.bit() != 0 {
            *count = input.varint_u32()?;
        }
    }
    Ok(counts)
}

/// Reads the positions of a posting list, in step with its [`Postings`].
#[derive(Clone, Debug)]
pub(crate) struct Positions<'a>(Input<'a>);

impl<'a> Positions<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(Input::new(bytes))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the occurrences in the next document, by field and position.
    pub(crate) fn read(&mut self, posting: &Posting) -> Result<Vec<Occurrence>, Damaged> {
        let mut places = Vec::new();
        self.read_into(posting, &mut places)?;
        Ok(places.into_iter().map(Place::occurrence).collect())
    }

    /// Appends the occurrences in the next document, in ascending order.
    pub(crate) fn read_into(
        &mut self,
        posting: &Posting,
        places: &mut Vec<Place>,
    ) -> Result<(), Damaged> {
        for field in Field::WITH_POSITIONS {
            let mut position = 0_u32;
            for _ in 0..posting.counts.of(field) {
                let distance = self.0.varint_u32()?;
                position = position.checked_add(distance).ok_or(Damaged)?;
                places.push(Place::new(field, position));
            }
        }
        Ok(())
    }

    /// Takes the encoded positions of the next document.
    pub(crate) fn take(&mut self, posting: &Posting) -> Result<&'a [u8], Damaged> {
        let before = self.0;
        for field in Field::WITH_POSITIONS {
            for _ in 0..posting.counts.of(field) {
                self.0.varint()?;
            }
        }
        Input::take(&mut { before }, before.len() - self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn occurrences() -> impl Strategy<Value = Vec<Occurrence>> {
        let place = prop_oneof![
            (0_usize..4, 0_u32..400).prop_map(|(field, at)| (Field::ALL[field], at)),
            (4_usize..6).prop_map(|field| (Field::ALL[field], 0)),
        ];
        prop::collection::btree_set(place, 1..6).prop_map(|set| set.into_iter().collect())
    }

    fn documents() -> impl Strategy<Value = Vec<(Doc, Vec<Occurrence>)>> {
        let plain = (0_u32..400).prop_map(|at| vec![(Field::Body, at)]);
        let document = prop_oneof![plain, occurrences()];
        prop::collection::btree_map(0_u32..100_000, document, 0..30)
            .prop_map(|documents| documents.into_iter().collect())
    }

    fn written(documents: &[(Doc, Vec<Occurrence>)]) -> PostingList {
        let mut list = PostingList::default();
        for (doc, places) in documents {
            list.push(*doc, places);
        }
        list
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(documents in documents()) {
            let list = written(&documents);
            let mut positions = Positions::new(&list.positions);
            let mut read = Vec::new();
            for posting in Postings::new(&list.postings) {
                let posting = posting.unwrap();
                let mut places = positions.read(&posting).unwrap();
                for form in [Field::TitleForms, Field::Forms] {
                    if posting.counts.of(form) > 0 {
                        places.push((form, 0));
                    }
                }
                read.push((posting.doc, places));
            }
            prop_assert_eq!(read, documents);
        }

        #[test]
        fn the_places_in_some_documents_are_those_of_the_whole_list(
            documents in documents(),
            wanted in prop::collection::btree_set(0_u32..100_000, 0..30),
            all in prop::collection::vec(any::<bool>(), 30),
        ) {
            let list = written(&documents);
            let some = documents.iter().zip(all).filter(|(_, is_wanted)| *is_wanted);
            let mut docs: Vec<Doc> = some.map(|((doc, _), _)| *doc).chain(wanted).collect();
            docs.sort_unstable();
            docs.dedup();
            let mut read: Vec<(Doc, Occurrence)> = Vec::new();
            each_place((&list.postings, &list.positions), &docs, |number, place| {
                read.push((docs[number], place.occurrence()));
            }).unwrap();
            let in_wanted = documents.iter().filter(|(doc, _)| docs.contains(doc));
            let placed = in_wanted.flat_map(|(doc, places)| places.iter().map(|it| (*doc, *it)));
            let placed: Vec<_> = placed.filter(|(_, (field, _))| field.has_positions()).collect();
            prop_assert_eq!(read, placed);
        }

        #[test]
        fn a_list_can_be_copied_document_by_document(documents in documents()) {
            let list = written(&documents);
            let mut copy = PostingList::default();
            let mut positions = Positions::new(&list.positions);
            for posting in Postings::new(&list.postings) {
                let posting = posting.unwrap();
                copy.push_encoded(posting, positions.take(&posting).unwrap());
            }
            prop_assert_eq!(copy, list);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            postings in prop::collection::vec(any::<u8>(), 0..60),
            positions in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut positions = Positions::new(&positions);
            let mut previous = None;
            for posting in Postings::new(&postings) {
                let Ok(posting) = posting else { break };
                prop_assert!(previous.is_none_or(|previous| previous < posting.doc));
                previous = Some(posting.doc);
                if posting.counts.of(Field::Body) < 1000 {
                    drop(positions.read(&posting));
                }
            }
        }

        #[test]
        fn places_in_any_bytes_are_read_or_refused(
            postings in prop::collection::vec(any::<u8>(), 0..60),
            positions in prop::collection::vec(any::<u8>(), 0..60),
            docs in prop::collection::btree_set(0_u32..300, 0..9),
        ) {
            let docs: Vec<_> = docs.into_iter().collect();
            let mut count = 0;
            each_place((&postings, &positions), &docs, |_, _| count += 1).unwrap_or_default();
            prop_assert!(count <= positions.len());
        }
    }

    #[test]
    fn a_document_with_the_term_once_in_its_text_takes_two_bytes() {
        let list = written(&[(0, vec![(Field::Body, 7)]), (3, vec![(Field::Body, 9)])]);
        assert_eq!((list.postings.len(), list.positions.len()), (2, 2));
    }
}
