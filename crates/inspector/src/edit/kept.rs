//! What was typed into a form whose store takes no more changes.

use maud::html;
use quipu_service::caller::Need;

use crate::layout::{Room, page, sentence};
use crate::reply::{Reply, Trouble};
use crate::visit::Visit;

/// Shows what was typed into a field again, to be copied, if the store of the form was archived or deleted
/// since it was opened. The page about the trouble alone would be the end of the text: no browser stores
/// these pages, so the Back button does not bring it back.
pub(crate) fn unsaved(visit: &Visit<'_>, trouble: Trouble, field: &str) -> Result<Reply, Trouble> {
    let message = match trouble {
        Trouble::Invalid(message) => message,
        // Nobody had a form of a store that never was.
        _ if visit.has_lost_store(visit.parameter("store"), Need::Write)? => {
            "The store was deleted while you were writing; its administrator can restore it."
                .to_owned()
        }
        trouble @ (Trouble::Engine(_) | Trouble::Denied(_) | Trouble::NotFound(_)) => {
            return Err(trouble);
        }
    };
    let typed = visit.form.text(field).unwrap_or_default();
    let content = html! {
        h1 { "Not saved" }
        p.message #trouble role="alert" { (sentence(&message)) }
        @if !typed.is_empty() {
            label { "What you typed, to be copied from here"
                textarea #typed readonly rows="24" spellcheck="false" data-copy { "\n" (typed) }
            }
        }
        p { a href="/ui" { "All stores" } }
    };
    Ok(Reply::Conflict(page(visit, Room::Stores, "Not saved", &content)))
}
