//! The arguments of `hook` and `rules`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::examples;

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Add the hooks to the settings of a host; a backup of the old file is kept
    #[command(after_help = examples::HOOK_INSTALL)]
    Install(HookInstallArguments),
    /// Remove the hooks from the settings of a host; a backup of the old file is kept
    Uninstall(HookPlace),
    /// Answer an event of a host, which is read as JSON from standard input
    ///
    /// Hosts start this. Whatever goes wrong, the host goes on: the exit code is 0, the answer says
    /// nothing, and `quipu hook log` has the reason.
    Run(HookRunArguments),
    /// Answer whether a call of a tool may happen, which is read as JSON from standard input
    ///
    /// Hosts start this before each call. If the rules cannot be applied, `--fail` or the setting
    /// `rules.fail` says what happens.
    Decide(HookRunArguments),
    /// Show what hooks have decided, and why they have failed
    Log(HookLogArguments),
    /// Record decisions that wait for it now, as events of sessions that are named after those of the host
    ///
    /// Hooks do so by themselves when an agent stops.
    Record,
}

/// A host with hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookHost {
    ClaudeCode,
    Codex,
    Cursor,
}

/// The settings file to change.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct HookPlace {
    /// Host
    pub(crate) host: HookHost,
    /// Configure only the project in the current directory; the file holds no absolute path of this
    /// machine, so it can be committed
    #[arg(long)]
    pub(crate) project: bool,
    /// Print the new settings without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args, Debug)]
pub(crate) struct HookInstallArguments {
    #[command(flatten)]
    pub(crate) place: HookPlace,
    /// What happens to a call if the rules cannot be applied: open or closed [default: the setting
    /// `rules.fail`]
    #[arg(long, value_name = "HOW")]
    pub(crate) fail: Option<HookFailing>,
    /// Also sync the memory folder of the host with a store of its name
    #[arg(long)]
    pub(crate) memory_folder: bool,
}

#[derive(Args, Debug)]
pub(crate) struct HookRunArguments {
    /// Host that asks
    #[arg(long)]
    pub(crate) host: HookHost,
    /// What happens to a call if the rules cannot be applied: open or closed
    #[arg(long, value_name = "HOW")]
    pub(crate) fail: Option<HookFailing>,
    /// Sync the memory folder of the host at the beginning and the end of a session
    #[arg(long)]
    pub(crate) memory_folder: bool,
}

#[derive(Args, Debug)]
pub(crate) struct HookLogArguments {
    /// How many entries to show, the newest last
    #[arg(long, short = 'n', default_value_t = 20, value_name = "COUNT")]
    pub(crate) limit: usize,
}

/// What happens if the rules cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookFailing {
    Open,
    Closed,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Create a store for rules that only people can change, with rules that protect it
    Init(RulesInitArguments),
    /// List the rules
    List,
    /// Find rules that are broken, contradict each other or can never apply; or explain a call
    ///
    /// Exits with 8 if a rule is broken.
    #[command(after_help = examples::RULES_CHECK)]
    Check(RulesCheckArguments),
}

#[derive(Args, Debug)]
pub(crate) struct RulesInitArguments {
    /// Name of the store
    #[arg(default_value = "rules", value_name = "STORE")]
    pub(crate) name: String,
}

#[derive(Args, Debug)]
pub(crate) struct RulesCheckArguments {
    /// Call of a tool, as a host sends it to its hooks; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["tool", "command", "path", "content"])]
    pub(crate) input: Option<PathBuf>,
    /// Host that the input is from
    #[arg(long, default_value = "claude-code")]
    pub(crate) host: HookHost,
    /// Name of the tool [default: Bash with `--command`, else Edit]
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Command of a shell
    #[arg(long, value_name = "TEXT")]
    pub(crate) command: Option<String>,
    /// Path of a file
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// New text of the file
    #[arg(long, value_name = "TEXT")]
    pub(crate) content: Option<String>,
}
