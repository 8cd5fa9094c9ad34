//! Places: the memories of a segment in the order of their directories and names.
//!
//! Ranking asks what is beside a memory. Reading every path for that would take longer than the rest
//! of a search, so the order is kept as a column, and is computed when a segment is written.
//!
//! A directory may have members in several segments, so directories must be comparable between
//! segments. They are known by a hash of their path: texts would make the column ten times as large.
//! Two directories with the same hash would be taken for one, which adds wrong neighbors to some
//! scores and does no other harm.

use std::cmp::Ordering;

use super::codec::{Damaged, Input};
use super::columns::{Fixed, each_path};
use super::error::IndexError;
use super::postings::Doc;
use super::seal::Seal;
use super::view::{Lists, SegmentView};

/// The order of the memories of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// The memories by directory, then by name.
    pub(crate) order: Fixed<4>,
    /// The directories, sorted: the hash of each, and the place in the order of its first member.
    pub(crate) directories: Fixed<12>,
}

impl Places {
    /// Returns the places of memories with these encoded paths.
    pub(crate) fn of(paths: &[u8]) -> Result<Self, Damaged> {
        let mut all = Vec::new();
        each_path(paths, |doc, path| {
            let (directory, name) = split(path);
            all.push((hash(directory), name.to_owned(), doc));
        })?;
        all.sort_by(|(directory, name, _), (other, other_name, _)| {
            directory.cmp(other).then_with(|| natural(name, other_name))
        });
        let mut places = Self::default();
        let mut last = None;
        for (at, (directory, _, doc)) in (0_u32..).zip(all) {
            if last.replace(directory) != Some(directory) {
                let both = (u128::from(directory) << 32) | u128::from(at);
                let [_, _, _, _, row @ ..] = both.to_be_bytes();
                places.directories.push(row);
            }
            places.order.push(doc.to_le_bytes());
        }
        Ok(places)
    }
}

/// Reads the directory at a place of the column, as its hash and the place of its first member.
pub(crate) fn directory(row: [u8; 12]) -> (u64, u32) {
    let mut both = [0; 16];
    both.iter_mut().skip(4).zip(row).for_each(|(to, from)| *to = from);
    let both = u128::from_be_bytes(both);
    let at = u32::try_from(both & u128::from(u32::MAX)).unwrap_or(u32::MAX);
    (u64::try_from(both >> 32).unwrap_or(u64::MAX), at)
}

/// A directory with the places of its members in the order of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryPlaces {
    pub(crate) hash: u64,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The places of a segment as they are stored.
#[derive(Clone, Debug)]
pub(crate) struct PlacesView {
    pub(super) order: std::sync::Arc<[u8]>,
    pub(super) directories: std::sync::Arc<[u8]>,
}

impl PlacesView {
    /// Returns the memories from one place to another, dead ones included.
    pub(crate) fn members(
        &self,
        start: u32,
        end: u32,
    ) -> Result<impl Iterator<Item = Doc>, Damaged> {
        let place = |at: u32| usize::try_from(at).ok().ok_or(Damaged);
        let order = self.order.as_chunks::<4>().0.get(place(start)?..place(end)?);
        Ok(order.ok_or(Damaged)?.iter().map(|doc| Doc::from_le_bytes(*doc)))
    }

    /// Returns all memories in order, dead ones included.
    pub(crate) fn order(&self) -> impl Iterator<Item = Doc> {
        self.order.as_chunks::<4>().0.iter().map(|doc| Doc::from_le_bytes(*doc))
    }

    /// Returns the directory that a place is in.
    pub(crate) fn directory_at(&self, place: u32) -> Result<DirectoryPlaces, Damaged> {
        let rows = self.directories.as_chunks::<12>().0;
        let after = rows.partition_point(|row| directory(*row).1 <= place);
        self.directory(after.checked_sub(1).ok_or(Damaged)?).ok_or(Damaged)
    }

    /// Returns the directory with a hash, if the segment has members of it.
    pub(crate) fn directory_with(&self, hash: u64) -> Option<DirectoryPlaces> {
        let rows = self.directories.as_chunks::<12>().0;
        let found = rows.binary_search_by_key(&hash, |row| directory(*row).0).ok()?;
        self.directory(found)
    }

    fn directory(&self, number: usize) -> Option<DirectoryPlaces> {
        let rows = self.directories.as_chunks::<12>().0;
        let (hash, start) = directory(*rows.get(number)?);
        let end = rows.get(number + 1).map(|row| directory(*row).1);
        let count = u32::try_from(self.order.len() / 4).ok()?;
        Some(DirectoryPlaces { hash, start, end: end.unwrap_or(count) })
    }
}

/// The paths of a segment, to be read one by one.
pub(crate) struct Paths<'p> {
    bytes: PathBytes<'p>,
    /// Where the path of each memory begins.
    starts: Vec<usize>,
}

enum PathBytes<'p> {
    Stored(std::sync::Arc<[u8]>),
    InMemory(&'p [u8]),
}

impl<'p> Paths<'p> {
    fn new(bytes: PathBytes<'p>) -> Result<Self, Damaged> {
        let mut starts = Vec::new();
        let all = bytes.as_slice();
        let mut input = Input::new(all);
        while !input.is_empty() {
            starts.push(all.len() - input.len());
            input.text()?;
        }
        Ok(Self { bytes, starts })
    }

    /// Returns the path of a memory.
    pub(crate) fn get(&self, doc: Doc) -> Result<&str, Damaged> {
        let start = usize::try_from(doc).ok().and_then(|doc| self.starts.get(doc));
        let rest = start.and_then(|start| self.bytes.as_slice().get(*start..)).ok_or(Damaged)?;
        Input::new(rest).text()
    }
}

impl PathBytes<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Stored(bytes) => bytes,
            Self::InMemory(bytes) => bytes,
        }
    }
}

fn hash(directory: &str) -> u64 {
    Seal::new("directory").with(directory.as_bytes()).whole()
}

/// Splits a path into its directory and its name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Compares names with their numbers as numbers.
pub(crate) fn natural(left: &str, right: &str) -> Ordering {
    let (mut left_rest, mut right_rest) = (left, right);
    loop {
        let (left_number, right_number) = (number(left_rest), number(right_rest));
        if !left_number.is_empty() && !right_number.is_empty() {
            let left_digits = left_number.trim_start_matches('0');
            let right_digits = right_number.trim_start_matches('0');
            let by_length = left_digits.len().cmp(&right_digits.len());
            let order = by_length.then_with(|| left_digits.cmp(right_digits));
            if order != Ordering::Equal {
                return order;
            }
            left_rest = left_rest.strip_prefix(left_number).unwrap_or_default();
            right_rest = right_rest.strip_prefix(right_number).unwrap_or_default();
            continue;
        }
        let (mut left_letters, mut right_letters) = (left_rest.chars(), right_rest.chars());
        match (left_letters.next(), right_letters.next()) {
            // `01` and `1` are the same number, and not the same name.
            (None, None) => return left.cmp(right),
            (left, right) if left != right => return left.cmp(&right),
            _ => (left_rest, right_rest) = (left_letters.as_str(), right_letters.as_str()),
        }
    }
}

/// Returns the digits at the beginning of a text.
fn number(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

impl SegmentView<'_> {
    /// Returns the order of its memories by directory and name.
    pub(crate) fn places(&self) -> Result<PlacesView, IndexError> {
        match &self.lists {
            Lists::Stored(snapshot, id) => Ok(PlacesView {
                order: snapshot.column(*id, "memory_order")?,
                directories: snapshot.column(*id, "memory_directories")?,
            }),
            Lists::InMemory(segment) => {
                let places = &segment.columns.memories.places;
                Ok(PlacesView {
                    order: places.order.as_bytes().into(),
                    directories: places.directories.as_bytes().into(),
                })
            }
        }
    }

    /// Returns the paths of its memories.
    pub(crate) fn paths(&self) -> Result<Paths<'_>, IndexError> {
        Ok(Paths::new(match &self.lists {
            Lists::Stored(snapshot, id) => PathBytes::Stored(snapshot.column(*id, "memory_paths")?),
            Lists::InMemory(segment) => PathBytes::InMemory(&segment.columns.memories.paths),
        })?)
    }

    /// Calls `work` with the path of each memory, dead ones included.
    pub(crate) fn each_path(&self, work: impl FnMut(Doc, &str)) -> Result<(), IndexError> {
        match &self.lists {
            Lists::Stored(snapshot, id) => {
                Ok(each_path(&snapshot.column(*id, "memory_paths")?, work)?)
            }
            Lists::InMemory(segment) => Ok(each_path(&segment.columns.memories.paths, work)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_in_names_are_compared_as_numbers() {
        let mut names = ["10.md", "9.md", "a10", "a9b", "a9", "a", "b1", "09.md", "1-2", "1-10"];
        names.sort_unstable_by(|left, right| natural(left, right));
        assert_eq!(names, ["1-2", "1-10", "09.md", "9.md", "10.md", "a", "a9", "a9b", "a10", "b1"]);
    }

    proptest! {
        #[test]
        fn names_have_one_order(names in prop::collection::vec("[0-9ab.]{0,5}", 3)) {
            let order = |left: usize, right: usize| natural(&names[left], &names[right]);
            prop_assert_eq!(order(0, 1), order(1, 0).reverse());
            prop_assert_eq!(order(0, 1) == Ordering::Equal, names[0] == names[1]);
            if order(0, 1) != Ordering::Greater && order(1, 2) != Ordering::Greater {
                prop_assert!(order(0, 2) != Ordering::Greater, "{names:?}");
            }
        }
    }
}
