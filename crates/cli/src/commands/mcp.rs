//! `quipu mcp`: the Model Context Protocol over standard input and output.

mod configuration;
mod install;

use std::thread;

pub(super) use install::{Edit, inside_project, replace as replace_file, target};

use quipu_core::Error;
use quipu_core::engine::NewAttachment;
use quipu_core::model::{Access, Instructions};
use quipu_mcp::{McpSettings, Reach, ToolSet};
use quipu_service::tool::ToolSettings;

use crate::args::{McpArguments, McpCommand, McpOffer};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::log::{self, LogForm};
use crate::settings::Settings;
use crate::uses;

pub(super) fn run(context: &Context, arguments: &McpArguments) -> Result<(), Failure> {
    match &arguments.command {
        Some(McpCommand::Install(install)) => return install::run(context, install),
        Some(McpCommand::Uninstall(place)) => return install::uninstall(context, *place),
        None => {}
    }
    // Standard output carries the protocol, and hosts show the log verbatim, so no colors.
    let _log = log::start(arguments.log_level, LogForm::Plain);
    let mut settings = settings(&context.settings, Some(&arguments.offer))?;
    // Who only reads named stores has nothing to read in a new data directory.
    let may_create = settings.access == Access::ReadWrite || context.named().is_empty();
    let data = if may_create { context.open_or_create()? } else { context.open()? };
    let data = data.with_vectors(context);
    if settings.store.is_none() {
        let default = match data.default_store() {
            // The named stores are all that is offered, so a default that was deleted does not matter.
            Err(failure) if failure.is_not_found() && !data.named.is_empty() => None,
            default => default?,
        };
        settings.store = default.map(|store| store.name.to_string());
    }
    let reach = reach(&data, settings.access)?;
    uses::flush_in_background(&data.engine);
    let engine = data.engine.clone();
    // It ends with the process, which is safe at any moment.
    thread::spawn(move || quipu_service::embed_index(&engine, || false));
    let served = quipu_mcp::serve(&data.engine, settings, reach);
    served.map_err(|error| Failure::other(error.to_string()))
}

/// Returns the stores that are offered: those that are named, else those of the session that is named, else
/// all.
fn reach(data: &Data, most: Access) -> Result<Reach, Failure> {
    if !data.named.is_empty() {
        let stores = data.named.iter().map(|named| attachment(data, named, most));
        let stores: Vec<_> = stores.collect::<Result<_, _>>()?;
        for attached in &stores {
            data.require_granted(&data.engine.store(attached.store)?, attached.access)?;
        }
        return Ok(Reach::Attached(data.workspace, stores));
    }
    let Some(session) = data.acting()? else { return Ok(Reach::Everything(data.workspace)) };
    let attached = session.attachments.iter().map(|attachment| NewAttachment {
        store: attachment.store,
        access: if most == Access::ReadOnly { most } else { attachment.access },
        instructions: attachment.instructions.clone(),
    });
    Ok(Reach::Attached(data.workspace, attached.collect()))
}

/// Parses `NAME` or `NAME:ro`. A missing store is created, unless access is read-only.
fn attachment(data: &Data, named: &str, most: Access) -> Result<NewAttachment, Failure> {
    let (name, access) = match named.strip_suffix(":ro") {
        Some(name) => (name, Access::ReadOnly),
        None => (named, most),
    };
    let store = match access {
        Access::ReadOnly => data.find_store(name)?.id,
        Access::ReadWrite => data.find_or_create_store(name)?.id,
    };
    let instructions = Instructions::new("").map_err(Error::from)?;
    Ok(NewAttachment { store, access, instructions })
}

/// Returns the settings of the server, with the overrides of the command line.
pub(super) fn settings(
    settings: &Settings,
    offer: Option<&McpOffer>,
) -> Result<McpSettings, Failure> {
    let tools = match (offer.and_then(|offer| offer.tools.clone()), &settings.mcp.tools) {
        (Some(tools), _) => tools,
        (None, Some(words)) => words
            .parse::<ToolSet>()
            .map_err(|error| Failure::usage(format!("the setting `mcp.tools`: {error}")))?,
        (None, None) => ToolSet::default(),
    };
    let is_read_only = offer.is_some_and(|offer| offer.read_only);
    let tool = ToolSettings::default();
    Ok(McpSettings {
        tools,
        access: if is_read_only { Access::ReadOnly } else { Access::ReadWrite },
        instructions: settings.mcp.instructions.clone(),
        store: settings.store.clone(),
        tool: ToolSettings {
            view_max_chars: settings.view_max_chars.unwrap_or(tool.view_max_chars),
            ..tool
        },
    })
}
