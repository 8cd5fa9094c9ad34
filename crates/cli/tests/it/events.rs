//! `quipu events`: the events of a session on the command line.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use quipu_core::engine::NewSessionEvent;
use quipu_core::model::{Actor, Content, EventType, SessionId};

use crate::support::Quipu;

/// A session that records its own events.
struct Recorded {
    quipu: Quipu,
    session: SessionId,
}

impl Recorded {
    fn new() -> Self {
        let quipu = Quipu::with_store();
        let made = quipu.json(&["session", "create", "--store", "notes"]);
        let session = made["id"].as_str().expect("an id").parse().expect("an id");
        Self { quipu, session }
    }

    fn record(&self, kind: &str, text: &str) {
        let event = NewSessionEvent {
            kind: EventType::new(kind).expect("a type"),
            body: Content::new(serde_json::json!({"text": text}).to_string()).expect("a body"),
        };
        let actor = Actor::Session(self.session);
        let recorded = self.quipu.engine(0).record_events(&actor, self.session, &[event]);
        recorded.expect("it is recorded");
    }

    fn events(&self, options: &[&str]) -> String {
        let session = self.session.to_string();
        self.quipu.ok(&[&["events", &session], options].concat())
    }
}

/// Returns the numbers of the events that were printed.
fn numbers(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn events_are_listed_in_order_and_selected_by_text_type_and_number() {
    let it = Recorded::new();
    it.record("user.message", "green tea");
    it.record("agent.message", "80 \u{b0}C\u{1b}[2J");
    it.record("user.message", "Black \"TEA\"");
    let all = it.events(&[]);
    assert_eq!(numbers(&all), ["1", "2", "3"]);
    assert!(all.lines().next().is_some_and(|line| {
        line.contains("user.message") && line.ends_with("{\"text\":\"green tea\"}")
    }));
    assert!(!all.contains('\u{1b}'), "{all:?}");
    assert_eq!(numbers(&it.events(&["--grep", "tea"])), ["1", "3"]);
    assert_eq!(numbers(&it.events(&["--grep", "\"tea\""])), ["3"]);
    assert_eq!(numbers(&it.events(&["--type", "agent.message"])), ["2"]);
    assert_eq!(numbers(&it.events(&["--after", "1"])), ["2", "3"]);
    assert_eq!(
        numbers(&it.events(&["--after", "1", "--type", "user.message", "--grep", "t"])),
        ["3"]
    );
    let listed = it.quipu.json(&["events", &it.session.to_string()]);
    assert_eq!(listed["data"][1]["number"], 2);
    assert_eq!(listed["data"][1]["event"]["type"], "agent.message");
    let unknown = it.quipu.run(&["events", "sesn_011111111111111111111111"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
}

#[test]
fn events_are_followed_until_the_session_ends() {
    let it = Recorded::new();
    it.record("user.message", "one");
    let session = it.session.to_string();
    let mut command = it.quipu.command(&["events", &session, "--follow", "--grep", "o"]);
    let mut following = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(following.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().map(|line| line.expect("text"));
    assert!(next().expect("what was there").starts_with("1  "));
    it.record("agent.message", "tomorrow");
    it.record("agent.message", "---");
    it.record("agent.message", "two");
    let (second, third) = (next().expect("a line"), next().expect("a line"));
    assert!(second.starts_with("2  ") && third.starts_with("4  "), "{second} {third}");
    it.quipu.ok(&["session", "archive", &session]);
    assert_eq!(next(), None);
    assert!(following.wait().expect("it ends").success());
}

#[test]
fn a_redacted_event_says_so() {
    let it = Recorded::new();
    it.record("user.message", "my heron");
    it.quipu.ok(&["redact", "--matching", "heron", "--yes"]);
    let all = it.events(&[]);
    assert!(all.contains("(redacted)") && !all.contains("heron"), "{all}");
    assert_eq!(it.events(&["--grep", "heron"]), "");
}
