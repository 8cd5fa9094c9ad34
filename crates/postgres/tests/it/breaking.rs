//! Connections that break at random, under several writers. `QUIPU_TEST_CUTS=10000` makes as many writes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::model::View;
use quipu_postgres::{Listening, PostgresSettings};

use crate::failing::{assert_sound, versions_count};
use crate::proxy::{self, Cut, Packet, Proxy, Side};
use crate::support::{Server, actor, fixture, path};

const WRITERS: usize = 6;

/// Numbers that look random and are the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("it is small") % end
    }

    fn one_of<T: Copy, const COUNT: usize>(&mut self, choices: [T; COUNT]) -> T {
        *choices.get(self.below(COUNT)).expect("it is below their number")
    }

    fn cut(&mut self) -> Cut {
        Cut {
            from: self.one_of([Side::Client, Side::Server]),
            at: 1 + self.below(40),
            packet: self.one_of([Packet::Lost, Packet::Half, Packet::Delivered]),
            server: if self.below(20) == 0 { proxy::Server::Waiting } else { proxy::Server::Told },
        }
    }
}

/// What became of the writes.
#[derive(Default)]
struct Tally {
    acknowledged: Mutex<Vec<String>>,
    refused: Mutex<Vec<String>>,
    unknown: Mutex<Vec<String>>,
}

impl Tally {
    fn note(&self, at: &str, written: Result<(), quipu_core::Error>) {
        let list = match written {
            Ok(()) => &self.acknowledged,
            Err(error) if error.message().contains("could not be determined") => &self.unknown,
            Err(error) => {
                let expected = [ErrorKind::StorageUnavailable, ErrorKind::StorageBusy];
                assert!(expected.contains(error.kind()), "{error:?}");
                &self.refused
            }
        };
        list.lock().expect("no panic").push(at.to_owned());
    }
}

#[expect(clippy::print_stdout, reason = "how much was broken is worth a look")]
#[test]
fn connections_that_break_at_random_lose_and_duplicate_nothing() {
    let fixture = fixture();
    let proxy = Proxy::start();
    let settings = PostgresSettings {
        listening: Listening::On,
        lock_timeout: Duration::from_millis(1500),
        statement_timeout: Duration::from_secs(3),
        ..proxy.settings(fixture.database.name())
    };
    let server = Server::open(&settings);
    let (tally, is_over, cuts_count) =
        (Tally::default(), AtomicBool::new(false), AtomicUsize::new(0));
    let rounds = writes_count() / WRITERS;
    thread::scope(|scope| {
        let cutting = scope.spawn(|| {
            let mut draw = Draw(1);
            while !is_over.load(Ordering::SeqCst) {
                let cut = draw.cut();
                proxy.arm(&[cut]);
                while proxy.broken_count() == 0 && !is_over.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                cuts_count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let writers = (0..WRITERS).map(|writer| {
            let (server, tally) = (&server, &tally);
            scope.spawn(move || {
                for round in 0..rounds {
                    write(server, fixture.store, (writer, round), tally);
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        for writer in writers {
            writer.join().expect("no panic");
        }
        is_over.store(true, Ordering::SeqCst);
        cutting.join().expect("no panic");
    });
    proxy.arm(&[]);
    let count = |list: &Mutex<Vec<String>>, allowed: &[usize]| {
        let list = list.lock().expect("no panic");
        for at in list.iter() {
            let found = versions_count(&fixture.server, fixture.store, at);
            assert!(allowed.contains(&found), "{at} has {found} versions");
        }
        list.len()
    };
    let acknowledged = count(&tally.acknowledged, &[1]);
    let refused = count(&tally.refused, &[0]);
    let unknown = count(&tally.unknown, &[0, 1]);
    println!(
        "{acknowledged} acknowledged, all found once; {refused} refused, none found; {unknown} unknown; \
         {} connections broken",
        cuts_count.into_inner()
    );
    assert!(acknowledged > 0);
    assert_sound(&fixture.server);
}

fn write(
    server: &Server,
    store: quipu_core::model::StoreId,
    (writer, round): (usize, usize),
    tally: &Tally,
) {
    let at = format!("/{writer}/{round}");
    let written = server.put(store, &at, "text");
    let is_written = written.is_ok();
    tally.note(&at, written.map(drop));
    if !is_written {
        return;
    }
    match round % 8 {
        0 => {
            // A read may fail; it never says that something is missing.
            if let Err(error) = server.engine.memory_at(store, &path(&at), View::Full) {
                assert_ne!(*error.kind(), ErrorKind::NotFound, "{error:?}");
            }
        }
        1 => {
            let other = server.put(store, &format!("/{writer}/redacted"), &at);
            let again = server.put(store, &format!("/{writer}/redacted"), "nothing");
            if let (Ok(other), Ok(_)) = (other, again) {
                // It may be refused at any point, and is finished below.
                let redacted = server.engine.redact(&actor(), store, &[other.memory.version]);
                redacted.map(drop).unwrap_or_default();
            }
        }
        _ => {}
    }
}

/// `QUIPU_TEST_CUTS` asks for more.
#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn writes_count() -> usize {
    std::env::var("QUIPU_TEST_CUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}
