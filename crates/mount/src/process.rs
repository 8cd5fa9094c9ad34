//! Relations between processes, read from `/proc`.

use crate::nodes::ProcessId;

/// Returns whether one process is the parent of the other, or both have the same parent, as a shell
/// script and its tools do.
///
/// A process that has exited counts as related: the tool that created a file has usually exited when
/// the next one renames it.
pub(crate) fn are_relatives(one: ProcessId, other: ProcessId) -> bool {
    if one == other {
        return true;
    }
    let (Some(parent), Some(other_parent)) = (parent(one), parent(other)) else { return true };
    parent == other_parent || parent == other.0 || other_parent == one.0
}

/// Returns whether two threads belong to one process that still runs.
pub(crate) fn are_one_process(one: ProcessId, other: ProcessId) -> bool {
    let process = status(one, "Tgid:");
    process.is_some() && process == status(other, "Tgid:")
}

/// Returns whether a process that closes a file only inherited the descriptor.
///
/// A child closes inherited descriptors on exec or exit. Such a close does not mean that the text is
/// complete, as long as one of its writers is running.
pub(crate) fn is_bystander(closer: ProcessId, writers: &[ProcessId]) -> bool {
    if closer == ProcessId::UNKNOWN
        || writers.contains(&closer)
        || writers.contains(&ProcessId::UNKNOWN)
    {
        return false;
    }
    let Some(closer) = status(closer, "Tgid:") else { return false };
    let mut running = writers.iter().filter_map(|&writer| status(writer, "Tgid:")).peekable();
    running.peek().is_some() && running.all(|writer| writer != closer)
}

/// Returns the parent of a process that still runs.
fn parent(process: ProcessId) -> Option<u32> {
    status(process, "PPid:")
}

/// Returns a number out of the status of a process or thread that still runs.
fn status(process: ProcessId, key: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.0)).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn me() -> ProcessId {
        ProcessId(std::process::id())
    }

    #[test]
    fn a_child_that_wrote_nothing_is_a_bystander_while_its_parent_runs() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let other = ProcessId(child.id());
        assert!(is_bystander(other, &[me()]));
        assert!(!is_bystander(me(), &[me(), other]));
        assert!(!is_bystander(other, &[me(), other]));
        assert!(!is_bystander(other, &[me(), ProcessId::UNKNOWN]));
        assert!(!is_bystander(ProcessId::UNKNOWN, &[me()]));
        assert!(are_relatives(other, me()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_bystander(me(), &[other]));
        assert!(are_relatives(other, me()));
    }

    #[test]
    fn another_thread_of_the_writer_is_no_bystander() {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        for task in tasks {
            let number = task.unwrap().file_name().into_string().unwrap().parse().unwrap();
            assert!(!is_bystander(ProcessId(number), &[me()]));
        }
    }
}
