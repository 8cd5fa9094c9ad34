//! What each change does.

use std::collections::BTreeMap;
use std::time::Duration;

use quipu_core::backend::{Event, PruneRule, Sequence, Usage};
use quipu_core::model::{
    DeletedStore, ForgottenPolicy, Memory, Metadata, Name, Redaction, Refusal, SecretPolicy,
    Session, Store, StorePolicy, View, Workspace, Writers,
};

use super::{Fixture, Rows};

/// "Adds or replaces": a workspace, a store, a session, a key.
pub fn putting_again_replaces(fixture: &Fixture) {
    let name = || Name::new("new").expect("a name");
    let pair = BTreeMap::from([("team".to_owned(), "tea".to_owned())]);
    let store = Store {
        metadata: Metadata::new(pair).expect("a pair"),
        policy: StorePolicy {
            secrets: SecretPolicy::Reject,
            expire_after_days: Some(7),
            forgotten: ForgottenPolicy::Refuse,
            writers: Writers::People,
        },
        archived_at: Some(Rows::at(9)),
        name: name(),
        ..Rows::store(1)
    };
    let workspace = Workspace { name: name(), ..Rows::workspace(1) };
    let session = Session { title: "new".to_owned(), ..Rows::session(1, &[&store]) };
    let key = quipu_core::model::Key { revoked_at: Some(Rows::at(8)), ..Rows::key(1, None) };
    fixture.with_stores(&[&Rows::store(1)]);
    fixture.write(|writer| {
        writer.put_session(&Rows::session(1, &[&store]))?;
        writer.put_key(&Rows::key(1, Some(vec![store.id])))?;
        writer.put_workspace(&workspace)?;
        writer.put_store(&store)?;
        writer.put_session(&session)?;
        writer.put_key(&key)
    });
    fixture.read(|reader| {
        assert_eq!(reader.workspaces()?, [workspace.clone()]);
        assert_eq!(reader.stores(&Rows::all_stores())?, [store.clone()]);
        assert_eq!(reader.sessions(&Rows::all_sessions())?, [session.clone()]);
        assert_eq!(reader.keys(workspace.id)?, [key.clone()]);
        Ok(())
    });
}

/// "Adds a version and makes the memory what the version says."
pub fn a_commit_moves_the_memory_and_adds_the_version(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let first = Rows::memory(&store, 1, "/a", "one");
    let edited = Rows::changed(&first, 2, "/a", "two");
    let moved = Rows::changed(&first, 3, "/b", "two");
    let commits = [
        Rows::commit(1, None, Some(&first)),
        Rows::commit(2, Some(&first), Some(&edited)),
        Rows::commit(3, Some(&edited), Some(&moved)),
    ];
    let heads = [&first, &edited, &moved];
    for (commit, head) in commits.iter().zip(heads) {
        fixture.write(|writer| writer.commit(commit));
        fixture.read(|reader| {
            assert_eq!(reader.memory(store.id, head.id, View::Full)?.as_ref(), Some(head));
            let version = reader.version(store.id, commit.version.id, View::Full)?;
            assert_eq!(version.as_ref(), Some(&commit.version));
            Ok(())
        });
    }
    let old_place = fixture.read(|r| r.memory_at(store.id, &Rows::path("/a"), View::Basic));
    assert_eq!(old_place, None);
}

/// "The change feed gets an `Event::Version` and the store's usage follows."
pub fn a_commit_feeds_the_change_and_the_usage(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let first = Rows::memory(&store, 1, "/a", "one");
    let longer = Rows::changed(&first, 2, "/a", "longer");
    let steps: [(Option<&Memory>, Option<&Memory>, u64, u64); 3] = [
        (None, Some(&first), 1, 3),
        (Some(&first), Some(&longer), 1, 6),
        (Some(&longer), None, 0, 0),
    ];
    for (number, (before, after, memories_count, size_bytes)) in (1..).zip(steps) {
        let commit = Rows::commit(number, before, after);
        fixture.write(|writer| writer.commit(&commit));
        fixture.read(|reader| {
            assert_eq!(reader.usage(store.id)?, Usage { memories_count, size_bytes });
            let changes = reader.changes(Sequence(number - 1), 10)?;
            let event = Event::Version(commit.version.id);
            assert_eq!(changes, [Rows::change(number, &store, event)]);
            Ok(())
        });
    }
}

/// A deletion is a version without a text; the earlier ones stay.
pub fn a_deletion_removes_the_memory_and_keeps_its_versions(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let first = Rows::memory(&store, 1, "/a", "one");
    fixture.with_memories(1, &[&first]);
    let deletion = Rows::commit(2, Some(&first), None);
    fixture.write(|writer| writer.commit(&deletion));
    fixture.read(|reader| {
        assert_eq!(reader.memory(store.id, first.id, View::Basic)?, None);
        let versions = reader.versions(store.id, &Rows::all_versions())?;
        assert_eq!(versions.len(), 2);
        assert_eq!(versions[0], deletion.version);
        assert_eq!(versions[1].content, first.content);
        Ok(())
    });
}

/// "Removes a store with its memories and versions."
pub fn removing_a_store_removes_its_rows(fixture: &Fixture) {
    let (gone, stays) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&gone, &stays]);
    let theirs = Rows::memory(&stays, 2, "/a", "stays");
    fixture.with_memories(1, &[&Rows::memory(&gone, 1, "/a", "goes"), &theirs]);
    fixture.write(|writer| writer.remove_store(gone.id));
    fixture.read(|reader| {
        assert_eq!(reader.store(gone.id)?, None);
        assert_eq!(reader.usage(gone.id)?, Usage::default());
        assert!(reader.versions(gone.id, &Rows::all_versions())?.is_empty());
        assert_eq!(reader.memory(stays.id, theirs.id, View::Full)?.as_ref(), Some(&theirs));
        assert_eq!(reader.versions(stays.id, &Rows::all_versions())?.len(), 1);
        Ok(())
    });
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
}

/// "Hides a store as if it did not exist", and "shows it again as it was".
pub fn a_deleted_store_is_hidden_until_it_is_restored(fixture: &Fixture) {
    let (gone, stays) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&gone, &stays]);
    let ours = Rows::memory(&gone, 1, "/a", "comes back");
    fixture.with_memories(1, &[&ours, &Rows::memory(&stays, 2, "/a", "stays")]);
    let usage = fixture.read(|reader| reader.usage(gone.id));
    fixture.write(|writer| {
        writer.put_key(&Rows::key(3, Some(vec![gone.id])))?;
        writer.delete_store(gone.id, Rows::at(5))
    });
    fixture.read(|reader| {
        assert_eq!(reader.store(gone.id)?, None);
        assert_eq!(reader.usage(gone.id)?, Usage::default());
        assert_eq!(reader.memory(gone.id, ours.id, View::Full)?, None);
        assert_eq!(reader.memory_at(gone.id, &ours.path, View::Full)?, None);
        assert_eq!(reader.version(gone.id, ours.version, View::Full)?, None);
        assert!(reader.versions(gone.id, &Rows::all_versions())?.is_empty());
        let deleted = reader.deleted_stores(gone.workspace)?;
        assert_eq!(
            deleted,
            [DeletedStore { store: gone.clone(), memories_count: 1, deleted_at: Rows::at(5) }]
        );
        assert_eq!(reader.deleted_stores(Rows::workspace(2).id)?, []);
        Ok(())
    });
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
    fixture.write(|writer| writer.restore_store(gone.id));
    fixture.read(|reader| {
        assert_eq!(reader.store(gone.id)?.as_ref(), Some(&gone));
        assert_eq!(reader.usage(gone.id)?, usage);
        assert_eq!(reader.memory(gone.id, ours.id, View::Full)?.as_ref(), Some(&ours));
        assert_eq!(reader.versions(gone.id, &Rows::all_versions())?.len(), 1);
        assert_eq!(reader.deleted_stores(gone.workspace)?, []);
        let key = reader.key(Rows::key(3, None).id)?.expect("the key stays");
        assert_eq!(key.stores, Some(vec![gone.id]));
        Ok(())
    });
}

/// "Removes a store, deleted or not."
pub fn a_deleted_store_can_be_removed(fixture: &Fixture) {
    let gone = Rows::store(1);
    fixture.with_stores(&[&gone]);
    fixture.with_memories(1, &[&Rows::memory(&gone, 1, "/a", "goes")]);
    fixture.write(|writer| writer.delete_store(gone.id, Rows::at(5)));
    fixture.write(|writer| writer.remove_store(gone.id));
    fixture.write(|writer| writer.restore_store(gone.id));
    fixture.read(|reader| {
        assert_eq!(reader.deleted_stores(gone.workspace)?, []);
        assert_eq!(reader.store(gone.id)?, None);
        Ok(())
    });
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
}

/// "And detaches it from keys. Sessions keep their attachment as a record."
pub fn a_removed_store_leaves_keys_but_stays_on_record_in_sessions(fixture: &Fixture) {
    let (gone, stays) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&gone, &stays]);
    let session = Rows::session(3, &[&gone]);
    fixture.write(|writer| {
        writer.put_key(&Rows::key(3, Some(vec![gone.id, stays.id])))?;
        writer.put_session(&session)?;
        writer.remove_store(gone.id)
    });
    fixture.read(|reader| {
        let key = reader.key(Rows::key(3, None).id)?.expect("the key stays");
        assert_eq!(key.stores, Some(vec![stays.id]));
        assert_eq!(reader.session(session.id)?.as_ref(), Some(&session));
        Ok(())
    });
}

/// "Adds a refusal, and removes all but the newest `kept_count` of its store"; "refusals that name the
/// path" go with a redacted version.
pub fn refusals_are_bounded_and_removed_with_a_redaction(fixture: &Fixture) {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store, &other]);
    let first = Rows::memory(&store, 1, "/a", "secret");
    let second = Rows::changed(&first, 2, "/a", "public");
    let refusal = |store: &Store, number: i64, path: &str| Refusal {
        store: store.id,
        at: Rows::at(number),
        path: path.to_owned(),
        actor: Rows::actor("ada"),
        reason: "it is too long".to_owned(),
    };
    fixture.write(|writer| {
        writer.put_refusal(&refusal(&other, 1, "/a"), 2)?;
        for (number, path) in [(1, "/a"), (2, "/b"), (3, "/a")] {
            writer.put_refusal(&refusal(&store, number, path), 2)?;
        }
        Ok(())
    });
    let kept = [refusal(&store, 3, "/a"), refusal(&store, 2, "/b")];
    fixture.read(|reader| {
        assert_eq!(reader.refusals(store.id, 10)?, kept);
        assert_eq!(reader.refusals(store.id, 1)?, kept[..1]);
        Ok(())
    });
    fixture.write(|writer| {
        writer.commit(&Rows::commit(1, None, Some(&first)))?;
        writer.commit(&Rows::commit(2, Some(&first), Some(&second)))?;
        let redaction = Redaction { at: Rows::at(5), by: Rows::actor("grace") };
        writer.redact(store.id, &[(first.version, redaction.clone())])
    });
    fixture.read(|reader| {
        assert_eq!(reader.refusals(store.id, 10)?, kept[1..]);
        assert_eq!(reader.refusals(other.id, 10)?.len(), 1);
        Ok(())
    });
    fixture.write(|writer| writer.remove_store(other.id));
    fixture.read(|reader| {
        assert_eq!(reader.refusals(other.id, 10)?, []);
        Ok(())
    });
}

/// "Takes path, text, hash and size out of a version and records who did it."
pub fn redaction_takes_out_path_text_hash_and_size(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store, &Rows::store(2)]);
    let first = Rows::memory(&store, 1, "/a", "secret");
    let second = Rows::changed(&first, 2, "/a", "public");
    let created = Rows::commit(1, None, Some(&first));
    let redaction = Redaction { at: Rows::at(5), by: Rows::actor("grace") };
    fixture.write(|writer| {
        writer.commit(&created)?;
        writer.commit(&Rows::commit(2, Some(&first), Some(&second)))?;
        // In another store the version is not known, so nothing happens.
        writer.redact(Rows::store(2).id, &[(first.version, redaction.clone())])?;
        assert!(writer.version(store.id, first.version, View::Full)?.expect("it").path.is_some());
        writer.redact(store.id, &[(first.version, redaction.clone())])
    });
    let expected = quipu_core::model::Version {
        path: None,
        content: None,
        hash: None,
        size_bytes: None,
        redaction: Some(redaction),
        ..created.version
    };
    fixture.read(|reader| {
        let version = reader.version(store.id, first.version, View::Full)?;
        assert_eq!(version.as_ref(), Some(&expected));
        let memory = reader.memory(store.id, first.id, View::Full)?.expect("the memory stays");
        assert_eq!(memory, second);
        Ok(())
    });
}

/// Makes a memory with five versions (changes 1 to 5) and one with two that is deleted (6 to 8).
fn with_history(fixture: &Fixture) -> Store {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let mut live = Rows::memory(&store, 1, "/live", "1");
    let dead = Rows::memory(&store, 6, "/dead", "1");
    let dead_changed = Rows::changed(&dead, 7, "/dead", "2");
    fixture.with_memories(1, &[&live]);
    for number in 2..=5 {
        let next = Rows::changed(&live, number, "/live", &number.to_string());
        fixture.write(|writer| writer.commit(&Rows::commit(number, Some(&live), Some(&next))));
        live = next;
    }
    fixture.write(|writer| {
        writer.commit(&Rows::commit(6, None, Some(&dead)))?;
        writer.commit(&Rows::commit(7, Some(&dead), Some(&dead_changed)))?;
        writer.commit(&Rows::commit(8, Some(&dead_changed), None))
    });
    store
}

fn kept(fixture: &Fixture, store: &Store) -> Vec<Duration> {
    let versions = fixture.read(|reader| reader.versions(store.id, &Rows::all_versions()));
    let number = |at: quipu_core::model::Timestamp| {
        u64::try_from(at.as_micros() - Rows::at(0).as_micros()).expect("it is later")
    };
    versions.iter().map(|version| Duration::from_secs(number(version.created_at))).collect()
}

fn numbers(numbers: &[u64]) -> Vec<Duration> {
    numbers.iter().map(|number| Duration::from_secs(*number)).collect()
}

/// Old versions go, but not the newest of a memory that lives or has just been deleted; those of
/// one that has long been gone all go.
pub fn pruning_follows_its_rule(fixture: &Fixture) {
    let store = with_history(fixture);
    let prune = |before, keep_newest| {
        fixture.prune(&PruneRule { before: Rows::at(before), keep_newest }, 100);
    };
    prune(1, 2);
    assert_eq!(kept(fixture, &store), numbers(&[8, 7, 6, 5, 4, 3, 2, 1]));
    prune(3, 2);
    assert_eq!(kept(fixture, &store), numbers(&[8, 7, 6, 5, 4, 3]));
    prune(8, 2);
    assert_eq!(kept(fixture, &store), numbers(&[8, 7, 5, 4]));
    prune(9, 2);
    assert_eq!(kept(fixture, &store), numbers(&[5, 4]));
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
}

/// "Returns at most `limit` of them that a rule gives up. Called with each next place until there is none, it
/// has returned all of them."
pub fn what_a_rule_gives_up_is_found_page_by_page(fixture: &Fixture) {
    let store = with_history(fixture);
    let rule = PruneRule { before: Rows::at(100), keep_newest: 1 };
    let all = fixture.prunable(&rule, 100);
    assert_eq!(all.len(), 7);
    assert!(all.iter().all(|(of, _)| *of == store.id));
    for limit in 1..=8 {
        let mut found = fixture.prunable(&rule, limit);
        found.sort_unstable();
        let mut all = all.clone();
        all.sort_unstable();
        assert_eq!(found, all, "at most {limit}");
    }
}

/// "Removes those of these versions of a store that the rule still gives up, and returns how many."
pub fn pruning_looks_again(fixture: &Fixture) {
    let store = with_history(fixture);
    let other = Rows::store(9);
    fixture.with_stores(&[&other]);
    let rule = PruneRule { before: Rows::at(100), keep_newest: 1 };
    let all: Vec<_> = fixture.prunable(&rule, 100).into_iter().map(|(_, id)| id).collect();
    let prune = |rule: PruneRule, store, ids: &[quipu_core::model::VersionId]| {
        let mut count = 0;
        fixture.write(|writer| {
            count = writer.prune(&rule, store, ids)?;
            Ok(())
        });
        count
    };
    assert_eq!(prune(rule, other.id, &all), 0, "they are of another store");
    assert_eq!(prune(PruneRule { before: Rows::at(1), ..rule }, store.id, &all), 0);
    assert_eq!(prune(rule, store.id, &all[..3]), 3);
    assert_eq!(prune(rule, store.id, &all), 4, "three of them are gone");
    assert_eq!(kept(fixture, &store).len(), 1);
}

/// "Removes the oldest changes, at most `limit` of them, that were made before a moment, but never the newest of
/// all; returns how many it removed."
pub fn the_feed_is_trimmed_but_not_its_newest_change(fixture: &Fixture) {
    with_history(fixture);
    for (before, limit, trimmed_count, first_left) in
        [(4, 100, 3, 4), (100, 2, 2, 6), (100, 100, 2, 8), (100, 100, 0, 8)]
    {
        fixture.write(|writer| {
            assert_eq!(writer.trim_changes(Rows::at(before), limit)?, trimmed_count);
            Ok(())
        });
        let changes = fixture.read(|reader| reader.changes(Sequence(0), 100));
        assert_eq!(changes[0].sequence, Sequence(first_left));
        assert_eq!(changes[changes.len() - 1].sequence, Sequence(8));
    }
}

/// "Removes a session. Versions keep it as their actor."
pub fn a_removed_session_is_gone_and_stays_an_actor(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let session = Rows::session(2, &[&store]);
    let memory = Rows::memory(&store, 1, "/a", "text");
    let mut commit = Rows::commit(1, None, Some(&memory));
    commit.version.actor = quipu_core::model::Actor::Session(session.id);
    fixture.write(|writer| {
        writer.put_session(&session)?;
        writer.commit(&commit)?;
        writer.remove_session(session.id)
    });
    fixture.read(|reader| {
        assert_eq!(reader.session(session.id)?, None);
        assert!(reader.sessions(&Rows::all_sessions())?.is_empty());
        let version = reader.version(store.id, commit.version.id, View::Full)?;
        assert_eq!(version.as_ref(), Some(&commit.version));
        Ok(())
    });
}
