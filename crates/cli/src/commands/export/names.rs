//! Names that no export writes: git would obey the files or refuse them, or no file can have them.

/// How long a name may be on the usual file systems.
const NAME_SIZE_BYTES_MAX: usize = 255;

/// Returns why a memory at this path cannot be a file of an export, if it cannot.
///
/// A folder may be or become a repository, and a repository may be checked out anywhere, so this
/// goes by every spelling that some file system takes for `.git`.
pub(super) fn refused(path: &str) -> Option<&'static str> {
    let names = || path.split(['/', '\\']);
    if names().any(|name| {
        means(name, ".git", "git~", "1") || means(name, ".gitmodules", "gitmod~", "1234")
    }) {
        return Some("a file there would be part of git's own, which programs obey");
    }
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    if folders.split('/').any(|name| means(name, ".gitattributes", "gitatt~", "1234")) {
        return Some("git takes no folder of the name `.gitattributes`");
    }
    let is_too_long = path.split('/').any(|name| name.len() > NAME_SIZE_BYTES_MAX);
    is_too_long.then_some("a name in its path is longer than the 255 bytes that a file's may have")
}

/// Tells whether a name is one of git's own on some system: Windows leaves out dots and spaces at
/// the end and what follows a colon, and has short names that begin so and end with one of these
/// digits. Paths hold no signs that other systems ignore.
fn means(name: &str, own: &str, short: &str, digits: &str) -> bool {
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
    fn names_that_no_file_can_have_are_refused() {
        let longest = "é".repeat(127) + "x";
        assert_eq!(refused(&format!("/a/{longest}/b")), None);
        assert!(refused(&format!("/a/{longest}x/b")).is_some());
    }
}
