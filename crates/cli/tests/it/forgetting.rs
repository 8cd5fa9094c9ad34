//! `quipu redact` by content and provenance, `quipu receipts`, and text that comes back.

use std::fs;
use std::path::Path;

use crate::support::Quipu;

const SECRET: &str = "sesame-4711-canary";

/// Returns the files below a directory that hold the secret.
fn files_with_secret(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("it is listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with_secret(&path));
        } else {
            let bytes = fs::read(&path).expect("it is read");
            if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Returns a home with two stores that hold the secret.
fn leaked() -> Quipu {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "other"]);
    quipu.ok(&["store", "default", "notes"]);
    quipu.put("/old.md", &format!("the word: {SECRET}\n"));
    quipu.put("/old.md", "clean\n");
    quipu.put("/live.md", &format!("---\ntitle: x\n---\nopen {SECRET}\n"));
    quipu.put(&format!("/{SECRET}.md"), "named\n");
    let other = quipu.run_with(&["put", "/copy.md", "--store", "other"], SECRET.as_bytes());
    assert_eq!(other.code, 0, "{other:?}");
    quipu.ok(&["search", "sesame"]);
    quipu
}

#[test]
fn a_leaked_text_is_found_everywhere_and_erased_with_a_receipt() {
    let quipu = leaked();
    assert!(!files_with_secret(&quipu.data()).is_empty());
    let selected = ["redact", "--all", "--matching", SECRET, "--and-heads"];
    let text = quipu.ok(&[&selected[..], &["--dry-run"]].concat());
    assert!(text.contains("store notes:") && text.contains("live: /live.md edited"), "{text}");
    let plan = quipu.json(&[&selected[..], &["--dry-run"]].concat());
    assert_eq!((&plan["versions_count"], &plan["heads_count"]), (&4.into(), &3.into()));
    let digest = plan["digest"].as_str().expect("a digest");
    let run = [&selected[..], &["--yes", "--reason", "a leak", "--expect"]].concat();
    quipu.put("/again.md", SECRET);
    assert_eq!(quipu.run(&[&run[..], &[digest.get(..8).expect("it is long")]].concat()).code, 4);
    assert!(!files_with_secret(&quipu.data()).is_empty());
    let plan = quipu.json(&[&selected[..], &["--dry-run"]].concat());
    let digest = plan["digest"].as_str().expect("a digest");
    let receipt = quipu.json(&[&run[..], &[digest]].concat());
    assert_eq!(receipt["memory_version_ids"].as_array().map(Vec::len), Some(5));
    assert_eq!(receipt["proof"]["hits_left"], 0);
    assert_eq!(files_with_secret(&quipu.data()), Vec::<String>::new());
    assert_eq!(quipu.ok(&["cat", "/live.md"]), "---\ntitle: x\n---\nopen [redacted]\n");
    assert_eq!(quipu.ok(&["cat", "/redacted.md"]), "named\n");
    quipu.ok(&["check"]);

    let id = receipt["id"].as_str().expect("an id");
    assert_eq!(quipu.json(&["receipts"])["data"][0], receipt);
    assert_eq!(quipu.json(&["receipts", id]), receipt);
    let shown = quipu.ok(&["receipts", id]);
    for part in ["Reason   a leak", "Scanned  quipu.db", "Scanned  index.db", "Hits     0"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(quipu.ok(&["receipts"]).starts_with(id));
    let absent = format!("rcpt_01{}", "1".repeat(22));
    assert_eq!(quipu.run(&["receipts", &absent]).code, 3);
}

#[test]
fn live_memories_are_all_named_and_nothing_is_changed() {
    let quipu = leaked();
    let ran = quipu.run(&["redact", "--all", "--matching", SECRET, "--yes"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    for part in ["/live.md", "/copy.md", "--and-heads"] {
        assert!(ran.err.contains(part), "{ran:?}");
    }
    assert!(quipu.ok(&["cat", "/live.md"]).contains(SECRET));
    let unconfirmed = quipu.run(&["redact", "--matching", SECRET, "--and-heads"]);
    assert_eq!(unconfirmed.code, 2, "{unconfirmed:?}");
    assert!(unconfirmed.err.contains("Digest: ") && unconfirmed.err.contains("`--yes` confirms"));
}

#[test]
fn bad_selections_are_refused() {
    let quipu = leaked();
    for (arguments, code) in [
        (&["redact", "--yes"][..], 2),
        (&["redact", "--matching", "", "--yes"], 2),
        (&["redact", "--regex", "x*", "--yes"], 2),
        (&["redact", "--regex", "(", "--yes"], 2),
        (&["redact", "--regex", "a", "--matching", "b", "--yes"], 2),
        (&["redact", "--matching", "b", "--since", "whenever", "--yes"], 2),
        (&["redact", "--since", "2d", "--yes"], 2),
        (&["redact", "--all", "--store", "notes", "--matching", "b", "--yes"], 2),
        (&["redact", "--session", "nobody at all", "--yes"], 3),
        (&["redact", "--path", "/nowhere", "--yes"], 3),
        (&["redact", "--matching", "b", "--store", "absent", "--yes"], 3),
        (&["redact", "--matching", "b", "--expect", "12", "--yes"], 2),
    ] {
        let ran = quipu.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
    }
    assert_eq!(quipu.json(&["receipts"])["data"], serde_json::json!([]));
}

#[test]
fn stores_authors_and_paths_select_too() {
    let quipu = leaked();
    let text = format!("{SECRET}\n");
    let one = ["redact", "--matching", "-", "--store", "notes", "--and-heads", "--yes", "--json"];
    let ran = quipu.run_with(&one, text.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("holds the text, and is not redacted"), "{ran:?}");
    assert!(quipu.ok(&["cat", "/copy.md", "--store", "other"]).contains(SECRET));
    let by_ada = ["redact", "--actor", "ada", "--store", "other", "--and-heads", "--yes"];
    assert!(quipu.ok(&by_ada).contains("was deleted"));
    assert_eq!(files_with_secret(&quipu.data()), Vec::<String>::new());
    quipu.put("/people/ada.md", "born in 1815");
    let by_path = ["redact", "--path", "/people", "--and-heads", "--yes"];
    assert!(quipu.ok(&by_path).contains("Redacted 1 version"));
    let number = ["redact", "--regex", "[0-9]{4}", "--and-heads", "--dry-run"];
    assert!(quipu.ok(&number).contains("0 versions"));
}

#[test]
fn backups_and_exports_are_named() {
    let quipu = leaked();
    let backup = quipu.home.path().join("backup.db");
    let folder = quipu.home.path().join("folder");
    quipu.ok(&["backup", backup.to_str().expect("UTF-8")]);
    quipu.ok(&["export", folder.to_str().expect("UTF-8")]);
    let plan = quipu.ok(&["redact", "--matching", SECRET, "--dry-run"]);
    assert!(plan.contains("out of reach: backup of ") && plan.contains("backup.db"), "{plan}");
    assert!(plan.contains("out of reach: export of ") && plan.contains("folder"), "{plan}");
    let receipt = quipu.json(&["redact", "--matching", SECRET, "--and-heads", "--yes"]);
    assert_eq!(receipt["unreachable_count"], 2);
    assert!(!receipt.to_string().contains(SECRET));
}

#[test]
fn a_text_that_comes_back_is_pointed_out_or_refused() {
    let quipu = leaked();
    quipu.ok(&["redact", "--all", "--matching", SECRET, "--and-heads", "--yes"]);
    let put = |path: &str| quipu.run_with(&["put", path], format!("a\n{SECRET}").as_bytes());
    let warned = put("/back.md");
    assert_eq!(warned.code, 0);
    assert!(warned.err.contains("line 2 brings back text that was redacted"), "{warned:?}");
    let folder = quipu.home.path().join("import");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("warned.md"), SECRET).expect("a file");
    let imported = quipu.run(&["import", folder.to_str().expect("UTF-8")]);
    assert!(imported.err.contains("`/warned.md` brings back text"), "{imported:?}");
    fs::remove_file(folder.join("warned.md")).expect("it is removed");
    quipu.ok(&["store", "update", "notes", "--forgotten", "refuse"]);
    assert!(quipu.ok(&["store", "show", "notes"]).contains("Forgotten:   refuse"));
    let refused = put("/refused.md");
    assert_eq!(refused.code, 5, "{refused:?}");
    fs::write(folder.join("leak.md"), SECRET).expect("a file");
    let imported = quipu.run(&["import", folder.to_str().expect("UTF-8")]);
    assert!(imported.out.contains("redacted from this store"), "{imported:?}");
    assert_eq!(quipu.run(&["cat", "/leak.md"]).code, 3);
    fs::remove_file(folder.join("leak.md")).expect("it is removed");
    fs::write(folder.join("fine.md"), "fine").expect("a file");
    quipu.ok(&["import", folder.to_str().expect("UTF-8")]);
    quipu.ok(&["sync", folder.to_str().expect("UTF-8"), "--store", "notes"]);
    fs::write(folder.join("synced.md"), SECRET).expect("a file");
    let synced = quipu.run(&["sync", folder.to_str().expect("UTF-8"), "--store", "notes"]);
    let said = synced.out.clone() + &synced.err;
    assert!(said.contains("redacted from this store"), "{synced:?}");
    assert_eq!(quipu.run(&["cat", "/synced.md"]).code, 3);
}
