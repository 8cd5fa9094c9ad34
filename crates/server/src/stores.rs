//! `/v1/memory_stores`.

use quipu_core::Error;
use quipu_core::backend::StoreQuery;
use quipu_core::engine::{NewStore, StoreUpdate};
use quipu_core::model::{Description, Metadata, Name, StorePolicy, View};
use quipu_service::caller::Need;
use quipu_service::wire::{CreateStore, DeletedBody, ListBody, StoreBody, UpdateStore};

use super::answer::{Answer, json};
use super::call::Call;
use super::cursor::Cursors;

const LIST: &str = "stores";

pub(super) fn create(call: &Call<'_>) -> Answer {
    call.caller.require_workspace(Need::Manage)?;
    let body: CreateStore = call.body()?;
    let new = NewStore {
        name: Name::new(body.name).map_err(Error::from)?,
        description: Description::new(body.description.unwrap_or_default()).map_err(Error::from)?,
        metadata: Metadata::new(body.metadata.unwrap_or_default()).map_err(Error::from)?,
        policy: StorePolicy::default(),
    };
    let store = call.engine.create_store(call.caller.workspace, &new)?;
    Ok(json(&StoreBody::from(&store)))
}

pub(super) fn list(call: &Call<'_>) -> Answer {
    let limit = call.query().limit(View::Basic)?;
    let cursors = Cursors::new(call, LIST);
    let mut query = StoreQuery {
        workspace: call.caller.workspace,
        archived: call.query().archived()?,
        created: call.query().created()?,
        before: cursors.place(call.query())?,
        limit,
    };
    // A caller that sees only some stores gets full pages of those.
    let mut data = Vec::new();
    let next = loop {
        let page = call.engine.stores(&query)?;
        let visible = page.items.iter().filter(|store| call.caller.may_in(store.id, Need::Read));
        data.extend(visible.map(StoreBody::from));
        query.before = page.next;
        query.limit = limit - data.len().min(limit);
        if page.next.is_none() || query.limit == 0 {
            break page.next;
        }
    };
    Ok(json(&ListBody { data, next_page: next.map(|id| cursors.encode(id)) }))
}

pub(super) fn retrieve(call: &Call<'_>) -> Answer {
    Ok(json(&StoreBody::from(&call.named_store(Need::Read)?)))
}

pub(super) fn update(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Manage)?;
    let body: UpdateStore = call.body()?;
    let update = StoreUpdate {
        name: body.name.map(Name::new).transpose().map_err(Error::from)?,
        description: body.description.map(Description::new).transpose().map_err(Error::from)?,
        metadata: body.metadata.unwrap_or_default(),
        policy: None,
    };
    let store = call.engine.update_store(store.id, &update)?;
    Ok(json(&StoreBody::from(&store)))
}

pub(super) fn archive(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Manage)?;
    let store = call.engine.archive_store(store.id)?;
    Ok(json(&StoreBody::from(&store)))
}

pub(super) fn delete(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Manage)?;
    call.engine.erase_store(store.id)?;
    Ok(json(&DeletedBody::store(store.id)))
}
