//! Workspaces and stores.

use std::collections::BTreeMap;
use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::engine::{NewStore, StoreUpdate};
use quipu_core::model::{Description, Id as _, Store, StoreId, StorePolicy, View};
use quipu_core::settings::Limits;

use crate::support::{Bench, bench, bench_with, kind, name, path};

fn store(bench: &Bench, text: &str) -> Store {
    bench.new_store(text, StorePolicy::default())
}

fn find(bench: &Bench, wanted: &str) -> Result<StoreId, quipu_core::Error> {
    bench.engine.find_store(bench.workspace, wanted).map(|store| store.id)
}

#[test]
fn the_default_workspace_is_made_once() {
    let bench = bench();
    assert_eq!(bench.engine.default_workspace().unwrap().id, bench.workspace);
    assert_eq!(bench.engine.workspaces().unwrap().len(), 1);
}

#[test]
fn stores_of_another_workspace_are_not_found() {
    let bench = bench();
    let other = bench.engine.create_workspace(&name("other")).unwrap();
    let foreign = bench.engine.create_store(other.id, &NewStore::named(name("x"))).unwrap();
    assert_eq!(kind(find(&bench, "x")), ErrorKind::NotFound);
    assert_eq!(kind(find(&bench, &foreign.id.to_string())), ErrorKind::NotFound);
}

#[test]
fn many_that_ask_for_the_same_new_store_get_one() {
    let bench = bench();
    let ask = || bench.engine.find_or_create_store(bench.workspace, "fresh").unwrap().id;
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(find(&bench, "fresh").unwrap(), ids[0]);
    let unknown = StoreId::from_bits(7).to_string();
    for wanted in [unknown.as_str(), ""] {
        assert!(bench.engine.find_or_create_store(bench.workspace, wanted).is_err(), "{wanted}");
    }
}

#[test]
fn a_store_that_is_needed_is_made_once() {
    let bench = bench();
    let wanted = NewStore::named(name("memories"));
    let first = bench.engine.ensure_store(bench.workspace, &wanted).unwrap();
    assert_eq!(bench.engine.ensure_store(bench.workspace, &wanted).unwrap().id, first.id);
    bench.engine.archive_store(first.id).unwrap();
    assert_ne!(bench.engine.ensure_store(bench.workspace, &wanted).unwrap().id, first.id);
}

#[test]
fn a_store_is_found_by_name_and_by_id() {
    let bench = bench();
    assert_eq!(find(&bench, "tests").unwrap(), bench.store);
    assert_eq!(find(&bench, &bench.store.to_string()).unwrap(), bench.store);
}

#[test]
fn an_unknown_name_is_answered_with_near_ones() {
    let bench = bench();
    store(&bench, "Shopping List");
    let hint = |wanted: &str| find(&bench, wanted).unwrap_err().hint().unwrap().to_owned();
    assert_eq!(hint("test"), "did you mean `tests`?");
    assert_eq!(hint("shoping list"), "did you mean `Shopping List`?");
    assert_eq!(hint("zzz"), "`quipu store list` shows the stores that exist");
}

#[test]
fn two_stores_of_one_name_are_ambiguous_unless_one_is_archived() {
    let bench = bench();
    let first = store(&bench, "twin");
    let second = store(&bench, "twin");
    let error = find(&bench, "twin").unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Ambiguous);
    assert!(error.hint().unwrap().contains(&first.id.to_string()));
    bench.engine.archive_store(first.id).unwrap();
    assert_eq!(find(&bench, "twin").unwrap(), second.id);
}

#[test]
fn stores_are_listed_newest_first_page_by_page() {
    let bench = bench();
    let second = store(&bench, "second");
    let third = store(&bench, "third");
    let query = |before| StoreQuery {
        workspace: bench.workspace,
        archived: Archived::Hide,
        created: Span::default(),
        before,
        limit: 2,
    };
    let page = bench.engine.stores(&query(None)).unwrap();
    assert_eq!(page.items, [third, second.clone()]);
    assert_eq!(page.next, Some(second.id));
    let page = bench.engine.stores(&query(page.next)).unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
}

#[test]
fn an_update_changes_what_is_given_and_its_time() {
    let bench = bench();
    let before = store(&bench, "before");
    bench.clock.advance(Duration::from_secs(1));
    let update = StoreUpdate {
        description: Some(Description::new("what for").unwrap()),
        metadata: BTreeMap::from([("team".to_owned(), Some("tea".to_owned()))]),
        ..StoreUpdate::default()
    };
    let after = bench.engine.update_store(before.id, &update).unwrap();
    assert_eq!(after.name, before.name);
    assert_eq!(after.description.as_str(), "what for");
    assert!(after.updated_at > before.updated_at);
    assert_eq!(bench.engine.update_store(before.id, &update).unwrap(), after);
}

#[test]
fn archiving_is_for_good_and_can_be_repeated() {
    let bench = bench();
    let archived = bench.engine.archive_store(bench.store).unwrap();
    assert_eq!(archived.archived_at, Some(archived.updated_at));
    assert_eq!(bench.engine.archive_store(bench.store).unwrap(), archived);
    let update = StoreUpdate { name: Some(name("new")), ..StoreUpdate::default() };
    let refused = bench.engine.update_store(bench.store, &update);
    assert_eq!(kind(refused), ErrorKind::StoreArchived);
}

#[test]
fn memory_writes_do_not_change_the_store() {
    let bench = bench();
    let before = bench.engine.store(bench.store).unwrap();
    bench.put("/a", "text");
    assert_eq!(bench.engine.store(bench.store).unwrap(), before);
}

#[test]
fn a_deleted_store_is_gone_with_its_memories() {
    let bench = bench();
    bench.put("/a", "text");
    bench.engine.archive_store(bench.store).unwrap();
    bench.engine.delete_store(bench.store).unwrap();
    assert_eq!(kind(bench.engine.store(bench.store)), ErrorKind::NotFound);
    assert_eq!(kind(bench.engine.delete_store(bench.store)), ErrorKind::NotFound);
    let history = bench.engine.history(bench.store, &path("/a"), 1);
    assert_eq!(kind(history), ErrorKind::NotFound);
}

#[test]
fn a_deleted_store_comes_back_as_it_was() {
    let bench = bench();
    let memory = bench.put("/a", "zebra");
    let deleted = bench.engine.delete_store(bench.store).unwrap();
    assert_eq!((deleted.memories_count, deleted.store.id), (1, bench.store));
    assert_eq!(
        bench.engine.deleted_stores(bench.workspace).unwrap().as_slice(),
        std::slice::from_ref(&deleted)
    );
    // A memory that is asked for by its id is hidden too.
    let found = bench.engine.memory(bench.store, memory.id, View::Full);
    assert_eq!(kind(found), ErrorKind::NotFound);
    let found = bench.engine.version(bench.store, memory.version, View::Full);
    assert_eq!(kind(found), ErrorKind::NotFound);

    let name = deleted.store.name.as_str();
    let store = bench.engine.restore_store(bench.workspace, name, None).unwrap();
    assert_eq!(store, deleted.store);
    assert_eq!(bench.text("/a").as_deref(), Some("zebra"));
    assert_eq!(bench.engine.deleted_stores(bench.workspace).unwrap(), []);
    let again = bench.engine.restore_store(bench.workspace, name, None);
    assert_eq!(kind(again), ErrorKind::NotFound);
}

#[test]
fn a_store_is_not_restored_beside_one_of_the_same_name() {
    let bench = bench();
    let first = store(&bench, "notes");
    bench.engine.delete_store(first.id).unwrap();
    let second = store(&bench, "notes");
    let taken = bench.engine.restore_store(bench.workspace, "notes", None);
    assert_eq!(kind(taken), ErrorKind::Ambiguous);
    let old = name("old notes");
    let restored = bench.engine.restore_store(bench.workspace, "notes", Some(&old)).unwrap();
    assert_eq!((restored.id, &restored.name), (first.id, &old));
    assert_eq!(bench.engine.find_store(bench.workspace, "notes").unwrap(), second);
}

#[test]
fn a_deleted_store_is_erased_when_its_time_is_over() {
    let bench = bench();
    bench.put("/a", "text");
    bench.engine.delete_store(bench.store).unwrap();
    bench.clock.advance(Duration::from_hours(6 * 24));
    assert_eq!(bench.engine.prune().unwrap().stores_count, 0);
    bench.clock.advance(Duration::from_hours(25));
    assert_eq!(bench.engine.prune().unwrap().stores_count, 1);
    assert_eq!(bench.engine.deleted_stores(bench.workspace).unwrap(), []);
}

#[test]
fn a_deleted_store_can_be_erased_at_once() {
    let bench = bench();
    bench.engine.delete_store(bench.store).unwrap();
    bench.engine.erase_store(bench.store).unwrap();
    assert_eq!(bench.engine.deleted_stores(bench.workspace).unwrap(), []);
    assert_eq!(kind(bench.engine.erase_store(bench.store)), ErrorKind::NotFound);
}

#[test]
fn both_sides_of_the_limit_of_stores() {
    let bench = bench_with(Limits { stores_per_workspace_max: 2, ..Limits::default() });
    let second = store(&bench, "second");
    let third = || bench.engine.create_store(bench.workspace, &NewStore::named(name("third")));
    assert_eq!(kind(third()), ErrorKind::LimitReached);
    bench.engine.archive_store(second.id).unwrap();
    assert_eq!(kind(third()), ErrorKind::LimitReached);
    bench.engine.delete_store(second.id).unwrap();
    assert_eq!(kind(third()), ErrorKind::LimitReached);
    bench.engine.erase_store(second.id).unwrap();
    assert!(third().is_ok());
}

#[test]
fn an_unknown_store_is_not_found() {
    let bench = bench();
    let absent = StoreId::from_bits(1);
    assert_eq!(kind(bench.engine.store(absent)), ErrorKind::NotFound);
    assert_eq!(kind(bench.engine.usage(absent)), ErrorKind::NotFound);
    assert_eq!(kind(bench.engine.archive_store(absent)), ErrorKind::NotFound);
    let update = StoreUpdate::default();
    assert_eq!(kind(bench.engine.update_store(absent, &update)), ErrorKind::NotFound);
}
