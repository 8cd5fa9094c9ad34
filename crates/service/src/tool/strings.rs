//! The texts of all answers.
//!
//! There are two sets: those of the vendor's documentation, which models know best, and those of
//! the Python SDK's own tool. Paths are always echoed as they were sent.

use std::fmt::Write as _;

use super::edit::{self, ReplaceError, Replaced};
use quipu_core::Error;
use quipu_core::model::SecretPolicy;
use quipu_screen::Finding;

use super::listing::DIRECTORY_SIZE_BYTES;

/// The set of texts to answer with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strings {
    /// Those of the documentation.
    #[default]
    Doc,
    /// Those of the Python SDK.
    Python,
}

/// The answer to a command that succeeded.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Directory { path: String, lines: Vec<String> },
    File { text: String },
    Created { path: String },
    Replaced { snippet: String },
    Inserted { path: String },
    Deleted { path: String },
    Renamed { from: String, to: String },
    WithFindings { text: Box<Self>, findings: Vec<Finding>, policy: SecretPolicy },
}

impl Text {
    pub(super) fn render(self, strings: Strings) -> String {
        match self {
            Self::Directory { path, lines } => directory(&path, &lines, strings),
            Self::File { text } => text,
            Self::Created { path } => format!("File created successfully at: {path}"),
            Self::Replaced { snippet } => format!(
                "The memory file has been edited. Here is the snippet showing the change (with \
                 line numbers):\n{snippet}"
            ),
            Self::Inserted { path } => format!("The file {path} has been edited."),
            Self::Deleted { path } => format!("Successfully deleted {path}"),
            Self::Renamed { from, to } => format!("Successfully renamed {from} to {to}"),
            Self::WithFindings { text, findings, policy } => {
                let text = text.render(strings);
                match strings {
                    Strings::Doc => text + &findings_note(&findings, policy),
                    Strings::Python => text,
                }
            }
        }
    }
}

fn findings_note(findings: &[Finding], policy: SecretPolicy) -> String {
    let note = |finding @ Finding { line, kind, .. }: &Finding| match policy {
        _ if finding.is_forgotten() => {
            format!("\nNote: {} brings back {kind}. Take it out again.", finding.place())
        }
        SecretPolicy::Redact => format!(
            "\nNote: line {line} of the text held a credential ({kind}). It was not stored; \
             `[redacted: {}]` stands in its place.",
            kind.as_str()
        ),
        SecretPolicy::Off | SecretPolicy::Warn | SecretPolicy::Reject => format!(
            "\nNote: line {line} of the text holds a credential ({kind}). Memory is read by many; \
             keep credentials out of it."
        ),
    };
    findings.iter().map(note).collect()
}

fn directory(path: &str, lines: &[String], strings: Strings) -> String {
    let left_out = match strings {
        Strings::Doc => "hidden items and node_modules",
        Strings::Python => "hidden items",
    };
    let own_size = size(DIRECTORY_SIZE_BYTES, strings);
    let mut text = format!(
        "Here're the files and directories up to 2 levels deep in {path}, excluding {left_out}:\n\
         {own_size}\t{path}"
    );
    for line in lines {
        let (size, relative) = line.split_once('\t').unwrap_or(("", line));
        write!(text, "\n{size}\t{path}/{relative}").expect("a string can be written to");
    }
    text
}

/// Returns a size as listings show it: `512B`, `1.5K`.
///
/// Whole numbers of units have a decimal in the documentation and none in the SDK.
pub(super) fn size(bytes: u64, strings: Strings) -> String {
    const UNITS: [&str; 4] = ["B", "K", "M", "G"];
    let power = (bytes.checked_ilog2().unwrap_or(0) / 10).min(3);
    let unit = UNITS.get(power as usize).unwrap_or(&"B");
    let divisor = 1_u64 << (10 * power);
    if power == 0 || (strings == Strings::Python && bytes.is_multiple_of(divisor)) {
        return format!("{}{unit}", bytes / divisor);
    }
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let units = bytes as f64 / divisor as f64;
    format!("{units:.1}{unit}")
}

/// Returns the numbered lines of a file, given the number of the first one, truncated at the end of a
/// line if they have too many characters.
pub(super) fn file(path: &str, lines: (usize, &[&str]), chars_max: usize) -> Text {
    let (first, lines) = lines;
    let mut text = format!("Here's the content of {path} with line numbers:\n");
    let size: usize = lines.iter().map(|line| line.len() + NUMBER_WIDTH + 2).sum();
    text.reserve(size);
    let mut chars_left = chars_max;
    for (number, line) in (first..).zip(lines) {
        // A text has at most as many characters as bytes, so most texts need not be counted.
        if size > chars_max {
            let chars_count = line.chars().count() + NUMBER_WIDTH + 2;
            if chars_count > chars_left && number > first {
                let last = first + lines.len() - 1;
                writeln!(
                    text,
                    "[Lines {first}-{} of {first}-{last} are shown. To see the rest, view it again \
                     with \"view_range\": [{number}, {last}].]",
                    number - 1
                )
                .expect("a string can be written to");
                break;
            }
            chars_left = chars_left.saturating_sub(chars_count);
        }
        push_numbered(&mut text, number, line);
    }
    if !lines.is_empty() {
        text.pop();
    }
    Text::File { text }
}

const NUMBER_WIDTH: usize = 6;

fn push_numbered(text: &mut String, number: usize, line: &str) {
    write!(text, "{number:>NUMBER_WIDTH$}\t").expect("a string can be written to");
    text.push_str(line);
    text.push('\n');
}

/// Returns two lines before a changed line, the line itself and two after it.
pub(super) fn snippet(text: &str, line: usize) -> String {
    let first = line.saturating_sub(2).max(1);
    let mut snippet = String::new();
    for (number, line) in (first..=line + 2).zip(text.split('\n').skip(first - 1)) {
        push_numbered(&mut snippet, number, line);
    }
    snippet.pop();
    snippet
}

/// Replaces as the set of texts demands: the SDK's tool finds an empty string in an empty file.
pub(super) fn replace<'a>(
    strings: Strings,
    text: &str,
    old: &str,
    new: impl FnOnce() -> Result<&'a str, Refusal>,
) -> Result<Replaced, ReplaceFailure> {
    if strings == Strings::Python && old.is_empty() {
        if text.is_empty() {
            let text = new().map_err(ReplaceFailure::Input)?.to_owned();
            return Ok(Replaced { text, line: 1 });
        }
        let lines = text.chars().scan(1, |line, character| {
            let here = *line;
            *line += usize::from(character == '\n');
            Some(here)
        });
        let last = text.matches('\n').count() + 1;
        let lines = lines.chain([last]).collect();
        return Err(ReplaceFailure::Edit(ReplaceError::Several { lines }));
    }
    // The replacement matters only if there is exactly one match, so a malformed one is reported
    // last.
    edit::replace(text, old, "").map_err(ReplaceFailure::Edit)?;
    let new = new().map_err(ReplaceFailure::Input)?;
    edit::replace(text, old, new).map_err(ReplaceFailure::Edit)
}

/// Why nothing was replaced.
#[derive(Debug)]
pub(super) enum ReplaceFailure {
    Edit(ReplaceError),
    Input(Refusal),
}

/// Why a command failed.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    OutsideRoot { path: String },
    Escape { path: String },
    ForbiddenCharacter { path: String, rule: &'static str },
    BrokenPathRule { path: String, rule: String },
    ViewMissing { path: String },
    ReplaceMissing { path: String },
    InsertMissing { path: String },
    Missing { path: String },
    NotAFile { path: String },
    TooManyLines { path: String },
    AlreadyExists { path: String },
    BelowAFile { path: String, file: String },
    DestinationExists { path: String },
    IntoItself { path: String },
    DeleteRoot,
    RenameRoot,
    NoMatch { path: String, old: String },
    EmptyMatch,
    SeveralMatches { old: String, lines: Vec<usize> },
    InsertLine { line: String, lines_count: usize },
    Input { problem: String },
    ReadOnly,
    Engine(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl Refusal {
    pub(super) fn replace(failure: ReplaceFailure, path: &str, old: &str) -> Self {
        let (path, old) = (path.to_owned(), old.to_owned());
        match failure {
            ReplaceFailure::Input(refusal) => refusal,
            ReplaceFailure::Edit(ReplaceError::Missing) => Self::NoMatch { path, old },
            ReplaceFailure::Edit(ReplaceError::Empty) => Self::EmptyMatch,
            ReplaceFailure::Edit(ReplaceError::Several { lines }) => {
                Self::SeveralMatches { old, lines }
            }
        }
    }

    pub(super) fn render(self, strings: Strings) -> String {
        let error = match strings {
            Strings::Doc => "Error: ",
            Strings::Python => "",
        };
        match self {
            Self::OutsideRoot { path } => format!("Path must start with /memories, got: {path}"),
            Self::Escape { path } => format!("Path {path} would escape /memories directory"),
            Self::ForbiddenCharacter { path, rule } => {
                format!("Path {path} holds characters that are not allowed: {rule}")
            }
            Self::BrokenPathRule { path, rule } => format!("Path {path} is not allowed: {rule}"),
            Self::ViewMissing { path } => missing_with_advice(&path),
            Self::ReplaceMissing { path } => error.to_owned() + &missing_with_advice(&path),
            Self::InsertMissing { path } => match strings {
                Strings::Doc => format!("Error: The path {path} does not exist"),
                Strings::Python => missing_with_advice(&path),
            },
            Self::Missing { path } => format!("{error}The path {path} does not exist"),
            Self::NotAFile { path } => format!("The path {path} is not a file."),
            Self::TooManyLines { path } => {
                format!("File {path} exceeds maximum line limit of 999,999 lines.")
            }
            Self::AlreadyExists { path } => format!("{error}File {path} already exists"),
            Self::BelowAFile { path, file } => {
                format!("{error}Path {path} cannot be used: {file} is a file, not a directory")
            }
            Self::DestinationExists { path } => {
                format!("{error}The destination {path} already exists")
            }
            Self::IntoItself { path } => {
                format!("{error}The path {path} cannot be moved into itself")
            }
            Self::DeleteRoot => "Cannot delete the /memories directory itself".to_owned(),
            Self::RenameRoot => "Cannot rename the /memories directory itself".to_owned(),
            Self::NoMatch { path, old } => format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            ),
            Self::EmptyMatch => {
                "No replacement was performed, old_str must not be empty.".to_owned()
            }
            Self::SeveralMatches { old, lines } => {
                let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
                format!(
                    "No replacement was performed. Multiple occurrences of old_str `{old}` in \
                     lines: {}. Please ensure it is unique",
                    lines.join(", ")
                )
            }
            Self::InsertLine { line, lines_count } => insert_line(&line, lines_count, strings),
            Self::Input { problem } => format!("{error}Invalid input: {problem}"),
            Self::ReadOnly => {
                format!("{error}This memory is read-only; only view is possible")
            }
            Self::Engine(failure) => match failure.hint() {
                Some(hint) => format!("{error}{}; {hint}", failure.message()),
                None => format!("{error}{}", failure.message()),
            },
        }
    }
}

fn missing_with_advice(path: &str) -> String {
    format!("The path {path} does not exist. Please provide a valid path.")
}

fn insert_line(line: &str, lines_count: usize, strings: Strings) -> String {
    match strings {
        Strings::Doc => format!(
            "Error: Invalid `insert_line` parameter: {line}. It should be within the range of \
             lines of the file: [0, {lines_count}]"
        ),
        Strings::Python => format!(
            "Invalid `insert_line` parameter: {line}. It should be within the range [0, \
             {lines_count}]."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_both_sets() {
        let cases = [
            (0, "0B", "0B"),
            (1, "1B", "1B"),
            (1023, "1023B", "1023B"),
            (1024, "1.0K", "1K"),
            (1025, "1.0K", "1.0K"),
            (1280, "1.2K", "1.2K"),
            (1536, "1.5K", "1.5K"),
            (4096, "4.0K", "4K"),
            (1_048_575, "1024.0K", "1024.0K"),
            (1 << 40, "1024.0G", "1024G"),
        ];
        for (bytes, doc, python) in cases {
            assert_eq!(size(bytes, Strings::Doc), doc);
            assert_eq!(size(bytes, Strings::Python), python);
        }
    }

    #[test]
    fn a_long_view_is_truncated_at_a_line_end_and_says_how_to_continue() {
        let lines = ["aaaa"; 10];
        let Text::File { text } = file("/memories/f", (5, &lines), 40) else { panic!("a file") };
        let expected = "     7\taaaa\n[Lines 5-7 of 5-14 are shown. To see the rest, view it again \
                        with \"view_range\": [8, 14].]";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn the_first_line_is_shown_however_long_it_is() {
        let Text::File { text } = file("/memories/f", (1, &["x".repeat(99).as_str()]), 10) else {
            panic!("a file")
        };
        assert!(text.ends_with('x'));
    }
}
