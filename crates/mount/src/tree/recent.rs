//! Which files have changed moments ago behind the kernel's back.
//!
//! Before a cached read, the kernel asks for the size if that was invalidated. If the next invalidation
//! arrives before the answer, it ignores the answer and reads with the size that it had: of a longer
//! text the end is missing, a shorter one is filled up with NULs. That is how it guards against outdated
//! answers, so asking once more does not help. Reads that bypass its cache depend on no size. So opens
//! of a file that has just changed bypass it, because the next change may be on its way.
//!
//! This is known by path. The tempting place for it is the node, but a name that is invalidated gets
//! another node with the next lookup.

use std::collections::HashMap;
use std::time::Duration;

use quipu_core::model::{MemoryPath, Timestamp};

/// How long a change is recent.
const RECENT_FOR: Duration = Duration::from_secs(5);
/// How many paths are known; if more have changed, all count as changed.
const PATHS_MAX: usize = 1024;

/// Recent changes.
#[derive(Debug, Default)]
pub(super) struct RecentChanges {
    of_paths: HashMap<MemoryPath, Timestamp>,
    /// When any path last changed, which answers most questions.
    newest: Option<Timestamp>,
    /// When everything may have changed.
    of_all: Option<Timestamp>,
}

impl RecentChanges {
    pub(super) fn note(&mut self, path: MemoryPath, now: Timestamp) {
        if self.of_paths.len() >= PATHS_MAX {
            self.of_paths.retain(|_, at| is_recent(Some(*at), now));
        }
        if self.of_paths.len() >= PATHS_MAX {
            self.note_all(now);
        } else {
            self.of_paths.insert(path, now);
        }
        self.newest = Some(now);
    }

    pub(super) fn note_all(&mut self, now: Timestamp) {
        self.of_paths.clear();
        self.of_all = Some(now);
        self.newest = Some(now);
    }

    /// Returns whether anything has changed recently.
    pub(super) fn is_any(&self, now: Timestamp) -> bool {
        is_recent(self.newest, now)
    }

    /// Returns whether what is at a path has changed recently.
    pub(super) fn contains(&self, path: &MemoryPath, now: Timestamp) -> bool {
        is_recent(self.of_all, now) || is_recent(self.of_paths.get(path).copied(), now)
    }
}

fn is_recent(at: Option<Timestamp>, now: Timestamp) -> bool {
    at.is_some_and(|at| at.plus(RECENT_FOR) >= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: usize) -> MemoryPath {
        MemoryPath::parse(&format!("/{number}")).unwrap()
    }

    #[test]
    fn a_change_is_recent_for_a_moment() {
        let (mut recent, now) = (RecentChanges::default(), Timestamp::from_micros(0));
        recent.note(path(1), now);
        assert!(recent.is_any(now) && recent.contains(&path(1), now));
        assert!(!recent.contains(&path(2), now));
        let later = now.plus(RECENT_FOR * 2);
        assert!(!recent.is_any(later) && !recent.contains(&path(1), later));
    }

    #[test]
    fn more_changes_than_are_known_are_changes_of_everything() {
        let (mut recent, now) = (RecentChanges::default(), Timestamp::from_micros(0));
        for number in 0..PATHS_MAX {
            recent.note(path(number), now);
        }
        assert!(!recent.contains(&path(PATHS_MAX), now));
        recent.note(path(PATHS_MAX), now);
        assert!(recent.contains(&path(PATHS_MAX + 1), now));

        let later = now.plus(RECENT_FOR * 2);
        for number in 0..PATHS_MAX {
            recent.note(path(number), later);
        }
        assert!(!recent.contains(&path(PATHS_MAX), later), "the old ones made room");
    }
}
