//! Quipu's own archives: the newest text of each memory that is not deleted.

use std::collections::HashMap;

use serde::Deserialize;

use crate::failure::Failure;

use super::json::JsonFile;
use super::source::Collected;

/// The `format` field of an archive's first line.
pub(in crate::commands) const FORMAT: &str = "quipu-archive";

/// The version of the format that is written and read.
pub(in crate::commands) const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
    store: StoreHead,
    versions_count: usize,
}

#[derive(Deserialize)]
struct StoreHead {
    id: String,
}

#[derive(Deserialize)]
struct Line {
    memory_id: String,
    path: Option<String>,
    content: Option<String>,
    operation: String,
}

/// Adds the memories of an archive, which must be complete.
pub(super) fn collect(file: &JsonFile, into: &mut Collected) -> Result<(), Failure> {
    let name = &file.name;
    let mut lines = (1_usize..).zip(file.text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let head: Option<Head> = lines.next().and_then(|(_, line)| serde_json::from_str(line).ok());
    let Some(head) = head.filter(|head| head.format == FORMAT) else {
        return Err(Failure::usage(format!("{name} is no archive that can be read"))
            .with_hint("its first line must be as `quipu export` writes it"));
    };
    if head.version != VERSION {
        let message = format!("{name} is an archive of version {}", head.version);
        return Err(
            Failure::usage(message).with_hint(format!("this Quipu reads version {VERSION}"))
        );
    }
    let mut newest: HashMap<String, Line> = HashMap::new();
    let mut versions_count = 0;
    for (number, line) in lines {
        let wrong = |error| Failure::usage(format!("line {number} of {name}: {error}"));
        let line: Line = serde_json::from_str(line).map_err(wrong)?;
        newest.insert(line.memory_id.clone(), line);
        versions_count += 1;
    }
    if versions_count != head.versions_count {
        return Err(Failure::usage(format!(
            "{name} is not complete: it has {versions_count} of {} versions",
            head.versions_count
        ))
        .with_hint("export the store again, or copy the file again"));
    }
    into.origin = format!("archive {}", head.store.id);
    let mut lines: Vec<_> =
        newest.into_values().filter(|line| line.operation != "deleted").collect();
    lines.sort_by(|left, right| left.path.cmp(&right.path));
    for line in lines {
        match (line.path, line.content) {
            (Some(path), Some(content)) => into.add(path.clone(), path, content),
            _ => into.skip(line.memory_id, "its newest version was redacted"),
        }
    }
    Ok(())
}
