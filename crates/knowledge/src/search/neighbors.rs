//! Neighbors: the memories before and after a memory in its directory.
//!
//! A short note is often a part of something: a message of a session, an entry of a day. What it
//! means is said by the ones beside it, as the question is that an answer follows. So the best hits,
//! and the memories beside them, take in a share of the scores of their neighbors.
//!
//! Only these do, because each needs its directory. A score is never lowered, so the best hits of all
//! are among them and the best by their own words, and pages fit together.

use std::cmp::Ordering;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use quipu_core::model::StoreId;

use super::clause::Evaluator;
use crate::index::{Doc, IndexError, Space};

/// How many of the best hits take in a share of their neighbors' scores.
pub(super) const BEST_MAX: usize = 100;

/// The number of memories of a store above which neighbors do not count. Finding them means reading
/// every path, which would take longer than the rest of the search.
pub(super) const MEMORIES_MAX: u64 = 20_000;

/// The number of memories of a directory above which it is a pile and not a sequence.
const DIRECTORY_MEMORIES_MAX: usize = 1000;

/// A document: the number of its segment, and its number in it.
pub(super) type Document = (usize, Doc);

/// A directory of a store, without the slash at its end.
type Directory = (StoreId, String);

/// The members of some directories, each in the order of their names. Numbers in names are compared
/// as numbers: `9.md` comes before `10.md`.
pub(super) struct Directories {
    members: Vec<Vec<Document>>,
    /// The directory of each member, and its place in it.
    places: HashMap<Document, (usize, usize)>,
}

impl Directories {
    /// Reads the directories of some documents.
    pub(super) fn of(
        segments: &[(StoreId, Evaluator<'_, '_>)],
        documents: &[Document],
    ) -> Result<Self, IndexError> {
        let mut named = named(segments, documents)?;
        named.retain(|members| members.len() <= DIRECTORY_MEMORIES_MAX);
        let mut directories = Self { members: Vec::new(), places: HashMap::new() };
        for (number, mut members) in named.into_iter().enumerate() {
            members.sort_unstable_by(|(left, _), (right, _)| natural(left, right));
            let members: Vec<_> = members.into_iter().map(|(_, document)| document).collect();
            let places = members.iter().enumerate().map(|(at, document)| (*document, (number, at)));
            directories.places.extend(places);
            directories.members.push(members);
        }
        Ok(directories)
    }

    /// Returns the documents before and after a document in its directory.
    pub(super) fn beside(&self, document: Document) -> impl Iterator<Item = Document> {
        let place = self.places.get(&document);
        let at = move |distance: isize| {
            let (number, place) = place?;
            let beside = place.checked_add_signed(distance)?;
            self.members.get(*number)?.get(beside).copied()
        };
        [at(-1), at(1)].into_iter().flatten()
    }
}

/// Returns the live members of the directories of some documents, with their names.
fn named(
    segments: &[(StoreId, Evaluator<'_, '_>)],
    documents: &[Document],
) -> Result<Vec<Vec<(String, Document)>>, IndexError> {
    let mut numbers: HashMap<Directory, usize, RandomState> = HashMap::default();
    for (number, (store, segment)) in segments.iter().enumerate() {
        let of_segment = documents.iter().filter(|(of, _)| *of == number);
        let mut wanted: Vec<Doc> = of_segment.map(|(_, doc)| *doc).collect();
        if wanted.is_empty() {
            continue;
        }
        wanted.sort_unstable();
        let mut wanted = wanted.into_iter().peekable();
        segment.segment().each_path(|doc, path| {
            if wanted.next_if_eq(&doc).is_some() {
                let next = numbers.len();
                numbers.entry((*store, split(path).0.to_owned())).or_insert(next);
            }
        })?;
    }
    let mut members = vec![Vec::new(); numbers.len()];
    for (number, (store, segment)) in segments.iter().enumerate() {
        let live = segment.segment().live(Space::Memories)?;
        // This runs for every memory of the store. Those that were written together are mostly in the
        // same directory, so most need no lookup.
        let mut last = (*store, String::new());
        let mut last_number = numbers.get(&last).copied();
        segment.segment().each_path(|doc, path| {
            let (directory, name) = split(path);
            if directory != last.1 {
                last.1.clear();
                last.1.push_str(directory);
                last_number = numbers.get(&last).copied();
            }
            let Some(members) = last_number.and_then(|it| members.get_mut(it)) else { return };
            // One more than the maximum shows that there are too many.
            if members.len() <= DIRECTORY_MEMORIES_MAX && live.contains(doc) {
                members.push((name.to_owned(), (number, doc)));
            }
        })?;
    }
    Ok(members)
}

/// Splits a path into its directory and its name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Compares names with their numbers as numbers.
fn natural(left: &str, right: &str) -> Ordering {
    let (mut left_rest, mut right_rest) = (left, right);
    loop {
        let (left_number, right_number) = (number(left_rest), number(right_rest));
        if !left_number.is_empty() && !right_number.is_empty() {
            let digits = |number: &str| number.trim_start_matches('0').to_owned();
            let (left_digits, right_digits) = (digits(left_number), digits(right_number));
            let by_length = left_digits.len().cmp(&right_digits.len());
            let order = by_length.then_with(|| left_digits.cmp(&right_digits));
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
