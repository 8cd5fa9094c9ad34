//! Search by meaning at every door of the real binary.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]

#[path = "meaning/endpoint.rs"]
pub(crate) mod endpoint;
#[path = "meaning/failing.rs"]
mod failing;
#[path = "meaning/processes.rs"]
mod processes;
#[path = "meaning/who.rs"]
mod who;

use serde_json::{Value, json};

use crate::mcp::Host;
use crate::model_fixture::write_table;
use crate::server::{KEY, Mcp, Server};
use crate::support::Quipu;
use endpoint::Endpoint;

/// How often a search is repeated whose model has not answered in time, on a busy machine.
const ATTEMPTS: usize = 100;

/// Notes about the concepts of the endpoint, and a question for each that has none of its words.
const NOTES: [(&str, &str, &str); 4] = [
    ("/car.md", "# Garage\n\nThe automobile needs new tires.", "vehicle"),
    ("/doctor.md", "# Appointment\n\nThe physician moved it to Tuesday.", "clinic"),
    ("/sea.md", "# Holidays\n\nA week at the shore.", "beach"),
    ("/tea.md", "# Tea\n\nNever boil green tea.", "boiled tea"),
];

fn with_notes() -> Quipu {
    let quipu = Quipu::with_store();
    for (path, text, _) in NOTES {
        quipu.put(path, text);
    }
    quipu
}

/// Returns a home whose notes have vectors of an endpoint.
fn embedded() -> (Quipu, Endpoint) {
    let (quipu, endpoint) = (with_notes(), Endpoint::new());
    endpoint.is_used_by(&quipu);
    quipu.ok(&["model", "embed"]);
    (quipu, endpoint)
}

/// Repeats a search until the model has answered in time, and returns its answer.
#[track_caller]
pub(crate) fn in_time(mut search: impl FnMut() -> Value) -> Value {
    let mut last = Value::Null;
    for _ in 0..ATTEMPTS {
        last = search();
        let notice = last["notice"].as_str().unwrap_or_default();
        if !notice.contains("has not answered within") {
            return last;
        }
    }
    panic!("the model never answers in time: {last}");
}

/// Searches by the command line.
#[track_caller]
fn by_command(quipu: &Quipu, arguments: &[&str]) -> Value {
    in_time(|| quipu.json(&[&["search"], arguments].concat()))
}

fn by_rest(server: &Server, query: &str) -> Value {
    in_time(|| {
        let (status, body) = server.get(KEY, &format!("/quipu/search?{query}"));
        assert_eq!(status, 200, "{body}");
        body
    })
}

fn by_mcp(host: &mut Host, arguments: &Value) -> Value {
    in_time(|| host.ok("search_notes", arguments.clone()).data)
}

/// Asserts that a note is first, by this order, and that all notes had vectors.
#[track_caller]
fn check_found(answer: &Value, path: &str, search_type: &str) {
    let first = &answer["results"][0];
    let found = first.get("file_path").unwrap_or(&first["path"]);
    assert_eq!(found, path, "{answer}");
    assert_eq!(answer["search_type"], search_type, "{answer}");
    assert_eq!(answer["notice"], Value::Null, "{answer}");
    assert_eq!(answer["vectors"], json!({"embedded": 4, "memories": 4}), "{answer}");
    assert!(first["similar"]["first_line"].as_u64() >= Some(1), "{answer}");
}

/// Asserts that the parts of the scores add up to them, and that meaning is one of the parts.
#[track_caller]
fn check_explained(answer: &Value) {
    for hit in answer["results"].as_array().expect("hits") {
        let parts = hit["explanation"].as_array().expect("it was asked for");
        let sum: f64 = parts.iter().map(|part| part["score"].as_f64().expect("a number")).sum();
        assert!((sum - hit["score"].as_f64().expect("a number")).abs() < 1e-9, "{hit}");
        let similar = parts.iter().find(|part| part["reason"] == "similar").expect("by meaning");
        assert_eq!(similar["cosine"], hit["similar"]["cosine"], "{hit}");
    }
}

#[test]
fn the_command_line_finds_what_is_meant() {
    let (quipu, endpoint) = embedded();
    for (path, _, question) in NOTES {
        let best = by_command(&quipu, &[question]);
        check_found(&best, path, "hybrid");
        assert_eq!(best, by_command(&quipu, &["--by", "hybrid", question]));
        check_found(&by_command(&quipu, &["--by", "vector", question]), path, "vector");
        check_explained(&by_command(&quipu, &["--explain", question]));
        check_explained(&by_command(&quipu, &["--explain", "--by", "vector", question]));
    }
    let asked = endpoint.requests_count();
    let text = by_command(&quipu, &["--by", "text", "vehicle"]);
    assert_eq!((&text["results"], &text["search_type"]), (&json!([]), &json!("text")));
    assert_eq!(endpoint.requests_count(), asked, "a search by words asks nobody");
    let shown = quipu.ok(&["search", "--explain", "--by", "vector", "-n", "1", "vehicle"]);
    assert!(shown.contains("/car.md") && shown.contains("meaning: cosine"), "{shown}");
}

#[test]
fn rest_finds_what_is_meant() {
    let (quipu, _endpoint) = embedded();
    let server = Server::start(&quipu);
    for (path, _, question) in NOTES {
        let query = format!("query={}", question.replace(' ', "%20"));
        check_found(&by_rest(&server, &query), path, "hybrid");
        check_found(&by_rest(&server, &format!("{query}&search_type=hybrid")), path, "hybrid");
        check_found(&by_rest(&server, &format!("{query}&search_type=vector")), path, "vector");
        check_found(&by_rest(&server, &format!("{query}&search_type=semantic")), path, "vector");
        check_explained(&by_rest(&server, &format!("{query}&explain=true")));
    }
    let text = by_rest(&server, "query=vehicle&search_type=text");
    assert_eq!((&text["results"], &text["search_type"]), (&json!([]), &json!("text")));
    assert!(text.get("vectors").is_none(), "{text}");
}

#[test]
fn mcp_finds_what_is_meant_over_stdio_and_http() {
    let (quipu, _endpoint) = embedded();
    let mut host = Host::new(&quipu, &[]);
    for (path, _, question) in NOTES {
        let ask = |search_type: &str| json!({"query": question, "search_type": search_type});
        check_found(&by_mcp(&mut host, &json!({"query": question})), path, "hybrid");
        check_found(&by_mcp(&mut host, &ask("hybrid")), path, "hybrid");
        check_found(&by_mcp(&mut host, &ask("vector")), path, "vector");
        let explain = json!({"query": question, "explain": true});
        check_explained(&by_mcp(&mut host, &explain));
    }
    let text = by_mcp(&mut host, &json!({"query": "vehicle", "search_type": "text"}));
    assert_eq!((&text["results"], &text["search_type"]), (&json!([]), &json!("text")));

    let server = Server::start(&quipu);
    let mut web = Mcp::connected(&server);
    let question = json!({"query": "vehicle", "search_type": "vector"});
    let found = in_time(|| web.call("search_notes", &question)["structuredContent"].clone());
    check_found(&found, "/car.md", "vector");
}

#[test]
fn the_page_of_the_search_finds_what_is_meant() {
    let (quipu, endpoint) = embedded();
    let server = Server::start(&quipu);
    let link = quipu.ok(&["ui", "--print", "--url", &server.url]);
    let entered = server.agent.get(link.trim()).config().max_redirects(0).build().call();
    let entered = entered.expect("an answer");
    let cookie = entered.headers().get("set-cookie").expect("it signs in");
    let cookie = cookie.to_str().expect("a text").split(';').next().expect("a cookie").to_owned();
    let page = |query: &str| {
        let request = server.agent.get(format!("{}/ui/search?{query}", server.url));
        let mut response = request.header("cookie", &cookie).call().expect("an answer");
        assert_eq!(response.status(), 200);
        response.body_mut().read_to_string().expect("a text")
    };
    let found = (0..ATTEMPTS).map(|_| page("q=vehicle&explain=1"));
    let found = found.into_iter().find(|page| !page.contains("has not answered within"));
    let found = found.expect("the model answers in time");
    assert!(found.contains("/car.md") && found.contains("cosine"), "{found}");
    endpoint.behave(endpoint::Behavior::Refuses(500));
    let noted = page("q=another+vehicle");
    assert!(noted.contains("Note: semantic search is unavailable"), "{noted}");
    assert!(!noted.contains(&endpoint.url), "{noted}");
}

#[test]
fn an_installed_model_is_the_default_at_every_door() {
    let (quipu, from) = (Quipu::with_store(), tempfile::tempdir().expect("a directory"));
    write_table(from.path());
    for (path, text) in [("/tea.md", "green tea"), ("/car.md", "car wheel"), ("/x.md", "is is")] {
        quipu.put(path, text);
    }
    let none = quipu.json(&["search", "cup"]);
    assert_eq!((&none["results"], &none["search_type"]), (&json!([]), &json!("text")));
    let refused = quipu.run(&["search", "--by", "vector", "cup"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("quipu model use NAME"), "{refused:?}");
    let hybrid = quipu.json(&["search", "--by", "hybrid", "cup"]);
    assert!(
        hybrid["notice"].as_str().is_some_and(|it| it.contains("no embedding model")),
        "{hybrid}"
    );

    let directory = from.path().to_str().expect("UTF-8");
    quipu.ok(&["model", "install", directory, "--name", "tiny"]);
    quipu.ok(&["model", "use", "tiny"]);
    let before = by_command(&quipu, &["cup"]);
    assert_eq!(before["vectors"], json!({"embedded": 0, "memories": 3}), "{before}");
    assert!(
        before["notice"].as_str().is_some_and(|it| it.contains("nothing has been embedded yet")),
        "{before}"
    );
    assert_eq!(quipu.json(&["model", "embed"])["embedded"], 3);

    let server = Server::start(&quipu);
    let mut host = Host::new(&quipu, &[]);
    for answer in [
        by_command(&quipu, &["cup"]),
        by_rest(&server, "query=cup"),
        by_mcp(&mut host, &json!({"query": "cup"})),
    ] {
        let first = &answer["results"][0];
        assert_eq!(first.get("file_path").unwrap_or(&first["path"]), "/tea.md", "{answer}");
        assert_eq!(answer["search_type"], "hybrid", "{answer}");
        assert_eq!(answer["vectors"], json!({"embedded": 3, "memories": 3}), "{answer}");
    }
}

/// What the server writes is embedded by nobody here: its model is switched off.
#[test]
fn what_another_door_writes_is_found_by_meaning_once_it_has_vectors() {
    let (quipu, _endpoint) = embedded();
    let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("QUIPU_ADMIN_KEY", KEY).env("QUIPU_VECTORS_MODEL", "none");
    let server = Server::spawn(command);
    let store = quipu.json(&["store", "list"])["data"][0]["id"].as_str().expect("an id").to_owned();
    let memories = format!("/v1/memory_stores/{store}/memories");
    let (status, made) =
        server.post(KEY, &memories, &json!({"path": "/dog.md", "content": "A puppy came."}));
    assert_eq!(status, 200, "{made}");
    let some = by_command(&quipu, &["hound"]);
    assert_eq!(some["vectors"], json!({"embedded": 4, "memories": 5}), "{some}");
    assert_eq!(by_rest(&server, "query=hound")["search_type"], "text");

    assert_eq!(quipu.json(&["model", "embed"])["embedded"], 1);
    let all = by_command(&quipu, &["hound"]);
    assert_eq!(all["results"][0]["path"], "/dog.md", "{all}");
    assert_eq!(all["vectors"], json!({"embedded": 5, "memories": 5}), "{all}");
    // Its words are gone, and with them its vectors, as soon as the other door changes it.
    let id = made["id"].as_str().expect("an id");
    let (status, changed) =
        server.post(KEY, &format!("{memories}/{id}"), &json!({"content": "A letter came."}));
    assert_eq!(status, 200, "{changed}");
    let changed = by_command(&quipu, &["--by", "vector", "hound"]);
    assert_eq!(changed["vectors"], json!({"embedded": 4, "memories": 5}), "{changed}");
    let paths: Vec<_> = changed["results"].as_array().expect("hits").iter().collect();
    assert!(paths.iter().all(|hit| hit["path"] != "/dog.md"), "{changed}");
}

#[test]
fn a_server_and_a_host_embed_what_a_command_writes() {
    for is_server in [true, false] {
        let (quipu, _endpoint) = embedded();
        let server = is_server.then(|| Server::start(&quipu));
        let host = (!is_server).then(|| Host::new(&quipu, &[]));
        quipu.put("/dog.md", "A puppy came.");
        let all = json!({"embedded": 5, "memories": 5});
        // The background is waited for by asking, as often as it takes.
        let found = (0..100_000).map(|_| by_command(&quipu, &["--by", "vector", "hound"]));
        let found = found.into_iter().find(|answer| answer["vectors"] == all);
        assert_eq!(found.expect("it is embedded")["results"][0]["path"], "/dog.md");
        drop((server, host));
    }
}

#[test]
fn suggestions_bring_up_what_is_meant_at_every_door() {
    let (quipu, endpoint) = embedded();
    let server = Server::start(&quipu);
    let mut host = Host::new(&quipu, &[]);
    let store = quipu.json(&["store", "list"])["data"][0]["id"].as_str().expect("an id").to_owned();
    let by_command = || quipu.json(&["suggest", "the vehicle"]);
    let by_rest = || {
        let path = format!("/quipu/stores/{store}/suggest?text=the%20vehicle");
        server.get(KEY, &path).1
    };
    let mut by_mcp = || host.ok("suggest_notes", json!({"text": "the vehicle"})).data;
    let doors: [(&mut dyn FnMut() -> Value, &str); 3] =
        [(&mut { by_command }, "path"), (&mut { by_rest }, "path"), (&mut by_mcp, "file_path")];
    for (ask, path) in doors {
        endpoint.behave(endpoint::Behavior::Works);
        // An encoder that is too slow on a busy machine leaves the words, of which the notes have none.
        let answers = (0..ATTEMPTS).map(|_| ask());
        let found = answers.into_iter().find(|answer| answer["suggestions"] != json!([]));
        let found = found.expect("the model answers in time");
        let first = &found["suggestions"][0];
        assert_eq!(first[path], "/car.md", "{found}");
        assert!(first["reasons"]["similar"]["cosine"].as_f64() > Some(0.5), "{found}");
    }
    let text = quipu.ok(&["suggest", "the vehicle"]);
    assert!(text.contains("/car.md") && text.contains("similar in meaning"), "{text}");
    endpoint.behave(endpoint::Behavior::Refuses(500));
    assert_eq!(by_command()["suggestions"], json!([]));
    let words = quipu.json(&["suggest", "never boil the green tea"]);
    assert_eq!(words["suggestions"][0]["path"], "/tea.md", "{words}");
}

#[test]
fn answers_for_people_say_how_much_has_vectors() {
    let (quipu, _endpoint) = embedded();
    quipu.put("/new.md", "A puppy came.");
    let ran = quipu.run(&["search", "tea"]);
    let note = "note: 4 of 5 memories have vectors; `quipu model embed` makes the others\n";
    assert_eq!((ran.code, ran.err.as_str()), (0, note));
    quipu.ok(&["model", "embed"]);
    assert_eq!(quipu.run(&["search", "tea"]).err, "");
}
