//! Processes that work side by side.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::backend::Sequence;
use quipu_core::clock::{Clock as _, SystemClock};
use quipu_core::engine::{Effect, MemoryUpdate, Precondition};
use quipu_core::model::{StoreId, View};

use crate::support::{Files, actor, content, engine, fixture, path};
use crate::{lines, start};

const PROCESSES: usize = 16;
const INCREMENTS: usize = 500;

pub(crate) fn sixteen_processes_lose_no_increment() {
    let fixture = fixture();
    let counter = fixture.put("/counter", "0").memory;
    let (directory, store) = (fixture.directory.path(), fixture.store.to_string());
    let children: Vec<_> =
        (0..PROCESSES).map(|_| start("incrementer", directory, &[&store])).collect();
    for mut child in children {
        assert!(child.wait().expect("the child ends").success());
    }
    let counter =
        fixture.engine.memory(fixture.store, counter.id, View::Full).expect("it is there");
    let text = counter.content.expect("a full view");
    assert_eq!(text.as_str(), (PROCESSES * INCREMENTS).to_string());
    assert_eq!(fixture.engine.check().expect("the check runs").problems, []);
}

/// Adds one, on the condition that nobody else did meanwhile, so often.
pub(crate) fn incrementer(directory: &Path, rest: &[String]) {
    let store: StoreId = rest[0].parse().expect("a store's id");
    let engine = engine(directory);
    let counter = path("/counter");
    let mut done_count = 0;
    while done_count < INCREMENTS {
        let before = engine.memory_at(store, &counter, View::Full).expect("it is read");
        let text = before.content.clone().expect("a full view");
        let number: usize = text.as_str().parse().expect("a number");
        let update = MemoryUpdate {
            content: Some(content(&(number + 1).to_string())),
            path: None,
            precondition: Precondition::ContentIs(before.hash),
        };
        match engine.update(&actor(), store, before.id, &update) {
            // Another process has just written the same number, so this one has added nothing.
            Ok(written) if written.effect == Effect::Unchanged => {}
            Ok(_) => done_count += 1,
            Err(error) => assert_eq!(*error.kind(), ErrorKind::PreconditionFailed, "{error:?}"),
        }
    }
}

pub(crate) fn redaction_is_real_while_another_process_has_the_data_open() {
    let fixture = fixture();
    let mut holder = start("holder", fixture.directory.path(), &[&fixture.store.to_string()]);
    let mut printed = lines(&mut holder);
    assert_eq!(printed.next().as_deref(), Some("open"));
    let token = format!("{:032x}", SystemClock.random());
    let leaked = fixture.put("/a", &token).memory;
    fixture.put("/a", "clean");
    fixture.engine.redact(&actor(), fixture.store, &[leaked.version]).expect("it redacts");
    assert_eq!(Files::read(fixture.directory.path()).with(&token), Vec::<&str>::new());
    drop(holder.stdin.take());
    assert!(holder.wait().expect("the child ends").success());
}

/// Opens the data, reads from it and writes to it, and keeps it open until its input ends.
pub(crate) fn holder(directory: &Path, rest: &[String]) {
    let store: StoreId = rest[0].parse().expect("a store's id");
    let engine = engine(directory);
    engine.create(&actor(), store, &path("/holder"), &content("here")).expect("it writes");
    engine.memory_at(store, &path("/holder"), View::Full).expect("it reads");
    println!("open");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("the input ends");
}

pub(crate) fn a_waiting_process_sees_the_change_of_another() {
    let fixture = fixture();
    let seen = fixture.engine.newest_sequence().expect("it is read");
    let mut waiter = start("waiter", fixture.directory.path(), &[&seen.0.to_string()]);
    let mut printed = lines(&mut waiter);
    assert_eq!(printed.next().as_deref(), Some("waiting"));
    fixture.put("/news", "text");
    assert_eq!(printed.next(), Some((seen.0 + 1).to_string()));
    assert!(waiter.wait().expect("the child ends").success());
}

/// Waits for a change after the given sequence and prints the newest one.
pub(crate) fn waiter(directory: &Path, rest: &[String]) {
    let seen = Sequence(rest[0].parse().expect("a number"));
    let engine = engine(directory);
    println!("waiting");
    let newest = engine.wait(seen, Duration::from_mins(1)).expect("it waits");
    println!("{}", newest.0);
}
