//! Several processes on one index, of which some are killed or stopped in the middle.

use std::io::Read as _;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::Engine;
use quipu_core::clock::{Clock as _, SystemClock};
use quipu_core::engine::Precondition;
use quipu_core::model::{StoreId, VersionId};
use quipu_knowledge::{INDEX_FILE, Knowledge, SearchRequest};
use rusqlite::Connection;

use crate::support::{Files, Fixture, actor, content, engine, fixture, new_store, path};
use crate::{lines, start};

/// How many memories the store has whose segments are merged.
const NOTES: usize = 700;

/// How often the process is killed; `QUIPU_KILLS` asks for a long run.
#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn kills() -> usize {
    let kills: Option<usize> = std::env::var("QUIPU_KILLS").ok().and_then(|it| it.parse().ok());
    kills.unwrap_or(50) / 2
}

fn put(engine: &Engine, store: StoreId, at: &str, text: &str) -> VersionId {
    let target = (&path(at), &content(text));
    let written = engine.put(&actor(), store, target, Precondition::None).expect("it writes");
    written.memory.version
}

fn token() -> String {
    format!("{:032x}", SystemClock.random())
}

fn found(engine: &Knowledge, stores: &[StoreId], words: &str) -> usize {
    let request = SearchRequest::new(stores.to_vec(), words);
    engine.search(&request).expect("it searches").total.count
}

fn end(mut child: Child) {
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
}

/// Merging, building, scrubbing and the removal of stores are killed anywhere.
pub(crate) fn an_index_survives_kills() {
    let fixture = fixture();
    for number in 0..NOTES {
        fixture.put(&format!("/{number}.md"), &format!("tea unique{number}x"));
    }
    let mut erased_count = 0;
    for round in 0..kills() {
        let mut child = start("indexer", fixture.directory.path(), &[&fixture.store.to_string()]);
        let printed = lines(&mut child);
        let reader = thread::spawn(move || printed.collect::<Vec<_>>());
        let millis = u64::try_from(SystemClock.random() % 800).expect("a small number");
        thread::sleep(Duration::from_millis(40 + millis));
        end(child);
        let printed = reader.join().expect("no panic");
        // Another process finds whatever the killed one left.
        let engine = engine(fixture.directory.path());
        assert_eq!(found(&engine, &[fixture.store], "tea"), NOTES, "round {round}");
        let number = round * 31 % NOTES;
        assert_eq!(found(&engine, &[fixture.store], &format!("\"unique{number}x\"")), 1);
        assert_eq!(engine.check().expect("the check runs").problems, [], "round {round}");
        engine.prune().expect("it erases what is pending");
        let files = Files::read(fixture.directory.path());
        for erased in &printed {
            assert_eq!(files.with(erased), Vec::<&str>::new(), "round {round}");
            erased_count += 1;
        }
    }
    println!("{} kills of an indexer: {erased_count} texts that it erased are in no file", kills());
}

/// Writes, merges, builds, redacts and removes stores until it is killed; prints what it erased.
pub(crate) fn indexer(directory: &Path, rest: &[String]) {
    let store: StoreId = rest[0].parse().expect("a store's id");
    let engine = engine(directory);
    for round in 0_usize.. {
        let token = token();
        let leaked = put(&engine, store, "/0.md", &format!("tea unique0x {token}"));
        for number in (0..NOTES).skip(round % 29).step_by(29) {
            put(&engine, store, &format!("/{number}.md"), &format!("tea unique{number}x {round}"));
        }
        engine.follow(None).expect("it indexes");
        put(&engine, store, "/0.md", "tea unique0x");
        engine.redact(&actor(), store, &[leaked]).expect("it redacts");
        println!("{token}");
        let token = self::token();
        let doomed = new_store(&engine, &self::token());
        for number in 0..20 {
            put(&engine, doomed, &format!("/{number}.md"), &format!("{token} {number}"));
        }
        assert_eq!(found(&engine, &[doomed], &token), 20);
        engine.erase_store(doomed).expect("it erases");
        println!("{token}");
        if round % 4 == 3 {
            engine.discard_index().expect("it is removed");
        }
    }
}

/// All of them bring the same stores to the present at once, and nobody misses a thing.
pub(crate) fn many_processes_catch_up_at_once() {
    let fixture = fixture();
    let stores: Vec<_> =
        (0..5).map(|number| new_store(&fixture.engine, &format!("store {number}"))).collect();
    let words: Vec<_> = stores.iter().map(ToString::to_string).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let mut children: Vec<_> =
        (0..3).map(|_| start("searcher", fixture.directory.path(), &words)).collect();
    for child in &mut children {
        assert_eq!(lines(child).next().as_deref(), Some("ready"));
    }
    for number in 0..200 {
        let store = stores[number % stores.len()];
        put(&fixture.engine, store, &format!("/{}.md", number % 60), &format!("tea w{number}x"));
        assert_eq!(found(&fixture.engine, &[store], &format!("\"w{number}x\"")), 1);
        if number % 50 == 49 {
            fixture.engine.discard_index().expect("it is removed");
        }
    }
    assert_eq!(found(&fixture.engine, &stores, "tea"), 60);
    for child in children {
        // It would have ended by itself if any of its searches had failed.
        end(child);
    }
    assert_eq!(fixture.engine.check().expect("it checks").problems, []);
}

/// Searches and merges all the time.
pub(crate) fn searcher(directory: &Path, rest: &[String]) {
    let stores: Vec<StoreId> = rest.iter().map(|it| it.parse().expect("an id")).collect();
    let engine = engine(directory);
    println!("ready");
    for round in 0.. {
        let count = found(&engine, &stores[round % stores.len()..], "tea");
        assert!(count <= 60, "{count}");
        engine.follow(None).expect("it follows");
    }
}

/// Begins a transaction on the index and keeps it until its input ends, then ends it.
pub(crate) fn index_holder(directory: &Path, rest: &[String]) {
    let connection = Connection::open(directory.join(INDEX_FILE)).expect("it opens");
    connection.execute_batch(&rest[0]).expect("it begins");
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("the input ends");
    connection.execute_batch("COMMIT").expect("it commits");
}

/// Both a writer and a reader of the index may be stopped for good.
pub(crate) fn whoever_is_stopped_on_the_index_holds_nobody_up() {
    for held in
        ["BEGIN IMMEDIATE; UPDATE numbers SET store = store + 1", "BEGIN; SELECT * FROM stores"]
    {
        let fixture = fixture();
        let others: Vec<_> =
            (0..30).map(|number| new_store(&fixture.engine, &format!("store {number}"))).collect();
        let token = token();
        let leaked = fixture.put("/leak.md", &format!("tea {token}")).memory.version;
        assert_eq!(found(&fixture.engine, &[fixture.store], &token), 1);
        let mut holder = start("index-holder", fixture.directory.path(), &[held]);
        assert_eq!(lines(&mut holder).next().as_deref(), Some("ready"));
        signal(&holder, "-STOP");
        search_beside(&fixture, &others, held);
        fixture.put("/leak.md", "clean");
        let start = Instant::now();
        fixture.engine.redact(&actor(), fixture.store, &[leaked]).expect("it redacts");
        assert!(start.elapsed() < Duration::from_secs(20), "{held}: {:?}", start.elapsed());
        assert_eq!(Files::read(fixture.directory.path()).with(&token), Vec::<&str>::new());
        signal(&holder, "-CONT");
        drop(holder.stdin.take());
        assert!(holder.wait().expect("it ends").success());
        assert_eq!(Files::read(fixture.directory.path()).with(&token), Vec::<&str>::new());
        assert_eq!(found(&fixture.engine, &others, "tea"), 30);
        assert_eq!(fixture.engine.check().expect("it checks").problems, []);
    }
}

/// Every store has changed, and none of them is waited for on its own.
fn search_beside(fixture: &Fixture, others: &[StoreId], held: &str) {
    for &store in others {
        put(&fixture.engine, store, "/a.md", "tea");
    }
    let start = Instant::now();
    assert_eq!(found(&fixture.engine, others, "tea"), others.len(), "{held}");
    let took = start.elapsed();
    println!("beside a stopped `{held}`, a search over 30 changed stores took {took:?}");
    assert!(took < Duration::from_secs(5), "{held}: {took:?}");
}

fn signal(child: &Child, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("`kill` runs").success());
}
