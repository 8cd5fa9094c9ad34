//! The history of a memory.

use std::time::Duration;

use quipu_core::model::{MemoryPath, Role, View};
use quipu_core::settings::Limits;

use crate::site::{HOSTILE, Site, user};

#[test]
fn the_newest_change_is_shown_and_any_two_versions_can_be_chosen() {
    let site = Site::new();
    let first = site.put(&user("ada"), "/tea.md", "green tea\n");
    site.put(&user("bob"), "/tea.md", "black tea\n");
    let third = site.put(&user("ada"), "/tea.md", "black coffee\n");
    let reader = site.visitor(Role::ReadOnly, None);
    let history = site.at(&format!("/memories/{}/history", first.id));

    let page = site.get(&reader, &history).page();
    assert!(page.contains("<title>tea.md · history · Quipu</title>"), "{page}");
    assert!(page.contains("<del>black <mark>tea</mark>\n</del>"), "{page}");
    assert!(page.contains("<ins>black <mark>coffee</mark>\n</ins>"), "{page}");
    assert!(page.contains("<a href=\"/ui/actors/user_bob\">user_bob</a>"), "{page}");

    let chosen = format!("{history}?a={}&b={}&view=side", first.version, third.version);
    let page = site.get(&reader, &chosen).page();
    assert!(page.contains("<del>green tea\n</del>"), "nothing is common: {page}");
    assert!(page.contains("table class=\"diff side\""), "{page}");
    for (name, version) in [("a", first.version), ("b", third.version)] {
        assert!(page.contains(&format!("name=\"{name}\" value=\"{version}\" checked")), "{page}");
    }
}

#[test]
fn hostile_texts_paths_reasons_and_titles_stay_text() {
    let site = Site::new();
    let session = site.session(HOSTILE, &[site.store]);
    let agent = quipu_core::model::Actor::Session(session.id);
    let path = format!("/{}", HOSTILE.replace('/', "|"));
    let memory = site.put(&agent, &path, HOSTILE);
    site.put(&agent, &path, &format!("{HOSTILE}\nmore {HOSTILE}"));
    let admin = site.admin();
    let pages = [
        site.at(&format!("/memories/{}/history", memory.id)),
        site.at(&format!("/memories/{}/history?view=side", memory.id)),
        site.at(&format!("/memories/{}/versions/{}", memory.id, memory.version)),
        site.at("/past?at=now"),
        site.at(&format!("/past/memories/{}?at=now", memory.id)),
        site.at(&format!("/past/changes?at={}", memory.version)),
        site.at(&format!("/past/restore?at={}", memory.version)),
        "/ui/sessions".to_owned(),
        "/ui/actors".to_owned(),
        format!("/ui/sessions/{}", session.id),
        format!("/ui/revert?actor={}&store={}", session.id, site.store),
    ];
    for address in pages {
        let page = site.get(&admin, &address).page();
        assert!(!page.contains("<script>") && !page.contains("<img src=x"), "{address}: {page}");
        assert!(page.contains("&lt;script&gt;"), "{address} shows it as text: {page}");
    }
}

#[test]
fn a_version_is_restored_unless_somebody_else_was_faster() {
    let site = Site::new();
    let writer = site.visitor(Role::ReadWrite, None);
    let first = site.put(&user("ada"), "/tea.md", "green\n");
    site.put(&user("ada"), "/tea.md", "black\n");
    let address = site.at(&format!("/memories/{}/versions/{}", first.id, first.version));
    let page = site.get(&writer, &address).page();

    site.put(&user("bob"), "/tea.md", "white\n");
    let answer = site.submit(&writer, (&page, "restore"), &[]);
    assert_eq!(answer.status, 409);
    assert!(
        answer.text.contains("modified by <a href=\"/ui/actors/user_bob\">"),
        "{}",
        answer.text
    );
    assert_eq!(site.text("/tea.md").as_deref(), Some("white\n"));

    let to = site.submit(&writer, (&answer.text, "restore"), &[]).moved();
    assert_eq!(to, site.at(&format!("/memories/{}", first.id)));
    assert_eq!(site.text("/tea.md").as_deref(), Some("green\n"));
    let restored = site.engine.memory(site.store, first.id, View::Basic).unwrap().version;
    let restored = site.engine.version(site.store, restored, View::Basic).unwrap();
    assert_eq!(restored.actor, writer.actor);
}

#[test]
fn a_deleted_memory_has_a_history_and_comes_back_at_a_chosen_path() {
    let site = Site::new();
    let writer = site.visitor(Role::ReadWrite, None);
    let memory = site.put(&user("ada"), "/tea.md", "green\n");
    let path = MemoryPath::parse("/tea.md").unwrap();
    site.engine.delete_at(&user("bob"), site.store, &path).unwrap();
    let page = site.get(&writer, &site.at(&format!("/memories/{}/history", memory.id))).page();
    assert!(
        page.contains("This memory is deleted.") && page.contains("<del>green\n</del>"),
        "{page}"
    );

    let address = site.at(&format!("/memories/{}/versions/{}", memory.id, memory.version));
    let page = site.get(&writer, &address).page();
    site.submit(&writer, (&page, "restore"), &[("path", "/back.md")]).moved();
    assert_eq!(site.text("/back.md").as_deref(), Some("green\n"));
}

#[test]
fn an_undo_says_which_version_it_went_back_to() {
    let site = Site::new();
    let reader = site.visitor(Role::ReadOnly, None);
    let first = site.put(&user("ada"), "/tea.md", "green\n");
    site.put(&user("ada"), "/tea.md", "black\n");
    site.engine.undo(&user("bob"), site.store, first.id, None).unwrap();
    let page = site.get(&reader, &site.at(&format!("/memories/{}/history", first.id))).page();
    let link = format!("/versions/{}\">undo, back to 2026-01-01 00:00:01 UTC</a>", first.version);
    assert!(page.contains(&link), "{page}");
}

#[test]
fn readers_see_no_buttons_and_may_change_nothing() {
    let site = Site::new();
    let old = site.put(&user("ada"), "/tea.md", "green\n");
    site.put(&user("ada"), "/tea.md", "black\n");
    let version = site.at(&format!("/memories/{}/versions/{}", old.id, old.version));
    let reader = site.visitor(Role::ReadOnly, None);
    let page = site.get(&reader, &version).page();
    let content = &page[page.find("<main").unwrap()..];
    assert!(!content.contains("<form") && !content.contains("<button"), "{content}");
    let writer = site.visitor(Role::ReadWrite, None);
    let page = site.get(&writer, &version).page();
    assert!(page.contains("Restore this version") && !page.contains("Redact this version"));

    let seen = [("seen", old.version.to_string())];
    let seen = seen.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(site.post(&reader, &format!("{version}/restore"), &seen).status, 403);
    for visitor in [&reader, &writer] {
        let sure = [("sure", "yes")];
        assert_eq!(site.post(visitor, &format!("{version}/redact"), &sure).status, 403);
    }
    let elsewhere = site.store("other");
    let stranger = site.visitor(Role::Admin, Some(&[elsewhere]));
    assert_eq!(site.get(&stranger, &version).status, 403);
    assert_eq!(site.text("/tea.md").as_deref(), Some("black\n"));
}

#[test]
fn a_redacted_version_says_by_whom_and_has_no_text() {
    let site = Site::new();
    let admin = site.admin();
    let old = site.put(&user("ada"), "/tea.md", "sesame-4711\n");
    let new = site.put(&user("ada"), "/tea.md", "green\n");
    let address = |version| site.at(&format!("/memories/{}/versions/{version}", old.id));
    let page = site.get(&admin, &address(old.version)).page();
    assert_eq!(site.submit(&admin, (&page, "redact"), &[]).status, 400, "the box is not ticked");
    let to = site.submit(&admin, (&page, "redact"), &[("sure", "yes")]).moved();

    let page = site.get(&admin, &to).page();
    assert!(page.contains("The text was redacted") && !page.contains("sesame"), "{page}");
    let history = site.at(&format!("/memories/{}/history", old.id));
    let page = site.get(&admin, &history).page();
    assert!(page.contains("its text is gone, and cannot be compared"), "{page}");
    let by = format!("by <a href=\"/ui/actors/{}\">admin key</a>", admin.actor);
    assert!(page.contains("<span class=\"badge\">redacted</span>") && page.contains(&by), "{page}");

    let page = site.get(&admin, &address(new.version)).page();
    assert!(page.contains("This is what the memory holds now"), "{page}");
    let answer = site.post(&admin, &format!("{}/redact", address(new.version)), &[("sure", "yes")]);
    assert_eq!(answer.status, 409);
    assert!(answer.text.contains("Nothing was redacted"), "{}", answer.text);
}

#[test]
fn a_long_history_has_pages_and_versions_of_two_of_them_can_be_compared() {
    let site = Site::new();
    let reader = site.visitor(Role::ReadOnly, None);
    let versions: Vec<_> = (0..120)
        .map(|number| site.put(&user("ada"), "/tea.md", &format!("number {number}\n")))
        .collect();
    let history = site.at(&format!("/memories/{}/history", versions[0].id));
    let page = site.get(&reader, &history).page();
    assert_eq!(page.matches("name=\"a\" value=").count(), 50);
    let (first, last) = (&versions[0].version, &versions[119].version);
    let next = format!("{history}?a={first}&b={last}&view=inline&before={}", versions[70].version);
    let page = site.get(&reader, &next).page();
    assert!(page.contains("number <mark>119</mark>") && page.contains("number <mark>0</mark>"));
    assert!(page.contains(&format!("name=\"a\" value=\"{first}\" checked")), "{page}");
    let link =
        format!("a={first}&amp;b={last}&amp;view=inline&amp;before={}", versions[20].version);
    assert!(page.contains(&link), "the choice is kept: {page}");
    assert!(page.len() < 60_000, "{}", page.len());
}

#[test]
fn what_retention_removed_is_said() {
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 1, ..Limits::default() };
    let site = Site::with_limits(limits);
    let reader = site.visitor(Role::ReadOnly, None);
    let memory = site.put(&user("ada"), "/tea.md", "green\n");
    let history = site.at(&format!("/memories/{}/history", memory.id));
    site.put(&user("ada"), "/tea.md", "black\n");
    assert!(!site.get(&reader, &history).page().contains("removed by retention"));
    site.clock.advance(Duration::from_mins(1));
    site.engine.prune().unwrap();
    let page = site.get(&reader, &history).page();
    assert!(page.contains("Older versions were removed by retention"), "{page}");
    assert!(page.contains("is complete from 2026-01-01 00:0"), "{page}");
    assert!(page.contains("no version before it is kept"), "{page}");
}

#[test]
fn missing_and_foreign_versions_are_not_found() {
    let site = Site::new();
    let reader = site.visitor(Role::ReadOnly, None);
    let tea = site.put(&user("ada"), "/tea.md", "green\n");
    let cup = site.put(&user("ada"), "/cup.md", "blue\n");
    let history = |memory: &str| site.at(&format!("/memories/{memory}/history"));
    assert_eq!(site.get(&reader, &history("mem_none")).status, 404);
    let foreign = format!("{}?a={}", history(&tea.id.to_string()), cup.version);
    assert_eq!(site.get(&reader, &foreign).status, 404);
    let malformed = format!("{}?a=x", history(&tea.id.to_string()));
    assert_eq!(site.get(&reader, &malformed).status, 400);
    let version = site.at(&format!("/memories/{}/versions/{}", tea.id, cup.version));
    assert_eq!(site.get(&reader, &version).status, 404);
}
