//! The graph of links.

use quipu_core::model::{Role, StoreId};
use quipu_inspector::Trouble;

use super::support::{HOSTILE, Site, assert_denied};

fn linked() -> (Site, StoreId) {
    let site = Site::new();
    let store = site.store("notes");
    site.put(store, "/a/tea.md", "---\ntitle: Tea\n---\n- served_in [[Cup]]\n- about [[Nowhere]]");
    site.put(store, "/b/cup.md", "---\ntitle: Cup\n---\n- made_of [[Clay]]");
    site.put(store, "/b/clay.md", "---\ntitle: Clay\ntype: material\n---\nclay");
    site.put(store, "/alone.md", "---\ntitle: Alone\n---\nalone");
    (site, store)
}

#[test]
fn the_graph_of_a_store_is_a_picture_and_a_list() {
    let (site, store) = linked();
    let page = site
        .get(&site.visitor(Role::ReadOnly, None), &format!("/ui/stores/{store}/graph"))
        .unwrap();
    assert_eq!(page.matches("<circle class=\"color-").count(), 3 + 2, "3 nodes, 2 colors: {page}");
    assert_eq!(page.matches("<line ").count(), 3, "{page}");
    assert!(page.contains("made_of Clay") && page.contains("about Nowhere"), "{page}");
    assert!(page.contains("does not exist"), "{page}");
    assert!(page.contains("1 memory without links within the store"), "{page}");
    assert!(!page.contains("Alone"), "{page}");
}

#[test]
fn a_focus_shows_what_is_near_it() {
    let (site, store) = linked();
    let admin = site.admin();
    let near = site.get(&admin, &format!("/ui/stores/{store}/graph?focus=Tea&depth=1")).unwrap();
    assert!(near.contains("Cup") && !near.contains("Clay"), "{near}");
    assert!(near.contains("- served_in [[Cup]]"), "no preview: {near}");
    let far = site
        .get(&admin, &format!("/ui/stores/{store}/graph?focus=Tea&depth=2&color=type"))
        .unwrap();
    assert!(far.contains("Clay") && far.contains("material"), "{far}");
    assert_eq!(
        far,
        site.get(&admin, &format!("/ui/stores/{store}/graph?focus=Tea&depth=2&color=type"))
            .unwrap()
    );
}

#[test]
fn a_graph_is_bounded_and_says_what_it_leaves_out() {
    let site = Site::new();
    let store = site.store("many");
    for number in 0..400 {
        let text = format!(
            "---\ntitle: Note {number}\n---\n[[Note {}]] [[Missing {number}]]",
            (number + 1) % 400
        );
        site.put(store, &format!("/{number:03}.md"), &text);
    }
    let page = site.get(&site.admin(), &format!("/ui/stores/{store}/graph")).unwrap();
    assert!(page.contains("240 of the memories with the most links; 160 others"), "{page}");
    assert!(page.contains("Not all links to memories that do not exist"), "{page}");
}

#[test]
fn hostile_titles_and_unknown_names_do_no_harm() {
    let site = Site::new();
    let store = site.store(HOSTILE);
    let title = HOSTILE.replace('\'', "");
    site.put(store, "/a.md", &format!("---\ntitle: '{title}'\n---\n{HOSTILE} [[b]]"));
    site.put(store, "/b.md", &format!("[[a]] [[{}]]", HOSTILE.replace(['[', ']'], "")));
    let admin = site.admin();
    site.get(&admin, &format!("/ui/stores/{store}/graph")).unwrap();
    site.get(&admin, &format!("/ui/stores/{store}/graph?focus=b&depth=9999&color=x")).unwrap();
    let unknown = site.get(&admin, &format!("/ui/stores/{store}/graph?focus=nothing"));
    assert!(matches!(unknown, Err(Trouble::Engine(_))), "{unknown:?}");
}

#[test]
fn only_readable_stores_have_a_graph() {
    let (site, store) = linked();
    let other = site.store("other");
    let visitor = site.visitor(Role::ReadWrite, Some(&[other]));
    assert_denied(&site.get(&visitor, &format!("/ui/stores/{store}/graph")));
    let page = site.get(&visitor, &format!("/ui/stores/{other}/graph")).unwrap();
    assert!(page.contains("No memory of this store links to another one"), "{page}");
}
