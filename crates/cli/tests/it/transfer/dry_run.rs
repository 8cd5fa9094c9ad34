//! `quipu import --dry-run` predicts what the import does.

use std::fs;

use super::{folder, import, numbers, shown};
use crate::support::Quipu;

/// A token in GitHub's format, which stores treat as a credential.
fn credential() -> String {
    format!("token: ghp_{}\n", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
}

#[test]
fn a_dry_run_changes_nothing() {
    let quipu = Quipu::empty();
    let source = folder(&quipu, "vault", &[("a.md", "1"), ("b.md", "2")]);
    let report = import(&quipu, &source, &["--dry-run"]);
    assert_eq!((numbers(&report), &report["store"]), ([2, 0, 0, 0], &"vault".into()));
    assert!(!quipu.data().exists());

    import(&quipu, &source, &[]);
    fs::write(source.join("a.md"), "new").expect("it can be written");
    assert_eq!(numbers(&import(&quipu, &source, &["--dry-run"])), [0, 1, 1, 0]);
    assert_eq!(quipu.ok(&["cat", "a.md"]), "1");
    assert_eq!(numbers(&import(&quipu, &source, &["--dry-run", "-s", "other"])), [2, 0, 0, 0]);
    assert_eq!(quipu.json(&["store", "list"])["data"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_empty_data_directory_is_like_none() {
    let quipu = Quipu::empty();
    fs::create_dir(quipu.data()).expect("a folder can be made");
    let source = folder(&quipu, "vault", &[("a.md", "1")]);
    assert_eq!(numbers(&import(&quipu, &source, &["--dry-run"])), [1, 0, 0, 0]);
    assert_eq!(fs::read_dir(quipu.data()).expect("it is there").count(), 0);
}

#[test]
fn an_archived_store_refuses_a_dry_run_too() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("a.md", "1")]);
    quipu.ok(&["store", "archive", "notes"]);
    let rehearsed = quipu.run(&["import", shown(&source), "--store", "notes", "--dry-run"]);
    let real = quipu.run(&["import", shown(&source), "--store", "notes"]);
    assert_eq!((rehearsed.code, real.code), (5, 5), "{rehearsed:?} {real:?}");
}

#[test]
fn a_dry_run_skips_what_the_import_skips() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "a memory");
    quipu.put("/b/c.md", "below");
    let secret = credential();
    let files = [("a/x.md", "1"), ("b/d.md", "2"), ("secret.md", secret.as_str())];
    let source = folder(&quipu, "vault", &files);
    fs::write(source.join("b/c.md"), "below").expect("it can be written");
    let second = folder(&quipu, "second", &[("b", "a file")]);
    quipu.ok(&["store", "update", "notes", "--secrets", "reject"]);
    for (source, expected) in [(&source, [1, 0, 1, 2]), (&second, [0, 0, 0, 1])] {
        let rehearsed = import(&quipu, source, &["--dry-run"]);
        let real = import(&quipu, source, &[]);
        assert_eq!((numbers(&rehearsed), numbers(&real)), (expected, expected), "{rehearsed}");
    }
}

#[test]
fn a_dry_run_knows_the_limits() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("a.md", "1"), ("b.md", "2"), ("c.md", "3")]);
    for (variable, limit) in
        [("QUIPU_LIMITS_MEMORIES_PER_STORE_MAX", "2"), ("QUIPU_LIMITS_STORE_SIZE_BYTES_MAX", "2")]
    {
        for store in ["notes", "new"] {
            let mut command =
                quipu.command(&["--json", "import", shown(&source), "--dry-run", "-s", store]);
            command.env(variable, limit);
            let ran = crate::support::run(command, b"");
            let report = serde_json::from_str(&ran.out).expect("the output is JSON");
            assert_eq!(numbers(&report), [2, 0, 0, 1], "{ran:?}");
        }
    }
}

#[test]
fn redaction_is_reported() {
    let quipu = Quipu::with_store();
    let secret = credential();
    let source = folder(&quipu, "vault", &[("secret.md", secret.as_str())]);
    quipu.ok(&["store", "update", "notes", "--secrets", "redact"]);
    let ran = quipu.run(&["import", shown(&source), "--dry-run"]);
    assert!(ran.err.contains("which would not be stored"), "{ran:?}");
    let ran = quipu.run(&["import", shown(&source)]);
    assert!(ran.err.contains("held a credential, which was not stored"), "{ran:?}");
    assert_eq!(numbers(&import(&quipu, &source, &["--dry-run"])), [0, 0, 1, 0]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 1, 0]);
}

#[test]
fn a_dry_run_counts_what_is_left_of_a_redacted_text() {
    let quipu = Quipu::with_store();
    let secret = credential();
    let source = folder(&quipu, "vault", &[("secret.md", secret.as_str())]);
    quipu.ok(&["store", "update", "notes", "--secrets", "redact"]);
    for more in [["--dry-run"].as_slice(), &[]] {
        let arguments = [["--json", "import", shown(&source)].as_slice(), more].concat();
        let mut command = quipu.command(&arguments);
        command.env("QUIPU_LIMITS_STORE_SIZE_BYTES_MAX", (secret.len() - 1).to_string());
        let ran = crate::support::run(command, b"");
        let report = serde_json::from_str(&ran.out).expect("the output is JSON");
        assert_eq!(numbers(&report), [1, 0, 0, 0], "{ran:?}");
    }
}
