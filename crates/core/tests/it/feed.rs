//! The change feed.

use std::time::Duration;

use quipu_core::backend::{Event, Sequence};
use quipu_core::engine::{NewKey, NewSession, Position, SessionUpdate, TokenWish};
use quipu_core::model::Role;

use crate::support::{Bench, actor, bench, name, path};

#[test]
fn every_change_is_in_the_feed_in_order_and_without_gaps() {
    let bench = bench();
    let first = bench.put("/a", "1");
    let second = bench.put("/a", "2");
    bench.put("/a", "2");
    bench.engine.redact(&actor(), bench.store, &[first.version]).unwrap();
    bench.engine.archive_store(bench.store).unwrap();
    let deleted = bench.engine.delete_at(&actor(), bench.store, &path("/a")).unwrap();
    bench.engine.delete_store(bench.store).unwrap();
    let changes = bench.engine.changes(Sequence(0), 100).unwrap();
    let events: Vec<_> = changes.iter().map(|change| change.event).collect();
    assert_eq!(
        events,
        [
            Event::StoreCreated,
            Event::Version(first.version),
            Event::Version(second.version),
            Event::Redacted(first.version),
            Event::StoreArchived,
            Event::Version(deleted.versions[0].id),
            Event::StoreDeleted,
        ]
    );
    let numbers: Vec<_> = changes.iter().map(|change| change.sequence.0).collect();
    assert_eq!(numbers, (1..=7).collect::<Vec<_>>());
    assert!(changes.is_sorted_by(|left, right| left.at < right.at));
}

#[test]
fn a_refused_change_is_not_in_the_feed() {
    let bench = bench();
    bench.put("/a", "1");
    let before = bench.engine.newest_sequence().unwrap();
    bench.create("/a", "2").unwrap_err();
    bench.engine.rename(&actor(), bench.store, &path("/x"), &path("/y")).unwrap_err();
    assert_eq!(bench.engine.wait(before, Duration::ZERO).unwrap(), before);
}

#[test]
fn news_say_whose_a_change_is_and_where_a_memory_was() {
    let bench = bench();
    bench.put("/a", "1");
    bench.put("/a", "2");
    bench.engine.rename(&actor(), bench.store, &path("/a"), &path("/b")).unwrap();
    let news = bench.engine.news(Sequence(1), 100).unwrap();
    assert!(news.iter().all(|news| news.workspace == Some(bench.workspace)));
    let places: Vec<_> = news
        .iter()
        .map(|news| (news.version.as_ref().unwrap().path.clone(), news.moved_from.clone()))
        .collect();
    let (old, new) = (Some(path("/a")), Some(path("/b")));
    assert_eq!(places, [(old.clone(), None), (old.clone(), None), (new, old)]);
    bench.engine.delete_store(bench.store).unwrap();
    let news = bench.engine.news(Sequence(1), 100).unwrap();
    assert!(news.iter().all(|news| news.workspace.is_none() && news.version.is_none()));
}

fn position(bench: &Bench) -> Position {
    bench.engine.wait_beyond(Position::default(), Duration::ZERO).unwrap()
}

#[test]
fn a_credential_that_stops_to_work_ends_a_wait_and_is_no_change() {
    let bench = bench();
    let engine = &bench.engine;
    let new = NewKey {
        name: name("key"),
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: None,
    };
    let (key, _) = engine.create_key(bench.workspace, &new).unwrap();
    let new = NewSession::titled("agent", Vec::new(), TokenWish::Issue);
    let session = || engine.create_session(bench.workspace, &new).unwrap().0.id;
    let (archived, deleted, renewed) = (session(), session(), session());
    let update = SessionUpdate { title: Some("other".to_owned()), ..SessionUpdate::default() };
    let losses: [&dyn Fn(); 4] = [
        &|| drop(engine.revoke_key(key.id).unwrap()),
        &|| drop(engine.archive_session(archived).unwrap()),
        &|| engine.delete_session(deleted).unwrap(),
        &|| drop(engine.renew_token(renewed).unwrap()),
    ];
    let newest = position(&bench).newest;
    for lose in losses {
        let before = position(&bench);
        lose();
        let after = engine.wait_beyond(before, Duration::from_secs(30)).unwrap();
        assert_ne!(after.credentials_lost, before.credentials_lost);
        assert_eq!(after.newest, newest);
    }
    let before = position(&bench);
    engine.revoke_key(key.id).unwrap();
    engine.archive_session(archived).unwrap();
    engine.update_session(renewed, &update).unwrap();
    assert_eq!(engine.wait_beyond(before, Duration::ZERO).unwrap(), before);
}
