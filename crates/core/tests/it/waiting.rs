//! Engines that wait for nothing, or for no writer.

use std::sync::Arc;

use quipu_core::model::View;
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error, ErrorKind};
use quipu_testkit::InMemoryBackend;

use crate::quirks::{Quirk, QuirkyBackend};
use crate::support::{actor, content, fixture, fixture_over, kind, path};

#[test]
fn reads_that_need_the_disk_do_not_run_without_waiting() {
    let fixture = fixture_over(
        QuirkyBackend::new(Arc::new(InMemoryBackend::default()), Quirk::NeedsDisk),
        Limits::default(),
    );
    fixture.put("/a", "green");
    let read = |engine: &Engine| engine.memory_at(fixture.store, &path("/a"), View::Full);
    assert!(fixture.engine.without_waiting(read).is_none());
    assert!(fixture.engine.without_writing(read).unwrap().is_ok());
}

#[test]
fn a_change_is_refused_by_an_engine_that_cannot_write() {
    let fixture = fixture();
    let create =
        |engine: &Engine| engine.create(&actor(), fixture.store, &path("/a"), &content("green"));
    assert!(fixture.engine.without_waiting(create).is_none());
    assert!(fixture.engine.without_writing(create).is_none());
    assert_eq!(fixture.text("/a"), None);
}

#[test]
fn a_refusal_counts_even_if_the_work_swallows_it() {
    let fixture = fixture();
    let swallow = |engine: &Engine| {
        drop(engine.create(&actor(), fixture.store, &path("/a"), &content("green")));
        Ok(())
    };
    assert!(fixture.engine.without_writing(swallow).is_none());
}

#[test]
fn a_call_that_never_blocks_does_no_other_io_either() {
    let fixture = fixture();
    fixture.engine.require_blocking().unwrap();
    let blocking = |engine: &Engine| engine.require_blocking();
    assert!(fixture.engine.without_waiting(blocking).is_none());
    assert!(fixture.engine.without_writing(blocking).unwrap().is_ok());
    let condition = |engine: &Engine| engine.condition();
    assert!(fixture.engine.without_waiting(condition).is_none());
    assert!(fixture.engine.without_writing(condition).unwrap().is_ok());
}

type Call = fn(&Engine) -> Result<(), Error>;

#[test]
fn maintenance_is_refused_by_an_engine_that_cannot_write() {
    let fixture = fixture();
    let calls: [Call; 6] = [
        |engine| engine.backend().erase().map(drop),
        |engine| engine.backend().note_erased(&[]),
        |engine| engine.backend().verify().map(drop),
        |engine| engine.rebuild(),
        |engine| engine.backend().compact(),
        |engine| engine.backend().close(),
    ];
    for call in calls {
        assert!(fixture.engine.without_writing(call).is_none());
    }
    assert!(fixture.create("/a", "the backend is still open").is_ok());
}

#[test]
fn errors_of_allowed_reads_are_answers() {
    let fixture = fixture();
    let missing = |engine: &Engine| engine.memory_at(fixture.store, &path("/none"), View::Full);
    let answer = fixture.engine.without_waiting(missing).unwrap();
    assert_eq!(kind(answer), ErrorKind::NotFound);
}
