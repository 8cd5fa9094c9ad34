//! Taking back what somebody did: the plan, then the confirmation.

use maud::{Markup, html};
use quipu_core::engine::{Goal, Plan};
use quipu_core::model::{Actor, Store};
use quipu_service::caller::Need;

use crate::form::Form;
use crate::layout::{Room, page};
use crate::plan::{self, Attempt};
use crate::reply::{Reply, Trouble};
use crate::sessions::{Authors, Wanted, require_known};
use crate::visible;
use crate::visit::Visit;
use crate::{Page, changes, shows};

/// The pages of this module.
pub(crate) static PAGES: [Page; 2] = [shows("/ui/revert", planned), changes("/ui/revert", revert)];

/// Shows what a revert would do.
fn planned(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let (store, wanted) = asked_for(visit, &visit.query)?;
    let plan = visit.engine.plan(store.id, &Goal::Revert(wanted.selection.clone()))?;
    Ok(Reply::Page(plan_page(visit, &store, &wanted, (&plan, &html! {}))))
}

fn revert(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let (store, wanted) = asked_for(visit, &visit.form)?;
    let goal = Goal::Revert(wanted.selection.clone());
    let reason = format!("revert of {}", wanted.actor);
    match plan::carry_out(visit, &store, &goal, &reason)? {
        Attempt::Done(done) => Ok(Reply::SeeOther(plan::result_address(visit, &store, &done))),
        Attempt::Changed(plan) => {
            let message = plan::changed_message();
            Ok(Reply::Conflict(plan_page(visit, &store, &wanted, (&plan, &message))))
        }
    }
}

/// Reads whose changes in which store are meant.
fn asked_for(visit: &Visit<'_>, form: &Form) -> Result<(Store, Wanted), Trouble> {
    let store = visit.store_with_id(form.get("store").unwrap_or_default(), Need::Write)?;
    let actor = form.get("actor").unwrap_or_default();
    let actor: Actor = actor.parse().map_err(|error| {
        Trouble::Invalid(format!("{error}; choose one on the page of sessions"))
    })?;
    let wanted = Wanted::new(visit, actor, form)?;
    require_known(visit, std::slice::from_ref(&store), &wanted)?;
    Ok((store, wanted))
}

fn plan_page(
    visit: &Visit<'_>,
    store: &Store,
    wanted: &Wanted,
    (plan, message): (&Plan, &Markup),
) -> Markup {
    let authors = Authors::new(visit);
    let who = authors.name(&wanted.actor);
    let title = format!("Revert {who} in {}", store.name);
    let content = html! {
        h1 { (visible::short(&title)) }
        (message)
        p {
            "This is what taking back the changes of " (authors.link(&wanted.actor)) " in "
            a href={ "/ui/stores/" (store.id) } { (visible::short(store.name.as_str())) } " would do. Changes that others made \
             since stay."
        }
        (conditions(store, wanted))
        (plan::listed(store, plan))
        @if plan.changed_count() > 0 {
            form.narrow #confirm method="post" action="/ui/revert" {
                @for (name, value) in wanted.pairs() { input type="hidden" name=(name) value=(value); }
                input type="hidden" name="store" value=(store.id);
                (plan::confirmation(visit, plan, "Revert"))
            }
        } @else {
            p { "There is nothing to take back." }
        }
    };
    page(visit, Room::Sessions, &title, &content)
}

/// Returns the form that selects among the changes of an author.
fn conditions(store: &Store, wanted: &Wanted) -> Markup {
    let pairs = wanted.pairs();
    let value = |name: &str| pairs.iter().find(|(it, _)| *it == name).map(|(_, value)| value);
    html! {
        form.row action="/ui/revert" {
            input type="hidden" name="actor" value=(wanted.actor);
            input type="hidden" name="store" value=(store.id);
            label { "Since" input name="since" value=[value("since")] placeholder="2h"; }
            label { "Until" input name="until" value=[value("until")] placeholder="2026-11-15"; }
            label { "Path" input name="path" value=[value("path")] placeholder="/projects"; }
            button { "Plan again" }
        }
    }
}
