//! Neighbors: the memories around a memory in its directory.

use std::collections::HashMap;

use quipu_core::model::StoreId;

use super::clause::Evaluator;
use crate::index::{Bits, DirectoryPlaces, Doc, IndexError, PlacesView, Space, natural, split};

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
        let reading = Reading { segments, places };
        let mut directories = Self::default();
        for key in reading.keys(documents)? {
            let members = reading.members(key)?;
            directories.members.push(members);
        }
        let mut wanted: HashMap<usize, Bits> = HashMap::new();
        for (number, doc) in documents {
            let count = reading.segment(*number)?.count(Space::Memories);
            wanted.entry(*number).or_insert_with(|| Bits::none(count)).insert(*doc)?;
        }
        for (directory, members) in directories.members.iter().enumerate() {
            for (at, document @ (number, doc)) in members.iter().enumerate() {
                if wanted.get(number).is_some_and(|wanted| wanted.contains(*doc)) {
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
}

impl<'v, 'c> Reading<'_, 'v, 'c> {
    fn segment(&self, number: usize) -> Result<&'v crate::index::SegmentView<'c>, IndexError> {
        let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
        Ok(segment.segment())
    }

    /// Returns the distinct directories of some documents.
    fn keys(&self, documents: &[Document]) -> Result<Vec<DirectoryKey>, IndexError> {
        let mut keys = Vec::new();
        for (number, ((store, segment), places)) in
            self.segments.iter().zip(&self.places).enumerate()
        {
            let mut wanted = Bits::none(segment.segment().count(Space::Memories));
            for (_, doc) in documents.iter().filter(|(of, _)| *of == number) {
                wanted.insert(*doc)?;
            }
            if wanted.is_empty() {
                continue;
            }
            for (place, doc) in (0..).zip(places.order()) {
                if wanted.contains(doc) {
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
    fn merged(&self, parts: Vec<(usize, Vec<Doc>)>) -> Result<Vec<Document>, IndexError> {
        let mut named = Vec::new();
        for (number, docs) in parts {
            let segment = self.segment(number)?;
            let mut wanted = Bits::none(segment.count(Space::Memories));
            docs.into_iter().try_for_each(|doc| wanted.insert(doc))?;
            segment.each_path(|doc, path| {
                if wanted.contains(doc) {
                    named.push((split(path).1.to_owned(), (number, doc)));
                }
            })?;
        }
        // Documents are mostly written in the order of their names, which this sort makes use of.
        named.sort_by(|(left, _), (right, _)| natural(left, right));
        Ok(named.into_iter().map(|(_, document)| document).collect())
    }
}
