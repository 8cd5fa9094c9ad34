//! Keys: who can get in, and with which rights.

use maud::{Markup, html};
use quipu_core::backend::Archived;
use quipu_core::engine::NewKey;
use quipu_core::model::{Forwarding, Key, KeyKind, Name, Role, Store, StoreId, Timestamp};
use quipu_core::timeframe;
use quipu_service::caller::Need;

use crate::choice;
use crate::paging::Paging;
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::{Tab, page, require_admin};

const KEYS_PER_PAGE: usize = 50;
/// How many stores of a key are named.
const NAMES_MAX: usize = 5;

const EXPIRIES: [(&str, &str); 6] = [
    ("30d", "in 30 days"),
    ("1d", "tomorrow"),
    ("7d", "in 7 days"),
    ("90d", "in 90 days"),
    ("365d", "in a year"),
    ("", "never"),
];

/// Lists what opens something: keys, sign-ins and tokens of hosts. Those that work come first, and among
/// them those that were not derived.
pub(super) fn list(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_admin(visit)?;
    let now = visit.engine.now();
    let mut keys = visit.engine.keys(visit.caller.workspace)?;
    keys.retain(|key| key.kind.opens());
    let newest_first = |key: &Key| std::cmp::Reverse(key.created_at);
    keys.sort_by_key(|key| (!key.is_valid(now), key.is_derived(), newest_first(key)));
    let stores = visit.stores(Archived::Show)?;
    let paging = Paging::new(&visit.query, KEYS_PER_PAGE);
    let shown: Vec<_> = paging.cut(&keys).collect();
    let rows: Vec<_> = shown.iter().map(|key| columns(visit, key, (&stores, &keys))).collect();
    let content = html! {
        div.wide tabindex="0" role="region" aria-label="Keys" { table #keys {
            thead { tr {
                @if let Some(first) = rows.first() { @for (name, _) in first { th scope="col" { (name) } } }
                th scope="col" { "Change" }
            } }
            tbody { @for (key, cells) in shown.iter().zip(&rows) { tr {
                @for (place, (_, cell)) in cells.iter().enumerate() {
                    @if place == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                }
                td { @if key.is_valid(now) {
                    a href={ "/ui/admin/keys/" (key.id) "/revoke" } aria-label={ "Revoke " (visible::plain(key.name.as_str())) } { "Revoke…" }
                } }
            } } }
        } }
        (paging.links("/ui/admin/keys", &[], keys.len()))
        (form(visit, &stores))
    };
    page(visit, Tab::Keys, "Keys", &content)
}

/// Returns the cells of a key's row, each with the name of its column.
fn columns(
    visit: &Visit<'_>,
    key: &Key,
    (stores, keys): (&[Store], &[Key]),
) -> Vec<(&'static str, Markup)> {
    let now = visit.engine.now();
    let parent = key.parent.and_then(|id| keys.iter().find(|other| other.id == id));
    vec![
        (
            "Name",
            html! {
                (visible::short(key.name.as_str()))
                @if visit.caller.key() == Some(key.id) { " " span.badge { "yours" } }
                br; small.mono { (key.id) }
            },
        ),
        (
            "What",
            html! {
                (what(key))
                @if let Some(parent) = parent { ", of " (visible::short(parent.name.as_str())) }
                @if key.forwarding == Forwarding::Allowed { ", may use the upstream" }
            },
        ),
        ("Role", html! { (key.role) }),
        ("Stores", opened(key, stores)),
        ("Created", text::time(key.created_at, now)),
        (
            "Last use",
            html! { @match key.used_at { Some(at) => (text::time(at, now)), None => "–" } },
        ),
        ("State", state(key, now)),
    ]
}

fn what(key: &Key) -> &'static str {
    if key.kind == KeyKind::Browser {
        "sign-in"
    } else if key.is_derived() {
        "token of a host"
    } else {
        "key"
    }
}

fn state(key: &Key, now: Timestamp) -> Markup {
    html! { @match (key.revoked_at, key.expires_at) {
        (Some(at), _) => { "revoked " (text::time(at, now)) }
        (None, Some(at)) if at <= now => { "expired " (text::time(at, now)) }
        (None, Some(at)) => { "valid until " (text::exact(at)) }
        (None, None) => "valid"
    } }
}

fn opened(key: &Key, stores: &[Store]) -> Markup {
    let Some(ids) = &key.stores else { return html! { "all" } };
    let name = |id: &StoreId| stores.iter().find(|store| store.id == *id).map(|store| &store.name);
    let names: Vec<_> = ids.iter().filter_map(name).take(NAMES_MAX).collect();
    let others_count = ids.len() - names.len();
    html! {
        @for (place, name) in names.iter().enumerate() { @if place > 0 { ", " } (visible::short(name.as_str())) }
        @if others_count > 0 { " and " (text::count(others_count as u64, "other store", "other stores")) }
    }
}

fn form(visit: &Visit<'_>, stores: &[Store]) -> Markup {
    html! {
        section aria-labelledby="new" {
            h2 #new { "New key" }
            form.narrow method="post" action="/ui/admin/keys" {
                (visit.token_field())
                label { "Name, to recognize it by" input name="name" required maxlength="255" autocomplete="off"; }
                label { "Role"
                    select name="role" {
                        option value="read_only" { "read" }
                        option value="read_write" selected { "read and write" }
                        option value="admin" { "administrator" }
                    }
                }
                label { "Expires"
                    select name="expires" { @for (value, words) in EXPIRIES { option value=(value) { (words) } } }
                }
                fieldset {
                    legend { "Stores; none means all, also future ones" }
                    (choice::boxes(stores, &[], ""))
                }
                button.primary { "Create key" }
            }
        }
    }
}

/// Creates a key and shows its secret. This is the one change that ends in a page and not in a
/// redirection: the secret is stored nowhere, so no later request could show it.
pub(super) fn create(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_admin(visit)?;
    let field = |name: &str| visit.form.get(name).unwrap_or_default();
    let name = Name::new(field("name"));
    let name = name.map_err(|error| Trouble::Invalid(format!("Name: {error}")))?;
    let role: Role =
        field("role").parse().map_err(|error| Trouble::Invalid(format!("Role: {error}")))?;
    let mut stores = Vec::new();
    for id in visit.form.all("store") {
        stores.push(visit.store_with_id(id, Need::Manage)?.id);
    }
    for store in choice::named(visit, &visit.form, Need::Manage)? {
        if !stores.contains(&store.id) {
            stores.push(store.id);
        }
    }
    let new = NewKey {
        name,
        role,
        stores: (!stores.is_empty()).then_some(stores),
        expires_at: expiry(field("expires"), visit.engine.now())?,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (key, secret) = visit.engine.create_key(visit.caller.workspace, &new)?;
    let content = html! {
        p.message role="alert" { "Copy the secret now. It is shown only here and only once." }
        dl {
            dt { "Name" } dd { (visible::short(key.name.as_str())) }
            dt { "Role" } dd { (key.role) }
            dt { "State" } dd { (state(&key, visit.engine.now())) }
            dt { "Secret" } dd { code #secret.secret { (secret.reveal()) } }
        }
        p { a.button href="/ui/admin/keys" { "I have copied it" } }
    };
    page(visit, Tab::Keys, "Key created", &content)
}

fn expiry(text: &str, now: Timestamp) -> Result<Option<Timestamp>, Trouble> {
    if text.is_empty() {
        return Ok(None);
    }
    let at = timeframe::span(text).map(|span| now.plus(span));
    let at = at.ok_or_else(|| Trouble::Invalid("Expires: use a time such as `30d`".to_owned()))?;
    Ok(Some(at))
}

/// Returns the key in the path. One of another workspace does not exist here.
fn named(visit: &Visit<'_>) -> Result<Key, Trouble> {
    require_admin(visit)?;
    let id = visit.parameter("key");
    let keys = visit.engine.keys(visit.caller.workspace)?;
    let found = keys.into_iter().find(|key| key.id.to_string() == id);
    found.ok_or_else(|| {
        Trouble::NotFound(
            "There is no such key. The list of keys shows those that there are.".to_owned(),
        )
    })
}

/// Asks before a key is revoked.
pub(super) fn confirm(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let key = named(visit)?;
    let now = visit.engine.now();
    let keys = visit.engine.keys(visit.caller.workspace)?;
    let is_admin = |it: &Key| it.role == Role::Admin && it.stores.is_none() && it.is_valid(now);
    let is_last = is_admin(&key) && keys.iter().filter(|it| is_admin(it)).count() == 1;
    let content = html! {
        p { "Revoke the key " strong { (visible::short(key.name.as_str())) } " (" (key.role) ", " (state(&key, now)) ")? \
             It stops working at once, and so do the sessions and sign-ins that were made with it. \
             This cannot be undone." }
        @if visit.caller.key() == Some(key.id) {
            p.message { "You are signed in with this key: you will be signed out." }
        }
        @if is_last {
            p.message { "It is the last key of an administrator. Afterwards only "
                code { "quipu key create --role admin" } " on the server makes a new one." }
        }
        form method="post" action={ "/ui/admin/keys/" (key.id) "/revoke" } {
            (visit.token_field())
            p { button.danger { "Revoke " (visible::short(key.name.as_str())) } " " a.button href="/ui/admin/keys" { "Cancel" } }
        }
    };
    page(visit, Tab::Keys, "Revoke a key", &content)
}

/// Revokes a key.
pub(super) fn revoke(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    visit.engine.revoke_key(named(visit)?.id)?;
    Ok(Reply::SeeOther("/ui/admin/keys".to_owned()))
}
