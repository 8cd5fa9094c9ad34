//! What a store does with texts that hold credentials.

use quipu_core::ErrorKind;
use quipu_core::engine::{Effect, Precondition, Written};
use quipu_core::model::{SecretPolicy, StorePolicy, View};

use crate::support::{actor, content, fixture, kind, path};

/// Returns a text with a credential in its second line, made here so that no source holds one.
fn leaky() -> String {
    let body: String = (0..36_u8).map(|n| char::from(b'a' + n * 7 % 26)).collect();
    format!("# Deploy\nuse ghp_{body} for the push\n")
}

fn write(policy: SecretPolicy, text: &str) -> Result<Written, quipu_core::Error> {
    let fixture = fixture();
    let policy = StorePolicy { secrets: policy, ..StorePolicy::default() };
    let store = fixture.new_store("screened", policy).id;
    let written = fixture.engine.create(&actor(), store, &path("/a"), &content(text))?;
    let stored = fixture.engine.memory_at(store, &path("/a"), View::Full)?;
    assert_eq!(stored.content, written.memory.content);
    Ok(written)
}

fn text(written: &Written) -> &str {
    written.memory.content.as_ref().unwrap().as_str()
}

#[test]
fn off_screens_nothing() {
    let written = write(SecretPolicy::Off, &leaky()).unwrap();
    assert_eq!((text(&written), written.findings.len()), (leaky().as_str(), 0));
}

#[test]
fn warn_stores_the_text_and_names_kind_and_line() {
    let written = write(SecretPolicy::Warn, &leaky()).unwrap();
    assert_eq!(text(&written), leaky());
    assert_eq!(written.findings.len(), 1);
    assert_eq!(written.findings[0].line, 2);
}

#[test]
fn redact_stores_the_text_without_the_credential() {
    let written = write(SecretPolicy::Redact, &leaky()).unwrap();
    assert!(!text(&written).contains("ghp_"), "{}", text(&written));
    assert!(text(&written).starts_with("# Deploy\nuse [redacted"));
    assert!(text(&written).ends_with("] for the push\n"));
    assert_eq!(written.findings.len(), 1);
    assert_eq!(written.memory.hash, content(text(&written)).hash());
}

#[test]
fn reject_refuses_and_never_repeats_the_credential() {
    let error = write(SecretPolicy::Reject, &leaky()).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::SecretRefused);
    assert!(error.message().contains("line 2"), "{error}");
    assert!(!format!("{error:?}").contains("ghp_"));
    assert!(write(SecretPolicy::Reject, "nothing to hide\n").is_ok());
}

#[test]
fn every_way_to_write_is_screened() {
    let fixture = fixture();
    let policy = StorePolicy { secrets: SecretPolicy::Reject, ..StorePolicy::default() };
    let store = fixture.new_store("screened", policy).id;
    let at = path("/a");
    fixture.engine.create(&actor(), store, &at, &content("clean")).unwrap();
    let leaky = content(&leaky());
    let put = fixture.engine.put(&actor(), store, (&at, &leaky), Precondition::None);
    assert_eq!(kind(put), ErrorKind::SecretRefused);
    let append = |_: &_, _: &str| Ok::<_, quipu_core::Error>(leaky.as_str().to_owned());
    let edited = fixture.engine.edit(&actor(), store, &at, append);
    assert_eq!(kind(edited), ErrorKind::SecretRefused);
}

#[test]
fn writing_a_redacted_text_again_changes_nothing() {
    let fixture = fixture();
    let policy = StorePolicy { secrets: SecretPolicy::Redact, ..StorePolicy::default() };
    let store = fixture.new_store("screened", policy).id;
    let put = || {
        let target = (&path("/a"), &content(&leaky()));
        fixture.engine.put(&actor(), store, target, Precondition::None).unwrap().effect
    };
    assert_eq!(put(), Effect::Created);
    assert_eq!(put(), Effect::Unchanged);
}

#[test]
fn a_memory_that_is_only_moved_is_not_refused_for_its_old_text() {
    let fixture = fixture();
    let store = fixture.new_store("lenient", StorePolicy::default());
    fixture.engine.create(&actor(), store.id, &path("/a"), &content(&leaky())).unwrap();
    let strict = quipu_core::engine::StoreUpdate {
        policy: Some(StorePolicy { secrets: SecretPolicy::Reject, ..StorePolicy::default() }),
        ..quipu_core::engine::StoreUpdate::default()
    };
    fixture.engine.update_store(store.id, &strict).unwrap();
    assert!(fixture.engine.rename(&actor(), store.id, &path("/a"), &path("/b")).is_ok());
}
