//! Redaction and its receipts.

use quipu_core::model::{Actor, Role};

use crate::site::{HOSTILE, Site, user};

const SECRET: &str = "sesame-4711";

/// A store with a secret in an old version and in a live memory.
fn leaked() -> (Site, String) {
    let site = Site::new();
    site.put(&user("ada"), "/old.md", &format!("token {SECRET}\n"));
    site.put(&user("ada"), "/old.md", "no token\n");
    site.put(&user("bob"), "/live.md", &format!("token {SECRET}\n"));
    let store = site.store.to_string();
    (site, store)
}

#[test]
fn a_dry_run_lists_what_would_be_redacted_and_changes_nothing() {
    let (site, store) = leaked();
    let admin = site.admin();
    let fields = [("matching", SECRET), ("store", store.as_str())];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(page.contains("2 versions, 1 live memory, 0 sessions"), "{page}");
    assert!(page.contains("a text of 11 characters"), "{page}");
    assert!(page.contains(">/old.md</a>") && page.contains(">/live.md</a>"), "{page}");
    assert!(page.contains("Live memories hold it") && !page.contains("id=\"confirm\""), "{page}");
    assert!(!page.contains(&format!("={SECRET}")), "never in an address: {page}");
    assert_eq!(site.text("/live.md"), Some(format!("token {SECRET}\n")));
}

#[test]
fn a_redaction_is_confirmed_by_its_count_and_ends_in_a_receipt() {
    let (site, store) = leaked();
    let admin = site.admin();
    let fields = [("matching", SECRET), ("store", store.as_str()), ("and_heads", "yes")];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    let wrong = site.submit(&admin, (&page, "confirm"), &[("typed", "3")]);
    assert!(wrong.status == 409 && wrong.text.contains("Nothing was redacted"), "{wrong:?}");
    assert_eq!(site.text("/live.md"), Some(format!("token {SECRET}\n")));

    let typed = [("typed", "2"), ("reason", "token in a note")];
    let to = site.submit(&admin, (&page, "confirm"), &typed).moved();
    assert_eq!(site.text("/live.md").as_deref(), Some("token [redacted]\n"));
    let page = site.get(&admin, &to).page();
    assert!(page.contains("token in a note") && page.contains("id=\"hits\">0<"), "{page}");
    assert!(page.contains("was edited") && !page.contains(SECRET), "{page}");
    assert!(site.get(&admin, "/ui/receipts").page().contains(&to));
    let json = site.get(&admin, &format!("{to}/receipt.json")).page();
    assert!(json.contains("\"hits_left\": 0") && json.contains("\"redaction_receipt\""), "{json}");
}

#[test]
fn somebody_who_writes_it_again_meanwhile_is_not_missed() {
    let (site, store) = leaked();
    let admin = site.admin();
    let fields = [("matching", SECRET), ("store", store.as_str()), ("and_heads", "yes")];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    site.put(&user("eve"), "/copy.md", SECRET);
    let answer = site.submit(&admin, (&page, "confirm"), &[("typed", "2")]);
    assert_eq!(answer.status, 409);
    assert!(answer.text.contains("has changed since you looked"), "{}", answer.text);
    assert!(answer.text.contains("3 versions") && answer.text.contains("/copy.md"));
    assert_eq!(site.text("/copy.md").as_deref(), Some(SECRET));
    site.submit(&admin, (&answer.text, "confirm"), &[("typed", "3")]).moved();
    assert_eq!(site.text("/copy.md").as_deref(), Some("[redacted]"));
}

#[test]
fn what_an_author_wrote_can_be_selected_alone() {
    let (site, store) = leaked();
    let admin = site.admin();
    let session = site.session("agent", &[site.store]);
    site.put(&Actor::Session(session.id), "/agent.md", "by the agent\n");
    site.put(&user("ada"), "/agent.md", "corrected\n");
    let form = site.get(&admin, &format!("/ui/redact?actor={}&store={store}", session.id)).page();
    assert!(form.contains(&format!("value=\"{}\"", session.id)), "{form}");
    assert!(form.contains(&format!("value=\"{store}\" checked")), "{form}");
    let actor = session.id.to_string();
    let fields = [("actor", actor.as_str()), ("store", store.as_str())];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(page.contains("1 version, 0 live memories"), "{page}");
    site.submit(&admin, (&page, "confirm"), &[("typed", "1")]).moved();
    assert_eq!(site.text("/agent.md").as_deref(), Some("corrected\n"));
}

#[test]
fn what_to_look_for_is_not_taken_from_an_address() {
    let (site, _) = leaked();
    let admin = site.admin();
    for field in ["matching", "regex"] {
        let page = site.get(&admin, &format!("/ui/redact?{field}={SECRET}&path=%2Ftea")).page();
        assert!(page.contains("value=\"/tea\"") && !page.contains(SECRET), "{page}");
    }
}

#[test]
fn lines_of_a_pasted_text_match_whatever_the_browser_makes_of_them() {
    let (site, store) = leaked();
    let admin = site.admin();
    site.put(&user("ada"), "/key.md", "BEGIN\nabc\nEND\n");
    let fields = [("matching", "BEGIN\r\nabc"), ("store", store.as_str()), ("and_heads", "yes")];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(page.contains("1 version, 1 live memory"), "{page}");
    site.submit(&admin, (&page, "confirm"), &[("typed", "1")]).moved();
    assert!(!site.text("/key.md").unwrap().contains("abc"));
}

#[test]
fn a_pasted_text_is_found_with_the_line_ends_that_memories_have() {
    let (site, store) = leaked();
    let admin = site.admin();
    let fields = [("matching", "BEGIN\r\nabc\r\nEND"), ("store", &store), ("and_heads", "yes")];
    for text in ["x\r\nBEGIN\r\nabc\r\nEND\r\n", "x\r\nBEGIN\nabc\r\nEND\r\n"] {
        site.put(&user("ada"), "/key.md", text);
        let page = site.post(&admin, "/ui/redact", &fields).page();
        assert!(page.contains("1 version, 1 live memory"), "{text:?}: {page}");
        assert!(!page.contains("Nothing holds it"), "{page}");
        let to = site.submit(&admin, (&page, "confirm"), &[("typed", "1")]).moved();
        let left = site.text("/key.md").unwrap();
        assert!(left.starts_with("x\r\n[redacted]") && !left.contains("abc"), "{left:?}");
        assert!(site.get(&admin, &to).page().contains("id=\"hits\">0<"));
    }
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(page.contains("Nothing holds it"), "{page}");
}

#[test]
fn a_text_with_both_line_ends_is_redacted_twice() {
    let (site, store) = leaked();
    let admin = site.admin();
    site.put(&user("ada"), "/lf.md", "BEGIN\nabc\n");
    site.put(&user("ada"), "/crlf.md", "BEGIN\r\nabc\r\n");
    let fields = [("matching", "BEGIN\r\nabc"), ("store", &store), ("and_heads", "yes")];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(page.contains("about the text with LF line ends"), "{page}");
    assert!(page.contains("also there with CR LF line ends, in 1 version"), "{page}");
    let other = site.submit(&admin, (&page, "other-ends"), &[]).page();
    assert!(other.contains("about the text with CR LF line ends"), "{other}");
    site.submit(&admin, (&other, "confirm"), &[("typed", "1")]).moved();
    assert_eq!(site.text("/crlf.md").as_deref(), Some("[redacted]\r\n[redacted]\r\n"));
    assert_eq!(site.text("/lf.md").as_deref(), Some("BEGIN\nabc\n"));
    site.submit(&admin, (&page, "confirm"), &[("typed", "1")]).moved();
    assert_eq!(site.text("/lf.md").as_deref(), Some("[redacted]\n[redacted]\n"));
}

#[test]
fn a_text_with_mixed_line_ends_beside_another_is_not_passed_over() {
    let (site, store) = leaked();
    let admin = site.admin();
    site.put(&user("ada"), "/lf.md", "BEGIN\nabc\nEND\n");
    site.put(&user("ada"), "/mixed.md", "BEGIN\r\nabc\nEND\n");
    let fields = [("matching", "BEGIN\r\nabc\r\nEND"), ("store", &store), ("and_heads", "yes")];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(page.contains("also there with mixed line ends, in 1 version"), "{page}");
    let other = site.submit(&admin, (&page, "other-ends"), &[]).page();
    assert!(other.contains("2 versions, 2 live memories"), "{other}");
    site.submit(&admin, (&other, "confirm"), &[("typed", "2")]).moved();
    for path in ["/lf.md", "/mixed.md"] {
        assert!(!site.text(path).unwrap().contains("abc"), "{path}");
    }
}

#[test]
fn a_text_that_starts_with_a_line_break_keeps_it_in_the_form() {
    let (site, store) = leaked();
    let fields = [("matching", "\r\nabc"), ("store", store.as_str())];
    let page = site.post(&site.admin(), "/ui/redact", &fields).page();
    // The first line break after the start tag is not part of the text.
    assert!(page.contains("autocomplete=\"off\">\n\r\nabc</textarea>"), "{page}");
}

#[test]
fn only_managers_redact_and_only_where_they_manage() {
    let (site, store) = leaked();
    let other = site.store("other");
    let fields = [("matching", SECRET), ("store", store.as_str()), ("and_heads", "yes")];
    for role in [Role::ReadOnly, Role::ReadWrite] {
        let visitor = site.visitor(role, None);
        assert!(!site.get(&visitor, "/ui/sessions").page().contains("/ui/redact"));
        for address in ["/ui/redact", "/ui/receipts"] {
            assert_eq!(site.get(&visitor, address).status, 403, "{address}");
        }
        assert_eq!(site.post(&visitor, "/ui/redact", &fields).status, 403);
        assert_eq!(site.post(&visitor, "/ui/redact/confirm", &fields).status, 403);
    }
    let limited = site.visitor(Role::Admin, Some(&[other]));
    let form = site.get(&limited, "/ui/redact").page();
    assert!(!form.contains("notes") && !form.contains("All stores"), "{form}");
    assert_eq!(site.post(&limited, "/ui/redact", &fields).status, 403);
    let everywhere = [("matching", SECRET), ("all", "yes")];
    assert_eq!(site.post(&limited, "/ui/redact", &everywhere).status, 403);
    assert_eq!(site.get(&limited, "/ui/receipts").status, 403);
    assert_eq!(site.text("/live.md"), Some(format!("token {SECRET}\n")));
}

#[test]
fn a_manager_of_one_store_sees_its_own_receipt_and_no_other() {
    let (site, store) = leaked();
    let limited = site.visitor(Role::Admin, Some(&[site.store]));
    let fields = [("matching", SECRET), ("store", store.as_str()), ("and_heads", "yes")];
    let page = site.post(&limited, "/ui/redact", &fields).page();
    let own = site.submit(&limited, (&page, "confirm"), &[("typed", "2")]).moved();
    assert!(site.get(&limited, &own).page().contains("id=\"hits\">0<"));

    let admin = site.admin();
    let old = site.put(&user("ada"), "/tea.md", "green\n");
    site.put(&user("ada"), "/tea.md", "black\n");
    site.engine.redact(&admin.actor, site.store, &[old.version]).unwrap();
    let receipts = site.engine.receipts(site.workspace, None, 1).unwrap().items;
    let foreign = format!("/ui/receipts/{}", receipts[0].id);
    assert_eq!(site.get(&limited, &foreign).status, 404);
    assert_eq!(site.get(&limited, &format!("{foreign}/receipt.json")).status, 404);
}

#[test]
fn requests_that_make_no_sense_say_what_to_do() {
    let (site, store) = leaked();
    let admin = site.admin();
    let store = ("store", store.as_str());
    for fields in [
        &[("matching", SECRET)][..],
        &[store],
        &[store, ("matching", SECRET), ("regex", "a")],
        &[store, ("regex", "(")],
        &[store, ("regex", "a*")],
        &[store, ("memory", "x")],
        &[store, ("actor", "nobody")],
        &[store, ("matching", SECRET), ("since", "soon")],
        &[store, ("path", "//")],
    ] {
        let page = site.post(&admin, "/ui/redact", fields).page();
        let message = page.split("role=\"alert\">").nth(1).unwrap_or_else(|| panic!("{fields:?}"));
        let message = message.split("</p>").next().unwrap();
        assert!(message.starts_with("Nothing was redacted: "), "{fields:?}: {message}");
        assert!(!message.contains(SECRET), "{message}");
        let is_kept = fields.iter().all(|(_, value)| page.contains(value));
        assert!(is_kept && !page.contains("id=\"confirm\""), "{page}");
    }
}

#[test]
fn a_confirmation_that_makes_no_sense_shows_the_plan_again() {
    let (site, store) = leaked();
    let admin = site.admin();
    let fields = [("store", store.as_str()), ("matching", SECRET), ("and_heads", "yes")];
    let typed = [("typed", "2"), ("count", "2")];
    let unseen = site.post(&admin, "/ui/redact/confirm", &[&fields[..], &typed].concat());
    assert!(unseen.status == 409 && unseen.text.contains("look at the plan first"), "{unseen:?}");
    let page = site.post(&admin, "/ui/redact", &fields).page();
    let typed = [("typed", "2"), ("reason", SECRET)];
    let named = site.submit(&admin, (&page, "confirm"), &typed);
    assert!(named.status == 409, "{named:?}");
    assert!(named.text.contains("the reason holds what is to be redacted"), "{}", named.text);
    let long = "why ".repeat(200);
    let long = site.submit(&admin, (&page, "confirm"), &[("typed", "2"), ("reason", &long)]);
    assert!(long.status == 409 && long.text.contains("value=\"why why"), "{long:?}");
    assert_eq!(site.text("/live.md"), Some(format!("token {SECRET}\n")));
}

#[test]
fn a_form_whose_store_is_gone_keeps_what_was_typed() {
    let (site, store) = leaked();
    let admin = site.admin();
    let fields = [("store", store.as_str()), ("matching", SECRET), ("and_heads", "yes")];
    let plan = site.post(&admin, "/ui/redact", &fields).page();
    site.engine.delete_store(site.store).unwrap();
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(page.contains("Nothing was redacted: ") && page.contains(SECRET), "{page}");
    let answer = site.submit(&admin, (&plan, "confirm"), &[("typed", "2")]);
    assert_eq!(answer.status, 409);
    assert!(answer.text.contains(SECRET) && answer.text.contains("id=\"redact\""), "{answer:?}");
}

#[test]
fn stores_that_are_not_listed_can_be_named() {
    let (site, store) = leaked();
    for number in 0..150 {
        site.store(&format!("a{number:03}"));
    }
    let admin = site.admin();
    let form = site.get(&admin, "/ui/redact").page();
    assert!(form.len() < 60_000 && !form.contains(&store), "{}", form.len());
    assert_eq!(form.matches("name=\"store\"").count(), 100);
    assert!(form.contains("51 stores are not listed"), "{form}");
    let fields = [("matching", SECRET), ("store_named", "a149\r\nnotes\r\n"), ("and_heads", "yes")];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(page.contains("2 versions, 1 live memory"), "{page}");
    site.submit(&admin, (&page, "confirm"), &[("typed", "2")]).moved();
    assert_eq!(site.text("/live.md").as_deref(), Some("token [redacted]\n"));

    let limited = site.visitor(Role::Admin, Some(&[site.store("other")]));
    for name in ["notes", "nowhere"] {
        let fields = [("matching", SECRET), ("store_named", name)];
        let page = site.post(&limited, "/ui/redact", &fields).page();
        assert!(page.contains("Nothing was redacted: No store that you may use"), "{page}");
    }
    let page = site.get(&admin, "/ui/admin/keys").page();
    assert!(page.contains("52 stores are not listed"), "{page}");
    let search = "/ui/search?q=token&store_named=notes";
    let page = site.get(&admin, search).page();
    assert!(page.contains(&format!("value=\"{store}\" checked")), "{page}");
}

#[test]
fn hostile_selections_and_reasons_stay_text() {
    let (site, store) = leaked();
    let admin = site.admin();
    site.put(&user("ada"), "/x.md", HOSTILE);
    let fields = [("matching", HOSTILE), ("store", store.as_str()), ("and_heads", "yes")];
    let page = site.post(&admin, "/ui/redact", &fields).page();
    assert!(!page.contains("<script>") && !page.contains("<img src=x"), "{page}");
    let typed = [("typed", "1"), ("reason", "<b>bold</b>")];
    let to = site.submit(&admin, (&page, "confirm"), &typed).moved();
    let page = site.get(&admin, &to).page();
    assert!(page.contains("&lt;b&gt;bold"), "{page}");
}
