//! Models and servers that do not work cost vectors, never a search.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};

use super::endpoint::{Behavior, Endpoint};
use super::{NOTES, by_command, by_rest, embedded, with_notes};
use crate::model_fixture::{write_json, write_table};
use crate::server::{KEY, Server};
use crate::support::{Quipu, Ran};

/// What servers do wrong, and what is said about it.
const WRONGS: [(Behavior, &str); 10] = [
    (Behavior::Refuses(500), "it answered 500"),
    (Behavior::Refuses(429), "it answered 429, too many requests"),
    (Behavior::Refuses(401), "it refused the key"),
    (Behavior::Refuses(404), "check the address and the model"),
    (Behavior::Refuses(307), "it answered 307, a redirect"),
    (Behavior::Says("<html>"), "its response is not a list of embeddings"),
    (
        Behavior::Says(r#"{"data":[{"index":0,"embedding":[NaN]}]}"#),
        "its response is not a list of embeddings",
    ),
    (Behavior::Says(r#"{"data":[{"index":0,"embedding":[1e39,1]}]}"#), "NaN or infinity"),
    (Behavior::Closes, "the endpoint failed"),
    (Behavior::Forgets, "it returned 0 embeddings for 1 text"),
];

/// Asserts that a search goes on by words, and says why, once.
#[track_caller]
fn check_by_words(quipu: &Quipu, reason: &str) {
    let ran = quipu.run(&["search", "tea"]);
    assert!(ran.code == 0 && ran.out.starts_with("/tea.md"), "{ran:?}");
    assert_eq!(ran.err.matches(reason).count(), 1, "{reason}: {ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
}

/// Asserts that a command fails, with these words and this hint.
#[track_caller]
fn check_refused(ran: &Ran, reason: &str, hint: &str) {
    assert!([1, 7].contains(&ran.code), "{ran:?}");
    assert!(ran.err.contains(reason) && ran.err.contains(hint), "{reason}: {ran:?}");
}

#[test]
fn a_server_that_does_not_work_leaves_the_search_by_words() {
    let (quipu, endpoint) = embedded();
    quipu.put("/new.md", "A puppy came.");
    for (wrong, reason) in WRONGS {
        endpoint.behave(wrong);
        check_by_words(&quipu, reason);
        let checked = quipu.run(&["model", "check"]);
        check_refused(&checked, reason, "check that the server is running");
        assert!(checked.err.contains(&endpoint.url), "{checked:?}");
        check_refused(&quipu.run(&["model", "embed"]), reason, "`quipu model check`");
    }
    endpoint.behave(Behavior::Works);
    assert_eq!(quipu.json(&["model", "embed"])["embedded"], 1);
    assert_eq!(by_command(&quipu, &["hound"])["results"][0]["path"], "/new.md");
}

#[test]
fn a_server_that_hangs_or_is_gone_leaves_the_search_by_words() {
    let (quipu, endpoint) = embedded();
    endpoint.behave(Behavior::Hangs);
    check_by_words(&quipu, "it has not answered within 300 ms");
    check_refused(&quipu.run(&["model", "check"]), "timeout", "check that the server is running");
    let gone = "[vectors]\nendpoint = 'http://127.0.0.1:9/v1'\nendpoint_model = 'x'\n";
    fs::write(quipu.data().join("quipu.toml"), gone).expect("it is written");
    check_by_words(&quipu, "refused");
    check_refused(
        &quipu.run(&["model", "check"]),
        "http://127.0.0.1:9/v1",
        "check that the server is running",
    );
    check_refused(&quipu.run(&["model", "embed"]), "refused", "`quipu model check`");
}

#[test]
fn an_answer_to_a_caller_does_not_say_where_the_server_is() {
    let (quipu, endpoint) = embedded();
    let server = Server::start(&quipu);
    for (wrong, reason) in WRONGS {
        endpoint.behave(wrong);
        let found = by_rest(&server, "query=tea");
        let notice = found["notice"].as_str().expect("a reason").to_owned();
        assert_eq!(
            (&found["results"][0]["path"], &found["search_type"]),
            (&json!("/tea.md"), &json!("text"))
        );
        assert!(
            notice.contains("semantic search is unavailable") && !notice.contains("127.0.0.1"),
            "{notice}"
        );
        // The first failure is the one that is said for a while.
        assert!(notice.contains(WRONGS[0].1) || notice.contains(reason), "{notice}");
    }
}

#[test]
fn a_question_that_a_server_rejects_costs_no_other_caller_the_vectors() {
    for status in [413, 500] {
        let (quipu, endpoint) = embedded();
        let server = Server::start(&quipu);
        endpoint.behave(Behavior::RefusesText("too long for it", status));
        let rejected = by_rest(&server, "query=too%20long%20for%20it");
        assert_eq!(rejected["search_type"], "text", "{rejected}");
        assert_eq!(by_rest(&server, "query=vehicle")["search_type"], "hybrid", "{status}");
    }
}

#[test]
fn a_server_logs_once_that_its_model_fails() {
    let (quipu, endpoint) = (with_notes(), Endpoint::new());
    endpoint.is_used_by(&quipu);
    endpoint.behave(Behavior::Refuses(500));
    let log = quipu.home.path().join("log");
    let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("QUIPU_ADMIN_KEY", KEY);
    let server = Server::spawn_with(command, File::create(&log).expect("a file").into());
    endpoint.wait_for_requests(3);
    assert_eq!(by_rest(&server, "query=tea")["results"][0]["path"], "/tea.md");
    let mut text = String::new();
    File::open(&log).expect("a file").read_to_string(&mut text).expect("text");
    assert_eq!(text.matches("the model fails").count(), 1, "{text}");
    assert!(text.contains("it answered 500") && text.contains(&endpoint.url), "{text}");
    // It recovers without being told.
    endpoint.behave(Behavior::Works);
    let all = json!({"embedded": 4, "memories": 4});
    let mut answers = (0..1_000_000).map(|_| by_rest(&server, "query=vehicle"));
    let found = answers.find(|answer| answer["vectors"] == all).expect("it recovers");
    assert_eq!(found["results"][0]["path"], "/car.md");
}

#[test]
fn texts_that_a_server_rejects_keep_no_others_from_their_vectors() {
    let (quipu, endpoint) = (Quipu::with_store(), Endpoint::new());
    endpoint.is_used_by(&quipu);
    for (number, (path, text, _)) in NOTES.into_iter().enumerate() {
        quipu.put(&format!("/long-{number}.md"), "a text that is too long for it");
        quipu.put(path, text);
    }
    endpoint.behave(Behavior::RefusesText("too long for it", 413));
    let ran = quipu.run(&["--json", "model", "embed"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("note: the model rejected 4 memories"), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(report, json!({"embedded": 4, "rejected": 4, "memories": 8}));
    for (path, _, question) in NOTES {
        let found = by_command(&quipu, &[question]);
        assert_eq!(found["results"][0]["path"], path, "{found}");
        assert_eq!(found["vectors"], json!({"embedded": 4, "memories": 8}));
    }
    let by_words = quipu.json(&["search", "--by", "text", "too long"]);
    assert_eq!(by_words["total"], 4, "{by_words}");
    // It is asked again for what it has rejected, as it may have been set up to take more.
    endpoint.behave(Behavior::Works);
    let again = quipu.json(&["model", "embed"]);
    assert_eq!(again, json!({"embedded": 4, "rejected": 0, "memories": 8}));
}

#[test]
fn a_server_goes_on_after_texts_that_its_model_rejects() {
    let (quipu, endpoint) = (with_notes(), Endpoint::new());
    endpoint.is_used_by(&quipu);
    for number in 0..20 {
        quipu.put(&format!("/long-{number}.md"), "a text that is too long for it");
    }
    endpoint.behave(Behavior::RefusesText("too long for it", 413));
    let server = Server::start(&quipu);
    let wanted = json!({"embedded": 4, "memories": 24});
    let mut answers = (0..1_000_000).map(|_| by_rest(&server, "query=vehicle"));
    assert!(answers.any(|answer| answer["vectors"] == wanted));
    // A back-off after each of them would take longer than any test.
    quipu.put("/new.md", "A puppy came.");
    let wanted = json!({"embedded": 5, "memories": 25});
    let mut answers = (0..1_000_000).map(|_| by_rest(&server, "query=vehicle"));
    assert!(answers.any(|answer| answer["vectors"] == wanted));
}

#[test]
fn a_server_that_changes_the_length_of_its_vectors_mixes_nothing() {
    let (quipu, endpoint) = embedded();
    let server = Server::start(&quipu);
    assert_eq!(by_rest(&server, "query=vehicle")["search_type"], "hybrid");
    endpoint.behave(Behavior::Truncates(8));
    let changed = by_rest(&server, "query=hound");
    assert_eq!(changed["search_type"], "text", "{changed}");
    assert!(
        changed["notice"].as_str().is_some_and(|it| it.contains("length 8 after 32")),
        "{changed}"
    );
    quipu.ok(&["model", "embed"]);
    let other = by_rest(&server, "query=vehicle");
    assert_eq!(other["search_type"], "text", "{other}");
    drop(server);
    assert_eq!(by_command(&quipu, &["vehicle"])["results"][0]["path"], "/car.md");
}

/// Breaks an installed model.
fn broken(break_it: impl Fn(&Path)) -> Quipu {
    let (quipu, from) = (with_notes(), tempfile::tempdir().expect("a directory"));
    write_table(from.path());
    quipu.ok(&["model", "install", from.path().to_str().expect("UTF-8"), "--name", "tiny"]);
    quipu.ok(&["model", "use", "tiny"]);
    quipu.ok(&["model", "embed"]);
    break_it(&quipu.data().join("models/tiny"));
    quipu
}

fn changed_manifest(directory: &Path, change: impl Fn(&mut Value)) {
    let file = directory.join("manifest.json");
    let mut manifest = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    change(&mut manifest);
    write_json(directory, "manifest.json", &manifest);
}

fn overwritten(file: &Path, place: usize, bytes: &[u8]) {
    let mut all = fs::read(file).expect("a file");
    all[place..place + bytes.len()].copy_from_slice(bytes);
    fs::write(file, all).expect("it is written");
}

/// What is done to an installed model, and what is said about it.
type Break<'b> = (&'b dyn Fn(&Path), &'b str);

#[test]
fn a_broken_model_leaves_the_search_by_words_and_the_check_says_what_to_do() {
    let weights = "model.safetensors";
    let breaks: [Break<'_>; 8] = [
        (&|it| drop(fs::remove_file(it.join(weights))), "cannot be read"),
        (&|it| drop(fs::remove_file(it.join("tokenizer.json"))), "cannot be read"),
        (&|it| drop(fs::write(it.join(weights), b"short")), "has changed since it was installed"),
        (&|it| drop(fs::write(it.join("manifest.json"), b"{")), "`manifest.json`"),
        (&|it| drop(fs::remove_file(it.join("manifest.json"))), "has no `manifest.json`"),
        (&|it| overwritten(&it.join(weights), 0, &[255; 8]), ""),
        (&|it| overwritten(&it.join("tokenizer.json"), 0, b"["), ""),
        (&|it| changed_manifest(it, |manifest| manifest["dimensions"] = json!(3)), ""),
    ];
    for (break_it, reason) in breaks {
        let quipu = broken(break_it);
        check_by_words(&quipu, reason_of(reason));
        let checked = quipu.run(&["model", "check"]);
        check_refused(&checked, reason, "remove the model and install it again");
        assert_eq!(checked.err.matches("hint:").count(), 1, "{checked:?}");
        quipu.put("/new.md", "car wheel");
        let embedded = quipu.run(&["model", "embed"]);
        assert_ne!(embedded.code, 0, "{embedded:?}");
        quipu.ok(&["check"]);
        quipu.ok(&["model", "use", "none"]);
        quipu.ok(&["model", "remove", "tiny"]);
        assert_eq!(quipu.run(&["search", "tea"]).err, "");
    }
}

/// A model that is known to be broken is not used from the start; another one fails with its first text.
fn reason_of(reason: &str) -> &str {
    if reason.is_empty() { "semantic search is unavailable" } else { reason }
}
