//! `quipu blame`: who wrote each line of a memory.

use quipu_core::engine::{BlamedLine, Precision};
use quipu_core::model::View;
use quipu_service::wire::{BlamedLineBody, ListBody};

use super::memories::find;
use crate::args::BlameArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{answer, local, note};

/// How many characters of an author's name are shown.
const AUTHOR_CHARS: usize = 20;

pub(super) fn run(context: &Context, arguments: &BlameArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?;
    let store = data.store()?;
    let memory = find(&data, &store, &arguments.memory, View::Basic)?;
    let lines = data.engine.blame(store.id, memory.id)?;
    let bodies = (1..).zip(&lines).map(|(number, line)| BlamedLineBody::new(number, line));
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
