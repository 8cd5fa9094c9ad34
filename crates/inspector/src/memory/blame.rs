//! Who wrote each line.

use maud::{Markup, html};
use quipu_core::engine::{BlamedLine, Precision};
use quipu_core::model::{Memory, Store};

use crate::form::address;
use crate::reply::Trouble;
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::memory_address;

/// How many lines are on a page.
const LINES_MAX: usize = 1_000;

/// Shows the lines of a memory, those of one version in a row together.
pub(super) fn table(visit: &Visit<'_>, store: &Store, memory: &Memory) -> Result<Markup, Trouble> {
    let lines = visit.engine.blame(store.id, memory.id)?;
    let own = memory_address(store, memory.id);
    let pages_count = lines.len().div_ceil(LINES_MAX).max(1);
    let wanted = visit.query.get("page").and_then(|page| page.parse::<usize>().ok());
    let number = wanted.unwrap_or(1).clamp(1, pages_count);
    let first = (number - 1) * LINES_MAX;
    let shown = lines.get(first..lines.len().min(first + LINES_MAX)).unwrap_or_default();
    let mut line = first + 1;
    let mut rows = Vec::new();
    for group in shown.chunk_by(|one, next| one.version == next.version) {
        rows.push(row(visit, &own, group, line));
        line += group.len();
    }
    let is_vague = shown.iter().any(|line| line.precision == Precision::AtMost);
    let to = |page: usize| address(&own, &[("view", "blame"), ("page", &page.to_string())]);
    Ok(html! {
        @if lines.is_empty() { p { "The text is empty." } }
        @if is_vague {
            p { small { "Lines marked “or earlier” may be older: earlier versions were pruned or redacted." } }
        }
        div.wide role="group" tabindex="0" aria-label="Lines with their authors" {
            table.blame {
                thead { tr { th scope="col" { "Changed" } th scope="col" { "Lines" } th scope="col" { "Text" } } }
                tbody { @for row in &rows { (row) } }
            }
        }
        @if pages_count > 1 {
            nav.pages aria-label="Pages" {
                @if number > 1 { a href=(to(number - 1)) rel="prev" { "Previous lines" } " " }
                "Page " (number) " of " (pages_count) " "
                @if number < pages_count { a href=(to(number + 1)) rel="next" { "Next lines" } }
            }
        }
    })
}

fn row(visit: &Visit<'_>, own: &str, group: &[BlamedLine], first: usize) -> Markup {
    let Some(line) = group.first() else { return html! {} };
    let version = line.version.to_string();
    let last = first + group.len() - 1;
    html! {
        tr {
            td {
                a href=(address(&format!("{own}/history"), &[("b", &version)])) title=(version) {
                    (text::time(line.created_at, visit.engine.now()))
                }
                @if line.precision == Precision::AtMost { " or earlier" }
                br; (visit.authors().short(&line.actor))
            }
            td.number { (first) @if last > first { "–" (last) } }
            td { pre { "\n" @for line in group { (visible::short(&line.text)) "\n" } } }
        }
    }
}
