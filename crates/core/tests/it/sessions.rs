//! Sessions and their attachments.

use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::{
    NewAttachment, NewKey, NewSession, NewStore, Principal, SESSION_TITLE_CHARS_MAX, SessionToken,
    SessionUpdate,
};
use quipu_core::model::{
    Access, Actor, Content, Forwarding, Id as _, Instructions, Key, KeySecret, MemoryPath, Role,
    Session, SessionId, StoreId, StorePolicy, Timestamp,
};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};

use crate::support::{Fixture, fixture, fixture_with, kind, name};

fn attach(store: StoreId) -> NewAttachment {
    let instructions = Instructions::new("look first").unwrap();
    NewAttachment { store, access: Access::ReadOnly, instructions }
}

fn new(stores: &[StoreId]) -> NewSession {
    let attachments = stores.iter().copied().map(attach).collect();
    NewSession::titled("an agent", attachments, SessionToken::Issue)
}

fn start(fixture: &Fixture, stores: &[StoreId]) -> Result<SessionId, Error> {
    let created = fixture.engine.create_session(fixture.workspace, &new(stores));
    created.map(|(session, _)| session.id)
}

#[test]
fn an_attachment_keeps_what_the_store_was_like() {
    let fixture = fixture();
    let id = start(&fixture, &[fixture.store]).unwrap();
    let rename = quipu_core::engine::StoreUpdate {
        name: Some(name("renamed")),
        ..quipu_core::engine::StoreUpdate::default()
    };
    fixture.engine.update_store(fixture.store, &rename).unwrap();
    let session = fixture.engine.session(id).unwrap();
    let attachment = session.attachment(fixture.store).unwrap();
    assert_eq!((attachment.name.as_str(), attachment.slug.as_str()), ("tests", "tests"));
    assert_eq!(attachment.access, Access::ReadOnly);
    assert_eq!(attachment.mount_path("/mnt/memory"), "/mnt/memory/tests");
}

#[test]
fn equal_slugs_are_numbered_in_their_order() {
    let fixture = fixture();
    let more = ["Tests", "tests!", "tests-2"]
        .map(|text| fixture.new_store(text, StorePolicy::default()).id);
    let id = start(&fixture, &[fixture.store, more[0], more[1], more[2]]).unwrap();
    let session = fixture.engine.session(id).unwrap();
    let slugs: Vec<_> = session.attachments.iter().map(|a| a.slug.as_str()).collect();
    assert_eq!(slugs, ["tests", "tests-2", "tests-3", "tests-2-2"]);
}

#[test]
fn what_cannot_be_attached_is_refused() {
    let fixture = fixture();
    assert_eq!(kind(start(&fixture, &[StoreId::from_bits(1)])), ErrorKind::NotFound);
    assert_eq!(kind(start(&fixture, &[fixture.store, fixture.store])), ErrorKind::InvalidInput);
    let other = fixture.engine.create_workspace(&name("other")).unwrap();
    let foreign = fixture.engine.create_store(other.id, &NewStore::named(name("x"))).unwrap();
    assert_eq!(kind(start(&fixture, &[foreign.id])), ErrorKind::NotFound);
    fixture.engine.archive_store(fixture.store).unwrap();
    assert_eq!(kind(start(&fixture, &[fixture.store])), ErrorKind::StoreArchived);
}

#[test]
fn both_sides_of_the_limit_of_attached_stores() {
    let fixture = fixture();
    let stores: Vec<_> = (0..9)
        .map(|number| fixture.new_store(&format!("store {number}"), StorePolicy::default()).id)
        .collect();
    assert!(start(&fixture, &stores[..8]).is_ok());
    assert_eq!(kind(start(&fixture, &stores)), ErrorKind::InvalidInput);
}

#[test]
fn a_token_opens_its_session_until_it_is_archived() {
    let fixture = fixture();
    let (session, token) =
        fixture.engine.create_session(fixture.workspace, &new(&[fixture.store])).unwrap();
    let token = token.unwrap();
    let holder = || match fixture.engine.principal(token.reveal()).unwrap() {
        Some(Principal::Session(session)) => Some(session.id),
        Some(Principal::Key(_)) | None => None,
    };
    assert_eq!(holder(), Some(session.id));
    fixture.engine.archive_session(session.id).unwrap();
    assert_eq!(holder(), None);
}

#[test]
fn a_session_inside_the_process_has_no_token() {
    let fixture = fixture();
    let quiet = NewSession { token: SessionToken::None, ..new(&[fixture.store]) };
    let (session, token) = fixture.engine.create_session(fixture.workspace, &quiet).unwrap();
    assert_eq!((token, session.token), (None, None));
}

#[test]
fn sessions_are_listed_retitled_archived_and_deleted() {
    let fixture = fixture();
    let first = start(&fixture, &[fixture.store]).unwrap();
    fixture.clock.advance(std::time::Duration::from_secs(1));
    let second = start(&fixture, &[]).unwrap();
    let ids = |archived, store| -> Vec<SessionId> {
        let query = SessionQuery {
            workspace: fixture.workspace,
            store,
            archived,
            created: Span::default(),
            viewer: None,
            order: Order::NewestFirst,
            after: None,
            limit: 10,
        };
        fixture.engine.sessions(&query).unwrap().items.iter().map(|s| s.id).collect()
    };
    assert_eq!(ids(Archived::Hide, None), [second, first]);
    assert_eq!(ids(Archived::Hide, Some(fixture.store)), [first]);
    let update = SessionUpdate {
        title: Some("new".to_owned()),
        metadata: [("agent".to_owned(), Some("a".to_owned()))].into(),
    };
    let updated = fixture.engine.update_session(first, &update).unwrap();
    assert_eq!((updated.title.as_str(), updated.metadata.pairs().len()), ("new", 1));
    fixture.engine.archive_session(first).unwrap();
    assert_eq!(ids(Archived::Hide, None), [second]);
    fixture.engine.delete_session(first).unwrap();
    assert_eq!(ids(Archived::Show, None), [second]);
    assert_eq!(kind(fixture.engine.session(first)), ErrorKind::NotFound);
    assert_eq!(kind(fixture.engine.delete_session(first)), ErrorKind::NotFound);
}

const DAY: std::time::Duration = std::time::Duration::from_hours(24);

fn key(fixture: &Fixture, expires_at: Option<Timestamp>) -> Key {
    let new = NewKey {
        name: name("maker"),
        role: Role::ReadWrite,
        stores: None,
        expires_at,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    fixture.engine.create_key(fixture.workspace, &new).unwrap().0
}

fn made_by(fixture: &Fixture, key: &Key) -> (Session, KeySecret) {
    let new = NewSession { key: Some(key.id), ..new(&[fixture.store]) };
    let (session, token) = fixture.engine.create_session(fixture.workspace, &new).unwrap();
    (session, token.unwrap())
}

fn is_valid(fixture: &Fixture, token: &KeySecret) -> bool {
    fixture.engine.principal(token.reveal()).unwrap().is_some()
}

#[test]
fn a_token_ends_when_its_key_is_revoked() {
    let fixture = fixture();
    let key = key(&fixture, None);
    let (_, token) = made_by(&fixture, &key);
    assert!(is_valid(&fixture, &token));
    fixture.engine.revoke_key(key.id).unwrap();
    assert!(!is_valid(&fixture, &token));
}

#[test]
fn a_token_ends_after_its_time_and_not_later_than_its_key() {
    let fixture = fixture();
    let now = fixture.engine.now();
    let (session, token) = made_by(&fixture, &key(&fixture, None));
    assert_eq!(session.token_expires_at, Some(session.created_at.plus(30 * DAY)));
    let (short, short_token) = made_by(&fixture, &key(&fixture, Some(now.plus(DAY))));
    assert_eq!(short.token_expires_at, Some(now.plus(DAY)));
    fixture.clock.advance(DAY);
    assert_eq!((is_valid(&fixture, &token), is_valid(&fixture, &short_token)), (true, false));
    fixture.clock.advance(29 * DAY + std::time::Duration::from_secs(1));
    assert!(!is_valid(&fixture, &token));
}

#[test]
fn a_renewed_token_has_a_new_expiry_and_depends_on_the_key_that_renewed_it() {
    let fixture = fixture();
    let (first, second) = (key(&fixture, None), key(&fixture, None));
    let (session, old) = made_by(&fixture, &first);
    fixture.clock.advance(10 * DAY);
    let (renewed, token) = fixture.engine.renew_token(session.id, Some(second.id)).unwrap();
    assert_eq!(renewed.token_expires_at, Some(fixture.engine.now().plus(30 * DAY)));
    assert_eq!((is_valid(&fixture, &old), is_valid(&fixture, &token)), (false, true));
    fixture.engine.revoke_key(first.id).unwrap();
    assert!(is_valid(&fixture, &token));
    fixture.engine.revoke_key(second.id).unwrap();
    assert!(!is_valid(&fixture, &token));
    fixture.engine.archive_session(session.id).unwrap();
    assert_eq!(kind(fixture.engine.renew_token(session.id, None)), ErrorKind::InvalidInput);
}

#[test]
fn both_sides_of_the_limit_of_titles_and_details() {
    let fixture = fixture();
    let titled = |chars: usize| NewSession { title: "ü".repeat(chars), ..new(&[]) };
    let create = |new: &NewSession| fixture.engine.create_session(fixture.workspace, new).map(drop);
    create(&titled(SESSION_TITLE_CHARS_MAX)).unwrap();
    assert_eq!(kind(create(&titled(SESSION_TITLE_CHARS_MAX + 1))), ErrorKind::InvalidInput);
    let detailed = |bytes: usize| NewSession { details: "x".repeat(bytes), ..new(&[]) };
    create(&detailed(64 * 1024)).unwrap();
    assert_eq!(kind(create(&detailed(64 * 1024 + 1))), ErrorKind::InvalidInput);
    let id = start(&fixture, &[]).unwrap();
    let title = Some("ü".repeat(SESSION_TITLE_CHARS_MAX + 1));
    let update = SessionUpdate { title, ..SessionUpdate::default() };
    assert_eq!(kind(fixture.engine.update_session(id, &update)), ErrorKind::InvalidInput);
}

#[test]
fn the_limit_of_sessions_is_reported_with_a_way_out() {
    let fixture = fixture_with(Limits { sessions_per_workspace_max: 2, ..Limits::default() });
    let first = start(&fixture, &[]).unwrap();
    start(&fixture, &[]).unwrap();
    let drafted = fixture.engine.draft_session(fixture.workspace, &new(&[])).unwrap();
    let full = start(&fixture, &[]).unwrap_err();
    assert_eq!(*full.kind(), ErrorKind::LimitReached);
    assert!(full.message().contains("2 sessions"), "{full}");
    assert!(full.hint().unwrap().contains("delete sessions"));
    assert_eq!(kind(fixture.engine.record_session(&drafted)), ErrorKind::LimitReached);
    fixture.engine.delete_session(first).unwrap();
    fixture.engine.record_session(&drafted).unwrap();
}

#[test]
fn pruning_removes_ended_sessions_and_keeps_authors() {
    let fixture = fixture();
    let quiet = NewSession { token: SessionToken::None, ..new(&[fixture.store]) };
    let quiet = || fixture.engine.create_session(fixture.workspace, &quiet).unwrap().0.id;
    let (idle, author) = (quiet(), quiet());
    let archived = start(&fixture, &[]).unwrap();
    fixture.engine.archive_session(archived).unwrap();
    let path = MemoryPath::parse("/a").unwrap();
    let content = Content::new("x").unwrap();
    fixture.engine.create(&Actor::Session(author), fixture.store, &path, &content).unwrap();
    fixture.clock.advance(89 * DAY);
    let fresh = start(&fixture, &[]).unwrap();
    assert_eq!(fixture.engine.prune().unwrap().sessions_count, 0);
    fixture.clock.advance(2 * DAY);
    assert_eq!(fixture.engine.prune().unwrap().sessions_count, 2);
    for (id, is_kept) in [(idle, false), (archived, false), (author, true), (fresh, true)] {
        assert_eq!(fixture.engine.session(id).is_ok(), is_kept, "{id}");
    }
}

#[test]
fn a_draft_is_stored_once_and_only_when_it_is_needed() {
    let fixture = fixture();
    let draft = fixture.engine.draft_session(fixture.workspace, &new(&[fixture.store])).unwrap();
    assert_eq!(draft.token, None);
    assert_eq!(kind(fixture.engine.session(draft.id)), ErrorKind::NotFound);
    for _ in 0..2 {
        fixture.engine.record_session(&draft).unwrap();
        assert_eq!(fixture.engine.session(draft.id).unwrap(), draft);
    }
    let archived = fixture.engine.archive_session(draft.id).unwrap();
    fixture.engine.record_session(&draft).unwrap();
    assert_eq!(
        fixture.engine.session(draft.id).unwrap(),
        archived,
        "recording again changes nothing"
    );
    let unknown = fixture.engine.draft_session(fixture.workspace, &new(&[StoreId::from_bits(1)]));
    assert_eq!(kind(unknown), ErrorKind::NotFound);
}

#[test]
fn the_limit_of_sessions_holds_for_drafts_too() {
    let fixture = fixture_with(Limits { sessions_per_workspace_max: 1, ..Limits::default() });
    let draft = fixture.engine.draft_session(fixture.workspace, &new(&[])).unwrap();
    start(&fixture, &[]).unwrap();
    assert_eq!(kind(fixture.engine.record_session(&draft)), ErrorKind::LimitReached);
}

#[test]
fn an_archived_session_gets_no_new_token() {
    let fixture = fixture();
    let id = start(&fixture, &[]).unwrap();
    let archived = fixture.engine.archive_session(id).unwrap();
    fixture.clock.advance(DAY);
    assert_eq!(fixture.engine.archive_session(id).unwrap(), archived);
    assert_eq!(kind(fixture.engine.renew_token(id, None)), ErrorKind::InvalidInput);
    let unknown = SessionId::from_bits(1);
    assert_eq!(kind(fixture.engine.renew_token(unknown, None)), ErrorKind::NotFound);
    assert_eq!(kind(fixture.engine.archive_session(unknown)), ErrorKind::NotFound);
}

#[test]
fn an_update_without_a_change_does_not_touch_the_session() {
    let fixture = fixture();
    let id = start(&fixture, &[]).unwrap();
    let before = fixture.engine.session(id).unwrap();
    fixture.clock.advance(DAY);
    let same = SessionUpdate { title: Some(before.title.clone()), ..SessionUpdate::default() };
    assert_eq!(fixture.engine.update_session(id, &same).unwrap(), before);
    let too_long = SessionUpdate { title: Some("x".repeat(501)), ..SessionUpdate::default() };
    assert_eq!(kind(fixture.engine.update_session(id, &too_long)), ErrorKind::InvalidInput);
    assert_eq!(fixture.engine.session(id).unwrap(), before);
}

#[test]
fn a_clock_that_goes_back_does_not_date_a_session_before_itself() {
    let fixture = fixture();
    let id = start(&fixture, &[]).unwrap();
    let before = fixture.engine.session(id).unwrap();
    fixture.clock.set(before.updated_at.minus(DAY));
    let update = SessionUpdate { title: Some("later".to_owned()), ..SessionUpdate::default() };
    let after = fixture.engine.update_session(id, &update).unwrap();
    assert_eq!(after.updated_at, before.updated_at);
}
