//! What this host lets tests do. What it does not is left out with a loud line, never failed.

use std::fs;

use rustix::process::getuid;

/// The capability that mounting needs, as a bit of `CapEff`.
const CAP_SYS_ADMIN: u32 = 21;

/// Returns why this process cannot mount.
pub(crate) fn why_not_mount() -> Option<String> {
    if !getuid().is_root() {
        return Some("it needs root".to_owned());
    }
    if let Err(error) = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        return Some(format!("/dev/fuse cannot be opened: {error}"));
    }
    // In a container, root often has the device but not the right to mount.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    let is_capable = effective.is_none_or(|bits| bits & (1 << CAP_SYS_ADMIN) != 0);
    (!is_capable).then(|| "it needs the capability CAP_SYS_ADMIN".to_owned())
}

/// Returns why a tool cannot be run.
pub(crate) fn why_not_run(tool: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|directory| directory.join(tool).exists());
    (!is_there).then(|| format!("`{tool}` is not installed; `./test mount` installs it"))
}
