//! The page of a store, its settings, and what is done with several memories at once.

use quipu_core::engine::{NewAttachment, NewSession, SessionToken};
use quipu_core::model::{
    Access, Instructions, Memory, MemoryPath, Role, SecretPolicy, StoreId, View,
};
use quipu_inspector::{Reply, Trouble};

use super::support::{HOSTILE, Site, assert_denied, led_to};

fn place(page: &str, part: &str) -> usize {
    page.find(part).unwrap_or_else(|| panic!("{part} is not in {page}"))
}

fn is_there(site: &Site, store: StoreId, path: &str) -> bool {
    site.engine.memory_at(store, &MemoryPath::parse(path).unwrap(), View::Basic).is_ok()
}

fn seen(memory: &Memory) -> String {
    format!("{} {}", memory.id, memory.version)
}

#[test]
fn a_tree_shows_one_level_with_directories_first() {
    let site = Site::new();
    let store = site.store("notes");
    for path in ["/a.md", "/m/deep/x.md", "/m/y.md", "/z/q.md"] {
        site.put(store, path, "text");
    }
    let page = site.get(&site.admin(), &format!("/ui/stores/{store}")).unwrap();
    assert!(place(&page, ">m/</a>") < place(&page, ">z/</a>"));
    assert!(place(&page, ">z/</a>") < place(&page, ">a.md</a>"));
    assert!(!page.contains("y.md"), "{page}");
    let page = site.get(&site.admin(), &format!("/ui/stores/{store}?dir=%2Fm%2Fdeep%2F")).unwrap();
    assert!(page.contains("<title>/m/deep/ · notes · Quipu</title>"), "{page}");
    assert!(page.contains(&format!("<a href=\"/ui/stores/{store}?dir=%2Fm%2F\">m</a>")), "{page}");
    assert!(page.contains(">x.md</a>"), "{page}");
    let page = site.get(&site.admin(), &format!("/ui/stores/{store}?view=list")).unwrap();
    assert!(page.contains(">m/deep/x.md</a>"), "{page}");
    let reply = site.get(&site.admin(), &format!("/ui/stores/{store}?dir=nonsense"));
    assert!(matches!(reply, Err(Trouble::Invalid(_))), "{reply:?}");
}

#[test]
fn memories_that_hide_something_are_marked() {
    let site = Site::new();
    let store = site.store("notes");
    site.put(store, "/a.md", "plain é");
    site.put(store, "/b.md", "a\u{200b}b");
    site.put(store, "/c.md", "<!-- x -->");
    for query in ["", "?view=list", "?sort=author"] {
        let page = site.get(&site.admin(), &format!("/ui/stores/{store}{query}")).unwrap();
        assert_eq!(page.matches("hidden text").count(), 2, "{query}: {page}");
    }
}

#[test]
fn rows_are_sorted_by_what_the_address_says() {
    let site = Site::new();
    let store = site.store("notes");
    let admin = site.admin();
    site.put(store, "/d/a.md", "short");
    site.put(store, "/d/b.md", "the longest of all");
    let path = MemoryPath::parse("/d/c.md").unwrap();
    let content = quipu_core::model::Content::new("newest").unwrap();
    site.engine.create(&admin.actor, store, &path, &content).unwrap();
    let order = |sort: &str| {
        let address = format!("/ui/stores/{store}?dir=%2Fd%2F&sort={sort}");
        let page = site.get(&admin, &address).unwrap();
        let mut names = [
            ("a", place(&page, ">a.md<")),
            ("b", place(&page, ">b.md<")),
            ("c", place(&page, ">c.md<")),
        ];
        names.sort_by_key(|(_, place)| *place);
        names.map(|(name, _)| name).concat()
    };
    assert_eq!(order("path"), "abc");
    assert_eq!(order("time"), "cba");
    assert_eq!(order("size"), "bca");
    // The key is called `admin key`, the others wrote as `user_ada`.
    assert_eq!(order("author"), "cab");
    assert_eq!(order("nonsense"), "abc");
    let page = site.get(&admin, &format!("/ui/stores/{store}?sort=author")).unwrap();
    assert!(page.contains(">d/</a>") && !page.contains("a.md"), "{page}");
}

#[test]
fn long_lists_have_pages_of_less_than_60_kb() {
    let site = Site::new();
    let store = site.store("notes");
    for number in 0..170 {
        site.put(store, &format!("/notes/note-{number:03}.md"), "text");
    }
    for query in
        ["view=list", "view=list&sort=time", "dir=%2Fnotes%2F", "dir=%2Fnotes%2F&sort=author"]
    {
        let get = |page: &str| {
            site.get(&site.admin(), &format!("/ui/stores/{store}?{query}&page={page}")).unwrap()
        };
        let (first, third) = (get("1"), get("3"));
        assert!(first.len() < 60_000, "{}", first.len());
        assert_eq!(first.matches("type=\"checkbox\"").count(), 80);
        assert!(first.contains("Next page") && !first.contains("Previous page"), "{query}");
        assert_eq!(third.matches("type=\"checkbox\"").count(), 10, "{query}");
        assert!(third.contains("Previous page") && !third.contains("Next page"), "{query}");
        get("0");
        get("99999999999999999999");
        get("184467440737095516");
    }
}

#[test]
fn a_hostile_store_is_text() {
    let site = Site::new();
    let store = site.store(HOSTILE);
    site.put(store, "/<script>alert(1)<\"script>/x.md", &format!("[[{HOSTILE}]]"));
    for page in ["", "?view=list", "/health", "/settings", "/export", "/new"] {
        site.get(&site.admin(), &format!("/ui/stores/{store}{page}")).unwrap();
    }
}

#[test]
fn visitors_see_what_they_may_and_no_more() {
    let site = Site::new();
    let (store, other) = (site.store("notes"), site.store("other"));
    site.put(store, "/a.md", "a");
    let attach = |stores: &[StoreId], title: &str| {
        let attachments = stores.iter().map(|store| NewAttachment {
            store: *store,
            access: Access::ReadOnly,
            instructions: Instructions::default(),
        });
        let new = NewSession::titled(title, attachments.collect(), SessionToken::None);
        site.engine.create_session(site.workspace, &new).unwrap();
    };
    attach(&[store], "a session of ours");
    attach(&[store, other], "a session of others");
    let own = format!("/ui/stores/{store}");
    let page = site.get(&site.admin(), &own).unwrap();
    assert!(page.contains("a session of ours") && page.contains("a session of others"), "{page}");
    for part in ["/new?", "/settings\"", "/move\"", "/delete\"", "/export\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let reader = site.visitor(Role::ReadOnly, Some(&[store]));
    let page = site.get(&reader, &own).unwrap();
    assert!(page.contains("a session of ours") && !page.contains("a session of others"), "{page}");
    for part in ["/new?", "/settings\"", "/move\"", "/delete\""] {
        assert!(!page.contains(part), "{part}: {page}");
    }
    assert!(page.contains("/export\""), "{page}");
    assert_denied(&site.get(&reader, &format!("/ui/stores/{other}")));
    for page in ["/move", "/delete", "/settings"] {
        assert_denied(&site.get(&reader, &(own.clone() + page)));
        assert_denied(&site.post(&reader, &(own.clone() + page), &[]));
    }
    let writer = site.visitor(Role::ReadWrite, None);
    for page in ["/settings", "/archive", "/remove"] {
        assert_denied(&site.post(
            &writer,
            &(own.clone() + page),
            &[("confirm", "notes"), ("sure", "yes")],
        ));
    }
    for page in ["", "/health", "/export"] {
        assert_denied(&site.get(&reader, &format!("/ui/stores/{other}{page}")));
    }
    assert_denied(&site.post(&reader, &format!("/ui/stores/{other}/export"), &[]));
}

#[test]
fn health_counts_broken_links_and_memories_without_links() {
    let site = Site::new();
    let store = site.store("notes");
    site.put(store, "/a.md", "# A\n[[B]] [[Nowhere]]");
    site.put(store, "/b.md", "# B\n");
    site.put(store, "/alone.md", "# Alone\n");
    let page = site.get(&site.admin(), &format!("/ui/stores/{store}/health")).unwrap();
    assert!(page.contains("1 broken link<") && page.contains("1 memory without links<"), "{page}");
    let home = site.get(&site.admin(), &format!("/ui/stores/{store}")).unwrap();
    assert!(home.contains(&format!("data-lazy=\"/ui/stores/{store}/health\"")), "{home}");
    assert!(page.contains("<td>Nowhere</td>") && page.contains(">/alone.md</a>"), "{page}");
}

#[test]
fn a_selection_is_moved_unless_it_changed_since() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let (a, b) = (site.put(store, "/a.md", "a"), site.put(store, "/b.md", "b"));
    let own = format!("/ui/stores/{store}/move");
    let page = site.get(&admin, &format!("{own}?memory={}&memory={}&dir=%2F", a.id, b.id)).unwrap();
    assert!(page.contains("Move 2 memories") && page.contains(&seen(&a)), "{page}");
    site.put(store, "/b.md", "changed");
    let fields = [("memory", seen(&a)), ("memory", seen(&b)), ("to", "/new".to_owned())];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    let reply = site.post(&admin, &own, &fields);
    let Ok(Reply::Conflict(page)) = reply else { panic!("{reply:?}") };
    let page = page.into_string();
    assert!(page.contains("`/b.md` has changed since it was listed"), "{page}");
    assert!(is_there(&site, store, "/new/a.md") && is_there(&site, store, "/b.md"));
    let reply = site.get(&admin, &own);
    assert!(matches!(reply, Err(Trouble::Invalid(_))), "{reply:?}");
    let fields = [("memory", seen(&a)), ("to", "no/../folder".to_owned())];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    let reply = site.post(&admin, &own, &fields);
    let Ok(Reply::Page(page)) = reply else { panic!("{reply:?}") };
    let page = page.into_string();
    assert!(
        page.contains("Nothing is moved") && page.contains("value=\"no/../folder/\""),
        "{page}"
    );
    assert!(page.contains(&a.id.to_string()), "{page}");
}

#[test]
fn a_selection_is_deleted_after_a_page_that_lists_it() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let (a, b) = (site.put(store, "/a.md", "a"), site.put(store, "/b.md", "b"));
    site.put(store, "/c.md", "c");
    let own = format!("/ui/stores/{store}/delete");
    let page = site.get(&admin, &format!("{own}?memory={}&memory={}", a.id, b.id)).unwrap();
    assert!(page.contains(">/a.md</a>") && page.contains(">/b.md</a>"), "{page}");
    assert!(is_there(&site, store, "/a.md"));
    let to = led_to(site.post(&admin, &own, &[("memory", &seen(&a)), ("memory", &seen(&b))]));
    assert!(site.get(&admin, &to).unwrap().contains("Deleted: 2 memories"));
    assert!(!is_there(&site, store, "/a.md") && is_there(&site, store, "/c.md"));
    let reply = site.post(&admin, &own, &[("memory", "nonsense")]);
    assert!(matches!(reply, Err(Trouble::Invalid(_))), "{reply:?}");
}

#[test]
fn an_export_holds_the_texts_and_is_remembered_as_a_copy() {
    let site = Site::new();
    let (store, reader) = (site.store("My Notes"), site.visitor(Role::ReadOnly, None));
    let a = site.put(store, "/a.md", "the text of a");
    site.put(store, "/d/b.md", "the text of b");
    let own = format!("/ui/stores/{store}/export");
    assert!(site.get(&reader, &own).unwrap().contains("2 memories"));
    let bytes = |fields: &[(&str, &str)]| {
        let reply = site.post(&reader, &own, fields);
        let Ok(Reply::Download { name, bytes, .. }) = reply else { panic!("{reply:?}") };
        assert_eq!(name, "my-notes.tar");
        String::from_utf8(bytes).unwrap()
    };
    let all = bytes(&[]);
    assert!(all.contains("my-notes/a.md\0") && all.contains("my-notes/d/b.md\0"));
    assert!(all.contains("the text of a") && all.contains("the text of b"));
    let some = bytes(&[("memory", &seen(&a))]);
    assert!(some.contains("the text of a") && !some.contains("the text of b"));
    let since = quipu_core::model::Timestamp::MIN;
    let copies = site.engine.read(|reader| reader.copies_made(site.workspace, since)).unwrap();
    assert_eq!(copies.len(), 2);
}

#[test]
fn settings_are_changed_unless_somebody_else_did() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    let own = format!("/ui/stores/{store}/settings");
    let page = site.get(&admin, &own).unwrap();
    let (_, rest) = page.split_once("name=\"seen\" value=\"").unwrap();
    let stamp = rest.split('"').next().unwrap().to_owned();
    let save = |seen: &str, name: &str, days: &str| {
        let fields = [
            ("seen", seen),
            ("name", name),
            ("description", "all about\r\ntea"),
            ("secrets", "reject"),
            ("forgotten", "refuse"),
            ("writers", "people"),
            ("days", days),
        ];
        site.post(&admin, &own, &fields)
    };
    let reply = save(&stamp, "", "30");
    assert!(
        matches!(&reply, Ok(Reply::Page(page)) if page.0.contains("Nothing is saved")),
        "{reply:?}"
    );
    led_to(save(&stamp, "tea", "30"));
    let after = site.engine.store(store).unwrap();
    assert_eq!((after.name.as_str(), after.description.as_str()), ("tea", "all about\ntea"));
    assert_eq!(
        (after.policy.secrets, after.policy.expire_after_days),
        (SecretPolicy::Reject, Some(30))
    );
    let page = site.get(&admin, &own).unwrap();
    let (_, rest) = page.split_once("name=\"seen\" value=\"").unwrap();
    let to = led_to(save(rest.split('"').next().unwrap(), "tea", "30"));
    assert!(site.get(&admin, &to).unwrap().contains("Nothing changed."), "{to}");
    let reply = save(&stamp, "coffee", "");
    let Ok(Reply::Conflict(page)) = reply else { panic!("{reply:?}") };
    let page = page.into_string();
    assert!(page.contains("<dd>tea</dd>") && page.contains("value=\"coffee\""), "{page}");
    assert_eq!(site.engine.store(store).unwrap().name.as_str(), "tea");
}

#[test]
fn archiving_and_deleting_a_store_are_confirmed() {
    let site = Site::new();
    let (store, admin) = (site.store("notes"), site.admin());
    site.put(store, "/a.md", "a");
    let own = format!("/ui/stores/{store}");
    let post =
        |page: &str, fields: &[(&str, &str)]| site.post(&admin, &format!("{own}/{page}"), fields);
    assert!(matches!(post("archive", &[]), Ok(Reply::Page(_))));
    led_to(post("archive", &[("sure", "yes")]));
    let page = site.get(&admin, &own).unwrap();
    assert!(
        page.contains("archived") && !page.contains("/new?") && !page.contains("/delete\""),
        "{page}"
    );
    assert!(matches!(post("remove", &[("confirm", "other")]), Ok(Reply::Page(_))));
    assert_eq!(led_to(post("remove", &[("confirm", "notes")])), "/ui");
    // It is in the grace period, not erased.
    assert_eq!(site.engine.deleted_stores(site.workspace).unwrap().len(), 1);
}
