//! Creating, editing, renaming and deleting memories.

use quipu_core::engine::Precondition;
use quipu_core::model::{Content, Memory, MemoryPath, Role, StoreId, View};
use quipu_inspector::{Reply, Trouble};
use quipu_service::caller::Caller;

use super::support::{HOSTILE, Site, assert_denied, led_to};

/// A form that somebody has opened.
struct Opened {
    action: String,
    version: String,
    hash: String,
    /// What the field shows, as the browser sends it back.
    text: String,
}

fn value(page: &str, name: &str) -> String {
    let field = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&field).expect("the form has the field");
    rest.split('"').next().unwrap().to_owned()
}

/// Returns the text that a browser has for the field: without the first line break, which belongs to the
/// markup.
fn field_text(page: &str) -> String {
    let (_, rest) = page.split_once("<textarea").unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    let (text, _) = rest.split_once("</textarea>").unwrap();
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn read(action: String, page: &str) -> Opened {
    Opened {
        action,
        version: value(page, "version"),
        hash: value(page, "hash"),
        text: field_text(page),
    }
}

fn open(site: &Site, caller: &Caller, memory: &Memory) -> Opened {
    let action = format!("/ui/stores/{}/memories/{}/edit", memory.store, memory.id);
    let page = site.get(caller, &action).unwrap();
    read(action, &page)
}

fn send(site: &Site, caller: &Caller, form: &Opened, text: &str) -> Result<Reply, Trouble> {
    // Browsers send every line break as CR LF.
    let text = text.replace('\n', "\r\n");
    let fields = [("version", form.version.as_str()), ("hash", &form.hash), ("text", &text)];
    site.post(caller, &form.action, &fields)
}

fn conflict(reply: Result<Reply, Trouble>) -> String {
    let Ok(Reply::Conflict(page)) = reply else { panic!("no conflict: {reply:?}") };
    page.into_string()
}

fn shown(reply: Result<Reply, Trouble>) -> String {
    let Ok(Reply::Page(page)) = reply else { panic!("no page: {reply:?}") };
    page.into_string()
}

fn now(site: &Site, memory: &Memory) -> String {
    let memory = site.engine.memory(memory.store, memory.id, View::Full).unwrap();
    memory.content.unwrap().as_str().to_owned()
}

fn versions_count(site: &Site, store: StoreId, path: &str) -> usize {
    site.engine.history(store, &MemoryPath::parse(path).unwrap(), 100).unwrap().len()
}

#[test]
fn a_text_that_nobody_touched_makes_no_version() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    for text in ["\n\nleading", "a\nb\n", "a\r\nb\r\n", "a\r\nb\nc\rd", "", "<b>&amp;\"</b>", "\n"]
    {
        let memory = site.put(store, "/a.md", text);
        let count = versions_count(&site, store, "/a.md");
        let form = open(&site, &admin, &memory);
        let to = led_to(send(&site, &admin, &form, &form.text));
        let page = site.get(&admin, &to).unwrap();
        assert!(page.contains("Nothing changed.") && !page.contains("Saved."), "{page}");
        assert_eq!(now(&site, &memory), text);
        assert_eq!(versions_count(&site, store, "/a.md"), count, "{text:?}");
    }
}

#[test]
fn a_change_is_saved_with_its_author_and_the_line_endings_of_the_text() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let memory = site.put(store, "/a.md", "a\r\nb\r\n");
    let form = open(&site, &admin, &memory);
    let to = led_to(send(&site, &admin, &form, "a\nnew\nb\n"));
    assert_eq!(now(&site, &memory), "a\r\nnew\r\nb\r\n");
    assert!(site.get(&admin, &to).unwrap().contains("Saved."));
    let version = site.engine.history(store, &memory.path, 1).unwrap().remove(0);
    assert_eq!(version.actor, admin.actor);
}

#[test]
fn whoever_goes_back_to_the_form_overwrites_nothing() {
    let site = Site::new();
    let store = site.store("notes");
    let ada = site.admin();
    let memory = site.put(store, "/a.md", "one\ntwo\nthree\n");
    let action = format!("/ui/stores/{store}/memories/{}/edit", memory.id);
    let address = led_to(site.follow(&ada, &action));
    let opened = read(action.clone(), &site.get(&ada, &address).unwrap());
    site.put(store, "/a.md", "one\ntwo\nTHREE by an agent\n");
    // The browser asks for the same address again, and puts in what was typed before.
    let page = site.get(&ada, &address).unwrap();
    assert!(page.contains("it was changed since"), "{page}");
    let back = read(action, &page);
    assert_eq!((&back.version, &back.text), (&opened.version, &opened.text));
    let page = conflict(send(&site, &ada, &back, "ONE by ada\ntwo\nthree\n"));
    assert_eq!(read(back.action, &page).text, "ONE by ada\ntwo\nTHREE by an agent\n");
    // What is no version of the memory leads to the newest.
    let other = site.put(store, "/b.md", "other\n").version.to_string();
    for odd in ["x", &other, ""] {
        let to = led_to(site.follow(&ada, &format!("{}?version={odd}", opened.action)));
        assert_ne!(to, address);
    }
}

#[test]
fn a_text_whose_store_is_closed_meanwhile_can_be_copied() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let memory = site.put(store, "/a.md", "a\n");
    let form = open(&site, &admin, &memory);
    let new = format!("/ui/stores/{store}/new");
    let settings = format!("/ui/stores/{store}/settings");
    let check = |word: &str| {
        let typed = format!("\nmy {HOSTILE}\n");
        let text = typed.replace('\n', "\r\n");
        let replies = [
            send(&site, &admin, &form, &typed),
            site.post(&admin, &new, &[("path", "/b.md"), ("text", &text)]),
            site.post(&admin, &settings, &[("name", "x"), ("description", &text)]),
        ];
        for reply in replies {
            let page = conflict(reply);
            assert!(page.contains(word) && page.contains("readonly"), "{page}");
            assert_eq!(field_text(&page), typed);
        }
    };
    site.engine.archive_store(store).unwrap();
    check("is archived");
    site.engine.delete_store(store).unwrap();
    check("was deleted");
}

#[test]
fn redacted_text_that_comes_back_is_called_that() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let id = store.to_string();
    site.put(store, "/old.md", "the sesame-4711 token\n");
    site.put(store, "/old.md", "no token\n");
    let fields = [("matching", "the sesame-4711 token"), ("store", id.as_str())];
    let page = shown(site.post(&admin, "/ui/redact", &fields));
    let (expect, count) = (value(&page, "expect"), value(&page, "count"));
    let confirmed = [("expect", expect.as_str()), ("count", &count), ("typed", &count)];
    led_to(site.post(&admin, "/ui/redact/confirm", &[&fields[..], &confirmed].concat()));
    let new = format!("/ui/stores/{store}/new");
    let text = "x\r\nthe sesame-4711 token, the sesame-4711 token\r\n";
    let to = led_to(site.post(&admin, &new, &[("path", "/b.md"), ("text", text)]));
    let page = site.get(&admin, &to).unwrap();
    assert!(page.contains("redacted from this store before: line 2."), "{to}: {page}");
    assert!(!page.contains("credential"), "{page}");
}

#[test]
fn a_line_with_two_credentials_is_named_once() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let new = format!("/ui/stores/{store}/new");
    let token =
        |end: &str| format!("ghp_{}{end}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8".split_at(34).0);
    let text = format!("{} {}\n", token("x1"), token("y2"));
    let to = led_to(site.post(&admin, &new, &[("path", "/b.md"), ("text", &text)]));
    let page = site.get(&admin, &to).unwrap();
    assert!(page.contains("can now use: line 1. If"), "{to}: {page}");
}

#[test]
fn two_editors_and_an_agent_lose_nothing() {
    let site = Site::new();
    let store = site.store("notes");
    let (ada, bob) = (site.admin(), site.visitor(Role::ReadWrite, None));
    let memory = site.put(store, "/a.md", "one\ntwo\nthree\nfour\nfive\n");
    let adas = open(&site, &ada, &memory);
    let bobs = open(&site, &bob, &memory);
    // An agent writes while both edit.
    site.put(store, "/a.md", "one\ntwo\nthree\nfour\nFIVE by an agent\n");
    let before = versions_count(&site, store, "/a.md");

    let page = conflict(send(&site, &ada, &adas, "ONE by ada\ntwo\nthree\nfour\nfive\n"));
    assert!(
        page.contains("Nothing is saved yet") && page.contains("Both changes are merged"),
        "{page}"
    );
    assert!(page.contains("What user_ada changed") && page.contains("What you changed"), "{page}");
    assert_eq!(versions_count(&site, store, "/a.md"), before);
    let merged = read(adas.action, &page);
    assert_eq!(merged.text, "ONE by ada\ntwo\nthree\nfour\nFIVE by an agent\n");
    led_to(send(&site, &ada, &merged, &merged.text));

    // Bob changed what the agent changed, and something else.
    let page = conflict(send(&site, &bob, &bobs, "one\ntwo\nTHREE by bob\nfour\nFIVE by bob\n"));
    let merged = read(bobs.action, &page);
    let expected = "ONE by ada\ntwo\nTHREE by bob\nfour\n\
                    <<<<<<< yours\nFIVE by bob\n=======\nFIVE by an agent\n>>>>>>> theirs\n";
    assert_eq!(merged.text, expected);
    // Ada changes it once more before Bob has decided.
    let again = open(&site, &ada, &memory);
    led_to(send(&site, &ada, &again, &again.text.replace("two", "TWO by ada")));
    let decided = "ONE by ada\ntwo\nTHREE by bob\nfour\nFIVE by both\n";
    let page = conflict(send(&site, &bob, &merged, decided));
    let merged = read(merged.action, &page);
    assert!(
        merged.text.contains("TWO by ada") && merged.text.contains("THREE by bob"),
        "{}",
        merged.text
    );
    led_to(send(
        &site,
        &bob,
        &merged,
        "ONE by ada\nTWO by ada\nTHREE by bob\nfour\nFIVE by both\n",
    ));
    assert_eq!(now(&site, &memory), "ONE by ada\nTWO by ada\nTHREE by bob\nfour\nFIVE by both\n");
}

#[test]
fn many_editors_at_once_lose_no_line() {
    let site = Site::new();
    let store = site.store("notes");
    let memory = site.put(store, "/a.md", "start\n");
    let edit = |editor: usize| {
        let caller = site.visitor(Role::ReadWrite, None);
        for round in 0..12 {
            let mut form = open(&site, &caller, &memory);
            let mut text = format!("{}line {editor}.{round}\n", form.text);
            while let Ok(Reply::Conflict(page)) = send(&site, &caller, &form, &text) {
                form = read(form.action, &page.into_string());
                let is_mark = |line: &&str| {
                    line.starts_with("<<<") || line.starts_with("===") || line.starts_with(">>>")
                };
                let lines: Vec<_> = form.text.lines().filter(|line| !is_mark(line)).collect();
                text = lines.join("\n") + "\n";
            }
        }
    };
    std::thread::scope(|scope| {
        for editor in 0..4 {
            scope.spawn(move || edit(editor));
        }
    });
    let text = now(&site, &memory);
    for line in (0..4).flat_map(|editor| (0..12).map(move |round| format!("line {editor}.{round}")))
    {
        assert_eq!(text.lines().filter(|it| *it == line).count(), 1, "{line} in {text}");
    }
}

#[test]
fn marks_of_a_conflict_are_not_saved_by_accident() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let memory = site.put(store, "/a.md", "a\n");
    let form = open(&site, &admin, &memory);
    let text = "<<<<<<< yours\na\n=======\nb\n>>>>>>> theirs\n";
    let page = shown(send(&site, &admin, &form, text));
    assert!(page.contains("marking lines") && field_text(&page) == text, "{page}");
    let fields = [
        ("version", form.version.as_str()),
        ("hash", &form.hash),
        ("text", text),
        ("marks", "keep"),
    ];
    led_to(site.post(&admin, &form.action, &fields));
    assert_eq!(now(&site, &memory), text);
}

#[test]
fn a_memory_that_was_deleted_meanwhile_can_be_created_again_with_the_text() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let memory = site.put(store, "/a.md", "a\n");
    let form = open(&site, &admin, &memory);
    site.engine.delete(&admin.actor, store, memory.id, Precondition::None).unwrap();
    let page = conflict(send(&site, &admin, &form, "my text\n"));
    assert!(page.contains("deleted this memory while you edited it"), "{page}");
    assert_eq!(field_text(&page), "my text\n");
    assert!(page.contains("value=\"/a.md\""), "{page}");
}

#[test]
fn what_is_refused_stays_in_the_form() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let memory = site.put(store, "/a.md", "a\n");
    let form = open(&site, &admin, &memory);
    let long = "é".repeat(60_000);
    let page = shown(send(&site, &admin, &form, &long));
    assert!(page.contains("Not saved:") && field_text(&page) == long);
    assert_eq!(value(&page, "version"), form.version);
    let new = format!("/ui/stores/{store}/new");
    for path in ["relative.md", "/a.md", "/a.md/below", "/../x", "/a\u{202e}b", ""] {
        let page = shown(site.post(&admin, &new, &[("path", path), ("text", HOSTILE)]));
        assert!(page.contains("Not saved:"), "{path}: {page}");
        assert_eq!(field_text(&page), HOSTILE, "{path}");
        assert!(!page.contains("<script>alert"), "{page}");
    }
    let page = shown(send(&site, &admin, &form, "a\0b"));
    assert!(page.contains("NUL"), "{page}");
}

#[test]
fn a_new_memory_is_created_and_credentials_are_pointed_at() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let new = format!("/ui/stores/{store}/new");
    assert!(
        site.get(&admin, &(new.clone() + "?path=%2Fnotes%2F"))
            .unwrap()
            .contains("value=\"/notes/\"")
    );
    let to = led_to(site.post(&admin, &new, &[("path", "/b.md"), ("text", "\r\nfirst\r\n")]));
    let path = MemoryPath::parse("/b.md").unwrap();
    let memory = site.engine.memory_at(store, &path, View::Full).unwrap();
    assert_eq!(memory.content.unwrap().as_str(), "\nfirst\n");
    assert!(to.contains(&memory.id.to_string()));
    let secret = format!("ok\r\ntoken = ghp_{}", "a8Kd0Lq2Zx7Vb3Nm5Pw9Rt1Yc4Jf6Hs0UeGi");
    let to = led_to(site.post(&admin, &new, &[("path", "/c.md"), ("text", &secret)]));
    let page = site.get(&admin, &to).unwrap();
    assert!(page.contains("looks like a credential") && page.contains("line 2"), "{to}: {page}");
}

#[test]
fn renaming_keeps_what_others_did() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let memory = site.put(store, "/a.md", "a\n");
    site.put(store, "/taken.md", "b\n");
    let action = format!("/ui/stores/{store}/memories/{}/rename", memory.id);
    assert!(site.get(&admin, &action).unwrap().contains("name=\"old\" value=\"/a.md\""));
    let rename =
        |old: &str, path: &str| site.post(&admin, &action, &[("old", old), ("path", path)]);
    assert!(shown(rename("/a.md", "/taken.md")).contains("Not saved:"));
    assert!(shown(rename("/a.md", "nonsense")).contains("value=\"nonsense\""));
    // A change of the text in between is no obstacle; a move is shown.
    site.put(store, "/a.md", "changed\n");
    led_to(rename("/a.md", "/b.md"));
    assert_eq!(now(&site, &memory), "changed\n");
    assert!(conflict(rename("/a.md", "/c.md")).contains("others have moved"));
}

#[test]
fn deleting_asks_first_and_deletes_only_what_was_seen() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let memory = site.put(store, "/d/a.md", "a\n");
    let action = format!("/ui/stores/{store}/memories/{}/delete", memory.id);
    let page = site.get(&admin, &action).unwrap();
    let (version, hash) = (value(&page, "version"), value(&page, "hash"));
    let fields = |version: &str, hash: &str| {
        site.post(&admin, &action, &[("version", version), ("hash", hash)])
    };
    site.put(store, "/d/a.md", "new\n");
    let page = conflict(fields(&version, &hash));
    assert!(page.contains("Nothing is deleted") && page.contains("<ins>new"), "{page}");
    let to = led_to(fields(&value(&page, "version"), &value(&page, "hash")));
    assert_eq!(to, format!("/ui/stores/{store}?dir=%2Fd%2F"));
    assert!(site.engine.memory(store, memory.id, View::Basic).is_err());
}

#[test]
fn only_those_who_may_write_change_anything() {
    let site = Site::new();
    let store = site.store("notes");
    let memory = site.put(store, "/a.md", "a\n");
    let base = format!("/ui/stores/{store}/memories/{}", memory.id);
    let form = open(&site, &site.admin(), &memory);
    let seen = [
        ("version", form.version.as_str()),
        ("hash", form.hash.as_str()),
        ("text", "x"),
        ("old", "/a.md"),
        ("path", "/x.md"),
    ];
    let other = site.store("other");
    let reader = site.visitor(Role::ReadOnly, None);
    let stranger = site.visitor(Role::Admin, Some(&[other]));
    for caller in [&reader, &stranger] {
        for page in ["/edit", "/rename", "/delete"] {
            assert_denied(&site.get(caller, &(base.clone() + page)));
            assert_denied(&site.post(caller, &(base.clone() + page), &seen));
        }
        assert_denied(&site.get(caller, &format!("/ui/stores/{store}/new")));
        assert_denied(&site.post(caller, &format!("/ui/stores/{store}/new"), &seen));
    }
    site.engine.archive_store(store).unwrap();
    conflict(site.post(&site.admin(), &(base.clone() + "/edit"), &seen));
    for page in ["/rename", "/delete"] {
        let reply = site.post(&site.admin(), &(base.clone() + page), &seen);
        assert!(matches!(reply, Err(Trouble::Invalid(_))), "{page}: {reply:?}");
    }
    assert!(!site.get(&site.admin(), &base).unwrap().contains("/edit\""));
    assert_eq!(now(&site, &memory), "a\n");
}

#[test]
fn a_version_of_another_memory_is_no_base() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let memory = site.put(store, "/a.md", "a\n");
    let other = site.put(store, "/b.md", "b\n");
    let form = open(&site, &admin, &memory);
    let version = other.version.to_string();
    let forged = Opened { version, ..form };
    assert!(matches!(send(&site, &admin, &forged, "x"), Err(Trouble::Invalid(_))));
    let content = Content::new("a\n").unwrap();
    let forged =
        Opened { version: "nonsense".to_owned(), hash: content.hash().to_string(), ..forged };
    assert!(matches!(send(&site, &admin, &forged, "x"), Err(Trouble::Invalid(_))));
}
