//! `quipu suggest`: the memories relevant to a text, to be put in front of a model.

use std::fs::File;
use std::io::Read as _;

use quipu_core::backend::Archived;
use quipu_knowledge::{BUDGET_TOKENS_MAX, LIMIT_MAX, SuggestRequest, TEXT_SIZE_BYTES_MAX};
use quipu_service::suggestions::markdown;
use quipu_service::wire::SuggestionsBody;

use super::knowledge::{all_stores, named_stores};
use crate::args::SuggestArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{answer, note};

pub(super) fn run(context: &Context, arguments: &SuggestArguments) -> Result<(), Failure> {
    for (name, value, max) in
        [("--budget", arguments.budget, BUDGET_TOKENS_MAX), ("--limit", arguments.limit, LIMIT_MAX)]
    {
        if !(1..=max).contains(&value) {
            return Err(Failure::usage(format!("`{name}` is a number from 1 to {max}")));
        }
    }
    let text = text(arguments)?;
    let data = context.open_at(&arguments.past)?.with_vectors(context);
    let stores = if arguments.all { all_stores(&data)? } else { named_stores(&data)? };
    let request = SuggestRequest {
        stores,
        text,
        budget_tokens: arguments.budget,
        limit: arguments.limit,
        exclude: arguments.exclude.clone(),
        asked_by: None,
    };
    let suggestions = data.engine.suggest(&request)?;
    let mut names =
        if request.stores.len() > 1 { data.stores(Archived::Show)? } else { Vec::new() };
    names.retain(|store| request.stores.contains(&store.id));
    let authors = data.authors();
    let text = markdown(&suggestions, &names, &|actor| authors.short(actor));
    if suggestions.is_text_cut {
        note(&format!("only the first {} KB of the text were read", TEXT_SIZE_BYTES_MAX / 1024));
    }
    if suggestions.is_behind {
        note("recent changes may be missing");
    }
    if suggestions.items.is_empty() {
        note("no relevant memories");
    }
    for left in &suggestions.left_out {
        note(&format!("left out: {}, {}", left.path, left.freshness));
    }
    let body = SuggestionsBody::new(&suggestions, text.clone());
    answer(context.form, &body, |out| out.write_all(text.as_bytes()))
}

/// Returns the text to suggest memories for. Bytes that are no text, as in a program, are replaced.
fn text(arguments: &SuggestArguments) -> Result<String, Failure> {
    // One byte more shows that the text is longer.
    let limit = u64::try_from(TEXT_SIZE_BYTES_MAX + 1).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    match (&arguments.file, arguments.words.as_slice()) {
        (Some(file), _) => {
            let failed = |error| Failure::usage(format!("cannot read {}: {error}", file.display()));
            File::open(file)
                .map_err(failed)?
                .take(limit)
                .read_to_end(&mut bytes)
                .map_err(failed)?;
        }
        (None, [dash]) if dash == "-" => {
            std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
        }
        (None, words) => return Ok(words.join(" ")),
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
