//! `quipu tool`: the memory tool over standard input and output.

use std::io::{BufReader, BufWriter};

use quipu_core::engine::{NewAttachment, NewSession, SessionToken};
use quipu_core::model::{Access, Instructions};
use quipu_service::DraftedSession;
use quipu_service::tool::{MemoryTool, Strings, ToolSettings, stdio};

use crate::args::{ToolArguments, ToolStrings};
use crate::context::Context;
use crate::failure::Failure;

/// The store that the tool uses when none is named.
pub(super) const DEFAULT_STORE: &str = "memories";

pub(super) fn run(context: &Context, arguments: &ToolArguments) -> Result<(), Failure> {
    let data = context.open_or_create()?;
    let store = data.store_or_create(DEFAULT_STORE)?;
    let access = if arguments.read_only { Access::ReadOnly } else { Access::ReadWrite };
    data.require_granted(&store, access)?;
    let attachment =
        NewAttachment { store: store.id, access, instructions: Instructions::default() };
    let new = NewSession::titled(&arguments.title, vec![attachment], SessionToken::None);
    // The session is recorded by its first change, so that reading needs no write lock.
    let session = DraftedSession::new(data.engine.draft_session(data.workspace, &new)?);
    let default = ToolSettings::default();
    let settings = ToolSettings {
        strings: match arguments.strings {
            ToolStrings::Doc => Strings::Doc,
            ToolStrings::Python => Strings::Python,
        },
        access,
        view_max_chars: context.settings.view_max_chars.unwrap_or(default.view_max_chars),
    };
    let tool = MemoryTool::new(data.engine, store.id, session, settings);
    let input = BufReader::new(std::io::stdin().lock());
    let output = BufWriter::new(std::io::stdout().lock());
    Ok(stdio::serve(&tool, input, output)?)
}
