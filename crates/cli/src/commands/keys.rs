//! `quipu key`.

use quipu_core::engine::NewKey;
use quipu_core::model::{Forwarding, Key, KeyId, Name, Timestamp};
use quipu_core::timeframe;
use quipu_core::{Error, ErrorKind};
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
            let data = context.open()?;
            let key = data.engine.revoke_key(found(&data, &arguments.key)?)?;
            let keys = data.engine.keys(data.workspace)?;
            let line = line(&key, &keys, key.created_at);
            answer(context.form, &KeyBody::from(&key), |out| writeln!(out, "{line}"))
        }
    }
}

/// Returns the key with this id, or the only one with this name that is not revoked. Of those with the
/// name, the ones that were not derived from others come first: revoking one ends what was derived from it.
fn found(data: &Data, text: &str) -> Result<KeyId, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let is_named = |key: &Key| key.revoked_at.is_none() && key.name.as_str() == text;
    let mut keys = data.engine.keys(data.workspace)?;
    keys.retain(is_named);
    if keys.iter().any(|key| !key.is_derived()) {
        keys.retain(|key| !key.is_derived());
    }
    match keys.as_slice() {
        [] => Err(Failure::from(Error::not_found(format!("no valid key has the name `{text}`")))
            .with_hint("`quipu key list` shows them")),
        [only] => Ok(only.id),
        several => {
            let ids: Vec<_> = several.iter().map(|key| key.id.to_string()).collect();
            let message = format!("{} keys have the name `{text}`", ids.len());
            Err(Failure::from(Error::new(ErrorKind::Ambiguous, message))
                .with_hint(format!("revoke them by id: {}", ids.join(", "))))
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
        forwarding: if arguments.forward { Forwarding::Allowed } else { Forwarding::Denied },
    };
    let (key, secret) = data.engine.create_key(data.workspace, &new)?;
    let secret = secret.reveal().to_owned();
    let body = KeyWithSecret { key: KeyBody::from(&key), secret };
    answer(context.form, &body, |out| {
        writeln!(out, "key {}", key.id)?;
        writeln!(out, "Role:    {}", key.role)?;
        if key.forwarding == Forwarding::Allowed {
            writeln!(out, "Forward: to the upstream")?;
        }
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
        keys.iter().try_for_each(|key| writeln!(out, "{}", line(key, &keys, now)))
    })
}

/// Returns what is said about a key of these.
fn line(key: &Key, keys: &[Key], now: Timestamp) -> String {
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
    let origin = match key.parent {
        Some(id) => match keys.iter().find(|key| key.id == id) {
            Some(parent) => format!("{} of {}", key.kind, parent.name),
            None => format!("{} of {id}", key.kind),
        },
        None if key.is_derived() => format!("{} of the owner", key.kind),
        None => key.kind.to_string(),
    };
    let used = match key.used_at {
        Some(at) => format!("used {}", local(at)),
        None => "never used".to_owned(),
    };
    let forwards = match key.forwarding {
        Forwarding::Allowed => "  forwards",
        Forwarding::Denied => "",
    };
    format!(
        "{}  {:10}  {}  {origin}  {stores}  {state}  {used}{forwards}",
        key.id, key.role, key.name
    )
}
