//! Paths as texts.
//!
//! What a path means depends on links and mounts that a text does not show. These functions take out
//! what a text does show: `.` and `..`, repeated slashes, `~`, and everything after a NUL, which is
//! where the system would stop reading.

use unicode_normalization::UnicodeNormalization as _;

/// The longest path that is looked at; Linux accepts 4,096 bytes.
const PATH_CHARS_MAX: usize = 4096;

/// Returns an absolute path without `.`, `..` and repeated slashes.
///
/// `directory` is where a relative path starts, and `home` what a leading `~` stands for; empty if they
/// are unknown.
pub fn resolved(path: &str, directory: &str, home: &str) -> String {
    let path = path.split('\0').next().unwrap_or_default();
    let path: String = path.chars().take(PATH_CHARS_MAX).collect();
    let whole = match path.strip_prefix('~') {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
            format!("{home}{rest}")
        }
        _ if path.starts_with('/') => path,
        _ => format!("{directory}/{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns a text as it is compared: composed (NFC) and in lower case.
///
/// File systems of macOS and Windows ignore case, and some return decomposed names. To ignore both
/// everywhere lets a rule catch more than it names on Linux, where `README` and `readme` are two files;
/// the other way around it could be evaded.
pub fn normalized(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfc().flat_map(char::to_lowercase).nfc().collect()
}

/// Returns a path relative to a root, if it lies below it.
pub(crate) fn relative<'p>(path: &'p str, root: &str) -> Option<&'p str> {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detours_are_taken_out() {
        let resolve = |path| resolved(path, "/work/app", "/home/ada");
        assert_eq!(resolve("a//b/./c"), "/work/app/a/b/c");
        assert_eq!(resolve("../secret"), "/work/secret");
        assert_eq!(resolve("../../../../../etc/passwd"), "/etc/passwd");
        assert_eq!(resolve("/x/../y"), "/y");
        assert_eq!(resolve("~/.ssh/id"), "/home/ada/.ssh/id");
        assert_eq!(resolve("~other/x"), "/work/app/~other/x");
        assert_eq!(resolve("a.sql\0.txt"), "/work/app/a.sql");
        assert_eq!(resolve(""), "/work/app");
    }

    #[test]
    fn case_and_composition_are_ignored() {
        assert_eq!(normalized("ReadMe"), "readme");
        assert_eq!(normalized("Cafe\u{301}"), normalized("CAFÉ"));
        assert_eq!(normalized("é"), "é");
    }

    #[test]
    fn a_path_is_relative_to_what_is_above_it() {
        assert_eq!(relative("/a/b/c", "/a/b"), Some("c"));
        assert_eq!(relative("/a/bc", "/a/b"), None);
        assert_eq!(relative("/a/b", "/a/b/"), None);
        assert_eq!(relative("/a", "/"), Some("a"));
    }
}
