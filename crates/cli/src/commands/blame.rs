//! `quipu blame`: who wrote each line of a memory.

use quipu_core::engine::{BlamedLine, Precision};
use quipu_core::model::View;
use quipu_service::wire::ListBody;
use serde::Serialize;

use super::memories::find;
use crate::args::BlameArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{answer, local, note};

/// One line, as JSON.
#[derive(Serialize)]
struct LineBody {
    line: usize,
    text: String,
    version: String,
    actor: String,
    created_at: String,
    /// Whether the line is known to come with that version.
    exact: bool,
}

/// How many characters of an author's name are shown.
const AUTHOR_CHARS: usize = 20;

pub(super) fn run(context: &Context, arguments: &BlameArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?;
    let store = data.store()?;
    let memory = find(&data, &store, &arguments.memory, View::Basic)?;
    let lines = data.engine.blame(store.id, memory.id)?;
    let bodies = lines.iter().enumerate().map(|(index, line)| LineBody {
        line: index + 1,
        text: line.text.clone(),
        version: line.version.to_string(),
        actor: line.actor.to_string(),
        created_at: line.created_at.to_string(),
        exact: line.precision == Precision::Exact,
    });
    let authors = data.authors();
    if lines.iter().any(|line| line.precision == Precision::AtMost) {
        note("lines marked with `^` may be older: earlier versions were removed or redacted");
    }
    answer(context.form, &ListBody::complete(bodies.collect()), |out| {
        for line in &lines {
            let BlamedLine { version, created_at, text, .. } = line;
            let mark = if line.precision == Precision::Exact { ' ' } else { '^' };
            let author: String = authors.short(&line.actor).chars().take(AUTHOR_CHARS).collect();
            let at = local(*created_at);
            writeln!(out, "{mark}{version}  {at}  {author:<AUTHOR_CHARS$}  {text}")?;
        }
        Ok(())
    })
}
