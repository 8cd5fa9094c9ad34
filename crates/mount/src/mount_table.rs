//! Finds, unmounts and cleans up Quipu's mounts by the kernel's mount table.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

/// How long a mount has to answer before it counts as alive but unresponsive.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns Quipu's mount points at or below a directory, in mount order.
pub fn mounted_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let root = absolute(root)?;
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let points = table.lines().filter_map(quipu_point);
    Ok(points.filter(|point| point.starts_with(&root)).collect())
}

/// Detaches mounts of Quipu whose process is gone, and returns their mount points.
pub fn clear_stale(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut points = mounted_below(root)?;
    points.retain(|point| is_stale(point));
    points.reverse();
    for point in &points {
        detach(point)?;
    }
    Ok(points)
}

/// Unmounts what Quipu has mounted at or below a directory, and returns the mount points.
///
/// A mount that is in use makes this fail, unless its process is gone.
pub fn unmount_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut cleared = clear_stale(root)?;
    let mut points = mounted_below(root)?;
    points.reverse();
    for point in &points {
        match unmount(point, UnmountFlags::empty()) {
            Err(Errno::PERM) => helper(point, "-u")?,
            // Its process exited after the first of its mounts was removed.
            Err(Errno::INVAL | Errno::NOENT) => {}
            done => done?,
        }
    }
    cleared.append(&mut points);
    Ok(cleared)
}

/// Detaches a mount lazily: it disappears at once, and open files stay usable.
pub(crate) fn detach(point: &Path) -> io::Result<()> {
    match unmount(point, UnmountFlags::DETACH) {
        Err(Errno::PERM) => helper(point, "-uz"),
        // A mount above it was detached, and this one with it.
        Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}

/// Unmounts with `fusermount3`, for unprivileged users.
fn helper(point: &Path, how: &str) -> io::Result<()> {
    let mut command = Command::new("fusermount3");
    let status = command.arg(how).arg("--").arg(point).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(Errno::BUSY.into()) }
}

/// Returns whether the process behind a mount is gone.
///
/// `stat` is not enough: the kernel answers it from its cache long after the process has died. It
/// never caches `statfs`, but a stopped process does not answer that at all, so the wait is bounded
/// and a mount that does not answer counts as alive.
fn is_stale(point: &Path) -> bool {
    let (answer, answered) = channel();
    let point = point.to_owned();
    thread::spawn(move || answer.send(rustix::fs::statfs(&point).err()));
    answered.recv_timeout(ANSWER_TIMEOUT) == Ok(Some(Errno::NOTCONN))
}

/// Returns the absolute path with the links of its parent resolved. The last component is left alone:
/// it may be a dead mount, where every call fails.
fn absolute(root: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(root)?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Ok(absolute);
    };
    Ok(parent.canonicalize().map_or(absolute.clone(), |parent| parent.join(name)))
}

/// Returns the mount point in a line of the mount table, if it is one of Quipu's.
fn quipu_point(line: &str) -> Option<PathBuf> {
    let (mount, file_system) = line.split_once(" - ")?;
    // The kind is `fuse.quipu` if a helper program has mounted it.
    let is_ours =
        ["fuse quipu ", "fuse.quipu quipu "].iter().any(|ours| file_system.starts_with(ours));
    is_ours.then_some(())?;
    Some(unescaped(mount.split(' ').nth(4)?))
}

/// Decodes octal escapes, such as `\040` for a space.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = (byte == b'\\').then(|| after.split_at_checked(3)).flatten();
        let escaped = digits.and_then(|(digits, after)| {
            let digits = str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 8).ok()?, after))
        });
        let (byte, after) = escaped.unwrap_or((byte, after));
        bytes.push(byte);
        rest = after;
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_of_quipu_are_found() {
        let ours = "36 35 0:40 / /mnt/my\\040memory rw,nosuid - fuse.quipu quipu rw,user_id=0";
        assert_eq!(quipu_point(ours), Some(PathBuf::from("/mnt/my memory")));
        let ours = "36 35 0:40 / /mnt/memory rw,nosuid - fuse quipu rw,user_id=0";
        assert_eq!(quipu_point(ours), Some(PathBuf::from("/mnt/memory")));
        let other = "36 35 0:40 / /mnt/x rw - fuse.sshfs quipu rw";
        assert_eq!(quipu_point(other), None);
        assert_eq!(quipu_point("nonsense"), None);
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stays() {
        assert_eq!(unescaped("/a\\134b"), PathBuf::from("/a\\b"));
        assert_eq!(unescaped("/a\\9"), PathBuf::from("/a\\9"));
    }
}
