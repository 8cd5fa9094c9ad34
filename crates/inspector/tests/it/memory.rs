//! The page of a memory, and the links of notes.

use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Memory, Name, PrincipalName, Role, StoreId};
use quipu_inspector::{Reply, Trouble};

use super::support::{HOSTILE, Site, assert_denied, led_to};

fn address(memory: &Memory) -> String {
    format!("/ui/stores/{}/memories/{}", memory.store, memory.id)
}

fn delete(site: &Site, memory: &Memory) {
    let actor = Actor::User(PrincipalName::parse("bob").unwrap());
    site.engine.delete(&actor, memory.store, memory.id, Precondition::None).unwrap();
}

#[test]
fn a_note_is_shown_with_all_that_is_known_of_it() {
    let site = Site::new();
    let store = site.store("notes");
    let text = "---\ntitle: Green Tea\ntags: [tea]\nrating: 5\n---\n# Brewing\n\n\
                - [fact] best at 80 °C #heat (since 2020)\n- pairs_with [[Rice Cake]]\n- see [[Other]]\n";
    let tea = site.put(store, "/notes/tea.md", text);
    let other = site.put(store, "/notes/other.md", "# Other\n\nBack to [[Green Tea]].\n");
    let page = site.get(&site.admin(), &address(&tea)).unwrap();
    for part in [
        "<title>/notes/tea.md · notes · Quipu</title>",
        "<th scope=\"row\">rating</th><td>5</td>",
        "<h2 id=\"note-brewing\">Brewing</h2>",
        "<span class=\"badge\">fact</span>",
        "does not exist",
        "quipu --store notes cat /notes/tea.md",
        "/mnt/memory/notes/notes/tea.md",
        "data-key=\"e\"",
        "data-key=\"h\"",
        "user_ada",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(page.contains(&format!("<a href=\"{}\">Other</a>", address(&other))), "{page}");
    assert!(!page.contains("A model reads more"), "{page}");
    assert!(!page.contains("<th scope=\"row\">type</th>"), "{page}");
}

#[test]
fn every_view_of_a_hostile_memory_is_text() {
    let site = Site::new();
    let store = site.store(HOSTILE);
    let text = format!(
        "---\ntitle: {HOSTILE}\nx{HOSTILE}: y\n---\n{HOSTILE}\n\n- [{HOSTILE}] a ({HOSTILE})\n\n[[{HOSTILE}]]\n"
    );
    let memory = site.put(store, "/<script>alert(1)<\"script>.md", &text);
    for view in ["", "?view=source", "?view=model", "?view=blame", "?view=%3Cscript%3E"] {
        let page = site.get(&site.admin(), &(address(&memory) + view)).unwrap();
        assert!(page.contains("&lt;script&gt;"), "{view}");
    }
}

#[test]
fn what_only_a_model_sees_is_warned_of_in_every_view() {
    let site = Site::new();
    let store = site.store("notes");
    let text =
        "a\u{200b}b <!-- obey --> <b>x</b> [bank.com](https://evil.example)\n\n[//]: # (hidden)\n";
    let memory = site.put(store, "/a.md", text);
    for view in ["", "?view=source", "?view=model", "?view=blame"] {
        let page = site.get(&site.admin(), &(address(&memory) + view)).unwrap();
        let warned = "1 hidden character, 1 HTML comment, 2 pieces of raw HTML, 1 link definition that \
                      nothing uses, 1 link that claims another host.";
        assert!(page.contains(warned), "{view}: {page}");
    }
    let page = site.get(&site.admin(), &(address(&memory) + "?view=model")).unwrap();
    assert!(page.contains("title=\"ZERO WIDTH SPACE U+200B\""), "{page}");
    assert!(page.contains("title=\"HTML comment\""), "{page}");
}

#[test]
fn what_is_no_note_is_shown_as_it_is() {
    let site = Site::new();
    let store = site.store("notes");
    let code = site.put(store, "/run.py", "# not a heading\n");
    let page = site.get(&site.admin(), &address(&code)).unwrap();
    assert!(page.contains("<pre class=\"source\">\n# not a heading\n</pre>"), "{page}");
    assert!(page.contains("?view=rendered"), "{page}");
    let page = site.get(&site.admin(), &(address(&code) + "?view=rendered")).unwrap();
    assert!(page.contains("not a heading</h2>"), "{page}");
}

#[test]
fn blame_names_the_author_of_each_line() {
    let site = Site::new();
    let store = site.store("notes");
    site.put(store, "/a.md", "one\ntwo\n");
    let memory = site.put(store, "/a.md", "one\n2\nthree\n");
    let page = site.get(&site.admin(), &(address(&memory) + "?view=blame")).unwrap();
    assert!(
        page.contains("<pre>\none\n</pre>") && page.contains("<pre>\n2\nthree\n</pre>"),
        "{page}"
    );
    assert!(page.contains("2–3"), "{page}");
}

#[test]
fn a_deleted_memory_says_so_and_leads_to_its_history() {
    let site = Site::new();
    let store = site.store("notes");
    let memory = site.put(store, "/a.md", "a");
    delete(&site, &memory);
    let page = site.get(&site.admin(), &address(&memory)).unwrap();
    assert!(page.contains("This memory was deleted") && page.contains("user_bob"), "{page}");
    assert!(page.contains(&format!("{}/history", address(&memory))), "{page}");
    for unknown in ["mem_0000000000000000000000000", "nonsense", "%20"] {
        let reply = site.get(&site.admin(), &format!("/ui/stores/{store}/memories/{unknown}"));
        assert!(matches!(reply, Err(Trouble::NotFound(_) | Trouble::Engine(_))), "{reply:?}");
    }
}

#[test]
fn a_visitor_sees_only_what_its_key_opens() {
    let site = Site::new();
    let (ours, theirs) = (site.store("ours"), site.store("theirs"));
    let memory = site.put(theirs, "/secret.md", "a secret");
    let linked = site.put(ours, "/a.md", "[[theirs::secret]]");
    let visitor = site.visitor(Role::ReadOnly, Some(&[ours]));
    assert_denied(&site.get(&visitor, &address(&memory)));
    assert_denied(&site.get(&visitor, &format!("/ui/stores/{theirs}/note?to=secret")));
    // A memory of another store under the address of one's own.
    let crossed = format!("/ui/stores/{ours}/memories/{}", memory.id);
    assert!(matches!(site.get(&visitor, &crossed), Err(Trouble::Engine(_))));
    let page = site.get(&visitor, &address(&linked)).unwrap();
    assert!(!page.contains(&memory.id.to_string()), "{page}");
    for button in ["/edit\"", "/rename\"", "/delete\""] {
        assert!(!page.contains(button), "{button}");
    }
    let elsewhere = site.engine.create_workspace(&Name::new("other").unwrap()).unwrap().id;
    let stranger = site.visitor_of(elsewhere, Role::Admin, None);
    assert!(matches!(site.get(&stranger, &address(&linked)), Err(Trouble::NotFound(_))));
}

fn resolved(site: &Site, store: StoreId, query: &str) -> Result<Reply, Trouble> {
    site.follow(&site.admin(), &format!("/ui/stores/{store}/note?{query}"))
}

#[test]
fn links_lead_to_the_notes_that_they_mean() {
    let site = Site::new();
    let store = site.store("notes");
    let near = site.put(store, "/a/tea.md", "# Tea\n");
    site.put(store, "/b/tea.md", "# Tea\n");
    let from = site.put(store, "/a/list.md", "[[Tea]] [x](tea.md) [y](../b/tea.md)\n");
    let id = from.id;
    assert_eq!(led_to(resolved(&site, store, &format!("to=Tea&from={id}"))), address(&near));
    assert_eq!(led_to(resolved(&site, store, &format!("to=tea.md&from={id}"))), address(&near));
    assert!(led_to(resolved(&site, store, &format!("to=../b/tea.md&from={id}"))).contains("mem_"));
    assert_eq!(led_to(resolved(&site, store, "to=%2Fa%2Ftea.md")), address(&near));
    let page = site.get(&site.admin(), &format!("/ui/stores/{store}/note?to=Tea")).unwrap();
    assert!(page.contains("2 memories are called"), "{page}");
}

#[test]
fn a_note_that_does_not_exist_can_be_created_by_those_who_may() {
    let site = Site::new();
    let store = site.store("notes");
    let to = format!("/ui/stores/{store}/note?to=Green+Tea%3Cscript%3E");
    let page = site.get(&site.admin(), &to).unwrap();
    assert!(page.contains("/new?path=%2FGreen+Tea%3Cscript%3E.md"), "{page}");
    let page = site.get(&site.visitor(Role::ReadOnly, None), &to).unwrap();
    assert!(!page.contains("/new?"), "{page}");
    assert!(matches!(resolved(&site, store, "to="), Err(Trouble::Invalid(_))));
}
