//! The dates of files: `quipu import`, with and without `--file-dates`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{folder, import, numbers};
use crate::support::Quipu;

/// 2020-01-02T03:04:05Z.
const IN_2020: u64 = 1_577_934_245;
const DAY: u64 = 86_400;

fn set_modified(file: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(file).expect("the file is there");
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    file.set_modified(at).expect("the time can be set");
}

#[test]
fn dates_of_files_become_dates_of_notes_that_have_none() {
    let quipu = Quipu::with_store();
    let own = "---\ncreated: 2011-01-01\n---\nTea in 2011.\n";
    let files = [("old.md", "Old tea.\n"), ("own.md", own), ("plain.txt", "Plain tea.\n")];
    let source = folder(&quipu, "vault", &files);
    for (name, _) in files {
        set_modified(&source.join(name), IN_2020);
    }
    assert_eq!(numbers(&import(&quipu, &source, &["--file-dates"])), [3, 0, 0, 0]);
    let dated = "---\ncreated: \"2020-01-02T03:04:05Z\"\nmodified: \"2020-01-02T03:04:05Z\"\n---\nOld tea.\n";
    assert_eq!(quipu.ok(&["cat", "old.md"]), dated);
    assert_eq!(quipu.ok(&["cat", "own.md"]), own);
    assert_eq!(quipu.ok(&["cat", "plain.txt"]), "Plain tea.\n");
    let found = |filter: &str| quipu.ok(&["search", "tea", "--where", filter]);
    let of_2020 = found("modified>=2020-01-02");
    assert!(of_2020.contains("/old.md") && !of_2020.contains("/own.md"), "{of_2020}");
    let earlier = found("created<2020-01-01");
    assert!(earlier.contains("/own.md") && !earlier.contains("/old.md"), "{earlier}");
    // The files themselves are never changed.
    assert_eq!(fs::read_to_string(source.join("old.md")).expect("it is there"), "Old tea.\n");
}

#[test]
fn a_file_whose_time_alone_changed_makes_no_version() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("old.md", "Old tea.\n")]);
    let file = source.join("old.md");
    set_modified(&file, IN_2020);
    import(&quipu, &source, &["--file-dates"]);
    assert_eq!(numbers(&import(&quipu, &source, &["--file-dates"])), [0, 0, 1, 0]);
    set_modified(&file, IN_2020 + DAY);
    assert_eq!(numbers(&import(&quipu, &source, &["--file-dates"])), [0, 0, 1, 0]);
    // Without the option, stored dates are kept.
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 1, 0]);
    assert_eq!(quipu.json(&["log", "old.md"])["data"].as_array().map(Vec::len), Some(1));

    fs::write(&file, "New tea.\n").expect("it can be written");
    set_modified(&file, IN_2020 + DAY);
    assert_eq!(numbers(&import(&quipu, &source, &["--file-dates"])), [0, 1, 0, 0]);
    let dated = "---\ncreated: \"2020-01-02T03:04:05Z\"\nmodified: \"2020-01-03T03:04:05Z\"\n---\nNew tea.\n";
    assert_eq!(quipu.ok(&["cat", "old.md"]), dated);
}

/// Returns a vault with a note whose file is from 2020.
fn vault(quipu: &Quipu) -> PathBuf {
    let files = [(".obsidian/app.json", "{}"), ("old.md", "Old tea.\n")];
    let source = folder(quipu, "vault", &files);
    set_modified(&source.join("old.md"), IN_2020);
    source
}

#[test]
fn a_vault_keeps_the_dates_of_its_files() {
    let quipu = Quipu::with_store();
    let source = vault(&quipu);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 0, 0]);
    assert!(quipu.ok(&["search", "tea", "--where", "modified<2021"]).contains("/old.md"));
    assert_eq!(numbers(&import(&quipu, &source, &["--file-dates=auto"])), [0, 0, 1, 0]);
    assert_eq!(fs::read_to_string(source.join("old.md")).expect("it is there"), "Old tea.\n");
}

#[test]
fn a_vault_is_imported_byte_for_byte_if_that_is_asked_for_or_if_it_is_synced() {
    let quipu = Quipu::with_store();
    let source = vault(&quipu);
    import(&quipu, &source, &["--file-dates=never"]);
    assert_eq!(quipu.ok(&["cat", "old.md"]), "Old tea.\n");

    let quipu = Quipu::with_store();
    let source = vault(&quipu);
    quipu.ok(&["sync", source.to_str().expect("a path")]);
    fs::write(source.join("new.md"), "New tea.\n").expect("it can be written");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 1, 0]);
    assert_eq!(quipu.ok(&["cat", "new.md"]), "New tea.\n");
}

#[test]
fn the_option_takes_its_value_with_an_equals_sign_only() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "plain", &[("old.md", "Old tea.\n")]);
    let shown = source.to_str().expect("a path");
    quipu.ok(&["import", "--file-dates", shown]);
    assert!(quipu.ok(&["cat", "old.md"]).contains("modified: "));
    assert_eq!(quipu.run(&["import", "--file-dates=sometimes", shown]).code, 2);
}

#[test]
fn without_the_option_other_folders_are_imported_byte_for_byte() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("old.md", "Old tea.\n")]);
    set_modified(&source.join("old.md"), IN_2020);
    import(&quipu, &source, &[]);
    assert_eq!(quipu.ok(&["cat", "old.md"]), "Old tea.\n");
    // A stored text gets dates only if it may be overwritten.
    assert_eq!(numbers(&import(&quipu, &source, &["--file-dates"])), [0, 0, 1, 0]);
    let report = import(&quipu, &source, &["--file-dates", "--overwrite"]);
    assert_eq!(numbers(&report), [0, 1, 0, 0]);
    assert!(quipu.ok(&["cat", "old.md"]).contains("modified: \"2020-01-02T03:04:05Z\""));
}
