//! Names that no export writes: git would interpret or reject the files, or they are too long.

/// The maximum length of a file name on common file systems.
const NAME_SIZE_BYTES_MAX: usize = 255;

/// Returns why a memory at this path cannot be exported as a file, if so.
///
/// A folder may be or become a repository, and a repository may be checked out anywhere, so this
/// covers every spelling that some file system treats as `.git`.
pub(super) fn refused(path: &str) -> Option<&'static str> {
    let names = || path.split(['/', '\\']);
    if names().any(|name| {
        is_alias(name, ".git", "git~", "1") || is_alias(name, ".gitmodules", "gitmod~", "1234")
    }) {
        return Some("git and other programs would execute or interpret the file");
    }
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    if folders.split('/').any(|name| is_alias(name, ".gitattributes", "gitatt~", "1234")) {
        return Some("git does not accept a folder named `.gitattributes`");
    }
    let is_too_long = path.split('/').any(|name| name.len() > NAME_SIZE_BYTES_MAX);
    is_too_long.then_some("a name in its path is longer than the 255 bytes of a file name")
}

/// Returns whether a name is one of git's own on some system. Windows ignores trailing dots and spaces
/// and everything after a colon, and has 8.3 names that start with `short` and end with one of
/// `digits`. Characters that other systems ignore cannot occur in paths.
fn is_alias(name: &str, own: &str, short: &str, digits: &str) -> bool {
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let name = name.to_ascii_lowercase();
    let is_short = |end: &str| end.len() == 1 && digits.contains(end);
    name == own || name.strip_prefix(short).is_some_and(is_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_git_is_refused() {
        let spellings = [
            ".git/config",
            "/a/.GIT/hooks/post-checkout",
            "git~1/config",
            "x/.git. ./y",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            "a\\.git\\config",
            "a/.git",
            "/.gitmodules",
            "a/GITMOD~1",
            "/.gitattributes/x",
            "/a/.GitAttributes /b/c",
        ];
        for path in spellings {
            assert!(refused(path).is_some(), "{path}");
        }
        let others = [
            ".gitignore",
            "/.gitattributes",
            "a/.github/x",
            "git/config",
            "git~2",
            "git~10",
            "x.git/y",
            "/a/b.md",
        ];
        for path in others {
            assert_eq!(refused(path), None, "{path}");
        }
    }

    #[test]
    fn names_too_long_for_a_file_are_refused() {
        let longest = "é".repeat(127) + "x";
        assert_eq!(refused(&format!("/a/{longest}/b")), None);
        assert!(refused(&format!("/a/{longest}x/b")).is_some());
    }
}
