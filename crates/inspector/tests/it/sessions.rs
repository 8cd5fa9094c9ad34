//! Sessions and other authors, and taking back what they did.

use quipu_core::engine::Principal;
use quipu_core::model::{Actor, Role};
use quipu_service::caller::Caller;

use crate::site::{Site, user};

#[test]
fn sessions_are_listed_and_found_by_what_people_know_of_them() {
    let site = Site::new();
    let admin = site.admin();
    let review = site.session("nightly review", &[site.store]);
    site.session("weekly cleanup", &[site.store]);
    site.put(&Actor::Session(review.id), "/tea.md", "green\n");
    let page = site.get(&admin, "/ui/sessions").page();
    assert!(page.contains("nightly review") && page.contains("weekly cleanup"), "{page}");
    assert!(page.contains(">notes</a> <small>read_write</small>"), "{page}");
    for wanted in ["NIGHTLY", &review.id.to_string()] {
        let page = site.get(&admin, &format!("/ui/sessions?q={wanted}")).page();
        assert!(page.contains("nightly review") && !page.contains("weekly cleanup"), "{page}");
    }
    let page = site.get(&admin, "/ui/sessions?q=nobody").page();
    assert!(page.contains("No session matches."), "{page}");
}

#[test]
fn many_sessions_have_pages_without_gaps() {
    let site = Site::new();
    let admin = site.admin();
    for number in 0..60 {
        site.clock.advance(std::time::Duration::from_secs(1));
        site.session(&format!("session number {number:02}."), &[site.store]);
    }
    let mut address = "/ui/sessions?q=number".to_owned();
    let mut titles = Vec::new();
    loop {
        let page = site.get(&admin, &address).page();
        let found = page.split("session number ").skip(1).map(|rest| rest[..2].to_owned());
        titles.extend(found);
        let Some(next) = page.split("rel=\"next\" href=\"").nth(1) else { break };
        address = next.split('"').next().unwrap().replace("&amp;", "&");
    }
    let expected: Vec<_> = (0..60).rev().map(|number| format!("{number:02}")).collect();
    assert_eq!(titles, expected);
}

#[test]
fn a_session_that_reaches_further_than_a_visitor_is_hidden_from_it() {
    let site = Site::new();
    let other = site.store("secret-store");
    let session = site.session("secret title", &[site.store, other]);
    let memory = site.put(&Actor::Session(session.id), "/tea.md", "green\n");
    let limited = site.visitor(Role::Admin, Some(&[site.store]));
    let history = site.at(&format!("/memories/{}/history", memory.id));
    for address in ["/ui/sessions", "/ui/actors", &history, &format!("/ui/actors/{}", session.id)] {
        let page = site.get(&limited, address).page();
        assert!(!page.contains("secret"), "{address}: {page}");
    }
    assert_eq!(site.get(&limited, &format!("/ui/sessions/{}", session.id)).status, 404);
    assert_eq!(site.post(&limited, &format!("/ui/sessions/{}/end", session.id), &[]).status, 404);
    let page = site.get(&limited, &format!("/ui/actors/{}", session.id)).page();
    assert!(page.contains("<ins>green\n</ins>"), "what is readable stays so: {page}");
}

#[test]
fn everything_that_a_session_changed_is_one_difference_per_memory() {
    let site = Site::new();
    let admin = site.admin();
    let session = site.session("agent", &[site.store]);
    let agent = Actor::Session(session.id);
    site.put(&user("ada"), "/tea.md", "green tea\n");
    site.put(&agent, "/tea.md", "black tea\n");
    site.put(&agent, "/tea.md", "black coffee\n");
    site.put(&agent, "/new.md", "planted\n");
    site.put(&user("ada"), "/mine.md", "mine\n");
    let page = site.get(&admin, &format!("/ui/sessions/{}", session.id)).page();
    assert!(page.contains("<del>green tea\n</del>"), "{page}");
    assert!(page.contains("<ins>black coffee\n</ins>") && !page.contains("black tea"), "{page}");
    assert!(page.contains("2 versions") && page.contains("planted"), "{page}");
    assert!(!page.contains("mine.md"), "{page}");
    assert!(page.contains("/mnt/memory/notes") && page.contains("readonly"), "its prompt: {page}");
    let selected = format!("/ui/sessions/{}?path=%2Fnew.md", session.id);
    let page = site.get(&admin, &selected).page();
    assert!(page.contains("planted") && !page.contains("black coffee"), "{page}");
}

#[test]
fn reviews_have_pages_and_each_memory_is_on_one_of_them() {
    let site = Site::new();
    let admin = site.admin();
    for round in 0..3 {
        for number in 0..50 {
            site.put(&user("ada"), &format!("/{number:02}.md"), &format!("{round}\n"));
        }
    }
    let mut address = "/ui/actors/user_ada".to_owned();
    let (mut found, mut pages_count) = (Vec::new(), 0);
    loop {
        let page = site.get(&admin, &address).page();
        assert!(page.len() < 60_000);
        pages_count += 1;
        let paths = page.split("/history\">/").skip(1).map(|rest| rest[..2].to_owned());
        found.extend(paths);
        let Some(next) = page.split("rel=\"next\" href=\"").nth(1) else { break };
        address = next.split(['"', '#']).next().unwrap().replace("&amp;", "&");
    }
    let expected: Vec<_> = (0..50).rev().map(|number| format!("{number:02}")).collect();
    assert_eq!((found, pages_count), (expected, 3));
}

#[test]
fn a_revert_is_planned_and_carried_out_if_nothing_changed_meanwhile() {
    let site = Site::new();
    let writer = site.visitor(Role::ReadWrite, None);
    let session = site.session("agent", &[site.store]);
    let agent = Actor::Session(session.id);
    site.put(&user("ada"), "/tea.md", "green\ntwo\nthree\nfour\n");
    site.put(&agent, "/tea.md", "BAD\ntwo\nthree\nfour\n");
    let page = site.get(&writer, &format!("/ui/sessions/{}", session.id)).page();
    let link = page.split("href=\"").find(|it| it.contains("Plan a revert")).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let page = site.get(&writer, &link).page();
    assert!(page.contains("<del>BAD\n</del>") && page.contains("<ins>green\n</ins>"), "{page}");

    site.put(&user("bob"), "/tea.md", "BAD\ntwo\nthree\nFOUR\n");
    let answer = site.submit(&writer, (&page, "confirm"), &[]);
    assert_eq!(answer.status, 409);
    assert!(answer.text.contains("others have changed it since"), "{}", answer.text);
    assert_eq!(site.text("/tea.md").as_deref(), Some("BAD\ntwo\nthree\nFOUR\n"));

    let to = site.submit(&writer, (&answer.text, "confirm"), &[]).moved();
    assert_eq!(site.text("/tea.md").as_deref(), Some("green\ntwo\nthree\nFOUR\n"));
    let page = site.get(&writer, &to).page();
    assert!(page.contains("<ins>green\n</ins>"), "{page}");
    let page = site.get(&writer, &link).page();
    assert!(page.contains("There is nothing to take back."), "{page}");
}

#[test]
fn a_key_stands_for_its_sessions() {
    let site = Site::new();
    let writer = site.visitor(Role::ReadWrite, None);
    let new = quipu_core::engine::NewSession {
        key: writer.key(),
        ..quipu_core::engine::NewSession::titled(
            "agent",
            vec![quipu_core::engine::NewAttachment {
                store: site.store,
                access: quipu_core::model::Access::ReadWrite,
                instructions: quipu_core::model::Instructions::default(),
            }],
            quipu_core::engine::SessionToken::Issue,
        )
    };
    let session = site.engine.create_session(site.workspace, &new).unwrap().0;
    site.put(&Actor::Session(session.id), "/agent.md", "by its session\n");
    site.put(&writer.actor, "/key.md", "by itself\n");
    let page = site.get(&writer, &format!("/ui/actors/{}", writer.actor)).page();
    assert!(page.contains("by its session") && page.contains("by itself"), "{page}");
    assert!(page.contains("1 session of this key") && !page.contains("Revoke"), "{page}");
    let page = site.get(&site.admin(), &format!("/ui/actors/{}", writer.actor)).page();
    assert!(page.contains(&format!("/ui/admin/keys/{}/revoke", writer.actor)), "{page}");
}

#[test]
fn a_limited_visitor_knows_the_authors_of_its_stores_alone() {
    let site = Site::new();
    let other = site.store("other");
    let writer = site.visitor(Role::ReadWrite, None);
    let limited = site.visitor(Role::ReadOnly, Some(&[other]));
    site.put(&writer.actor, "/tea.md", "green\n");
    let key = writer.key().unwrap();
    let unknown = site.get(&limited, "/ui/actors/nobody");
    for actor in [key.to_string(), format!("user_x@{key}"), "user_ada".to_owned()] {
        let answer = site.get(&limited, &format!("/ui/actors/{actor}"));
        assert_eq!((answer.status, unknown.status), (404, 404), "{actor}");
        assert_eq!(answer.text, unknown.text.replace("nobody", &actor));
    }
    let limited = site.visitor(Role::ReadWrite, Some(&[other]));
    let revert = format!("/ui/revert?actor={key}&store={other}");
    assert_eq!(site.get(&limited, &revert).status, 404);
    assert_eq!(site.get(&site.admin(), &format!("/ui/actors/{key}")).status, 200);
    let reader = site.visitor(Role::ReadOnly, Some(&[site.store]));
    let address = format!("/ui/actors/{key}?since=2099-01-01T00:00:00Z");
    assert!(site.get(&reader, &address).page().contains("read_write key"));
}

#[test]
fn a_visitor_counts_only_the_sessions_that_it_sees() {
    let site = Site::new();
    let other = site.store("other");
    let writer = site.visitor(Role::ReadWrite, None);
    for stores in [vec![site.store], vec![other]] {
        let attach = |store: &quipu_core::model::StoreId| quipu_core::engine::NewAttachment {
            store: *store,
            access: quipu_core::model::Access::ReadOnly,
            instructions: quipu_core::model::Instructions::default(),
        };
        let attachments = stores.iter().map(attach).collect();
        let token = quipu_core::engine::SessionToken::Issue;
        let new = quipu_core::engine::NewSession::titled("agent", attachments, token);
        let new = quipu_core::engine::NewSession { key: writer.key(), ..new };
        site.engine.create_session(site.workspace, &new).unwrap();
    }
    site.put(&writer.actor, "/tea.md", "green\n");
    let address = format!("/ui/actors/{}", writer.actor);
    let limited = site.visitor(Role::ReadOnly, Some(&[site.store]));
    let page = site.get(&limited, &address).page();
    assert!(page.contains(">1 session of this key"), "{page}");
    let page = site.get(&site.admin(), &address).page();
    assert!(page.contains(">2 sessions of this key"), "{page}");
}

#[test]
fn a_redacted_change_is_called_redacted() {
    let site = Site::new();
    let admin = site.admin();
    let session = site.session("agent", &[site.store]);
    site.put(&user("ada"), "/tea.md", "green\n");
    let secret = site.put(&Actor::Session(session.id), "/tea.md", "secret\n");
    site.put(&user("ada"), "/tea.md", "black\n");
    site.engine.redact(&admin.actor, site.store, &[secret.version]).unwrap();
    let page = site.get(&admin, &format!("/ui/sessions/{}", session.id)).page();
    assert!(page.contains("(redacted)") && !page.contains("(lost)"), "{page}");
}

#[test]
fn readers_may_neither_revert_nor_end_a_session() {
    let site = Site::new();
    let session = site.session("agent", &[site.store]);
    site.put(&Actor::Session(session.id), "/tea.md", "green\n");
    // A reader does not see sessions that may write, so it looks at the author.
    let reader = site.visitor(Role::ReadOnly, None);
    let page = site.get(&reader, &format!("/ui/actors/{}", session.id)).page();
    assert!(!page.contains("revert") && !page.contains("Redact"), "{page}");
    let (actor, store) = (session.id.to_string(), site.store.to_string());
    let plan = format!("/ui/revert?actor={actor}&store={store}");
    assert_eq!(site.get(&reader, &plan).status, 403);
    let fields = [("actor", actor.as_str()), ("store", &store), ("expect", "00000000")];
    assert_eq!(site.post(&reader, "/ui/revert", &fields).status, 403);
    let own = Caller::new(Principal::Session(session.clone()));
    let page = site.get(&own, &format!("/ui/sessions/{actor}")).page();
    assert!(!page.contains("End the session"), "{page}");
    assert_eq!(site.post(&own, &format!("/ui/sessions/{actor}/end"), &[]).status, 403);
    assert!(site.engine.session(session.id).unwrap().archived_at.is_none());
    assert_eq!(site.text("/tea.md").as_deref(), Some("green\n"));
}

#[test]
fn ending_a_session_archives_it() {
    let site = Site::new();
    let writer = site.visitor(Role::ReadWrite, None);
    let session = site.session("agent", &[site.store]);
    let address = format!("/ui/sessions/{}", session.id);
    assert!(site.get(&writer, &address).page().contains("End the session"));
    assert_eq!(site.post(&writer, &format!("{address}/end"), &[]).moved(), address);
    assert!(site.engine.session(session.id).unwrap().archived_at.is_some());
    let page = site.get(&writer, &address).page();
    assert!(page.contains("Archived") && !page.contains("End the session"), "{page}");
}

#[test]
fn a_deleted_session_is_still_an_author() {
    let site = Site::new();
    let admin = site.admin();
    let session = site.session("agent", &[site.store]);
    site.put(&Actor::Session(session.id), "/tea.md", "green\n");
    site.engine.delete_session(session.id).unwrap();
    assert_eq!(site.get(&admin, &format!("/ui/sessions/{}", session.id)).status, 404);
    let page = site.get(&admin, &format!("/ui/actors/{}", session.id)).page();
    assert!(page.contains("<ins>green\n</ins>"), "{page}");
}
