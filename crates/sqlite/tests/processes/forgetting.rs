//! A process that redacts by content is killed again and again.
//!
//! After each kill, either nothing has changed, or the rows are redacted and the next `prune` completes
//! the erasing and the receipt.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use quipu_core::clock::{Clock as _, SystemClock};
use quipu_core::engine::{Heads, Pattern, Precondition, Scope, Selection, Terms};
use quipu_core::model::{Receipt, StoreId};
use quipu_knowledge::Knowledge;

use crate::support::{Files, actor, content, engine, new_store, path};
use crate::{lines, start};

const KILLS: u64 = 30;

pub(crate) fn a_killed_redaction_is_all_or_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let store = new_store(&engine(directory.path()), "forgetting");
    let (mut untouched_count, mut redacted_count) = (0, 0);
    for round in 0..KILLS {
        let token = leak_and_kill(directory.path(), store, Duration::from_millis(round * 2));
        let engine = engine(directory.path());
        engine.prune().expect("it prunes");
        let receipts = engine
            .receipts(engine.default_workspace().expect("a workspace").id, None, 1000)
            .expect("they are read")
            .items;
        assert!(receipts.iter().all(|receipt| receipt.proof.is_some()));
        let left = plan(&engine, &token);
        let files = Files::read(directory.path());
        if left == 0 {
            assert_eq!(files.with(token.get(8..).expect("a long token")), Vec::<&str>::new());
            redacted_count += 1;
        } else {
            assert_eq!(left, LEAKED_VERSIONS, "all or nothing");
            untouched_count += 1;
        }
        let receipt = forget(&engine, &token);
        assert_eq!(receipt.proof.and_then(|proof| proof.hits_left), Some(0));
        let files = Files::read(directory.path());
        assert_eq!(files.with(token.get(8..).expect("a long token")), Vec::<&str>::new());
        assert_eq!(engine.check().expect("the check runs").problems, []);
    }
    assert!(redacted_count > 0, "no kill came late enough");
    println!("{KILLS} kills: {untouched_count} before the change, {redacted_count} after it");
}

/// How many versions hold the token after [`forgetter`] has leaked it, most of them of one memory.
const LEAKED_VERSIONS: usize = OLD_VERSIONS + 3;
const OLD_VERSIONS: usize = 100;

fn selection(token: &str) -> Selection<'_> {
    let pattern = Pattern::text(token).expect("it is not empty");
    Selection { pattern: Some(pattern), ..Selection::default() }
}

fn scope(engine: &Knowledge) -> Scope {
    Scope::all(engine.default_workspace().expect("a workspace").id)
}

fn plan(engine: &Knowledge, token: &str) -> usize {
    let plan = engine.plan_redaction(&scope(engine), &selection(token), Heads::TakeOut);
    plan.expect("a plan").versions_count()
}

fn forget(engine: &Knowledge, token: &str) -> Receipt {
    let terms = Terms { heads: Heads::TakeOut, ..Terms::default() };
    engine.redact_selected(&actor(), &scope(engine), &selection(token), &terms).expect("it redacts")
}

/// Returns the token that the child leaked before it was killed.
fn leak_and_kill(directory: &Path, store: StoreId, delay: Duration) -> String {
    let mut child = start("forgetter", directory, &[&store.to_string()]);
    let (sender, receiver) = mpsc::channel();
    let lines = lines(&mut child);
    let reader = thread::spawn(move || lines.for_each(|line| sender.send(line).unwrap_or(())));
    let token = receiver.recv().expect("the child has leaked it");
    thread::sleep(delay);
    child.kill().expect("the child can be killed");
    child.wait().expect("the child ends");
    reader.join().expect("no panic");
    token
}

/// Leaks a token and redacts it.
pub(crate) fn forgetter(directory: &Path, rest: &[String]) {
    let store: StoreId = rest[0].parse().expect("a store's id");
    let engine = engine(directory);
    let token = format!("{:032x}", SystemClock.random());
    let put = |at: &str, text: &str| {
        let target = (&path(at), &content(text));
        engine.put(&actor(), store, target, Precondition::None).expect("it writes");
    };
    // So many that the transaction takes a while, and some kills hit it.
    for number in 0..OLD_VERSIONS {
        put("/old.md", &format!("# {token}\n\n{number}\n"));
    }
    put("/old.md", "clean");
    put("/live.md", &format!("see [[{token}]]"));
    put(&format!("/{token}.md"), "by its path");
    let gone = path(&format!("/{token}.md"));
    engine.delete_at(&actor(), store, &gone).expect("it is deleted");
    engine.follow(None).expect("it indexes");
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{token}\n").as_bytes()).expect("the output is open");
    out.flush().expect("the output is open");
    forget(&engine, &token);
    // The parent kills it, however long that takes.
    thread::sleep(Duration::from_mins(1));
}
