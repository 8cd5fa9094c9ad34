//! Who may: a key of one store learns nothing about another one.

use serde_json::{Value, json};

use super::endpoint::{Behavior, Endpoint};
use super::in_time;
use crate::server::{KEY, Server, id};
use crate::support::Quipu;

/// A server with the stores `mine` and `theirs`, and a key for the first one alone.
struct Two {
    quipu: Quipu,
    endpoint: Endpoint,
    server: Server,
    mine: String,
    theirs: String,
    key: String,
}

fn two() -> Two {
    let (quipu, endpoint) = (Quipu::empty(), Endpoint::new());
    let mut stores =
        ["mine", "theirs"].map(|name| id(&quipu.json(&["store", "create", name]))).into_iter();
    let (mine, theirs) = (stores.next().expect("a store"), stores.next().expect("a store"));
    for (path, text) in [
        ("/car.md", "The automobile needs tires at the shore."),
        ("/tea.md", "Never boil green tea."),
        ("/pets.md", "A hound at home."),
    ] {
        let ran = quipu.run_with(&["put", path, "--store", "mine"], text.as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    endpoint.is_used_by(&quipu);
    quipu.ok(&["model", "embed"]);
    let made = quipu.json(&[
        "key",
        "create",
        "--name",
        "reader",
        "--role",
        "read_only",
        "--store",
        "mine",
    ]);
    let key = made["secret"].as_str().expect("a secret").to_owned();
    let server = Server::start(&quipu);
    Two { quipu, endpoint, server, mine, theirs, key }
}

impl Two {
    /// Returns everything that the key is told about its store.
    fn told(&self) -> Vec<Value> {
        let ask = |path: &str| {
            in_time(|| {
                let (status, body) = self.server.get(&self.key, path);
                assert_eq!(status, 200, "{body}");
                body
            })
        };
        let question = "query=vehicle%20dog%20tea&explain=true";
        let text = "text=what%20does%20the%20green%20tea%20automobile%20need%20at%20home";
        [
            format!("/quipu/search?{question}"),
            format!("/quipu/search?{question}&search_type=vector"),
            format!("/quipu/search?{question}&search_type=text"),
            format!("/quipu/search?{question}&store={}", self.mine),
            format!("/quipu/stores/{}/suggest?{text}", self.mine),
        ]
        .iter()
        .map(|path| ask(path))
        .collect()
    }

    fn write_theirs(&self, number: usize) {
        let path = format!("/v1/memory_stores/{}/memories", self.theirs);
        let content = format!("vehicle {number}, a puppy and green tea in the dwelling");
        let body = json!({"path": format!("/{number}.md"), "content": content});
        let (status, body) = self.server.post(KEY, &path, &body);
        assert_eq!(status, 200, "{body}");
    }
}

#[test]
fn what_a_key_is_told_does_not_depend_on_stores_that_it_may_not_read() {
    let two = two();
    let before = two.told();
    assert_eq!(before[0]["vectors"], json!({"embedded": 3, "memories": 3}));
    assert_eq!(before[0]["search_type"], "hybrid");
    assert_ne!(before[4]["suggestions"], json!([]), "{}", before[4]);
    for number in 0..12 {
        two.write_theirs(number);
    }
    assert_eq!(two.told(), before, "before the others have vectors");
    two.quipu.ok(&["model", "embed"]);
    assert_eq!(two.told(), before, "when the others have vectors");
    // A store that may not be read is like one that does not exist, at every door to its meaning.
    for query in ["search_type=vector", "search_type=hybrid", "explain=true"] {
        let path = format!("/quipu/search?query=vehicle&{query}&store=");
        let theirs = two.server.get(&two.key, &format!("{path}{}", two.theirs));
        let nowhere = two.server.get(&two.key, &format!("{path}memstore_nowhere"));
        assert_eq!(theirs.0, nowhere.0, "{theirs:?}");
        assert!(theirs.0 >= 400 && !theirs.1.to_string().contains("embedded"), "{theirs:?}");
    }
    let suggest = format!("/quipu/stores/{}/suggest?text=vehicle", two.theirs);
    assert!(two.server.get(&two.key, &suggest).0 >= 400);
    let all = two.server.get(KEY, "/quipu/search?query=vehicle&search_type=vector").1;
    assert_eq!(all["vectors"], json!({"embedded": 15, "memories": 15}));
}

/// Everybody's questions go through one model. What it answers is kept by the question, not by who asked.
#[test]
fn a_question_of_one_key_is_answered_from_its_own_stores() {
    let two = two();
    two.write_theirs(1);
    two.quipu.ok(&["model", "embed"]);
    let question = "/quipu/search?query=vehicle&search_type=vector";
    let all = in_time(|| two.server.get(KEY, question).1);
    assert!(all.to_string().contains("/1.md"), "{all}");
    let mine = in_time(|| two.server.get(&two.key, question).1);
    assert_eq!(mine["results"][0]["path"], "/car.md", "{mine}");
    assert!(!mine.to_string().contains("/1.md"), "{mine}");
}

#[test]
fn hostile_questions_are_only_texts() {
    let two = two();
    let long = "vehicle ".repeat(900);
    for question in [
        "%00",
        "%E2%80%AE%F0%9F%A6%80",
        "'%3B%20DROP%20TABLE%20vectors%3B--",
        "%22%22%22",
        "((((((",
        "NOT",
        "tag%3A",
        "*",
        "%5BMASK%5D",
        "..%2F..%2Fetc%2Fpasswd",
        long.trim(),
    ] {
        for search_type in ["hybrid", "vector"] {
            let question = question.replace(' ', "%20");
            let path =
                format!("/quipu/search?query={question}&search_type={search_type}&explain=true");
            let (status, body) = two.server.get(&two.key, &path);
            assert!(status == 200 || status == 400, "{question}: {status} {body}");
        }
    }
    assert!(two.endpoint.texts().iter().all(|text| text.len() <= 8 * 1024));
    two.endpoint.behave(Behavior::Refuses(500));
    assert_eq!(two.server.get(&two.key, "/quipu/search?query=tea").0, 200);
}
