//! What a revert or a restore would do, to be looked at before it is done.

use maud::{Markup, html};
use quipu_core::ErrorKind;
use quipu_core::engine::{Action, Approval, CarriedOut, Goal, Plan, State, Step};
use quipu_core::model::{ExpectedDigest, Reason, Store};
use quipu_service::wire::step_diff;

use crate::difference::{Arrangement, Room, difference, line_counts};
use crate::form::address;
use crate::reply::Trouble;
use crate::text;
use crate::visit::Visit;

/// How many memories of a plan are listed.
const STEPS_MAX: usize = 200;

/// Returns a plan as a list: what becomes of each memory, why, and what changes in its text.
pub(crate) fn listed(store: &Store, plan: &Plan) -> Markup {
    let mut room = Room::for_many();
    let more_count = plan.steps.len().saturating_sub(STEPS_MAX);
    html! {
        p #counts {
            strong { (text::count(plan.changed_count() as u64, "memory", "memories")) " would change" }
            ", " (text::grouped(plan.left_count() as u64)) " left as they are, "
            (text::grouped(plan.unchanged_count as u64)) " already as they should be."
        }
        ol.steps {
            @for step in plan.steps.iter().take(STEPS_MAX) { (listed_step(store, step, &mut room)) }
        }
        @if more_count > 0 {
            p { (text::count(more_count as u64, "more memory is", "more memories are"))
                " part of the plan and not listed here." }
        }
    }
}

fn listed_step(store: &Store, step: &Step, room: &mut Room) -> Markup {
    let path = step.before.as_ref().map(|before| &before.path);
    let (word, new_path) = match &step.action {
        Action::Delete => ("delete", None),
        Action::Change(State { path, .. }) => ("change", Some(path)),
        Action::Create(State { path, .. }) => ("create", Some(path)),
        Action::Leave => ("leave", path),
    };
    let diff = step_diff(step);
    let shown = path.or(new_path).map_or("a deleted memory", |path| path.as_str());
    html! {
        li {
            p {
                span.badge { (word) } " "
                a href={ "/ui/stores/" (store.id) "/memories/" (step.memory) "/history" } { (shown) }
                @if let (Some(old), Some(new)) = (path, new_path) && old != new { " → " (new) }
                " " small { "(" (step.why) ")" }
                @if !diff.is_empty() { " " (line_counts(&diff)) }
            }
            @if !diff.is_empty() {
                @let name = format!("What would change in {shown}");
                (difference(&diff, &name, Arrangement::Inline, room))
            }
        }
    }
}

/// Returns the fields that carry out exactly the plan that was looked at, and the button.
pub(crate) fn confirmation(visit: &Visit<'_>, plan: &Plan, verb: &str) -> Markup {
    let count = text::count(plan.changed_count() as u64, "memory", "memories");
    html! {
        (visit.token_field())
        input type="hidden" name="expect" value=(plan.digest);
        label { "Reason, kept with every version (optional)"
            input name="reason" maxlength="500" autocomplete="off"; }
        p { "Exactly this plan is carried out. If one of its memories changes before, nothing happens and \
             you see the new plan." }
        button.danger { (verb) " " (count) }
    }
}

/// What came of the attempt to carry out a plan.
pub(crate) enum Attempt {
    /// It is done.
    Done(CarriedOut),
    /// The plan has changed since it was looked at, so nothing is done; this is the new one.
    Changed(Plan),
}

/// Carries out the plan whose digest is in the form, and no other.
pub(crate) fn carry_out(
    visit: &Visit<'_>,
    store: &Store,
    goal: &Goal,
    usual_reason: &str,
) -> Result<Attempt, Trouble> {
    let expect = visit.form.get("expect").unwrap_or_default();
    let expect: ExpectedDigest = expect
        .parse()
        .map_err(|error| Trouble::Invalid(format!("{error}; go back to the plan")))?;
    let reason = visit.form.get("reason").unwrap_or(usual_reason);
    let reason = Reason::new(reason).map_err(|error| Trouble::Invalid(error.to_string()))?;
    let approval = Approval { expect: Some(expect), reason };
    match visit.engine.carry_out(&visit.caller.actor, store.id, goal, &approval) {
        Ok(done) => Ok(Attempt::Done(done)),
        Err(error) if *error.kind() == ErrorKind::PreconditionFailed => {
            Ok(Attempt::Changed(visit.engine.plan(store.id, goal)?))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the address that shows what was done, with the way to take it back.
pub(crate) fn result_address(visit: &Visit<'_>, store: &Store, done: &CarriedOut) -> String {
    let (since, until) = done.span().map_or((String::new(), String::new()), |span| {
        (span.first.to_string(), span.last.to_string())
    });
    let id = store.id.to_string();
    let pairs = [("store", id.as_str()), ("since", &since), ("until", &until), ("done", "yes")];
    address(&format!("/ui/actors/{}", visit.caller.actor), &pairs)
}

/// Says that a plan is another one than the visitor has agreed to.
pub(crate) fn changed_message() -> Markup {
    html! {
        p.message role="alert" {
            "Somebody has changed one of these memories since you looked at the plan. Nothing was done. \
             This is the new plan."
        }
    }
}
