//! The settings of a store, for those who may manage it.

use std::collections::BTreeMap;

use maud::{Markup, html};
use quipu_core::Error;
use quipu_core::engine::StoreUpdate;
use quipu_core::model::{
    Description, Directory, ForgottenPolicy, Name, SecretPolicy, Store, StorePolicy, Writers,
};
use quipu_service::caller::Need;

use crate::edit::unsaved;
use crate::form::address;
use crate::layout::{Room, page};
use crate::memory::{directory_address, trail_in};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

/// Returns what happens to credentials, in words.
fn secrets_words(policy: SecretPolicy) -> &'static str {
    match policy {
        SecretPolicy::Off => "not looked for",
        SecretPolicy::Warn => "stored, with a warning",
        SecretPolicy::Redact => "taken out before the text is stored",
        SecretPolicy::Reject => "refused",
    }
}

/// Returns who may change the memories, in words.
fn writers_words(writers: Writers) -> &'static str {
    match writers {
        Writers::Everyone => "everyone who may write",
        Writers::People => "people only, never an agent",
    }
}

/// Returns what happens to redacted text that comes back, in words.
fn forgotten_words(policy: ForgottenPolicy) -> &'static str {
    match policy {
        ForgottenPolicy::Warn => "stored again, with a warning",
        ForgottenPolicy::Refuse => "refused when it comes back",
    }
}

/// Shows the settings.
pub(super) fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Manage)?;
    Ok(Reply::Page(settings(visit, &store, &html! {})))
}

fn settings(visit: &Visit<'_>, store: &Store, notes: &Markup) -> Markup {
    let content = html! {
        (trail_in(store, "settings"))
        h1 { "Settings of " (visible::short(store.name.as_str())) }
        (notes)
        @if store.archived_at.is_some() {
            p { "The store is archived: its settings can no longer be changed." }
        } @else { (details(visit, store)) (archive_form(visit, store)) }
        (remove_form(visit, store))
    };
    page(visit, Room::Stores, &format!("Settings · {}", store.name), &content)
}

fn alert(trouble: &str) -> Markup {
    html! { p.message #trouble role="alert" { (trouble) } }
}

/// The form for name, description and policy. If it was sent, it shows what was typed.
fn details(visit: &Visit<'_>, store: &Store) -> Markup {
    let policy = store.policy;
    let days = policy.expire_after_days.map_or_else(String::new, |days| days.to_string());
    let field = |name: &str, stored: &str| visit.form.text(name).unwrap_or(stored).to_owned();
    let secrets =
        [SecretPolicy::Off, SecretPolicy::Warn, SecretPolicy::Redact, SecretPolicy::Reject];
    let forgotten = [ForgottenPolicy::Warn, ForgottenPolicy::Refuse];
    let chosen = field("secrets", policy.secrets.as_str());
    let writers = [Writers::Everyone, Writers::People];
    let chosen_writers = field("writers", policy.writers.as_str());
    let chosen_forgotten = field("forgotten", policy.forgotten.as_str());
    html! {
        form.narrow method="post" action={ "/ui/stores/" (store.id) "/settings" } data-unsaved {
            (visit.token_field())
            input type="hidden" name="seen" value=(store.updated_at);
            label { "Name" input name="name" required maxlength="255" value=(field("name", store.name.as_str())); }
            label { "Description"
                textarea.short name="description" rows="3" { "\n" (field("description", store.description.as_str())) }
            }
            label { "Credentials in a text are"
                select name="secrets" { @for each in secrets {
                    option value=(each.as_str()) selected[each.as_str() == chosen] { (secrets_words(each)) }
                } }
            }
            label { "Text that was redacted is"
                select name="forgotten" { @for each in forgotten {
                    option value=(each.as_str()) selected[each.as_str() == chosen_forgotten] { (forgotten_words(each)) }
                } }
            }
            label { "May be changed by"
                select name="writers" { @for each in writers {
                    option value=(each.as_str()) selected[each.as_str() == chosen_writers] { (writers_words(each)) }
                } }
            }
            label { "Delete memories that nobody has read or changed for this many days (empty: never)"
                input name="days" type="number" min="1" max="36500" value=(field("days", &days));
            }
            p { button.primary { "Save" } }
        }
    }
}

fn archive_form(visit: &Visit<'_>, store: &Store) -> Markup {
    html! {
        h2 { "Archive" }
        p { "An archived store can be read only, and it cannot be brought back into use." }
        form method="post" action={ "/ui/stores/" (store.id) "/archive" } {
            (visit.token_field())
            label.inline { input type="checkbox" name="sure" value="yes" required; "I know that this cannot be undone" }
            button.danger { "Archive" }
        }
    }
}

fn remove_form(visit: &Visit<'_>, store: &Store) -> Markup {
    let days = visit.engine.limits().deleted_stores_kept_for.as_secs() / (24 * 60 * 60);
    html! {
        h2 { "Delete" }
        p { "The store is gone for everybody at once. For " (text::count(days, "day", "days"))
            " it can be brought back with " code { "quipu store restore" } "; then it is erased with all its history." }
        form.narrow method="post" action={ "/ui/stores/" (store.id) "/remove" } {
            (visit.token_field())
            label { "Type the name of the store to confirm"
                input name="confirm" required autocomplete="off" spellcheck="false"; }
            button.danger { "Delete the store" }
        }
    }
}

/// Changes name, description and policy.
pub(super) fn update(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = match visit.store(Need::Manage) {
        Ok(store) if store.archived_at.is_none() => store,
        Ok(store) => {
            let message = format!(
                "The store {} is archived: its settings can no longer be changed.",
                visible::plain(store.name.as_str())
            );
            return unsaved(visit, Trouble::Invalid(message), "description");
        }
        Err(trouble) => return unsaved(visit, trouble, "description"),
    };
    if visit.form.get("seen") != Some(store.updated_at.to_string().as_str()) {
        return Ok(Reply::Conflict(settings(visit, &store, &as_it_is(&store))));
    }
    match wanted(visit).and_then(|update| visit.engine.update_store(store.id, &update)) {
        Ok(now) => {
            let state = |it: &Store| (it.name.clone(), it.description.clone(), it.policy);
            let saved = if state(&now) == state(&store) { "0" } else { "1" };
            let own = format!("/ui/stores/{}", store.id);
            Ok(Reply::SeeOther(address(&own, &[("saved", saved)])))
        }
        Err(error) => {
            let trouble = format!("Nothing is saved: {}.", error.message());
            Ok(Reply::Page(settings(visit, &store, &alert(&trouble))))
        }
    }
}

/// Shows the settings beside the form with other ones.
fn as_it_is(store: &Store) -> Markup {
    let policy = store.policy;
    html! {
        (alert("Nothing is saved: somebody else changed these settings since you opened them. This is how \
                they are now; the form has what you typed."))
        dl {
            dt { "Name" } dd { (visible::short(store.name.as_str())) }
            dt { "Description" } dd { (visible::short(store.description.as_str())) }
            (policy_rows(policy))
        }
    }
}

/// The policy of a store as the rows of a list.
pub(super) fn policy_rows(policy: StorePolicy) -> Markup {
    html! {
        dt { "Credentials" } dd { (secrets_words(policy.secrets)) }
        dt { "Redacted text" } dd { (forgotten_words(policy.forgotten)) }
        dt { "May be changed by" } dd { (writers_words(policy.writers)) }
        dt { "Unused memories" } dd { @match policy.expire_after_days {
            Some(days) => { "deleted after " (text::count(days, "day", "days")) },
            None => "kept"
        } }
    }
}

fn wanted(visit: &Visit<'_>) -> Result<StoreUpdate, Error> {
    let field = |name: &str| visit.form.get(name).unwrap_or_default();
    let malformed = |what: &str| Error::invalid(format!("{what} is not one of the choices"));
    let days = match field("days") {
        "" => None,
        days => {
            Some(days.parse().map_err(|_malformed| Error::invalid("the days are not a number"))?)
        }
    };
    let policy = StorePolicy {
        secrets: field("secrets").parse().map_err(|_unknown| malformed("secrets"))?,
        forgotten: field("forgotten").parse().map_err(|_unknown| malformed("forgotten"))?,
        expire_after_days: days.filter(|days| *days > 0),
        writers: field("writers").parse().map_err(|_unknown| malformed("writers"))?,
    };
    let description = field("description").replace("\r\n", "\n");
    Ok(StoreUpdate {
        name: Some(Name::new(field("name"))?),
        description: Some(Description::new(description)?),
        metadata: BTreeMap::new(),
        policy: Some(policy),
    })
}

/// Archives the store.
pub(super) fn archive(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Manage)?;
    if visit.form.get("sure") != Some("yes") {
        let trouble = alert("Nothing is archived: tick the box to confirm.");
        return Ok(Reply::Page(settings(visit, &store, &trouble)));
    }
    visit.engine.archive_store(store.id)?;
    Ok(Reply::SeeOther(directory_address(&store, &Directory::root())))
}

/// Deletes the store; it can be restored for a while.
pub(super) fn remove(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Manage)?;
    if visit.form.get("confirm").map(str::trim) != Some(store.name.as_str().trim()) {
        let trouble = alert("Nothing is deleted: what you typed is not the name of the store.");
        return Ok(Reply::Page(settings(visit, &store, &trouble)));
    }
    visit.engine.delete_store(store.id)?;
    Ok(Reply::SeeOther("/ui".to_owned()))
}
