//! What is read through a mount does not expire.

use std::time::Duration;

use quipu_core::engine::StoreUpdate;
use quipu_core::model::StorePolicy;

use crate::support::{Bench, ME, READ, bench};

const DAY: Duration = Duration::from_hours(24);

/// Returns a store that deletes what nobody has used for a week, with two files that are known already.
fn expiring() -> Bench {
    let bench = bench();
    let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    bench.engine.update_store(bench.store, &update).unwrap();
    for at in ["/read.md", "/unused.md"] {
        bench.put(at, "green");
        bench.follow();
        assert_eq!(bench.text(at).as_deref(), Some("green"));
    }
    bench.clock.advance(DAY * 6);
    bench
}

fn assert_kept(bench: &Bench) {
    bench.clock.advance(DAY * 2);
    bench.engine.prune().unwrap();
    bench.follow();
    assert_eq!(bench.list("/"), ["read.md"]);
}

#[test]
fn a_file_that_is_read_does_not_expire() {
    let bench = expiring();
    assert_eq!(bench.text("/read.md").as_deref(), Some("green"));
    assert_kept(&bench);
}

#[test]
fn a_file_that_the_kernel_has_kept_does_not_expire_when_it_is_opened() {
    let bench = expiring();
    let found = bench.lookup("/read.md").unwrap();
    let opened = bench.tree.open(found.ino, READ, ME).unwrap();
    assert!(opened.is_unchanged, "the kernel reads its own copy");
    bench.tree.release(opened.handle);
    assert_kept(&bench);
}
