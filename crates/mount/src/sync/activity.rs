//! Which files are being written, as far as file system events tell.
//!
//! A program opens a file, writes it in pieces and closes it. A sync in between would store an
//! empty text or half of one. Where the system reports when a file is closed (inotify), that event
//! is awaited. Elsewhere, and for files that were opened before the watch began, a file counts as
//! complete when it has not changed for [`SETTLE_TIME`].
//!
//! A global debounce is not enough: one program that writes all the time would either hold up every
//! other file or have its own files stored half-written. So each file settles on its own.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode};
use notify::{Event, EventKind};
use unicode_normalization::UnicodeNormalization as _;

/// How long a file must be unchanged to count as complete, unless it is known to be open.
pub(super) const SETTLE_TIME: Duration = Duration::from_millis(500);
/// How long after the last write a file that stays open is synced. Log writers keep files open for
/// days.
const OPEN_FILE_TIMEOUT: Duration = Duration::from_secs(5);
/// How much the clock of a file system may lag: the kernel stamps files with its tick, not with the
/// exact time.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(20);
/// How many paths are remembered. Beyond that, closed files are forgotten and their age decides.
const CLOSED_MAX: usize = 100_000;

/// What is known about recently written files.
#[derive(Debug, Default)]
pub(super) struct Activity {
    files: HashMap<String, Condition>,
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    /// It was last written at this moment and has not been closed since.
    Open(Instant),
    /// It was closed at this moment.
    Closed(Instant),
}

/// Whether a file is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    Complete,
    /// It may still be written; check again after this time.
    Unfinished(Duration),
}

impl Activity {
    /// Records an event below a folder.
    pub(super) fn note(&mut self, event: &Event, folder: &Path) {
        let mut paths = event.paths.iter().filter_map(|path| memory_path(path, folder));
        let now = Instant::now();
        match event.kind {
            EventKind::Create(CreateKind::File) | EventKind::Modify(ModifyKind::Data(_)) => {
                // Without close events an open file would never count as closed, so age decides
                // there.
                if cfg!(target_os = "linux") {
                    self.files.extend(paths.map(|path| (path, Condition::Open(now))));
                }
            }
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
                if self.files.len() >= CLOSED_MAX {
                    self.files.retain(|_, condition| matches!(condition, Condition::Open(_)));
                }
                self.files.extend(paths.map(|path| (path, Condition::Closed(now))));
            }
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => {
                // A program that has it open continues to write under the new name.
                if let (Some(from), Some(to)) = (paths.next(), paths.next()) {
                    let condition = self.files.remove(&from).unwrap_or(Condition::Closed(now));
                    self.files.insert(to, condition);
                }
            }
            EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
                for path in paths {
                    self.files.entry(path).or_insert(Condition::Closed(now));
                }
            }
            EventKind::Remove(_) => {
                for path in paths {
                    self.files.remove(&path);
                }
            }
            EventKind::Any
            | EventKind::Access(_)
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Other => {}
        }
    }

    /// Returns whether a file is complete.
    pub(super) fn completeness(&self, path: &str, file: &RecentChange) -> Completeness {
        let by_age = left(SETTLE_TIME, file.age);
        match self.files.get(path) {
            // If it changed after it was closed, it has been opened again and the event is still on
            // its way.
            Some(Condition::Closed(at)) => {
                let passed = file.scanned_at.saturating_duration_since(*at);
                if file.age + CLOCK_TOLERANCE < passed { by_age } else { Completeness::Complete }
            }
            // An empty open file is about to be written.
            Some(Condition::Open(_)) if file.size_bytes == 0 => {
                Completeness::Unfinished(OPEN_FILE_TIMEOUT)
            }
            Some(Condition::Open(since)) => left(OPEN_FILE_TIMEOUT, since.elapsed()),
            None => by_age,
        }
    }
}

/// When a file last changed, and its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentChange {
    /// The time from the change to `scanned_at`.
    pub(super) age: Duration,
    pub(super) scanned_at: Instant,
    pub(super) size_bytes: u64,
}

fn left(wanted: Duration, passed: Duration) -> Completeness {
    match wanted.checked_sub(passed) {
        Some(left) if !left.is_zero() => Completeness::Unfinished(left + CLOCK_TOLERANCE),
        Some(_) | None => Completeness::Complete,
    }
}

/// Returns the memory path of a file.
fn memory_path(file: &Path, folder: &Path) -> Option<String> {
    let inside = file.strip_prefix(folder).ok()?.to_str()?;
    Some(format!("/{inside}").nfc().collect())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use notify::event::DataChange;

    use super::*;

    fn activity(events: &[(EventKind, &[&str])]) -> Activity {
        let mut activity = Activity::default();
        for (kind, paths) in events {
            let mut event = Event::new(*kind);
            event.paths = paths.iter().map(Into::into).collect();
            activity.note(&event, Path::new("/vault"));
        }
        activity
    }

    const CREATED: EventKind = EventKind::Create(CreateKind::File);
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const RENAMED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::Both));

    fn is_complete(activity: &Activity, path: &str, size_bytes: u64) -> bool {
        let (age, scanned_at) = (Duration::from_millis(1), Instant::now());
        let file = RecentChange { age, scanned_at, size_bytes };
        activity.completeness(path, &file) == Completeness::Complete
    }

    #[test]
    fn a_file_is_complete_when_it_is_closed() {
        let (a, b) = ("/vault/a.md", "/vault/e\u{301}.md");
        assert!(!is_complete(&activity(&[(CREATED, &[a])]), "/a.md", 0));
        assert!(!is_complete(&activity(&[(CREATED, &[a]), (WRITTEN, &[a])]), "/a.md", 7));
        assert!(is_complete(&activity(&[(CREATED, &[a]), (CLOSED, &[a])]), "/a.md", 0));
        assert!(!is_complete(&activity(&[(CLOSED, &[b]), (WRITTEN, &[b])]), "/\u{e9}.md", 7));
        assert!(is_complete(&activity(&[(WRITTEN, &[b]), (CLOSED, &[b])]), "/\u{e9}.md", 7));
    }

    #[test]
    fn a_file_that_is_open_stays_so_under_another_name() {
        let names = ["/vault/a.md", "/vault/b.md"];
        let open = activity(&[(WRITTEN, &names[..1]), (RENAMED, &names)]);
        assert!(!is_complete(&open, "/b.md", 7));
        let closed = activity(&[(WRITTEN, &names[..1]), (CLOSED, &names[..1]), (RENAMED, &names)]);
        assert!(is_complete(&closed, "/b.md", 7));
    }

    #[test]
    fn a_file_without_events_is_complete_once_it_settles() {
        let nothing = Activity::default();
        assert!(!is_complete(&nothing, "/a.md", 7));
        let (age, scanned_at) = (SETTLE_TIME, Instant::now());
        let rested = RecentChange { age, scanned_at, size_bytes: 7 };
        assert_eq!(nothing.completeness("/a.md", &rested), Completeness::Complete);
    }

    #[test]
    fn a_file_that_changed_after_it_was_closed_is_open_again() {
        let closed = activity(&[(CLOSED, &["/vault/a.md"])]);
        let scanned_at = Instant::now() + Duration::from_secs(1);
        let file = RecentChange { age: Duration::from_millis(1), scanned_at, size_bytes: 0 };
        assert_ne!(closed.completeness("/a.md", &file), Completeness::Complete);
    }
}
