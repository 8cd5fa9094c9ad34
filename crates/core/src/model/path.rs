//! Paths of memories inside their store.
//!
//! Directories are implied by the paths below them and are not stored. A path is compared byte
//! by byte: case matters, and nothing is normalized.

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

use unicode_normalization::is_nfc;

/// The maximum length of a path.
pub const PATH_SIZE_BYTES_MAX: usize = 1024;
/// The maximum number of segments of a path.
pub const SEGMENTS_MAX: usize = 20;

/// The path of a memory inside its store, such as `/projects/tea/notes.md`.
///
/// A value of this type has already passed every rule, so no other code checks a path again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryPath(Arc<str>);

impl MemoryPath {
    /// Checks the rules and returns the path.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(PathError::NotAbsolute);
        };
        if text.len() > PATH_SIZE_BYTES_MAX {
            return Err(PathError::TooLong);
        }
        let mut segments_count = 0;
        for segment in rest.split('/') {
            segments_count += 1;
            match segment {
                "" => return Err(PathError::EmptySegment),
                "." | ".." => return Err(PathError::DotSegment),
                _ => {}
            }
        }
        if segments_count > SEGMENTS_MAX {
            return Err(PathError::TooDeep);
        }
        if text.chars().any(is_forbidden) {
            return Err(PathError::ForbiddenCharacter);
        }
        if !is_nfc(text) {
            return Err(PathError::NotNfc);
        }
        Ok(Self(text.into()))
    }

    /// Returns the text, which begins with `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last segment.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().expect("a split has at least one part")
    }

    /// Returns the directory that holds this path.
    pub fn parent(&self) -> Directory {
        let (parent, _) = self.0.rsplit_once('/').expect("a path has a slash");
        Directory(format!("{parent}/").into())
    }

    /// Returns the directory that this path would be if memories lay below it.
    pub fn as_directory(&self) -> Directory {
        Directory(format!("{}/", self.0).into())
    }

    /// Returns the paths above this one, the shortest first, the root left out.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').skip(1).filter_map(|(end, _)| self.0.get(..end))
    }

    /// Returns whether two memories cannot live at these paths at the same time: the paths are
    /// equal, or one is above the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        let above = |upper: &Self, lower: &Self| {
            lower.0.strip_prefix(&*upper.0).is_some_and(|rest| rest.starts_with('/'))
        };
        self == other || above(self, other) || above(other, self)
    }

    /// Returns where this path goes when the directory `from` moves to `to`.
    ///
    /// A path outside `from` is returned as it is. A path that would become too long or too deep
    /// is refused.
    pub fn moved(&self, from: &Directory, to: &Directory) -> Result<Self, PathError> {
        match self.0.strip_prefix(from.as_str()) {
            Some(rest) => Self::parse(&format!("{to}{rest}")),
            None => Ok(self.clone()),
        }
    }
}

impl fmt::Display for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A directory inside a store: `/`, or a path with a slash at its end, such as `/projects/`.
///
/// It exists while at least one memory lies below it; the root always does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Directory(Arc<str>);

impl Directory {
    /// Returns the whole store.
    pub fn root() -> Self {
        Self("/".into())
    }

    /// Checks that the text begins and ends with `/` and is a path in between.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text == "/" {
            return Ok(Self::root());
        }
        let path = text.strip_suffix('/').ok_or(PathError::NotADirectory)?;
        MemoryPath::parse(path).map(|path| path.as_directory())
    }

    /// Returns the text, which begins and ends with `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the whole store.
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }

    /// Returns whether the path lies in this directory, however deep.
    pub fn contains(&self, path: &MemoryPath) -> bool {
        path.0.starts_with(&*self.0)
    }

    /// Returns whether the other directory is this one or lies in it.
    pub fn contains_directory(&self, other: &Self) -> bool {
        other.0.starts_with(&*self.0)
    }

    /// Returns the directory `depth` levels inside this one that leads to `path`.
    ///
    /// `None` means that the path does not lie deeper than that, or not in this directory at all.
    pub fn towards(&self, path: &MemoryPath, depth: NonZero<usize>) -> Option<Self> {
        let rest = path.0.strip_prefix(&*self.0)?;
        let (slash, _) = rest.match_indices('/').nth(depth.get() - 1)?;
        let end = self.0.len() + slash + 1;
        path.0.get(..end).map(|directory| Self(directory.into()))
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The rule that a path breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It does not begin with `/`.
    NotAbsolute,
    /// A directory does not end with `/`.
    NotADirectory,
    /// It has an empty segment: `//`, or a `/` at its end.
    EmptySegment,
    /// It has a segment `.` or `..`.
    DotSegment,
    /// It has more than [`SEGMENTS_MAX`] segments.
    TooDeep,
    /// It is longer than [`PATH_SIZE_BYTES_MAX`].
    TooLong,
    /// It has a control or format character or a line separator.
    ForbiddenCharacter,
    /// It is not in Unicode normalization form C.
    NotNfc,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAbsolute => f.write_str("a path must begin with `/`"),
            Self::NotADirectory => f.write_str("a directory must end with `/`"),
            Self::EmptySegment => {
                f.write_str("a path must not have an empty segment, such as `//` or a final `/`")
            }
            Self::DotSegment => f.write_str("a path must not have a segment `.` or `..`"),
            Self::TooDeep => write!(f, "a path must have at most {SEGMENTS_MAX} segments"),
            Self::TooLong => write!(f, "a path must have at most {PATH_SIZE_BYTES_MAX} bytes"),
            Self::ForbiddenCharacter => {
                f.write_str("a path must not have control or format characters or line separators")
            }
            Self::NotNfc => {
                f.write_str("a path must be in Unicode normalization form C (composed characters)")
            }
        }
    }
}

impl std::error::Error for PathError {}

/// Returns whether a character is of category Cc or Cf, or a line or paragraph separator.
fn is_forbidden(character: char) -> bool {
    const FORMAT: [(char, char); 21] = [
        ('\u{ad}', '\u{ad}'),
        ('\u{600}', '\u{605}'),
        ('\u{61c}', '\u{61c}'),
        ('\u{6dd}', '\u{6dd}'),
        ('\u{70f}', '\u{70f}'),
        ('\u{890}', '\u{891}'),
        ('\u{8e2}', '\u{8e2}'),
        ('\u{180e}', '\u{180e}'),
        ('\u{200b}', '\u{200f}'),
        // These include the line and the paragraph separator.
        ('\u{2028}', '\u{202e}'),
        ('\u{2060}', '\u{2064}'),
        ('\u{2066}', '\u{206f}'),
        ('\u{feff}', '\u{feff}'),
        ('\u{fff9}', '\u{fffb}'),
        ('\u{110bd}', '\u{110bd}'),
        ('\u{110cd}', '\u{110cd}'),
        ('\u{13430}', '\u{1343f}'),
        ('\u{1bca0}', '\u{1bca3}'),
        ('\u{1d173}', '\u{1d17a}'),
        ('\u{e0001}', '\u{e0001}'),
        ('\u{e0020}', '\u{e007f}'),
    ];
    character.is_control()
        || (!character.is_ascii()
            && FORMAT.iter().any(|&(first, last)| (first..=last).contains(&character)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> MemoryPath {
        MemoryPath::parse(text).unwrap()
    }

    fn directory(text: &str) -> Directory {
        Directory::parse(text).unwrap()
    }

    #[test]
    fn ordinary_paths_are_kept_as_they_are() {
        for text in ["/a", "/a/b.md", "/.hidden", "/ü/日本語", "/a b", "/...", "/a\\b", "/%2e%2e"]
        {
            assert_eq!(path(text).as_str(), text);
        }
    }

    #[test]
    fn every_broken_rule_is_named() {
        let cases = [
            ("", PathError::NotAbsolute),
            ("a", PathError::NotAbsolute),
            (" /a", PathError::NotAbsolute),
            ("/", PathError::EmptySegment),
            ("//a", PathError::EmptySegment),
            ("/a/", PathError::EmptySegment),
            ("/a//b", PathError::EmptySegment),
            ("/.", PathError::DotSegment),
            ("/a/../b", PathError::DotSegment),
            ("/a\nb", PathError::ForbiddenCharacter),
            ("/a\0", PathError::ForbiddenCharacter),
            ("/a\u{7f}", PathError::ForbiddenCharacter),
            ("/a\u{85}", PathError::ForbiddenCharacter),
            ("/a\u{200b}", PathError::ForbiddenCharacter),
            ("/a\u{2028}", PathError::ForbiddenCharacter),
            ("/a\u{2029}", PathError::ForbiddenCharacter),
            ("/a\u{202e}b", PathError::ForbiddenCharacter),
            ("/\u{feff}a", PathError::ForbiddenCharacter),
            ("/\u{e0041}", PathError::ForbiddenCharacter),
            ("/e\u{301}", PathError::NotNfc),
        ];
        for (text, expected) in cases {
            assert_eq!(MemoryPath::parse(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn both_sides_of_every_limit() {
        assert!(MemoryPath::parse(&"/a".repeat(SEGMENTS_MAX)).is_ok());
        let too_deep = "/a".repeat(SEGMENTS_MAX + 1);
        assert_eq!(MemoryPath::parse(&too_deep), Err(PathError::TooDeep));

        let longest = format!("/{}", "é".repeat(511)) + "x";
        assert_eq!(longest.len(), PATH_SIZE_BYTES_MAX);
        assert!(MemoryPath::parse(&longest).is_ok());
        assert_eq!(MemoryPath::parse(&(longest + "x")), Err(PathError::TooLong));
    }

    #[test]
    fn ancestors_come_from_the_top_without_the_root() {
        let deep = path("/a/b/c.md");
        assert_eq!(deep.ancestors().collect::<Vec<_>>(), ["/a", "/a/b"]);
        assert_eq!(deep.file_name(), "c.md");
        assert_eq!(deep.parent().as_str(), "/a/b/");
        assert_eq!(path("/x").parent(), Directory::root());
    }

    #[test]
    fn overlap_goes_by_segments() {
        assert!(path("/notes").overlaps(&path("/notes/todo.md")));
        assert!(path("/notes/todo.md").overlaps(&path("/notes")));
        assert!(path("/notes").overlaps(&path("/notes")));
        assert!(!path("/notes").overlaps(&path("/notes.md")));
        assert!(!path("/notes_x").overlaps(&path("/notes/x")));
    }

    #[test]
    fn a_directory_begins_and_ends_with_a_slash() {
        assert_eq!(directory("/a/b/").as_str(), "/a/b/");
        assert!(directory("/").is_root());
        assert_eq!(Directory::parse("/a"), Err(PathError::NotADirectory));
        assert_eq!(Directory::parse("a/"), Err(PathError::NotAbsolute));
        assert_eq!(Directory::parse("//"), Err(PathError::EmptySegment));
        assert_eq!(Directory::parse(""), Err(PathError::NotADirectory));
    }

    #[test]
    fn the_directory_towards_a_path() {
        let towards = |dir: &str, to: &str, depth| {
            directory(dir).towards(&path(to), NonZero::new(depth).unwrap())
        };
        assert_eq!(towards("/", "/a/b/c", 1), Some(directory("/a/")));
        assert_eq!(towards("/", "/a/b/c", 2), Some(directory("/a/b/")));
        assert_eq!(towards("/", "/a/b/c", 3), None);
        assert_eq!(towards("/a/", "/a/b/c", 1), Some(directory("/a/b/")));
        assert_eq!(towards("/a/b/", "/a/b/c", 1), None);
        assert_eq!(towards("/x/", "/a/b/c", 1), None);
    }

    #[test]
    fn a_moved_directory_takes_its_paths_along() {
        let moved = |text: &str| path(text).moved(&directory("/a/"), &directory("/b/c/"));
        assert_eq!(moved("/a/x/y"), Ok(path("/b/c/x/y")));
        assert_eq!(moved("/ab/x"), Ok(path("/ab/x")));
        let deep = format!("/a{}", "/s".repeat(SEGMENTS_MAX - 1));
        assert_eq!(moved(&deep), Err(PathError::TooDeep));
    }

    proptest! {
        #[test]
        fn what_is_accepted_obeys_the_rules(text in "/[a.é\u{301}/\u{200d}\n ]{0,12}") {
            if let Ok(path) = MemoryPath::parse(&text) {
                prop_assert!(!path.as_str().contains("//"));
                prop_assert!(!path.as_str().ends_with('/'));
                let has_forbidden = path.as_str().contains(['\n', '\u{200d}']);
                prop_assert!(!has_forbidden);
                prop_assert!(path.as_str().split('/').all(|part| part != "." && part != ".."));
            }
        }
    }
}
