//! One redaction in a large database, and its effect on concurrent writers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::model::{VersionId, View};

use crate::engine::{self, Opened};
use crate::table::{number, print, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many megabytes of text the database holds
    #[arg(long, default_value_t = 100)]
    megabytes: u64,
    /// How many redactions are measured
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Leave the search index empty
    #[arg(long)]
    without_index: bool,
}

const SIZE_BYTES: u64 = 2048;
const WRITERS: u64 = 4;

pub(crate) fn run(arguments: &Arguments) {
    let opened = engine::open();
    let memories = arguments.megabytes * 1_000_000 / SIZE_BYTES;
    opened.fill(memories, |memory| text(memory, 0));
    if !arguments.without_index {
        opened.engine.follow(None).expect("it indexes");
    }
    println!("{} MB of texts in {memories} memories", arguments.megabytes);
    let alone = redactions(&opened, arguments.rounds);
    let (busy, writes) = beside_writers(&opened, memories, arguments.rounds);
    let vacuum = vacuum(&opened);
    print(
        "Redaction",
        &[
            row(&[&"milliseconds", &"median", &"worst", &"goal"]),
            row(&[&"one redaction", &median(&alone), &worst(&alone), &"150"]),
            row(&[&"one redaction beside 4 writers", &median(&busy), &worst(&busy), &"-"]),
            row(&[
                &"other writers meanwhile, p99",
                &percentile(&writes, 99),
                &worst(&writes),
                &"50",
            ]),
            row(&[&"bare VACUUM of the same file", &number(vacuum), &"-", &"-"]),
        ],
    );
}

fn text(memory: u64, round: u64) -> String {
    let mut state = memory.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(round);
    let mut text = String::new();
    while text.len() < usize::try_from(SIZE_BYTES).unwrap_or(usize::MAX) {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        // Few words are common and many are rare, as in real notes.
        let word = (state >> 33) % (1 << (4 + (state >> 60)));
        text.push_str(&format!("w{word:x} "));
    }
    text
}

/// Overwrites a memory and returns its previous version.
fn leak(opened: &Opened, round: usize) -> VersionId {
    let round = u64::try_from(round).unwrap_or_default();
    let id = opened.put(7, text(7, 1000 + 2 * round));
    let version = opened.engine.memory(opened.store, id, View::Basic).expect("it is there").version;
    opened.put(7, text(7, 1001 + 2 * round));
    version
}

fn redactions(opened: &Opened, rounds: usize) -> Vec<Duration> {
    (0..rounds)
        .map(|round| {
            let version = leak(opened, round);
            let start = Instant::now();
            opened.engine.redact(&opened.actor, opened.store, &[version]).expect("it redacts");
            start.elapsed()
        })
        .collect()
}

fn beside_writers(opened: &Opened, memories: u64, rounds: usize) -> (Vec<Duration>, Vec<Duration>) {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let is_done = &is_done;
                scope.spawn(move || {
                    let mut took = Vec::new();
                    let mut memory = writer * memories / WRITERS;
                    while !is_done.load(Ordering::Relaxed) {
                        memory = (memory + 1) % memories;
                        let start = Instant::now();
                        opened.put(memory, text(memory, 99));
                        took.push(start.elapsed());
                    }
                    took
                })
            })
            .collect();
        let redactions = redactions(opened, rounds);
        is_done.store(true, Ordering::Relaxed);
        let writes = writers.into_iter().flat_map(|writer| writer.join().expect("it writes"));
        (redactions, writes.collect())
    })
}

fn vacuum(opened: &Opened) -> f64 {
    let database = opened.directory.path().join(quipu_sqlite::DATABASE_FILE);
    let copy = opened.directory.path().join("copy.db");
    std::fs::copy(database, &copy).expect("it is copied");
    let connection = rusqlite::Connection::open(&copy).expect("it opens");
    let start = Instant::now();
    connection.execute_batch("VACUUM").expect("it is rebuilt");
    start.elapsed().as_secs_f64() * 1e3
}

fn percentile(times: &[Duration], percent: usize) -> String {
    let mut times = times.to_vec();
    times.sort();
    let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(index).map_or_else(|| "-".to_owned(), |time| number(time.as_secs_f64() * 1e3))
}

fn median(times: &[Duration]) -> String {
    percentile(times, 50)
}

fn worst(times: &[Duration]) -> String {
    percentile(times, 100)
}
