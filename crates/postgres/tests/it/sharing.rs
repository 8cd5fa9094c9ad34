//! Several servers on one database.

use std::collections::HashSet;
use std::thread;

use quipu_core::backend::{Change, Sequence};
use quipu_core::model::View;

use crate::support::{Fixture, Server, fixture, path};

/// How many writers each server has.
const WRITERS: usize = 16;

fn servers(fixture: &Fixture, count: usize) -> Vec<Server> {
    (0..count).map(|_| Server::open(&fixture.database.settings())).collect()
}

/// Runs `work` in so many threads for each server; it gets the numbers of the server and of the thread.
fn in_threads(servers: &[Server], threads: usize, work: impl Fn(&Server, usize, usize) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for (number, server) in servers.iter().enumerate() {
            for thread in 0..threads {
                scope.spawn(move || work(server, number, thread));
            }
        }
    });
}

fn all_changes(server: &Server) -> Vec<Change> {
    let (mut changes, mut after) = (Vec::new(), Sequence(0));
    loop {
        let page = server.engine.changes(after, 1_000).expect("they are read");
        assert!(!page.has_gap);
        let Some(last) = page.items.last() else { return changes };
        after = last.sequence;
        changes.extend(page.items);
    }
}

#[test]
fn a_write_takes_three_round_trips() {
    let fixture = fixture();
    let write = |number: usize| {
        let before = fixture.server.backend.round_trips_count();
        fixture
            .server
            .put(fixture.store, &format!("/notes/{number}"), "text")
            .expect("it is written");
        fixture.server.backend.round_trips_count() - before
    };
    // Preparing the statements takes more, once for each connection.
    for number in 0..20 {
        write(number);
    }
    assert_eq!(write(20), 3);
}

#[test]
fn increments_of_three_servers_are_exact() {
    const INCREMENTS: usize = 10;
    let fixture = fixture();
    let paths = ["/one", "/two", "/three"];
    for at in paths {
        fixture.server.put(fixture.store, at, "0").expect("it is written");
    }
    let servers = servers(&fixture, 3);
    in_threads(&servers, WRITERS, |server, _, thread| {
        for turn in 0..INCREMENTS {
            let at = paths[(thread + turn) % paths.len()];
            server.increment(fixture.store, at).expect("it is written");
        }
    });
    let counts = paths.map(|at| {
        let memory = fixture.server.engine.memory_at(fixture.store, &path(at), View::Full);
        memory.expect("it is there").content.expect("it is full").as_str().parse::<usize>().unwrap()
    });
    assert_eq!(counts.iter().sum::<usize>(), 3 * WRITERS * INCREMENTS);
    assert_eq!(fixture.server.engine.check().expect("it is checked").problems, []);
}

#[test]
fn the_feed_has_no_gap_and_is_equal_for_each_follower() {
    let fixture = fixture();
    let servers = servers(&fixture, 3);
    let stores: Vec<_> = (0..6).map(|n| servers[n % 3].new_store(&format!("store {n}"))).collect();
    let followed: Vec<Vec<Change>> = thread::scope(|scope| {
        let goal = 1 + stores.len() + 3 * 6 * 8;
        let following: Vec<_> = servers
            .iter()
            .map(|server| {
                scope.spawn(move || {
                    let mut seen: Vec<Change> = Vec::new();
                    while seen.len() < goal {
                        let after = seen.last().map_or(Sequence(0), |change| change.sequence);
                        let timeout = std::time::Duration::from_secs(30);
                        assert!(server.engine.wait(after, timeout).expect("it waits") > after);
                        seen.extend(server.engine.changes(after, 100).expect("it reads").items);
                    }
                    seen
                })
            })
            .collect();
        in_threads(&servers, 6, |server, number, thread| {
            for turn in 0..8 {
                let store = stores[(number + thread + turn) % stores.len()];
                let at = format!("/{number}/{thread}/{turn}");
                server.put(store, &at, "text").expect("it is written");
            }
        });
        following.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let all = all_changes(&fixture.server);
    let expected: Vec<_> = (1..).take(all.len()).collect();
    assert_eq!(all.iter().map(|change| change.sequence.0).collect::<Vec<_>>(), expected);
    assert!(all.is_sorted_by(|left, right| left.at < right.at));
    for seen in followed {
        assert_eq!(seen, all);
    }
}

#[test]
fn a_thousand_stores_are_written_at_once() {
    let fixture = fixture();
    let servers = servers(&fixture, 3);
    let new = (1..1_000).map(|n| fixture.server.new_store(&format!("store {n}")));
    let stores: Vec<_> = new.chain([fixture.store]).collect();
    in_threads(&servers, WRITERS, |server, number, thread| {
        let mine = stores.iter().skip(number * WRITERS + thread).step_by(3 * WRITERS);
        for store in mine {
            server.put(*store, "/note", "text").expect("it is written");
        }
    });
    let written: HashSet<_> = all_changes(&fixture.server)
        .iter()
        .filter(|change| matches!(change.event, quipu_core::backend::Event::Version(_)))
        .map(|change| change.store)
        .collect();
    assert_eq!(written, stores.into_iter().collect());
}

/// A rename that fails in its middle has changed rows already; the other members of its group do not notice.
#[test]
fn a_failure_in_the_middle_of_one_write_does_not_harm_the_others() {
    let fixture = fixture();
    let store = fixture.store;
    fixture.server.put(store, "/a/1", "x").expect("it is written");
    fixture.server.put(store, &format!("/a/{}", "y".repeat(1000)), "x").expect("it is written");
    let too_long = path(&format!("/{}", "z".repeat(40)));
    in_threads(std::slice::from_ref(&fixture.server), 6, |server, _, thread| {
        for turn in 0..30 {
            if thread == 0 {
                let actor = crate::support::actor();
                assert!(server.engine.rename(&actor, store, &path("/a"), &too_long).is_err());
            } else {
                server.put(store, &format!("/{thread}/{turn}"), "x").expect("it is written");
            }
        }
    });
    let usage = fixture.server.engine.usage(store).expect("it is read");
    assert_eq!(usage.memories_count, 5 * 30 + 2);
    assert_eq!(fixture.server.engine.check().expect("it is checked").problems, []);
    let changes = all_changes(&fixture.server);
    assert_eq!(changes.last().map(|change| change.sequence.0), Some(changes.len() as u64));
}

#[test]
fn a_panic_in_one_write_does_not_harm_the_others() {
    let fixture = fixture();
    let store = fixture.store;
    fixture.server.put(store, "/counter", "0").expect("it is written");
    in_threads(std::slice::from_ref(&fixture.server), 4, |server, _, thread| {
        for turn in 0..25 {
            let explode = thread == 0 && turn % 5 == 0;
            let add_one = |_: &_, text: &str| {
                assert!(!explode, "on purpose");
                let count: usize = text.parse().expect("a number");
                Ok::<_, quipu_core::Error>((count + 1).to_string())
            };
            let actor = crate::support::actor();
            let edit = || server.engine.edit(&actor, store, &path("/counter"), add_one);
            let edited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(edit));
            assert_eq!(edited.is_err(), explode);
        }
    });
    let memory = fixture.server.engine.memory_at(store, &path("/counter"), View::Full);
    assert_eq!(memory.unwrap().content.unwrap().as_str(), "95");
}
