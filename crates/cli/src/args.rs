//! The command line, as it is typed.

mod access;
mod history;
mod knowledge;
mod mcp;
mod mount;
mod sync;
mod transfer;
mod upkeep;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use quipu_core::model::{Access, SecretPolicy, SessionId};

pub(crate) use access::{KeyCommand, KeyCreateArguments, SessionCommand, SessionCreateArguments};
pub(crate) use history::{
    DiffArguments, LogArguments, RedactArguments, RestoreArguments, ShowArguments,
};
pub(crate) use knowledge::{
    ContextArguments, GraphArguments, GraphForm, LinksArguments, RecentArguments, SearchArguments,
    SearchIn, SearchWhat,
};
pub(crate) use mcp::{Host, McpArguments, McpCommand, McpInstallArguments, McpOffer, McpPlace};
pub(crate) use mount::{MountArguments, UnmountArguments};
pub(crate) use sync::SyncArguments;
pub(crate) use transfer::{ExportArguments, ExportForm, ImportArguments, ImportKind};
pub(crate) use upkeep::{
    BackupArguments, CheckArguments, CompletionsArguments, ManArguments, PruneArguments,
};

const AFTER_HELP: &str = "\
To begin:
  quipu store create notes               make a store
  echo 'green, 80 °C' | quipu put tea.md  put a memory into it
  quipu log                              see who changed what
  quipu restore tea.md                   undo the last change

Exit codes: 0 done, 1 other failure, 2 wrong usage, 3 not found or ambiguous, 4 conflict with \
another change, 5 refused by a rule or limit, 6 not allowed, 7 the storage does not work, \
8 `check` found problems.";

/// The memory of AI agents: stores, memories and versions that you host yourself.
#[derive(Debug, Parser)]
#[command(name = "quipu", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// The data directory [default: the platform's data directory; also `QUIPU_DATA`]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
    /// The settings file [default: `quipu.toml` in the data directory; also `QUIPU_CONFIG`]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// The store, by name or id [default: that of `quipu store default`, or the only one; also
    /// `QUIPU_STORE`]
    #[arg(long = "store", short, global = true, value_name = "STORE")]
    pub(crate) stores: Vec<String>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the REST API and the Model Context Protocol over HTTP
    ///
    /// The first start makes an admin key and prints it once, unless `QUIPU_ADMIN_KEY` names one.
    Serve(ServeArguments),
    /// Serve the Model Context Protocol to the program that starts this one
    ///
    /// Every store can be used, unless `--store NAME[:ro]`, which may be repeated, names some. The
    /// connection is a session, which the history names as the author.
    Mcp(McpArguments),
    /// Serve the memory tool: one JSON command per line in, one JSON answer per line out
    ///
    /// The store is `memories` unless `--store` names another one; it is created if it does not
    /// exist. Every run is a session, which the history names as the author.
    Tool(ToolArguments),
    /// Keep a folder and a store equal, in both directions
    ///
    /// What only one side changed is done on the other side, and lines that both changed are merged;
    /// if they contradict each other, the folder's text wins and the store's stays in the history.
    /// Hidden files and those that a `.gitignore` names are left out.
    Sync(SyncArguments),
    /// Mount stores as directories, so that any program can use them: `--store NAME[:ro]`, or
    /// `--session` for those of a session
    ///
    /// Runs until it is told to stop, everything is unmounted or the process that started it ends.
    /// Every run is a session, which the history names as the author.
    Mount(MountArguments),
    /// Unmount what `quipu mount` has mounted
    Unmount(UnmountArguments),
    /// Lay down what a project of many agent sessions needs: progress log, checklist, start-up notes
    ///
    /// Memories that exist already are left as they are.
    InitProject(InitProjectArguments),
    /// Create, list, change, archive and delete stores
    #[command(subcommand)]
    Store(StoreCommand),
    /// List memories and directories
    Ls(LsArguments),
    /// Print memories
    Cat(CatArguments),
    /// Create or replace a memory with the text of a file or of the standard input
    Put(PutArguments),
    /// Edit a memory in your editor
    Edit(EditArguments),
    /// Move a memory or a directory; memories keep their id and history
    Mv(MvArguments),
    /// Delete memories; their versions stay and can be restored
    Rm(RmArguments),
    /// Show who changed what and when, the newest first
    Log(LogArguments),
    /// Show a version: who made it, and what it changed
    Show(ShowArguments),
    /// Compare versions
    Diff(DiffArguments),
    /// Write the text of an old version again, or undo the last change of a memory
    Restore(RestoreArguments),
    /// Take the text out of versions for good
    Redact(RedactArguments),
    /// Search memories by their words, the best first
    Search(SearchArguments),
    /// Show which memories changed lately, deleted ones too
    Recent(RecentArguments),
    /// Show a memory's observations and what is linked with it
    Context(ContextArguments),
    /// Show what a memory links to and what links to it, and what is missing
    Links(LinksArguments),
    /// Draw the memories of a store and their links
    Graph(GraphArguments),
    /// Import notes: a folder, an Obsidian vault, a Basic Memory project, or what another program kept
    ///
    /// The kind is detected unless `--from` names it. Importing again changes only what has changed,
    /// and what the store's own users changed meanwhile is left alone unless `--overwrite` is given.
    /// The import is one session, which the history names as the author.
    Import(ImportArguments),
    /// Export a store: as a folder, as an archive with all versions, or as a git repository
    Export(ExportArguments),
    /// Start and list the sessions of agents, with the stores that they may use
    #[command(subcommand)]
    Session(SessionCommand),
    /// Create, list and revoke keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Print the text that tells an agent how to use its memory
    Prompt(PromptArguments),
    /// Verify the data directory
    Check(CheckArguments),
    /// Give up old versions and delete expired memories now
    Prune(PruneArguments),
    /// Write a consistent copy of everything to a new file, while others go on writing
    Backup(BackupArguments),
    /// Put a backup in the place of the database, whose files are kept aside
    ///
    /// Stop everything that uses the data directory first: servers, mounts, syncs and MCP hosts.
    RestoreBackup(BackupArguments),
    /// Print completions for a shell
    Completions(CompletionsArguments),
    /// Print the manual page, or write all of them to a directory
    Man(ManArguments),
}

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// The certificate chain for HTTPS, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The private key for HTTPS, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_certificate", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen on an address that is not loopback although keys then travel unencrypted
    #[arg(long)]
    pub(crate) allow_plain_http: bool,
    /// Require the version and beta headers of the contract
    #[arg(long)]
    pub(crate) strict_headers: bool,
    /// How much to log to the standard error: error, warn, info, debug
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub(crate) log_level: tracing::Level,
    /// Log as JSON, one object per line
    #[arg(long)]
    pub(crate) log_json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ToolArguments {
    /// Whose texts to answer with: those of the documentation (`doc`) or of the Python SDK (`python`)
    #[arg(long, value_enum, default_value_t = ToolStrings::Doc)]
    pub(crate) strings: ToolStrings,
    /// Refuse every command but view
    #[arg(long)]
    pub(crate) read_only: bool,
    /// What to call the session in the history, such as the name of your program
    #[arg(long, default_value = "quipu tool", value_name = "TEXT")]
    pub(crate) title: String,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ToolStrings {
    Doc,
    Python,
}

#[derive(Args, Debug)]
pub(crate) struct InitProjectArguments {
    /// The store for the project; it is created if it does not exist [default: that of `--store`, or
    /// `memories`]
    #[arg(value_name = "STORE")]
    pub(crate) name: Option<String>,
    /// A feature for the checklist (may be repeated)
    #[arg(long = "feature", value_name = "TEXT")]
    pub(crate) features: Vec<String>,
    /// The script that starts the project's environment
    #[arg(long, default_value = "./init.sh", value_name = "PATH")]
    pub(crate) script: String,
    /// A store whose memories are copied instead, as your own template
    #[arg(long, value_name = "STORE", conflicts_with_all = ["features", "script"])]
    pub(crate) template: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Create a store
    Create(StoreCreateArguments),
    /// List stores, the newest first
    List(StoreListArguments),
    /// Show a store and how full it is
    Show(StoreNameArguments),
    /// Change a store's name, description, labels or policies
    Update(StoreUpdateArguments),
    /// Archive a store for good: it takes no new text
    Archive(StoreNameArguments),
    /// Delete a store; it can be restored for some days, then it is erased
    Delete(StoreDeleteArguments),
    /// Bring a deleted store back as it was
    Restore(StoreRestoreArguments),
    /// Show or choose the store that commands use if none is named
    Default(StoreDefaultArguments),
}

#[derive(Args, Debug)]
pub(crate) struct StoreCreateArguments {
    /// The name
    pub(crate) name: String,
    /// Do nothing if a store has this name already
    #[arg(long)]
    pub(crate) if_missing: bool,
    #[command(flatten)]
    pub(crate) traits: StoreTraits,
}

#[derive(Args, Debug)]
pub(crate) struct StoreTraits {
    /// What the store is for; agents see it
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// A label that agents do not see; an empty value removes it (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) metadata: Vec<String>,
    /// What happens to writes that hold credentials: off, warn, redact or reject
    #[arg(long, value_name = "POLICY")]
    pub(crate) secrets: Option<SecretPolicy>,
    /// Delete memories that nobody read or wrote for so many days; 0 means never
    #[arg(long, value_name = "DAYS")]
    pub(crate) expire_after_days: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct StoreListArguments {
    /// Show archived stores too
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Show the deleted stores that can be restored instead
    #[arg(long, conflicts_with = "all")]
    pub(crate) deleted: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StoreNameArguments {
    /// The store, by name or id [default: that of `--store`]
    #[arg(value_name = "STORE")]
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct StoreUpdateArguments {
    /// The store, by name or id [default: that of `--store`]
    #[arg(value_name = "STORE")]
    pub(crate) name: Option<String>,
    /// The new name
    #[arg(long, value_name = "NAME")]
    pub(crate) rename: Option<String>,
    #[command(flatten)]
    pub(crate) traits: StoreTraits,
}

#[derive(Args, Debug)]
pub(crate) struct StoreDeleteArguments {
    /// The store, by name or id
    #[arg(value_name = "STORE")]
    pub(crate) name: String,
    /// Erase it at once, deleted before or not; no trace of its texts remains
    #[arg(long)]
    pub(crate) now: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StoreRestoreArguments {
    /// The deleted store, by name or id; of several with one name, the one that was deleted last
    #[arg(value_name = "STORE")]
    pub(crate) name: String,
    /// Restore it under this name
    #[arg(long, value_name = "NAME")]
    pub(crate) rename: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct StoreDefaultArguments {
    /// The store, by name or id
    #[arg(value_name = "STORE", conflicts_with = "clear")]
    pub(crate) name: Option<String>,
    /// Have no default
    #[arg(long)]
    pub(crate) clear: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LsArguments {
    /// The directory
    #[arg(default_value = "/")]
    pub(crate) directory: String,
    /// Show size, time and id too
    #[arg(long, short)]
    pub(crate) long: bool,
    /// Show the memories in all directories below
    #[arg(long, short = 'R')]
    pub(crate) recursive: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CatArguments {
    /// The memories, by path or id
    #[arg(required = true, value_name = "PATH")]
    pub(crate) memories: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct PutArguments {
    /// Where to put it
    pub(crate) path: String,
    /// The file to read [default: the standard input]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Only if nothing is there yet
    #[arg(long, conflicts_with = "if_hash")]
    pub(crate) new: bool,
    /// Only if the memory's text has this SHA-256
    #[arg(long, value_name = "SHA256")]
    pub(crate) if_hash: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct EditArguments {
    /// The memory; a new one is created when you save
    pub(crate) path: String,
}

#[derive(Args, Debug)]
pub(crate) struct MvArguments {
    /// The memory or directory
    pub(crate) from: String,
    /// Its new path; nothing may be there
    pub(crate) to: String,
}

#[derive(Args, Debug)]
pub(crate) struct RmArguments {
    /// The memories
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Delete directories with everything below them
    #[arg(long, short)]
    pub(crate) recursive: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PromptArguments {
    /// For the stores attached to this session, where a mount shows them
    #[arg(long, value_name = "ID", conflicts_with = "access")]
    pub(crate) session: Option<SessionId>,
    /// The directory below which the stores are mounted [default: /mnt/memory; also
    /// `QUIPU_MOUNT_ROOT`]
    #[arg(long, value_name = "DIR", requires = "session", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// What the agent may do in the store
    #[arg(long, default_value = "read_write")]
    pub(crate) access: Access,
    /// The only thing that should be remembered
    #[arg(long, value_name = "TEXT")]
    pub(crate) topic: Option<String>,
}
