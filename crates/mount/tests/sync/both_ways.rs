//! Creations, changes, renames and deletions on either side and on both.

use std::fs;

use quipu_core::model::{Actor, SecretPolicy, StorePolicy};
use quipu_core::settings::Limits;
use quipu_mount::sync::{ActionKind, FolderSync, MassDeletion};

use crate::support::{Fixture, ada, fixture, fixture_with, path};

/// Returns a fixture with three files in sync.
fn in_sync() -> Fixture {
    let fixture = fixture();
    for name in ["/a.md", "/b.md", "/dir/c.md"] {
        fixture.put(name, &format!("first\nof {name}\nlast\n"));
    }
    fixture.sync();
    fixture.assert_equal();
    assert_eq!(fixture.sync(), [""; 0]);
    fixture
}

#[test]
fn the_first_sync_joins_both_sides() {
    let fixture = fixture();
    fixture.write("/here.md", "here");
    fixture.write("/same.md", "same");
    fixture.put("/same.md", "same");
    fixture.put("/deep/er/there.md", "there");
    assert_eq!(fixture.sync(), ["folder created /deep/er/there.md", "store created /here.md"]);
    fixture.assert_equal();
}

#[test]
fn changes_go_to_the_other_side() {
    let fixture = in_sync();
    fixture.write("/a.md", "new text");
    fixture.put("/b.md", "other text");
    fixture.write("/new.md", "");
    fixture.put("/dir/new.md", "x");
    let expected = [
        "store changed /a.md",
        "folder changed /b.md",
        "folder created /dir/new.md",
        "store created /new.md",
    ];
    assert_eq!(fixture.sync(), expected);
    fixture.assert_equal();
    assert_eq!(fixture.text("/a.md").as_deref(), Some("new text"));
    assert_eq!(fixture.read("/b.md").as_deref(), Some("other text"));
}

#[test]
fn deletions_go_to_the_other_side() {
    let fixture = in_sync();
    fs::remove_file(fixture.file("/a.md")).unwrap();
    fixture.engine.delete_at(&ada(), fixture.store, &path("/dir/c.md")).unwrap();
    assert_eq!(fixture.sync(), ["store deleted /a.md", "folder deleted /dir/c.md"]);
    fixture.assert_equal();
    assert!(!fixture.folder().join("dir").exists(), "an empty directory goes, too");
    assert_eq!(fixture.files().len(), 1);
}

#[test]
fn a_rename_in_the_folder_keeps_the_memory() {
    let fixture = in_sync();
    let (a, b) = (fixture.memory("/a.md").id, fixture.memory("/b.md").id);
    fs::rename(fixture.file("/a.md"), fixture.file("/dir/moved.md")).unwrap();
    fs::rename(fixture.file("/b.md"), fixture.file("/edited.md")).unwrap();
    fs::write(fixture.file("/edited.md"), "renamed and edited").unwrap();
    let expected = [
        "store moved /dir/moved.md (was /a.md)",
        "store changed /edited.md",
        "store moved /edited.md (was /b.md)",
    ];
    assert_eq!(fixture.sync(), expected);
    fixture.assert_equal();
    assert_eq!(fixture.memory("/dir/moved.md").id, a);
    assert_eq!(fixture.memory("/edited.md").id, b);
}

#[test]
fn a_rename_by_copying_keeps_the_memory_too() {
    let fixture = in_sync();
    let id = fixture.memory("/a.md").id;
    fs::copy(fixture.file("/a.md"), fixture.file("/copy.md")).unwrap();
    fs::remove_file(fixture.file("/a.md")).unwrap();
    assert_eq!(fixture.sync(), ["store moved /copy.md (was /a.md)"]);
    assert_eq!(fixture.memory("/copy.md").id, id);
}

#[test]
fn a_renamed_directory_keeps_its_memories() {
    let fixture = in_sync();
    let id = fixture.memory("/dir/c.md").id;
    fs::rename(fixture.folder().join("dir"), fixture.folder().join("other")).unwrap();
    assert_eq!(fixture.sync(), ["store moved /other/c.md (was /dir/c.md)"]);
    assert_eq!(fixture.memory("/other/c.md").id, id);
    fixture.assert_equal();
}

#[test]
fn a_rename_in_the_store_renames_the_file() {
    let fixture = in_sync();
    fixture.engine.rename(&ada(), fixture.store, &path("/a.md"), &path("/x/y.md")).unwrap();
    assert_eq!(fixture.sync(), ["folder moved /x/y.md (was /a.md)"]);
    fixture.assert_equal();
    assert_eq!(fixture.sync(), [""; 0]);
}

#[test]
fn names_that_the_store_exchanges_are_exchanged_in_the_folder() {
    let fixture = in_sync();
    let rename = |from: &str, to: &str| {
        fixture.engine.rename(&ada(), fixture.store, &path(from), &path(to)).unwrap();
    };
    rename("/a.md", "/t");
    rename("/b.md", "/a.md");
    rename("/t", "/b.md");
    rename("/dir/c.md", "/dir.md");
    rename("/dir.md", "/dir");
    fixture.sync();
    fixture.assert_equal();
    assert_eq!(fixture.sync(), [""; 0]);
    assert_eq!(fixture.read("/a.md").as_deref(), Some("first\nof /b.md\nlast\n"));
}

#[test]
fn different_names_on_both_sides_become_the_name_in_the_folder() {
    let fixture = in_sync();
    let id = fixture.memory("/a.md").id;
    fixture.engine.rename(&ada(), fixture.store, &path("/a.md"), &path("/theirs.md")).unwrap();
    fs::rename(fixture.file("/a.md"), fixture.file("/ours.md")).unwrap();
    fixture.sync();
    fixture.assert_equal();
    assert_eq!(fixture.memory("/ours.md").id, id);
    assert_eq!(fixture.files().len(), 3);
}

#[test]
fn changes_of_different_lines_are_merged() {
    let fixture = in_sync();
    fixture.write("/a.md", "FIRST\nof /a.md\nlast\n");
    fixture.put("/a.md", "first\nof /a.md\nLAST\n");
    let versions_before = fixture.versions().len();
    assert_eq!(fixture.sync(), ["both merged /a.md"]);
    fixture.assert_equal();
    assert_eq!(fixture.text("/a.md").as_deref(), Some("FIRST\nof /a.md\nLAST\n"));
    assert_eq!(fixture.versions().len(), versions_before + 1);
}

#[test]
fn in_a_conflict_the_folder_wins_and_the_history_keeps_the_other_text() {
    let fixture = in_sync();
    fixture.write("/a.md", "ours");
    let theirs = fixture.put("/a.md", "theirs");
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.actions[0].kind, ActionKind::Conflict { version: theirs.version });
    fixture.assert_equal();
    assert_eq!(fixture.text("/a.md").as_deref(), Some("ours"));
    let version = fixture.versions().into_iter().find(|version| version.id == theirs.version);
    assert_eq!(version.unwrap().content.unwrap().as_str(), "theirs");
}

#[test]
fn different_texts_that_meet_for_the_first_time_are_a_conflict() {
    let fixture = fixture();
    fixture.write("/a.md", "ours");
    let theirs = fixture.put("/a.md", "theirs");
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.actions[0].kind, ActionKind::Conflict { version: theirs.version });
    assert_eq!(fixture.memory("/a.md").id, theirs.id);
    fixture.assert_equal();
}

#[test]
fn a_change_beats_a_deletion() {
    let fixture = in_sync();
    fs::remove_file(fixture.file("/a.md")).unwrap();
    fixture.put("/a.md", "changed in the store");
    fixture.write("/b.md", "changed in the folder");
    fixture.engine.delete_at(&ada(), fixture.store, &path("/b.md")).unwrap();
    let expected = [
        "folder revived /a.md (deleted here, changed there)",
        "store revived /b.md (deleted here, changed there)",
    ];
    assert_eq!(fixture.sync(), expected);
    fixture.assert_equal();
    assert_eq!(fixture.files().len(), 3);
}

#[test]
fn a_memory_that_takes_the_path_of_a_deleted_one_takes_its_file() {
    let fixture = in_sync();
    for (name, text) in [("/a.md", "successor of a"), ("/b.md", "successor of b")] {
        fixture.engine.delete_at(&ada(), fixture.store, &path(name)).unwrap();
        fixture.put(name, text);
    }
    fixture.write("/b.md", "ours");
    fixture.sync();
    fixture.assert_equal();
    assert_eq!(fixture.read("/a.md").as_deref(), Some("successor of a"));
    assert_eq!(fixture.read("/b.md").as_deref(), Some("ours"));
}

#[test]
fn a_new_file_at_the_new_path_of_a_memory_loses_nothing() {
    let fixture = in_sync();
    fixture.engine.rename(&ada(), fixture.store, &path("/a.md"), &path("/n.md")).unwrap();
    fixture.write("/n.md", "a stranger");
    fixture.write("/a.md", "an edit");
    fixture.sync();
    fixture.assert_equal();
    let texts: Vec<_> = fixture.files().into_values().collect();
    assert!(texts.contains(&"a stranger".to_owned()), "{texts:?}");
    assert!(texts.contains(&"an edit".to_owned()), "{texts:?}");
}

#[test]
fn a_file_can_become_a_directory_and_back() {
    let fixture = in_sync();
    fs::remove_file(fixture.file("/a.md")).unwrap();
    fixture.write("/a.md/inside", "x");
    fixture.sync();
    fixture.assert_equal();
    fixture.engine.delete_at(&ada(), fixture.store, &path("/a.md/inside")).unwrap();
    fixture.put("/a.md", "a file again");
    fixture.sync();
    fixture.assert_equal();
    assert_eq!(fixture.sync(), [""; 0]);
}

#[test]
fn colliding_paths_are_reported_and_kept() {
    let fixture = in_sync();
    fixture.write("/p", "a file");
    fixture.put("/p/q", "a memory below it");
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    let failed: Vec<_> = report.failed.iter().map(|failed| failed.path.as_str()).collect();
    assert_eq!(failed, ["/p", "/p/q"]);
    assert_eq!(fixture.read("/p").as_deref(), Some("a file"));
    assert_eq!(fixture.text("/p/q").as_deref(), Some("a memory below it"));
}

#[test]
fn every_version_names_the_session_of_the_sync() {
    let fixture = fixture();
    fixture.write("/a.md", "a");
    fixture.write("/b.md", "b");
    fixture.sync();
    let versions = fixture.versions();
    let Actor::Session(session) = versions[0].actor else { panic!("{:?}", versions[0].actor) };
    assert_eq!(versions[1].actor, versions[0].actor, "a run is one session");
    assert_eq!(fixture.engine.session(session).unwrap().title, "sync vault");
}

#[test]
fn two_folders_of_one_store_become_equal() {
    let fixture = in_sync();
    let second = fixture.folder().with_extension("second");
    fs::create_dir(&second).unwrap();
    let sync_second = || {
        let (engine, store) = (fixture.engine.clone(), fixture.store);
        let sync = FolderSync::new(engine, store, &second, MassDeletion::Refuse).unwrap();
        sync.lock().unwrap().run(&()).unwrap()
    };
    sync_second();
    fixture.write("/a.md", "FIRST\nof /a.md\nlast\n");
    fs::write(second.join("a.md"), "first\nof /a.md\nLAST\n").unwrap();
    fs::rename(second.join("b.md"), second.join("moved.md")).unwrap();
    fs::remove_file(fixture.file("/dir/c.md")).unwrap();
    fixture.sync();
    sync_second();
    fixture.sync();
    fixture.assert_equal();
    assert_eq!(fixture.read("/a.md").as_deref(), Some("FIRST\nof /a.md\nLAST\n"));
    for (name, text) in fixture.files() {
        assert_eq!(fs::read_to_string(second.join(name.trim_start_matches('/'))).unwrap(), text);
    }
    assert!(!second.join("b.md").exists() && !second.join("dir").exists());
    assert_eq!(sync_second().actions, []);
}

#[test]
fn a_preview_changes_nothing() {
    let fixture = in_sync();
    fixture.write("/a.md", "FIRST\nof /a.md\nlast\n");
    fixture.put("/a.md", "first\nof /a.md\nLAST\n");
    fs::remove_file(fixture.file("/b.md")).unwrap();
    let before = (fixture.files(), fixture.memories(), fixture.versions().len());
    let preview_step = crate::support::actions(&fixture.preview());
    assert_eq!((fixture.files(), fixture.memories(), fixture.versions().len()), before);
    assert_eq!(preview_step, ["both merged /a.md", "store deleted /b.md"]);
    assert_eq!(fixture.sync(), preview_step);

    let fresh = crate::support::fixture();
    fresh.write("/a", "a");
    fresh.preview();
    assert!(!fresh.folder().join(".quipu").exists());
}

#[test]
fn a_redacting_store_leaves_the_file_as_it_is() {
    let policy = StorePolicy { secrets: SecretPolicy::Redact, ..StorePolicy::default() };
    let fixture = fixture_with(policy, Limits::default());
    let text = "key: AKIAIOSFODNN7EXAMPLQ\n";
    fixture.write("/keys.md", text);
    fixture.write("/b.md", "b");
    fixture.sync();
    assert_eq!(fixture.read("/keys.md").as_deref(), Some(text));
    assert!(!fixture.text("/keys.md").unwrap().contains("AKIA"));
    assert_eq!(fixture.sync(), [""; 0]);
    fs::rename(fixture.file("/keys.md"), fixture.file("/moved.md")).unwrap();
    assert_eq!(fixture.sync(), ["store moved /moved.md (was /keys.md)"]);
    assert_eq!(fixture.read("/moved.md").as_deref(), Some(text));
}
