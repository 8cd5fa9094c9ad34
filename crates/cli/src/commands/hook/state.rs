//! What hooks remember of a session of a host, from one event to the next.
//!
//! One small file for each session, below the data directory. Two hooks of a session may run at the same
//! time, so each takes the lock of the file for as long as it looks and writes. The lock goes with the
//! process, and nobody waits for it for long: without it, a hook does less.

use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use quipu_core::clock::{Clock as _, SystemClock};
use quipu_core::model::MemoryId;
use serde::{Deserialize, Serialize};

use super::Hook;
use super::input::Input;
use crate::hook_files::HookFiles;

/// How long a hook waits for another one of its session.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// How many memories are remembered as shown; beyond, the oldest may be shown again.
const SHOWN_MAX: usize = 1000;
/// How many files are remembered as edited.
const EDITED_MAX: usize = 20;
const STATE_SIZE_BYTES_MAX: u64 = 256 * 1024;

/// How many sessions are remembered, and for how long.
const SESSIONS_MAX: usize = 500;
const SESSIONS_KEPT_FOR: Duration = Duration::from_hours(14 * 24);

/// What is known of a session.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct State {
    /// The memories that the model has been shown.
    pub(super) shown: Vec<MemoryIdText>,
    /// Files that the agent has edited.
    pub(super) edited: Vec<String>,
    /// When it edited the first of them since it was last reminded, in microseconds.
    pub(super) edited_at: Option<i64>,
    /// Whether the agent was reminded of its progress log.
    pub(super) is_reminded: bool,
    /// How much of the transcript is recorded, in bytes.
    pub(super) transcript_offset: u64,
    /// The session that it is recorded in.
    pub(super) session: Option<String>,
}

/// An id as text; what is none is ignored.
pub(super) type MemoryIdText = String;

impl State {
    pub(super) fn shown_ids(&self) -> Vec<MemoryId> {
        self.shown.iter().filter_map(|id| id.parse().ok()).collect()
    }

    pub(super) fn note_shown(&mut self, ids: impl Iterator<Item = MemoryId>) {
        self.shown.extend(ids.map(|id| id.to_string()));
        let extra_count = self.shown.len().saturating_sub(SHOWN_MAX);
        self.shown.drain(..extra_count);
    }

    pub(super) fn note_edit(&mut self, paths: &[String]) {
        self.edited_at.get_or_insert_with(|| SystemClock.now().as_micros());
        for path in paths {
            if self.edited.len() < EDITED_MAX && !self.edited.contains(path) {
                self.edited.push(path.chars().take(1000).collect());
            }
        }
    }
}

/// The state of a session, locked.
#[derive(Debug)]
pub(super) struct Locked {
    file: File,
    pub(super) state: State,
}

impl Locked {
    /// Writes the state and releases it.
    pub(super) fn write(mut self) {
        self.save();
    }

    /// Writes the state. A process that dies in between leaves a file that is not valid, and so a session
    /// without a past, which shows something twice.
    pub(super) fn save(&mut self) {
        let Ok(text) = serde_json::to_vec(&self.state) else { return };
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(&text));
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        written.and_then(|()| self.file.set_len(length)).unwrap_or_default();
    }
}

/// Returns the state of the session, locked; `None` if that is not possible now.
pub(super) fn lock(hook: &Hook<'_>, input: &Input) -> Option<Locked> {
    if input.session.is_empty() {
        return None;
    }
    lock_of(&hook.context.settings.data, (input.host_name(), &input.session))
}

/// Returns the state of a session by its host and its id, locked.
pub(super) fn lock_of(data: &Path, (host, session): (&str, &str)) -> Option<Locked> {
    if !data.is_dir() {
        return None;
    }
    let directory = HookFiles::of(data).sessions();
    fs::create_dir_all(&directory).ok()?;
    let path = directory.join(file_name(host, session));
    let file =
        File::options().create(true).truncate(false).read(true).write(true).open(path).ok()?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    while let Err(error) = file.try_lock() {
        match error {
            TryLockError::WouldBlock if Instant::now() < deadline => thread::sleep(LOCK_PAUSE),
            TryLockError::WouldBlock | TryLockError::Error(_) => return None,
        }
    }
    let mut text = Vec::new();
    (&file).take(STATE_SIZE_BYTES_MAX).read_to_end(&mut text).ok()?;
    let state = serde_json::from_slice(&text).unwrap_or_default();
    Some(Locked { file, state })
}

/// Changes the state of the session, if it can be locked.
pub(super) fn change(hook: &Hook<'_>, input: &Input, work: impl FnOnce(&mut State)) {
    if let Some(mut locked) = lock(hook, input) {
        work(&mut locked.state);
        locked.write();
    }
}

/// Returns a name that no id of a session can lead out of the directory with.
fn file_name(host: &str, session: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let plain: String = session.chars().filter(is_plain).take(80).collect();
    // FNV-1a: ids that differ in other letters get other names.
    let hash = session.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{host}-{plain}-{hash:016x}.json")
}

/// Removes the states of sessions that are long over.
#[expect(clippy::disallowed_methods, reason = "compared with times of the file system")]
pub(super) fn clean(data: &Path) {
    let Ok(entries) = fs::read_dir(HookFiles::of(data).sessions()) else { return };
    let now = SystemTime::now();
    let mut files: Vec<(Duration, PathBuf)> = entries
        .flatten()
        .take(4 * SESSIONS_MAX)
        .filter_map(|entry| {
            let modified = entry.metadata().ok()?.modified().ok()?;
            Some((now.duration_since(modified).unwrap_or_default(), entry.path()))
        })
        .collect();
    files.sort();
    for (place, (age, path)) in files.iter().enumerate() {
        if place >= SESSIONS_MAX || *age > SESSIONS_KEPT_FOR {
            // Another hook may have removed it already.
            fs::remove_file(path).unwrap_or_default();
        }
    }
}
