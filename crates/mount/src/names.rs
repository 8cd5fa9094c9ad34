//! Names that programs give to files that are not meant to stay.
//!
//! Editors and tools write beside a file before they put the new text in its place, and move the
//! old text out of the way. The history should show the one change that was meant, so such files
//! are known by their names. One set of rules serves every door that deals in files.

/// Which names are scratch names and which are backup names.
///
/// In a pattern, `*` stands for any characters or none, and `?` for one letter, digit or `_`. A
/// pattern that begins with `!` takes names out again, wherever it stands in its list.
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

const SCRATCH: [&str; 26] = [
    // Vim, which tries whether it can write a directory; backups; Emacs; Vim; GLib.
    "4913",
    "*~",
    ".#*",
    "#*#",
    ".*.sw?",
    ".goutputstream-*",
    // File systems that keep what was removed while it was open.
    ".nfs*",
    ".fuse_hidden*",
    "*.tmp",
    "*.tmp.*",
    // Git's new texts and objects, and what keeps others out of anything.
    "*.lock",
    "tmp_obj_*",
    "tmp_pack_*",
    "tmp_idx_*",
    "tmp_rev_*",
    "tmp_mtimes_*",
    // These name the versions of what a project depends on, and are meant to stay.
    "!Cargo.lock",
    "!Gemfile.lock",
    "!Pipfile.lock",
    "!composer.lock",
    "!flake.lock",
    "!mix.lock",
    "!poetry.lock",
    "!pubspec.lock",
    "!uv.lock",
    "!yarn.lock",
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
    /// Returns whether a file of this name never becomes a memory.
    pub fn is_scratch(&self, name: &str, making: Making) -> bool {
        matches_any(&self.scratch, name)
            || (making == Making::Privately && matches_any(&self.temporary, name))
    }

    /// Returns whether a memory that gets this name is about to be replaced.
    pub fn is_backup(&self, name: &str) -> bool {
        matches_any(&self.backup, name) || self.is_scratch(name, Making::Openly)
    }
}

fn matches_any(patterns: &[String], name: &str) -> bool {
    let is_match = |pattern: &str| matches(pattern.as_bytes(), name.as_bytes());
    let is_exception = |pattern: &String| pattern.strip_prefix('!').is_some_and(is_match);
    patterns.iter().any(|pattern| is_match(pattern)) && !patterns.iter().any(is_exception)
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
            "index.lock",
            "tmp_obj_Xy12ab",
        ];
        for name in names {
            assert!(scratch(name, Making::Openly), "{name}");
        }
    }

    #[test]
    fn exceptions_take_names_out_again() {
        assert!(!scratch("Cargo.lock", Making::Openly));
        let scratch = ["!keep.tmp", "*.tmp"].map(str::to_owned).to_vec();
        let rules = NameRules { scratch, ..NameRules::default() };
        assert!(!rules.is_scratch("keep.tmp", Making::Openly));
        assert!(rules.is_scratch("other.tmp", Making::Openly));
        assert!(!rules.is_scratch("!keep.tmp.md", Making::Openly));
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
