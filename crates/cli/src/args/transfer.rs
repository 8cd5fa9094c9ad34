//! The arguments of `import` and `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::PastArguments;

#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// Folder or file to import
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) source: PathBuf,
    /// Kind of the source [default: detected]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) from: Option<ImportKind>,
    /// Directory of the store to import into
    #[arg(long, default_value = "/", value_name = "DIR")]
    pub(crate) into: String,
    /// Import all text files of a folder, including code and Obsidian's `.canvas` boards
    #[arg(long)]
    pub(crate) all_texts: bool,
    /// Add the dates of markdown files to their frontmatter, unless it has a date; `always` if WHEN is
    /// left out
    // With a space instead of the `=`, `--file-dates ~/vault` would take the folder for a value.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = DatesWhen::Auto,
        default_missing_value = "always"
    )]
    pub(crate) file_dates: DatesWhen,
    /// Replace memories that others edited, and restore those deleted in the store since
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// When an import adds the dates of files to notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DatesWhen {
    /// If the folder is an Obsidian vault
    Auto,
    /// From any folder
    Always,
    /// Not at all: texts are imported byte for byte
    Never,
}

/// The kinds of sources that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportKind {
    /// A folder of text files
    Folder,
    /// An Obsidian vault
    Obsidian,
    /// A Basic Memory project
    BasicMemory,
    /// The memory of Claude Code: `MEMORY.md`, `CLAUDE.md` and the files beside them
    ClaudeCode,
    /// The file of the MCP reference memory server, `memory.json` or `memory.jsonl`
    McpMemory,
    /// The export of ChatGPT, unpacked, or one of its `conversations*.json`
    Chatgpt,
    /// The export of Claude, unpacked, or one of its files
    Claude,
    /// An archive written by `quipu export`; the newest text of each memory is imported
    Archive,
}

impl ImportKind {
    /// Returns its name on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Obsidian => "obsidian",
            Self::BasicMemory => "basic-memory",
            Self::ClaudeCode => "claude-code",
            Self::McpMemory => "mcp-memory",
            Self::Chatgpt => "chatgpt",
            Self::Claude => "claude",
            Self::Archive => "archive",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// Folder or file to write
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) target: PathBuf,
    /// Format [default: `archive` if the target ends with `.jsonl`, else `folder`]
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<ExportFormat>,
    /// Replace existing files that differ
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

/// The formats that a store can be exported in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One file per memory, with its current text
    Folder,
    /// One file with every version, one JSON object per line
    Archive,
    /// A new git repository with one commit per version
    Git,
}
