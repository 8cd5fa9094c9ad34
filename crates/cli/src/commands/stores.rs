//! `quipu store`.

use std::collections::BTreeMap;
use std::io::Write;

use quipu_core::Error;
use quipu_core::backend::Archived;
use quipu_core::engine::{NewStore, StoreUpdate};
use quipu_core::model::{
    DeletedStore, Description, Metadata, Name, Store, StorePolicy, Timestamp, Writers,
};
use quipu_service::wire::{DeletedBody, ListBody, StoreDetails};
use serde::Serialize;

use crate::args::{
    StoreCommand, StoreCopyArguments, StoreCreateArguments, StoreDefaultArguments,
    StoreDeleteArguments, StoreNameArguments, StoreProperties, StoreRestoreArguments,
    StoreUpdateArguments,
};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{self, answer, answer_reached, confirm, count, local, note, size};

pub(super) fn run(context: &Context, command: StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Create(arguments) => create(context, arguments),
        StoreCommand::List(arguments) if arguments.deleted => list_deleted(context),
        StoreCommand::List(arguments) => {
            list(context, if arguments.all { Archived::Show } else { Archived::Hide })
        }
        StoreCommand::Show(arguments) => {
            let data = context.open()?;
            let store = named(&data, &arguments)?;
            show(context, &data, &store)
        }
        StoreCommand::Update(arguments) => update(context, arguments),
        StoreCommand::Archive(arguments) => {
            let data = context.open()?;
            let store = data.engine.archive_store(named(&data, &arguments)?.id)?;
            show(context, &data, &store)
        }
        StoreCommand::Delete(arguments) if arguments.now => erase(context, &arguments),
        StoreCommand::Delete(arguments) => delete(context, &arguments),
        StoreCommand::Restore(arguments) => restore(context, arguments),
        StoreCommand::Default(arguments) => default(context, &arguments),
        StoreCommand::Copy(arguments) => copy(context, arguments),
    }
}

fn copy(context: &Context, arguments: StoreCopyArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let named = data.store_and_moment(&arguments.from)?;
    let (from, moment) = match (named, arguments.past.at) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage("give the moment once: `--at`, or after `@`"));
        }
        (Some((store, moment)), None) => (store, Some(moment)),
        (None, at) => (data.find_store(&arguments.from)?, at),
    };
    let new = NewStore {
        description: from.description.clone(),
        metadata: from.metadata.clone(),
        policy: from.policy,
        ..NewStore::named(Name::new(arguments.to).map_err(Error::from)?)
    };
    let existing = data.engine.find_store(data.workspace, new.name.as_str());
    if existing.is_ok() {
        let message = format!("there is already a store named `{}`", new.name);
        return Err(Failure::from(Error::invalid(message)).with_hint("choose another name"));
    }
    let source = match moment {
        Some(moment) => data.clone().at(&from, &moment)?.engine,
        None => data.engine.clone(),
    };
    let target = (data.workspace, &new);
    let (store, copied_count) = data.engine.copy_store(&data.actor, (&source, from.id), target)?;
    note(&format!("copied {} of `{}`", count(copied_count, "memory", "memories"), from.name));
    show(context, &data, &store)
}

fn named(data: &Data, arguments: &StoreNameArguments) -> Result<Store, Failure> {
    arguments.name.as_deref().map_or_else(|| data.store(), |name| data.find_store(name))
}

fn create(context: &Context, arguments: StoreCreateArguments) -> Result<(), Failure> {
    let data = context.open_or_create()?;
    let properties = arguments.properties;
    let patch = metadata_patch(&properties)?;
    let new = NewStore {
        name: Name::new(arguments.name).map_err(Error::from)?,
        description: Description::new(properties.description.clone().unwrap_or_default())
            .map_err(Error::from)?,
        metadata: Metadata::default().patched(&patch).map_err(Error::from)?,
        policy: policy(StorePolicy::default(), &properties),
    };
    let store = if arguments.if_missing {
        data.engine.ensure_store(data.workspace, &new)?
    } else {
        data.engine.create_store(data.workspace, &new)?
    };
    show(context, &data, &store)
}

fn update(context: &Context, arguments: StoreUpdateArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = named(&data, &StoreNameArguments { name: arguments.name })?;
    let properties = arguments.properties;
    let update = StoreUpdate {
        name: arguments.rename.map(Name::new).transpose().map_err(Error::from)?,
        description: properties
            .description
            .clone()
            .map(Description::new)
            .transpose()
            .map_err(Error::from)?,
        metadata: metadata_patch(&properties)?,
        policy: Some(policy(store.policy, &properties)),
    };
    let store = data.engine.update_store(store.id, &update)?;
    show(context, &data, &store)
}

fn policy(before: StorePolicy, properties: &StoreProperties) -> StorePolicy {
    StorePolicy {
        secrets: properties.secrets.unwrap_or(before.secrets),
        forgotten: properties.forgotten.unwrap_or(before.forgotten),
        writers: properties.writers.unwrap_or(before.writers),
        expire_after_days: match properties.expire_after_days {
            Some(0) => None,
            Some(days) => Some(days),
            None => before.expire_after_days,
        },
    }
}

fn metadata_patch(
    properties: &StoreProperties,
) -> Result<BTreeMap<String, Option<String>>, Failure> {
    let pair = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{text}` is not in the form KEY=VALUE")))?;
        let value = if value.is_empty() { None } else { Some(value.to_owned()) };
        Ok((key.to_owned(), value))
    };
    properties.metadata.iter().map(pair).collect()
}

fn list(context: &Context, archived: Archived) -> Result<(), Failure> {
    let data = context.open()?;
    let stores = data.stores(archived)?;
    let detailed = |store: &Store| Ok(StoreDetails::from((store, data.engine.usage(store.id)?)));
    let bodies = stores.iter().map(detailed).collect::<Result<Vec<_>, Failure>>()?;
    let lines = bodies.clone();
    answer(context.form, &ListBody::complete(bodies), |out| {
        let width = lines.iter().map(|line| line.store.name.chars().count()).max().unwrap_or(0);
        for line in &lines {
            let archived = if line.store.archived_at.is_some() { "  archived" } else { "" };
            writeln!(
                out,
                "{}  {:width$}  {:>14}  {:>10}{archived}",
                line.store.id,
                line.store.name,
                memories(line.memories_count),
                size(line.size_bytes),
            )?;
        }
        Ok(())
    })
}

fn show(context: &Context, data: &Data, store: &Store) -> Result<(), Failure> {
    let usage = data.engine.usage(store.id)?;
    let body = StoreDetails::from((store, usage));
    answer(context.form, &body, |out| describe(out, store, &body))
}

fn describe(out: &mut dyn Write, store: &Store, body: &StoreDetails) -> std::io::Result<()> {
    writeln!(out, "store {}", store.id)?;
    writeln!(out, "Name:        {}", store.name)?;
    if !store.description.as_str().is_empty() {
        writeln!(out, "Description: {}", store.description)?;
    }
    for (key, value) in store.metadata.pairs() {
        writeln!(out, "Label:       {key}={value}")?;
    }
    writeln!(out, "Secrets:     {}", store.policy.secrets)?;
    writeln!(out, "Forgotten:   {}", store.policy.forgotten)?;
    if store.policy.writers != Writers::Everyone {
        writeln!(out, "Writers:     {}", store.policy.writers)?;
    }
    if let Some(days) = store.policy.expire_after_days {
        writeln!(out, "Expiry:      after {days} days without use")?;
    }
    writeln!(out, "Memories:    {}, {}", body.memories_count, size(body.size_bytes))?;
    writeln!(out, "Created:     {}", local(store.created_at))?;
    if let Some(at) = store.archived_at {
        writeln!(out, "Archived:    {}", local(at))?;
    }
    Ok(())
}

/// A deleted store, as JSON.
#[derive(Serialize)]
struct DeletedDetails {
    id: String,
    name: String,
    memories_count: u64,
    deleted_at: String,
    /// The end of the grace period; then `quipu prune` and servers erase it.
    erased_after: String,
}

impl DeletedDetails {
    fn new(context: &Context, deleted: &DeletedStore) -> Self {
        Self {
            id: deleted.store.id.to_string(),
            name: deleted.store.name.to_string(),
            memories_count: deleted.memories_count,
            deleted_at: deleted.deleted_at.to_string(),
            erased_after: erased_after(context, deleted).to_string(),
        }
    }
}

fn erased_after(context: &Context, deleted: &DeletedStore) -> Timestamp {
    deleted.deleted_at.plus(context.settings.limits.deleted_stores_kept_for)
}

fn memories(count: u64) -> String {
    print::count(usize::try_from(count).unwrap_or(usize::MAX), "memory", "memories")
}

fn list_deleted(context: &Context) -> Result<(), Failure> {
    let data = context.open()?;
    let deleted = data.engine.deleted_stores(data.workspace)?;
    let details = deleted.iter().map(|deleted| DeletedDetails::new(context, deleted));
    answer(context.form, &ListBody::complete(details.collect()), |out| {
        let width = deleted.iter().map(|deleted| deleted.store.name.as_str().chars().count());
        let width = width.max().unwrap_or(0);
        for deleted in &deleted {
            writeln!(
                out,
                "{}  {:width$}  {:>14}  erased after {}",
                deleted.store.id,
                deleted.store.name.as_str(),
                memories(deleted.memories_count),
                local(erased_after(context, deleted)),
            )?;
        }
        Ok(())
    })
}

fn delete(context: &Context, arguments: &StoreDeleteArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.find_store(&arguments.name)?;
    if !arguments.yes {
        let count = memories(data.engine.usage(store.id)?.memories_count);
        let days = context.settings.limits.deleted_stores_kept_for.as_secs() / (24 * 60 * 60);
        confirm(&format!(
            "The store `{}` with {count} will be deleted. It can be restored for {}.",
            store.name,
            print::count(usize::try_from(days).unwrap_or(usize::MAX), "day", "days")
        ))?;
    }
    let deleted = data.engine.delete_store(store.id)?;
    answer(context.form, &DeletedDetails::new(context, &deleted), |out| {
        writeln!(
            out,
            "deleted {} `{}`; until {3}, `quipu store restore {2}` restores it",
            store.id,
            store.name,
            store.id,
            local(erased_after(context, &deleted))
        )
    })
}

fn erase(context: &Context, arguments: &StoreDeleteArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let live = data.find_store(&arguments.name);
    let deleted = || data.engine.find_deleted_store(data.workspace, &arguments.name).ok();
    let (store, memories_count) = match (live, deleted) {
        (Ok(store), _) => {
            let usage = data.engine.usage(store.id)?;
            (store, usage.memories_count)
        }
        (Err(missing), deleted) => {
            let deleted = deleted().ok_or(missing)?;
            (deleted.store, deleted.memories_count)
        }
    };
    if !arguments.yes {
        let count = memories(memories_count);
        confirm(&format!(
            "The store `{}` with {count} and all their versions will be erased. This cannot be \
             undone.",
            store.name
        ))?;
    }
    data.engine.erase_store(store.id)?;
    let unreachable = data.engine.backend().unreachable()?;
    answer_reached(context.form, &unreachable, &DeletedBody::store(store.id), |out| {
        writeln!(out, "erased {} `{}`", store.id, store.name)
    })
}

fn restore(context: &Context, arguments: StoreRestoreArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let rename = arguments.rename.map(Name::new).transpose().map_err(Error::from)?;
    let store = data.engine.restore_store(data.workspace, &arguments.name, rename.as_ref())?;
    show(context, &data, &store)
}

fn default(context: &Context, arguments: &StoreDefaultArguments) -> Result<(), Failure> {
    let data = context.open()?;
    if arguments.clear {
        data.engine.set_default_store(data.workspace, None)?;
    }
    if let Some(name) = &arguments.name {
        let store = data.find_store(name)?;
        data.engine.set_default_store(data.workspace, Some(store.id))?;
    }
    let store = data.default_store()?;
    let body = store
        .as_ref()
        .map(|store| serde_json::json!({"id": store.id.to_string(), "name": store.name.as_str()}));
    answer(context.form, &body, |out| match &store {
        Some(store) => writeln!(out, "{} `{}`", store.id, store.name),
        None => writeln!(out, "no default store is set"),
    })
}
