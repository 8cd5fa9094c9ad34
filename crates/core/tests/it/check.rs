//! The check finds what is broken. Each case breaks one thing behind the engine's back.

use std::sync::Arc;

use quipu_core::Backend as _;
use quipu_core::backend::{Commit, Purpose, Writer};
use quipu_core::engine::{CheckReport, Remedy};
use quipu_core::model::{Memory, Operation, Version, View};
use quipu_core::settings::Limits;
use quipu_testkit::InMemoryBackend;

use crate::support::{Fixture, content, fixture_over, path};

/// Changes rows behind the engine's back.
type Damage = dyn Fn(&mut dyn Writer, &Memory, &Version);

/// Returns the problems with canonical rows that the check finds after `damage`.
fn problems(damage: &Damage) -> Vec<String> {
    let backend = Arc::new(InMemoryBackend::default());
    let fixture = fixture_over(Arc::clone(&backend) as _, Limits::default());
    fixture.put("/a", "one");
    let memory = fixture.put("/a", "two");
    let version =
        fixture.engine.version(fixture.store, memory.version, View::Full).expect("it is there");
    assert_eq!(report(&fixture).problems, []);
    backend
        .write(Purpose::Change, &mut |writer| {
            damage(writer, &memory, &version);
            Ok(())
        })
        .expect("the damage is done");
    let problems = report(&fixture).problems.into_iter();
    let canonical = problems.filter(|problem| problem.remedy == Remedy::None);
    canonical.map(|problem| problem.message).collect()
}

fn report(fixture: &Fixture) -> CheckReport {
    fixture.engine.check().expect("the check runs")
}

/// Makes a commit that claims to follow the newest one.
fn next(writer: &dyn Writer, version: Version, after: Option<Memory>) -> Commit {
    let sequence =
        quipu_core::backend::Sequence(writer.newest_change().expect("it is read").0.0 + 1);
    Commit { sequence, transaction: sequence, version, before: None, after }
}

#[track_caller]
fn assert_one(problems: &[String], part: &str) {
    assert!(matches!(problems, [only] if only.contains(part)), "{problems:?}");
}

#[test]
fn a_text_that_does_not_have_its_hash() {
    let found = problems(&|writer, memory, version| {
        let changed = Version { content: Some(content("tampered")), ..version.clone() };
        let mut commit = next(writer, changed, Some(memory.clone()));
        commit.sequence = writer.newest_change().unwrap().0;
        writer.commit(&commit).unwrap();
    });
    assert_one(&found, "does not have its hash");
}

#[test]
fn a_memory_that_is_not_at_its_newest_version() {
    let found = problems(&|writer, memory, version| {
        let at = version.created_at.next();
        let id = quipu_core::model::Id::new(at, 1);
        let newer = Version { id, created_at: at, ..version.clone() };
        writer.commit(&next(writer, newer, Some(memory.clone()))).unwrap();
    });
    assert_one(&found, "is not at its newest version");
}

#[test]
fn a_memory_that_differs_from_its_version() {
    let found = problems(&|writer, memory, version| {
        let moved = Memory { path: path("/elsewhere"), ..memory.clone() };
        let mut commit = next(writer, version.clone(), Some(moved));
        commit.before = Some(memory.clone());
        commit.sequence = writer.newest_change().unwrap().0;
        writer.commit(&commit).unwrap();
    });
    assert_one(&found, "differs from its newest version");
}

#[test]
fn a_memory_that_is_gone_without_a_deletion() {
    let found = problems(&|writer, memory, version| {
        let mut commit = next(writer, version.clone(), None);
        commit.before = Some(memory.clone());
        commit.sequence = writer.newest_change().unwrap().0;
        writer.commit(&commit).unwrap();
    });
    assert_one(&found, "is gone without a deletion");
}

#[test]
fn a_memory_below_another() {
    let found = problems(&|writer, memory, version| {
        let at = version.created_at.next();
        let lower = Memory {
            id: quipu_core::model::Id::new(at, 1),
            version: quipu_core::model::Id::new(at, 2),
            path: path("/a/b"),
            ..memory.clone()
        };
        let created = Version {
            id: lower.version,
            memory: lower.id,
            operation: Operation::Created,
            path: Some(lower.path.clone()),
            created_at: at,
            ..version.clone()
        };
        writer.commit(&next(writer, created, Some(lower))).unwrap();
    });
    assert_one(&found, "`/a/b` lies below the memory `/a`");
}

#[test]
fn a_gap_in_the_feed_and_a_moment_that_goes_back() {
    let found = problems(&|writer, memory, _| {
        let (newest, at) = writer.newest_change().unwrap();
        let change = quipu_core::backend::Change {
            sequence: quipu_core::backend::Sequence(newest.0 + 2),
            transaction: quipu_core::backend::Sequence(newest.0 + 2),
            at,
            store: memory.store,
            event: quipu_core::backend::Event::StoreUpdated,
        };
        writer.record(&change).unwrap();
    });
    assert_eq!(found.len(), 2);
    assert!(found[0].contains("the feed jumps from 3 to 5"));
    assert!(found[1].contains("is not later than the one before"));
}

#[test]
fn a_version_that_the_feed_does_not_know() {
    let found = problems(&|writer, memory, version| {
        let (newest, at) = writer.newest_change().unwrap();
        let change = quipu_core::backend::Change {
            sequence: newest,
            transaction: newest,
            at,
            store: memory.store,
            event: quipu_core::backend::Event::Redacted(version.id),
        };
        writer.record(&change).unwrap();
    });
    assert_one(&found, "is not in the change feed");
}

/// Replaces a version, and its memory with it, in place of the newest change.
fn replace(writer: &mut dyn Writer, version: Version, memory: Option<&Memory>) {
    let mut commit = next(writer, version, memory.cloned());
    commit.sequence = writer.newest_change().unwrap().0;
    writer.commit(&commit).unwrap();
}

#[test]
fn a_text_that_does_not_have_its_size() {
    let found = problems(&|writer, memory, version| {
        let changed = Version { size_bytes: Some(99), ..version.clone() };
        replace(writer, changed, Some(&Memory { size_bytes: 99, ..memory.clone() }));
    });
    assert_one(&found, "does not have its size");
}

#[test]
fn a_text_that_is_missing_and_one_that_should_not_be_there() {
    let found = problems(&|writer, memory, version| {
        replace(writer, Version { content: None, ..version.clone() }, Some(memory));
    });
    assert_one(&found, "is missing");
    let found = problems(&|writer, memory, version| {
        let deleted = Version { operation: Operation::Deleted, ..version.clone() };
        let mut commit = next(writer, deleted, None);
        commit.before = Some(memory.clone());
        commit.sequence = writer.newest_change().unwrap().0;
        writer.commit(&commit).unwrap();
    });
    assert_one(&found, "has a text, but should have none");
}

#[test]
fn a_path_that_is_missing_without_a_redaction() {
    let found = problems(&|writer, memory, version| {
        replace(writer, Version { path: None, ..version.clone() }, Some(memory));
    });
    assert!(
        found.iter().any(|problem| problem.contains("does not fit its redaction")),
        "{found:?}"
    );
}

#[test]
fn a_memory_without_any_version() {
    let found = problems(&|writer, memory, version| {
        let stranger = Memory {
            id: quipu_core::model::Id::new(version.created_at, 77),
            path: path("/stranger"),
            ..memory.clone()
        };
        replace(writer, version.clone(), Some(&stranger));
    });
    assert_one(&found, "has no version");
}

#[test]
fn progress_is_reported_and_counts_everything() {
    let fixture = fixture_over(Arc::new(InMemoryBackend::default()), Limits::default());
    for number in 0..600 {
        fixture.put(&format!("/{number}"), "text");
    }
    let calls = std::cell::RefCell::new(Vec::new());
    let progress = |report: &CheckReport| {
        calls.borrow_mut().push((report.changes_count, report.versions_count));
    };
    let report = fixture.engine.check_with(&progress).unwrap();
    assert_eq!((report.stores_count, report.memories_count), (1, 600));
    assert_eq!((report.changes_count, report.versions_count), (601, 600));
    let calls = calls.into_inner();
    assert!(calls.len() >= 5, "{calls:?}");
    assert!(calls.is_sorted());
}
