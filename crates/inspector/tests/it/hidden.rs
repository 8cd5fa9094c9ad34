//! Characters that a browser does not show, in everything that has a name.

use quipu_core::engine::{NewKey, Principal};
use quipu_core::model::{Actor, Forwarding, Name, Role};
use quipu_service::caller::Caller;

use crate::site::Site;

/// It makes the rest of a line run from right to left.
const OVERRIDE: char = '\u{202e}';

/// Returns a page without the values of its fields and commands to copy, which must stay what they are, and without the
/// rendered text, above which its hidden characters are counted.
fn shown(page: &str) -> String {
    let cuts = [
        ("<code class=\"copy\"", "</code>"),
        (" value=\"", "\""),
        ("<textarea", "</textarea>"),
        ("<article", "</article>"),
    ];
    cuts.iter().fold(page.to_owned(), |text, (start, end)| {
        let mut pieces = text.split(start);
        let mut left = pieces.next().unwrap().to_owned();
        left.extend(pieces.map(|piece| piece.split_once(end).unwrap().1));
        left
    })
}

/// A site where every name has a hidden character.
struct Hidden {
    site: Site,
    visitor: Caller,
    addresses: Vec<String>,
}

fn hidden() -> Hidden {
    let site = Site::new();
    let named = |name: &str| Name::new(format!("{name}{OVERRIDE}x")).unwrap();
    let update =
        quipu_core::engine::StoreUpdate { name: Some(named("notes")), ..Default::default() };
    site.engine.update_store(site.store, &update).unwrap();
    let new = NewKey {
        name: named("key"),
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (key, _) = site.engine.create_key(site.workspace, &new).unwrap();
    let visitor = Caller::new(Principal::Key(key));
    let session = site.session(&format!("agent{OVERRIDE}x"), &[site.store]);
    let agent = Actor::Session(session.id);
    site.put(&visitor.actor, "/old.md", "one\n");
    let text =
        format!("---\ntitle: Tea{OVERRIDE}x\n---\nGreen tea{OVERRIDE}x for [[cup{OVERRIDE}x]]\n");
    site.put(&agent, "/tea.md", "Green tea\n");
    let tea = site.put(&agent, "/tea.md", &text);
    let cup = format!("---\ntitle: Cup{OVERRIDE}x\n---\nlike a [[tea]] cup\n");
    let cup = site.put(&visitor.actor, "/cup.md", &cup);
    let memory = format!("/memories/{}", tea.id);
    let addresses = vec![
        "/ui".to_owned(),
        "/ui/search?q=tea".to_owned(),
        "/ui/sessions".to_owned(),
        "/ui/actors".to_owned(),
        "/ui/redact".to_owned(),
        "/ui/admin/keys".to_owned(),
        format!("/ui/sessions/{}", session.id),
        format!("/ui/actors/{}", visitor.actor),
        format!("/ui/revert?actor={}&store={}", session.id, site.store),
        site.at(""),
        site.at("?view=list"),
        site.at("/new"),
        site.at("/settings"),
        site.at("/health"),
        site.at("/graph"),
        site.at("/past"),
        site.at(&memory),
        site.at(&format!("{memory}?view=model")),
        site.at(&format!("{memory}/edit")),
        site.at(&format!("{memory}/history")),
        site.at(&format!("{memory}/history?view=side")),
        site.at(&format!("{memory}/versions/{}", tea.version)),
        site.at(&format!("/memories/{}", cup.id)),
    ];
    Hidden { site, visitor, addresses }
}

#[test]
fn no_page_shows_a_hidden_character_as_nothing() {
    let Hidden { site, visitor, addresses } = hidden();
    for address in addresses {
        let page = site.get(&visitor, &address).page();
        let text = shown(&page);
        let at = text.find(OVERRIDE);
        let around = at.map(|at| text[..at].chars().rev().take(80).collect::<Vec<_>>());
        let around = around.map(|it| it.into_iter().rev().collect::<String>());
        assert_eq!(around, None, "{address}");
    }
}

#[test]
fn hidden_characters_have_badges_in_pages_and_codes_in_titles() {
    let Hidden { site, visitor, .. } = hidden();
    let page = site.get(&visitor, &site.at("")).page();
    assert!(page.contains("<title>notes⟨U+202E⟩x · Quipu</title>"), "{page}");
    let badge = "<span class=\"hidden-char\" title=\"RIGHT-TO-LEFT OVERRIDE U+202E\">U+202E</span>";
    assert!(page.contains(&format!("<h1>notes{badge}x</h1>")), "{page}");
    let page = site.get(&visitor, "/ui/search?q=tea").page();
    assert!(page.contains(&format!("Green <mark>tea</mark>{badge}x")), "{page}");
    assert!(page.contains(&format!(">Tea{badge}x</a></h2>")), "{page}");
}
