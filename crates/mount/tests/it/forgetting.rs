//! Redacted text that comes back through a mount.

use quipu_core::engine::{Heads, Pattern, Scope, Selection, StoreUpdate, Terms};
use quipu_core::model::{Actor, ForgottenPolicy, StorePolicy, Writers};
use quipu_mount::TreeError;

use crate::support::fixture;

#[test]
fn a_store_that_refuses_redacted_text_refuses_it_in_a_mount_too() {
    let fixture = fixture();
    fixture.write("/a", b"the word is sesame-4711").unwrap();
    let store = fixture.engine.store(fixture.store).unwrap();
    let selection =
        Selection { pattern: Some(Pattern::text("sesame-4711").unwrap()), ..Selection::default() };
    let terms = Terms { heads: Heads::TakeOut, ..Terms::default() };
    let actor = Actor::expiry();
    fixture.engine.redact_selected(&actor, &Scope::store(&store), &selection, &terms).unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("the word is [redacted]"));

    fixture.write("/warned", b"sesame-4711 again").unwrap();
    let policy = StorePolicy { forgotten: ForgottenPolicy::Refuse, ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    fixture.engine.update_store(fixture.store, &update).unwrap();
    assert_eq!(fixture.write("/refused", b"sesame-4711 again"), Err(TreeError::Refused));
    assert_eq!(fixture.write("/a", b"sesame-4711"), Err(TreeError::Refused));
    assert_eq!(fixture.text("/a").as_deref(), Some("the word is [redacted]"));
}

#[test]
fn a_store_that_is_reserved_for_people_refuses_changes_in_a_mount() {
    let fixture = fixture();
    fixture.write("/a", b"the rule").unwrap();
    let policy = StorePolicy { writers: Writers::People, ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    fixture.engine.update_store(fixture.store, &update).unwrap();
    assert!(fixture.write("/a", b"mine").is_err());
    assert!(fixture.write("/new", b"mine").is_err());
    assert!(fixture.remove("/a").is_err());
    assert!(fixture.rename("/a", "/b").is_err());
    assert_eq!(fixture.text("/a").as_deref(), Some("the rule"));
}
