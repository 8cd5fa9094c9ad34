//! `quipu import` and `quipu export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct ImportArguments {
    /// The folder or file to import
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) source: PathBuf,
    /// What it is [default: detected]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) from: Option<ImportKind>,
    /// The directory of the store to put everything into
    #[arg(long, default_value = "/", value_name = "DIR")]
    pub(crate) into: String,
    /// Import every text of a folder, also code and Obsidian's boards (`.canvas`)
    #[arg(long)]
    pub(crate) all_texts: bool,
    /// Add the dates of markdown files to their frontmatter, unless it has a date
    #[arg(long)]
    pub(crate) file_dates: bool,
    /// Replace what others wrote, and bring back what was deleted in the store since
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Only tell what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportKind {
    /// A folder of texts
    Folder,
    /// An Obsidian vault
    Obsidian,
    /// A Basic Memory project
    BasicMemory,
    /// The memory of Claude Code: `MEMORY.md`, `CLAUDE.md` and what lies beside them
    ClaudeCode,
    /// The file of the MCP reference memory server, `memory.json` or `memory.jsonl`
    McpMemory,
    /// The export of ChatGPT, unpacked, or one of its `conversations*.json`
    Chatgpt,
    /// The export of Claude, unpacked, or one of its files
    Claude,
    /// An archive that `quipu export` wrote; the newest text of each memory is imported
    Archive,
}

impl ImportKind {
    /// Returns the word for it on the command line.
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
    /// The folder or file to write
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) target: PathBuf,
    /// In which form [default: `archive` for a file that ends with `.jsonl`, else `folder`]
    #[arg(long = "as", value_enum, value_name = "FORM")]
    pub(crate) form: Option<ExportForm>,
    /// Replace files of the folder that differ
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// In which form a store can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// One file for each memory, as they are now
    Folder,
    /// One file with every version, one JSON document on each line
    Archive,
    /// A new git repository with one commit for each version
    Git,
}
