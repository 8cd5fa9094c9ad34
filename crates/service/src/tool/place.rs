//! Paths as a model sends them: `/memories` and what is below it.

use quipu_core::model::MemoryPath;

use super::strings::Refusal;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The whole memory.
    Root,
    /// A file or directory in it.
    Below(MemoryPath),
}

const ROOT: &str = "/memories";

/// File systems, on which these memories may be mounted, allow no longer names.
const NAME_SIZE_BYTES_MAX: usize = 255;

impl Place {
    /// Parses a path. Repeated and trailing slashes and `.` are normalized; nothing else is.
    pub(super) fn parse(sent: &str) -> Result<Self, Refusal> {
        let path = || sent.to_owned();
        let Some(rest) = sent.strip_prefix(ROOT) else {
            return Err(Refusal::OutsideRoot { path: path() });
        };
        if rest.split('/').any(|segment| segment == "..") {
            return Err(Refusal::Escape { path: path() });
        }
        if !rest.is_empty() && !rest.starts_with('/') {
            return Err(Refusal::OutsideRoot { path: path() });
        }
        if let Some(rule) = forbidden(rest) {
            return Err(Refusal::ForbiddenCharacter { path: path(), rule });
        }
        let segments: Vec<_> =
            rest.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
        if segments.is_empty() {
            return Ok(Self::Root);
        }
        if segments.iter().any(|segment| segment.len() > NAME_SIZE_BYTES_MAX) {
            let rule = format!("a name must have at most {NAME_SIZE_BYTES_MAX} bytes");
            return Err(Refusal::BrokenPathRule { path: path(), rule });
        }
        match MemoryPath::parse(&format!("/{}", segments.join("/"))) {
            Ok(parsed) => Ok(Self::Below(parsed)),
            Err(error) => Err(Refusal::BrokenPathRule { path: path(), rule: error.to_string() }),
        }
    }

    pub(super) fn memory_path(&self) -> Option<&MemoryPath> {
        match self {
            Self::Root => None,
            Self::Below(path) => Some(path),
        }
    }

    /// Returns how many segments lie between the root and this place.
    pub(super) fn depth(&self) -> usize {
        self.memory_path().map_or(0, |path| path.as_str().matches('/').count())
    }
}

/// Returns the path of a memory as the model writes it.
pub(super) fn shown(path: &MemoryPath) -> String {
    format!("{ROOT}{path}")
}

/// Returns which characters make a path suspicious, if any do.
fn forbidden(rest: &str) -> Option<&'static str> {
    let lower = rest.to_ascii_lowercase();
    if rest.contains('\\') {
        Some("a backslash")
    } else if ["%2e", "%2f", "%5c"].iter().any(|encoded| lower.contains(encoded)) {
        Some("a percent-encoded dot, slash or backslash")
    } else if rest.chars().any(char::is_control) {
        Some("a control character")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::strings::Strings;
    use super::*;

    fn place(sent: &str) -> String {
        match Place::parse(sent) {
            Ok(Place::Root) => "root".to_owned(),
            Ok(Place::Below(path)) => path.to_string(),
            Err(refusal) => refusal.render(Strings::Python),
        }
    }

    #[test]
    fn slashes_and_dots_are_tolerated() {
        for sent in ["/memories", "/memories/", "/memories//", "/memories/./"] {
            assert_eq!(place(sent), "root", "{sent}");
        }
        for sent in ["/memories/a/b", "/memories//a/./b/", "/memories/a//b"] {
            assert_eq!(place(sent), "/a/b", "{sent}");
        }
        assert_eq!(place("/memories/%c0%ae/x"), "/%c0%ae/x");
    }

    #[test]
    fn paths_outside_of_the_memory_are_rejected() {
        for sent in ["", "/", "memories/x", "/Memories", " /memories", "//memories", "/memoriesx"] {
            assert_eq!(place(sent), format!("Path must start with /memories, got: {sent}"));
        }
        for sent in ["/memories/..", "/memories/a/../b", "/memories../x", "/memories/../memories/b"]
        {
            assert_eq!(place(sent), format!("Path {sent} would escape /memories directory"));
        }
    }

    #[test]
    fn suspicious_characters_are_rejected() {
        for name in ["a\\b", "%2e%2E", "%5Cx", "x%2Fy", "a\0", "a\nb", "\u{7f}"] {
            let answer = place(&format!("/memories/{name}"));
            assert!(answer.contains("holds characters that are not allowed: a "), "{answer}");
        }
    }

    #[test]
    fn the_rules_of_the_store_hold() {
        let long_name = format!("/memories/{}", "é".repeat(128));
        let deep = format!("/memories{}", "/d".repeat(21));
        for sent in [long_name.as_str(), &deep, "/memories/e\u{301}", "/memories/\u{200b}"] {
            assert!(place(sent).contains("is not allowed: a "), "{}", place(sent));
        }
        assert!(place(&format!("/memories/{}", "n".repeat(255))).starts_with("/nn"));
    }
}
