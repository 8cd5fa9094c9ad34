//! Redaction: what to forget, a dry run, the confirmation, and the receipts.
//!
//! What is typed into the form may be the secret that is to be forgotten. So it never becomes part of an
//! address: the dry run is the answer to a POST, and the confirmation carries the same fields again.

mod plan;
mod receipts;
mod request;

use maud::{Markup, html};
use quipu_core::ErrorKind;
use quipu_core::backend::Archived;
use quipu_core::engine::Heads;
use quipu_core::model::Store;
use quipu_service::caller::Need;

use crate::form::Form;
use crate::layout::{Room, page};
use crate::reply::{Reply, Trouble};
use crate::visit::Visit;
use crate::{Page, asks, changes, choice, shows, text};

use request::{ENDS, FIELDS, LineEnds, Planned, Request};

/// The pages of this module.
pub(crate) static PAGES: [Page; 6] = [
    shows("/ui/redact", ask),
    asks("/ui/redact", dry_run),
    changes("/ui/redact/confirm", redact),
    shows("/ui/receipts", receipts::list),
    shows("/ui/receipts/{receipt}", receipts::show),
    shows("/ui/receipts/{receipt}/receipt.json", receipts::download),
];

/// Fails unless the visitor may redact anything at all.
fn require_manager(visit: &Visit<'_>) -> Result<(), Trouble> {
    if visit.caller.may(Need::Manage) {
        return Ok(());
    }
    Err(visit.caller.denied(Need::Manage).into())
}

/// Shows the form. Ids in the address fill it in; a text to look for never comes from there.
fn ask(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_manager(visit)?;
    Ok(Reply::Page(form_page(visit, &visit.query, &html! {})?))
}

fn form_page(visit: &Visit<'_>, values: &Form, message: &Markup) -> Result<Markup, Trouble> {
    let content = html! {
        h1 { "Redact" }
        (message)
        p { "Find a text, or what somebody wrote, in all versions of all memories, and erase it from every \
             file. First you see what would happen."
            @if visit.is_admin() { " " a href="/ui/receipts" { "Receipts" } " of earlier redactions." } }
        (form(visit, values)?)
    };
    Ok(page(visit, Room::Redact, "Redact", &content))
}

/// Returns what is wrong with a request if the visitor can put it right in the form, which keeps what was
/// typed: the Back button would lose it, since no browser stores these pages.
fn correctable(visit: &Visit<'_>, trouble: Trouble) -> Result<Markup, Trouble> {
    let message = match trouble {
        Trouble::Invalid(message) => message,
        Trouble::Engine(error) if *error.kind() == ErrorKind::InvalidInput => match error.hint() {
            Some(hint) => format!("{}; {hint}", error.message()),
            None => error.message().to_owned(),
        },
        trouble @ (Trouble::Engine(_) | Trouble::Denied(_) | Trouble::NotFound(_)) => {
            for id in visit.form.all("store") {
                if visit.has_lost_store(id, Need::Manage)? {
                    return Ok(not_redacted(
                        "a chosen store was deleted since you opened the form",
                    ));
                }
            }
            return Err(trouble);
        }
    };
    Ok(not_redacted(&message))
}

fn not_redacted(why: &str) -> Markup {
    html! { p.message role="alert" { "Nothing was redacted: " (why) "." } }
}

/// Returns the form with the values of another one.
fn form(visit: &Visit<'_>, values: &Form) -> Result<Markup, Trouble> {
    let mut stores = visit.stores(Archived::Show)?;
    stores.retain(|store| visit.caller.may_in(store.id, Need::Manage));
    // What to look for comes from a submitted form only: a link that fills it in would have it in its
    // address.
    let secret = |name: &str| visit.form.get(name).unwrap_or_default();
    let value = |name: &str| values.get(name);
    let field = |name: &str, words: &str, example: &str| {
        html! {
            label { (words)
                input name=(name) value=[value(name)] placeholder=(example) autocomplete="off"
                    spellcheck="false"; }
        }
    };
    Ok(html! {
        form #redact method="post" action="/ui/redact" autocomplete="off" {
            (visit.token_field())
            fieldset {
                legend { "What it holds" }
                // A line break after the start tag is not part of the text, so that one at its start is.
                label { "Exactly this text" textarea.short name="matching" rows="2" spellcheck="false"
                    autocomplete="off" { "\n" (secret("matching")) } }
                label { "Or a regular expression"
                    input name="regex" value=(secret("regex")) placeholder="ghp_[A-Za-z0-9]{36}"
                        autocomplete="off" spellcheck="false"; }
            }
            fieldset {
                legend { "Where and by whom; all that is filled in must hold" }
                (field("path", "At or below this path", "/projects/tea"))
                (field("memory", "Id of a memory", "mem_…"))
                (field("actor", "Id of a session, key, person or service; a key includes its sessions",
                    "sesn_… or user_ada"))
                (field("since", "Since", "7d"))
                (field("until", "Until", "2026-11-15"))
            }
            (store_choice(visit, &stores, values))
            fieldset {
                legend { "Live memories" }
                label.inline {
                    input type="checkbox" name="and_heads" value="yes" checked[value("and_heads").is_some()];
                    "Take it out of live memories too: matches are replaced by [redacted], and memories that \
                     are selected without a text are deleted"
                }
            }
            button.primary { "Show what would be redacted" }
        }
    })
}

fn store_choice(visit: &Visit<'_>, stores: &[Store], values: &Form) -> Markup {
    let chosen: Vec<_> = values.all("store").map(str::to_owned).collect();
    html! {
        fieldset {
            legend { "Stores" }
            @if visit.is_admin() {
                label.inline {
                    input type="checkbox" name="all" value="yes" checked[values.get("all").is_some()];
                    "All stores, and the sessions, labels and receipts of the workspace"
                }
            }
            (choice::boxes(stores, &chosen, values.get(choice::NAMED).unwrap_or_default()))
        }
    }
}

/// Returns the fields of a request, for the forms that go on with it.
fn hidden_fields(form: &Form, ends: Option<LineEnds>) -> Markup {
    html! {
        @if let Some(ends) = ends { input type="hidden" name=(ENDS) value=(ends.as_str()); }
        @for (name, value) in form.pairs().filter(|(name, _)| FIELDS.contains(name)) {
            input type="hidden" name=(name) value=(value);
        }
    }
}

/// Shows what a redaction would do.
fn dry_run(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    match plan_page(visit, &html! {}) {
        Ok(page) => Ok(Reply::Page(page)),
        Err(trouble) => {
            let message = correctable(visit, trouble)?;
            Ok(Reply::Page(form_page(visit, &visit.form, &message)?))
        }
    }
}

fn plan_page(visit: &Visit<'_>, message: &Markup) -> Result<Markup, Trouble> {
    let request = Request::new(visit)?;
    let planned = request.plan(visit)?;
    let plan = &planned.plan;
    let content = html! {
        h1 { "What would be redacted" }
        (message)
        (other_ends(visit, &planned))
        (plan::listed(visit, plan))
        @if plan.hits_count() > 0 && plan.heads == Heads::Refuse && plan.heads_count() > 0 {
            p.message {
                "Live memories hold it. Redact them as well: tick the box for live memories below, and look \
                 again. Or write new versions of them first."
            }
        } @else {
            (confirm_form(visit, &planned))
        }
        details {
            summary { "Change the selection" }
            (form(visit, &visit.form)?)
        }
    };
    Ok(page(visit, Room::Redact, "What would be redacted", &content))
}

/// Says that the text is also found with other line ends, which are another text: a receipt is about one.
fn other_ends(visit: &Visit<'_>, planned: &Planned) -> Markup {
    let (Some(ends), Some((other, count))) = (planned.ends, planned.other) else {
        return html! {};
    };
    html! {
        div.message #other-ends {
            p {
                "This plan is about the text with " (ends.name()) ". It is also there with " (other.name())
                ", in " (text::count(count as u64, "version", "versions"))
                ": redact one, then look for the text again and redact the other."
            }
            form method="post" action="/ui/redact" autocomplete="off" {
                (visit.token_field())
                (hidden_fields(&visit.form, Some(other)))
                button { "Show the plan for " (other.name()) }
            }
        }
    }
}

fn confirm_form(visit: &Visit<'_>, planned: &Planned) -> Markup {
    let plan = &planned.plan;
    let count = plan.versions_count();
    html! {
        h2 { "Confirm" }
        form.narrow #confirm method="post" action="/ui/redact/confirm" autocomplete="off" {
            (visit.token_field())
            (hidden_fields(&visit.form, planned.ends))
            input type="hidden" name="expect" value=(plan.digest);
            input type="hidden" name="count" value=(count);
            label { "Reason, kept in the receipt; it must not hold what is redacted (optional)"
                input name="reason" maxlength="500" autocomplete="off" value=[visit.form.get("reason")]; }
            label { "To confirm, type the number of versions: " (count)
                input name="typed" required inputmode="numeric" pattern="[0-9]*" autocomplete="off"; }
            p { "This cannot be undone. If anything changes before, nothing happens and you see the new plan." }
            button.danger { "Redact for good" }
        }
    }
}

/// Redacts what the visitor has seen, and nothing else.
fn redact(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let request = match Request::new(visit) {
        Ok(request) => request,
        Err(trouble) => {
            let message = correctable(visit, trouble)?;
            return Ok(Reply::Conflict(form_page(visit, &visit.form, &message)?));
        }
    };
    let typed = visit.form.get("typed").map(str::trim);
    if typed.is_none() || typed != visit.form.get("count") {
        let message = html! {
            p.message role="alert" {
                "Nothing was redacted: the number that you typed is not the number of versions."
            }
        };
        return Ok(Reply::Conflict(plan_page(visit, &message)?));
    }
    match request.redact(visit) {
        Ok(receipt) => Ok(Reply::SeeOther(format!("/ui/receipts/{}", receipt.id))),
        Err(Trouble::Engine(error))
            if matches!(
                error.kind(),
                ErrorKind::PreconditionFailed | ErrorKind::HeadNotRedactable
            ) =>
        {
            let message = html! {
                p.message role="alert" {
                    "Nothing was redacted: what the selection finds has changed since you looked. This is the \
                     new plan."
                }
            };
            Ok(Reply::Conflict(plan_page(visit, &message)?))
        }
        Err(trouble) => Ok(Reply::Conflict(plan_page(visit, &correctable(visit, trouble)?)?)),
    }
}
