//! Where each platform has the directories of programs, and how it opens a URL.

use std::path::PathBuf;

use crate::failure::Failure;

/// Returns the command that opens a URL. Without a display, `xdg-open` may take over the terminal.
pub(super) fn browser<'v>(variable: &impl Fn(&str) -> Option<&'v String>) -> Option<String> {
    let default = if cfg!(target_os = "macos") {
        Some("open")
    } else {
        let display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().find_map(|name| variable(name));
        display.map(|_| "xdg-open")
    };
    variable("BROWSER").cloned().or_else(|| default.map(str::to_owned))
}

/// Returns the platform's data directory for Quipu.
pub(super) fn default_data<'v>(
    variable: &impl Fn(&str) -> Option<&'v String>,
) -> Result<PathBuf, Failure> {
    let from = |name: &str| variable(name).map(PathBuf::from);
    let base = if cfg!(windows) {
        from("APPDATA")
    } else if cfg!(target_os = "macos") {
        from("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        from("XDG_DATA_HOME").or_else(|| from("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("quipu")).ok_or_else(|| {
        Failure::usage("there is no home directory for the data")
            .with_hint("choose a data directory with `--data` or `QUIPU_DATA`")
    })
}

/// Returns the user's home directory.
pub(super) fn home<'v>(variable: &impl Fn(&str) -> Option<&'v String>) -> Option<PathBuf> {
    variable(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(PathBuf::from)
}

/// Returns the platform's directory for configuration.
pub(super) fn config_home<'v>(variable: &impl Fn(&str) -> Option<&'v String>) -> Option<PathBuf> {
    if cfg!(windows) {
        variable("APPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home(variable).map(|home| home.join("Library/Application Support"))
    } else {
        let chosen = variable("XDG_CONFIG_HOME").map(PathBuf::from);
        chosen.or_else(|| home(variable).map(|home| home.join(".config")))
    }
}

/// Returns the platform's directory for what can be made again.
pub(super) fn cache_home<'v>(variable: &impl Fn(&str) -> Option<&'v String>) -> Option<PathBuf> {
    if cfg!(windows) {
        variable("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home(variable).map(|home| home.join("Library/Caches"))
    } else {
        let chosen = variable("XDG_CACHE_HOME").map(PathBuf::from);
        chosen.or_else(|| home(variable).map(|home| home.join(".cache")))
    }
}
