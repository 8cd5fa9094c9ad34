//! Hits as they are shown: with an excerpt of the text, and what is around it.

use std::ops::Range;

use quipu_core::Error;
use quipu_core::model::{Timestamp, View};
use quipu_notes::{LinkTarget, Note, Passage, Phrase, snippet};

use super::explanation::SimilarScore;
use super::freshness::Freshness;
use super::matching::{FoundBy, Match};
use super::{Found, SearchHit, SearchTarget};
use crate::card::LinkRow;
use crate::lookup::Lookup;
use crate::names::Cards;

/// Returns a hit for display; `None` if its text was redacted since the index was read.
pub(super) fn hit(
    lookup: &Lookup<'_>,
    phrases: &[&Phrase],
    cards: &mut Cards<'_>,
    Match { target, hit, found_by, explanation, similar, .. }: Match,
    now: Timestamp,
) -> Result<Option<SearchHit>, Error> {
    let card = lookup.note(hit.store, hit.memory)?.ok_or_else(|| lookup.damaged())?;
    let Some(version) = lookup.reader.version(hit.store, card.version, View::Full)? else {
        return Ok(None);
    };
    // The title, the path and the tags were redacted with the text.
    let Some(content) = &version.content else { return Ok(None) };
    let text = content.as_str();
    let note = match target {
        SearchTarget::Memories => Note::parse_header(text),
        SearchTarget::Observations | SearchTarget::Relations => {
            Note::parse(card.path.as_str(), text)
        }
    };
    // A memory that has no word of the query is shown by the passage that was found.
    let near =
        similar.filter(|_| found_by == FoundBy::Meaning).and_then(|similar| lines(text, &similar));
    let shown = near.clone().unwrap_or_else(|| note.body.clone());
    let part = |text: &str| snippet(text, note.language, phrases);
    let (found, snippet) = match target {
        SearchTarget::Memories => {
            (Found::Memory, part(text.get(shown.clone()).unwrap_or_default()))
        }
        SearchTarget::Observations => {
            let Some(observation) = note.observations.get(hit.position) else { return Ok(None) };
            let mut texts = observation.written_times();
            texts.push(&observation.text);
            (Found::Observation(observation.clone()), part(&texts.join(" ")))
        }
        SearchTarget::Relations => {
            let mut links = lookup.links_from(hit.store, hit.memory, usize::MAX)?.into_iter();
            let Some(link) = links.nth(hit.position) else { return Ok(None) };
            let shown = part(&link_text(&link));
            (Found::Relation(link), shown)
        }
    };
    let source = snippet.source.as_ref();
    let source = source.map(|it| shown.start + it.start..shown.start + it.end).or(near);
    let passage = match (&found, source) {
        (Found::Memory, Some(source)) => Passage::around(text, note.body.clone(), &source),
        (Found::Memory | Found::Observation(_) | Found::Relation(_), _) => None,
    };
    Ok(Some(SearchHit {
        note: cards.card(card)?,
        found,
        score: hit.score,
        explanation,
        similar,
        freshness: Freshness::of(&note.metadata, now),
        snippet,
        passage,
        actor: version.actor,
        tags: [note.tags, note.inline_tags].concat(),
        metadata: note.metadata,
    }))
}

/// Returns the range of the passage that is most similar to a question.
fn lines(text: &str, similar: &SimilarScore) -> Option<Range<usize>> {
    let index = |line: u32| usize::try_from(line).unwrap_or(usize::MAX);
    let starts = || std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let start = starts().nth(index(similar.first_line).saturating_sub(1))?;
    let end = starts().nth(index(similar.last_line)).unwrap_or(text.len());
    (start < end).then_some(start..end)
}

/// Formats a link as it would be written.
fn link_text(link: &LinkRow) -> String {
    let LinkTarget { name, .. } = &link.target;
    let context = link.context.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
    format!("{} [[{name}]]{context}", link.kind)
}
