//! What each read method returns.

use std::collections::BTreeMap;
use std::ops::Bound;

use quipu_core::backend::{
    Archived, MemoryQuery, Order, Sequence, SessionQuery, Span, StoreQuery, Usage, VersionFilter,
    VersionQuery,
};
use quipu_core::model::{
    Description, Directory, ForgottenPolicy, Key, Memory, Metadata, Operation, SecretHash,
    SecretPolicy, Session, Store, StorePolicy, Timestamp, VersionId, View, Workspace, Writers,
};

use super::{Fixture, Rows};

/// "Returns all workspaces, the oldest first."
pub fn workspaces_come_oldest_first(fixture: &Fixture) {
    let workspaces = [1, 2, 3].map(Rows::workspace);
    fixture.write(|writer| {
        workspaces.iter().rev().try_for_each(|workspace| writer.put_workspace(workspace))
    });
    assert_eq!(fixture.read(|reader| reader.workspaces()), workspaces);
}

/// "Returns a store", with everything that was put.
pub fn a_store_is_read_back_as_it_was_put(fixture: &Fixture) {
    let pairs = [("team", "tea"), ("", "")].map(|(k, v)| (format!("k{k}"), v.to_owned()));
    let store = Store {
        description: Description::new("what\nit is for").expect("short"),
        metadata: Metadata::new(BTreeMap::from(pairs)).expect("few pairs"),
        policy: StorePolicy {
            secrets: SecretPolicy::Redact,
            expire_after_days: Some(90),
            forgotten: ForgottenPolicy::Refuse,
            writers: Writers::People,
        },
        updated_at: Rows::at(5),
        archived_at: Some(Rows::at(5)),
        ..Rows::store(1)
    };
    fixture.with_stores(&[&store]);
    assert_eq!(fixture.read(|reader| reader.store(store.id)), Some(store));
}

/// "Returns the stores that the query selects, the newest first."
pub fn stores_come_newest_first_page_by_page(fixture: &Fixture) {
    let stores = [1, 2, 3].map(Rows::store);
    fixture.with_stores(&[&stores[1], &stores[0], &stores[2]]);
    let page = |before, limit| {
        let query = StoreQuery { before, limit, ..Rows::all_stores() };
        fixture.read(|reader| reader.stores(&query))
    };
    assert_eq!(page(None, 2), [stores[2].clone(), stores[1].clone()]);
    assert_eq!(page(Some(stores[1].id), 2), [stores[0].clone()]);
    assert_eq!(page(Some(stores[0].id), 2), []);
}

/// By workspace, archived or not, and both ends of the span belong to it.
pub fn stores_are_selected_by_workspace_archive_and_span(fixture: &Fixture) {
    let live = Rows::store(1);
    let archived = Store { archived_at: Some(Rows::at(9)), ..Rows::store(2) };
    let foreign = Store { workspace: Rows::workspace(2).id, ..Rows::store(3) };
    fixture.with_stores(&[&live, &archived, &foreign]);
    fixture.write(|writer| writer.put_workspace(&Rows::workspace(2)));
    let select = |query: StoreQuery| fixture.read(|reader| reader.stores(&query));
    let all = Rows::all_stores;
    let span = |first, last| Span { first: Rows::at(first), last: Rows::at(last) };

    assert_eq!(select(all()), [archived.clone(), live.clone()]);
    assert_eq!(select(StoreQuery { archived: Archived::Hide, ..all() }), [live.clone()]);
    assert_eq!(select(StoreQuery { workspace: foreign.workspace, ..all() }), [foreign]);
    assert_eq!(select(StoreQuery { created: span(2, 2), ..all() }), [archived]);
    assert_eq!(select(StoreQuery { created: span(0, 1), ..all() }), [live]);
}

/// "A store that does not exist has no memories and no versions, and its usage is zero."
pub fn an_absent_store_has_nothing(fixture: &Fixture) {
    let absent = Rows::store(1);
    let memory = Rows::memory(&absent, 1, "/a", "text");
    fixture.read(|reader| {
        assert_eq!(reader.store(absent.id)?, None);
        assert_eq!(reader.usage(absent.id)?, Usage::default());
        assert_eq!(reader.memory(absent.id, memory.id, View::Full)?, None);
        assert_eq!(reader.memory_at(absent.id, &memory.path, View::Full)?, None);
        assert_eq!(reader.overlapping(absent.id, &memory.path, None)?, None);
        assert_eq!(reader.last_use(absent.id, memory.id)?, None);
        assert_eq!(reader.memories(absent.id, &whole_store(View::Full))?, []);
        assert_eq!(reader.unused_memories(absent.id, Rows::at(9), 10)?, []);
        assert_eq!(reader.version(absent.id, memory.version, View::Full)?, None);
        assert_eq!(reader.versions(absent.id, &Rows::all_versions())?, []);
        assert_eq!(reader.newest_change()?, (Sequence(0), Timestamp::MIN));
        Ok(())
    });
}

fn whole_store(view: View) -> MemoryQuery {
    MemoryQuery { directory: Directory::root(), start: Bound::Unbounded, limit: 100, view }
}

/// "By its id" and "at exactly this path", in this store only.
pub fn a_memory_is_found_by_id_and_by_exact_path_in_its_store_only(fixture: &Fixture) {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store, &other]);
    let memory = Rows::memory(&store, 1, "/a/b.md", "text");
    fixture.with_memories(1, &[&memory]);
    fixture.read(|reader| {
        assert_eq!(reader.memory(store.id, memory.id, View::Full)?.as_ref(), Some(&memory));
        let found = reader.memory_at(store.id, &memory.path, View::Full)?;
        assert_eq!(found.as_ref(), Some(&memory));
        for path in ["/a", "/a/b", "/a/B.md", "/a/b.md/c"] {
            assert_eq!(reader.memory_at(store.id, &Rows::path(path), View::Full)?, None);
        }
        assert_eq!(reader.memory(other.id, memory.id, View::Full)?, None);
        assert_eq!(reader.memory_at(other.id, &memory.path, View::Full)?, None);
        Ok(())
    });
}

/// The text is left out, everything else is there.
pub fn a_basic_view_leaves_the_text_out(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let memory = Rows::memory(&store, 1, "/a", "text");
    fixture.with_memories(1, &[&memory]);
    let basic = Memory { content: None, ..memory.clone() };
    fixture.read(|reader| {
        assert_eq!(reader.memory(store.id, memory.id, View::Basic)?, Some(basic.clone()));
        let found = reader.memory_at(store.id, &memory.path, View::Basic)?;
        assert_eq!(found, Some(basic.clone()));
        assert_eq!(reader.memories(store.id, &whole_store(View::Basic))?, [basic.clone()]);
        let version = reader.version(store.id, memory.version, View::Basic)?.expect("it is there");
        assert_eq!((version.content, version.hash), (None, Some(memory.hash)));
        let query = VersionQuery { view: View::Basic, ..Rows::all_versions() };
        assert_eq!(reader.versions(store.id, &query)?[0].content, None);
        Ok(())
    });
}

/// "The one at it, else the nearest above it, else the first below it."
pub fn overlapping_finds_the_one_at_the_path_then_above_then_below(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let paths = ["/a", "/b/c", "/b/d/e", "/b.md", "/bb"];
    let memories: Vec<_> =
        (1..).zip(paths).map(|(n, path)| Rows::memory(&store, n, path, "text")).collect();
    fixture.with_memories(1, &memories.iter().collect::<Vec<_>>());
    let overlapping = |path: &str| {
        fixture
            .read(|reader| reader.overlapping(store.id, &Rows::path(path), None))
            .map(|memory| memory.path.to_string())
    };
    assert_eq!(overlapping("/a").as_deref(), Some("/a"));
    assert_eq!(overlapping("/a/x/y").as_deref(), Some("/a"));
    assert_eq!(overlapping("/b").as_deref(), Some("/b/c"));
    assert_eq!(overlapping("/b/d").as_deref(), Some("/b/d/e"));
    assert_eq!(overlapping("/b/c/x").as_deref(), Some("/b/c"));
    assert_eq!(overlapping("/c"), None);
    assert_eq!(overlapping("/b/e"), None);
}

/// "A memory other than `except`", also when that one comes first.
pub fn overlapping_leaves_out_the_exception(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let first = Rows::memory(&store, 1, "/a/1", "text");
    let second = Rows::memory(&store, 2, "/a/2", "text");
    fixture.with_memories(1, &[&first, &second]);
    fixture.read(|reader| {
        let except = |path: &str, memory: &Memory| {
            let found = reader.overlapping(store.id, &Rows::path(path), Some(memory.id))?;
            Ok::<_, quipu_core::Error>(found.map(|memory| memory.id))
        };
        assert_eq!(except("/a", &first)?, Some(second.id));
        assert_eq!(except("/a", &second)?, Some(first.id));
        assert_eq!(except("/a/1", &first)?, None);
        assert_eq!(except("/a/1/x", &first)?, None);
        Ok(())
    });
}

fn with_paths(fixture: &Fixture, paths: &[&str]) -> Store {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let memories: Vec<_> =
        (1..).zip(paths).map(|(n, path)| Rows::memory(&store, n, path, "text")).collect();
    fixture.with_memories(1, &memories.iter().collect::<Vec<_>>());
    store
}

fn listed(fixture: &Fixture, store: &Store, query: &MemoryQuery) -> Vec<String> {
    let memories = fixture.read(|reader| reader.memories(store.id, query));
    memories.into_iter().map(|memory| memory.path.to_string()).collect()
}

/// "In byte order of their paths."
pub fn memories_come_in_byte_order_of_their_paths(fixture: &Fixture) {
    let paths = ["/é", "/b", "/a/z", "/a.md", "/B", "/a!/y", "/😀", "/\u{ffdc}"];
    let store = with_paths(fixture, &paths);
    let mut sorted = paths.map(str::to_owned);
    sorted.sort();
    assert_eq!(listed(fixture, &store, &whole_store(View::Basic)), sorted);
}

/// "Only those in this directory", "after this text", "how many at most".
pub fn memories_are_selected_by_directory_start_and_limit(fixture: &Fixture) {
    let store = with_paths(fixture, &["/a/1", "/a/2", "/a/b/3", "/a.md", "/ab/4", "/z"]);
    let select = |directory: &str, start: Bound<&str>, limit| {
        let directory = Directory::parse(directory).expect("a directory");
        let start = start.map(str::to_owned);
        let query = MemoryQuery { directory, start, limit, view: View::Full };
        listed(fixture, &store, &query)
    };
    let all = Bound::Unbounded;
    assert_eq!(select("/a/", all, 9), ["/a/1", "/a/2", "/a/b/3"]);
    assert_eq!(select("/a/b/", all, 9), ["/a/b/3"]);
    assert_eq!(select("/a/x/", all, 9), Vec::<String>::new());
    assert_eq!(select("/a/", Bound::Excluded("/a/1"), 9), ["/a/2", "/a/b/3"]);
    assert_eq!(select("/a/", Bound::Included("/a/2"), 9), ["/a/2", "/a/b/3"]);
    assert_eq!(select("/a/", Bound::Included("/"), 2), ["/a/1", "/a/2"]);
    assert_eq!(select("/a/", Bound::Excluded("/b"), 9), Vec::<String>::new());
    assert_eq!(select("/", Bound::Included("/a0"), 9), ["/ab/4", "/z"]);
}

/// "Neither written nor touched after `since`", in their store.
pub fn unused_memories_were_neither_written_nor_touched(fixture: &Fixture) {
    let store = with_paths(fixture, &["/1", "/2", "/3"]);
    let touched = Rows::memory(&store, 1, "/1", "text");
    fixture.write(|writer| writer.touch(store.id, touched.id, Rows::at(50)));
    let unused = |since, limit| -> Vec<String> {
        fixture
            .read(|reader| reader.unused_memories(store.id, Rows::at(since), limit))
            .iter()
            .map(|memory| memory.path.to_string())
            .collect()
    };
    assert_eq!(unused(1, 9), Vec::<String>::new());
    assert_eq!(unused(2, 9), ["/2"]);
    assert_eq!(unused(49, 9), ["/2", "/3"]);
    assert_eq!(unused(50, 9), ["/1", "/2", "/3"]);
    assert_eq!(unused(50, 1).len(), 1);
}

/// "If its store deletes unused memories; otherwise `None`."
pub fn use_is_noted_only_in_stores_that_expire(fixture: &Fixture) {
    let store = with_paths(fixture, &["/1"]);
    let memory = Rows::memory(&store, 1, "/1", "text");
    let noted = || fixture.read(|reader| reader.last_use(store.id, memory.id));
    assert_eq!(noted(), None);
    let policy = StorePolicy { expire_after_days: Some(1), ..StorePolicy::default() };
    fixture.write(|writer| writer.put_store(&Store { policy, ..store.clone() }));
    assert_eq!(noted(), Some(Rows::at(1)));
    fixture.write(|writer| writer.touch(store.id, memory.id, Rows::at(7)));
    assert_eq!(noted(), Some(Rows::at(7)));
}

/// "Returns the versions that the query selects, the newest first."
pub fn versions_come_newest_first_page_by_page(fixture: &Fixture) {
    let store = with_paths(fixture, &["/1", "/2", "/3"]);
    let page = |before: Option<VersionId>, limit| -> Vec<_> {
        let query = VersionQuery { before, limit, ..Rows::all_versions() };
        let versions = fixture.read(|reader| reader.versions(store.id, &query));
        versions.iter().map(|version| (version.id, version.created_at)).collect()
    };
    let first = page(None, 2);
    assert_eq!(first.iter().map(|(_, at)| *at).collect::<Vec<_>>(), [Rows::at(3), Rows::at(2)]);
    let second = page(Some(first[1].0), 2);
    assert_eq!(second.iter().map(|(_, at)| *at).collect::<Vec<_>>(), [Rows::at(1)]);
    assert!(page(Some(second[0].0), 2).is_empty());
}

/// Memory, path, operation, actor and span, each alone and all together.
pub fn versions_are_selected_by_everything_in_the_filter(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let memory = Rows::memory(&store, 1, "/a", "1");
    let edited = Rows::changed(&memory, 2, "/b", "2");
    let mut by_grace = Rows::commit(2, Some(&memory), Some(&edited));
    by_grace.version.actor = Rows::actor("grace");
    fixture.write(|writer| {
        writer.commit(&Rows::commit(1, None, Some(&memory)))?;
        writer.commit(&by_grace)?;
        writer.commit(&Rows::commit(3, Some(&edited), None))?;
        writer.commit(&Rows::commit(4, None, Some(&Rows::memory(&store, 4, "/a", "4"))))
    });
    let select = |filter: VersionFilter| -> Vec<i64> {
        let query = VersionQuery { filter, ..Rows::all_versions() };
        let versions = fixture.read(|reader| reader.versions(store.id, &query));
        let number = |at: Timestamp| at.as_micros() - Rows::at(0).as_micros();
        versions.iter().map(|version| number(version.created_at)).collect()
    };
    let any = VersionFilter::default;
    let span = Span { first: Rows::at(2), last: Rows::at(3) };
    let by = |names: &[&str]| names.iter().map(|name| Rows::actor(name)).collect::<Vec<_>>();
    assert_eq!(select(any()), [4, 3, 2, 1]);
    assert_eq!(select(VersionFilter { memory: Some(memory.id), ..any() }), [3, 2, 1]);
    assert_eq!(select(VersionFilter { path: Some(Rows::path("/a")), ..any() }), [4, 1]);
    assert_eq!(select(VersionFilter { operation: Some(Operation::Created), ..any() }), [4, 1]);
    assert_eq!(select(VersionFilter { actors: by(&["grace"]), ..any() }), [2]);
    assert_eq!(select(VersionFilter { actors: by(&["grace", "ada"]), ..any() }), Vec::<i64>::new());
    assert_eq!(select(VersionFilter { created: span, ..any() }), [3, 2]);
    let all = VersionFilter {
        memory: Some(memory.id),
        path: Some(Rows::path("/b")),
        operation: Some(Operation::Deleted),
        actors: by(&["ada"]),
        created: span,
    };
    assert_eq!(select(all), [3]);
}

/// "Returns a version of the store", of no other.
pub fn a_version_is_read_from_its_store_only(fixture: &Fixture) {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store, &other]);
    let memory = Rows::memory(&store, 1, "/a", "text");
    fixture.with_memories(1, &[&memory]);
    fixture.read(|reader| {
        assert!(reader.version(store.id, memory.version, View::Full)?.is_some());
        assert_eq!(reader.version(other.id, memory.version, View::Full)?, None);
        let other_random = quipu_core::model::Id::new(memory.created_at, 99);
        assert_eq!(reader.version(store.id, other_random, View::Full)?, None);
        Ok(())
    });
}

/// "Returns a session" and "the session whose token has this hash".
pub fn sessions_are_read_back_and_found_by_token(fixture: &Fixture) {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store, &other]);
    let session = Rows::session(1, &[&other, &store]);
    let tokenless = Session { token: None, ..Rows::session(2, &[]) };
    fixture.write(|writer| {
        writer.put_session(&session)?;
        writer.put_session(&tokenless)
    });
    fixture.read(|reader| {
        assert_eq!(reader.session(session.id)?.as_ref(), Some(&session));
        assert_eq!(reader.session(tokenless.id)?.as_ref(), Some(&tokenless));
        let found = reader.session_with_token(&SecretHash::of("token 1"))?;
        assert_eq!(found.as_ref(), Some(&session));
        assert_eq!(reader.session_with_token(&SecretHash::of("token 2"))?, None);
        Ok(())
    });
}

/// "Returns the sessions that the query selects, in its order."
pub fn sessions_come_in_both_orders_and_are_selected(fixture: &Fixture) {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store, &other]);
    let first = Rows::session(1, &[&store]);
    let second = Session { archived_at: Some(Rows::at(9)), ..Rows::session(2, &[&other]) };
    let third = Rows::session(3, &[&store, &other]);
    fixture.write(|writer| {
        [&second, &first, &third].iter().try_for_each(|session| writer.put_session(session))
    });
    let select = |query: SessionQuery| fixture.read(|reader| reader.sessions(&query));
    let all = Rows::all_sessions;
    let span = Span { first: Rows::at(2), last: Rows::at(2) };
    assert_eq!(select(all()), [third.clone(), second.clone(), first.clone()]);
    assert_eq!(select(SessionQuery { limit: 1, ..all() }), [third.clone()]);
    let rest = SessionQuery { after: Some(third.id), ..all() };
    assert_eq!(select(rest), [second.clone(), first.clone()]);
    let oldest = SessionQuery { order: Order::OldestFirst, limit: 2, ..all() };
    assert_eq!(select(oldest.clone()), [first.clone(), second.clone()]);
    assert_eq!(select(SessionQuery { after: Some(second.id), ..oldest }), [third.clone()]);
    let hidden = SessionQuery { archived: Archived::Hide, ..all() };
    assert_eq!(select(hidden), [third.clone(), first.clone()]);
    assert_eq!(select(SessionQuery { store: Some(store.id), ..all() }), [third, first]);
    assert_eq!(select(SessionQuery { created: span, ..all() }), [second]);
    let foreign = SessionQuery { workspace: Rows::workspace(2).id, ..all() };
    assert_eq!(select(foreign), []);
}

/// "Returns a key", "the key whose secret has this hash", "all keys of a workspace".
pub fn keys_are_read_back_and_found_by_secret(fixture: &Fixture) {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store, &other]);
    let first = Rows::key(1, Some(vec![store.id, other.id]));
    let second = Rows::key(2, None);
    let closed = Rows::key(3, Some(Vec::new()));
    let foreign = Key { workspace: Rows::workspace(2).id, ..Rows::key(4, None) };
    fixture.write(|writer| {
        writer.put_workspace(&Workspace { ..Rows::workspace(2) })?;
        [&second, &first, &closed, &foreign].iter().try_for_each(|key| writer.put_key(key))
    });
    fixture.read(|reader| {
        assert_eq!(reader.key(first.id)?.as_ref(), Some(&first));
        let found = reader.key_with_secret(&SecretHash::of("secret 2"))?;
        assert_eq!(found.as_ref(), Some(&second));
        assert_eq!(reader.key_with_secret(&SecretHash::of("secret 9"))?, None);
        let keys = reader.keys(first.workspace)?;
        assert_eq!(keys, [first.clone(), second.clone(), closed.clone()]);
        Ok(())
    });
}
