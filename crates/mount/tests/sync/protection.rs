//! Protection against data loss: what a sync must never do.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use quipu_core::ErrorKind;
use quipu_core::engine::NewStore;
use quipu_core::model::{Name, SecretPolicy, StorePolicy};
use quipu_core::settings::Limits;
use quipu_mount::sync::{FolderSync, MassDeletion, Start};

use crate::support::{Fixture, ada, fixture, fixture_with, path};

fn in_sync(count: usize) -> Fixture {
    let fixture = fixture();
    for number in 0..count {
        fixture.put(&format!("/n{number}.md"), &format!("text {number}\n"));
    }
    fixture.sync();
    fixture
}

#[test]
fn a_missing_folder_is_refused() {
    let fixture = in_sync(3);
    fs::remove_dir_all(fixture.folder()).unwrap();
    let refused = fixture.sync_with(MassDeletion::Allow).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::NotFound);
    assert_eq!(fixture.memories().len(), 3);
}

#[test]
fn an_empty_folder_gets_everything_again() {
    let fixture = in_sync(3);
    fs::remove_dir_all(fixture.folder()).unwrap();
    fs::create_dir(fixture.folder()).unwrap();
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.start, Start::First);
    assert_eq!(fixture.memories().len(), 3);
    fixture.assert_equal();
}

#[test]
fn a_lost_or_broken_state_deletes_nothing() {
    for broken in [None, Some(""), Some("quipu sync 1\nhalf a li")] {
        let fixture = in_sync(3);
        fs::remove_file(fixture.file("/n0.md")).unwrap();
        fixture.engine.delete_at(&ada(), fixture.store, &path("/n1.md")).unwrap();
        let state = fixture.folder().join(".quipu/sync");
        match broken {
            Some(text) => fs::write(state, text).unwrap(),
            None => fs::remove_dir_all(fixture.folder().join(".quipu")).unwrap(),
        }
        fixture.sync();
        fixture.assert_equal();
        assert_eq!(fixture.files().len(), 3, "what was on one side is on both");
    }
}

#[test]
fn a_wiped_folder_is_a_mass_deletion() {
    let fixture = in_sync(3);
    for number in 0..3 {
        fs::remove_file(fixture.file(&format!("/n{number}.md"))).unwrap();
    }
    let refused = fixture.sync_with(MassDeletion::Refuse).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::LimitReached);
    assert!(refused.message().contains("3 of 3 files are gone from the folder"), "{refused}");
    assert!(refused.hint().unwrap().contains("--allow-mass-deletion"));
    assert_eq!(fixture.memories().len(), 3);
    fixture.sync_with(MassDeletion::Allow).unwrap();
    assert_eq!(fixture.memories().len(), 0);
}

#[test]
fn mass_deletions_are_refused_in_both_directions() {
    let fixture = in_sync(30);
    for number in 0..16 {
        fs::remove_file(fixture.file(&format!("/n{number}.md"))).unwrap();
    }
    assert!(fixture.sync_with(MassDeletion::Refuse).is_err());
    assert_eq!(fixture.memories().len(), 30);

    let fixture = in_sync(30);
    for number in 0..16 {
        let path = path(&format!("/n{number}.md"));
        fixture.engine.delete_at(&ada(), fixture.store, &path).unwrap();
    }
    assert!(fixture.sync_with(MassDeletion::Refuse).is_err());
    assert_eq!(fixture.files().len(), 30);
    fixture.sync_with(MassDeletion::Allow).unwrap();
    assert_eq!(fixture.files().len(), 14);
}

#[test]
fn a_folder_of_another_store_is_refused() {
    let fixture = in_sync(3);
    let new = NewStore::named(Name::new("other").unwrap());
    let other = fixture.engine.create_store(fixture.workspace, &new).unwrap().id;
    let sync =
        FolderSync::new(fixture.engine.clone(), other, &fixture.folder(), MassDeletion::Allow)
            .unwrap();
    assert_eq!(*sync.lock().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(*sync.preview().unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_restored_backup_of_the_store_deletes_nothing() {
    let fixture = in_sync(4);
    fixture.write("/n9.md", "only in the newer store");
    fixture.sync();
    // The folder is synced with an older copy of the store, which lacks versions that the state
    // lists.
    write_state_1(&fixture, 1_000_000);
    fixture.engine.delete_at(&ada(), fixture.store, &path("/n9.md")).unwrap();
    fixture.put("/n0.md", "an older text");
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.start, Start::StoreWentBack);
    fixture.assert_equal();
    assert_eq!(fixture.read("/n9.md").as_deref(), Some("only in the newer store"));
    assert_eq!(fixture.read("/n0.md").as_deref(), Some("text 0\n"));
    assert_eq!(fixture.sync_with(MassDeletion::Refuse).unwrap().start, Start::Known);
}

/// Writes a state in the first format, with a sequence.
fn write_state_1(fixture: &Fixture, sequence: u64) {
    let marker = fixture.folder().join(".quipu");
    let journal = fs::read_to_string(marker.join("journal")).unwrap();
    let mut text = format!("quipu sync 1\n{} {sequence} -\n", fixture.store);
    for entry in journal.lines().filter_map(|line| line.split_once(" = ")).map(|it| it.1) {
        let (file, memory) = entry.split_once('\t').unwrap();
        let (looks, path) = file.split_once(' ').unwrap();
        let identity = looks.split(':').next().unwrap();
        let words: Vec<_> = memory.split(' ').collect();
        let [memory, version, hash, "="] = words[..] else { continue };
        text += &format!("{memory} {version} {hash} {hash} {identity} {path}\n");
    }
    fs::write(marker.join("sync"), text + "end\n").unwrap();
    fs::remove_file(marker.join("journal")).unwrap();
}

#[test]
fn the_first_state_format_is_still_read() {
    let fixture = in_sync(3);
    write_state_1(&fixture, 1);
    fs::remove_file(fixture.file("/n0.md")).unwrap();
    fixture.engine.delete_at(&ada(), fixture.store, &path("/n1.md")).unwrap();
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.start, Start::Known);
    assert_eq!(fixture.files().len(), 1);
    fixture.assert_equal();
}

#[test]
fn a_torn_journal_loses_only_its_end() {
    let fixture = in_sync(3);
    let journal = fixture.folder().join(".quipu/journal");
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, [whole.as_slice(), b"12345678 - /n0.md\n\0\0\0"].concat()).unwrap();
    fs::remove_file(fixture.file("/n1.md")).unwrap();
    assert_eq!(fixture.sync(), ["store deleted /n1.md"]);
    assert_eq!(fixture.sync(), [""; 0]);
    fs::remove_file(fixture.file("/n2.md")).unwrap();
    assert_eq!(fixture.sync(), ["store deleted /n2.md"]);
}

#[test]
fn names_in_decomposed_unicode_are_the_composed_ones() {
    let fixture = fixture();
    fixture.write("/cafe\u{301}/e\u{301}.md", "written on a Mac\n");
    fixture.put("/caf\u{e9}/\u{e9}.md", "written on a Mac\n");
    fixture.put("/caf\u{e9}/new.md", "beside it\n");
    fixture.sync();
    let names: Vec<_> = fixture.files().into_keys().collect();
    assert_eq!(names, ["/cafe\u{301}/e\u{301}.md", "/cafe\u{301}/new.md"]);
    // Changes on either side reach the same file and the same memory.
    fixture.put("/caf\u{e9}/\u{e9}.md", "changed in the store\n");
    fixture.sync();
    assert_eq!(fixture.read("/cafe\u{301}/e\u{301}.md").as_deref(), Some("changed in the store\n"));
    fixture.write("/cafe\u{301}/e\u{301}.md", "changed in the folder\n");
    fixture.sync();
    assert_eq!(fixture.text("/caf\u{e9}/\u{e9}.md").as_deref(), Some("changed in the folder\n"));
    assert_eq!(fixture.files().len(), 2);
    fs::remove_file(fixture.file("/cafe\u{301}/e\u{301}.md")).unwrap();
    assert_eq!(fixture.sync(), ["store deleted /caf\u{e9}/\u{e9}.md"]);
    fixture.engine.delete_at(&ada(), fixture.store, &path("/caf\u{e9}/new.md")).unwrap();
    fixture.sync_with(MassDeletion::Allow).unwrap();
    assert_eq!(fixture.files().len(), 0);
}

#[test]
fn the_composed_name_wins_over_the_decomposed_one() {
    let fixture = fixture();
    fixture.write("/e\u{301}.md", "decomposed\n");
    fixture.write("/\u{e9}.md", "composed\n");
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.left_out.len(), 1);
    assert_eq!(report.left_out[0].path, "/e\u{301}.md");
    assert_eq!(fixture.text("/\u{e9}.md").as_deref(), Some("composed\n"));
    assert_eq!(fixture.files().len(), 2);
}

#[test]
fn scratch_files_are_excluded() {
    let fixture = fixture();
    for name in ["/a.md~", "/#a.md#", "/4913", "/a.md.tmp", "/index.lock"] {
        fixture.write(name, "not meant to stay");
    }
    fixture.write("/Cargo.lock", "meant to stay");
    fixture.put("/b.md~", "a memory of such a name");
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!((report.actions.len(), report.left_out.len()), (1, 0), "{report:?}");
    assert_eq!(fixture.read("/b.md~"), None);
}

#[test]
fn a_left_out_file_is_reported_once() {
    let fixture = fixture();
    fixture.write("/image.png", b"\x89PNG\xff");
    std::os::unix::fs::symlink("/etc", fixture.folder().join("link")).unwrap();
    let sync = || fixture.sync_with(MassDeletion::Refuse).unwrap();
    let report = sync();
    assert_eq!((report.left_out.len(), report.repeated.len()), (2, 0));
    let report = sync();
    assert_eq!((report.left_out.len(), report.repeated.len()), (2, 2));
    // After a change it is reported again.
    fixture.write("/image.png", "a\0");
    fixture.write("/other.png", b"\x89PNG\xff");
    let report = sync();
    assert_eq!((report.left_out.len(), report.repeated.len()), (3, 1), "{report:?}");
    fs::remove_file(fixture.file("/other.png")).unwrap();
    assert_eq!(sync().left_out.len(), 2);
    fixture.write("/other.png", b"\x89PNG\xff");
    assert_eq!(sync().repeated.len(), 2);
}

#[test]
fn a_failure_is_reported_once_until_it_is_fixed() {
    let policy = StorePolicy { secrets: SecretPolicy::Reject, ..StorePolicy::default() };
    let fixture = fixture_with(policy, Limits::default());
    fixture.write("/keys.md", "key: AKIAIOSFODNN7EXAMPLQ\n");
    let sync = || fixture.sync_with(MassDeletion::Refuse).unwrap();
    let news = |report: quipu_mount::sync::Report| (report.failed.len(), report.repeated.len());
    assert_eq!(news(sync()), (1, 0));
    assert_eq!(news(sync()), (1, 1));
    fixture.write("/keys.md", "none\n");
    assert_eq!(news(sync()), (0, 0));
    fixture.write("/keys.md", "key: AKIAIOSFODNN7EXAMPLQ\n");
    assert_eq!(news(sync()), (1, 0));
}

#[test]
fn unsuitable_files_are_reported_and_left_alone() {
    let limits = Limits { content_size_bytes_max: 10, ..Limits::default() };
    let fixture = fixture_with(StorePolicy::default(), limits);
    fixture.write("/image.png", b"\x89PNG\xff");
    fixture.write("/nul.txt", "a\0b");
    fixture.write("/long.md", "12345678901");
    fixture.write("/fits.md", "1234567890");
    fs::write(fixture.folder().join(std::ffi::OsStr::from_bytes(b"\xff.md")), "x").unwrap();
    std::os::unix::fs::symlink("/etc", fixture.folder().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", fixture.folder().join("passwd.md")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.folder().join("socket")).unwrap();
    fixture.put("/link/x.md", "below");
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    let left_out: Vec<_> = report.left_out.iter().map(|left| left.path.as_str()).collect();
    let mut expected = vec![
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
    let memories: Vec<_> = fixture.memories().into_keys().collect();
    assert_eq!(memories, ["/fits.md", "/link/x.md"]);
    assert_eq!(fixture.sync(), [""; 0]);
}

#[test]
fn a_file_that_ceases_to_be_text_is_not_deleted_anywhere() {
    let fixture = in_sync(3);
    fixture.write("/n0.md", b"\xff\xfe");
    fixture.put("/n0.md", "changed in the store");
    assert_eq!(fixture.sync(), [""; 0]);
    assert_eq!(fixture.text("/n0.md").as_deref(), Some("changed in the store"));
    assert_eq!(fs::read(fixture.file("/n0.md")).unwrap(), b"\xff\xfe");
    fixture.write("/n0.md", "text again");
    assert_eq!(fixture.sync().len(), 1);
    fixture.assert_equal();
}

#[test]
fn ignored_paths_are_left_alone_on_both_sides() {
    let fixture = in_sync(3);
    fixture.write("/.gitignore", "n0.md\nbuild/\n");
    fixture.write("/build/out.md", "x");
    fixture.write("/.obsidian/app.json", "{}");
    fixture.put("/build/theirs.md", "y");
    fixture.put("/.hidden.md", "z");
    fixture.put("/n0.md", "changed in the store");
    assert_eq!(fixture.sync(), [""; 0]);
    assert_eq!(fixture.read("/n0.md").as_deref(), Some("text 0\n"));
    assert_eq!(fixture.memories().len(), 5);
    assert_eq!(fixture.read("/build/theirs.md"), None);
    fs::remove_file(fixture.file("/.gitignore")).unwrap();
    fixture.sync();
    assert_eq!(fixture.text("/build/out.md").as_deref(), Some("x"));
}

#[test]
fn refused_text_stays_in_the_folder_and_is_reported() {
    let policy = StorePolicy { secrets: SecretPolicy::Reject, ..StorePolicy::default() };
    let limits = Limits { memories_per_store_max: 2, ..Limits::default() };
    let fixture = fixture_with(policy, limits);
    fixture.write("/keys.md", "key: AKIAIOSFODNN7EXAMPLQ\n");
    for number in 0..3 {
        fixture.write(&format!("/n{number}.md"), "x");
    }
    let report = fixture.sync_with(MassDeletion::Refuse).unwrap();
    assert_eq!(report.failed.len(), 2, "{:?}", report.failed);
    assert_eq!(fixture.memories().len(), 2);
    assert_eq!(fixture.files().len(), 4);
}

#[test]
fn an_archived_store_takes_nothing_and_loses_nothing() {
    let fixture = in_sync(3);
    fixture.engine.archive_store(fixture.store).unwrap();
    fixture.write("/n0.md", "changed");
    let refused = fixture.sync_with(MassDeletion::Refuse).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::StoreArchived);
    assert_eq!(fixture.read("/n0.md").as_deref(), Some("changed"));
}

#[test]
fn scratch_files_of_a_killed_sync_are_removed_unless_they_are_the_only_copy() {
    let fixture = in_sync(3);
    let scratch = fixture.folder().join(".quipu/scratch");
    fs::write(scratch.join("known"), "text 0\n").unwrap();
    fs::write(scratch.join("unknown"), "an edit of the last moment").unwrap();
    fixture.sync();
    assert!(!scratch.join("known").exists());
    assert!(scratch.join("unknown").exists());
}

#[test]
fn files_keep_their_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = in_sync(2);
    let file = fixture.file("/n0.md");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    fixture.put("/n0.md", "changed");
    fixture.sync();
    assert_eq!(fixture.read("/n0.md").as_deref(), Some("changed"));
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
}
