//! The days that a memory is of.
//!
//! They are read when a memory is indexed: a search for `last week` would otherwise read the title and the
//! path of every memory of the store.

use quipu_core::model::Memory;
use quipu_notes::{Date, day_of, written_date};

use crate::index::{Day, DayKind, Mark, Space};

/// The fields of the frontmatter that say when something was. An event was rather on the day of the first
/// ones than on that of the others.
const EVENT_FIELDS: [&str; 2] = ["date", "day"];
const OTHER_FIELDS: [&str; 4] = ["published", "due", "created", "created_at"];

/// Returns the terms for the days of a memory with this title and these fields in its frontmatter.
///
/// They are those that its frontmatter, its title or its path says. Only without any of these are they the
/// days on which it was created and last changed: notes that were imported last week are of other days. The
/// versions between these two are unknown here.
pub(super) fn day_marks(memory: &Memory, title: &str, fields: &[(String, String)]) -> Vec<Vec<u8>> {
    let of = |names: &'static [&str]| {
        let values =
            names.iter().flat_map(|name| fields.iter().filter(move |(key, _)| key == name));
        values.map(|(_, value)| value.as_str())
    };
    let texts = std::iter::once(title)
        .chain(of(&EVENT_FIELDS))
        .chain([memory.path.as_str()])
        .chain(of(&OTHER_FIELDS));
    let written: Vec<_> = texts.filter_map(written_date).collect();
    let mark = |kind, day: Date| {
        let day = Day::new(day.year(), day.month(), day.day());
        Mark::Day(kind, day).term(Space::Memories)
    };
    let Some(event) = written.first().copied() else {
        let moments = [memory.created_at, memory.updated_at].map(|at| day_of(at.as_micros()));
        return moments.into_iter().flatten().map(|day| mark(DayKind::Changed, day)).collect();
    };
    let days = written.into_iter().map(|day| mark(DayKind::Written, day));
    days.chain([mark(DayKind::Event, event)]).collect()
}
