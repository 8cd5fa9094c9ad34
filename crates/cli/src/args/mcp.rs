//! `quipu mcp`, as it is typed.

use clap::{Args, Subcommand, ValueEnum};
use quipu_mcp::ToolSet;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArguments {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
    #[command(flatten)]
    pub(crate) offer: McpOffer,
    /// How much to log to the standard error: error, warn, info, debug
    #[arg(long, default_value = "error", value_name = "LEVEL")]
    pub(crate) log_level: tracing::Level,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct McpOffer {
    /// Refuse everything that changes something
    #[arg(long)]
    pub(crate) read_only: bool,
    /// The tools to offer: `all`, `memory`, `read`, `notes`, `admin` or names of tools,
    /// with commas; `delete_project` is in none of them but `admin`
    #[arg(long, value_name = "TOOLS")]
    pub(crate) tools: Option<ToolSet>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add this server to the configuration of a host; its old configuration is kept as a copy
    Install(McpInstallArguments),
    /// Remove this server from the configuration of a host; its old configuration is kept as a copy
    Uninstall(McpPlace),
}

#[derive(Args, Debug)]
pub(crate) struct McpInstallArguments {
    #[command(flatten)]
    pub(crate) place: McpPlace,
    #[command(flatten)]
    pub(crate) offer: McpOffer,
}

/// Which configuration is meant.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct McpPlace {
    /// The host
    pub(crate) host: Host,
    /// For the project in the current directory only, where the host has that; its file names no
    /// directory of this machine, so it can be shared
    #[arg(long)]
    pub(crate) project: bool,
    /// Show the new configuration and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    ClaudeDesktop,
    ClaudeCode,
    Vscode,
    Cursor,
    Codex,
}
