//! Dates: the memories of the days that a query asks about.

use std::collections::BTreeSet;

use quipu_notes::tokenizer::Language;
use quipu_notes::{Date, DateSpan, EventReference, Phrase};

use super::clause::{Clause, Evaluator};
use super::occurrences::Phrases;
use super::rank::Ranking;
use super::scoring::Scoring;
use crate::index::{
    Bits, Day, DayKind, Fields, IndexError, Postings, SegmentView, Space, StoreView, day_prefix,
};

/// The memories of a span of days.
pub(super) struct Dated {
    pub(super) span: DateSpan,
    /// Those of each segment.
    pub(super) inside: Vec<Bits>,
}

impl Dated {
    pub(super) fn new<'s, 'v: 's, 'c: 'v>(
        span: DateSpan,
        segments: impl Iterator<Item = &'s Evaluator<'v, 'c>>,
    ) -> Result<Self, IndexError> {
        let inside = segments.map(|segment| inside(&span, segment.segment()));
        let inside = inside.collect::<Result<_, _>>()?;
        Ok(Self { span, inside })
    }
}

/// Returns the memories of a segment that are of a span of days.
fn inside(span: &DateSpan, segment: &SegmentView<'_>) -> Result<Bits, IndexError> {
    let mut inside = Bits::none(segment.count(Space::Memories));
    let [first, last] = [span.first, span.last].map(|it| Day::new(it.year(), it.month(), it.day()));
    for kind in [DayKind::Written, DayKind::Changed] {
        segment.each_with_prefix(&day_prefix(kind), |term, postings| {
            let day = Day::of_term(term).ok_or(IndexError::Damaged)?;
            if first <= day && day <= last {
                for posting in Postings::new(postings) {
                    inside.insert(posting?.doc)?;
                }
            }
            Ok(())
        })?;
    }
    Ok(inside)
}

/// Returns the days from an event that a text refers to, such as `since the launch`; `None` if the searched
/// stores do not say when it was.
///
/// They do if the titles of one memory, or of several of the same day, have all words of its name. With
/// memories of other days it is not clear which is the event, and a wrong day would lower the right answer.
pub(super) fn days_from_event(
    text: &str,
    views: &[&StoreView<'_>],
    (languages, scoring): (&[Language], Scoring),
) -> Result<Option<DateSpan>, IndexError> {
    let mut phrases = Phrases::new(Space::Memories, scoring);
    let mut word = |word: &String| {
        let spellings = Phrase::spellings(word, languages).into_iter();
        let spellings = spellings.map(|it| Clause::Words(phrases.add(it, Fields::TITLE)));
        Clause::Any(spellings.collect())
    };
    let mut named = |reference: EventReference| {
        let name = Clause::All(reference.words.iter().map(&mut word).collect());
        (reference, name)
    };
    let references: Vec<_> = EventReference::all(text).into_iter().map(&mut named).collect();
    if references.is_empty() {
        return Ok(None);
    }
    let ranking = Ranking::new(views, &phrases)?;
    for (reference, name) in references {
        let mut days = BTreeSet::new();
        for (_, segment) in &ranking.segments {
            let named = segment.select(&name)?;
            if !named.is_empty() {
                days.extend(event_days(segment.segment(), &named)?);
            }
        }
        if let [day] = days.into_iter().collect::<Vec<_>>()[..] {
            let (year, month, day) = day.parts();
            let day = Date::new(year, month, day).ok().ok_or(IndexError::Damaged)?;
            return Ok(Some(reference.span(day)));
        }
    }
    Ok(None)
}

/// Returns the days of the events that some memories are about.
fn event_days(segment: &SegmentView<'_>, memories: &Bits) -> Result<Vec<Day>, IndexError> {
    let mut days = Vec::new();
    segment.each_with_prefix(&day_prefix(DayKind::Event), |term, postings| {
        for posting in Postings::new(postings) {
            if memories.contains(posting?.doc) {
                days.push(Day::of_term(term).ok_or(IndexError::Damaged)?);
                return Ok(());
            }
        }
        Ok(())
    })?;
    Ok(days)
}
