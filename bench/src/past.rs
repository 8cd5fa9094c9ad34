//! Reading a store as it was, against reading it as it is.

use std::time::Instant;

use quipu_core::Moment;
use quipu_core::backend::Sequence;
use quipu_core::engine::{Engine, ListQuery};
use quipu_core::model::{Directory, StoreId, View};

use crate::engine;
use crate::table::{median, number, print, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many memories the store holds
    #[arg(long, default_value_t = 10_000)]
    memories: u64,
    /// How many versions each of them has
    #[arg(long, default_value_t = 10)]
    versions: u64,
    /// How many rounds are measured
    #[arg(long, default_value_t = 15)]
    rounds: u64,
}

pub(crate) fn run(arguments: &Arguments) {
    let opened = engine::open();
    for version in 0..arguments.versions {
        opened.fill(arguments.memories, |memory| format!("memory {memory}\n\nversion {version}\n"));
    }
    let newest = opened.engine.newest_sequence().expect("it is read").0;
    println!(
        "{} memories, {} versions",
        arguments.memories,
        arguments.memories * arguments.versions
    );
    let mut rows = vec![row(&[&"milliseconds, median", &"list", &"ratio", &"read", &"ratio"])];
    let now = measure(arguments, &mut |_| opened.engine.engine().clone(), opened.store);
    rows.push(row(&[&"now", &number(now.0), &"1.0", &number(now.1), &"1.0"]));
    for (name, part) in [("at 90 %", 9), ("at 50 %", 5), ("at 15 %", 1)] {
        let at = |round| {
            // Another moment each time: what was read once is kept for the next one who asks.
            let sequence = newest * part / 10 + newest / 20 + round;
            let moment = Moment::Sequence(Sequence(sequence));
            let past = opened.engine.moment(opened.store, &moment).expect("it is resolved");
            opened.engine.engine().at(&past).expect("it is opened")
        };
        let then = measure(arguments, &mut { at }, opened.store);
        rows.push(row(&[
            &name,
            &number(then.0),
            &number(then.0 / now.0),
            &number(then.1),
            &number(then.1 / now.1),
        ]));
    }
    print("Past (goal: at most 5 times the present)", &rows);
}

/// Returns how many milliseconds it takes to open the engine and list everything, and to read one memory
/// by its path.
fn measure(
    arguments: &Arguments,
    open: &mut dyn FnMut(u64) -> Engine,
    store: StoreId,
) -> (f64, f64) {
    let query = ListQuery {
        directory: Directory::root(),
        depth: None,
        after: None,
        limit: usize::MAX,
        view: View::Basic,
    };
    let (mut lists, mut reads) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        let begun = Instant::now();
        let engine = open(round);
        let listed_count = engine.list(store, &query).expect("it is listed").items.len();
        lists.push(begun.elapsed().as_secs_f64() * 1000.0);
        assert!(listed_count > 0, "the store is empty");
        let engine = open(round);
        let begun = Instant::now();
        for memory in 0..100 {
            // Another one each time: the present is answered from memory the second time.
            let path = engine::path((memory + round * 100) % arguments.memories);
            // At an early moment some are not there yet; looking for them is work too.
            let _is_there = engine.memory_at(store, &path, View::Full).is_ok();
        }
        reads.push(begun.elapsed().as_secs_f64() * 10.0);
    }
    (median(lists), median(reads))
}
