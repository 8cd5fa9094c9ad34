//! Sessions and their attachments.

use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::{
    NewAttachment, NewSession, NewStore, Principal, SessionUpdate, TokenWish,
};
use quipu_core::model::{Access, Id as _, Instructions, SessionId, StoreId, StorePolicy};
use quipu_core::{Error, ErrorKind};

use crate::support::{Bench, bench, kind, name};

fn attach(store: StoreId) -> NewAttachment {
    let instructions = Instructions::new("look first").unwrap();
    NewAttachment { store, access: Access::ReadOnly, instructions }
}

fn new(stores: &[StoreId]) -> NewSession {
    let attachments = stores.iter().copied().map(attach).collect();
    NewSession::titled("an agent", attachments, TokenWish::Issue)
}

fn start(bench: &Bench, stores: &[StoreId]) -> Result<SessionId, Error> {
    let created = bench.engine.create_session(bench.workspace, &new(stores));
    created.map(|(session, _)| session.id)
}

#[test]
fn an_attachment_keeps_what_the_store_was_like() {
    let bench = bench();
    let id = start(&bench, &[bench.store]).unwrap();
    let rename = quipu_core::engine::StoreUpdate {
        name: Some(name("renamed")),
        ..quipu_core::engine::StoreUpdate::default()
    };
    bench.engine.update_store(bench.store, &rename).unwrap();
    let session = bench.engine.session(id).unwrap();
    let attachment = session.attachment(bench.store).unwrap();
    assert_eq!((attachment.name.as_str(), attachment.slug.as_str()), ("tests", "tests"));
    assert_eq!(attachment.access, Access::ReadOnly);
    assert_eq!(attachment.mount_path("/mnt/memory"), "/mnt/memory/tests");
}

#[test]
fn equal_slugs_are_numbered_in_their_order() {
    let bench = bench();
    let more =
        ["Tests", "tests!", "tests-2"].map(|text| bench.new_store(text, StorePolicy::default()).id);
    let id = start(&bench, &[bench.store, more[0], more[1], more[2]]).unwrap();
    let session = bench.engine.session(id).unwrap();
    let slugs: Vec<_> = session.attachments.iter().map(|a| a.slug.as_str()).collect();
    assert_eq!(slugs, ["tests", "tests-2", "tests-3", "tests-2-2"]);
}

#[test]
fn what_cannot_be_attached_is_refused() {
    let bench = bench();
    assert_eq!(kind(start(&bench, &[StoreId::from_bits(1)])), ErrorKind::NotFound);
    assert_eq!(kind(start(&bench, &[bench.store, bench.store])), ErrorKind::InvalidInput);
    let other = bench.engine.create_workspace(&name("other")).unwrap();
    let foreign = bench.engine.create_store(other.id, &NewStore::named(name("x"))).unwrap();
    assert_eq!(kind(start(&bench, &[foreign.id])), ErrorKind::NotFound);
    bench.engine.archive_store(bench.store).unwrap();
    assert_eq!(kind(start(&bench, &[bench.store])), ErrorKind::StoreArchived);
}

#[test]
fn both_sides_of_the_limit_of_attached_stores() {
    let bench = bench();
    let stores: Vec<_> = (0..9)
        .map(|number| bench.new_store(&format!("store {number}"), StorePolicy::default()).id)
        .collect();
    assert!(start(&bench, &stores[..8]).is_ok());
    assert_eq!(kind(start(&bench, &stores)), ErrorKind::InvalidInput);
}

#[test]
fn a_token_opens_its_session_until_it_is_archived() {
    let bench = bench();
    let (session, token) =
        bench.engine.create_session(bench.workspace, &new(&[bench.store])).unwrap();
    let token = token.unwrap();
    let holder = || match bench.engine.principal(token.reveal()).unwrap() {
        Some(Principal::Session(session)) => Some(session.id),
        Some(Principal::Key(_)) | None => None,
    };
    assert_eq!(holder(), Some(session.id));
    bench.engine.archive_session(session.id).unwrap();
    assert_eq!(holder(), None);
}

#[test]
fn a_session_inside_the_process_has_no_token() {
    let bench = bench();
    let quiet = NewSession { token: TokenWish::None, ..new(&[bench.store]) };
    let (session, token) = bench.engine.create_session(bench.workspace, &quiet).unwrap();
    assert_eq!((token, session.token), (None, None));
}

#[test]
fn sessions_are_listed_retitled_archived_and_deleted() {
    let bench = bench();
    let first = start(&bench, &[bench.store]).unwrap();
    bench.clock.advance(std::time::Duration::from_secs(1));
    let second = start(&bench, &[]).unwrap();
    let ids = |archived, store| -> Vec<SessionId> {
        let query = SessionQuery {
            workspace: bench.workspace,
            store,
            archived,
            created: Span::default(),
            order: Order::NewestFirst,
            after: None,
            limit: 10,
        };
        bench.engine.sessions(&query).unwrap().items.iter().map(|s| s.id).collect()
    };
    assert_eq!(ids(Archived::Hide, None), [second, first]);
    assert_eq!(ids(Archived::Hide, Some(bench.store)), [first]);
    let update = SessionUpdate {
        title: Some("new".to_owned()),
        metadata: [("agent".to_owned(), Some("a".to_owned()))].into(),
    };
    let updated = bench.engine.update_session(first, &update).unwrap();
    assert_eq!((updated.title.as_str(), updated.metadata.pairs().len()), ("new", 1));
    bench.engine.archive_session(first).unwrap();
    assert_eq!(ids(Archived::Hide, None), [second]);
    bench.engine.delete_session(first).unwrap();
    assert_eq!(ids(Archived::Show, None), [second]);
    assert_eq!(kind(bench.engine.session(first)), ErrorKind::NotFound);
    assert_eq!(kind(bench.engine.delete_session(first)), ErrorKind::NotFound);
}
