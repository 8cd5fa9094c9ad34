//! Command-line arguments, as they are typed.

mod access;
mod examples;
mod global;
mod history;
mod hook;
mod knowledge;
mod mcp;
mod model;
mod mount;
mod plans;
mod project;
mod sync;
mod transfer;
mod upkeep;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use quipu_core::model::{ForgottenPolicy, SecretPolicy, Writers};

pub(crate) use access::{
    EventsArguments, KeyCommand, KeyCreateArguments, PromptArguments, SessionCommand,
    SessionCreateArguments, SessionShowArguments, UiArguments,
};
pub(crate) use global::Global;
pub(crate) use history::{
    BlameArguments, DiffArguments, LogArguments, ReceiptsArguments, RedactArguments,
    RedactSelection, RestoreArguments, ShowArguments,
};
pub(crate) use hook::{
    HookCommand, HookFailing, HookHost, HookInstallArguments, HookLogArguments, HookPlace,
    HookRunArguments, RulesCheckArguments, RulesCommand, RulesInitArguments,
};
pub(crate) use knowledge::{
    ContextArguments, GraphArguments, GraphFormat, LinksArguments, RecentArguments,
    SearchArguments, SearchIn, SearchWhat, SuggestArguments,
};
pub(crate) use mcp::{Host, McpArguments, McpCommand, McpInstallArguments, McpOffer, McpPlace};
pub(crate) use model::{
    ModelCheckArguments, ModelCommand, ModelInstallArguments, ModelNameArguments,
};
pub(crate) use mount::{MountArguments, UnmountArguments};
pub(crate) use plans::{PlanArguments, RevertArguments, WriterArguments};
pub(crate) use project::InitProjectArguments;
pub(crate) use sync::SyncArguments;
pub(crate) use transfer::{DatesWhen, ExportArguments, ExportFormat, ImportArguments, ImportKind};
pub(crate) use upkeep::{
    BackupArguments, CheckArguments, CompletionsArguments, ManArguments, MoveArguments,
    PruneArguments,
};

const AFTER_HELP: &str = "\
Getting started:
  quipu store create notes                create a store
  echo 'green, 80 °C' | quipu put tea.md  write a memory
  quipu log                               see who changed what
  quipu restore tea.md                    undo the last change

Exit codes: 0 success, 1 other failure, 2 usage error, 3 not found or ambiguous, 4 conflict with \
another change, 5 rejected by a rule or limit, 6 permission denied, 7 storage failure, 8 problems \
found by `check`.";

/// Self-hosted memory for AI agents: versioned, attributed, searchable text.
#[derive(Debug, Parser)]
#[command(name = "quipu", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the REST API and the Model Context Protocol over HTTP
    ///
    /// The first start creates an admin key and prints it once; if the output is not a terminal, the
    /// key goes to the file `first-key` in the data directory. `QUIPU_ADMIN_KEY` sets a key instead.
    Serve(ServeArguments),
    /// Open the inspector in your browser, signed in by a one-time link
    ///
    /// The server must be running (`quipu serve`). The link works once, within 60 seconds. It gives the rights of `--role` on all stores, or on those of
    /// `--store` (repeatable), and the history names you as the author.
    #[command(after_help = examples::UI)]
    Ui(UiArguments),
    /// Serve the Model Context Protocol over standard input and output
    ///
    /// All stores are available unless `--store NAME[:ro]` (repeatable) restricts them. The
    /// connection is a session, and the history names it as the author.
    Mcp(McpArguments),
    /// Serve the memory tool over standard input and output, one JSON object per line
    ///
    /// The store is `memories` unless `--store` names another one; it is created if missing. Each
    /// run is a session, and the history names it as the author.
    Tool(ToolArguments),
    /// Sync a folder and a store in both directions
    ///
    /// A change on one side is applied to the other. Files that changed on both sides are merged
    /// line by line; where the changes overlap, the folder's text wins and the store's stays in the
    /// history. Hidden files and files ignored by a `.gitignore` are skipped.
    Sync(SyncArguments),
    /// Mount stores as directories, for any program that works with files
    ///
    /// Mounts the stores of `--store NAME[:ro]` (repeatable), or those attached to `--session`. Runs
    /// until it is interrupted, everything is unmounted, or the parent process exits. Each run is a
    /// session, and the history names it as the author.
    ///
    /// `--store NAME@MOMENT` mounts a store as it was, read-only. The past of every mounted store is
    /// below `.quipu/at/MOMENT` in it.
    #[command(after_help = examples::MOUNT)]
    Mount(MountArguments),
    /// Unmount what `quipu mount` mounted
    Unmount(UnmountArguments),
    /// Set up a project that spans many agent sessions: progress log, checklist, start-up notes
    ///
    /// Existing memories are left unchanged.
    InitProject(InitProjectArguments),
    /// Let hosts show memories to their agents, and ask rules before their agents act
    #[command(subcommand)]
    Hook(HookCommand),
    /// List and check the rules that hosts ask before their agents act
    #[command(subcommand)]
    Rules(RulesCommand),
    /// Create, list, change, archive and delete stores
    #[command(subcommand)]
    Store(StoreCommand),
    /// List memories and directories
    Ls(LsArguments),
    /// Print memories
    Cat(CatArguments),
    /// Create or replace a memory from a file or from standard input
    Put(PutArguments),
    /// Edit a memory in your editor
    Edit(EditArguments),
    /// Move a memory or a directory; memories keep their id and history
    Mv(MvArguments),
    /// Delete memories; their versions are kept and can be restored
    Rm(RmArguments),
    /// Show who changed what and when, newest first
    #[command(after_help = examples::LOG)]
    Log(LogArguments),
    /// Show a version: its author and what it changed
    Show(ShowArguments),
    /// Compare versions, moments or stores
    #[command(after_help = examples::DIFF)]
    Diff(DiffArguments),
    /// Show who wrote each line of a memory, and when
    Blame(BlameArguments),
    /// Restore an old version, undo the last change to a memory, or restore a tree as it was
    #[command(after_help = examples::RESTORE)]
    Restore(RestoreArguments),
    /// Take back what a session, a key or a user changed
    ///
    /// What nobody else has changed since becomes what it was: text, path and existence. Later edits by
    /// others are kept by a three-way merge; what cannot be merged is listed and left. The revert is one
    /// transaction per store and one new version per memory, so it can be reverted as well.
    #[command(after_help = examples::REVERT)]
    Revert(RevertArguments),
    /// Erase the text of versions permanently, by id or by what they contain
    ///
    /// Text, path, title, front matter, old versions, deleted memories, session titles and the search
    /// index are covered. A receipt is kept. Later writes that bring the text back are pointed out.
    #[command(after_help = examples::REDACT)]
    Redact(RedactArguments),
    /// List what redactions did, with the proof
    #[command(after_help = examples::RECEIPTS)]
    Receipts(ReceiptsArguments),
    /// Search memories, best matches first
    #[command(after_help = examples::SEARCH)]
    Search(SearchArguments),
    /// Suggest the memories relevant to a text, as markdown for a model
    ///
    /// Prints nothing if no memory does. What a memory says is quoted, with its path and author: it is data
    /// that others have written, not an instruction.
    #[command(after_help = examples::SUGGEST)]
    Suggest(SuggestArguments),
    /// List recently changed memories, including deleted ones
    Recent(RecentArguments),
    /// Show a memory's observations and the memories linked with it
    Context(ContextArguments),
    /// List a memory's links or backlinks, unresolved links, or orphans
    Links(LinksArguments),
    /// Draw the link graph of a store
    Graph(GraphArguments),
    /// Import a folder, an Obsidian vault, a Basic Memory project or another program's export
    ///
    /// The kind is detected unless `--from` names it. Importing again updates only what has changed
    /// in the source; edits made in the store meanwhile are kept unless `--overwrite` is given. The
    /// import is one session, and the history names it as the author.
    #[command(after_help = examples::IMPORT)]
    Import(ImportArguments),
    /// Export a store as a folder, as an archive of all versions, or as a git repository
    Export(ExportArguments),
    /// Create, list, archive and delete agent sessions
    #[command(subcommand)]
    Session(SessionCommand),
    /// List what was recorded in a session, and follow it
    #[command(after_help = examples::EVENTS)]
    Events(EventsArguments),
    /// Create, list and revoke keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Install, list and choose models for search by meaning
    #[command(subcommand)]
    Model(ModelCommand),
    /// Print instructions that teach an agent to use its memory
    Prompt(PromptArguments),
    /// Verify the integrity of the data directory
    Check(CheckArguments),
    /// Apply retention now: remove old versions and expired memories
    Prune(PruneArguments),
    /// Write a consistent copy of all data to a new file, without stopping writers
    Backup(BackupArguments),
    /// Replace the database with a backup; the old files are kept
    ///
    /// First stop everything that uses the data directory: servers, mounts, syncs and MCP hosts.
    RestoreBackup(BackupArguments),
    /// Create or upgrade the tables of a database; on an embedded one, print its version
    Migrate,
    /// Move everything to another place: from a directory to a database, or back
    ///
    /// Everything arrives with its ids, versions, moments and sequences, and the digests of both sides are
    /// compared. Run it while servers write, then once more after you have stopped them: the second run
    /// copies only what has changed.
    #[command(after_help = examples::MOVE)]
    Move(MoveArguments),
    /// Print shell completions
    Completions(CompletionsArguments),
    /// Print the manual page, or write one per command to a directory
    Man(ManArguments),
}

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// Address and port to listen on; port 0 picks a free port [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Certificate chain for HTTPS (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Private key for HTTPS (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: Option<PathBuf>,
    /// Allow a non-loopback address without TLS, although keys then travel unencrypted
    #[arg(long)]
    pub(crate) allow_plain_http: bool,
    /// Reject requests without the version and beta headers of the API
    #[arg(long)]
    pub(crate) strict_headers: bool,
    /// Log level on standard error: error, warn, info or debug
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub(crate) log_level: tracing::Level,
    /// Log as JSON, one object per line
    #[arg(long)]
    pub(crate) log_json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ToolArguments {
    /// Wording of the answers: as in the documentation (`doc`) or as in the Python SDK (`python`)
    #[arg(long, value_enum, default_value_t = ToolStrings::Doc)]
    pub(crate) strings: ToolStrings,
    /// Reject every command except `view`
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Title of the session in the history, such as the name of your program
    #[arg(long, default_value = "quipu tool", value_name = "TEXT")]
    pub(crate) title: String,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ToolStrings {
    Doc,
    Python,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Create a store
    Create(StoreCreateArguments),
    /// List stores, newest first
    List(StoreListArguments),
    /// Show a store and how much it holds
    Show(StoreNameArguments),
    /// Change a store's name, description, labels or policies
    Update(StoreUpdateArguments),
    /// Archive a store permanently (read-only)
    Archive(StoreNameArguments),
    /// Delete a store; it can be restored until the grace period ends
    Delete(StoreDeleteArguments),
    /// Restore a deleted store
    Restore(StoreRestoreArguments),
    /// Copy the memories of a store, as they are or as they were, to a new store
    #[command(after_help = examples::STORE_COPY)]
    Copy(StoreCopyArguments),
    /// Show or set the store that commands use when none is named
    Default(StoreDefaultArguments),
}

#[derive(Args, Debug)]
pub(crate) struct StoreCreateArguments {
    /// Name of the new store
    pub(crate) name: String,
    /// Succeed without changes if a store with this name exists
    #[arg(long)]
    pub(crate) if_missing: bool,
    #[command(flatten)]
    pub(crate) properties: StoreProperties,
}

#[derive(Args, Debug)]
pub(crate) struct StoreCopyArguments {
    /// Store to copy; `NAME@MOMENT` copies it as it was
    pub(crate) from: String,
    /// Name of the new store
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

#[derive(Args, Debug)]
pub(crate) struct StoreProperties {
    /// What the store is for; shown to agents
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Label, not shown to agents; an empty value removes it (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) metadata: Vec<String>,
    /// How to treat credentials in new texts: off, warn, redact or reject
    #[arg(long, value_name = "POLICY")]
    pub(crate) secrets: Option<SecretPolicy>,
    /// How to treat redacted text that comes back: warn or refuse
    #[arg(long, value_name = "POLICY")]
    pub(crate) forgotten: Option<ForgottenPolicy>,
    /// Who may change memories, of those who may write: everyone or people; an agent is none
    #[arg(long, value_name = "WHO")]
    pub(crate) writers: Option<Writers>,
    /// Delete memories that were not read or written for this many days; 0 means never
    #[arg(long, value_name = "DAYS")]
    pub(crate) expire_after_days: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct StoreListArguments {
    /// Include archived stores
    #[arg(long, short)]
    pub(crate) all: bool,
    /// List the deleted stores that can still be restored instead
    #[arg(long, conflicts_with = "all")]
    pub(crate) deleted: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StoreNameArguments {
    /// Store, by name or id [default: the one of `--store`]
    #[arg(value_name = "STORE")]
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct StoreUpdateArguments {
    /// Store, by name or id [default: the one of `--store`]
    #[arg(value_name = "STORE")]
    pub(crate) name: Option<String>,
    /// New name
    #[arg(long, value_name = "NAME")]
    pub(crate) rename: Option<String>,
    #[command(flatten)]
    pub(crate) properties: StoreProperties,
}

#[derive(Args, Debug)]
pub(crate) struct StoreDeleteArguments {
    /// Store, by name or id
    #[arg(value_name = "STORE")]
    pub(crate) name: String,
    /// Erase the store now, without a grace period; also erases one that is deleted already
    #[arg(long)]
    pub(crate) now: bool,
    /// Skip the confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StoreRestoreArguments {
    /// Deleted store, by name or id; if several share the name, the last one deleted
    #[arg(value_name = "STORE")]
    pub(crate) name: String,
    /// Restore it under a new name
    #[arg(long, value_name = "NAME")]
    pub(crate) rename: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct StoreDefaultArguments {
    /// Store, by name or id
    #[arg(value_name = "STORE", conflicts_with = "clear")]
    pub(crate) name: Option<String>,
    /// Remove the default
    #[arg(long)]
    pub(crate) clear: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LsArguments {
    /// Directory
    #[arg(default_value = "/")]
    pub(crate) directory: String,
    /// Also show size, time and id
    #[arg(long, short)]
    pub(crate) long: bool,
    /// List memories recursively
    #[arg(long, short = 'R')]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

/// The moment at which a store is read.
#[derive(Args, Debug, Default)]
pub(crate) struct PastArguments {
    /// Read the store as it was: a time (`yesterday 14:00`, `2h ago`, `2026-11-15`, UTC), a place in the
    /// feed (`#12345`) or a version; `--store NAME@MOMENT` means the same
    #[arg(long, value_name = "MOMENT")]
    pub(crate) at: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct CatArguments {
    /// Memories, by path or id
    #[arg(required = true, value_name = "PATH")]
    pub(crate) memories: Vec<String>,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

#[derive(Args, Debug)]
pub(crate) struct PutArguments {
    /// Path of the memory
    pub(crate) path: String,
    /// File to read [default: standard input]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Fail if the path is taken
    #[arg(long, conflicts_with = "if_hash")]
    pub(crate) new: bool,
    /// Fail unless the current text has this SHA-256
    #[arg(long, value_name = "SHA256")]
    pub(crate) if_hash: Option<String>,
    #[command(flatten)]
    pub(crate) writer: WriterArguments,
}

#[derive(Args, Debug)]
pub(crate) struct EditArguments {
    /// Path of the memory; created when you save, if new
    pub(crate) path: String,
    #[command(flatten)]
    pub(crate) writer: WriterArguments,
}

#[derive(Args, Debug)]
pub(crate) struct MvArguments {
    /// Memory or directory
    pub(crate) from: String,
    /// New path, which must be free
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) writer: WriterArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RmArguments {
    /// Memories, by path or id
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Delete directories and everything below them
    #[arg(long, short)]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) writer: WriterArguments,
}
