//! Names that programs give to files that are not meant to stay.
//!
//! Editors and tools write beside a file before they put the new text in its place, and move the
//! old text out of the way. The history should show the one change that was meant, so the mount
//! knows such files by their names.

/// Which names are scratch names and which are backup names.
///
/// In a pattern, `*` stands for any characters or none, and `?` for one letter, digit or `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRules {
    /// Files of these names never become memories.
    pub scratch: Vec<String>,
    /// Files of these names never become memories if they are made as temporary files are made:
    /// exclusively, and for their owner alone. Others may have such names by chance.
    pub temporary: Vec<String>,
    /// A memory that is moved to such a name, or to a scratch name, is about to be replaced.
    pub backup: Vec<String>,
}

/// How a file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// As `mkstemp` does it: it must not exist, and nobody else may read it.
    Privately,
    /// In any other way.
    Openly,
}

const SCRATCH: [&str; 10] = [
    "4913",
    "*~",
    ".#*",
    "#*#",
    ".*.sw?",
    ".goutputstream-*",
    ".nfs*",
    ".fuse_hidden*",
    "*.tmp",
    "*.tmp.*",
];
const TEMPORARY: [&str; 3] = ["sed??????", "tmp????????", ".*.??????"];
const BACKUP: [&str; 3] = ["*.bak", "*.orig", "*.old"];

impl Default for NameRules {
    fn default() -> Self {
        let owned = |patterns: &[&str]| patterns.iter().map(|&text| text.to_owned()).collect();
        Self { scratch: owned(&SCRATCH), temporary: owned(&TEMPORARY), backup: owned(&BACKUP) }
    }
}

impl NameRules {
    /// Tells whether a file of this name lives in the mount only.
    pub fn is_scratch(&self, name: &str, making: Making) -> bool {
        matches_any(&self.scratch, name)
            || (making == Making::Privately && matches_any(&self.temporary, name))
    }

    /// Tells whether a memory that gets this name is about to be replaced.
    pub fn is_backup(&self, name: &str) -> bool {
        matches_any(&self.backup, name) || self.is_scratch(name, Making::Openly)
    }
}

fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            matches(rest, name)
                || name.split_first().is_some_and(|(_, shorter)| matches(pattern, shorter))
        }
        (Some((b'?', rest)), Some((byte, shorter))) => {
            (byte.is_ascii_alphanumeric() || *byte == b'_') && matches(rest, shorter)
        }
        (Some((wanted, rest)), Some((byte, shorter))) => wanted == byte && matches(rest, shorter),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str, making: Making) -> bool {
        NameRules::default().is_scratch(name, making)
    }

    #[test]
    fn what_editors_write_beside_a_file_is_scratch() {
        let names = [
            "4913",
            "tea.md~",
            ".#tea.md",
            "#tea.md#",
            ".tea.md.swp",
            ".tea.md.swx",
            ".nfs0001",
            ".goutputstream-AB12CD",
            ".fuse_hidden0001",
            "tea.md.tmp",
            "tea.tmp.1234",
        ];
        for name in names {
            assert!(scratch(name, Making::Openly), "{name}");
        }
    }

    #[test]
    fn ordinary_names_are_not() {
        let names = [
            "tea.md",
            "4913.md",
            "sedate.md",
            "tmp",
            "template.md",
            ".env.sample",
            ".gitignore",
            "a.swp",
            "notes.bak",
            "#1 priority.md",
            "tmpnotes.md",
        ];
        for name in names {
            assert!(!scratch(name, Making::Openly), "{name}");
        }
    }

    #[test]
    fn temporary_files_are_known_by_how_they_are_made() {
        for name in ["sedA1b2C3", "tmpab12cd_4", ".tea.md.x7YzQ1", ".env.sample"] {
            assert!(scratch(name, Making::Privately), "{name}");
            assert!(!scratch(name, Making::Openly), "{name}");
        }
        assert!(!scratch("tea.md", Making::Privately));
    }

    #[test]
    fn backups_are_scratch_files_and_some_more() {
        let rules = NameRules::default();
        for name in ["tea.md.bak", "tea.md.orig", "tea.old", "tea.md~"] {
            assert!(rules.is_backup(name), "{name}");
        }
        assert!(!rules.is_backup("tea.md"));
        assert!(!rules.is_backup("bak"));
    }
}
