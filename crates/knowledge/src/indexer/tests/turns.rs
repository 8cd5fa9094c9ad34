use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::super::turn::{Asked, Turn};

const LONG: Duration = Duration::from_mins(1);

#[test]
fn whoever_comes_first_leads() {
    let turn = Turn::default();
    for _ in 0..3 {
        let asked = turn.lead_or_follow(Duration::ZERO);
        assert!(matches!(asked, Asked::Leads(_)), "the turn was given back");
    }
}

#[test]
fn a_follower_returns_when_its_leader_is_done() {
    let turn = Turn::default();
    let leader = turn.lead_or_follow(LONG);
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let turn = &turn;
        scope.spawn(move || {
            tell.send(()).unwrap();
            assert!(matches!(turn.lead_or_follow(LONG), Asked::Followed | Asked::Leads(_)));
        });
        told.recv().unwrap();
        drop(leader);
    });
}

/// A build takes minutes, so nobody waits for it.
#[test]
fn nobody_follows_a_builder() {
    let turn = Turn::default();
    let builder = turn.build();
    assert!(matches!(turn.lead_or_follow(LONG), Asked::GaveUp));
    drop(builder);
    assert!(matches!(turn.lead_or_follow(LONG), Asked::Leads(_)));
}

#[test]
fn a_builder_waits_for_the_leader() {
    let turn = Turn::default();
    let is_leading = AtomicUsize::new(1);
    let leader = turn.lead_or_follow(LONG);
    thread::scope(|scope| {
        let builder = scope.spawn(|| {
            let _builder = turn.build();
            is_leading.load(Ordering::SeqCst)
        });
        is_leading.store(0, Ordering::SeqCst);
        drop(leader);
        assert_eq!(builder.join().unwrap(), 0);
    });
}

/// Whatever happens, two threads never write at once, and everybody comes to lead.
#[test]
fn there_is_one_writer_at_a_time() {
    let turn = Turn::default();
    let writers = AtomicUsize::new(0);
    let write = || {
        assert_eq!(writers.fetch_add(1, Ordering::SeqCst), 0, "another thread writes");
        thread::yield_now();
        writers.fetch_sub(1, Ordering::SeqCst);
    };
    let build = || {
        let _builder = turn.build();
        write();
    };
    let lead = || {
        loop {
            match turn.lead_or_follow(LONG) {
                Asked::Leads(_leader) => return write(),
                Asked::Followed | Asked::GaveUp => thread::yield_now(),
            }
        }
    };
    thread::scope(|scope| {
        // Only one thread builds, as `index.lock` sees to it.
        scope.spawn(|| (0..5).for_each(|_| build()));
        for _ in 0..5 {
            scope.spawn(|| (0..20).for_each(|_| lead()));
        }
    });
    assert!(matches!(turn.lead_or_follow(Duration::ZERO), Asked::Leads(_)));
}
