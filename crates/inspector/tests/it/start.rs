//! The first page.

use quipu_core::model::Role;

use super::support::{HOSTILE, Site, assert_denied, led_to};

#[test]
fn stores_come_with_usage_last_change_and_rights() {
    let site = Site::new();
    let store = site.store("tea");
    site.put(store, "/a.md", "green tea");
    let page = site.get(&site.visitor(Role::ReadOnly, None), "/ui").unwrap();
    assert!(
        page.contains(">tea</a>") && page.contains("<td>1<meter") && page.contains("9 B"),
        "{page}"
    );
    assert!(page.contains("by user_ada"), "{page}");
    assert!(page.contains("you may read all stores"), "{page}");
    assert!(!page.contains("New store"), "a button that may not be used: {page}");
    let page = site.get(&site.admin(), "/ui").unwrap();
    assert!(page.contains("New store"), "{page}");
}

#[test]
fn changes_of_stores_that_one_may_not_read_are_hidden() {
    let site = Site::new();
    let (open, closed) = (site.store("open"), site.store("closed"));
    site.put(open, "/seen.md", "a");
    site.put(closed, "/hidden.md", "b");
    let visitor = site.visitor(Role::ReadWrite, Some(&[open]));
    let page = site.get(&visitor, "/ui").unwrap();
    assert!(page.contains("/seen.md"), "{page}");
    assert!(!page.contains("/hidden.md") && !page.contains("closed"), "{page}");
}

#[test]
fn changes_of_another_workspace_are_hidden() {
    let site = Site::new();
    let store = site.store("ours");
    site.put(store, "/ours.md", "a");
    let other = site.engine.create_workspace(&quipu_core::model::Name::new("b").unwrap()).unwrap();
    let visitor = site.visitor_of(other.id, Role::Admin, None);
    let page = site.get(&visitor, "/ui").unwrap();
    assert!(!page.contains("ours"), "{page}");
}

#[test]
fn the_newest_changes_of_all_come_first_and_say_where_the_stream_resumes() {
    let site = Site::new();
    let store = site.store("tea");
    for number in 0..30 {
        site.put(store, &format!("/{number}.md"), "a");
    }
    let page = site.get(&site.admin(), "/ui").unwrap();
    let (newest, older) = (page.find("/29.md").unwrap(), page.find("/10.md").unwrap());
    assert!(newest < older, "{page}");
    assert!(!page.contains(">/9.md<"), "{page}");
    let newest = site.engine.newest_sequence().unwrap().0;
    assert!(page.contains(&format!("data-after=\"{newest}\"")), "{page}");
}

#[test]
fn many_stores_come_in_pages() {
    let site = Site::new();
    for number in 0..120 {
        site.store(&format!("store {number:03}"));
    }
    let admin = site.admin();
    let first = site.get(&admin, "/ui").unwrap();
    assert!(first.contains("store 049") && !first.contains("store 050"), "{first}");
    assert!(first.contains("/ui?page=2"), "{first}");
    assert!(first.len() < 60_000, "{}", first.len());
    let last = site.get(&admin, "/ui?page=3").unwrap();
    assert!(last.contains("store 119") && !last.contains("page=4"), "{last}");
}

#[test]
fn creating_a_store_needs_an_administrator_and_escapes_its_name() {
    let site = Site::new();
    assert_denied(&site.post(&site.visitor(Role::ReadWrite, None), "/ui/stores", &[("name", "x")]));
    let admin = site.admin();
    let fields = [("name", HOSTILE), ("description", HOSTILE)];
    let to = led_to(site.post(&admin, "/ui/stores", &fields));
    assert!(to.starts_with("/ui/stores/memstore_"), "{to}");
    assert!(site.get(&admin, "/ui").unwrap().contains("&lt;script&gt;"));
}
