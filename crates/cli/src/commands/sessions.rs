//! `quipu session` and `quipu prompt`.

use std::io::Write;

use anstyle::AnsiColor;
use quipu_core::Error;
use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::{
    ChangeSelection, Changed, Known, NewAttachment, NewSession, SessionToken,
};
use quipu_core::model::{Access, Actor, Instructions, KeySecret, Session, Store};
use quipu_service::prompt::{Prompt, PromptStore};
use quipu_service::wire::{
    ChangedBody, DeletedBody, Diffs, ListBody, SessionSummary, changed_diff,
};
use serde::Serialize;

use super::history::unified;
use crate::args::{PromptArguments, SessionCommand, SessionCreateArguments, SessionShowArguments};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{Form, answer, count, local, raw, style};

pub(super) fn run(context: &Context, command: SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::Create(arguments) => create(context, &arguments),
        SessionCommand::List(arguments) => {
            list(context, if arguments.all { Archived::Show } else { Archived::Hide })
        }
        SessionCommand::Show(arguments) => {
            let data = context.open()?;
            let session = data.engine.session(arguments.session)?;
            show_with_changes(context, &data, &session, &arguments)
        }
        SessionCommand::Archive(arguments) => {
            let session = context.open()?.engine.archive_session(arguments.session)?;
            show(context, &session, None)
        }
        SessionCommand::Delete(arguments) => {
            let id = arguments.session;
            context.open()?.engine.delete_session(id)?;
            answer(context.form, &DeletedBody::session(id), |out| writeln!(out, "deleted {id}"))
        }
    }
}

/// Parses `NAME` or `NAME:ro`.
pub(super) fn attachment(
    data: &Data,
    text: &str,
    instructions: &str,
) -> Result<NewAttachment, Failure> {
    let (name, access) = match text.strip_suffix(":ro") {
        Some(name) => (name, Access::ReadOnly),
        None => (text, Access::ReadWrite),
    };
    Ok(NewAttachment {
        store: data.find_store(name)?.id,
        access,
        instructions: Instructions::new(instructions).map_err(Error::from)?,
    })
}

fn create(context: &Context, arguments: &SessionCreateArguments) -> Result<(), Failure> {
    let data = context.open()?;
    if data.named.is_empty() {
        return Err(Failure::usage("a session needs at least one store")
            .with_hint("attach stores with `--store NAME` or `--store NAME:ro`"));
    }
    let attachments = data
        .named
        .iter()
        .map(|text| attachment(&data, text, &arguments.instructions))
        .collect::<Result<_, _>>()?;
    let new = NewSession::titled(&arguments.title, attachments, SessionToken::Issue);
    let (session, token) = data.engine.create_session(data.workspace, &new)?;
    show(context, &session, token.as_ref())
}

fn list(context: &Context, archived: Archived) -> Result<(), Failure> {
    let data = context.open()?;
    let query = SessionQuery {
        workspace: data.workspace,
        store: data.named.first().map(|name| data.find_store(name)).transpose()?.map(|s| s.id),
        archived,
        created: Span::default(),
        viewer: None,
        order: Order::NewestFirst,
        after: None,
        limit: usize::MAX,
    };
    let sessions = data.engine.sessions(&query)?.items;
    let root = &context.settings.mount_root;
    let summaries = sessions.iter().map(|session| SessionSummary::new(session, root)).collect();
    answer(context.form, &ListBody::complete(summaries), |out| {
        for session in &sessions {
            let stores: Vec<_> =
                session.attachments.iter().map(|attachment| attachment.slug.as_str()).collect();
            let at = local(session.created_at);
            writeln!(out, "{}  {at}  {}  {}", session.id, stores.join(","), session.title)?;
        }
        Ok(())
    })
}

#[derive(Serialize)]
struct SessionWithToken {
    #[serde(flatten)]
    session: SessionSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    token_expires_at: Option<String>,
}

/// A session with what it changed.
#[derive(Serialize)]
struct SessionWithChanges {
    #[serde(flatten)]
    session: SessionSummary,
    changes: Vec<ChangedBody>,
}

/// How many unchanged lines are shown around a change.
const CONTEXT_LINES: usize = 3;

fn show_with_changes(
    context: &Context,
    data: &Data,
    session: &Session,
    arguments: &SessionShowArguments,
) -> Result<(), Failure> {
    let selection =
        ChangeSelection { actors: vec![Actor::Session(session.id)], ..ChangeSelection::default() };
    let mut changes = Vec::new();
    for store in data.stores(Archived::Show)? {
        let changed = data.engine.changed(store.id, &selection)?;
        changes.extend(changed.into_iter().map(|changed| (store.clone(), changed)));
    }
    let root = &context.settings.mount_root;
    let mut diffs = Diffs::default();
    let bodies =
        changes.iter().map(|(store, changed)| ChangedBody::new(store.id, changed, &mut diffs));
    let body = SessionWithChanges {
        session: SessionSummary::new(session, root),
        changes: bodies.collect(),
    };
    answer(context.form, &body, |out| {
        describe(out, session, root)?;
        if changes.is_empty() {
            return writeln!(out, "No changes.");
        }
        writeln!(out, "\nChanges:")?;
        for (store, changed) in &changes {
            show_changed(out, store, changed, arguments)?;
        }
        let memories = count(changes.len(), "memory", "memories");
        let line = format!("quipu revert --session {} --all --dry-run", session.id);
        writeln!(out, "{memories} changed; `{line}` shows how to take it back")
    })
}

/// Prints what the changes of a session to a memory come to.
fn show_changed(
    out: &mut dyn Write,
    store: &Store,
    changed: &Changed,
    arguments: &SessionShowArguments,
) -> std::io::Result<()> {
    let path = |known: &Known| match known {
        Known::Absent => None,
        Known::State(state) => Some(state.path.to_string()),
        Known::Lost(_) => Some("(no longer kept)".to_owned()),
    };
    let (color, what) = match (path(&changed.before), path(&changed.after)) {
        (None, None) => (AnsiColor::Yellow, "created and deleted".to_owned()),
        (None, Some(path)) => (AnsiColor::Green, format!("created {path}")),
        (Some(path), None) => (AnsiColor::Red, format!("deleted {path}")),
        (Some(old), Some(new)) if old == new => (AnsiColor::Yellow, format!("changed {new}")),
        (Some(old), Some(new)) => (AnsiColor::Yellow, format!("changed {old} -> {new}")),
    };
    let color = style(color);
    let versions = count(changed.versions_count, "version", "versions");
    write!(out, "{color}{what}{color:#} in {} ({versions}", store.name)?;
    match changed_diff(changed) {
        Err(why) => writeln!(out, "; {why})"),
        Ok(diff) => {
            writeln!(out, ", +{} -{})", diff.added_count(), diff.removed_count())?;
            if arguments.stat { Ok(()) } else { unified(out, &diff, CONTEXT_LINES) }
        }
    }
}

fn describe(out: &mut dyn Write, session: &Session, root: &str) -> std::io::Result<()> {
    writeln!(out, "session {}", session.id)?;
    if !session.title.is_empty() {
        writeln!(out, "Title:    {}", session.title)?;
    }
    writeln!(out, "Created:  {}", local(session.created_at))?;
    if let Some(at) = session.archived_at {
        writeln!(out, "Archived: {}", local(at))?;
    }
    for attachment in &session.attachments {
        let place = attachment.mount_path(root);
        writeln!(out, "Store:    {} ({}) at {place}", attachment.name, attachment.access)?;
    }
    Ok(())
}

fn show(context: &Context, session: &Session, token: Option<&KeySecret>) -> Result<(), Failure> {
    let root = &context.settings.mount_root;
    let token = token.map(|token| token.reveal().to_owned());
    let token_expires_at = session.token_expires_at.map(|at| at.to_string());
    let session_summary = SessionSummary::new(session, root);
    let body = SessionWithToken { session: session_summary, token, token_expires_at };
    answer(context.form, &body, |out| {
        describe(out, session, root)?;
        if let Some(token) = &body.token {
            writeln!(out, "Token:    {token} (shown only once)")?;
        }
        if let Some(at) = session.token_expires_at {
            writeln!(out, "Expires:  {} (token)", local(at))?;
        }
        Ok(())
    })
}

pub(super) fn prompt(context: &Context, arguments: PromptArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let stores = match arguments.session {
        Some(id) => {
            let session = data.engine.session(id)?;
            let chosen = arguments.root.map(|root| root.display().to_string());
            let root = chosen.as_ref().unwrap_or(&context.settings.mount_root);
            session.attachments.iter().map(|store| PromptStore::mounted(store, root)).collect()
        }
        None => vec![PromptStore::in_tool(&data.store()?, arguments.access)],
    };
    let text = Prompt { stores, topic: arguments.topic }.text();
    match context.form {
        Form::Text => raw(&text),
        Form::Json => answer(context.form, &serde_json::json!({ "prompt": text }), |_| Ok(())),
    }
}
