//! The search.

use quipu_core::model::{Role, View};
use quipu_inspector::{Reply, Trouble};

use super::support::{HOSTILE, Site, assert_denied, led_to};

#[test]
fn a_hit_shows_its_words_its_place_and_why_it_is_one() {
    let site = Site::new();
    let store = site.store("kitchen");
    let memory = site.put(
        store,
        "/drinks/tea.md",
        "---\ntitle: Green tea\ntags: [hot]\ntype: recipe\n---\nBrew the tea for two minutes.",
    );
    let page = site.get(&site.visitor(Role::ReadOnly, None), "/ui/search?q=tea").unwrap();
    assert!(page.contains("1 memory found."), "{page}");
    assert!(page.contains(&format!("/ui/stores/{store}/memories/{}", memory.id)), "{page}");
    assert!(page.contains("Brew the <mark>tea</mark> for"), "{page}");
    assert!(page.contains("title: tea · path: tea · text: tea · score "), "{page}");
    for facet in ["type=recipe", "tag=hot", "author=user_ada", &format!("store={store}")] {
        assert!(page.contains(&format!("/ui/search?q=tea&amp;{facet}")), "{facet}: {page}");
    }
    assert!(!page.contains("Delete selected") && !page.contains("Redact…"), "{page}");
}

#[test]
fn scores_are_explained_on_request_and_what_is_over_says_so() {
    let site = Site::new();
    let store = site.store("kitchen");
    let old = "---\nsuperseded_by: '[[<b>New</b>]]'\n---\n# Old tea\n\nBrew the tea.";
    site.put(store, "/old.md", old);
    let admin = site.admin();
    let page = site.get(&admin, "/ui/search?q=tea").unwrap();
    assert!(page.contains("superseded by [[&lt;b&gt;New&lt;/b&gt;]]"), "{page}");
    assert!(page.contains("/ui/search?q=tea&amp;explain=1"), "{page}");
    assert!(!page.contains("bonus for 100 % of the words"), "{page}");
    let page = site.get(&admin, "/ui/search?q=tea&explain=1").unwrap();
    assert!(page.contains("bonus for 100 % of the words"), "{page}");
    assert!(page.contains("expired: × 0.25"), "{page}");
    // It stays on while the search is changed.
    assert!(page.contains("name=\"explain\" value=\"1\""), "{page}");
}

#[test]
fn filters_narrow_the_hits() {
    let site = Site::new();
    let (one, other) = (site.store("one"), site.store("other"));
    site.put(one, "/a.md", "---\ntags: [hot]\n---\ntea a");
    site.put(one, "/b.md", "---\ntype: person\n---\ntea b");
    site.put(other, "/c.md", "tea c");
    let admin = site.admin();
    let found = |query: &str| {
        let page = site.get(&admin, &format!("/ui/search?q=tea&{query}")).unwrap();
        ["/a.md", "/b.md", "/c.md"]
            .into_iter()
            .filter(|path| page.contains(path))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(""), ["/a.md", "/b.md", "/c.md"]);
    assert_eq!(found(&format!("store={other}")), ["/c.md"]);
    assert_eq!(found("tag=hot"), ["/a.md"]);
    assert_eq!(found("type=person"), ["/b.md"]);
    assert_eq!(found("author=user_ada"), ["/a.md", "/b.md", "/c.md"]);
    assert_eq!(found("author=user_bob"), [""; 0]);
    site.clock.advance(std::time::Duration::from_hours(72));
    site.put(one, "/b.md", "---\ntype: person\n---\ntea b again");
    assert_eq!(found("since=1d"), ["/b.md"]);
}

#[test]
fn only_readable_stores_are_searched_and_named() {
    let site = Site::new();
    let (open, closed) = (site.store("open"), site.store("closed"));
    site.put(open, "/seen.md", "tea");
    site.put(closed, "/hidden.md", "tea");
    let visitor = site.visitor(Role::ReadOnly, Some(&[open]));
    let page = site.get(&visitor, "/ui/search?q=tea").unwrap();
    assert!(page.contains("/seen.md") && page.contains("1 memory found."), "{page}");
    assert!(!page.contains("/hidden.md") && !page.contains("closed"), "{page}");
    let refused = site.get(&visitor, &format!("/ui/search?q=tea&store={closed}"));
    assert!(matches!(refused, Err(Trouble::NotFound(_))), "{refused:?}");
}

#[test]
fn hostile_queries_and_texts_stay_text() {
    let site = Site::new();
    let store = site.store("x");
    site.put(
        store,
        "/a.md",
        &format!("---\ntitle: '{}'\n---\ntea {HOSTILE}", HOSTILE.replace('\'', "")),
    );
    let query = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect::<String>();
    let admin = site.admin();
    for address in [
        format!("/ui/search?q={query}"),
        format!("/ui/search?q=tea&tag={query}&type={query}"),
        "/ui/search?q=tea".to_owned(),
        format!("/ui/search?q={}", "%28".repeat(2_000)),
        "/ui/search?page=99999999".to_owned(),
    ] {
        site.get(&admin, &address).unwrap();
    }
    for address in [format!("/ui/search?author={query}"), format!("/ui/search?since={query}")] {
        assert!(matches!(site.get(&admin, &address), Err(Trouble::Invalid(_))), "{address}");
    }
}

#[test]
fn many_hits_come_in_pages_below_60_kilobytes() {
    let site = Site::new();
    let store = site.store("x");
    for number in 0..60 {
        site.put(store, &format!("/{number:03}.md"), &"tea and cups ".repeat(100));
    }
    let admin = site.admin();
    let page = site.get(&admin, "/ui/search?q=tea").unwrap();
    assert!(page.contains("60 memories found.") && page.len() < 60_000, "{}", page.len());
    assert_eq!(page.matches("type=\"checkbox\" name=\"memory\"").count(), 25);
    let last = site.get(&admin, "/ui/search?q=tea&page=3").unwrap();
    assert_eq!(last.matches("type=\"checkbox\" name=\"memory\"").count(), 10);
    assert!(last.contains("page=2") && !last.contains("page=4"), "{last}");
}

#[test]
fn selected_hits_are_deleted_after_a_look_at_them() {
    let site = Site::new();
    let store = site.store("x");
    let (gone, kept) = (site.put(store, "/gone.md", "tea"), site.put(store, "/kept.md", "tea"));
    let writer = site.visitor(Role::ReadWrite, None);
    let address = format!(
        "/ui/search/delete?memory={0}&place={0}/{store}&place={1}/{store}&back=/ui/search?q%3Dtea",
        gone.id, kept.id
    );
    let page = site.get(&writer, &address).unwrap();
    assert!(page.contains("Delete 1 memory?") && page.contains("/gone.md"), "{page}");
    assert!(!page.contains("/kept.md"), "{page}");
    let seen = format!("{store}/{}/{}", gone.id, gone.hash);
    assert!(page.contains(&seen), "{page}");
    let fields = [("seen", seen.as_str()), ("back", "/ui/search?q=tea")];
    assert_eq!(led_to(site.post(&writer, "/ui/search/delete", &fields)), "/ui/search?q=tea");
    assert!(site.engine.memory(store, gone.id, View::Basic).is_err());
    assert!(site.engine.memory(store, kept.id, View::Basic).is_ok());
}

#[test]
fn what_somebody_changed_meanwhile_is_not_deleted() {
    let site = Site::new();
    let store = site.store("x");
    let seen = site.put(store, "/a.md", "tea");
    let other = site.put(store, "/b.md", "tea");
    site.put(store, "/a.md", "tea, and something important");
    let fields = [
        ("seen", format!("{store}/{}/{}", seen.id, seen.hash)),
        ("seen", format!("{store}/{}/{}", other.id, other.hash)),
    ];
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let reply = site.post(&site.admin(), "/ui/search/delete", &fields).unwrap();
    let Reply::Conflict(page) = reply else { panic!("{reply:?}") };
    assert!(page.into_string().contains("has changed since it was read"));
    assert!(site.engine.memory(store, seen.id, View::Basic).is_ok());
    assert!(site.engine.memory(store, other.id, View::Basic).is_err());
}

#[test]
fn deleting_needs_the_right_to_write_and_leads_nowhere_else() {
    let site = Site::new();
    let store = site.store("x");
    let memory = site.put(store, "/a.md", "tea");
    let seen = format!("{store}/{}/{}", memory.id, memory.hash);
    let reader = site.visitor(Role::ReadOnly, None);
    assert_denied(&site.post(&reader, "/ui/search/delete", &[("seen", &seen)]));
    let address = format!("/ui/search/delete?memory={0}&place={0}/{store}", memory.id);
    assert_denied(&site.get(&reader, &address));
    assert!(site.engine.memory(store, memory.id, View::Basic).is_ok());
    let fields = [("seen", seen.as_str()), ("back", "https://example.com")];
    assert_eq!(led_to(site.post(&site.admin(), "/ui/search/delete", &fields)), "/ui/search");
    for damaged in ["", "x", "a/b/c", &format!("{store}/{}", memory.id)] {
        let reply = site.post(&site.admin(), "/ui/search/delete", &[("seen", damaged)]);
        assert!(!matches!(reply, Ok(Reply::Page(_))), "{damaged}: {reply:?}");
    }
}

#[test]
fn a_visitor_without_stores_finds_nothing() {
    let site = Site::new();
    let store = site.store("gone");
    site.put(store, "/a.md", "tea");
    let visitor = site.visitor(Role::ReadWrite, Some(&[store]));
    site.engine.delete_store(store).unwrap();
    let page = site.get(&visitor, "/ui/search?q=tea").unwrap();
    assert!(page.contains("Nothing found.") && !page.contains("/a.md"), "{page}");
    assert!(site.get(&visitor, "/ui").unwrap().contains("There is no store yet."));
}
