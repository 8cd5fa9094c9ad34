//! What a redaction does to the files of hooks.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_core::backend::Erasure;
use quipu_core::derived::{HeldTraces, Traces};
use quipu_core::model::ScannedFile;
use quipu_core::{Error, ErrorKind};
use serde_json::Value;

use super::{
    DIRECTORY, Hold, HookFiles, LOCK, LOG, MOVING, MOVING_LOCK, OLD_LOG, RULES, SESSIONS, SPOOL,
    locked, overwrite,
};

/// How long a redaction waits for hooks. They hold a lock for a second at most.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a file is looked at. No file of ours grows longer.
const FILE_SIZE_BYTES_MAX: u64 = 16 * 1024 * 1024;

impl HookFiles {
    fn has_files(&self) -> bool {
        self.data.join(DIRECTORY).is_dir()
    }

    fn is_copy(entry: &fs::DirEntry) -> bool {
        entry.file_name().to_string_lossy().starts_with(RULES)
    }
}

impl Traces for HookFiles {
    fn hold(&self) -> Result<Box<dyn HeldTraces>, Error> {
        // Without files there is nothing to hold: what is written from now on is new.
        let lock = if self.has_files() {
            Some(self.lock(MOVING_LOCK, Hold::Alone, TIMEOUT).map_err(busy)?)
        } else {
            None
        };
        Ok(Box::new(Held { files: self.clone(), _lock: lock }))
    }

    fn erase_copies(&self) -> Result<(), Error> {
        if !self.has_files() {
            return Ok(());
        }
        let _lock = self.lock(LOCK, Hold::Alone, TIMEOUT).map_err(busy)?;
        for entry in fs::read_dir(self.data.join(DIRECTORY)).map_err(failed)?.flatten() {
            if Self::is_copy(&entry) {
                erased(&entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// The files while nobody moves lines from one of them into the database.
struct Held {
    files: HookFiles,
    _lock: Option<File>,
}

impl HeldTraces for Held {
    fn count(&self, is_match: &dyn Fn(&str) -> bool) -> Result<usize, Error> {
        let lines = |text: String| text.lines().filter(|line| line_matches(line, is_match)).count();
        let mut count = 0;
        for name in [LOG, OLD_LOG, SPOOL, MOVING] {
            count += text(&self.files.path(name)).map(lines).map_err(failed)?;
        }
        for path in self.states().map_err(failed)? {
            count += usize::from(state_matches(&path, is_match).map_err(failed)?);
        }
        Ok(count)
    }

    fn forget(&self, is_match: &dyn Fn(&str) -> bool) -> Result<Erasure, Error> {
        if !self.files.has_files() {
            return Ok(Erasure::default());
        }
        let mut scanned = Vec::new();
        let mut note = |path: &Path| {
            let name = path.strip_prefix(&self.files.data).unwrap_or(path).display().to_string();
            scanned.push(ScannedFile { name, size_bytes: super::size(path) });
        };
        let lock = self.files.lock(LOCK, Hold::Alone, TIMEOUT).map_err(busy)?;
        for name in [LOG, OLD_LOG, SPOOL, MOVING] {
            let path = self.files.path(name);
            if path.exists() {
                forget_lines(&path, is_match).map_err(failed)?;
                note(&path);
            }
        }
        drop(lock);
        for path in self.states().map_err(failed)? {
            forget_state(&path, is_match).map_err(failed)?;
            if path.exists() {
                note(&path);
            }
        }
        Ok(Erasure { scanned, ..Erasure::default() })
    }
}

impl Held {
    fn states(&self) -> io::Result<Vec<PathBuf>> {
        match fs::read_dir(self.files.path(SESSIONS)) {
            Ok(entries) => {
                let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
                paths.sort();
                Ok(paths)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether a line holds the text, as it is written or behind the escapes of JSON. What is not JSON
/// was not written to its end, and nobody reads it: it may be anything.
fn line_matches(line: &str, is_match: &dyn Fn(&str) -> bool) -> bool {
    match serde_json::from_str::<Value>(line) {
        Ok(value) => is_match(line) || value_matches(&value, is_match),
        Err(_) => true,
    }
}

fn value_matches(value: &Value, is_match: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_match(text),
        Value::Array(items) => items.iter().any(|item| value_matches(item, is_match)),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| is_match(name) || value_matches(value, is_match))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn forget_lines(path: &Path, is_match: &dyn Fn(&str) -> bool) -> io::Result<()> {
    let old = text(path)?;
    let kept = old.lines().filter(|line| !line_matches(line, is_match));
    let new: String = kept.flat_map(|line| [line, "\n"]).collect();
    if new == old {
        return Ok(());
    }
    overwrite(&mut File::options().write(true).open(path)?, new.as_bytes())
}

fn state_matches(path: &Path, is_match: &dyn Fn(&str) -> bool) -> io::Result<bool> {
    // The name has the host's id of the session.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = text(path)?;
    Ok(is_match(&name) || (!text.is_empty() && line_matches(&text, is_match)))
}

/// Takes the texts that match out of what is remembered of a session; the rest stays, since a transcript
/// would be recorded again without it. Hooks lock the file itself, and so does this.
fn forget_state(path: &Path, is_match: &dyn Fn(&str) -> bool) -> io::Result<()> {
    let mut file = match File::options().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    locked(&file, Hold::Alone, TIMEOUT)?;
    if !state_matches(path, is_match)? {
        return Ok(());
    }
    let mut state = serde_json::from_str(&text(path)?).unwrap_or(Value::Null);
    take_out(&mut state, is_match);
    let is_named = is_match(&path.file_name().unwrap_or_default().to_string_lossy());
    if state.is_null() || is_named || value_matches(&state, is_match) {
        overwrite(&mut file, b"")?;
        return fs::remove_file(path);
    }
    overwrite(&mut file, state.to_string().as_bytes())
}

fn take_out(value: &mut Value, is_match: &dyn Fn(&str) -> bool) {
    match value {
        Value::Array(items) => items.retain(|item| !value_matches(item, is_match)),
        Value::Object(fields) => fields.values_mut().for_each(|field| take_out(field, is_match)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the text of a file; empty if there is none.
fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(FILE_SIZE_BYTES_MAX).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Overwrites a file and removes it.
fn erased(path: &Path) -> io::Result<()> {
    overwrite(&mut File::options().write(true).open(path)?, b"")?;
    fs::remove_file(path)
}

fn busy(error: io::Error) -> Error {
    let is_busy = error.kind() == io::ErrorKind::WouldBlock;
    let kind = if is_busy { ErrorKind::StorageBusy } else { ErrorKind::StorageUnavailable };
    Error::new(kind, format!("the files of hooks cannot be locked: {error}")).with_source(error)
}

fn failed(error: io::Error) -> Error {
    let message = format!("the files of hooks cannot be rewritten: {error}");
    Error::new(ErrorKind::StorageUnavailable, message).with_source(error)
}
