//! A store as it was.

use std::time::Duration;

use quipu_core::model::{MemoryPath, Role};
use quipu_core::settings::Limits;

use crate::site::{Site, user};

/// A store with a tree that has changed since.
fn changed() -> (Site, String) {
    let site = Site::new();
    site.put(&user("ada"), "/projects/tea.md", "green\n");
    site.put(&user("ada"), "/projects/cup.md", "blue\n");
    let then = site.put(&user("ada"), "/gone.md", "gone\n").version.to_string();
    site.put(&user("bob"), "/projects/tea.md", "black\n");
    site.put(&user("bob"), "/new.md", "new\n");
    let path = |text| MemoryPath::parse(text).unwrap();
    let (cup, moved) = (path("/projects/cup.md"), path("/cup.md"));
    site.engine.rename(&user("bob"), site.store, &cup, &moved).unwrap();
    site.engine.delete_at(&user("bob"), site.store, &path("/gone.md")).unwrap();
    (site, then)
}

#[test]
fn the_tree_of_a_moment_is_shown_with_its_texts() {
    let (site, then) = changed();
    let reader = site.visitor(Role::ReadOnly, None);
    let page = site.get(&reader, &site.at("/past")).page();
    assert!(page.contains("yesterday 14:00"), "examples: {page}");

    let page = site.get(&reader, &site.at(&format!("/past?at={then}"))).page();
    assert!(page.contains(">gone.md</a>") && page.contains(">projects/</a>"), "{page}");
    assert!(!page.contains("new.md") && !page.contains("restore"), "{page}");
    let page = site.get(&reader, &site.at(&format!("/past?at={then}&dir=%2Fprojects%2F"))).page();
    let link = page.split("href=\"").find(|it| it.contains(">tea.md</a>")).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let page = site.get(&reader, &link).page();
    assert!(page.contains("green\n</pre>"), "{page}");
}

#[test]
fn a_time_is_pinned_so_that_links_show_the_same_state_later() {
    let (site, _) = changed();
    let reader = site.visitor(Role::ReadOnly, None);
    let page = site.get(&reader, &site.at("/past?at=1s+ago")).page();
    assert!(page.contains("at=2026-01-01T00%3A00%3A04"), "{page}");
    assert!(!page.contains("at=1s"), "{page}");
    for address in ["/past?at=soon", "/past?at=2030-01-01", "/past?at=%23999", "/past/changes"] {
        assert_eq!(site.get(&reader, &site.at(address)).status, 400, "{address}");
    }
}

#[test]
fn the_comparison_with_now_counts_and_links() {
    let (site, then) = changed();
    let reader = site.visitor(Role::ReadOnly, None);
    let page = site.get(&reader, &site.at(&format!("/past/changes?at={then}"))).page();
    assert!(page.contains("1 added, 1 removed, 1 changed, 1 moved."), "{page}");
    assert!(page.contains("/projects/cup.md → "), "{page}");
    let tea = page.split("href=\"").find(|it| it.contains(">/projects/tea.md</a>")).unwrap();
    let tea = tea.split('"').next().unwrap().replace("&amp;", "&");
    let page = site.get(&reader, &tea).page();
    assert!(page.contains("<del>green\n</del>") && page.contains("<ins>black\n</ins>"), "{page}");
}

#[test]
fn a_restore_is_planned_and_carried_out_if_nothing_changed_meanwhile() {
    let (site, then) = changed();
    let writer = site.visitor(Role::ReadWrite, None);
    let plan = site.at(&format!("/past/restore?at={then}&path=%2Fprojects%2Ftea.md"));
    let page = site.get(&writer, &plan).page();
    assert!(page.contains("1 memory would change") || page.contains("1 memory</strong>"), "{page}");
    assert!(page.contains("<del>black\n</del>") && page.contains("Restore 1 memory"), "{page}");

    site.put(&user("eve"), "/projects/tea.md", "white\n");
    let answer = site.submit(&writer, (&page, "confirm"), &[]);
    assert_eq!(answer.status, 409);
    assert!(answer.text.contains("This is the new plan"), "{}", answer.text);
    assert!(answer.text.contains("<del>white\n</del>"), "{}", answer.text);
    assert_eq!(site.text("/projects/tea.md").as_deref(), Some("white\n"));

    let to = site.submit(&writer, (&answer.text, "confirm"), &[("reason", "tidy")]).moved();
    assert_eq!(site.text("/projects/tea.md").as_deref(), Some("green\n"));
    assert_eq!(site.text("/new.md").as_deref(), Some("new\n"), "only the file was asked for");
    let page = site.get(&writer, &to).page();
    assert!(page.contains("Done.") && page.contains("<ins>green\n</ins>"), "{page}");
    assert!(page.contains("Plan a revert"), "it can be taken back: {page}");
}

#[test]
fn a_whole_store_goes_back() {
    let (site, then) = changed();
    let writer = site.visitor(Role::ReadWrite, None);
    let page = site.get(&writer, &site.at(&format!("/past/restore?at={then}"))).page();
    site.submit(&writer, (&page, "confirm"), &[]).moved();
    assert_eq!(site.text("/gone.md").as_deref(), Some("gone\n"));
    assert_eq!(site.text("/projects/cup.md").as_deref(), Some("blue\n"));
    assert_eq!(site.text("/new.md"), None);
    let page = site.get(&writer, &site.at(&format!("/past/restore?at={then}"))).page();
    assert!(page.contains("There is nothing to restore."), "{page}");
}

#[test]
fn readers_may_not_restore() {
    let (site, then) = changed();
    let reader = site.visitor(Role::ReadOnly, None);
    let plan = site.at("/past/restore");
    assert_eq!(site.get(&reader, &format!("{plan}?at={then}")).status, 403);
    let fields = [("at", then.as_str()), ("expect", "00000000")];
    assert_eq!(site.post(&reader, &plan, &fields).status, 403);
    let writer = site.visitor(Role::ReadWrite, None);
    assert_eq!(site.post(&writer, &plan, &fields).status, 409, "another digest");
    assert_eq!(site.post(&writer, &plan, &fields[..1]).status, 400, "no digest");
    assert_eq!(site.text("/gone.md"), None);
}

#[test]
fn before_the_horizon_the_past_says_that_it_is_incomplete() {
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 1, ..Limits::default() };
    let site = Site::with_limits(limits);
    site.put(&user("ada"), "/other.md", "stays\n");
    site.put(&user("ada"), "/tea.md", "green\n");
    site.clock.advance(Duration::from_secs(1));
    let at = "2026-01-01T00:00:02Z";
    site.put(&user("ada"), "/tea.md", "black\n");
    site.clock.advance(Duration::from_mins(1));
    site.engine.prune().unwrap();

    let writer = site.visitor(Role::ReadWrite, None);
    let page = site.get(&writer, &site.at(&format!("/past?at={at}"))).page();
    assert!(page.contains("The history is complete from 2026-01-01 00:0"), "{page}");
    let page = site.get(&writer, &site.at(&format!("/past/restore?at={at}"))).page();
    assert!(page.contains("not fully known") && !page.contains("id=\"confirm\""), "{page}");
    let page = site.get(&writer, &site.at(&format!("/past/restore?at={at}&incomplete=yes"))).page();
    assert!(page.contains("no longer kept"), "{page}");
}

#[test]
fn redacted_texts_of_a_moment_are_counted() {
    let (site, _) = changed();
    let reader = site.visitor(Role::ReadOnly, None);
    let old = site.put(&user("ada"), "/token.md", "sesame\n");
    site.put(&user("ada"), "/token.md", "green\n");
    site.engine.redact(&user("ada"), site.store, &[old.version]).unwrap();
    let page = site.get(&reader, &site.at(&format!("/past?at={}", old.version))).page();
    assert!(page.contains("1 memory of that moment cannot be shown"), "{page}");
    let gone = site.at(&format!("/past/memories/{}?at={}", old.id, old.version));
    let answer = site.get(&reader, &gone);
    assert!(answer.status == 404 && answer.text.contains("redacted since then: 1"), "{answer:?}");
}
