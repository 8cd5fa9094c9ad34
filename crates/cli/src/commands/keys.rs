//! `quipu key`.

use quipu_core::Error;
use quipu_core::engine::NewKey;
use quipu_core::model::{Key, Name, Timestamp};
use quipu_core::timeframe;
use quipu_service::wire::{KeyBody, ListBody};
use serde::Serialize;

use crate::args::{KeyCommand, KeyCreateArguments};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{answer, local};

pub(super) fn run(context: &Context, command: KeyCommand) -> Result<(), Failure> {
    match command {
        KeyCommand::Create(arguments) => create(context, arguments),
        KeyCommand::List => list(context),
        KeyCommand::Revoke(arguments) => {
            let key = context.open()?.engine.revoke_key(arguments.key)?;
            let line = line(&key, key.created_at);
            answer(context.form, &KeyBody::from(&key), |out| writeln!(out, "{line}"))
        }
    }
}

#[derive(Serialize)]
struct KeyWithSecret {
    #[serde(flatten)]
    key: KeyBody,
    secret: String,
}

fn create(context: &Context, arguments: KeyCreateArguments) -> Result<(), Failure> {
    let data = context.open_or_create()?;
    let stores = data
        .named
        .iter()
        .map(|name| data.find_store(name).map(|store| store.id))
        .collect::<Result<Vec<_>, _>>()?;
    let new = NewKey {
        name: Name::new(arguments.name).map_err(Error::from)?,
        role: arguments.role,
        stores: if stores.is_empty() { None } else { Some(stores) },
        expires_at: arguments.expires.map(|text| expiry(&data, &text)).transpose()?,
        secret: None,
    };
    let (key, secret) = data.engine.create_key(data.workspace, &new)?;
    let secret = secret.reveal().to_owned();
    let body = KeyWithSecret { key: KeyBody::from(&key), secret };
    answer(context.form, &body, |out| {
        writeln!(out, "key {}", key.id)?;
        writeln!(out, "Role:    {}", key.role)?;
        if let Some(at) = key.expires_at {
            writeln!(out, "Expires: {}", local(at))?;
        }
        writeln!(out, "Secret:  {} (shown only once)", body.secret)
    })
}

/// Parses an expiry: a duration from now, or a point in time.
fn expiry(data: &Data, text: &str) -> Result<Timestamp, Failure> {
    let now = data.engine.now();
    let at = timeframe::span(text).map(|span| now.plus(span)).or_else(|| text.parse().ok());
    at.filter(|at| *at > now).ok_or_else(|| {
        Failure::usage(format!(
            "`{text}` is not a time in the future, such as `30d` or `2027-01-31`"
        ))
    })
}

fn list(context: &Context) -> Result<(), Failure> {
    let data = context.open()?;
    let keys = data.engine.keys(data.workspace)?;
    let now = data.engine.now();
    let body = ListBody::complete(keys.iter().map(KeyBody::from).collect());
    answer(context.form, &body, |out| {
        keys.iter().try_for_each(|key| writeln!(out, "{}", line(key, now)))
    })
}

fn line(key: &Key, now: Timestamp) -> String {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", local(at)),
        (None, Some(at)) if at <= now => format!("expired {}", local(at)),
        (None, Some(at)) => format!("until {}", local(at)),
        (None, None) => "valid".to_owned(),
    };
    let stores = match &key.stores {
        None => "all stores".to_owned(),
        Some(stores) => stores.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    };
    format!("{}  {:10}  {}  {stores}  {state}", key.id, key.role, key.name)
}
