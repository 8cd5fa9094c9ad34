//! New, changed, renamed and deleted on either side, and on both.

use std::fs;

use quipu_core::model::{Actor, SecretPolicy, StorePolicy};
use quipu_core::settings::Limits;
use quipu_mount::sync::{DeedKind, FolderSync, MassDeletion};

use crate::support::{Bench, ada, bench, bench_with, path};

/// Returns a bench with three files in sync.
fn in_sync() -> Bench {
    let bench = bench();
    for name in ["/a.md", "/b.md", "/dir/c.md"] {
        bench.put(name, &format!("first\nof {name}\nlast\n"));
    }
    bench.sync();
    bench.assert_equal();
    assert_eq!(bench.sync(), [""; 0]);
    bench
}

#[test]
fn the_first_sync_joins_both_sides() {
    let bench = bench();
    bench.write("/here.md", "here");
    bench.write("/same.md", "same");
    bench.put("/same.md", "same");
    bench.put("/deep/er/there.md", "there");
    assert_eq!(bench.sync(), ["folder created /deep/er/there.md", "store created /here.md"]);
    bench.assert_equal();
}

#[test]
fn changes_go_to_the_other_side() {
    let bench = in_sync();
    bench.write("/a.md", "new text");
    bench.put("/b.md", "other text");
    bench.write("/new.md", "");
    bench.put("/dir/new.md", "x");
    let expected = [
        "store changed /a.md",
        "folder changed /b.md",
        "folder created /dir/new.md",
        "store created /new.md",
    ];
    assert_eq!(bench.sync(), expected);
    bench.assert_equal();
    assert_eq!(bench.text("/a.md").as_deref(), Some("new text"));
    assert_eq!(bench.read("/b.md").as_deref(), Some("other text"));
}

#[test]
fn deletions_go_to_the_other_side() {
    let bench = in_sync();
    fs::remove_file(bench.file("/a.md")).unwrap();
    bench.engine.delete_at(&ada(), bench.store, &path("/dir/c.md")).unwrap();
    assert_eq!(bench.sync(), ["store deleted /a.md", "folder deleted /dir/c.md"]);
    bench.assert_equal();
    assert!(!bench.folder().join("dir").exists(), "an empty directory goes, too");
    assert_eq!(bench.files().len(), 1);
}

#[test]
fn a_rename_in_the_folder_keeps_the_memory() {
    let bench = in_sync();
    let (a, b) = (bench.memory("/a.md").id, bench.memory("/b.md").id);
    fs::rename(bench.file("/a.md"), bench.file("/dir/moved.md")).unwrap();
    fs::rename(bench.file("/b.md"), bench.file("/edited.md")).unwrap();
    fs::write(bench.file("/edited.md"), "renamed and edited").unwrap();
    let expected = [
        "store moved /dir/moved.md (was /a.md)",
        "store changed /edited.md",
        "store moved /edited.md (was /b.md)",
    ];
    assert_eq!(bench.sync(), expected);
    bench.assert_equal();
    assert_eq!(bench.memory("/dir/moved.md").id, a);
    assert_eq!(bench.memory("/edited.md").id, b);
}

#[test]
fn a_rename_by_copying_keeps_the_memory_too() {
    let bench = in_sync();
    let id = bench.memory("/a.md").id;
    fs::copy(bench.file("/a.md"), bench.file("/copy.md")).unwrap();
    fs::remove_file(bench.file("/a.md")).unwrap();
    assert_eq!(bench.sync(), ["store moved /copy.md (was /a.md)"]);
    assert_eq!(bench.memory("/copy.md").id, id);
}

#[test]
fn a_renamed_directory_keeps_its_memories() {
    let bench = in_sync();
    let id = bench.memory("/dir/c.md").id;
    fs::rename(bench.folder().join("dir"), bench.folder().join("other")).unwrap();
    assert_eq!(bench.sync(), ["store moved /other/c.md (was /dir/c.md)"]);
    assert_eq!(bench.memory("/other/c.md").id, id);
    bench.assert_equal();
}

#[test]
fn a_rename_in_the_store_renames_the_file() {
    let bench = in_sync();
    bench.engine.rename(&ada(), bench.store, &path("/a.md"), &path("/x/y.md")).unwrap();
    assert_eq!(bench.sync(), ["folder moved /x/y.md (was /a.md)"]);
    bench.assert_equal();
    assert_eq!(bench.sync(), [""; 0]);
}

#[test]
fn names_that_the_store_exchanges_are_exchanged_in_the_folder() {
    let bench = in_sync();
    let rename = |from: &str, to: &str| {
        bench.engine.rename(&ada(), bench.store, &path(from), &path(to)).unwrap();
    };
    rename("/a.md", "/t");
    rename("/b.md", "/a.md");
    rename("/t", "/b.md");
    rename("/dir/c.md", "/dir.md");
    rename("/dir.md", "/dir");
    bench.sync();
    bench.assert_equal();
    assert_eq!(bench.sync(), [""; 0]);
    assert_eq!(bench.read("/a.md").as_deref(), Some("first\nof /b.md\nlast\n"));
}

#[test]
fn different_names_on_both_sides_become_the_name_in_the_folder() {
    let bench = in_sync();
    let id = bench.memory("/a.md").id;
    bench.engine.rename(&ada(), bench.store, &path("/a.md"), &path("/theirs.md")).unwrap();
    fs::rename(bench.file("/a.md"), bench.file("/ours.md")).unwrap();
    bench.sync();
    bench.assert_equal();
    assert_eq!(bench.memory("/ours.md").id, id);
    assert_eq!(bench.files().len(), 3);
}

#[test]
fn changes_of_different_lines_are_merged() {
    let bench = in_sync();
    bench.write("/a.md", "FIRST\nof /a.md\nlast\n");
    bench.put("/a.md", "first\nof /a.md\nLAST\n");
    let versions_before = bench.versions().len();
    assert_eq!(bench.sync(), ["both merged /a.md"]);
    bench.assert_equal();
    assert_eq!(bench.text("/a.md").as_deref(), Some("FIRST\nof /a.md\nLAST\n"));
    assert_eq!(bench.versions().len(), versions_before + 1);
}

#[test]
fn in_a_conflict_the_folder_wins_and_the_history_keeps_the_other_text() {
    let bench = in_sync();
    bench.write("/a.md", "ours");
    let theirs = bench.put("/a.md", "theirs");
    let report = bench.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.deeds[0].kind, DeedKind::Conflict { version: theirs.version });
    bench.assert_equal();
    assert_eq!(bench.text("/a.md").as_deref(), Some("ours"));
    let version = bench.versions().into_iter().find(|version| version.id == theirs.version);
    assert_eq!(version.unwrap().content.unwrap().as_str(), "theirs");
}

#[test]
fn different_texts_that_meet_for_the_first_time_are_a_conflict() {
    let bench = bench();
    bench.write("/a.md", "ours");
    let theirs = bench.put("/a.md", "theirs");
    let report = bench.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.deeds[0].kind, DeedKind::Conflict { version: theirs.version });
    assert_eq!(bench.memory("/a.md").id, theirs.id);
    bench.assert_equal();
}

#[test]
fn a_change_beats_a_deletion() {
    let bench = in_sync();
    fs::remove_file(bench.file("/a.md")).unwrap();
    bench.put("/a.md", "changed in the store");
    bench.write("/b.md", "changed in the folder");
    bench.engine.delete_at(&ada(), bench.store, &path("/b.md")).unwrap();
    let expected = [
        "folder revived /a.md (deleted here, changed there)",
        "store revived /b.md (deleted here, changed there)",
    ];
    assert_eq!(bench.sync(), expected);
    bench.assert_equal();
    assert_eq!(bench.files().len(), 3);
}

#[test]
fn a_memory_that_takes_the_path_of_a_deleted_one_takes_its_file() {
    let bench = in_sync();
    for (name, text) in [("/a.md", "heir of a"), ("/b.md", "heir of b")] {
        bench.engine.delete_at(&ada(), bench.store, &path(name)).unwrap();
        bench.put(name, text);
    }
    bench.write("/b.md", "ours");
    bench.sync();
    bench.assert_equal();
    assert_eq!(bench.read("/a.md").as_deref(), Some("heir of a"));
    assert_eq!(bench.read("/b.md").as_deref(), Some("ours"));
}

#[test]
fn a_new_file_at_the_new_path_of_a_memory_loses_nothing() {
    let bench = in_sync();
    bench.engine.rename(&ada(), bench.store, &path("/a.md"), &path("/n.md")).unwrap();
    bench.write("/n.md", "a stranger");
    bench.write("/a.md", "an edit");
    bench.sync();
    bench.assert_equal();
    let texts: Vec<_> = bench.files().into_values().collect();
    assert!(texts.contains(&"a stranger".to_owned()), "{texts:?}");
    assert!(texts.contains(&"an edit".to_owned()), "{texts:?}");
}

#[test]
fn a_file_can_become_a_directory_and_back() {
    let bench = in_sync();
    fs::remove_file(bench.file("/a.md")).unwrap();
    bench.write("/a.md/inside", "x");
    bench.sync();
    bench.assert_equal();
    bench.engine.delete_at(&ada(), bench.store, &path("/a.md/inside")).unwrap();
    bench.put("/a.md", "a file again");
    bench.sync();
    bench.assert_equal();
    assert_eq!(bench.sync(), [""; 0]);
}

#[test]
fn what_is_in_each_others_way_is_reported_and_stays() {
    let bench = in_sync();
    bench.write("/p", "a file");
    bench.put("/p/q", "a memory below it");
    let report = bench.sync_with(MassDeletion::Refuse).unwrap();
    let failed: Vec<_> = report.failed.iter().map(|failed| failed.path.as_str()).collect();
    assert_eq!(failed, ["/p", "/p/q"]);
    assert_eq!(bench.read("/p").as_deref(), Some("a file"));
    assert_eq!(bench.text("/p/q").as_deref(), Some("a memory below it"));
}

#[test]
fn every_version_names_the_session_of_the_sync() {
    let bench = bench();
    bench.write("/a.md", "a");
    bench.write("/b.md", "b");
    bench.sync();
    let versions = bench.versions();
    let Actor::Session(session) = versions[0].actor else { panic!("{:?}", versions[0].actor) };
    assert_eq!(versions[1].actor, versions[0].actor, "a run is one session");
    assert_eq!(bench.engine.session(session).unwrap().title, "sync vault");
}

#[test]
fn two_folders_of_one_store_become_equal() {
    let bench = in_sync();
    let second = bench.folder().with_extension("second");
    fs::create_dir(&second).unwrap();
    let sync_second = || {
        let (engine, store) = (bench.engine.clone(), bench.store);
        let sync = FolderSync::new(engine, store, &second, MassDeletion::Refuse).unwrap();
        sync.lock().unwrap().run(&()).unwrap()
    };
    sync_second();
    bench.write("/a.md", "FIRST\nof /a.md\nlast\n");
    fs::write(second.join("a.md"), "first\nof /a.md\nLAST\n").unwrap();
    fs::rename(second.join("b.md"), second.join("moved.md")).unwrap();
    fs::remove_file(bench.file("/dir/c.md")).unwrap();
    bench.sync();
    sync_second();
    bench.sync();
    bench.assert_equal();
    assert_eq!(bench.read("/a.md").as_deref(), Some("FIRST\nof /a.md\nLAST\n"));
    for (name, text) in bench.files() {
        assert_eq!(fs::read_to_string(second.join(name.trim_start_matches('/'))).unwrap(), text);
    }
    assert!(!second.join("b.md").exists() && !second.join("dir").exists());
    assert_eq!(sync_second().deeds, []);
}

#[test]
fn a_preview_changes_nothing() {
    let bench = in_sync();
    bench.write("/a.md", "FIRST\nof /a.md\nlast\n");
    bench.put("/a.md", "first\nof /a.md\nLAST\n");
    fs::remove_file(bench.file("/b.md")).unwrap();
    let before = (bench.files(), bench.memories(), bench.versions().len());
    let foreseen = crate::support::deeds(&bench.preview());
    assert_eq!((bench.files(), bench.memories(), bench.versions().len()), before);
    assert_eq!(foreseen, ["both merged /a.md", "store deleted /b.md"]);
    assert_eq!(bench.sync(), foreseen);

    let fresh = crate::support::bench();
    fresh.write("/a", "a");
    fresh.preview();
    assert!(!fresh.folder().join(".quipu").exists());
}

#[test]
fn a_redacting_store_leaves_the_file_as_it_is() {
    let policy = StorePolicy { secrets: SecretPolicy::Redact, ..StorePolicy::default() };
    let bench = bench_with(policy, Limits::default());
    let text = "key: AKIAIOSFODNN7EXAMPLQ\n";
    bench.write("/keys.md", text);
    bench.write("/b.md", "b");
    bench.sync();
    assert_eq!(bench.read("/keys.md").as_deref(), Some(text));
    assert!(!bench.text("/keys.md").unwrap().contains("AKIA"));
    assert_eq!(bench.sync(), [""; 0]);
    fs::rename(bench.file("/keys.md"), bench.file("/moved.md")).unwrap();
    assert_eq!(bench.sync(), ["store moved /moved.md (was /keys.md)"]);
    assert_eq!(bench.read("/moved.md").as_deref(), Some(text));
}
