//! What this host lets tests do.

use std::fs;
use std::io::{self, Write as _};

use rustix::process::getuid;

/// Set by `./test`, which must pass on every machine: what cannot run there is skipped with a loud line.
const MAY_SKIP_VARIABLE: &str = "QUIPU_TEST_MAY_SKIP";

/// Returns whether a test can run, given why not.
///
/// A test that did nothing would count as passed, because the harness of `cargo test` cannot ignore a
/// test once it runs. So it fails, unless the environment says that it may be skipped.
pub(crate) fn is_possible(why_not: Option<&str>) -> bool {
    let Some(why) = why_not else { return true };
    let may_skip = std::env::var_os(MAY_SKIP_VARIABLE).is_some();
    assert!(may_skip, "cannot run here: {why} (`{MAY_SKIP_VARIABLE}=1` skips the test)");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // The harness captures what `eprintln!` prints.
    writeln!(io::stderr(), "SKIPPED: {test}: {why}").expect("the standard error is open");
    false
}

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
