//! Who wrote each line of a memory.

use crate::Error;
use crate::backend::{VersionFilter, VersionQuery};
use crate::diff::Diff;
use crate::model::{Actor, MemoryId, Operation, StoreId, Timestamp, Version, VersionId, View};

use super::Engine;
use super::memories::existing_memory;
use super::versions::existing_version;

/// How many versions are looked at. Lines that are older are attributed to the oldest of them, and
/// marked.
const VERSIONS_MAX: usize = 1_000;

/// One line of a memory and the version that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlamedLine {
    /// The line, without its line break.
    pub text: String,
    /// The version.
    pub version: VersionId,
    /// Who made it.
    pub actor: Actor,
    /// When.
    pub created_at: Timestamp,
    /// Whether the line may be older than the version, because earlier ones are not kept, were redacted
    /// or are too many.
    pub precision: Precision,
}

/// Whether a line is known to come with its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// It is.
    Exact,
    /// It came with that version or an earlier one.
    AtMost,
}

impl Engine {
    /// Returns the lines of a memory with the versions that they came with.
    pub fn blame(&self, store: StoreId, memory: MemoryId) -> Result<Vec<BlamedLine>, Error> {
        self.read(|reader| {
            existing_memory(reader, store, memory, View::Basic)?;
            let filter = VersionFilter { memory: Some(memory), ..VersionFilter::default() };
            let limit = VERSIONS_MAX;
            let query = VersionQuery { filter, before: None, limit, view: View::Basic };
            let mut blame = Blame::default();
            for version in reader.versions(store, &query)?.into_iter().rev() {
                // One text at a time: together they may be a thousand times as long as a memory.
                blame.add(&existing_version(reader, store, version.id, View::Full)?);
            }
            Ok(blame.lines)
        })
    }
}

/// The lines of one version, attributed.
struct Blame {
    lines: Vec<BlamedLine>,
    text: String,
    /// That of lines which the next version adds.
    precision: Precision,
}

impl Default for Blame {
    /// Returns what is known before the oldest version that is kept: nothing, unless that created the
    /// memory.
    fn default() -> Self {
        Self { lines: Vec::new(), text: String::new(), precision: Precision::AtMost }
    }
}

impl Blame {
    /// Goes on to the next version.
    fn add(&mut self, version: &Version) {
        if version.operation == Operation::Created {
            self.precision = Precision::Exact;
        }
        let new = match &version.content {
            Some(content) => content.as_str(),
            None if version.redaction.is_some() => {
                // Whether this version or the next one brought a line cannot be told anymore.
                self.precision = Precision::AtMost;
                return;
            }
            None => "",
        };
        let old = std::mem::take(&mut self.lines);
        self.lines = carried(&Diff::new(&self.text, new), old, version, self.precision);
        new.clone_into(&mut self.text);
        self.precision = Precision::Exact;
    }
}

/// Returns the lines of a new text: those that were kept with their versions, the others with this one.
fn carried(
    diff: &Diff,
    old: Vec<BlamedLine>,
    version: &Version,
    precision: Precision,
) -> Vec<BlamedLine> {
    let mut old = old.into_iter();
    let (mut lines, mut position) = (Vec::new(), 0);
    for (removed, added) in diff.changes() {
        lines.extend(old.by_ref().take(removed.start - position));
        old.by_ref().take(removed.len()).for_each(drop);
        position = removed.end;
        lines.extend(diff.new_lines(added.clone()).map(|line| BlamedLine {
            text: line.trim_end_matches(['\n', '\r']).to_owned(),
            version: version.id,
            actor: version.actor.clone(),
            created_at: version.created_at,
            precision,
        }));
    }
    lines.extend(old);
    lines
}
