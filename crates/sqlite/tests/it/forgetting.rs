//! Redaction by content: no byte of it in any file, wherever it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use quipu_core::ErrorKind;
use quipu_core::clock::{Clock as _, SystemClock};
use quipu_core::engine::{
    DefinitionContent, Heads, NewAttachment, NewSession, NewSessionEvent, Pattern, Precondition,
    Scope, Selection, SessionToken, StoreUpdate, Terms,
};
use quipu_core::model::{
    Access, DefinitionKind, Description, EventType, Instructions, Metadata, Name, Receipt, Refusal,
    StoreId, View,
};
use quipu_knowledge::{Knowledge, SearchRequest};

use crate::support::{Files, Fixture, actor, content, engine, fixture, new_store, path};

fn canary() -> String {
    format!("{:032x}", SystemClock.random())
}

fn scope(engine: &Knowledge) -> Scope {
    Scope::all(engine.default_workspace().expect("a workspace").id)
}

fn and_heads() -> Terms {
    Terms { heads: Heads::TakeOut, ..Terms::default() }
}

fn matching(token: &str) -> Selection<'_> {
    let pattern = Pattern::text(token).expect("it is not empty");
    Selection { pattern: Some(pattern), ..Selection::default() }
}

fn assert_gone(fixture: &Fixture, token: &str) {
    let tail = token.get(8..).expect("a long token");
    assert_eq!(Files::read(fixture.directory.path()).with(tail), Vec::<&str>::new());
    assert_eq!(fixture.engine.check().expect("the check runs").problems, []);
}

fn put(engine: &Knowledge, store: StoreId, at: &str, text: &str) {
    let target = (&path(at), &content(text));
    engine.put(&actor(), store, target, Precondition::None).expect("it is written");
}

/// Puts a token wherever text can be, in two stores.
fn leak(fixture: &Fixture, token: &str) -> StoreId {
    let note = |token: &str| {
        format!(
            "---\ntitle: {token}\ntags: [{token}]\nkey: {token}\n---\n# {token}\n\nsee [[{token}]], \
             [link]({token}.md) and `{token}` end\n"
        )
    };
    fixture.put("/old.md", &note(token));
    fixture.put("/old.md", "clean now");
    fixture.put("/head.md", &note(token));
    fixture.put(&format!("/{token}/note.md"), "by its path");
    fixture.put("/long.md", &format!("{token}\n").repeat(2000));
    fixture.put(&format!("/gone-{token}.md"), &note(token));
    let gone = path(&format!("/gone-{token}.md"));
    fixture.engine.delete_at(&actor(), fixture.store, &gone).expect("it is deleted");
    let copy = new_store(&fixture.engine, "copy");
    put(&fixture.engine, copy, "/copied.md", &note(token));
    let refusal = Refusal {
        store: fixture.store,
        at: fixture.engine.now(),
        path: format!("/refused/{token}"),
        actor: actor(),
        reason: format!("`{token}` is not valid"),
    };
    fixture.engine.note_refusal(&refusal).expect("it is noted");
    describe(fixture, token);
    // The index has all of it too.
    fixture.engine.follow(None).expect("it indexes");
    copy
}

fn describe(fixture: &Fixture, token: &str) {
    let update = StoreUpdate {
        description: Some(Description::new(format!("about {token}")).expect("it is short")),
        metadata: [("team".to_owned(), Some(token.to_owned()))].into(),
        ..StoreUpdate::default()
    };
    fixture.engine.update_store(fixture.store, &update).expect("it is updated");
    let attachment = NewAttachment {
        store: fixture.store,
        access: Access::ReadWrite,
        instructions: Instructions::new(format!("use {token}")).expect("it is short"),
    };
    let title = format!("agent of {token}");
    let new = NewSession {
        metadata: Metadata::new([(token.to_owned(), token.to_owned())].into()).expect("a pair"),
        details: format!("{{\"name\": \"{token}\"}}"),
        ..NewSession::titled(&title, vec![attachment], SessionToken::None)
    };
    let workspace = scope(&fixture.engine).workspace;
    let events = [said(token), said("harmless")];
    let events = (&actor(), &events[..]);
    fixture.engine.create_session_with_events(workspace, &new, events).expect("a session");
    let agent = DefinitionContent {
        name: Name::new(format!("agent {token}")).expect("it is short"),
        metadata: Metadata::new([("team".to_owned(), token.to_owned())].into()).expect("a pair"),
        body: content(&format!("{{\"system\": \"say {token}\"}}")),
    };
    let kind = DefinitionKind::Agent;
    fixture.engine.create_definition(workspace, kind, &agent).expect("an agent");
}

fn said(text: &str) -> NewSessionEvent {
    let kind = EventType::new("user.message").expect("a valid type");
    NewSessionEvent { kind, body: content(&format!("{{\"text\": \"{text}\"}}")) }
}

fn forget(fixture: &Fixture, token: &str) -> Receipt {
    let engine = &fixture.engine;
    engine
        .redact_selected(&actor(), &scope(engine), &matching(token), &and_heads())
        .expect("it redacts")
}

fn hits_left(receipt: &Receipt) -> Option<u64> {
    receipt.proof.as_ref().and_then(|proof| proof.hits_left)
}

#[test]
fn a_canary_in_every_place_is_in_no_file_afterwards() {
    let fixture = fixture();
    let token = canary();
    leak(&fixture, &token);
    assert!(Files::read(fixture.directory.path()).with(&token).len() > 1);
    let engine = &fixture.engine;
    let planned =
        engine.plan_redaction(&scope(engine), &matching(&token), Heads::TakeOut).expect("a plan");
    let receipt = forget(&fixture, &token);
    assert_gone(&fixture, &token);
    assert_eq!(receipt.versions.len(), planned.versions_count());
    assert_eq!(receipt.heads.len(), planned.heads_count());
    assert_eq!(receipt.sessions.len(), planned.sessions.len());
    assert_eq!((receipt.versions.len(), receipt.heads.len(), receipt.sessions.len()), (7, 4, 1));
    assert_eq!(hits_left(&receipt), Some(0));
    let proof = receipt.proof.expect("a proof");
    let names: Vec<_> = proof.scanned.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["quipu.db", "index.db"]);
    assert!(proof.scanned.iter().all(|file| file.size_bytes > 0));
    let request = SearchRequest::new(vec![fixture.store], token.as_str());
    assert_eq!(fixture.engine.search(&request).expect("it searches").hits.len(), 0);
    assert_eq!(fixture.engine.receipt(receipt.id).expect("it is kept").versions, receipt.versions);
}

#[test]
fn only_the_stores_of_the_selection_are_redacted() {
    let fixture = fixture();
    let token = canary();
    let copy = leak(&fixture, &token);
    let engine = &fixture.engine;
    let one = Scope { stores: Some(vec![fixture.store]), ..scope(engine) };
    let receipt = engine
        .redact_selected(&actor(), &one, &matching(&token), &and_heads())
        .expect("it redacts");
    assert_eq!(hits_left(&receipt), Some(0));
    assert!(receipt.remarks.iter().any(|remark| remark.contains(&copy.to_string())));
    let copied = engine.memory_at(copy, &path("/copied.md"), View::Full).expect("it is there");
    assert!(copied.content.expect("a text").as_str().contains(&token));
}

#[test]
fn what_another_process_writes_meanwhile_is_found_by_digest_and_receipt() {
    let fixture = fixture();
    let token = canary();
    leak(&fixture, &token);
    let other = engine(fixture.directory.path());
    let planned = fixture
        .engine
        .plan_redaction(&scope(&fixture.engine), &matching(&token), Heads::TakeOut)
        .expect("a plan");
    put(&other, fixture.store, "/again.md", &token);
    let terms = Terms { expect: Some(planned.digest), ..and_heads() };
    let refused = fixture.engine.redact_selected(
        &actor(),
        &scope(&fixture.engine),
        &matching(&token),
        &terms,
    );
    assert_eq!(*refused.expect_err("it has changed").kind(), ErrorKind::PreconditionFailed);
    assert!(!Files::read(fixture.directory.path()).with(&token).is_empty());

    let is_done = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (is_done, store, token) = (Arc::clone(&is_done), fixture.store, token.clone());
        move || {
            let mut number = 0;
            while !is_done.load(Ordering::SeqCst) {
                number += 1;
                put(&other, store, &format!("/more/{number}.md"), &format!("{number} {token}"));
            }
        }
    });
    let receipt = forget(&fixture, &token);
    is_done.store(true, Ordering::SeqCst);
    writer.join().expect("it writes");
    let left = hits_left(&receipt).expect("it is counted");
    let planned = fixture
        .engine
        .plan_redaction(&scope(&fixture.engine), &matching(&token), Heads::TakeOut)
        .expect("a plan");
    // The receipt never says less than what was there when it was made.
    assert!(left <= u64::try_from(planned.hits_count()).expect("it fits"));
    forget(&fixture, &token);
    assert_gone(&fixture, &token);
}

#[test]
fn nothing_of_a_pattern_stays_when_only_a_session_had_it() {
    let fixture = fixture();
    let token = canary();
    describe(&fixture, &token);
    let receipt = forget(&fixture, &token);
    assert_eq!((receipt.versions.len(), receipt.sessions.len()), (0, 1));
    assert_gone(&fixture, &token);
}
