//! Keys.

use std::time::Duration;

use quipu_core::engine::{NewKey, Principal};
use quipu_core::model::{Id as _, Key, KeyId, KeySecret, Role, StoreId};
use quipu_core::{Clock as _, Error, ErrorKind};

use crate::support::{Bench, bench, kind, name};

fn new() -> NewKey {
    NewKey { name: name("ci"), role: Role::ReadWrite, stores: None, expires_at: None, secret: None }
}

fn holder(bench: &Bench, secret: &KeySecret) -> Option<KeyId> {
    match bench.engine.principal(secret.reveal()).unwrap() {
        Some(Principal::Key(key)) => Some(key.id),
        Some(Principal::Session(_)) | None => None,
    }
}

fn create(bench: &Bench, new: &NewKey) -> Result<(Key, KeySecret), Error> {
    bench.engine.create_key(bench.workspace, new)
}

#[test]
fn a_secret_opens_its_key_and_nothing_else_does() {
    let bench = bench();
    let (key, secret) = create(&bench, &new()).unwrap();
    let (other, other_secret) = create(&bench, &new()).unwrap();
    assert_eq!(holder(&bench, &secret), Some(key.id));
    assert_eq!(holder(&bench, &other_secret), Some(other.id));
    assert!(bench.engine.principal("").unwrap().is_none());
    assert!(bench.engine.principal(&key.id.to_string()).unwrap().is_none());
}

#[test]
fn a_revoked_key_opens_nothing_at_once() {
    let bench = bench();
    let (key, secret) = create(&bench, &new()).unwrap();
    let revoked = bench.engine.revoke_key(key.id).unwrap();
    assert_eq!(holder(&bench, &secret), None);
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(bench.engine.revoke_key(key.id).unwrap(), revoked);
    assert_eq!(kind(bench.engine.revoke_key(KeyId::from_bits(1))), ErrorKind::NotFound);
}

#[test]
fn an_expired_key_opens_nothing() {
    let bench = bench();
    let expires_at = Some(bench.clock.now().plus(Duration::from_secs(10)));
    let (_, secret) = create(&bench, &NewKey { expires_at, ..new() }).unwrap();
    assert!(holder(&bench, &secret).is_some());
    bench.clock.advance(Duration::from_secs(10));
    assert_eq!(holder(&bench, &secret), None);
}

#[test]
fn a_key_may_open_some_stores_only() {
    let bench = bench();
    let stores = Some(vec![bench.store]);
    let (key, _) = create(&bench, &NewKey { stores, ..new() }).unwrap();
    assert!(key.opens(bench.store));
    assert!(!key.opens(StoreId::from_bits(1)));
    let unknown = NewKey { stores: Some(vec![StoreId::from_bits(1)]), ..new() };
    assert_eq!(kind(create(&bench, &unknown)), ErrorKind::NotFound);
}

#[test]
fn a_chosen_secret_can_be_used_once() {
    let bench = bench();
    let chosen = NewKey { secret: KeySecret::chosen("correct horse battery"), ..new() };
    let (key, secret) = create(&bench, &chosen).unwrap();
    assert_eq!(secret.reveal(), "correct horse battery");
    assert_eq!(holder(&bench, &secret), Some(key.id));
    assert_eq!(kind(create(&bench, &chosen)), ErrorKind::InvalidInput);
    assert_eq!(bench.engine.keys(bench.workspace).unwrap().len(), 1);
}
