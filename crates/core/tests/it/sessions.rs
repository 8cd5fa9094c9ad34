//! Sessions and their attachments.

use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::{
    NewAttachment, NewKey, NewSession, NewStore, Principal, SESSION_TITLE_CHARS_MAX, SessionUpdate,
    TokenWish,
};
use quipu_core::model::{
    Access, Actor, Content, Id as _, Instructions, Key, KeySecret, MemoryPath, Role, Session,
    SessionId, StoreId, StorePolicy, Timestamp,
};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};

use crate::support::{Bench, bench, bench_with, kind, name};

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
            viewer: None,
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

const DAY: std::time::Duration = std::time::Duration::from_hours(24);

fn key(bench: &Bench, expires_at: Option<Timestamp>) -> Key {
    let new = NewKey {
        name: name("maker"),
        role: Role::ReadWrite,
        stores: None,
        expires_at,
        secret: None,
    };
    bench.engine.create_key(bench.workspace, &new).unwrap().0
}

fn made_by(bench: &Bench, key: &Key) -> (Session, KeySecret) {
    let new = NewSession { key: Some(key.id), ..new(&[bench.store]) };
    let (session, token) = bench.engine.create_session(bench.workspace, &new).unwrap();
    (session, token.unwrap())
}

fn is_valid(bench: &Bench, token: &KeySecret) -> bool {
    bench.engine.principal(token.reveal()).unwrap().is_some()
}

#[test]
fn a_token_ends_when_its_key_is_revoked() {
    let bench = bench();
    let key = key(&bench, None);
    let (_, token) = made_by(&bench, &key);
    assert!(is_valid(&bench, &token));
    bench.engine.revoke_key(key.id).unwrap();
    assert!(!is_valid(&bench, &token));
}

#[test]
fn a_token_ends_after_its_time_and_not_later_than_its_key() {
    let bench = bench();
    let now = bench.engine.now();
    let (session, token) = made_by(&bench, &key(&bench, None));
    assert_eq!(session.token_expires_at, Some(session.created_at.plus(30 * DAY)));
    let (short, short_token) = made_by(&bench, &key(&bench, Some(now.plus(DAY))));
    assert_eq!(short.token_expires_at, Some(now.plus(DAY)));
    bench.clock.advance(DAY);
    assert_eq!((is_valid(&bench, &token), is_valid(&bench, &short_token)), (true, false));
    bench.clock.advance(29 * DAY + std::time::Duration::from_secs(1));
    assert!(!is_valid(&bench, &token));
}

#[test]
fn a_renewed_token_has_a_new_expiry_and_depends_on_the_key_that_renewed_it() {
    let bench = bench();
    let (first, second) = (key(&bench, None), key(&bench, None));
    let (session, old) = made_by(&bench, &first);
    bench.clock.advance(10 * DAY);
    let (renewed, token) = bench.engine.renew_token(session.id, Some(second.id)).unwrap();
    assert_eq!(renewed.token_expires_at, Some(bench.engine.now().plus(30 * DAY)));
    assert_eq!((is_valid(&bench, &old), is_valid(&bench, &token)), (false, true));
    bench.engine.revoke_key(first.id).unwrap();
    assert!(is_valid(&bench, &token));
    bench.engine.revoke_key(second.id).unwrap();
    assert!(!is_valid(&bench, &token));
    bench.engine.archive_session(session.id).unwrap();
    assert_eq!(kind(bench.engine.renew_token(session.id, None)), ErrorKind::InvalidInput);
}

#[test]
fn both_sides_of_the_limit_of_titles_and_details() {
    let bench = bench();
    let titled = |chars: usize| NewSession { title: "ü".repeat(chars), ..new(&[]) };
    let create = |new: &NewSession| bench.engine.create_session(bench.workspace, new).map(drop);
    create(&titled(SESSION_TITLE_CHARS_MAX)).unwrap();
    assert_eq!(kind(create(&titled(SESSION_TITLE_CHARS_MAX + 1))), ErrorKind::InvalidInput);
    let detailed = |bytes: usize| NewSession { details: "x".repeat(bytes), ..new(&[]) };
    create(&detailed(64 * 1024)).unwrap();
    assert_eq!(kind(create(&detailed(64 * 1024 + 1))), ErrorKind::InvalidInput);
    let id = start(&bench, &[]).unwrap();
    let title = Some("ü".repeat(SESSION_TITLE_CHARS_MAX + 1));
    let update = SessionUpdate { title, ..SessionUpdate::default() };
    assert_eq!(kind(bench.engine.update_session(id, &update)), ErrorKind::InvalidInput);
}

#[test]
fn a_workspace_holds_so_many_sessions_and_says_what_to_do() {
    let bench = bench_with(Limits { sessions_per_workspace_max: 2, ..Limits::default() });
    let first = start(&bench, &[]).unwrap();
    start(&bench, &[]).unwrap();
    let drafted = bench.engine.draft_session(bench.workspace, &new(&[])).unwrap();
    let full = start(&bench, &[]).unwrap_err();
    assert_eq!(*full.kind(), ErrorKind::LimitReached);
    assert!(full.message().contains("2 sessions"), "{full}");
    assert!(full.hint().unwrap().contains("delete sessions"));
    assert_eq!(kind(bench.engine.record_session(&drafted)), ErrorKind::LimitReached);
    bench.engine.delete_session(first).unwrap();
    bench.engine.record_session(&drafted).unwrap();
}

#[test]
fn pruning_gives_up_sessions_that_are_over_and_keeps_authors() {
    let bench = bench();
    let quiet = NewSession { token: TokenWish::None, ..new(&[bench.store]) };
    let quiet = || bench.engine.create_session(bench.workspace, &quiet).unwrap().0.id;
    let (idle, author) = (quiet(), quiet());
    let archived = start(&bench, &[]).unwrap();
    bench.engine.archive_session(archived).unwrap();
    let path = MemoryPath::parse("/a").unwrap();
    let content = Content::new("x").unwrap();
    bench.engine.create(&Actor::Session(author), bench.store, &path, &content).unwrap();
    bench.clock.advance(89 * DAY);
    let fresh = start(&bench, &[]).unwrap();
    assert_eq!(bench.engine.prune().unwrap().sessions_count, 0);
    bench.clock.advance(2 * DAY);
    assert_eq!(bench.engine.prune().unwrap().sessions_count, 2);
    for (id, is_kept) in [(idle, false), (archived, false), (author, true), (fresh, true)] {
        assert_eq!(bench.engine.session(id).is_ok(), is_kept, "{id}");
    }
}
