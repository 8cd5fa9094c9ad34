//! Keys.

use std::time::Duration;

use quipu_core::engine::{Derivation, NewDerivedKey, NewKey, Principal};
use quipu_core::model::{Forwarding, Id as _, Key, KeyId, KeyKind, KeySecret, Role, StoreId};
use quipu_core::{Clock as _, Error, ErrorKind};

use crate::support::{Fixture, fixture, kind, name};

fn new() -> NewKey {
    NewKey {
        name: name("ci"),
        role: Role::ReadWrite,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    }
}

fn holder(fixture: &Fixture, secret: &KeySecret) -> Option<KeyId> {
    match fixture.engine.principal(secret.reveal()).unwrap() {
        Some(Principal::Key(key)) => Some(key.id),
        Some(Principal::Session(_)) | None => None,
    }
}

fn create(fixture: &Fixture, new: &NewKey) -> Result<(Key, KeySecret), Error> {
    fixture.engine.create_key(fixture.workspace, new)
}

#[test]
fn a_secret_opens_its_key_and_nothing_else_does() {
    let fixture = fixture();
    let (key, secret) = create(&fixture, &new()).unwrap();
    let (other, other_secret) = create(&fixture, &new()).unwrap();
    assert_eq!(holder(&fixture, &secret), Some(key.id));
    assert_eq!(holder(&fixture, &other_secret), Some(other.id));
    assert!(fixture.engine.principal("").unwrap().is_none());
    assert!(fixture.engine.principal(&key.id.to_string()).unwrap().is_none());
}

#[test]
fn a_revoked_key_opens_nothing_at_once() {
    let fixture = fixture();
    let (key, secret) = create(&fixture, &new()).unwrap();
    let revoked = fixture.engine.revoke_key(key.id).unwrap();
    assert_eq!(holder(&fixture, &secret), None);
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.engine.revoke_key(key.id).unwrap(), revoked);
    assert_eq!(kind(fixture.engine.revoke_key(KeyId::from_bits(1))), ErrorKind::NotFound);
}

#[test]
fn an_expired_key_opens_nothing() {
    let fixture = fixture();
    let expires_at = Some(fixture.clock.now().plus(Duration::from_secs(10)));
    let (_, secret) = create(&fixture, &NewKey { expires_at, ..new() }).unwrap();
    assert!(holder(&fixture, &secret).is_some());
    fixture.clock.advance(Duration::from_secs(10));
    assert_eq!(holder(&fixture, &secret), None);
}

#[test]
fn a_key_may_open_some_stores_only() {
    let fixture = fixture();
    let stores = Some(vec![fixture.store]);
    let (key, _) = create(&fixture, &NewKey { stores, ..new() }).unwrap();
    assert!(key.opens(fixture.store));
    assert!(!key.opens(StoreId::from_bits(1)));
    let unknown = NewKey { stores: Some(vec![StoreId::from_bits(1)]), ..new() };
    assert_eq!(kind(create(&fixture, &unknown)), ErrorKind::NotFound);
}

#[test]
fn a_chosen_secret_can_be_used_once() {
    let fixture = fixture();
    let chosen = NewKey { secret: KeySecret::chosen("correct horse battery"), ..new() };
    let (key, secret) = create(&fixture, &chosen).unwrap();
    assert_eq!(secret.reveal(), "correct horse battery");
    assert_eq!(holder(&fixture, &secret), Some(key.id));
    assert_eq!(kind(create(&fixture, &chosen)), ErrorKind::InvalidInput);
    assert_eq!(fixture.engine.keys(fixture.workspace).unwrap().len(), 1);
}

#[test]
fn only_the_first_key_is_created_without_another() {
    let fixture = fixture();
    let (first, secret) =
        fixture.engine.create_first_key(fixture.workspace, &new()).unwrap().unwrap();
    assert_eq!(holder(&fixture, &secret), Some(first.id));
    assert!(fixture.engine.create_first_key(fixture.workspace, &new()).unwrap().is_none());
    fixture.engine.revoke_key(first.id).unwrap();
    let again = fixture.engine.create_first_key(fixture.workspace, &new()).unwrap();
    assert!(again.is_none(), "a revoked key is still a key");
}

#[test]
fn a_key_that_must_exist_is_created_once() {
    let fixture = fixture();
    let chosen = NewKey { secret: KeySecret::chosen("correct horse battery"), ..new() };
    for _ in 0..2 {
        fixture.engine.ensure_key(fixture.workspace, &chosen).unwrap();
    }
    assert_eq!(fixture.engine.keys(fixture.workspace).unwrap().len(), 1);
    // Without a chosen secret there is nothing to recognize it by.
    fixture.engine.ensure_key(fixture.workspace, &new()).unwrap();
    assert_eq!(fixture.engine.keys(fixture.workspace).unwrap().len(), 2);
}

#[test]
fn a_request_is_authorized_from_one_snapshot() {
    let fixture = fixture();
    let (key, secret) = create(&fixture, &new()).unwrap();
    let admit = |secret: &str, store| fixture.engine.admit(secret, store).unwrap();
    let (principal, store) = admit(secret.reveal(), Some(fixture.store));
    assert!(matches!(principal, Some(Principal::Key(found)) if found.id == key.id));
    assert_eq!(store.map(|store| store.id), Some(fixture.store));
    let (principal, store) = admit("a wrong secret", Some(fixture.store));
    assert!(principal.is_none() && store.is_some());
    let (principal, store) = admit(secret.reveal(), Some(StoreId::from_bits(1)));
    assert!(principal.is_some() && store.is_none());
    assert!(admit(secret.reveal(), None).1.is_none());
}

#[test]
fn a_principal_expires_with_its_secret() {
    let fixture = fixture();
    let expires_at = Some(fixture.clock.now().plus(Duration::from_secs(10)));
    let (_, secret) = create(&fixture, &NewKey { expires_at, ..new() }).unwrap();
    let principal = fixture.engine.principal(secret.reveal()).unwrap().unwrap();
    assert_eq!(principal.expires_at(), expires_at);
    let (_, secret) = create(&fixture, &new()).unwrap();
    let principal = fixture.engine.principal(secret.reveal()).unwrap().unwrap();
    assert_eq!(principal.expires_at(), None);
}

/// A stamp would take a number of the feed that no change uses.
#[test]
fn keys_and_sessions_take_no_place_in_the_feed() {
    let fixture = fixture();
    let before = fixture.engine.newest_sequence().unwrap();
    create(&fixture, &new()).unwrap();
    fixture.engine.create_workspace(&name("another")).unwrap();
    assert_eq!(fixture.engine.newest_sequence().unwrap(), before);
    fixture.put("/a", "text");
    assert_eq!(fixture.engine.newest_sequence().unwrap().0, before.0 + 1);
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn a_clock_far_ahead_creates_no_keys_either() {
    let fixture = fixture();
    fixture.put("/a", "text");
    fixture.clock.advance(Duration::from_hours(24 * 3650));
    assert_eq!(kind(create(&fixture, &new())), ErrorKind::StorageUnavailable);
}

#[test]
fn a_key_forwards_only_if_it_was_made_for_it_and_nothing_derived_from_it_does() {
    let fixture = fixture();
    let (plain, _) = create(&fixture, &new()).unwrap();
    assert_eq!(plain.forwarding, Forwarding::Denied);
    let (key, secret) =
        create(&fixture, &NewKey { forwarding: Forwarding::Allowed, ..new() }).unwrap();
    let principal = fixture.engine.principal(secret.reveal()).unwrap();
    assert!(
        matches!(principal, Some(Principal::Key(found)) if found.forwarding == Forwarding::Allowed)
    );
    let browser = NewDerivedKey {
        kind: KeyKind::Browser,
        name: name("ada"),
        role: key.role,
        stores: None,
        expires_at: fixture.engine.now().plus(Duration::from_hours(1)),
        payload: None,
    };
    let (derived, _) = fixture.engine.derive_key(Derivation::Key(key.id), &browser).unwrap();
    assert_eq!(derived.forwarding, Forwarding::Denied);
}
