//! `quipu session` and `quipu prompt`.

use quipu_core::Error;
use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::{NewAttachment, NewSession, TokenWish};
use quipu_core::model::{Access, Instructions, KeySecret, Session};
use quipu_core::prompt::{Prompt, PromptStore};
use quipu_server::wire::{DeletedBody, ListBody, SessionSummary};
use serde::Serialize;

use crate::args::{PromptArguments, SessionCommand, SessionCreateArguments};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{Form, answer, local, raw};

pub(super) fn run(context: &Context, command: SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::Create(arguments) => create(context, &arguments),
        SessionCommand::List(arguments) => {
            list(context, if arguments.all { Archived::Show } else { Archived::Hide })
        }
        SessionCommand::Show(arguments) => {
            let session = context.open()?.engine.session(arguments.session)?;
            show(context, &session, None)
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

/// Reads `NAME` or `NAME:ro`.
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
    let new = NewSession::titled(&arguments.title, attachments, TokenWish::Issue);
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

fn show(context: &Context, session: &Session, token: Option<&KeySecret>) -> Result<(), Failure> {
    let root = &context.settings.mount_root;
    let token = token.map(|token| token.reveal().to_owned());
    let token_expires_at = session.token_expires_at.map(|at| at.to_string());
    let session_summary = SessionSummary::new(session, root);
    let body = SessionWithToken { session: session_summary, token, token_expires_at };
    answer(context.form, &body, |out| {
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
        if let Some(token) = &body.token {
            writeln!(out, "Token:    {token} (shown only now)")?;
        }
        if let Some(at) = session.token_expires_at {
            writeln!(out, "Expires:  {} (the token)", local(at))?;
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
