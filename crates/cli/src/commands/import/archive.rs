//! Quipu's own archives: the newest text of each memory that was not deleted.

use std::collections::HashMap;

use serde::Deserialize;

use crate::failure::Failure;

use super::source::Collected;

/// What the first line of an archive calls itself.
pub(in crate::commands) const FORMAT: &str = "quipu-archive";

#[derive(Deserialize)]
struct Line {
    memory_id: Option<String>,
    path: Option<String>,
    content: Option<String>,
    #[serde(default)]
    operation: String,
}

/// Adds the memories of an archive as they were when it was written.
pub(super) fn collect(text: &str, into: &mut Collected) -> Result<(), Failure> {
    let mut newest: HashMap<String, Line> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |error| Failure::usage(format!("line {number} of the archive: {error}"));
        let line: Line = serde_json::from_str(line).map_err(wrong)?;
        if let Some(memory) = &line.memory_id {
            newest.insert(memory.clone(), line);
        }
    }
    let mut lines: Vec<_> = newest.into_iter().filter(|it| it.1.operation != "deleted").collect();
    lines.sort_by(|left, right| left.1.path.cmp(&right.1.path));
    for (memory, line) in lines {
        match (line.path, line.content) {
            (Some(path), Some(content)) => into.add(path.clone(), path, content),
            _ => into.skip(memory, "its newest version was redacted"),
        }
    }
    Ok(())
}
