//! Several processes that make and use vectors of the same stores.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;

use quipu_testkit::encoders::ConceptEncoder;
use quipu_vectors::quantized::Quantized;
use serde_json::{Value, json};

use super::endpoint::{Behavior, Endpoint};
use super::{by_command, by_rest};
use crate::mcp::Host;
use crate::server::Server;
use crate::support::{Quipu, run};

/// More than an encoder is given in ten calls.
const NOTES_COUNT: usize = 330;

const QUESTIONS: [&str; 3] = ["vehicle at the beach", "clinic payment", "hound"];

/// Returns a home with many notes, none of which has vectors.
fn with_many() -> (Quipu, Endpoint) {
    let (quipu, endpoint) = (Quipu::with_store(), Endpoint::new());
    let words = ["car", "physician", "glad", "salary", "home", "puppy", "launch", "sea"];
    let folder = quipu.home.path().join("notes");
    fs::create_dir(&folder).expect("a folder");
    for number in 0..NOTES_COUNT {
        let word = |step: usize| words[(number / step) % words.len()];
        let text =
            format!("note {number} about the {} and the {} of {}", word(1), word(3), word(8));
        fs::write(folder.join(format!("{number}.md")), text).expect("a note");
    }
    quipu.ok(&["import", folder.to_str().expect("UTF-8")]);
    endpoint.is_used_by(&quipu);
    (quipu, endpoint)
}

fn embedding(quipu: &Quipu) -> Child {
    let mut command = quipu.command(&["model", "embed"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

/// Returns the hits and scores of some searches by vectors.
fn scores(quipu: &Quipu) -> Vec<Value> {
    let search = |question: &&str| by_command(quipu, &["--by", "vector", "-n", "400", question]);
    QUESTIONS.iter().map(search).collect()
}

/// Asserts that the vectors are complete and those that a new index has.
fn check_like_new(quipu: &Quipu) {
    quipu.ok(&["model", "embed"]);
    quipu.ok(&["check"]);
    let found = scores(quipu);
    for answer in &found {
        let all = json!({"embedded": NOTES_COUNT, "memories": NOTES_COUNT});
        assert_eq!(answer["vectors"], all, "{}", answer["notice"]);
    }
    quipu.ok(&["check", "--rebuild"]);
    assert_eq!(quipu.json(&["model", "embed"])["embedded"], NOTES_COUNT);
    assert_eq!(found, scores(quipu));
}

#[test]
fn a_server_a_host_and_a_command_share_the_work() {
    let (quipu, endpoint) = with_many();
    endpoint.behave(Behavior::Holds);
    let (server, host) = (Server::start(&quipu), Host::new(&quipu, &[]));
    endpoint.wait_for_requests(1);
    let mut command = embedding(&quipu);
    endpoint.behave(Behavior::Works);
    assert!(command.wait().expect("it ends").success());
    let mut texts = endpoint.texts();
    texts.retain(|text| text.contains("about the"));
    let given = texts.len();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!((texts.len(), given), (NOTES_COUNT, NOTES_COUNT), "each is encoded once");
    drop((server, host));
    check_like_new(&quipu);
}

#[test]
fn nothing_is_lost_by_killing_who_embeds() {
    let (quipu, endpoint) = with_many();
    for round in 0..16 {
        quipu.ok(&["check", "--rebuild"]);
        // The first call asks for the length of the vectors, so that one is killed among its notes, and the
        // next one when it has begun.
        for calls in [2 + round % 5, 1] {
            let known = endpoint.requests_count();
            let mut child = embedding(&quipu);
            endpoint.wait_for_requests(known + calls);
            for _ in 0..round * 50 {
                thread::yield_now();
            }
            child.kill().expect("it runs");
            child.wait().expect("it ends");
            let words = quipu.json(&["search", "--by", "text", "physician"]);
            assert!(words["total"].as_u64() > Some(1), "{words}");
        }
        let some = by_command(&quipu, &["physician"]);
        assert_eq!(some["vectors"]["memories"], NOTES_COUNT, "{some}");
        quipu.ok(&["check"]);
        if round % 4 == 3 {
            check_like_new(&quipu);
        }
    }
    check_like_new(&quipu);
}

#[test]
fn a_server_that_is_killed_while_it_embeds_leaves_the_rest_to_others() {
    let (quipu, endpoint) = with_many();
    for round in 1..4 {
        let known = endpoint.requests_count();
        let mut server = Server::start(&quipu);
        endpoint.wait_for_requests(known + 1 + round);
        server.child.kill().expect("it runs");
        server.child.wait().expect("it ends");
    }
    check_like_new(&quipu);
}

#[test]
fn another_model_replaces_the_vectors_while_a_server_makes_them() {
    let (quipu, endpoint) = with_many();
    endpoint.behave(Behavior::Holds);
    let server = Server::start(&quipu);
    endpoint.wait_for_requests(1);
    endpoint.is_used_by_as(&quipu, "short");
    let mut other = embedding(&quipu);
    endpoint.behave(Behavior::Works);
    assert!(other.wait().expect("it ends").success());
    // The server has the old model until it is started again, and says why it does not use it.
    let by_words = by_rest(&server, "query=physician");
    assert_eq!(by_words["search_type"], "text", "{by_words}");
    assert_eq!(
        by_words["notice"],
        "the stored embeddings come from another model; showing keyword results"
    );
    assert!(by_words["total"].as_u64() > Some(1), "{by_words}");
    quipu.put("/late.md", "the surgeon is late");
    let late = by_rest(&server, "query=late");
    assert_eq!(late["results"][0]["path"], "/late.md", "{late}");
    quipu.ok(&["rm", "/late.md"]);
    check_like_new(&quipu);
    drop(server);
    let server = Server::start(&quipu);
    assert_eq!(by_rest(&server, "query=physician")["search_type"], "hybrid");
}

#[test]
fn a_server_whose_model_gets_another_size_is_not_compared_with_old_vectors() {
    let (quipu, endpoint) = with_many();
    quipu.ok(&["model", "embed"]);
    endpoint.behave(Behavior::Truncates(12));
    let found = by_command(&quipu, &["physician"]);
    assert_eq!(found["search_type"], "text", "{found}");
    assert_eq!(
        found["notice"],
        "the stored embeddings come from another model; showing keyword results"
    );
    check_like_new(&quipu);
}

const SECRET: &str = "the surgeon has the money at the beach house with the puppy";

/// Returns the files that have the vector of the secret.
fn files_with_vector(quipu: &Quipu) -> Vec<String> {
    let vector = ConceptEncoder::vector(&format!("secret\n{SECRET}"));
    let vector = Quantized::new(&vector).expect("a vector");
    let wanted: Vec<_> = vector.values.iter().map(|value| value.cast_unsigned()).collect();
    let mut names = Vec::new();
    for entry in fs::read_dir(quipu.data()).expect("a directory") {
        let path = entry.expect("an entry").path();
        if !path.is_file() {
            continue;
        }
        let bytes = fs::read(&path).expect("a file");
        if bytes.windows(wanted.len()).any(|window| window == wanted) {
            names.push(path.file_name().expect("a name").to_string_lossy().into_owned());
        }
    }
    names
}

#[test]
fn a_process_that_embeds_does_not_bring_back_what_another_redacts() {
    for is_redacted in [false, true] {
        let (quipu, endpoint) = (Quipu::with_store(), Endpoint::new());
        endpoint.is_used_by(&quipu);
        quipu.put("/tea.md", "green tea at home");
        quipu.ok(&["model", "embed"]);
        let version = quipu.put("/secret.md", SECRET);
        quipu.ok(&["search", "--by", "text", "surgeon"]);
        endpoint.behave(Behavior::Holds);
        let mut child = embedding(&quipu);
        endpoint.wait_for_requests(endpoint.requests_count() + 1);
        if !endpoint.texts().iter().any(|text| text.contains(SECRET)) {
            // That was the question for the length of the vectors.
            endpoint.behave(Behavior::Works);
            endpoint.wait_for_text(SECRET);
        }
        if is_redacted {
            let replaced = quipu.run_with(&["put", "/secret.md"], b"clean");
            assert_eq!(replaced.code, 0, "{replaced:?}");
            quipu.ok(&["redact", &version, "--yes"]);
            assert_eq!(files_with_vector(&quipu), Vec::<String>::new());
        }
        endpoint.behave(Behavior::Works);
        assert!(child.wait().expect("it ends").success());
        assert_eq!(files_with_vector(&quipu).is_empty(), is_redacted);
        quipu.ok(&["check"]);
        // It has not indexed what was written after it began.
        quipu.ok(&["model", "embed"]);
        assert_eq!(files_with_vector(&quipu).is_empty(), is_redacted);
        let found = by_command(&quipu, &["--by", "vector", "surgeon"]);
        assert_eq!(found["vectors"], json!({"embedded": 2, "memories": 2}), "{found}");
    }
}

/// A server embeds while versions are redacted one after the other.
#[test]
fn redactions_beside_a_server_that_embeds_leave_no_vector() {
    let (quipu, endpoint) = with_many();
    let server = Server::start(&quipu);
    for _ in 0..6 {
        endpoint.forget_texts();
        let version = quipu.put("/secret.md", SECRET);
        endpoint.wait_for_text(SECRET);
        quipu.put("/secret.md", "clean");
        quipu.ok(&["redact", &version, "--yes"]);
        assert_eq!(files_with_vector(&quipu), Vec::<String>::new());
        quipu.ok(&["rm", "/secret.md"]);
    }
    drop(server);
    check_like_new(&quipu);
    assert_eq!(files_with_vector(&quipu), Vec::<String>::new());
}

#[test]
fn a_setting_of_no_model_embeds_nothing() {
    let (quipu, endpoint) = with_many();
    let mut command = quipu.command(&["model", "embed"]);
    command.env("QUIPU_VECTORS_MODEL", "none");
    let ran = run(command, b"");
    assert!(ran.code != 0 && ran.err.contains("needs an embedding model"), "{ran:?}");
    assert_eq!(endpoint.requests_count(), 0);
}
