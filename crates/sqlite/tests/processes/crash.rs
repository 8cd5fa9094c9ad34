//! A process that writes under load is killed again and again.
//!
//! After each kill, everything that it had acknowledged must be there, everything that it had
//! acknowledged as redacted must be in no file, and every invariant must hold.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use quipu_core::backend::SessionEventQuery;
use quipu_core::clock::{Clock as _, SystemClock};
use quipu_core::engine::{ListQuery, NewSession, NewSessionEvent, Precondition, SessionToken};
use quipu_core::model::{Directory, EventType, Listing, SessionId, StoreId, VersionId, View};

use quipu_knowledge::{Knowledge, SearchRequest};

use crate::support::{Files, actor, content, engine, new_store, path};
use crate::{lines, start};

/// How many threads of the child write.
const WRITERS: usize = 4;

/// Returns how often to kill; `QUIPU_KILLS` asks for a long run.
#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn kills() -> usize {
    std::env::var("QUIPU_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(50)
}

pub(crate) fn every_acknowledged_write_survives_kills() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let store = new_store(&engine(directory.path()), "crash");
    let session = new_session(&engine(directory.path()));
    let (mut writes_count, mut redactions_count, mut events_count) = (0, 0, 0);
    for _ in 0..kills() {
        let printed = one_round(directory.path(), &[store.to_string(), session.to_string()]);
        let engine = engine(directory.path());
        // Half of the rounds find their erasing unfinished; this is what `serve` and `prune` do.
        engine.prune().expect("it prunes");
        let files = Files::read(directory.path());
        for line in &printed {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["stored", version, text] => {
                    let id: VersionId = version.parse().expect("a version's id");
                    let version = engine.version(store, id, View::Full).expect("it survived");
                    assert_eq!(version.content, Some(content(text)));
                    writes_count += 1;
                }
                ["recorded", number, text] => {
                    let number: u64 = number.parse().expect("a number");
                    let query = SessionEventQuery::after(number - 1, 1);
                    let events = engine.session_events(session, &query).expect("it lists").items;
                    assert_eq!((events[0].number, &events[0].body), (number, &Some(content(text))));
                    events_count += 1;
                }
                ["redacted", token] => {
                    assert_eq!(files.with(token), Vec::<&str>::new());
                    redactions_count += 1;
                }
                _ => panic!("the child printed `{line}`"),
            }
        }
        // The check compares the index with the texts too, wherever the kill left it.
        let report = engine.check().expect("the check runs");
        assert_eq!(report.problems, []);
        assert_found(&engine, store);
    }
    println!(
        "{} kills: {writes_count} acknowledged writes and {events_count} acknowledged events are \
         there, {redactions_count} acknowledged redactions are in no file",
        kills()
    );
    assert!(writes_count > kills() && events_count > 0);
}

fn new_session(engine: &Knowledge) -> SessionId {
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewSession::titled("run", Vec::new(), SessionToken::None);
    engine.create_session(workspace, &new).expect("a session").0.id
}

/// Every memory is found by its text, and nothing else is.
fn assert_found(engine: &Knowledge, store: StoreId) {
    let all = ListQuery {
        directory: Directory::root(),
        depth: None,
        after: None,
        limit: usize::MAX,
        view: View::Full,
    };
    for line in engine.list(store, &all).expect("it lists").items {
        let Listing::Memory(memory) = line else { continue };
        let text = memory.content.expect("it was read with its text");
        let request = SearchRequest::new(vec![store], format!("\"{}\"", text.as_str()));
        let found = engine.search(&request).expect("it searches").hits;
        assert!(found.iter().any(|hit| hit.note.memory == memory.id), "{}", memory.path);
    }
}

/// Starts a writer, kills it at a random moment, and returns what it had acknowledged.
fn one_round(directory: &Path, ids: &[String; 2]) -> Vec<String> {
    let mut child = start("writer", directory, &[&ids[0], &ids[1]]);
    let (sender, receiver) = mpsc::channel();
    let printed = lines(&mut child);
    let reader = thread::spawn(move || printed.for_each(|line| drop(sender.send(line))));
    // The moment counts from the first write on, so that every round has some.
    let first = receiver.recv().expect("the child writes");
    let millis = u64::try_from(SystemClock.random() % 120).expect("a small number");
    thread::sleep(Duration::from_millis(millis));
    child.kill().expect("the child can be killed");
    child.wait().expect("the child ends");
    reader.join().expect("no panic");
    std::iter::once(first).chain(receiver).collect()
}

/// Writes with several threads until it is killed, and redacts now and then.
pub(crate) fn writer(directory: &Path, rest: &[String]) {
    let store: StoreId = rest[0].parse().expect("a store's id");
    let session: SessionId = rest[1].parse().expect("a session's id");
    let engine = engine(directory);
    let acknowledge = |line: String| {
        let mut out = std::io::stdout().lock();
        out.write_all(format!("{line}\n").as_bytes()).expect("the output is open");
        out.flush().expect("the output is open");
    };
    let put = |at: &str, text: &str| {
        let target = (&path(at), &content(text));
        let written = engine.put(&actor(), store, target, Precondition::None).expect("it writes");
        written.memory.version
    };
    thread::scope(|scope| {
        for number in 0..WRITERS {
            scope.spawn(move || {
                loop {
                    let text = format!("{:032x}", SystemClock.random());
                    let version = put(&format!("/{number}/{}", text.len() % 7), &text);
                    acknowledge(format!("stored {version} {text}"));
                }
            });
        }
        scope.spawn(|| {
            loop {
                let text = format!("{:032x}", SystemClock.random());
                let kind = EventType::new("user.message").expect("a valid type");
                let event = NewSessionEvent { kind, body: content(&text) };
                let recorded = engine.record_events(&actor(), session, &[event]);
                let number = recorded.expect("it records")[0].number;
                acknowledge(format!("recorded {number} {text}"));
                thread::sleep(Duration::from_millis(2));
            }
        });
        scope.spawn(|| {
            loop {
                engine.follow(None).expect("it indexes");
            }
        });
        scope.spawn(|| {
            loop {
                let token = format!("{:032x}", SystemClock.random());
                let leaked = put("/leak", &token);
                put("/leak", "clean");
                engine.redact(&actor(), store, &[leaked]).expect("it redacts");
                acknowledge(format!("redacted {token}"));
                thread::sleep(Duration::from_millis(20));
            }
        });
    });
}
