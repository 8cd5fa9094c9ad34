//! Finds everything that a selection is about.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::backend::{Archived, Order, Reader, SessionQuery, Span, VersionFilter, VersionQuery};
use crate::model::{
    ContentHash, CopyMade, Key, Memory, MemoryId, ReceiptId, Refusal, Session, Store, StoreId,
    Timestamp, Version, View,
};
use crate::settings::Limits;

use super::super::existing_store;
use super::super::stores::all_stores;
use super::super::versions::{REFUSALS_KEPT, existing_version};
use super::agents::ScannedSessions;
use super::apply::Matched;
use super::{
    DefinitionHit, Heads, OtherStore, PlannedHead, PlannedVersion, RedactionPlan, Scope, Selection,
    SessionHit, StorePlan, agents, cut,
};

/// How many versions are read at a time. Each may be as long as a memory can be.
const PAGE: usize = 64;

/// The label by which a copy of a store names its origin.
const COPIED_FROM: &str = "copied_from";

/// Makes the plan on one snapshot, without what surrounds it.
pub(super) fn plan(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
    (heads, limits): (Heads, &Limits),
) -> Result<RedactionPlan, Error> {
    require_versions(reader, scope, selection)?;
    let mut stores = Vec::new();
    for store in stores_in(reader, scope)? {
        stores.push(plan_store(reader, &store, selection, limits)?);
    }
    complete(reader, scope, selection, (heads, stores, ScannedSessions::new()))
}

/// Makes the plan inside the transaction. What an earlier plan found in versions and stores still holds
/// if there was no change in between; sessions and refusals are not in the feed, so they are read again.
pub(super) fn plan_again(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
    (earlier, heads, limits): (Option<&RedactionPlan>, Heads, &Limits),
) -> Result<RedactionPlan, Error> {
    let Some(earlier) = earlier else {
        return plan(reader, scope, selection, (heads, limits));
    };
    let mut stores = earlier.stores.clone();
    for store in &mut stores {
        for planned in &store.versions {
            // Pruning is not in the feed either.
            if reader.version(store.store, planned.id, View::Basic)?.is_none() {
                return plan(reader, scope, selection, (heads, limits));
            }
        }
        store.refusals = refusals(reader, store.store, selection)?;
    }
    complete(reader, scope, selection, (heads, stores, earlier.scanned.clone()))
}

fn complete(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
    (heads, stores, mut scanned): (Heads, Vec<StorePlan>, ScannedSessions),
) -> Result<RedactionPlan, Error> {
    let mut plan = RedactionPlan {
        selection: selection.description(),
        heads,
        sessions: sessions(reader, scope, selection, &mut scanned)?,
        definitions: agents::definitions(reader, scope, selection)?,
        scanned,
        receipts: receipts(reader, scope, selection)?,
        copies: copies(reader, scope, selection)?,
        names: names(reader, scope, selection, &stores)?,
        stores,
        traces_count: 0,
        others: Vec::new(),
        copies_made: Vec::new(),
        deleted_stores: Vec::new(),
        unreachable: Vec::new(),
        digest: String::new(),
        sequence: reader.newest_change()?.0,
    };
    plan.digest = digest(&plan);
    selection.require_complete()?;
    Ok(plan)
}

pub(super) fn stores_in(reader: &dyn Reader, scope: &Scope) -> Result<Vec<Store>, Error> {
    match &scope.stores {
        Some(ids) => ids.iter().map(|id| existing_store(reader, *id)).collect(),
        None => all_stores(reader, scope.workspace, Archived::Show),
    }
}

/// Fails if a version that is selected by its id is in none of the stores.
fn require_versions(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
) -> Result<(), Error> {
    if selection.versions.is_empty() {
        return Ok(());
    }
    let stores = stores_in(reader, scope)?;
    for id in &selection.versions {
        let mut is_found = false;
        for store in &stores {
            is_found |= reader.version(store.id, *id, View::Basic)?.is_some();
        }
        if let (false, Some(store)) = (is_found, stores.first()) {
            existing_version(reader, store.id, *id, View::Basic)?;
        }
    }
    Ok(())
}

fn plan_store(
    reader: &dyn Reader,
    store: &Store,
    selection: &Selection<'_>,
    limits: &Limits,
) -> Result<StorePlan, Error> {
    let mut plan = StorePlan {
        store: store.id,
        name: store.name.clone(),
        versions: Vec::new(),
        heads: Vec::new(),
        refusals: refusals(reader, store.id, selection)?,
        fields: Vec::new(),
        matched: Matched::default(),
    };
    let mut heads: HashMap<MemoryId, Option<Memory>> = HashMap::new();
    for_each_version(reader, store.id, selection, &mut |version| {
        let Some(carriers) = selection.carriers(&version) else { return Ok(()) };
        plan.matched.add_version(selection, &version);
        let memory = match heads.get(&version.memory) {
            Some(memory) => memory.clone(),
            None => reader.memory(store.id, version.memory, View::Basic)?,
        };
        heads.insert(version.memory, memory.clone());
        if let Some(memory) = memory.filter(|memory| memory.version == version.id) {
            plan.heads.push(PlannedHead {
                memory: memory.id,
                version: version.id,
                change: cut::head_change(selection, &version, limits),
                path: memory.path,
            });
        }
        plan.versions.push(PlannedVersion {
            id: version.id,
            memory: version.memory,
            path: version.path,
            created_at: version.created_at,
            carriers,
        });
        Ok(())
    })?;
    if let (true, Some(pattern)) = (selection.is_by_content_alone(), &selection.pattern) {
        plan.fields = cut::store(pattern, store).1;
        plan.matched.add_store(selection, store);
    }
    Ok(plan)
}

/// Calls `visit` with every version that the selection may contain, the newest first.
fn for_each_version(
    reader: &dyn Reader,
    store: StoreId,
    selection: &Selection<'_>,
    visit: &mut dyn FnMut(Version) -> Result<(), Error>,
) -> Result<(), Error> {
    let view = selection.view();
    if !selection.versions.is_empty() {
        for id in &selection.versions {
            reader.version(store, *id, view)?.map_or(Ok(()), &mut *visit)?;
        }
        return Ok(());
    }
    let filter = VersionFilter {
        memory: selection.memory,
        actors: match selection.actors.as_slice() {
            [actor] => vec![actor.clone()],
            _ => Vec::new(),
        },
        created: selection.created,
        ..VersionFilter::default()
    };
    let mut before = None;
    loop {
        let query = VersionQuery { filter: filter.clone(), before, limit: PAGE, view };
        let versions = reader.versions(store, &query)?;
        let Some(last) = versions.last() else { return Ok(()) };
        before = Some(last.id);
        versions.into_iter().try_for_each(&mut *visit)?;
    }
}

fn refusals(
    reader: &dyn Reader,
    store: StoreId,
    selection: &Selection<'_>,
) -> Result<Vec<Refusal>, Error> {
    if selection.memory.is_some() || !selection.versions.is_empty() {
        return Ok(Vec::new());
    }
    let mut refusals = reader.refusals(store, REFUSALS_KEPT)?;
    refusals.retain(|refusal| {
        let path = crate::model::MemoryPath::parse(&refusal.path);
        let matches = |text: &str| selection.pattern.as_ref().is_none_or(|it| it.matches(text));
        (matches(&refusal.path) || matches(&refusal.reason))
            && (selection.path.is_none() || path.is_ok_and(|path| selection.has_path(&path)))
            && selection.has_actor(&refusal.actor)
            && selection.created.contains(refusal.at)
    });
    Ok(refusals)
}

/// Returns the sessions whose fields the pattern matches, and those with events that are selected. They
/// have no path and no memory.
///
/// Events never change, so of those that an earlier plan has searched only the later ones are read again.
fn sessions(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
    scanned: &mut ScannedSessions,
) -> Result<Vec<SessionHit>, Error> {
    let mut hits = Vec::new();
    if !agents::may_have_events(selection) {
        return Ok(hits);
    }
    for_each_session(reader, scope, &mut |session| {
        let actor = crate::model::Actor::Session(session.id);
        let is_selected =
            selection.has_actor(&actor) && selection.created.contains(session.created_at);
        let fields = match &selection.pattern {
            Some(pattern) if is_selected => cut::session(pattern, &session).1,
            Some(_) | None => Vec::new(),
        };
        let known = scanned.entry(session.id).or_default();
        let (later, newest) = agents::events(reader, &session, selection, known.newest)?;
        known.newest = newest;
        known.selected.extend(later);
        let events = known.selected.clone();
        if !fields.is_empty() || !events.is_empty() {
            hits.push(SessionHit { session: session.id, fields, events });
        }
        Ok(())
    })?;
    Ok(hits)
}

fn for_each_session(
    reader: &dyn Reader,
    scope: &Scope,
    visit: &mut dyn FnMut(Session) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut after = None;
    loop {
        let sessions = reader.sessions(&SessionQuery {
            workspace: scope.workspace,
            store: None,
            archived: Archived::Show,
            created: Span::default(),
            viewer: scope.viewer.clone(),
            order: Order::OldestFirst,
            after,
            limit: PAGE,
        })?;
        let Some(last) = sessions.last() else { return Ok(()) };
        after = Some(last.id);
        let is_in_scope = |session: &Session| match &scope.stores {
            None => true,
            Some(ids) => ids.iter().any(|id| session.attachment(*id).is_some()),
        };
        sessions.into_iter().filter(is_in_scope).try_for_each(&mut *visit)?;
    }
}

/// Returns earlier receipts that the pattern matches, in a reason that somebody gave, for example.
fn receipts(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
) -> Result<Vec<ReceiptId>, Error> {
    let mut hits = Vec::new();
    let is_possible = selection.is_by_content_alone() && scope.stores.is_none();
    let (true, Some(pattern)) = (is_possible, &selection.pattern) else { return Ok(hits) };
    let mut before = None;
    loop {
        let receipts = reader.receipts(scope.workspace, before, PAGE)?;
        let Some(last) = receipts.last() else { return Ok(hits) };
        before = Some(last.id);
        let matching = receipts.iter().filter(|it| cut::receipt(pattern, it) != **it);
        hits.extend(matching.map(|receipt| receipt.id));
    }
}

/// Returns the records of copies that were written to a place with such a name.
fn copies(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
) -> Result<Vec<CopyMade>, Error> {
    let is_possible = selection.is_by_content_alone() && scope.stores.is_none();
    let (true, Some(pattern)) = (is_possible, &selection.pattern) else { return Ok(Vec::new()) };
    let mut copies = reader.copies_made(scope.workspace, Timestamp::MIN)?;
    copies.retain(|copy| pattern.matches(&copy.target));
    Ok(copies)
}

/// Returns a phrase for each name that the pattern matches. Programs refer to things by their names, so
/// these are not changed on the way.
fn names(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
    stores: &[StorePlan],
) -> Result<Vec<String>, Error> {
    let (true, Some(pattern)) = (selection.is_by_content_alone(), &selection.pattern) else {
        return Ok(Vec::new());
    };
    let named = stores.iter().filter(|store| pattern.matches(store.name.as_str()));
    let mut names: Vec<_> =
        named.map(|store| format!("the name of the store `{}`", store.store)).collect();
    if scope.stores.is_none() {
        let keys = reader.keys(scope.workspace)?;
        let named = keys.iter().filter(|key| pattern.matches(key.name.as_str()));
        names.extend(named.map(|key| format!("the name of the key `{}`", key.id)));
        let is_in_payload =
            |key: &&Key| key.payload.as_deref().is_some_and(|it| pattern.matches(it));
        let keys = keys.iter().filter(is_in_payload);
        names.extend(keys.map(|key| format!("what is kept with the key `{}`", key.id)));
        let workspaces = reader.workspaces()?;
        let named = workspaces.iter().filter(|it| it.id == scope.workspace);
        let named = named.filter(|it| pattern.matches(it.name.as_str()));
        names.extend(named.map(|it| format!("the name of the workspace `{}`", it.id)));
    }
    Ok(names)
}

/// Adds what a redaction does not reach, so that somebody can decide about it.
pub(super) fn add_surroundings(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
    plan: &mut RedactionPlan,
) -> Result<(), Error> {
    let is_in_scope = |id: StoreId| scope.stores.as_ref().is_none_or(|ids| ids.contains(&id));
    let visible = scope.viewer.as_ref().and_then(|key| key.stores.as_ref());
    for store in all_stores(reader, scope.workspace, Archived::Show)? {
        let is_hidden = visible.is_some_and(|visible| !visible.contains(&store.id));
        if is_in_scope(store.id) || is_hidden {
            continue;
        }
        let origin = store.metadata.pairs().get(COPIED_FROM).filter(|origin| {
            let is_origin = |it: &&StorePlan| {
                it.store.to_string() == **origin || it.name.as_str() == origin.as_str()
            };
            plan.stores.iter().any(|it| is_origin(&it))
        });
        let mut versions_count = 0;
        if selection.pattern.is_some() {
            for_each_version(reader, store.id, selection, &mut |version| {
                versions_count += usize::from(selection.carriers(&version).is_some());
                Ok(())
            })?;
        }
        if origin.is_some() || versions_count > 0 {
            let copied_from = origin.cloned();
            plan.others.push(OtherStore {
                store: store.id,
                name: store.name,
                versions_count,
                copied_from,
            });
        }
    }
    if visible.is_none() {
        let deleted = reader.deleted_stores(scope.workspace)?;
        plan.deleted_stores = deleted.iter().map(|deleted| deleted.store.id).collect();
    }
    selection.require_complete()?;
    let versions = plan.stores.iter().flat_map(|store| &store.versions);
    if let Some(oldest) = versions.map(|version| version.created_at).min() {
        plan.copies_made = reader.copies_made(scope.workspace, oldest)?;
        plan.copies_made.retain(|copy| copy.store.is_none_or(is_in_scope));
    }
    Ok(())
}

/// Returns a sentence for everything that is left to do, and for every copy that is out of reach. None of
/// them may hold the match, not even the name of a file that a backup was written to.
pub(super) fn remarks(
    first: &RedactionPlan,
    planned: &RedactionPlan,
    selection: &Selection<'_>,
) -> (Vec<String>, Vec<String>) {
    let names = planned.names.iter().map(|name| format!("{name} holds the text; change it"));
    let others = first.others.iter().map(|other| match &other.copied_from {
        Some(_) => format!("the store `{}` is a copy, and is not redacted", other.store),
        None => format!("the store `{}` holds the text, and is not redacted", other.store),
    });
    let deleted = first.deleted_stores.iter().map(|store| {
        format!("the deleted store `{store}` is not searched; erase it if it may hold the text")
    });
    let copies = first.copies_made.iter().map(|copy| {
        format!("the {} of {} at `{}` is out of reach", copy.kind, copy.at, copy.target)
    });
    let cut = |sentence: String| match &selection.pattern {
        Some(pattern) => cut::short(pattern, &sentence, sentence.len()),
        None => sentence,
    };
    (names.chain(others).chain(deleted).map(cut).collect(), copies.map(cut).collect())
}

/// Returns the digest of everything that will be changed.
fn digest(plan: &RedactionPlan) -> String {
    let mut lines = vec![
        "quipu redaction 1".to_owned(),
        format!("selection {}", plan.selection),
        format!("heads {:?}", plan.heads),
    ];
    for store in &plan.stores {
        lines.push(format!("store {}", store.store));
        lines
            .extend(store.versions.iter().map(|it| format!("version {} {:?}", it.id, it.carriers)));
        let head = |it: &PlannedHead| format!("head {} {} {}", it.memory, it.version, it.change);
        lines.extend(store.heads.iter().map(head));
        let refusal =
            |it: &Refusal| format!("refusal {} {}", Timestamp::as_micros(it.at), it.actor);
        lines.extend(store.refusals.iter().map(refusal));
        lines.push(format!("fields {}", store.fields.join(" ")));
    }
    let session =
        |it: &SessionHit| format!("session {} {} {:?}", it.session, it.fields.join(" "), it.events);
    lines.extend(plan.sessions.iter().map(session));
    let definition = |it: &DefinitionHit| format!("{} {}", it.definition, it.version);
    lines.extend(plan.definitions.iter().map(definition));
    lines.extend(plan.copies.iter().map(|copy| format!("copy {} {}", copy.kind, copy.at)));
    lines.extend(plan.receipts.iter().map(|id| format!("receipt {id}")));
    let bytes = Sha256::digest(lines.join("\n").as_bytes());
    ContentHash::from_bytes(bytes.into()).to_string()
}
