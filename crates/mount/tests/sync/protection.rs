//! What a sync must never do.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use quipu_core::ErrorKind;
use quipu_core::engine::NewStore;
use quipu_core::model::{Name, SecretPolicy, StorePolicy};
use quipu_core::settings::Limits;
use quipu_mount::sync::{FolderSync, MassDeletion, Start};

use crate::support::{Bench, ada, bench, bench_with, path};

fn in_sync(count: usize) -> Bench {
    let bench = bench();
    for number in 0..count {
        bench.put(&format!("/n{number}.md"), &format!("text {number}\n"));
    }
    bench.sync();
    bench
}

#[test]
fn a_missing_folder_is_refused() {
    let bench = in_sync(3);
    fs::remove_dir_all(bench.folder()).unwrap();
    let refused = bench.sync_with(MassDeletion::Allow).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::NotFound);
    assert_eq!(bench.memories().len(), 3);
}

#[test]
fn an_empty_folder_gets_everything_again() {
    let bench = in_sync(3);
    fs::remove_dir_all(bench.folder()).unwrap();
    fs::create_dir(bench.folder()).unwrap();
    let report = bench.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.start, Start::First);
    assert_eq!(bench.memories().len(), 3);
    bench.assert_equal();
}

#[test]
fn a_lost_or_broken_state_deletes_nothing() {
    for broken in [None, Some(""), Some("quipu sync 1\nhalf a li")] {
        let bench = in_sync(3);
        fs::remove_file(bench.file("/n0.md")).unwrap();
        bench.engine.delete_at(&ada(), bench.store, &path("/n1.md")).unwrap();
        let state = bench.folder().join(".quipu/sync");
        match broken {
            Some(text) => fs::write(state, text).unwrap(),
            None => fs::remove_dir_all(bench.folder().join(".quipu")).unwrap(),
        }
        bench.sync();
        bench.assert_equal();
        assert_eq!(bench.files().len(), 3, "what was on one side is on both");
    }
}

#[test]
fn a_wiped_folder_with_its_state_needs_a_word() {
    let bench = in_sync(3);
    for number in 0..3 {
        fs::remove_file(bench.file(&format!("/n{number}.md"))).unwrap();
    }
    let refused = bench.sync_with(MassDeletion::Refuse).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::LimitReached);
    assert!(refused.message().contains("3 of 3 files are gone from the folder"), "{refused}");
    assert!(refused.hint().unwrap().contains("--allow-mass-deletion"));
    assert_eq!(bench.memories().len(), 3);
    bench.sync_with(MassDeletion::Allow).unwrap();
    assert_eq!(bench.memories().len(), 0);
}

#[test]
fn most_of_many_files_gone_needs_a_word_in_both_directions() {
    let bench = in_sync(30);
    for number in 0..16 {
        fs::remove_file(bench.file(&format!("/n{number}.md"))).unwrap();
    }
    assert!(bench.sync_with(MassDeletion::Refuse).is_err());
    assert_eq!(bench.memories().len(), 30);

    let bench = in_sync(30);
    for number in 0..16 {
        let path = path(&format!("/n{number}.md"));
        bench.engine.delete_at(&ada(), bench.store, &path).unwrap();
    }
    assert!(bench.sync_with(MassDeletion::Refuse).is_err());
    assert_eq!(bench.files().len(), 30);
    bench.sync_with(MassDeletion::Allow).unwrap();
    assert_eq!(bench.files().len(), 14);
}

#[test]
fn a_folder_of_another_store_is_refused() {
    let bench = in_sync(3);
    let new = NewStore::named(Name::new("other").unwrap());
    let other = bench.engine.create_store(bench.workspace, &new).unwrap().id;
    let sync =
        FolderSync::new(bench.engine.clone(), other, &bench.folder(), MassDeletion::Allow).unwrap();
    assert_eq!(*sync.lock().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(*sync.preview().unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_store_that_went_back_in_time_deletes_nothing() {
    let bench = in_sync(4);
    bench.write("/n9.md", "only in the newer store");
    bench.sync();
    // The same folder beside the same store as it was: the state knows versions that it does not.
    let state = bench.folder().join(".quipu/sync");
    let text = fs::read_to_string(&state).unwrap();
    let head = text.lines().nth(1).unwrap();
    let words: Vec<_> = head.split(' ').collect();
    let newer = head.replace(&format!(" {} ", words[1]), " 1000000 ");
    fs::write(&state, text.replace(head, &newer)).unwrap();
    bench.engine.delete_at(&ada(), bench.store, &path("/n9.md")).unwrap();
    bench.put("/n0.md", "an older text");
    let report = bench.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.start, Start::StoreWentBack);
    bench.assert_equal();
    assert_eq!(bench.read("/n9.md").as_deref(), Some("only in the newer store"));
    assert_eq!(bench.read("/n0.md").as_deref(), Some("text 0\n"));
    assert_eq!(bench.sync_with(MassDeletion::Refuse).unwrap().start, Start::Known);
}

#[test]
fn what_cannot_be_a_memory_is_reported_and_left_alone() {
    let limits = Limits { content_size_bytes_max: 10, ..Limits::default() };
    let bench = bench_with(StorePolicy::default(), limits);
    bench.write("/image.png", b"\x89PNG\xff");
    bench.write("/nul.txt", "a\0b");
    bench.write("/long.md", "12345678901");
    bench.write("/fits.md", "1234567890");
    bench.write("/e\u{301}.md", "not normalized");
    fs::write(bench.folder().join(std::ffi::OsStr::from_bytes(b"\xff.md")), "x").unwrap();
    std::os::unix::fs::symlink("/etc", bench.folder().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", bench.folder().join("passwd.md")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.folder().join("socket")).unwrap();
    bench.put("/link/x.md", "below");
    let report = bench.sync_with(MassDeletion::Refuse).unwrap();
    let left_out: Vec<_> = report.left_out.iter().map(|left| left.path.as_str()).collect();
    let mut expected = vec![
        "/e\u{301}.md",
        "/image.png",
        "/link",
        "/link/x.md",
        "/long.md",
        "/nul.txt",
        "/passwd.md",
        "/socket",
        "/\u{fffd}.md",
    ];
    expected.sort_unstable();
    assert_eq!(left_out, expected);
    let memories: Vec<_> = bench.memories().into_keys().collect();
    assert_eq!(memories, ["/fits.md", "/link/x.md"]);
    assert_eq!(bench.sync(), [""; 0]);
}

#[test]
fn a_file_that_ceases_to_be_text_is_not_deleted_anywhere() {
    let bench = in_sync(3);
    bench.write("/n0.md", b"\xff\xfe");
    bench.put("/n0.md", "changed in the store");
    assert_eq!(bench.sync(), [""; 0]);
    assert_eq!(bench.text("/n0.md").as_deref(), Some("changed in the store"));
    assert_eq!(fs::read(bench.file("/n0.md")).unwrap(), b"\xff\xfe");
    bench.write("/n0.md", "text again");
    assert_eq!(bench.sync().len(), 1);
    bench.assert_equal();
}

#[test]
fn what_is_ignored_is_left_alone_on_both_sides() {
    let bench = in_sync(3);
    bench.write("/.gitignore", "n0.md\nbuild/\n");
    bench.write("/build/out.md", "x");
    bench.write("/.obsidian/app.json", "{}");
    bench.put("/build/theirs.md", "y");
    bench.put("/.hidden.md", "z");
    bench.put("/n0.md", "changed in the store");
    assert_eq!(bench.sync(), [""; 0]);
    assert_eq!(bench.read("/n0.md").as_deref(), Some("text 0\n"));
    assert_eq!(bench.memories().len(), 5);
    assert_eq!(bench.read("/build/theirs.md"), None);
    fs::remove_file(bench.file("/.gitignore")).unwrap();
    bench.sync();
    assert_eq!(bench.text("/build/out.md").as_deref(), Some("x"));
}

#[test]
fn what_the_store_refuses_stays_in_the_folder_and_is_reported() {
    let policy = StorePolicy { secrets: SecretPolicy::Reject, ..StorePolicy::default() };
    let limits = Limits { memories_per_store_max: 2, ..Limits::default() };
    let bench = bench_with(policy, limits);
    bench.write("/keys.md", "key: AKIAIOSFODNN7EXAMPLQ\n");
    for number in 0..3 {
        bench.write(&format!("/n{number}.md"), "x");
    }
    let report = bench.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.failed.len(), 2, "{:?}", report.failed);
    assert_eq!(bench.memories().len(), 2);
    assert_eq!(bench.files().len(), 4);
}

#[test]
fn an_archived_store_takes_nothing_and_loses_nothing() {
    let bench = in_sync(3);
    bench.engine.archive_store(bench.store).unwrap();
    bench.write("/n0.md", "changed");
    let refused = bench.sync_with(MassDeletion::Refuse).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::StoreArchived);
    assert_eq!(bench.read("/n0.md").as_deref(), Some("changed"));
}

#[test]
fn left_overs_of_a_killed_sync_go_unless_their_text_is_nowhere_else() {
    let bench = in_sync(3);
    let scratch = bench.folder().join(".quipu/scratch");
    fs::write(scratch.join("known"), "text 0\n").unwrap();
    fs::write(scratch.join("unknown"), "an edit of the last moment").unwrap();
    bench.sync();
    assert!(!scratch.join("known").exists());
    assert!(scratch.join("unknown").exists());
}

#[test]
fn files_keep_their_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = in_sync(2);
    let file = bench.file("/n0.md");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    bench.put("/n0.md", "changed");
    bench.sync();
    assert_eq!(bench.read("/n0.md").as_deref(), Some("changed"));
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
}
