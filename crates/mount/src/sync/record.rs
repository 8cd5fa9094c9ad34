//! The records of the state: entries, intents and what was reported.
//!
//! Checkpoint and journal are lists of records, one per line. They are text, so that people can
//! read them, and hold ids, paths and hashes, but never the text of a memory.

use std::fmt;

use quipu_core::backend::Sequence;
use quipu_core::model::{ContentHash, MemoryId, MemoryPath, SessionId, StoreId, VersionId};

use super::listing::Fingerprint;
use super::report::LeftOut;
use super::stamp::{Identity, Stamp};

/// A memory and its file, as they were when they were last equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyncedEntry {
    pub(super) memory: MemoryId,
    /// The path of both.
    pub(super) path: MemoryPath,
    /// The memory's version, the base of later merges.
    pub(super) version: VersionId,
    /// The hash of the memory.
    pub(super) store_hash: ContentHash,
    /// The hash of the file. It differs only if the store has redacted a credential.
    pub(super) folder_hash: ContentHash,
    /// Identifies the file across renames.
    pub(super) identity: Option<Identity>,
    /// The file's stat data. A file with the same data need not be read.
    pub(super) stamp: Option<Stamp>,
}

/// The store, and the point in its history that the state has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) store: StoreId,
    /// All changes up to this one have been considered.
    pub(super) sequence: Sequence,
    /// The newest version of the store at that point.
    pub(super) newest: Option<VersionId>,
    /// A digest of the settings that decide which files can be memories.
    pub(super) settings: u64,
}

/// A step that was about to be carried out. After a kill it may have taken effect fully, partly or
/// not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Intent {
    pub(super) kind: IntentKind,
    /// The memory when the step was planned; `None` if it was to be created.
    pub(super) memory: Option<(MemoryId, VersionId, ContentHash)>,
    /// The hash of the file; `None` if it was to be created.
    pub(super) folder_hash: Option<ContentHash>,
    /// The path of the file.
    pub(super) from: MemoryPath,
    /// The path that both are to have.
    pub(super) path: MemoryPath,
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntentKind {
    DeleteMemory,
    DeleteFile,
    CreateMemory,
    CreateFile,
    /// One of them moves; both keep their texts.
    Move,
    /// The store gets the folder's text.
    ToStore,
    /// The folder gets the store's text.
    ToFolder,
    /// Both get the merged text.
    Merge,
}

impl IntentKind {
    const WORDS: [(&'static str, Self); 8] = [
        ("delete-memory", Self::DeleteMemory),
        ("delete-file", Self::DeleteFile),
        ("create-memory", Self::CreateMemory),
        ("create-file", Self::CreateFile),
        ("move", Self::Move),
        ("to-store", Self::ToStore),
        ("to-folder", Self::ToFolder),
        ("merge", Self::Merge),
    ];

    fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// A line of the checkpoint or of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Head(Head),
    /// A synced entry, parsed on demand.
    Entry(Line<'a>),
    /// The entry of this path is removed.
    Gone(&'a str),
    /// A memory without a file.
    StoreOnly(MemoryId),
    /// The list of memories without files begins again.
    StoreOnlyCleared,
    /// A file that was reported as left out.
    LeftOut(LeftOut, Option<Fingerprint>),
    /// A file that was reported as failed.
    Failed(LeftOut),
    /// Neither holds for this path anymore.
    Resolved(String),
    Intent(Intent),
    /// The session that writes to the store.
    Session(SessionId),
    /// A file that is about to appear at its path.
    Written(Identity, MemoryPath),
    /// All intents before this one are resolved.
    Done,
}

/// An unparsed entry. Most entries are never needed in full, and parsing ids and hashes of all of
/// them would take longer than the scan itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a str,
    /// The index of the entry in the state.
    pub(super) number: usize,
}

impl<'a> Line<'a> {
    /// Splits off the path of `fingerprint path<TAB>memory version store_hash folder_hash`.
    ///
    /// What every sync needs comes first: the fingerprint and the path, which cannot contain a tab.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let path = text.split_once(' ')?.1.split_once('\t')?.0;
        Some(Self { text, path, number: 0 })
    }

    pub(super) fn as_str(self) -> &'a str {
        self.text
    }

    /// Returns the id of the memory, as text.
    pub(super) fn memory(self) -> &'a str {
        let ids = self.text.split_once('\t').unwrap_or_default().1;
        ids.split_once(' ').unwrap_or_default().0
    }

    /// Returns whether a file has the fingerprint of the entry, so that it has not changed.
    pub(super) fn has_fingerprint(self, fingerprint: (Identity, Stamp)) -> bool {
        parse_fingerprint(self.text)
            .is_some_and(|it| it == (Some(fingerprint.0), Some(fingerprint.1)))
    }

    pub(super) fn parse(self) -> Option<SyncedEntry> {
        let (identity, stamp) = parse_fingerprint(self.text)?;
        let mut words = self.text.split_once('\t')?.1.split(' ');
        let memory = words.next()?.parse().ok()?;
        let version = words.next()?.parse().ok()?;
        let store_hash = words.next()?.parse().ok()?;
        let folder_hash = match words.next()? {
            "=" => store_hash,
            hash => hash.parse().ok()?,
        };
        let path = MemoryPath::parse(self.path).ok()?;
        Some(SyncedEntry { memory, path, version, store_hash, folder_hash, identity, stamp })
    }
}

/// Parses `-`, `inode-birth` or `inode-birth:size:mtime:ctime`, up to a space.
///
/// A single pass by hand: splitting and `str::parse` cost ten times as much, once for each file of
/// each sync.
fn parse_fingerprint(text: &str) -> Option<(Option<Identity>, Option<Stamp>)> {
    let mut numbers = [0_i64; 5];
    let mut count = 0;
    let mut number: i64 = 0;
    let mut is_negative = false;
    let mut has_digits = false;
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' => {
                number = number.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                has_digits = true;
            }
            b'-' if !has_digits && count > 1 => is_negative = true,
            b'-' | b':' | b' ' if has_digits => {
                *numbers.get_mut(count)? = if is_negative { -number } else { number };
                (count, number, is_negative, has_digits) = (count + 1, 0, false, false);
                if byte == b' ' {
                    break;
                }
            }
            b'-' if count == 0 => return Some((None, None)),
            _ => return None,
        }
    }
    let [inode, born, size, modified, changed] = numbers;
    let identity = Identity::new(inode, born)?;
    match count {
        2 => Some((Some(identity), None)),
        5 => Some((Some(identity), Some(Stamp::new(size, modified, changed)?))),
        _ => None,
    }
}

impl fmt::Display for SyncedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, path, version, store_hash, folder_hash, identity, stamp } = self;
        match (identity, stamp) {
            (Some(identity), Some(stamp)) => write!(f, "{identity}:{stamp}")?,
            (Some(identity), None) => write!(f, "{identity}")?,
            (None, _) => f.write_str("-")?,
        }
        write!(f, " {path}\t{memory} {version} {store_hash} ")?;
        match folder_hash {
            hash if hash == store_hash => f.write_str("="),
            hash => write!(f, "{hash}"),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, sequence, newest, settings } = self;
        write!(f, "{store} {} {} {settings:x}", sequence.0, or_dash(*newest))
    }
}

impl fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head(head) => write!(f, "head {head}"),
            Self::Entry(line) => write!(f, "= {}", line.text),
            Self::Gone(path) => write!(f, "- {path}"),
            Self::StoreOnly(memory) => write!(f, "other {memory}"),
            Self::StoreOnlyCleared => f.write_str("no-others"),
            Self::LeftOut(LeftOut { path, reason }, fingerprint) => {
                let (identity, stamp) = fingerprint.unzip();
                let (path, reason) = (escaped(path), escaped(reason));
                write!(f, "left-out {} {} {path}\t{reason}", or_dash(identity), or_dash(stamp))
            }
            Self::Failed(LeftOut { path, reason }) => {
                write!(f, "failed {}\t{}", escaped(path), escaped(reason))
            }
            Self::Resolved(path) => write!(f, "settled {}", escaped(path)),
            Self::Intent(Intent { kind, memory, folder_hash, from, path }) => {
                write!(f, "intent {} ", kind.as_str())?;
                match memory {
                    Some((memory, version, hash)) => write!(f, "{memory} {version} {hash}")?,
                    None => f.write_str("- - -")?,
                }
                write!(f, " {} {from}\t{path}", or_dash(*folder_hash))
            }
            Self::Session(session) => write!(f, "session {session}"),
            Self::Written(identity, path) => write!(f, "written {identity} {path}"),
            Self::Done => f.write_str("done"),
        }
    }
}

impl<'a> Record<'a> {
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "=" => Self::Entry(Line::new(rest)?),
            "-" => Self::Gone(rest),
            "head" => Self::Head(parse_head(rest)?),
            "other" => Self::StoreOnly(rest.parse().ok()?),
            "no-others" => Self::StoreOnlyCleared,
            "left-out" => {
                let mut words = rest.splitn(3, ' ');
                let identity: Option<Identity> = optional(words.next()?)?;
                let stamp = optional(words.next()?)?;
                Self::LeftOut(parse_left_out(words.next()?)?, identity.zip(stamp))
            }
            "failed" => Self::Failed(parse_left_out(rest)?),
            "settled" => Self::Resolved(unescaped(rest)),
            "intent" => Self::Intent(parse_intent(rest)?),
            "session" => Self::Session(rest.parse().ok()?),
            "written" => {
                let (identity, path) = rest.split_once(' ')?;
                Self::Written(identity.parse().ok()?, MemoryPath::parse(path).ok()?)
            }
            "done" => Self::Done,
            _ => return None,
        })
    }
}

/// Parses the store, the sequence and the newest version.
pub(super) fn parse_head(text: &str) -> Option<Head> {
    let mut words = text.split(' ');
    let store = words.next()?.parse().ok()?;
    let sequence = Sequence(words.next()?.parse().ok()?);
    let newest = optional(words.next()?)?;
    let settings = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
    Some(Head { store, sequence, newest, settings: settings.unwrap_or_default() })
}

fn parse_left_out(text: &str) -> Option<LeftOut> {
    let (path, reason) = text.split_once('\t')?;
    Some(LeftOut { path: unescaped(path), reason: unescaped(reason) })
}

fn parse_intent(text: &str) -> Option<Intent> {
    let mut words = text.splitn(6, ' ');
    let word = words.next()?;
    let kind = IntentKind::WORDS.iter().find(|(known, _)| *known == word)?.1;
    let memory = match (words.next()?, words.next()?, words.next()?) {
        ("-", ..) => None,
        (id, version, hash) => Some((id.parse().ok()?, version.parse().ok()?, hash.parse().ok()?)),
    };
    let folder_hash = optional(words.next()?)?;
    // A path contains no tab.
    let (from, path) = words.next()?.split_once('\t')?;
    let (from, path) = (MemoryPath::parse(from).ok()?, MemoryPath::parse(path).ok()?);
    Some(Intent { kind, memory, folder_hash, from, path })
}

/// Parses a value that may be missing; `None` if it is malformed.
#[expect(clippy::option_option, reason = "a missing value is not a malformed one")]
fn optional<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
    match text {
        "-" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

fn or_dash(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Escapes arbitrary text, such as a file name, to fit on one line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r")
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_round_trip() {
        let fingerprint = |text: &str| {
            let (identity, stamp) = parse_fingerprint(text)?;
            Some(format!("{} {}", or_dash(identity), or_dash(stamp)))
        };
        assert_eq!(fingerprint("- /a\t").as_deref(), Some("- -"));
        assert_eq!(fingerprint("12-34 /a\t").as_deref(), Some("12-34 -"));
        assert_eq!(fingerprint("12-34:5:-6:7 /a\t").as_deref(), Some("12-34 5:-6:7"));
        for wrong in ["", "12", "12-34:5 /a", "12-34:5:6:7:8 /a", "12-x /a", "12-34:: /a", ": /a"] {
            assert_eq!(fingerprint(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn escaped_text_fits_on_one_line() {
        for text in ["", "a b", "a\\nb", "a\nb\tc\\", "\r\n", "\u{fffd}"] {
            assert!(!escaped(text).contains(['\n', '\t', '\r']));
            assert_eq!(unescaped(&escaped(text)), text);
        }
    }
}
