//! A store as it was.

use std::sync::Arc;
use std::time::Duration;

use quipu_core::backend::Sequence;
use quipu_core::engine::Precondition;
use quipu_core::model::{Timestamp, View};
use quipu_core::settings::Limits;
use quipu_core::{Clock, Engine, ErrorKind, Moment};
use quipu_testkit::past::{Size, run};
use quipu_testkit::{InMemoryBackend, ManualClock};

use crate::support::{Fixture, actor, content, fixture, fixture_with, kind, path};

#[test]
fn the_past_is_what_a_replayed_log_says() {
    for seed in 1..8 {
        let size = Size { operations_count: 600, moments_count: 60 };
        let complete_count = run(Arc::new(InMemoryBackend::default()), seed, size);
        assert!(complete_count > 0, "no moment is above the horizon");
    }
}

fn refusal(fixture: &Fixture, moment: &Moment) -> String {
    let error = fixture.engine.moment(fixture.store, moment).unwrap_err();
    format!("{error}; {}", error.hint().unwrap_or_default())
}

#[test]
fn moments_outside_of_the_history_are_refused() {
    let fixture = fixture();
    let future = Moment::Time(fixture.engine.now().plus(Duration::from_secs(1)));
    assert!(refusal(&fixture, &future).contains("is in the future; the latest moment is now"));
    let before = Moment::Time("2020-01-01".parse().unwrap());
    assert!(refusal(&fixture, &before).contains("did not exist at `2020"));
    let newest = fixture.engine.newest_sequence().unwrap().0;
    let refused = refusal(&fixture, &Moment::Sequence(Sequence(newest + 1)));
    assert!(refused.contains(&format!("the newest change is `#{newest}`")), "{refused}");
    let zero = fixture.engine.moment(fixture.store, &Moment::Sequence(Sequence(0)));
    assert_eq!(kind(zero), ErrorKind::NotFound);
    let other = fixture.new_store("other", quipu_core::model::StorePolicy::default()).id;
    let version = fixture.put("/a", "1").version;
    let elsewhere = fixture.engine.moment(other, &Moment::Version(version));
    assert_eq!(kind(elsewhere), ErrorKind::NotFound);
}

#[test]
fn a_sequence_a_version_and_a_time_name_the_same_state() {
    let fixture = fixture();
    fixture.put("/a", "1");
    let middle = fixture.put("/a", "2");
    let sequence = fixture.engine.newest_sequence().unwrap();
    fixture.put("/a", "3");
    for moment in [
        Moment::Sequence(sequence),
        Moment::Version(middle.version),
        Moment::Time(middle.updated_at),
    ] {
        let past = fixture.engine.moment(fixture.store, &moment).unwrap();
        let memory = fixture
            .engine
            .at(&past)
            .unwrap()
            .memory_at(fixture.store, &path("/a"), View::Full)
            .unwrap();
        assert_eq!(memory.content.unwrap().as_str(), "2", "{moment}");
        assert_eq!(memory.version, middle.version);
    }
}

/// A change that is stamped before the moment but committed after it was resolved must not appear later.
#[test]
fn a_moment_that_is_now_does_not_move() {
    let fixture = fixture();
    fixture.put("/a", "1");
    let now = fixture.engine.now();
    fixture.clock.advance(Duration::from_secs(5));
    let past = fixture.engine.moment(fixture.store, &Moment::Time(fixture.engine.now())).unwrap();
    let engine = fixture.engine.at(&past).unwrap();
    // The other process's clock is behind.
    fixture.clock.set(now);
    fixture.put("/a", "2");
    let memory = engine.memory_at(fixture.store, &path("/a"), View::Full).unwrap();
    assert_eq!(memory.content.unwrap().as_str(), "1");
}

/// Returns the paths of a store at a moment.
fn paths_at(fixture: &Fixture, moment: &Moment) -> Vec<String> {
    let past = fixture.engine.moment(fixture.store, moment).unwrap();
    let tree = fixture.engine.at(&past).unwrap().tree(fixture.store).unwrap();
    tree.iter().map(|memory| memory.path.to_string()).collect()
}

fn paths_in(directory: &str) -> Vec<String> {
    (0..6).map(|number| format!("/{directory}/{number}")).collect()
}

/// Each version has a moment of its own, but half of a moved directory was never there.
#[test]
fn a_time_is_never_in_the_middle_of_a_transaction() {
    let fixture = fixture();
    for path in paths_in("old") {
        fixture.put(&path, "text");
    }
    fixture.clock.advance(Duration::from_secs(1));
    let moved =
        fixture.engine.rename(&actor(), fixture.store, &path("/old"), &path("/new")).unwrap();
    let last = moved.last().unwrap().memory.updated_at;
    let newest = fixture.engine.newest_sequence().unwrap().0;
    fixture.clock.advance(Duration::from_secs(1));
    let later = fixture.engine.now();
    let mut time = moved.first().unwrap().memory.updated_at;
    while time < last {
        assert_eq!(paths_at(&fixture, &Moment::Time(time)), paths_in("old"), "{time}");
        time = time.next();
    }
    assert_eq!(paths_at(&fixture, &Moment::Time(last)), paths_in("new"));
    assert_eq!(paths_at(&fixture, &Moment::Time(later)), paths_in("new"));
    // The next transaction does not take this one back.
    fixture.put("/new/0", "other");
    assert_eq!(paths_at(&fixture, &Moment::Time(last)), paths_in("new"));

    // Versions and places in the feed are exact, and what they were resolved to stays that.
    let third = moved[2].memory.version;
    for moment in [Moment::Version(third), Moment::Sequence(Sequence(newest - 3))] {
        let paths = [&paths_in("new")[..3], &paths_in("old")[3..]].concat();
        assert_eq!(paths_at(&fixture, &moment), paths, "{moment}");
        let at = fixture.engine.moment(fixture.store, &moment).unwrap().at;
        assert_eq!(paths_at(&fixture, &Moment::Resolved(at)), paths, "{moment}");
    }
}

/// A clock that goes on by a second with each stamp, as in a transaction that takes long.
#[derive(Debug)]
struct SlowClock(Arc<ManualClock>);

impl Clock for SlowClock {
    fn now(&self) -> Timestamp {
        self.0.advance(Duration::from_secs(1));
        self.0.now()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.0.fill_random(bytes);
    }
}

/// What was read at a time while a transaction was going on is what is read there after it.
#[test]
fn a_long_transaction_is_in_the_past_from_its_end_on() {
    let mut fixture = fixture();
    for path in paths_in("old") {
        fixture.put(&path, "text");
    }
    fixture.clock.advance(Duration::from_secs(1));
    let slow = Arc::new(SlowClock(Arc::clone(&fixture.clock)));
    let begin = fixture.clock.now();
    let engine = Engine::new(Arc::clone(fixture.engine.backend()), slow, Limits::default());
    let moved = engine.rename(&actor(), fixture.store, &path("/old"), &path("/new")).unwrap();
    let last = moved.last().unwrap().memory.updated_at;
    assert!(last >= begin.plus(Duration::from_secs(6)));
    // Nothing that is known from before helps.
    fixture.engine = engine;
    let mut time = begin;
    while time < last {
        assert_eq!(paths_at(&fixture, &Moment::Time(time)), paths_in("old"), "{time}");
        time = time.plus(Duration::from_millis(500));
    }
    assert_eq!(paths_at(&fixture, &Moment::Time(last)), paths_in("new"));
}

/// Where the feed is trimmed, nothing says what belongs together.
#[test]
fn a_time_before_the_feed_begins_stays_as_it_is() {
    let limits = Limits { versions_kept_for: Duration::ZERO, ..Limits::default() };
    let fixture = fixture_with(limits);
    for path in paths_in("old") {
        fixture.put(&path, "text");
    }
    let moved =
        fixture.engine.rename(&actor(), fixture.store, &path("/old"), &path("/new")).unwrap();
    let third = moved[2].memory.updated_at;
    assert_eq!(paths_at(&fixture, &Moment::Time(third)), paths_in("old"));
    fixture.clock.advance(Duration::from_secs(1));
    fixture.engine.prune().unwrap();
    let past = fixture.engine.moment(fixture.store, &Moment::Time(third)).unwrap();
    assert_eq!(past.at, third);
}

#[test]
fn the_past_is_read_only() {
    let fixture = fixture();
    fixture.put("/a", "1");
    let past = fixture.engine.moment(fixture.store, &Moment::Time(fixture.engine.now())).unwrap();
    let engine = fixture.engine.at(&past).unwrap();
    let written =
        engine.put(&actor(), fixture.store, (&path("/a"), &content("2")), Precondition::None);
    assert_eq!(kind(written), ErrorKind::StoreArchived);
    let removed = engine.delete_at(&actor(), fixture.store, &path("/a"));
    assert_eq!(kind(removed), ErrorKind::StoreArchived);
    assert!(engine.store(fixture.store).unwrap().archived_at.is_some());
    assert!(fixture.engine.store(fixture.store).unwrap().archived_at.is_none());
    assert_eq!(fixture.text("/a").as_deref(), Some("1"));
}

#[test]
fn an_engine_of_the_past_knows_no_other_store() {
    let fixture = fixture();
    let other = fixture.new_store("other", quipu_core::model::StorePolicy::default()).id;
    fixture.engine.create(&actor(), other, &path("/b"), &content("1")).unwrap();
    let past = fixture.engine.moment(fixture.store, &Moment::Time(fixture.engine.now())).unwrap();
    let engine = fixture.engine.at(&past).unwrap();
    assert_eq!(kind(engine.store(other)), ErrorKind::NotFound);
    assert_eq!(kind(engine.memory_at(other, &path("/b"), View::Full)), ErrorKind::NotFound);
}

/// An engine of the past that is already open forgets what is redacted, and shows what is pruned as
/// missing.
#[test]
fn a_redaction_reaches_an_open_past() {
    let fixture = fixture();
    let secret = fixture.put("/a", "secret");
    let past = fixture.engine.moment(fixture.store, &Moment::Version(secret.version)).unwrap();
    let engine = fixture.engine.at(&past).unwrap();
    let usage = || engine.usage(fixture.store).unwrap().memories_count;
    assert_eq!(usage(), 1);
    fixture.put("/a", "public");
    assert_eq!(usage(), 1);
    fixture.engine.redact(&actor(), fixture.store, &[secret.version]).unwrap();
    assert_eq!(usage(), 0);
    assert_eq!(kind(engine.memory_at(fixture.store, &path("/a"), View::Full)), ErrorKind::NotFound);
    let redacted = fixture.engine.redacted_at(&past).unwrap();
    assert_eq!(redacted.iter().map(|it| it.id).collect::<Vec<_>>(), [secret.version]);
}

#[test]
fn what_retention_gave_up_is_declared() {
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 1, ..Limits::default() };
    let fixture = fixture_with(limits);
    let first = fixture.put("/a", "1");
    let moment = Moment::Time(first.updated_at);
    let past = fixture.engine.moment(fixture.store, &moment).unwrap();
    assert!(past.is_complete());
    let engine = fixture.engine.at(&past).unwrap();
    assert_eq!(engine.usage(fixture.store).unwrap().memories_count, 1);
    let second = fixture.put("/a", "2");
    fixture.clock.advance(Duration::from_secs(1));
    fixture.engine.prune().unwrap();
    let past = fixture.engine.moment(fixture.store, &moment).unwrap();
    assert!(!past.is_complete());
    assert_eq!(past.horizon, Some(second.updated_at));
    assert_eq!(engine.usage(fixture.store).unwrap().memories_count, 0);
    let now = fixture.engine.moment(fixture.store, &Moment::Version(second.version)).unwrap();
    assert!(now.is_complete());
}

/// Page after page is read by another engine of the past each time, which must not read the whole store
/// again, nor share what was redacted since.
#[test]
fn engines_of_the_same_moment_share_what_they_read() {
    let fixture = fixture();
    let secret = fixture.put("/a", "secret");
    fixture.put("/b", "other");
    let moment = Moment::Sequence(fixture.engine.newest_sequence().unwrap());
    let paths = || {
        let past = fixture.engine.moment(fixture.store, &moment).unwrap();
        let tree = fixture.engine.at(&past).unwrap().tree(fixture.store).unwrap();
        tree.iter().map(|memory| memory.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(paths(), ["/a", "/b"]);
    // Other moments push it out, one after the other.
    for number in 0..12 {
        let version = fixture.put("/c", &number.to_string()).version;
        let past = fixture.engine.moment(fixture.store, &Moment::Version(version)).unwrap();
        assert_eq!(fixture.engine.at(&past).unwrap().tree(fixture.store).unwrap().len(), 3);
    }
    assert_eq!(paths(), ["/a", "/b"]);
    fixture.put("/a", "public");
    fixture.engine.redact(&actor(), fixture.store, &[secret.version]).unwrap();
    assert_eq!(paths(), ["/b"]);
}

/// Who may read one store learns nothing about when others change.
#[test]
fn a_moment_shows_no_time_of_another_store() {
    let fixture = fixture();
    let other = fixture.new_store("other", quipu_core::model::StorePolicy::default()).id;
    let own = fixture.put("/a", "1");
    fixture.clock.advance(Duration::from_mins(1));
    fixture.engine.create(&actor(), other, &path("/b"), &content("1")).unwrap();
    let newest = fixture.engine.newest_sequence().unwrap();
    for moment in [Moment::Sequence(newest), Moment::Time(fixture.engine.now())] {
        let past = fixture.engine.moment(fixture.store, &moment).unwrap();
        assert_eq!(past.at, own.updated_at, "{moment}");
    }
}

/// What is shared between stores is the moment, and not the last change of the first one.
#[test]
fn a_shared_moment_means_the_same_for_every_store() {
    let fixture = fixture();
    let other = fixture.new_store("other", quipu_core::model::StorePolicy::default()).id;
    fixture.put("/a", "1");
    fixture.engine.create(&actor(), other, &path("/b"), &content("1")).unwrap();
    let moment = Moment::Sequence(fixture.engine.newest_sequence().unwrap());
    fixture.engine.create(&actor(), other, &path("/c"), &content("1")).unwrap();
    let shared = fixture.engine.shared_moment(fixture.store, &moment).unwrap();
    let past = fixture.engine.moment(other, &shared).unwrap();
    assert_eq!(fixture.engine.at(&past).unwrap().tree(other).unwrap().len(), 1);
}
