//! Names that no export writes, since git would obey the files.

/// Returns why a memory at this path cannot be a file of an export, if it cannot.
///
/// A folder may be or become a repository, and a repository may be checked out anywhere, so this
/// goes by every spelling that some file system takes for `.git`.
pub(super) fn refused(path: &str) -> Option<&'static str> {
    let is_refused = path.split(['/', '\\']).any(means_git);
    is_refused.then_some("a file there would be part of git's own, which programs obey")
}

/// Tells whether a name is `.git` on some system: Windows leaves out dots and spaces at the end and
/// what follows a colon, and has a short name for it. Paths hold no signs that other systems ignore.
fn means_git(name: &str) -> bool {
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    [".git", "git~1"].iter().any(|git| name.eq_ignore_ascii_case(git))
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
        ];
        for path in spellings {
            assert!(refused(path).is_some(), "{path}");
        }
        for path in [".gitignore", "a/.github/x", "git/config", "git~10", "x.git/y", "/a/b.md"] {
            assert_eq!(refused(path), None, "{path}");
        }
    }
}
