//! `quipu store`.

use std::collections::BTreeMap;
use std::io::Write;

use quipu_core::Error;
use quipu_core::backend::Archived;
use quipu_core::engine::{NewStore, StoreUpdate};
use quipu_core::model::{Description, Metadata, Name, Store, StorePolicy};
use quipu_server::wire::{DeletedBody, ListBody, StoreDetails};

use crate::args::{
    StoreCommand, StoreCreateArguments, StoreDeleteArguments, StoreNameArguments, StoreTraits,
    StoreUpdateArguments,
};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{answer, confirm, local, size};

pub(super) fn run(context: &Context, command: StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Create(arguments) => create(context, arguments),
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
        StoreCommand::Delete(arguments) => delete(context, &arguments),
    }
}

fn named(data: &Data, arguments: &StoreNameArguments) -> Result<Store, Failure> {
    arguments.name.as_deref().map_or_else(|| data.store(), |name| data.find_store(name))
}

fn create(context: &Context, arguments: StoreCreateArguments) -> Result<(), Failure> {
    let data = context.open_or_create()?;
    let traits = arguments.traits;
    let patch = metadata_patch(&traits)?;
    let new = NewStore {
        name: Name::new(arguments.name).map_err(Error::from)?,
        description: Description::new(traits.description.clone().unwrap_or_default())
            .map_err(Error::from)?,
        metadata: Metadata::default().patched(&patch).map_err(Error::from)?,
        policy: policy(StorePolicy::default(), &traits),
    };
    let store = data.engine.create_store(data.workspace, &new)?;
    show(context, &data, &store)
}

fn update(context: &Context, arguments: StoreUpdateArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = named(&data, &StoreNameArguments { name: arguments.name })?;
    let traits = arguments.traits;
    let update = StoreUpdate {
        name: arguments.rename.map(Name::new).transpose().map_err(Error::from)?,
        description: traits
            .description
            .clone()
            .map(Description::new)
            .transpose()
            .map_err(Error::from)?,
        metadata: metadata_patch(&traits)?,
        policy: Some(policy(store.policy, &traits)),
    };
    let store = data.engine.update_store(store.id, &update)?;
    show(context, &data, &store)
}

fn policy(before: StorePolicy, traits: &StoreTraits) -> StorePolicy {
    StorePolicy {
        secrets: traits.secrets.unwrap_or(before.secrets),
        expire_after_days: match traits.expire_after_days {
            Some(0) => None,
            Some(days) => Some(days),
            None => before.expire_after_days,
        },
    }
}

fn metadata_patch(traits: &StoreTraits) -> Result<BTreeMap<String, Option<String>>, Failure> {
    let pair = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{text}` is not of the form KEY=VALUE")))?;
        let value = if value.is_empty() { None } else { Some(value.to_owned()) };
        Ok((key.to_owned(), value))
    };
    traits.metadata.iter().map(pair).collect()
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
                "{}  {:width$}  {:>5} memories  {:>10}{archived}",
                line.store.id,
                line.store.name,
                line.memories_count,
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

fn delete(context: &Context, arguments: &StoreDeleteArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.find_store(&arguments.name)?;
    let usage = data.engine.usage(store.id)?;
    if !arguments.yes {
        confirm(&format!(
            "The store `{}` with {} memories and all their versions will be erased.",
            store.name, usage.memories_count
        ))?;
    }
    data.engine.delete_store(store.id)?;
    answer(context.form, &DeletedBody::store(store.id), |out| {
        writeln!(out, "deleted {} `{}`", store.id, store.name)
    })
}
