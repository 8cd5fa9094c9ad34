//! A store that is reserved for people: every form that changes one, sent by everybody who can open it.

use std::time::Duration;

use quipu_core::engine::{Derivation, NewDerivedKey, Principal, StoreUpdate};
use quipu_core::model::{KeyKind, Memory, Name, Role, StorePolicy, View, Writers};
use quipu_service::caller::Caller;

use super::site::{Site, user};

/// A site whose store is reserved and has one rule with two versions.
struct World {
    site: Site,
    rule: Memory,
    first: Memory,
}

impl World {
    fn new() -> Self {
        let site = Site::new();
        let policy = StorePolicy { writers: Writers::People, ..StorePolicy::default() };
        let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
        site.engine.update_store(site.store, &update).unwrap();
        let first = site.put(&user("ada"), "/r.md", "the first rule");
        let rule = site.put(&user("ada"), "/r.md", "the rule");
        Self { site, rule, first }
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{store}", &self.site.store.to_string())
            .replace("{memory}", &self.rule.id.to_string())
            .replace("{first}", &self.first.version.to_string())
            .replace("{newest}", &self.rule.version.to_string())
    }

    fn seen(&self) -> String {
        let query = quipu_core::backend::VersionQuery {
            filter: quipu_core::backend::VersionFilter::default(),
            before: None,
            limit: 100,
            view: View::Full,
        };
        let versions = self.site.engine.versions(self.site.store, &query).map(|page| page.items);
        format!("{:?} {:?}", versions.ok(), self.site.engine.store(self.site.store).ok())
    }

    /// Returns somebody who has signed in with a caller's key.
    fn signed_in(&self, caller: &Caller) -> Caller {
        let Principal::Key(key) = &caller.principal else { panic!("a key") };
        self.browser(Derivation::Key(key.id), key.role)
    }

    fn browser(&self, from: Derivation, role: Role) -> Caller {
        let new = NewDerivedKey {
            kind: KeyKind::Browser,
            name: Name::new("eve").unwrap(),
            role,
            stores: None,
            expires_at: self.site.engine.now().plus(Duration::from_hours(1)),
            payload: None,
        };
        Caller::new(Principal::Key(self.site.engine.derive_key(from, &new).unwrap().0))
    }
}

type Who = (&'static str, fn(&World) -> Caller);

const PEOPLE: [Who; 2] = [
    ("an administrator", |it| it.signed_in(&it.site.admin())),
    ("the owner", |it| it.browser(Derivation::Owner(it.site.workspace), Role::Admin)),
];

const OTHERS: [Who; 3] = [
    ("a key that writes", |it| it.signed_in(&it.site.visitor(Role::ReadWrite, None))),
    ("an owner with fewer rights", |it| {
        it.browser(Derivation::Owner(it.site.workspace), Role::ReadWrite)
    }),
    ("a key that reads", |it| it.signed_in(&it.site.visitor(Role::ReadOnly, None))),
];

/// A form: the page that has it, or what is sent to get that page, where it is sent, and what is typed.
struct Sent {
    page: &'static str,
    asked: &'static [(&'static str, &'static str)],
    action: &'static str,
    typed: &'static [(&'static str, &'static str)],
}

const fn sent(
    page: &'static str,
    action: &'static str,
    typed: &'static [(&'static str, &'static str)],
) -> Sent {
    Sent { page, asked: &[], action, typed }
}

const FORMS: [Sent; 16] = [
    sent("/ui/stores/{store}/new", "/ui/stores/{store}/new", &[("path", "/n.md"), ("text", "x")]),
    sent(
        "/ui/stores/{store}/memories/{memory}/edit",
        "/ui/stores/{store}/memories/{memory}/edit",
        &[("text", "mine")],
    ),
    sent(
        "/ui/stores/{store}/memories/{memory}/rename",
        "/ui/stores/{store}/memories/{memory}/rename",
        &[("path", "/s.md")],
    ),
    sent(
        "/ui/stores/{store}/memories/{memory}/delete",
        "/ui/stores/{store}/memories/{memory}/delete",
        &[],
    ),
    sent(
        "/ui/stores/{store}/memories/{memory}/versions/{first}",
        "/ui/stores/{store}/memories/{memory}/versions/{first}/restore",
        &[],
    ),
    sent(
        "/ui/stores/{store}/memories/{memory}/versions/{first}",
        "/ui/stores/{store}/memories/{memory}/versions/{first}/redact",
        &[("sure", "yes")],
    ),
    sent(
        "/ui/stores/{store}/move?memory={memory}",
        "/ui/stores/{store}/move",
        &[("to", "/elsewhere")],
    ),
    sent("/ui/stores/{store}/delete?memory={memory}", "/ui/stores/{store}/delete", &[]),
    sent("/ui/search/delete?memory={memory}&place={memory}/{store}", "/ui/search/delete", &[]),
    sent("/ui/stores/{store}/past/restore?at={first}", "/ui/stores/{store}/past/restore", &[]),
    sent("/ui/revert?store={store}&actor=user_ada", "/ui/revert", &[]),
    Sent {
        page: "/ui/redact",
        asked: &[("matching", "first"), ("store", "{store}")],
        action: "/ui/redact/confirm",
        typed: &[("typed", "1")],
    },
    Sent {
        page: "/ui/redact",
        asked: &[("matching", "the"), ("store", "{store}"), ("and_heads", "yes")],
        action: "/ui/redact/confirm",
        typed: &[("typed", "2")],
    },
    sent(
        "/ui/stores/{store}/settings",
        "/ui/stores/{store}/settings",
        &[("name", "notes"), ("writers", "everyone"), ("secrets", "warn"), ("forgotten", "warn")],
    ),
    sent("/ui/stores/{store}/settings", "/ui/stores/{store}/archive", &[("sure", "yes")]),
    sent("/ui/stores/{store}/settings", "/ui/stores/{store}/remove", &[("confirm", "notes")]),
];

/// Returns an attribute of the first element of some markup.
fn attribute(markup: &str, name: &str) -> Option<String> {
    let (_, rest) = markup.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let plain = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Some(plain.replace("&amp;", "&"))
}

/// Returns the hidden fields of the form of a page that is sent to an address.
fn hidden(page: &str, action: &str) -> Vec<(String, String)> {
    let is_it = |form: &&str| attribute(form, "action").as_deref() == Some(action);
    let forms = page.split("<form").skip(1).filter_map(|form| form.split("</form>").next());
    let mut posts = forms.filter(|form| form.contains("method=\"post\""));
    let form = posts.find(is_it).unwrap_or_else(|| panic!("no form leads to {action}: {page}"));
    let inputs = form.split("<input").skip(1).filter(|it| it.starts_with(" type=\"hidden\""));
    inputs
        .map(|input| (attribute(input, "name").unwrap(), attribute(input, "value").unwrap()))
        .collect()
}

/// Sends a form as somebody; the page with the form is one that an administrator has opened.
fn send(world: &World, caller: &Caller, form: &Sent) -> super::site::Answer {
    let admin = world.site.admin();
    let page = if form.asked.is_empty() {
        world.site.get(&admin, &world.fill(form.page)).page()
    } else {
        let asked: Vec<_> =
            form.asked.iter().map(|(name, text)| (*name, world.fill(text))).collect();
        let asked: Vec<_> = asked.iter().map(|(name, text)| (*name, text.as_str())).collect();
        world.site.post(&admin, form.page, &asked).page()
    };
    let action = world.fill(form.action);
    let fields = hidden(&page, &action);
    let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fields: Vec<_> = fields.chain(form.typed.iter().copied()).collect();
    world.site.post(caller, &action, &fields)
}

#[test]
fn every_form_of_people_changes_it() {
    for (who, caller) in PEOPLE {
        for form in &FORMS {
            let world = World::new();
            let before = world.seen();
            let answer = send(&world, &caller(&world), form);
            assert!(matches!(answer.status, 200 | 303), "{who}, {}: {answer:?}", form.action);
            assert_ne!(world.seen(), before, "{who}, {}: {answer:?}", form.action);
        }
    }
}

#[test]
fn no_form_of_anybody_else_changes_it() {
    for (who, caller) in OTHERS {
        for form in &FORMS {
            let world = World::new();
            let before = world.seen();
            let answer = send(&world, &caller(&world), form);
            // Where something was typed, the form comes back with it and says why.
            let is_refused = answer.status >= 400 || answer.text.contains("changed by people");
            assert!(is_refused, "{who}, {}: {answer:?}", form.action);
            assert_eq!(world.seen(), before, "{who}, {}: {answer:?}", form.action);
        }
    }
}

#[test]
fn whoever_may_not_change_it_has_no_buttons_for_it() {
    let world = World::new();
    let writing = world.signed_in(&world.site.visitor(Role::ReadWrite, None));
    let pages = [
        "/ui/stores/{store}",
        "/ui/stores/{store}/memories/{memory}",
        "/ui/stores/{store}/memories/{memory}/versions/{first}",
        "/ui/stores/{store}/past?at={first}",
        "/ui/search?q=rule",
        "/ui/actors/user_ada",
    ];
    let buttons = |caller: &Caller, page: &str| {
        let page = world.site.get(caller, &world.fill(page)).page();
        let parts =
            ["/new\"", "/edit\"", "/rename\"", "/delete", "/restore", "/revert", "Delete selected"];
        parts.iter().filter(|part| page.contains(**part)).count()
    };
    for page in pages {
        assert_eq!(buttons(&writing, page), 0, "{page}");
        assert_ne!(buttons(&world.signed_in(&world.site.admin()), page), 0, "{page}");
    }
    let policy = StorePolicy { writers: Writers::Everyone, ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    world.site.engine.update_store(world.site.store, &update).unwrap();
    for page in pages {
        assert_ne!(buttons(&writing, page), 0, "{page}");
    }
}

#[test]
fn every_form_that_changes_memories_or_a_store_is_tried() {
    // These change something else, or nothing.
    const OTHER: [&str; 14] = [
        "/ui/stores",
        "/ui/redact",
        "/ui/stores/{store}/export",
        "/ui/sessions/{session}/end",
        "/ui/authorize",
        "/ui/sign-out",
        "/ui/admin/keys",
        "/ui/admin/keys/{key}/revoke",
        "/ui/admin/webhooks",
        "/ui/admin/upkeep/check",
        "/ui/admin/upkeep/prune",
        "/ui/admin/upkeep/backup",
        "/ui/admin/upkeep/restore",
        "/ui/events",
    ];
    let tried =
        |path: &str| FORMS.iter().any(|it| it.action.replace("{first}", "{version}") == path);
    for page in quipu_inspector::pages().iter().filter(|page| page.method == http::Method::POST) {
        assert!(
            tried(page.path) || OTHER.contains(&page.path),
            "`{}` has no row in `FORMS` of this file",
            page.path
        );
    }
}
