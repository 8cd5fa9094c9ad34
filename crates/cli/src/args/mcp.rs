//! The arguments of `mcp`.

use clap::{Args, Subcommand, ValueEnum};
use quipu_mcp::ToolSet;

use super::examples;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArguments {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
    #[command(flatten)]
    pub(crate) offer: McpOffer,
    /// Log level on standard error: error, warn, info or debug
    #[arg(long, default_value = "error", value_name = "LEVEL")]
    pub(crate) log_level: tracing::Level,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct McpOffer {
    /// Reject every change
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Tools to offer, comma-separated: `all`, `memory`, `read`, `notes`, `admin` or names of tools;
    /// only `admin` includes `delete_project`
    #[arg(long, value_name = "TOOLS")]
    pub(crate) tools: Option<ToolSet>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add this server to the configuration of an MCP host; a backup of the old file is kept
    #[command(after_help = examples::MCP_INSTALL)]
    Install(McpInstallArguments),
    /// Remove this server from the configuration of an MCP host; a backup of the old file is kept
    Uninstall(McpPlace),
}

#[derive(Args, Debug)]
pub(crate) struct McpInstallArguments {
    #[command(flatten)]
    pub(crate) place: McpPlace,
    #[command(flatten)]
    pub(crate) offer: McpOffer,
}

/// The configuration file to change.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct McpPlace {
    /// MCP host
    pub(crate) host: Host,
    /// Configure only the project in the current directory, if the host supports that; the file holds
    /// no absolute path of this machine, so it can be committed
    #[arg(long)]
    pub(crate) project: bool,
    /// Print the new configuration without writing it
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
