//! Redaction by content and by provenance: plan, run, receipt, tombstones.

use std::ops::Range;
use std::sync::Arc;

use quipu_core::backend::Span;
use quipu_core::engine::{
    Carrier, Derivation, Heads, NewAttachment, NewDerivedKey, NewSession, Pattern, Precondition,
    RedactionPlan, Scope, Selection, SessionToken, StoreUpdate, Terms,
};
use quipu_core::model::{
    Access, Actor, CopyKind, CopyMade, ForgottenPolicy, HeadChange, Id as _, Instructions, KeyKind,
    PrincipalName, Reason, Receipt, Refusal, Role, Session, StorePolicy, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error, ErrorKind};
use quipu_testkit::{FaultyBackend, InMemoryBackend};

use crate::support::{Fixture, actor, content, fixture, fixture_over, kind, name, path};

const SECRET: &str = "sesame-4711";

fn matching(text: &str) -> Selection<'_> {
    Selection { pattern: Some(Pattern::text(text).unwrap()), ..Selection::default() }
}

fn everything(fixture: &Fixture) -> Scope {
    Scope::all(fixture.workspace)
}

fn only(fixture: &Fixture) -> Scope {
    Scope { stores: Some(vec![fixture.store]), ..Scope::all(fixture.workspace) }
}

fn and_heads() -> Terms {
    Terms { heads: Heads::TakeOut, ..Terms::default() }
}

fn plan(fixture: &Fixture, selection: &Selection<'_>) -> RedactionPlan {
    fixture.engine.plan_redaction(&everything(fixture), selection, Heads::TakeOut).unwrap()
}

fn forget(fixture: &Fixture, selection: &Selection<'_>) -> Receipt {
    let redacted =
        fixture.engine.redact_selected(&actor(), &everything(fixture), selection, &and_heads());
    redacted.unwrap()
}

fn hits_left(receipt: &Receipt) -> Option<u64> {
    receipt.proof.as_ref().and_then(|proof| proof.hits_left)
}

/// Returns everything that any reader can see, as text.
fn visible(engine: &Engine, fixture: &Fixture) -> String {
    let session = crate::faults::all_sessions(fixture);
    engine
        .read(|reader| {
            let mut seen = format!("{:?} {:?}", reader.sessions(&session)?, reader.workspaces()?);
            let stores = reader.stores(&quipu_core::backend::StoreQuery {
                workspace: fixture.workspace,
                archived: quipu_core::backend::Archived::Show,
                created: Span::default(),
                before: None,
                limit: 100,
            })?;
            for store in &stores {
                let query = quipu_core::backend::VersionQuery {
                    filter: quipu_core::backend::VersionFilter::default(),
                    before: None,
                    limit: 1000,
                    view: View::Full,
                };
                for version in reader.versions(store.id, &query)? {
                    let text = version.content.as_ref().map(|it| it.as_str().to_owned());
                    seen += &format!("{version:?} {text:?}");
                }
                seen += &format!("{store:?} {:?}", reader.refusals(store.id, 100)?);
            }
            seen += &format!("{:?}", reader.receipts(fixture.workspace, None, 100)?);
            Ok(seen)
        })
        .unwrap()
}

fn session(fixture: &Fixture, title: &str) -> Session {
    let instructions = Instructions::new(format!("use {title}")).unwrap();
    let attachment =
        NewAttachment { store: fixture.store, access: Access::ReadWrite, instructions };
    let new = NewSession::titled(title, vec![attachment], SessionToken::None);
    let metadata = quipu_core::model::Metadata::new([("k".to_owned(), title.to_owned())].into());
    let new = NewSession { metadata: metadata.unwrap(), details: title.to_owned(), ..new };
    fixture.engine.create_session(fixture.workspace, &new).unwrap().0
}

/// Puts the secret wherever text can be.
fn leak(fixture: &Fixture) {
    fixture.put("/old.md", &format!("the key: {SECRET}"));
    fixture.put("/old.md", "the key is elsewhere");
    fixture.put("/head.md", &format!("---\ntitle: {SECRET}\n---\nsee [[{SECRET}]]\n"));
    fixture.put(&format!("/{SECRET}/note.md"), "by its path");
    fixture.put(&format!("/gone-{SECRET}.md"), "deleted");
    fixture
        .engine
        .delete_at(&actor(), fixture.store, &path(&format!("/gone-{SECRET}.md")))
        .unwrap();
    fixture.put("/harmless.md", "nothing to see");
    session(fixture, &format!("agent {SECRET}"));
    let refusal = Refusal {
        store: fixture.store,
        at: fixture.engine.now(),
        path: format!("/refused-{SECRET}"),
        actor: actor(),
        reason: "it is too long".to_owned(),
    };
    fixture.engine.note_refusal(&refusal).unwrap();
    let described = StoreUpdate {
        description: Some(quipu_core::model::Description::new(format!("for {SECRET}")).unwrap()),
        metadata: [("team".to_owned(), Some(SECRET.to_owned()))].into(),
        ..StoreUpdate::default()
    };
    fixture.engine.update_store(fixture.store, &described).unwrap();
}

#[test]
fn a_text_is_taken_out_of_everything() {
    let fixture = fixture();
    leak(&fixture);
    assert!(visible(&fixture.engine, &fixture).contains(SECRET));
    let planned = plan(&fixture, &matching(SECRET));
    let receipt = forget(&fixture, &matching(SECRET));
    assert!(!visible(&fixture.engine, &fixture).contains(SECRET));
    assert_eq!(receipt.versions.len(), planned.versions_count());
    assert_eq!(receipt.heads.len(), planned.heads_count());
    assert_eq!(receipt.sessions.len(), planned.sessions.len());
    assert_eq!((receipt.versions.len(), receipt.heads.len(), receipt.sessions.len()), (5, 2, 1));
    assert_eq!((receipt.refusals_count, receipt.described_stores.len()), (1, 1));
    assert_eq!(hits_left(&receipt), Some(0));
    assert_eq!(receipt.selection, "a text of 11 characters");
    assert_eq!(
        fixture.text("/head.md").unwrap(),
        "---\ntitle: [redacted]\n---\nsee [[[redacted]]]\n"
    );
    assert_eq!(fixture.text("/redacted/note.md").unwrap(), "by its path");
    assert_eq!(fixture.text("/harmless.md").unwrap(), "nothing to see");
    assert_eq!(fixture.engine.receipt(receipt.id).unwrap(), receipt);
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn the_plan_says_what_carries_the_text() {
    let fixture = fixture();
    leak(&fixture);
    let planned = plan(&fixture, &matching(SECRET));
    let carriers: Vec<_> =
        planned.stores[0].versions.iter().map(|version| version.carriers.clone()).collect();
    let (text, at_path) = (vec![Carrier::Text], vec![Carrier::Path]);
    assert_eq!(carriers, [&at_path, &at_path, &at_path, &text, &text].map(Clone::clone));
    let changes: Vec<_> = planned.stores[0].heads.iter().map(|head| head.change).collect();
    assert_eq!(changes, [HeadChange::Moved, HeadChange::Edited]);
    assert_eq!(planned.stores[0].fields, ["description", "metadata"]);
    assert_eq!(planned.sessions[0].fields, ["title", "metadata", "details", "stores"]);
    assert!(!format!("{planned:?}").contains(&format!("\"{SECRET}\"")));
}

#[test]
fn heads_are_named_all_at_once_and_nothing_is_changed() {
    let fixture = fixture();
    leak(&fixture);
    let before = visible(&fixture.engine, &fixture);
    let selection = matching(SECRET);
    let refused = fixture.engine.redact_selected(
        &actor(),
        &everything(&fixture),
        &selection,
        &Terms::default(),
    );
    let error = refused.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::HeadNotRedactable);
    assert!(error.message().contains("/head.md") && error.message().contains("/note.md"));
    assert_eq!(visible(&fixture.engine, &fixture), before);
}

#[test]
fn a_plan_that_has_changed_is_refused() {
    let fixture = fixture();
    leak(&fixture);
    let selection = matching(SECRET);
    let planned = plan(&fixture, &selection);
    fixture.put("/again.md", SECRET);
    let run = |expect: &str| {
        let terms = Terms { expect: Some(expect.to_owned()), ..and_heads() };
        fixture.engine.redact_selected(&actor(), &everything(&fixture), &selection, &terms)
    };
    assert_eq!(kind(run(&planned.digest)), ErrorKind::PreconditionFailed);
    assert_eq!(fixture.text("/again.md").unwrap(), SECRET);
    assert_eq!(kind(run("abc")), ErrorKind::InvalidInput);
    assert_eq!(kind(run("no digest")), ErrorKind::InvalidInput);
    let planned = plan(&fixture, &selection);
    let receipt = run(&planned.digest[..8]).unwrap();
    assert_eq!(receipt.versions.len(), planned.versions_count());
}

#[test]
fn a_change_elsewhere_does_not_change_the_digest() {
    let fixture = fixture();
    leak(&fixture);
    let before = plan(&fixture, &matching(SECRET)).digest;
    fixture.put("/harmless.md", "something else");
    assert_eq!(plan(&fixture, &matching(SECRET)).digest, before);
}

#[test]
fn patterns_that_match_everything_are_refused() {
    let everywhere = |text: &str| -> Vec<Range<usize>> {
        text.match_indices("").map(|(at, _)| at..at).collect()
    };
    assert!(Pattern::text("").is_err());
    assert!(Pattern::matcher(&everywhere, "a regular expression").is_err());
    let fixture = fixture();
    let nothing = Selection::default();
    let planned = fixture.engine.plan_redaction(&everything(&fixture), &nothing, Heads::Refuse);
    assert_eq!(kind(planned), ErrorKind::InvalidInput);
}

#[test]
fn a_replacement_that_would_match_again_is_not_taken() {
    let fixture = fixture();
    fixture.put("/a.md", "this is redacted, really");
    fixture.put("/b.md", "keep");
    let receipt = forget(&fixture, &matching("redacted"));
    assert_eq!(fixture.text("/a.md").unwrap(), "this is …, really");
    assert_eq!(hits_left(&receipt), Some(0));
    let any = |text: &str| -> Vec<Range<usize>> {
        text.char_indices().map(|(at, it)| at..at + it.len_utf8()).collect()
    };
    let pattern = Pattern::matcher(&any, "a regular expression").unwrap();
    let all = Selection { pattern: Some(pattern), ..Selection::default() };
    let receipt =
        fixture.engine.redact_selected(&actor(), &only(&fixture), &all, &and_heads()).unwrap();
    assert!(receipt.heads.iter().all(|head| head.change == HeadChange::Deleted));
    assert_eq!(fixture.text("/b.md"), None);
    // The name of the store is for somebody to change.
    assert_eq!(hits_left(&receipt), Some(1));
}

#[test]
fn names_and_payloads_of_keys_are_found_and_left() {
    let fixture = fixture();
    let new = NewDerivedKey {
        kind: KeyKind::Link,
        name: name(SECRET),
        role: Role::Admin,
        stores: None,
        expires_at: fixture.engine.now().plus(std::time::Duration::from_mins(1)),
        payload: Some(format!("for {SECRET}")),
    };
    let owner = Derivation::Owner(fixture.workspace);
    let id = fixture.engine.derive_key(owner, &new).unwrap().0.id;
    let expected =
        [format!("the name of the key `{id}`"), format!("what is kept with the key `{id}`")];
    assert_eq!(plan(&fixture, &matching(SECRET)).names, expected);
}

#[test]
fn a_path_that_is_taken_gets_a_number() {
    let fixture = fixture();
    fixture.put("/redacted.md", "in the way");
    fixture.put(&format!("/{SECRET}.md"), "one");
    fixture.put(&format!("/x/{SECRET}"), "two");
    forget(&fixture, &matching(SECRET));
    assert_eq!(fixture.text("/redacted-2.md").unwrap(), "one");
    assert_eq!(fixture.text("/x/redacted").unwrap(), "two");
}

#[test]
fn lines_stay_lines() {
    let fixture = fixture();
    fixture.put("/a.md", "---\nkey: one\ntwo: 2\n---\n");
    forget(&fixture, &matching("one\ntwo"));
    assert_eq!(fixture.text("/a.md").unwrap(), "---\nkey: [redacted]\n[redacted]: 2\n---\n");
}

#[test]
fn archived_stores_are_redacted_too() {
    let fixture = fixture();
    leak(&fixture);
    fixture.engine.archive_store(fixture.store).unwrap();
    assert_eq!(hits_left(&forget(&fixture, &matching(SECRET))), Some(0));
    assert!(!visible(&fixture.engine, &fixture).contains(SECRET));
}

#[test]
fn selections_by_provenance_delete_what_is_live() {
    let fixture = fixture();
    let rogue = Actor::Session(session(&fixture, "rogue").id);
    fixture.put("/kept.md", "mine");
    let write = |at: &str, text: &str| {
        let target = (&path(at), &content(text));
        fixture.engine.put(&rogue, fixture.store, target, Precondition::None).unwrap();
    };
    write("/kept.md", "theirs");
    write("/theirs.md", "theirs");
    fixture.put("/kept.md", "mine again");
    let by_rogue = Selection { actors: vec![rogue.clone()], ..Selection::default() };
    let planned = plan(&fixture, &by_rogue);
    assert_eq!((planned.versions_count(), planned.heads_count()), (2, 1));
    let receipt = forget(&fixture, &by_rogue);
    assert_eq!((receipt.versions.len(), receipt.heads.len()), (2, 1));
    assert_eq!(hits_left(&receipt), Some(0));
    assert_eq!(fixture.text("/kept.md").unwrap(), "mine again");
    assert_eq!(fixture.text("/theirs.md"), None);
    let again =
        fixture.engine.redact_selected(&actor(), &everything(&fixture), &by_rogue, &and_heads());
    assert_eq!(kind(again), ErrorKind::NotFound);
}

#[test]
fn a_path_is_forgotten_with_the_deletion_that_names_it() {
    let fixture = fixture();
    let memory = fixture.put("/people/ada.md", "born in 1815");
    fixture.put("/people/bob.md", "born later");
    fixture.put("/other.md", "kept");
    let below = Selection { path: Some(path("/people")), ..Selection::default() };
    let receipt = forget(&fixture, &below);
    assert_eq!((receipt.versions.len(), receipt.heads.len()), (2, 2));
    assert_eq!(hits_left(&receipt), Some(0));
    assert!(!visible(&fixture.engine, &fixture).contains("/people"));
    assert!(!receipt.selection.contains("people"));
    let by_id = Selection { memory: Some(memory.id), ..Selection::default() };
    assert_eq!(plan(&fixture, &by_id).versions_count(), 0);
}

#[test]
fn conditions_are_combined() {
    let fixture = fixture();
    fixture.put("/a/1", &format!("one {SECRET}"));
    fixture.put("/b/1", &format!("two {SECRET}"));
    let below = Selection { path: Some(path("/a")), ..matching(SECRET) };
    let receipt = forget(&fixture, &below);
    assert_eq!(receipt.versions.len(), 1);
    assert_eq!(hits_left(&receipt), Some(0));
    assert_eq!(fixture.text("/a/1").unwrap(), "one [redacted]");
    assert_eq!(fixture.text("/b/1").unwrap(), format!("two {SECRET}"));
    let bob = Actor::User(PrincipalName::from_host("bob"));
    let by_bob = Selection { actors: vec![bob], ..matching(SECRET) };
    assert_eq!(plan(&fixture, &by_bob).hits_count(), 0);
}

#[test]
fn versions_by_id_are_all_that_is_counted_afterwards() {
    let fixture = fixture();
    let old = fixture.put("/a", &format!("one {SECRET}")).version;
    fixture.put("/a", &format!("two {SECRET}"));
    for selection in [
        Selection { versions: vec![old], ..matching(SECRET) },
        Selection { versions: vec![old], ..Selection::default() },
    ] {
        assert!(plan(&fixture, &selection).versions_count() <= 1);
    }
    let selection = Selection { versions: vec![old], ..matching(SECRET) };
    let receipt = forget(&fixture, &selection);
    assert_eq!((receipt.versions.as_slice(), hits_left(&receipt)), (&[old][..], Some(0)));
    let absent = quipu_core::model::VersionId::from_bits(7);
    let selection = Selection { versions: vec![absent], ..Selection::default() };
    let planned = fixture.engine.plan_redaction(&everything(&fixture), &selection, Heads::Refuse);
    assert_eq!(kind(planned), ErrorKind::NotFound);
}

#[test]
fn a_session_without_any_store_is_redacted_too() {
    let fixture = fixture();
    session(&fixture, SECRET);
    fixture.engine.erase_store(fixture.store).unwrap();
    let receipt = forget(&fixture, &matching(SECRET));
    assert_eq!(
        (receipt.sessions.len(), receipt.stores.len(), hits_left(&receipt)),
        (1, 0, Some(0))
    );
    assert!(receipt.proof.is_some_and(|proof| proof.at >= receipt.at));
    assert!(!visible(&fixture.engine, &fixture).contains(SECRET));
}

#[test]
fn copies_out_of_reach_are_named() {
    let fixture = fixture();
    leak(&fixture);
    let copy = fixture.new_store("copy", StorePolicy::default());
    let origin = [("copied_from".to_owned(), Some("tests".to_owned()))].into();
    let update = StoreUpdate { metadata: origin, ..StoreUpdate::default() };
    fixture.engine.update_store(copy.id, &update).unwrap();
    let also = fixture.new_store("also", StorePolicy::default());
    let target = (&path("/b.md"), &content(SECRET));
    fixture.engine.put(&actor(), also.id, target, Precondition::None).unwrap();
    let gone = fixture.new_store("gone", StorePolicy::default());
    fixture.engine.delete_store(gone.id).unwrap();
    fixture.clock.advance(std::time::Duration::from_secs(1));
    let backup = CopyMade {
        workspace: fixture.workspace,
        at: fixture.engine.now(),
        kind: CopyKind::Backup,
        store: None,
        target: format!("/backups/{SECRET}.db"),
    };
    fixture.engine.note_copy(&backup).unwrap();
    let planned =
        fixture.engine.plan_redaction(&only(&fixture), &matching(SECRET), Heads::TakeOut).unwrap();
    let others: Vec<_> = planned.others.iter().map(|it| (it.store, it.versions_count)).collect();
    assert_eq!(others, [(also.id, 1), (copy.id, 0)]);
    assert_eq!(planned.copies_made, [backup]);
    assert_eq!(planned.deleted_stores, [gone.id]);
    let receipt = fixture
        .engine
        .redact_selected(&actor(), &only(&fixture), &matching(SECRET), &and_heads())
        .unwrap();
    let remarks = [receipt.remarks.clone(), receipt.unreachable.clone()].concat().join("\n");
    for part in ["/backups/[redacted].db", "is a copy", "holds the text", "deleted store"] {
        assert!(remarks.contains(part), "{remarks}");
    }
    assert!(!format!("{receipt:?}").contains(SECRET));
    assert_eq!(hits_left(&forget(&fixture, &matching(SECRET))), Some(0));
    let read = |reader: &dyn quipu_core::backend::Reader| {
        reader.copies_made(fixture.workspace, quipu_core::model::Timestamp::MIN)
    };
    assert_eq!(fixture.engine.read(read).unwrap()[0].target, "/backups/[redacted].db");
}

#[test]
fn a_reason_that_holds_the_text_is_refused() {
    let fixture = fixture();
    leak(&fixture);
    let run = |reason: &str| {
        let terms = Terms { reason: Some(Reason::new(reason).unwrap()), ..and_heads() };
        let selection = matching(SECRET);
        fixture.engine.redact_selected(&actor(), &everything(&fixture), &selection, &terms)
    };
    assert_eq!(kind(run(&format!("leaked {SECRET}"))), ErrorKind::InvalidInput);
    let receipt = run("a leaked token").unwrap();
    assert_eq!(receipt.reason.unwrap().as_str(), "a leaked token");
}

#[test]
fn reasons_of_versions_and_receipts_are_redacted_too() {
    let fixture = fixture();
    fixture.put("/a", &format!("one {SECRET}"));
    let terms = Terms { reason: Some(Reason::new("leaked by zebra-team").unwrap()), ..and_heads() };
    let scope = everything(&fixture);
    let engine = &fixture.engine;
    let first = engine.redact_selected(&actor(), &scope, &matching(SECRET), &terms).unwrap();
    let planned = plan(&fixture, &matching("zebra-team"));
    assert_eq!(planned.stores[0].heads[0].change, HeadChange::Rewritten);
    assert_eq!(planned.stores[0].versions[0].carriers, [Carrier::Reason]);
    assert_eq!(planned.receipts, [first.id]);
    let receipt = forget(&fixture, &matching("zebra-team"));
    assert_eq!((receipt.versions.len(), hits_left(&receipt)), (1, Some(0)));
    assert!(!visible(engine, &fixture).contains("zebra-team"));
    assert_eq!(fixture.text("/a").unwrap(), "one [redacted]");
    let first = engine.receipt(first.id).unwrap();
    assert_eq!(first.reason.unwrap().as_str(), "leaked by [redacted]");
}

#[test]
fn a_redaction_of_versions_has_a_receipt() {
    let fixture = fixture();
    let old = fixture.put("/a", "one").version;
    fixture.put("/a", "two");
    fixture.engine.redact(&actor(), fixture.store, &[old]).unwrap();
    fixture.engine.redact(&actor(), fixture.store, &[old]).unwrap();
    let receipts = fixture.engine.receipts(fixture.workspace, None, 10).unwrap().items;
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].versions, [old]);
    assert!(receipts[0].proof.is_some());
}

fn put(fixture: &Fixture, at: &str, text: &str) -> Result<usize, Error> {
    let target = (&path(at), &content(text));
    let written = fixture.engine.put(&actor(), fixture.store, target, Precondition::None)?;
    Ok(written.findings.len())
}

#[test]
fn a_text_that_comes_back_is_pointed_out_or_refused() {
    let fixture = fixture();
    fixture.put("/a.md", &format!("a {SECRET}"));
    let old = fixture.put("/b.md", "to be restored");
    assert_eq!(forget(&fixture, &matching(SECRET)).tombstones_count, 1);
    assert_eq!(put(&fixture, "/a.md", &format!("line\nb {SECRET}")).unwrap(), 1);
    assert_eq!(put(&fixture, "/c.md", "nothing").unwrap(), 0);
    let target = (&path(&format!("/{SECRET}")), &content("at a path"));
    let at_path = fixture.engine.put(&actor(), fixture.store, target, Precondition::None).unwrap();
    assert_eq!(at_path.findings[0].line, 0);
    let version =
        fixture.engine.memory_at(fixture.store, &path("/a.md"), View::Basic).unwrap().version;
    put(&fixture, "/a.md", "harmless").unwrap();
    let restored = fixture.engine.restore(&actor(), fixture.store, version, None).unwrap();
    assert_eq!(restored.findings[0].line, 2);

    let policy = StorePolicy { forgotten: ForgottenPolicy::Refuse, ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    fixture.engine.update_store(fixture.store, &update).unwrap();
    put(&fixture, "/a.md", "harmless again").unwrap();
    for (at, text) in [("/a.md", SECRET), ("/new.md", SECRET), (&format!("/x/{SECRET}"), "x")] {
        assert_eq!(kind(put(&fixture, at, text)), ErrorKind::SecretRefused);
    }
    assert_eq!(
        kind(fixture.engine.restore(&actor(), fixture.store, version, None)),
        ErrorKind::SecretRefused
    );
    // What is there can still be moved away.
    let from = path(&format!("/{SECRET}"));
    fixture.engine.rename(&actor(), fixture.store, &from, &path("/moved.md")).unwrap();
    assert_eq!(old.path, path("/b.md"));
}

#[test]
fn short_texts_get_no_tombstone_and_the_receipt_says_so() {
    let fixture = fixture();
    fixture.put("/a.md", "tea");
    let receipt = forget(&fixture, &matching("tea"));
    assert_eq!(receipt.tombstones_count, 0);
    assert!(receipt.remarks.iter().any(|remark| remark.contains("8 bytes")), "{receipt:?}");
    assert_eq!(put(&fixture, "/a.md", "tea").unwrap(), 0);
}

#[test]
fn tombstones_of_a_store_are_bounded() {
    let fixture = fixture();
    let all: Vec<_> = (0..1200).map(|number| format!("token-{number:05}")).collect();
    fixture.put("/a.md", &all.join("\n"));
    let tokens = |text: &str| -> Vec<Range<usize>> {
        text.match_indices("token-").map(|(at, _)| at..at + 11).collect()
    };
    let pattern = Pattern::matcher(&tokens, "a regular expression").unwrap();
    let selection = Selection { pattern: Some(pattern), ..Selection::default() };
    let receipt = forget(&fixture, &selection);
    assert_eq!(receipt.tombstones_count, 1000);
    assert!(receipt.remarks.iter().any(|remark| remark.contains("1000 tombstones")));
    fixture.put("/b.md", "another-secret");
    assert_eq!(forget(&fixture, &matching("another-secret")).tombstones_count, 0);
}

#[test]
fn a_fault_at_any_step_leaves_nothing_half_done() {
    for step in 1.. {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let fixture = fixture_over(Arc::clone(&faulty) as _, Limits::default());
        leak(&fixture);
        let before = visible(&fixture.engine, &fixture);
        faulty.fail_at(step);
        let selection = matching(SECRET);
        let scope = everything(&fixture);
        let result = fixture.engine.redact_selected(&actor(), &scope, &selection, &and_heads());
        if faulty.disarm() {
            assert_eq!(hits_left(&result.unwrap()), Some(0));
            assert!(step > 20);
            return;
        }
        let error = result.expect_err("a fault must not pass unnoticed");
        if *error.kind() != ErrorKind::EraseIncomplete {
            assert_eq!(*error.kind(), ErrorKind::StorageUnavailable, "{error:?}");
            assert_eq!(visible(&fixture.engine, &fixture), before, "at step {step}");
            continue;
        }
        // The rows are redacted; pruning completes the rest, and the receipt with it.
        assert!(!visible(&fixture.engine, &fixture).contains(SECRET));
        fixture.engine.prune().unwrap();
        let receipts = fixture.engine.receipts(fixture.workspace, None, 10).unwrap().items;
        assert_eq!(receipts.len(), 1);
        assert!(receipts[0].proof.is_some(), "at step {step}");
    }
}

#[test]
fn a_text_that_is_nowhere_has_a_receipt_too() {
    let fixture = fixture();
    fixture.put("/a.md", "nothing");
    let receipt = forget(&fixture, &matching(SECRET));
    assert_eq!((receipt.versions.len(), hits_left(&receipt)), (0, Some(0)));
    assert_eq!(receipt.stores, [fixture.store]);
    assert_eq!(name("tests"), fixture.engine.store(fixture.store).unwrap().name);
}

/// A matcher that gives up after some texts.
struct Impatient(std::sync::atomic::AtomicUsize);

impl quipu_core::engine::Matcher for Impatient {
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let is_patient = |left: usize| left.checked_sub(1);
        let order = std::sync::atomic::Ordering::SeqCst;
        let texts = self.0.fetch_update(order, order, is_patient);
        let found = text.match_indices(SECRET).map(|(at, it)| at..at + it.len());
        if texts.is_ok() { found.collect() } else { Vec::new() }
    }

    fn require_complete(&self) -> Result<(), Error> {
        let left = self.0.load(std::sync::atomic::Ordering::SeqCst);
        if left > 0 { Ok(()) } else { Err(Error::invalid("the search takes too long")) }
    }
}

#[test]
fn a_search_that_is_given_up_changes_nothing() {
    for texts in 1.. {
        let fixture = fixture();
        leak(&fixture);
        let before = visible(&fixture.engine, &fixture);
        let matcher = Impatient(texts.into());
        let pattern = Pattern::matcher(&matcher, "a regular expression").unwrap();
        let selection = Selection { pattern: Some(pattern), ..Selection::default() };
        let scope = everything(&fixture);
        match fixture.engine.redact_selected(&actor(), &scope, &selection, &and_heads()) {
            Ok(receipt) => {
                assert_eq!(hits_left(&receipt), Some(0));
                return;
            }
            Err(error) if *error.kind() == ErrorKind::EraseIncomplete => {
                assert!(!visible(&fixture.engine, &fixture).contains(SECRET));
            }
            Err(_) => assert_eq!(visible(&fixture.engine, &fixture), before),
        }
    }
}
