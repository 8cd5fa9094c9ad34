//! The change feed.

use std::time::Duration;

use quipu_core::backend::{Event, Sequence};
use quipu_core::engine::{Changes, NewKey, NewSession, Position, SessionToken, SessionUpdate};
use quipu_core::model::Role;

use crate::support::{Fixture, actor, fixture, name, path};

#[test]
fn every_change_is_in_the_feed_in_order_and_without_gaps() {
    let fixture = fixture();
    let first = fixture.put("/a", "1");
    let second = fixture.put("/a", "2");
    fixture.put("/a", "2");
    fixture.engine.redact(&actor(), fixture.store, &[first.version]).unwrap();
    fixture.engine.archive_store(fixture.store).unwrap();
    let deleted = fixture.engine.delete_at(&actor(), fixture.store, &path("/a")).unwrap();
    fixture.engine.delete_store(fixture.store).unwrap();
    let changes = fixture.engine.changes(Sequence(0), 100).unwrap();
    assert!(!changes.has_gap);
    let events: Vec<_> = changes.items.iter().map(|change| change.event).collect();
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
    let numbers: Vec<_> = changes.items.iter().map(|change| change.sequence.0).collect();
    assert_eq!(numbers, (1..=7).collect::<Vec<_>>());
    assert!(changes.items.is_sorted_by(|left, right| left.at < right.at));
}

#[test]
fn a_refused_change_is_not_in_the_feed() {
    let fixture = fixture();
    fixture.put("/a", "1");
    let before = fixture.engine.newest_sequence().unwrap();
    fixture.create("/a", "2").unwrap_err();
    fixture.engine.rename(&actor(), fixture.store, &path("/x"), &path("/y")).unwrap_err();
    assert_eq!(fixture.engine.wait(before, Duration::ZERO).unwrap(), before);
}

#[test]
fn feed_entries_have_the_workspace_and_the_old_path() {
    let fixture = fixture();
    fixture.put("/a", "1");
    fixture.put("/a", "2");
    fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")).unwrap();
    let news = fixture.engine.feed_entries(Sequence(1), 100).unwrap().items;
    assert!(news.iter().all(|news| news.workspace == Some(fixture.workspace)));
    let places: Vec<_> = news
        .iter()
        .map(|news| (news.version.as_ref().unwrap().path.clone(), news.moved_from.clone()))
        .collect();
    let (old, new) = (Some(path("/a")), Some(path("/b")));
    assert_eq!(places, [(old.clone(), None), (old.clone(), None), (new, old)]);
    fixture.engine.delete_store(fixture.store).unwrap();
    let news = fixture.engine.feed_entries(Sequence(1), 100).unwrap().items;
    assert!(news.iter().all(|news| news.workspace == Some(fixture.workspace)));
    assert!(news.iter().all(|news| news.version.is_none()));
}

fn position(fixture: &Fixture) -> Position {
    fixture.engine.wait_beyond(Position::default(), Duration::ZERO).unwrap()
}

#[test]
fn a_revocation_ends_a_wait_and_is_not_a_change() {
    let fixture = fixture();
    let engine = &fixture.engine;
    let new = NewKey {
        name: name("key"),
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: quipu_core::model::Forwarding::Denied,
    };
    let (key, _) = engine.create_key(fixture.workspace, &new).unwrap();
    let new = NewSession::titled("agent", Vec::new(), SessionToken::Issue);
    let session = || engine.create_session(fixture.workspace, &new).unwrap().0.id;
    let (archived, deleted, renewed) = (session(), session(), session());
    let update = SessionUpdate { title: Some("other".to_owned()), ..SessionUpdate::default() };
    let losses: [&dyn Fn(); 4] = [
        &|| drop(engine.revoke_key(key.id).unwrap()),
        &|| drop(engine.archive_session(archived).unwrap()),
        &|| engine.delete_session(deleted).unwrap(),
        &|| drop(engine.renew_token(renewed, None).unwrap()),
    ];
    let newest = position(&fixture).newest;
    for lose in losses {
        let before = position(&fixture);
        lose();
        let after = engine.wait_beyond(before, Duration::from_secs(30)).unwrap();
        assert_ne!(after.credentials_lost, before.credentials_lost);
        assert_eq!(after.newest, newest);
    }
    let before = position(&fixture);
    engine.revoke_key(key.id).unwrap();
    engine.archive_session(archived).unwrap();
    engine.update_session(renewed, &update).unwrap();
    assert_eq!(engine.wait_beyond(before, Duration::ZERO).unwrap(), before);
}

#[test]
fn a_follower_that_was_away_too_long_finds_a_gap() {
    let fixture = fixture();
    for number in 0..5 {
        fixture.put("/a", &number.to_string());
    }
    fixture.clock.advance(Duration::from_hours(24 * 31));
    fixture.put("/a", "new");
    fixture.engine.prune().unwrap();
    let newest = fixture.engine.newest_sequence().unwrap();
    let oldest = fixture.engine.read(|reader| reader.oldest_change()).unwrap().unwrap().0;
    assert_eq!((oldest, newest), (Sequence(7), Sequence(7)));
    for (seen, has_gap) in [(0, true), (5, true), (6, false)] {
        let changes = fixture.engine.changes(Sequence(seen), 10).unwrap();
        assert_eq!(changes.has_gap, has_gap);
        assert_eq!(changes.items[0].sequence, oldest);
    }
    let nothing = Changes { items: Vec::new(), has_gap: false };
    assert_eq!(fixture.engine.changes(newest, 10).unwrap(), nothing);
}

#[test]
fn followers_keep_their_place_under_their_names() {
    let fixture = fixture();
    let before = fixture.engine.newest_sequence().unwrap();
    assert_eq!(fixture.engine.cursor("mirror").unwrap(), None);
    for reached in [3, 9, 4] {
        fixture.engine.keep_cursor("mirror", Sequence(reached)).unwrap();
        assert_eq!(fixture.engine.cursor("mirror").unwrap(), Some(Sequence(reached)));
    }
    assert_eq!(fixture.engine.cursor("other").unwrap(), None);
    assert_eq!(fixture.engine.newest_sequence().unwrap(), before, "a place is not a change");
}

#[test]
fn entries_of_pruned_and_redacted_versions_are_still_delivered() {
    let fixture = fixture();
    let first = fixture.put("/a", "1");
    fixture.put("/a", "2");
    fixture.engine.redact(&actor(), fixture.store, &[first.version]).unwrap();
    let entries = fixture.engine.feed_entries(Sequence(1), 10).unwrap().items;
    assert_eq!(entries.len(), 3);
    let redacted = entries[0].version.as_ref().unwrap();
    assert_eq!((redacted.path.as_ref(), redacted.redaction.is_some()), (None, true));
    assert_eq!(entries[1].moved_from, None, "a path that is not known any more is no move");
    assert!(entries[2].version.is_none() && entries[2].workspace.is_some());
}
