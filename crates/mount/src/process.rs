//! Which processes belong together.

use crate::nodes::Maker;

/// Tells whether one process started the other or both were started by the same one, as a shell
/// script and the tools that it runs are.
///
/// A process that has ended already is taken for a relative: a tool that made a file is usually
/// gone when the next one moves it.
pub(crate) fn are_relatives(one: Maker, other: Maker) -> bool {
    if one == other {
        return true;
    }
    let (Some(parent), Some(other_parent)) = (parent(one), parent(other)) else { return true };
    parent == other_parent || parent == other.0 || other_parent == one.0
}

/// Returns the parent of a process that still runs.
fn parent(process: Maker) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.0)).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}
