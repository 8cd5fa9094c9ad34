//! Workspaces and stores.

use std::collections::BTreeMap;
use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::engine::{NewStore, StoreUpdate};
use quipu_core::model::{Description, Id as _, Store, StoreId, StorePolicy, View};
use quipu_core::settings::Limits;

use crate::support::{Fixture, fixture, fixture_with, kind, name, path};

fn store(fixture: &Fixture, text: &str) -> Store {
    fixture.new_store(text, StorePolicy::default())
}

fn find(fixture: &Fixture, wanted: &str) -> Result<StoreId, quipu_core::Error> {
    fixture.engine.find_store(fixture.workspace, wanted).map(|store| store.id)
}

#[test]
fn the_default_workspace_is_created_once() {
    let fixture = fixture();
    assert_eq!(fixture.engine.default_workspace().unwrap().id, fixture.workspace);
    assert_eq!(fixture.engine.workspaces().unwrap().len(), 1);
}

#[test]
fn stores_of_another_workspace_are_not_found() {
    let fixture = fixture();
    let other = fixture.engine.create_workspace(&name("other")).unwrap();
    let foreign = fixture.engine.create_store(other.id, &NewStore::named(name("x"))).unwrap();
    assert_eq!(kind(find(&fixture, "x")), ErrorKind::NotFound);
    assert_eq!(kind(find(&fixture, &foreign.id.to_string())), ErrorKind::NotFound);
}

#[test]
fn concurrent_callers_get_the_same_new_store() {
    let fixture = fixture();
    let ask = || fixture.engine.find_or_create_store(fixture.workspace, "fresh").unwrap().id;
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(find(&fixture, "fresh").unwrap(), ids[0]);
    let unknown = StoreId::from_bits(7).to_string();
    for wanted in [unknown.as_str(), ""] {
        assert!(
            fixture.engine.find_or_create_store(fixture.workspace, wanted).is_err(),
            "{wanted}"
        );
    }
}

#[test]
fn ensuring_a_store_twice_creates_it_once() {
    let fixture = fixture();
    let wanted = NewStore::named(name("memories"));
    let first = fixture.engine.ensure_store(fixture.workspace, &wanted).unwrap();
    assert_eq!(fixture.engine.ensure_store(fixture.workspace, &wanted).unwrap().id, first.id);
    fixture.engine.archive_store(first.id).unwrap();
    assert_ne!(fixture.engine.ensure_store(fixture.workspace, &wanted).unwrap().id, first.id);
}

#[test]
fn a_store_is_found_by_name_and_by_id() {
    let fixture = fixture();
    assert_eq!(find(&fixture, "tests").unwrap(), fixture.store);
    assert_eq!(find(&fixture, &fixture.store.to_string()).unwrap(), fixture.store);
}

#[test]
fn an_unknown_name_suggests_similar_ones() {
    let fixture = fixture();
    store(&fixture, "Shopping List");
    let hint = |wanted: &str| find(&fixture, wanted).unwrap_err().hint().unwrap().to_owned();
    assert_eq!(hint("test"), "did you mean `tests`?");
    assert_eq!(hint("shoping list"), "did you mean `Shopping List`?");
    assert_eq!(hint("zzz"), "`quipu store list` shows the stores that exist");
}

#[test]
fn two_stores_of_one_name_are_ambiguous_unless_one_is_archived() {
    let fixture = fixture();
    let first = store(&fixture, "twin");
    let second = store(&fixture, "twin");
    let error = find(&fixture, "twin").unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Ambiguous);
    assert!(error.hint().unwrap().contains(&first.id.to_string()));
    fixture.engine.archive_store(first.id).unwrap();
    assert_eq!(find(&fixture, "twin").unwrap(), second.id);
}

#[test]
fn stores_are_listed_newest_first_page_by_page() {
    let fixture = fixture();
    let second = store(&fixture, "second");
    let third = store(&fixture, "third");
    let query = |before| StoreQuery {
        workspace: fixture.workspace,
        archived: Archived::Hide,
        created: Span::default(),
        before,
        limit: 2,
    };
    let page = fixture.engine.stores(&query(None)).unwrap();
    assert_eq!(page.items, [third, second.clone()]);
    assert_eq!(page.next, Some(second.id));
    let page = fixture.engine.stores(&query(page.next)).unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
}

#[test]
fn an_update_changes_what_is_given_and_its_time() {
    let fixture = fixture();
    let before = store(&fixture, "before");
    fixture.clock.advance(Duration::from_secs(1));
    let update = StoreUpdate {
        description: Some(Description::new("what for").unwrap()),
        metadata: BTreeMap::from([("team".to_owned(), Some("tea".to_owned()))]),
        ..StoreUpdate::default()
    };
    let after = fixture.engine.update_store(before.id, &update).unwrap();
    assert_eq!(after.name, before.name);
    assert_eq!(after.description.as_str(), "what for");
    assert!(after.updated_at > before.updated_at);
    assert_eq!(fixture.engine.update_store(before.id, &update).unwrap(), after);
}

#[test]
fn archiving_is_permanent_and_idempotent() {
    let fixture = fixture();
    let archived = fixture.engine.archive_store(fixture.store).unwrap();
    assert_eq!(archived.archived_at, Some(archived.updated_at));
    assert_eq!(fixture.engine.archive_store(fixture.store).unwrap(), archived);
    let update = StoreUpdate { name: Some(name("new")), ..StoreUpdate::default() };
    let refused = fixture.engine.update_store(fixture.store, &update);
    assert_eq!(kind(refused), ErrorKind::StoreArchived);
}

#[test]
fn memory_writes_do_not_change_the_store() {
    let fixture = fixture();
    let before = fixture.engine.store(fixture.store).unwrap();
    fixture.put("/a", "text");
    assert_eq!(fixture.engine.store(fixture.store).unwrap(), before);
}

#[test]
fn deleting_a_store_hides_its_memories() {
    let fixture = fixture();
    fixture.put("/a", "text");
    fixture.engine.archive_store(fixture.store).unwrap();
    fixture.engine.delete_store(fixture.store).unwrap();
    assert_eq!(kind(fixture.engine.store(fixture.store)), ErrorKind::NotFound);
    assert_eq!(kind(fixture.engine.delete_store(fixture.store)), ErrorKind::NotFound);
    let history = fixture.engine.history(fixture.store, &path("/a"), 1);
    assert_eq!(kind(history), ErrorKind::NotFound);
}

#[test]
fn a_deleted_store_is_restored_as_it_was() {
    let fixture = fixture();
    let memory = fixture.put("/a", "zebra");
    let deleted = fixture.engine.delete_store(fixture.store).unwrap();
    assert_eq!((deleted.memories_count, deleted.store.id), (1, fixture.store));
    assert_eq!(
        fixture.engine.deleted_stores(fixture.workspace).unwrap().as_slice(),
        std::slice::from_ref(&deleted)
    );
    // A memory that is asked for by its id is hidden too.
    let found = fixture.engine.memory(fixture.store, memory.id, View::Full);
    assert_eq!(kind(found), ErrorKind::NotFound);
    let found = fixture.engine.version(fixture.store, memory.version, View::Full);
    assert_eq!(kind(found), ErrorKind::NotFound);

    let name = deleted.store.name.as_str();
    let store = fixture.engine.restore_store(fixture.workspace, name, None).unwrap();
    assert_eq!(store, deleted.store);
    assert_eq!(fixture.text("/a").as_deref(), Some("zebra"));
    assert_eq!(fixture.engine.deleted_stores(fixture.workspace).unwrap(), []);
    let again = fixture.engine.restore_store(fixture.workspace, name, None);
    assert_eq!(kind(again), ErrorKind::NotFound);
}

#[test]
fn a_store_is_not_restored_beside_one_of_the_same_name() {
    let fixture = fixture();
    let first = store(&fixture, "notes");
    fixture.engine.delete_store(first.id).unwrap();
    let second = store(&fixture, "notes");
    let taken = fixture.engine.restore_store(fixture.workspace, "notes", None);
    assert_eq!(kind(taken), ErrorKind::Ambiguous);
    let old = name("old notes");
    let restored = fixture.engine.restore_store(fixture.workspace, "notes", Some(&old)).unwrap();
    assert_eq!((restored.id, &restored.name), (first.id, &old));
    assert_eq!(fixture.engine.find_store(fixture.workspace, "notes").unwrap(), second);
}

#[test]
fn a_deleted_store_is_erased_after_its_retention() {
    let fixture = fixture();
    fixture.put("/a", "text");
    fixture.engine.delete_store(fixture.store).unwrap();
    fixture.clock.advance(Duration::from_hours(6 * 24));
    assert_eq!(fixture.engine.prune().unwrap().stores_count, 0);
    fixture.clock.advance(Duration::from_hours(25));
    assert_eq!(fixture.engine.prune().unwrap().stores_count, 1);
    assert_eq!(fixture.engine.deleted_stores(fixture.workspace).unwrap(), []);
}

#[test]
fn a_deleted_store_can_be_erased_at_once() {
    let fixture = fixture();
    fixture.engine.delete_store(fixture.store).unwrap();
    fixture.engine.erase_store(fixture.store).unwrap();
    assert_eq!(fixture.engine.deleted_stores(fixture.workspace).unwrap(), []);
    assert_eq!(kind(fixture.engine.erase_store(fixture.store)), ErrorKind::NotFound);
}

#[test]
fn both_sides_of_the_limit_of_stores() {
    let fixture = fixture_with(Limits { stores_per_workspace_max: 2, ..Limits::default() });
    let second = store(&fixture, "second");
    let third = || fixture.engine.create_store(fixture.workspace, &NewStore::named(name("third")));
    assert_eq!(kind(third()), ErrorKind::LimitReached);
    fixture.engine.archive_store(second.id).unwrap();
    assert_eq!(kind(third()), ErrorKind::LimitReached);
    fixture.engine.delete_store(second.id).unwrap();
    assert_eq!(kind(third()), ErrorKind::LimitReached);
    fixture.engine.erase_store(second.id).unwrap();
    assert!(third().is_ok());
}

#[test]
fn an_unknown_store_is_not_found() {
    let fixture = fixture();
    let absent = StoreId::from_bits(1);
    assert_eq!(kind(fixture.engine.store(absent)), ErrorKind::NotFound);
    assert_eq!(kind(fixture.engine.usage(absent)), ErrorKind::NotFound);
    assert_eq!(kind(fixture.engine.archive_store(absent)), ErrorKind::NotFound);
    let update = StoreUpdate::default();
    assert_eq!(kind(fixture.engine.update_store(absent, &update)), ErrorKind::NotFound);
}

#[test]
fn the_default_store_must_exist() {
    let fixture = fixture();
    let (engine, workspace) = (&fixture.engine, fixture.workspace);
    let default = || engine.default_workspace().unwrap().default_store;
    engine.set_default_store(workspace, Some(fixture.store)).unwrap();
    assert_eq!(default(), Some(fixture.store));
    let unknown = engine.set_default_store(workspace, Some(StoreId::from_bits(1)));
    assert_eq!(kind(unknown), ErrorKind::NotFound);
    assert_eq!(default(), Some(fixture.store));
    engine.set_default_store(workspace, None).unwrap();
    assert_eq!(default(), None);
    let nowhere = engine.set_default_store(quipu_core::model::Id::from_bits(1), None);
    assert_eq!(kind(nowhere), ErrorKind::NotFound);
}

#[test]
fn an_archived_store_cannot_be_changed_and_an_update_to_the_same_is_a_no_op() {
    let fixture = fixture();
    let engine = &fixture.engine;
    let before = engine.store(fixture.store).unwrap();
    let sequence = engine.newest_sequence().unwrap();
    let same = StoreUpdate { name: Some(before.name.clone()), ..StoreUpdate::default() };
    assert_eq!(engine.update_store(fixture.store, &same).unwrap(), before);
    assert_eq!(engine.newest_sequence().unwrap(), sequence);
    engine.archive_store(fixture.store).unwrap();
    assert_eq!(kind(engine.update_store(fixture.store, &same)), ErrorKind::StoreArchived);
}

#[test]
fn the_last_deleted_store_of_a_name_is_the_one_that_is_restored() {
    let fixture = fixture();
    let (engine, workspace) = (&fixture.engine, fixture.workspace);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = store(&fixture, "twice").id;
        fixture.clock.advance(Duration::from_secs(1));
        engine.delete_store(id).unwrap();
        ids.push(id);
    }
    assert_eq!(engine.find_deleted_store(workspace, "twice").unwrap().store.id, ids[1]);
    let by_id = engine.find_deleted_store(workspace, &ids[0].to_string()).unwrap();
    assert_eq!(by_id.store.id, ids[0]);
    let restored = engine.restore_store(workspace, &ids[0].to_string(), None).unwrap();
    assert_eq!(restored.id, ids[0]);
    assert_eq!(kind(engine.restore_store(workspace, "never", None)), ErrorKind::NotFound);
}

#[test]
fn erasing_an_unknown_store_is_not_found_and_erasing_twice_neither() {
    let fixture = fixture();
    let engine = &fixture.engine;
    assert_eq!(kind(engine.erase_store(StoreId::from_bits(1))), ErrorKind::NotFound);
    fixture.put("/a", "text");
    engine.erase_store(fixture.store).unwrap();
    assert_eq!(kind(engine.erase_store(fixture.store)), ErrorKind::NotFound);
    assert_eq!(engine.deleted_stores(fixture.workspace).unwrap(), []);
    assert_eq!(engine.check().unwrap().problems, []);
}
