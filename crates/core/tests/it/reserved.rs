//! Stores that are reserved for people.

use quipu_core::ErrorKind;
use quipu_core::engine::{MemoryUpdate, NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, Id as _, KeyId, MemoryPath, Name, PrincipalName, SessionId, StoreId,
    StorePolicy, Writers,
};

use crate::support::{Fixture, fixture};

fn ada() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

fn reserved(fixture: &Fixture) -> StoreId {
    let policy = StorePolicy { writers: Writers::People, ..StorePolicy::default() };
    let new = NewStore { policy, ..NewStore::named(Name::new("rules").unwrap()) };
    fixture.engine.create_store(fixture.workspace, &new).unwrap().id
}

#[test]
fn no_change_by_a_session_or_an_unknown_key_is_made() {
    let fixture = fixture();
    let store = reserved(&fixture);
    let (engine, path) = (&fixture.engine, MemoryPath::parse("/r.md").unwrap());
    let text = |text: &str| Content::new(text).unwrap();
    let rule = engine.create(&ada(), store, &path, &text("one")).unwrap().memory;
    engine.put(&ada(), store, (&path, &text("two")), Precondition::None).unwrap();
    for actor in [Actor::Session(SessionId::from_bits(1)), Actor::ApiKey(KeyId::from_bits(2))] {
        let other = MemoryPath::parse("/s.md").unwrap();
        let update = MemoryUpdate { path: Some(other.clone()), ..MemoryUpdate::default() };
        let refusals = [
            engine.create(&actor, store, &other, &text("x")).map(drop),
            engine.put(&actor, store, (&path, &text("x")), Precondition::None).map(drop),
            engine.update(&actor, store, rule.id, &update).map(drop),
            engine
                .edit(&actor, store, &path, |_, old| Ok::<_, quipu_core::Error>(format!("{old}x")))
                .map(drop),
            engine.rename(&actor, store, &path, &other).map(drop),
            engine.delete(&actor, store, rule.id, Precondition::None).map(drop),
            engine.delete_at(&actor, store, &path).map(drop),
            engine.restore(&actor, store, rule.version, None).map(drop),
            engine.redact(&actor, store, &[rule.version]).map(drop),
        ];
        for (number, refused) in refusals.into_iter().enumerate() {
            let error = refused.expect_err("it is refused");
            assert_eq!(*error.kind(), ErrorKind::AccessDenied, "{number}: {error}");
        }
    }
    let now = engine.memory(store, rule.id, quipu_core::model::View::Full).unwrap();
    assert_eq!((now.path, now.content.unwrap().as_str()), (path, "two"));
}

#[test]
fn what_expires_by_its_policy_expires() {
    let fixture = fixture();
    let store = reserved(&fixture);
    let path = MemoryPath::parse("/r.md").unwrap();
    fixture.engine.create(&ada(), store, &path, &Content::new("x").unwrap()).unwrap();
    fixture.engine.delete_at(&Actor::expiry(), store, &path).unwrap();
}
