//! Going back to a moment: the plan, then the confirmation.

use maud::{Markup, html};
use quipu_core::ErrorKind;
use quipu_core::engine::{Completeness, Goal, Plan, Restoration};
use quipu_service::caller::Need;

use crate::form::Form;
use crate::layout::{Room, page};
use crate::plan::{self, Attempt};
use crate::reply::{Reply, Trouble};
use crate::sessions::tree_path;
use crate::text;
use crate::visit::Visit;

use super::Visited;

/// What is to be restored.
struct Asked {
    visited: Visited,
    restoration: Restoration,
}

impl Asked {
    fn new(visit: &Visit<'_>, form: &Form) -> Result<Self, Trouble> {
        let visited = Visited::open(visit, Need::Write, form.get("at"))?.ok_or_else(|| {
            Trouble::Invalid("say which moment to go back to, such as `2h ago`".to_owned())
        })?;
        let completeness = match form.get("incomplete") {
            Some(_) => Completeness::Partial,
            None => Completeness::Required,
        };
        let path = form.get("path").map(tree_path).transpose()?.flatten();
        let restoration = Restoration { at: visited.time, path, completeness };
        Ok(Self { visited, restoration })
    }

    fn goal(&self) -> Goal {
        Goal::Restore(self.restoration.clone())
    }

    fn what(&self) -> String {
        let Self { visited, restoration } = self;
        match &restoration.path {
            Some(path) => format!("{path} in {}", visited.store.name),
            None => visited.store.name.to_string(),
        }
    }
}

/// Shows what a restore would do.
pub(super) fn planned(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let asked = Asked::new(visit, &visit.query)?;
    let is_partial = asked.restoration.completeness == Completeness::Partial;
    if asked.visited.then.complete_from().is_some() && !is_partial {
        return Ok(Reply::Page(incomplete_page(visit, &asked)));
    }
    let plan = visit.engine.plan(asked.visited.store.id, &asked.goal())?;
    Ok(Reply::Page(plan_page(visit, &asked, &plan, &html! {})))
}

/// Goes back, if the plan is still the one that the visitor has seen.
pub(super) fn restore(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let asked = Asked::new(visit, &visit.form)?;
    let store = &asked.visited.store;
    let reason = format!("restore as of {}", asked.visited.then.past.at);
    match plan::carry_out(visit, store, &asked.goal(), &reason) {
        Ok(Attempt::Done(done)) => Ok(Reply::SeeOther(plan::result_address(visit, store, &done))),
        Ok(Attempt::Changed(plan)) => {
            Ok(Reply::Conflict(plan_page(visit, &asked, &plan, &plan::changed_message())))
        }
        // Pruning may have moved the horizon since the plan was shown.
        Err(Trouble::Engine(error))
            if *error.kind() == ErrorKind::InvalidInput
                && asked.visited.then.complete_from().is_some() =>
        {
            Ok(Reply::Conflict(incomplete_page(visit, &asked)))
        }
        Err(trouble) => Err(trouble),
    }
}

fn plan_page(visit: &Visit<'_>, asked: &Asked, plan: &Plan, message: &Markup) -> Markup {
    let Asked { visited, restoration } = asked;
    let path = restoration.path.as_ref().map(ToString::to_string);
    let content = html! {
        h1 { "Restore " (asked.what()) }
        (message)
        p {
            "This is what going back to " strong { (text::exact(visited.then.past.at)) } " would do. Later changes \
             by others are undone as well. " a href=(visited.address("", &[])) { "The store then" }
        }
        (plan::listed(&visited.store, plan))
        @if plan.changed_count() > 0 {
            form.narrow #confirm method="post" action={ "/ui/stores/" (visited.store.id) "/past/restore" } {
                input type="hidden" name="at" value=(visited.at);
                @if let Some(path) = path { input type="hidden" name="path" value=(path); }
                @if restoration.completeness == Completeness::Partial {
                    input type="hidden" name="incomplete" value="yes";
                }
                (plan::confirmation(visit, plan, "Restore"))
            }
        } @else {
            p { "There is nothing to restore." }
        }
    };
    page(visit, Room::Stores, &format!("Restore {}", asked.what()), &content)
}

/// Says that the state is not fully known, and offers to restore what is.
fn incomplete_page(visit: &Visit<'_>, asked: &Asked) -> Markup {
    let Asked { visited, restoration } = asked;
    let path = restoration.path.as_ref().map(ToString::to_string).unwrap_or_default();
    let known = visited.address("/restore", &[("path", &path), ("incomplete", "yes")]);
    let content = html! {
        h1 { "Restore " (asked.what()) }
        p.message #horizon {
            "Old versions were removed by retention, so what was there is not fully known. The history is "
            "complete from "
            @if let Some(from) = visited.then.complete_from() { (text::exact(from)) } " on."
        }
        p { a.button href=(known) { "Plan to restore what is known, and leave the rest as it is" } }
        p { a href=(visited.address("", &[])) { "Back to the store then" } }
    };
    page(visit, Room::Stores, &format!("Restore {}", asked.what()), &content)
}
