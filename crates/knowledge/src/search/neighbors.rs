//! Neighbors: the memories around a memory in its directory.

use std::cell::OnceCell;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use quipu_core::model::StoreId;

use super::clause::Evaluator;
use crate::index::{
    Bits, DirectoryPlaces, Doc, IndexError, Paths, PlacesView, Space, natural, split,
};

/// A document: the number of its segment, and its number in it.
pub(super) type Document = (usize, Doc);

/// A directory of a store, by the hash of its path.
type DirectoryKey = (StoreId, u64);

/// The directories of some documents, with their live members in the order of their names. Numbers
/// in names are compared as numbers: `9.md` comes before `10.md`.
#[derive(Default)]
pub(super) struct Directories {
    members: Vec<Vec<Document>>,
    places: HashMap<Document, Place>,
}

/// The place of a document: its directory, and its place among the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) directory: usize,
    at: usize,
}

impl Directories {
    /// Reads the directories of some documents.
    pub(super) fn of(
        segments: &[(StoreId, Evaluator<'_, '_>)],
        documents: &[Document],
    ) -> Result<Self, IndexError> {
        let places = segments.iter().map(|(_, segment)| segment.segment().places());
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let paths = segments.iter().map(|_| OnceCell::new()).collect();
        let reading = Reading { segments, places, paths };
        let wanted = reading.bits(documents)?;
        let mut directories = Self::default();
        for key in reading.keys(&wanted)? {
            let members = reading.members(key)?;
            directories.members.push(members);
        }
        for (directory, members) in directories.members.iter().enumerate() {
            for (at, document @ (number, doc)) in members.iter().enumerate() {
                if wanted.get(*number).is_some_and(|wanted| wanted.contains(*doc)) {
                    directories.places.insert(*document, Place { directory, at });
                }
            }
        }
        Ok(directories)
    }

    /// Returns the place of one of the documents.
    pub(super) fn place(&self, document: Document) -> Option<Place> {
        self.places.get(&document).copied()
    }

    /// Returns the member at some distance from a place.
    pub(super) fn at(&self, place: Place, distance: isize) -> Option<(Place, Document)> {
        let at = place.at.checked_add_signed(distance)?;
        let document = self.members.get(place.directory)?.get(at)?;
        Some((Place { at, ..place }, *document))
    }

    /// Returns the members of a directory.
    pub(super) fn members(&self, directory: usize) -> &[Document] {
        self.members.get(directory).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Reads directories from segments.
struct Reading<'r, 'v, 'c> {
    segments: &'r [(StoreId, Evaluator<'v, 'c>)],
    places: Vec<PlacesView>,
    /// The paths of the segments that were asked for them.
    paths: Vec<OnceCell<Paths<'v>>>,
}

impl<'v, 'c> Reading<'_, 'v, 'c> {
    fn segment(&self, number: usize) -> Result<&'v crate::index::SegmentView<'c>, IndexError> {
        let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
        Ok(segment.segment())
    }

    /// Returns which documents of each segment some documents are.
    fn bits(&self, documents: &[Document]) -> Result<Vec<Bits>, IndexError> {
        let count = |(_, segment): &(_, Evaluator<'_, '_>)| {
            Bits::none(segment.segment().count(Space::Memories))
        };
        let mut bits: Vec<_> = self.segments.iter().map(count).collect();
        for (number, doc) in documents {
            bits.get_mut(*number).ok_or(IndexError::Damaged)?.insert(*doc)?;
        }
        Ok(bits)
    }

    /// Returns the distinct directories of some documents of each segment.
    fn keys(&self, documents: &[Bits]) -> Result<Vec<DirectoryKey>, IndexError> {
        let mut keys = Vec::new();
        for (((store, _), places), documents) in
            self.segments.iter().zip(&self.places).zip(documents)
        {
            if documents.is_empty() {
                continue;
            }
            for (place, doc) in (0..).zip(places.order()) {
                if documents.contains(doc) {
                    keys.push((*store, places.directory_at(place)?.hash));
                }
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// Returns the live members of a directory, in order.
    fn members(&self, (store, hash): DirectoryKey) -> Result<Vec<Document>, IndexError> {
        let mut parts = Vec::new();
        for (number, ((of, _), places)) in self.segments.iter().zip(&self.places).enumerate() {
            let Some(found) = places.directory_with(hash).filter(|_| *of == store) else {
                continue;
            };
            let members = self.live_members(number, found)?;
            if !members.is_empty() {
                parts.push((number, members));
            }
        }
        // Each part is in order, so names are needed only to merge several.
        if parts.len() > 1 {
            return self.merged(parts);
        }
        let only = parts.pop().into_iter();
        Ok(only.flat_map(|(number, docs)| docs.into_iter().map(move |doc| (number, doc))).collect())
    }

    fn live_members(&self, number: usize, found: DirectoryPlaces) -> Result<Vec<Doc>, IndexError> {
        let places = self.places.get(number).ok_or(IndexError::Damaged)?;
        let segment = self.segment(number)?;
        let members = places.members(found.start, found.end)?;
        Ok(members.filter(|doc| segment.is_live(*doc)).collect())
    }

    /// Merges the members that a directory has in several segments.
    ///
    /// Each part is in order, and after some writes all but one are short. So names are compared only near
    /// the places where the members of a short part belong.
    fn merged(&self, mut parts: Vec<(usize, Vec<Doc>)>) -> Result<Vec<Document>, IndexError> {
        parts.sort_by_key(|(_, docs)| Reverse(docs.len()));
        let mut parts = parts.into_iter().map(|(number, docs)| {
            docs.into_iter().map(move |doc| (number, doc)).collect::<Vec<_>>()
        });
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            let mut merged = Vec::with_capacity(all.len() + part.len());
            let mut rest = all.as_slice();
            for document in part {
                let count = self.count_before(rest, self.name(document)?)?;
                let (before, after) = rest.split_at_checked(count).ok_or(IndexError::Damaged)?;
                merged.extend_from_slice(before);
                merged.push(document);
                rest = after;
            }
            merged.extend_from_slice(rest);
            all = merged;
        }
        Ok(all)
    }

    /// Returns how many of some documents, which are in order, come before a name. Looks at the beginning
    /// first and then in steps that double, as the next name is rarely far away.
    fn count_before(&self, documents: &[Document], name: &str) -> Result<usize, IndexError> {
        let is_before = |at: usize| -> Result<bool, IndexError> {
            let Some(document) = documents.get(at) else { return Ok(false) };
            Ok(natural(self.name(*document)?, name) != Ordering::Greater)
        };
        let (mut low, mut step) = (0, 1);
        while is_before(low + step - 1)? {
            low += step;
            step *= 2;
        }
        let mut high = documents.len().min(low + step - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(middle)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Returns the name of a document in its directory.
    fn name(&self, (number, doc): Document) -> Result<&str, IndexError> {
        let known = self.paths.get(number).ok_or(IndexError::Damaged)?;
        let paths = match known.get() {
            Some(paths) => paths,
            None => {
                let read = self.segment(number)?.paths()?;
                known.get_or_init(|| read)
            }
        };
        Ok(split(paths.get(doc)?).1)
    }
}
