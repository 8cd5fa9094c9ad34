//! Freshness: whether a note still holds, as its frontmatter says.
//!
//! The score of a note that is expired or stale is multiplied by a factor. The index has a term for each
//! value of a frontmatter field, so the notes that this applies to are known without reading a text,
//! and every match is ranked by it. Lowering only the hits of a page would let an old plan with better
//! words keep its place at the top of the next one.
//!
//! Nothing is hidden: who asks for an obsolete note finds it, below what is still true.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;

use quipu_core::model::Timestamp;
use quipu_notes::{Value, end_of};

use super::neighbors::Document;
use super::rank::Ranking;
use super::sums::Sums;
use crate::entry::flatten;
use crate::index::{Doc, IndexError, Postings, SegmentView, field_prefix};

/// Why a note counts less than others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// The field of the frontmatter that says so.
    pub field: FreshnessField,
    /// Its value as written, without the brackets of a link.
    pub value: String,
    /// What follows from it.
    pub state: FreshnessState,
}

/// A field of the frontmatter that says whether a note still holds. If several do, the first of those
/// that lower the score most is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FreshnessField {
    /// `superseded_by`: the note that replaced it.
    SupersededBy,
    /// `valid_to`: when it ceases to hold.
    ValidTo,
    /// `stale_after`: when it has to be looked at again.
    StaleAfter,
    /// `status`: what has become of it.
    Status,
}

/// How far a note can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FreshnessState {
    /// It does not hold anymore.
    Expired,
    /// It may not hold.
    Stale,
}

/// The words of `status` for what does not hold anymore.
const OVER: [&str; 12] = [
    "abandoned",
    "archived",
    "canceled",
    "cancelled",
    "deprecated",
    "expired",
    "obsolete",
    "rejected",
    "replaced",
    "retired",
    "superseded",
    "withdrawn",
];

/// The words of `status` for what may not hold.
const STALE: [&str; 5] = ["draft", "outdated", "stale", "tentative", "unverified"];

impl FreshnessField {
    const ALL: [Self; 4] = [Self::SupersededBy, Self::ValidTo, Self::StaleAfter, Self::Status];

    /// Returns the name of the field.
    pub fn name(self) -> &'static str {
        match self {
            Self::SupersededBy => "superseded_by",
            Self::ValidTo => "valid_to",
            Self::StaleAfter => "stale_after",
            Self::Status => "status",
        }
    }
}

impl FreshnessState {
    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Stale => "stale",
        }
    }

    /// Returns what the score of a note in this state is multiplied by.
    pub fn factor(self) -> f64 {
        match self {
            Self::Expired => 0.25,
            Self::Stale => 0.5,
        }
    }
}

impl fmt::Display for Freshness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            FreshnessField::SupersededBy => write!(out, "superseded by [[{}]]", self.value),
            FreshnessField::ValidTo => write!(out, "valid until {}", self.value),
            FreshnessField::StaleAfter => write!(out, "stale after {}", self.value),
            FreshnessField::Status => write!(out, "status {}", self.value),
        }
    }
}

impl Freshness {
    /// Judges a note by the fields of its frontmatter; `None` if nothing in them lowers it.
    pub(crate) fn of(metadata: &[(String, Value)], now: Timestamp) -> Option<Self> {
        let judged = |field: FreshnessField| {
            let mut values = Vec::new();
            for (_, value) in metadata.iter().filter(|(key, _)| key == field.name()) {
                flatten(field.name(), value, &mut values);
            }
            let values = values.into_iter().filter(move |(key, _)| key == field.name());
            values.filter_map(move |(_, value)| Self::judged(field, &value, now))
        };
        let all = FreshnessField::ALL.into_iter().flat_map(judged);
        all.min_by_key(|freshness| (freshness.state, freshness.field))
    }

    /// Judges one value of a field. A time that cannot be parsed and an unknown status say nothing.
    fn judged(field: FreshnessField, value: &str, now: Timestamp) -> Option<Self> {
        let value = value.trim();
        let passed = |state: FreshnessState| {
            let end = Timestamp::from_micros(end_of(value)?.as_microsecond());
            (end <= now).then_some(state)
        };
        let state = match field {
            FreshnessField::SupersededBy => (!value.is_empty()).then_some(FreshnessState::Expired),
            FreshnessField::ValidTo => passed(FreshnessState::Expired),
            FreshnessField::StaleAfter => passed(FreshnessState::Stale),
            FreshnessField::Status => {
                let status = value.to_lowercase();
                if OVER.contains(&status.as_str()) {
                    Some(FreshnessState::Expired)
                } else {
                    STALE.contains(&status.as_str()).then_some(FreshnessState::Stale)
                }
            }
        };
        let bare = value.strip_prefix("[[").and_then(|link| link.strip_suffix("]]"));
        Some(Self { field, value: bare.unwrap_or(value).trim().to_owned(), state: state? })
    }
}

/// Which memories count less.
#[derive(Debug)]
pub(super) struct Judging {
    at: Timestamp,
    /// Those of each segment, as far as they were looked up.
    lowered: Vec<OnceCell<Lowered>>,
}

/// The memories of a segment that count less.
#[derive(Debug, Default)]
pub(super) struct Lowered(HashMap<Doc, FreshnessState>);

impl Lowered {
    /// Looks up the memories of a segment that are expired or stale at a time.
    pub(super) fn of(segment: &SegmentView<'_>, now: Timestamp) -> Result<Self, IndexError> {
        let mut lowered: HashMap<Doc, FreshnessState> = HashMap::new();
        for field in FreshnessField::ALL {
            let prefix = field_prefix(field.name());
            segment.each_with_prefix(&prefix, |term, postings| {
                let value = str::from_utf8(term.get(prefix.len()..).unwrap_or_default());
                let value = value.ok().ok_or(IndexError::Damaged)?;
                let Some(freshness) = Freshness::judged(field, value, now) else { return Ok(()) };
                for posting in Postings::new(postings) {
                    let state = lowered.entry(posting?.doc).or_insert(freshness.state);
                    *state = freshness.state.min(*state);
                }
                Ok(())
            })?;
        }
        Ok(Self(lowered))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn state(&self, memory: Doc) -> Option<FreshnessState> {
        self.0.get(&memory).copied()
    }
}

impl Ranking<'_, '_> {
    /// Returns the ranking with the scores of notes lowered that are expired or stale at a time.
    pub(crate) fn judged_at(mut self, at: Timestamp) -> Self {
        let lowered = self.segments.iter().map(|_| OnceCell::new()).collect();
        self.judging = Some(Judging { at, lowered });
        self
    }

    /// Lowers the scores of notes that are expired or stale.
    pub(super) fn lower(&self, number: usize, sums: &mut Sums) -> Result<(), IndexError> {
        // Among many stores, most segments have none of the words, and need no lookup.
        if sums.found_mut().next().is_none() || self.lowered(number)?.is_none_or(Lowered::is_empty)
        {
            return Ok(());
        }
        for (doc, score) in sums.found_mut() {
            *score *= self.freshness_factor((number, doc))?;
        }
        Ok(())
    }

    /// Returns the memories of a segment that count less; `None` if notes are not judged.
    fn lowered(&self, number: usize) -> Result<Option<&Lowered>, IndexError> {
        let Some(Judging { at, lowered }) = &self.judging else { return Ok(None) };
        let cell = lowered.get(number).ok_or(IndexError::Damaged)?;
        if let Some(known) = cell.get() {
            return Ok(Some(known));
        }
        let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
        let lowered = Lowered::of(segment.segment(), *at)?;
        Ok(Some(cell.get_or_init(|| lowered)))
    }

    /// Returns the state of the note that a document is or is in, if it is expired or stale.
    pub(super) fn freshness(
        &self,
        (number, doc): Document,
    ) -> Result<Option<FreshnessState>, IndexError> {
        let Some(lowered) = self.lowered(number)?.filter(|lowered| !lowered.is_empty()) else {
            return Ok(None);
        };
        let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
        Ok(lowered.state(segment.segment().fact(self.space, doc)?.memory))
    }

    pub(crate) fn freshness_factor(&self, document: Document) -> Result<f64, IndexError> {
        Ok(self.freshness(document)?.map_or(1.0, FreshnessState::factor))
    }
}

#[cfg(test)]
mod tests {
    use quipu_notes::Note;

    use super::*;

    fn judged(frontmatter: &str) -> Option<String> {
        let now: Timestamp = "2026-06-01T12:00:00Z".parse().expect("a time");
        let note = Note::parse_header(&format!("---\n{frontmatter}\n---\n# Plan\n"));
        Freshness::of(&note.metadata, now).map(|it| format!("{}: {it}", it.state.name()))
    }

    #[test]
    fn each_field_says_whether_a_note_still_holds() {
        for (frontmatter, wanted) in [
            ("valid_to: 2026-05-31", "expired: valid until 2026-05-31"),
            ("valid_to: 2026-06-01T12:00:00Z", "expired: valid until 2026-06-01T12:00:00Z"),
            ("valid_to: 2026-05", "expired: valid until 2026-05"),
            ("stale_after: 2025", "stale: stale after 2025"),
            ("superseded_by: [[New plan]]", "expired: superseded by [[New plan]]"),
            ("superseded_by: '[[New plan]]'", "expired: superseded by [[New plan]]"),
            ("superseded_by: plans/new", "expired: superseded by [[plans/new]]"),
            ("status: Obsolete", "expired: status Obsolete"),
            ("status: [done, draft]", "stale: status draft"),
            ("status: draft\nvalid_to: 2020", "expired: valid until 2020"),
            ("status: obsolete\nsuperseded_by: b", "expired: superseded by [[b]]"),
        ] {
            assert_eq!(judged(frontmatter).as_deref(), Some(wanted), "{frontmatter}");
        }
    }

    #[test]
    fn everything_else_says_nothing() {
        for frontmatter in [
            "valid_to: 2026-06-01",
            "valid_to: 2026-06-01T12:00:01Z",
            "valid_to: 2026-06",
            "valid_to: soon",
            "valid_to:",
            "stale_after: 2026-06-01",
            "superseded_by:",
            "superseded_by: []",
            "status: done",
            "status: active",
            "status:\n  obsolete: draft",
            "Status: obsolete",
        ] {
            assert_eq!(judged(frontmatter), None, "{frontmatter}");
        }
    }
}
