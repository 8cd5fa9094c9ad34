//! `quipu migrate`: the tables of a database.

use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::print::answer;
use crate::storage::Schema;

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let place = context.place();
    let Schema { before, after } = place.migrate(context)?;
    let body = json!({"place": place.to_string(), "before": before, "after": after});
    answer(context.form, &body, |out| match before {
        Some(before) if before == after => writeln!(out, "{place} has schema {after}"),
        Some(before) => writeln!(out, "{place}: upgraded from schema {before} to {after}"),
        None => writeln!(out, "{place}: created schema {after}"),
    })
}
