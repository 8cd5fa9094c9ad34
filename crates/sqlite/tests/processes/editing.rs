//! Searching for what somebody edits all the time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use quipu_core::Engine;
use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, StoreId, View};
use quipu_knowledge::{Scope, SearchRequest};

use crate::support::{Fixture, actor, content, engine, fixture, path};
use crate::{lines, start};

/// How many times a memory is made and looked for; `QUIPU_CASES` says otherwise.
#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn rounds_count() -> usize {
    let cases = std::env::var("QUIPU_CASES").ok().and_then(|text| text.parse().ok());
    cases.unwrap_or(300)
}

/// The indexer left out memories that were edited while it worked, so that one in five searches
/// missed a memory that was acknowledged before the search began.
pub(crate) fn what_is_edited_all_the_time_is_always_found() {
    let fixture = fixture();
    let (one, three) = (rounds_count() / 2, rounds_count().div_ceil(2));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                edit(&fixture.engine, fixture.store);
            }
        });
        // A failure must end the other thread too.
        let searched = catch_unwind(AssertUnwindSafe(|| search_while_edited(&fixture, one)));
        is_done.store(true, Ordering::Relaxed);
        searched.unwrap_or_else(|panic| resume_unwind(panic));
    });
    let store = fixture.store.to_string();
    let mut editors: Vec<_> =
        (0..2).map(|_| start("editor", fixture.directory.path(), &[&store])).collect();
    for editor in &mut editors {
        assert_eq!(lines(editor).next().as_deref(), Some("ready"));
    }
    search_while_edited(&fixture, three);
    for mut editor in editors {
        editor.kill().expect("it is killed");
        editor.wait().expect("it ends");
    }
}

/// The memory that is edited; a new one in every round.
const EDITED: &str = "/edited";

fn search_while_edited(fixture: &Fixture, rounds: usize) {
    for round in 0..rounds {
        let word = format!("word{round}");
        fixture.put(EDITED, &word);
        let request = SearchRequest::new(vec![fixture.store], word.clone());
        let found = fixture.engine.search(&request).expect("it searches");
        assert_eq!(found.hits.len(), 1, "round {round}: `{word}` is not found");
        let scope = Scope::only(fixture.store);
        let resolved = fixture.engine.resolve(&scope, EDITED, View::Full);
        assert!(resolved.is_ok(), "round {round}: {resolved:?}");
    }
}

/// Adds to the memory, whatever it holds.
fn edit(engine: &Engine, store: StoreId) {
    let target = path(EDITED);
    let add = |_: &_, text: &str| {
        let first = text.split(' ').next().unwrap_or_default();
        let count = text.split(' ').count() % 50;
        Ok::<_, quipu_core::Error>(format!("{first}{}", " more".repeat(count)))
    };
    // It may not be there yet.
    engine.edit(&actor(), store, &target, add).map(drop).unwrap_or_default();
}

pub(crate) fn editor(directory: &Path, rest: &[String]) {
    let store: StoreId = rest[0].parse().expect("a store's id");
    let engine = engine(directory);
    println!("ready");
    loop {
        edit(&engine, store);
        // What another process indexes is nobody's but the index's.
        let other: Actor = actor();
        let target = (&path("/other"), &content("other"));
        engine.put(&other, store, target, Precondition::None).expect("it writes");
    }
}
