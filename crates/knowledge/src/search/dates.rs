//! Dates: the memories of the days that a query asks about.

use quipu_notes::{DateSpan, day_of, written_date};

use super::clause::Evaluator;
use crate::index::{Bits, IndexError, Mark, Postings, SegmentView, Space, field_prefix};

/// The fields of the frontmatter that say when something was.
const FIELDS: [&str; 6] = ["date", "day", "created", "created_at", "published", "due"];

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
///
/// The day of a memory is what its frontmatter, its title or its path says. Only without any of these
/// is it the day of its last change: notes that were imported last week are of other days.
fn inside(span: &DateSpan, segment: &SegmentView<'_>) -> Result<Bits, IndexError> {
    let count = segment.count(Space::Memories);
    let (mut inside, mut dated) = (Bits::none(count), Bits::none(count));
    let title = Mark::Title("").term(Space::Memories);
    for prefix in FIELDS.map(field_prefix).iter().chain([&title]) {
        segment.each_with_prefix(prefix, |term, postings| {
            let value = str::from_utf8(term.get(prefix.len()..).unwrap_or_default());
            let Some(day) = written_date(value.ok().ok_or(IndexError::Damaged)?) else {
                return Ok(());
            };
            for posting in Postings::new(postings) {
                let doc = posting?.doc;
                dated.insert(doc)?;
                if span.contains(day) {
                    inside.insert(doc)?;
                }
            }
            Ok(())
        })?;
    }
    let mut in_paths = Vec::new();
    segment.each_path(|doc, path| in_paths.extend(written_date(path).map(|day| (doc, day))))?;
    for (doc, day) in in_paths {
        dated.insert(doc)?;
        if span.contains(day) {
            inside.insert(doc)?;
        }
    }
    let mut undated = segment.live(Space::Memories)?;
    undated.subtract(&dated);
    for doc in undated.iter() {
        let changed = segment.updated_at(doc)?.as_micros();
        if day_of(changed).is_some_and(|day| span.contains(day)) {
            inside.insert(doc)?;
        }
    }
    Ok(inside)
}
