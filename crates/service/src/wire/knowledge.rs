//! The results of search, context, recent activity and links.

use quipu_knowledge::{
    Context, ContextItem, Coverage, Direction, Found, LinkRow, NoteCard, NoteLink, Orphans,
    RecentChange, Related, SearchHit, SearchPage,
};
use quipu_notes::{Observation, Passage, Value as NoteValue};
use serde::Serialize;
use serde_json::{Map, Value};

use super::scores::{ScorePartBody, SimilarBody, score_parts};
use super::{ActorBody, FreshnessBody, VersionBody};

/// A page of search results.
#[derive(Clone, Debug, Serialize)]
pub struct SearchBody {
    /// The hits, the best first.
    pub results: Vec<HitBody>,
    /// How many there are in all.
    pub total: usize,
    /// Whether there may be more than were counted.
    pub total_is_lower_bound: bool,
    /// Whether the next page holds more.
    pub has_more: bool,
    /// Whether recent changes may be missing.
    pub is_behind: bool,
    /// What the order is by: `text`, `vector` or `hybrid`.
    pub search_type: &'static str,
    /// How many of the memories have vectors, if there is a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<CoverageBody>,
    /// Why vectors were not used, although there is a model or they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// How many memories have vectors.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CoverageBody {
    /// How many have vectors.
    pub embedded: usize,
    /// How many there are in the stores that were searched.
    pub memories: usize,
}

impl From<Coverage> for CoverageBody {
    fn from(Coverage { embedded, memories }: Coverage) -> Self {
        Self { embedded, memories }
    }
}

impl From<&SearchPage> for SearchBody {
    fn from(page: &SearchPage) -> Self {
        Self {
            results: page.hits.iter().map(HitBody::from).collect(),
            total: page.total.count,
            total_is_lower_bound: page.total.is_lower_bound,
            has_more: page.has_more,
            is_behind: page.is_behind,
            search_type: page.ranked_by.name(),
            vectors: page.coverage.map(CoverageBody::from),
            notice: page.notice.clone(),
        }
    }
}

/// The names of a memory.
#[derive(Clone, Debug, Serialize)]
pub struct NoteBody {
    /// Its store.
    pub memory_store_id: String,
    /// Its id.
    pub memory_id: String,
    /// The version that was read.
    pub memory_version_id: String,
    /// Its path.
    pub path: String,
    /// Its title.
    pub title: String,
    /// Its type.
    pub note_type: String,
    /// Its permalink.
    pub permalink: String,
    /// When it was created.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

impl From<&NoteCard> for NoteBody {
    fn from(card: &NoteCard) -> Self {
        Self {
            memory_store_id: card.store.to_string(),
            memory_id: card.memory.to_string(),
            memory_version_id: card.version.to_string(),
            path: card.path.to_string(),
            title: card.title.clone(),
            note_type: card.kind.clone(),
            permalink: card.permalink.clone(),
            created_at: card.created_at.to_string(),
            updated_at: card.updated_at.to_string(),
        }
    }
}

/// A hit.
#[derive(Clone, Debug, Serialize)]
pub struct HitBody {
    /// `memory`, `observation` or `relation`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The memory that it is or is in.
    #[serde(flatten)]
    pub note: NoteBody,
    /// Its score; higher is better.
    pub score: f64,
    /// What the score is made of, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Vec<ScorePartBody>>,
    /// The passage that is most similar to the question, if the search was by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similar: Option<SimilarBody>,
    /// Why its note counts less, if it is expired or stale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freshness: Option<FreshnessBody>,
    /// An excerpt that shows the match.
    pub snippet: String,
    /// The byte ranges of the matches in the snippet.
    pub matches: Vec<[usize; 2]>,
    /// The part of the memory that the snippet is from, unless that is all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passage: Option<PassageBody>,
    /// Who made the version that was found.
    pub created_by: ActorBody,
    /// The tags of the memory.
    pub tags: Vec<String>,
    /// The other fields of its frontmatter.
    pub metadata: Map<String, Value>,
    /// The observation, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<ObservationBody>,
    /// The relation, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<LinkBody>,
}

impl From<&SearchHit> for HitBody {
    fn from(hit: &SearchHit) -> Self {
        let (kind, observation, relation) = match &hit.found {
            Found::Memory => ("memory", None, None),
            Found::Observation(it) => ("observation", Some(it.into()), None),
            Found::Relation(it) => ("relation", None, Some(it.into())),
        };
        Self {
            kind,
            note: (&hit.note).into(),
            score: hit.score,
            explanation: hit.explanation.as_ref().map(score_parts),
            similar: hit.similar.map(SimilarBody::from),
            freshness: hit.freshness.as_ref().map(FreshnessBody::from),
            snippet: hit.snippet.text.clone(),
            matches: hit.snippet.matches.iter().map(|range| [range.start, range.end]).collect(),
            passage: hit.passage.as_ref().map(PassageBody::from),
            created_by: (&hit.actor).into(),
            tags: hit.tags.clone(),
            metadata: hit.metadata.iter().map(|(key, it)| (key.clone(), value(it))).collect(),
            observation,
            relation,
        }
    }
}

/// A part of a memory.
#[derive(Clone, Debug, Serialize)]
pub struct PassageBody {
    /// The headings that it is below, from the top.
    pub headings: Vec<String>,
    /// Its first line in the memory, 1-based.
    pub start_line: usize,
    /// Its last line.
    pub end_line: usize,
}

impl From<&Passage> for PassageBody {
    fn from(passage: &Passage) -> Self {
        Self {
            headings: passage.headings.clone(),
            start_line: passage.first_line,
            end_line: passage.last_line,
        }
    }
}

/// Returns a value of the frontmatter as JSON.
pub fn value(value: &NoteValue) -> Value {
    match value {
        NoteValue::Null => Value::Null,
        NoteValue::Text(text) => text.clone().into(),
        NoteValue::List(items) => items.iter().map(self::value).collect(),
        NoteValue::Map(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), self::value(value))).collect()
        }
    }
}

/// An observation.
#[derive(Clone, Debug, Serialize)]
pub struct ObservationBody {
    /// What kind of fact it is.
    pub category: String,
    /// The fact.
    pub text: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The text in the parentheses at its end.
    pub context: Option<String>,
    /// When it holds, as it is written: `@due:2026-07-27`.
    pub times: Vec<String>,
    /// The line on which it begins.
    pub line: usize,
}

impl From<&Observation> for ObservationBody {
    fn from(observation: &Observation) -> Self {
        Self {
            category: observation.category.clone(),
            text: observation.text.clone(),
            tags: observation.tags.clone(),
            context: observation.context.clone(),
            times: observation.written_times().into_iter().map(str::to_owned).collect(),
            line: observation.line,
        }
    }
}

/// A link as it is written.
#[derive(Clone, Debug, Serialize)]
pub struct LinkBody {
    /// What the target is to the memory.
    pub relation_type: String,
    /// The path, permalink or title that it names.
    pub target: String,
    /// The store that it names.
    pub target_store: Option<String>,
    /// The section that it names.
    pub section: Option<String>,
    /// The text in the parentheses at its end.
    pub context: Option<String>,
    /// The line.
    pub line: usize,
}

impl From<&LinkRow> for LinkBody {
    fn from(link: &LinkRow) -> Self {
        Self {
            relation_type: link.kind.clone(),
            target: link.target.name.clone(),
            target_store: link.target.store.clone(),
            section: link.target.section.clone(),
            context: link.context.clone(),
            line: link.line,
        }
    }
}

/// A link between two memories.
#[derive(Clone, Debug, Serialize)]
pub struct NoteLinkBody {
    /// The link.
    #[serde(flatten)]
    pub link: LinkBody,
    /// The memory that contains it.
    pub from: NoteBody,
    /// The memory that it leads to; null if it is broken.
    pub to: Option<NoteBody>,
}

impl From<&NoteLink> for NoteLinkBody {
    fn from(link: &NoteLink) -> Self {
        Self {
            link: (&link.link).into(),
            from: (&link.from).into(),
            to: link.to.as_ref().map(NoteBody::from),
        }
    }
}

/// Memories that no link leads to or from.
#[derive(Clone, Debug, Serialize)]
pub struct OrphansBody {
    /// The first of them.
    pub data: Vec<NoteBody>,
    /// How many there are in all.
    pub total: usize,
}

impl From<&Orphans> for OrphansBody {
    fn from(orphans: &Orphans) -> Self {
        let data = orphans.notes.iter().map(NoteBody::from).collect();
        Self { data, total: orphans.total_count }
    }
}

/// Memories with their neighborhood.
#[derive(Clone, Debug, Serialize)]
pub struct ContextBody {
    /// The memories.
    pub results: Vec<ContextItemBody>,
    /// How many memories the identifier matches.
    pub total: usize,
    /// Whether the next page holds more.
    pub has_more: bool,
}

impl From<&Context> for ContextBody {
    fn from(context: &Context) -> Self {
        Self {
            results: context.items.iter().map(ContextItemBody::from).collect(),
            total: context.total_count,
            has_more: context.has_more,
        }
    }
}

/// A memory with its neighborhood.
#[derive(Clone, Debug, Serialize)]
pub struct ContextItemBody {
    /// The memory.
    pub primary_result: NoteBody,
    /// Its observations.
    pub observations: Vec<ObservationBody>,
    /// The memories linked with it, nearest first.
    pub related_results: Vec<RelatedBody>,
    /// Whether there are more than were requested.
    pub is_cut: bool,
}

impl From<&ContextItem> for ContextItemBody {
    fn from(item: &ContextItem) -> Self {
        Self {
            primary_result: (&item.note).into(),
            observations: item.observations.iter().map(ObservationBody::from).collect(),
            related_results: item.related.iter().map(RelatedBody::from).collect(),
            is_cut: item.is_cut,
        }
    }
}

/// A memory that was reached by a link.
#[derive(Clone, Debug, Serialize)]
pub struct RelatedBody {
    /// The memory; null if the link is broken.
    pub note: Option<NoteBody>,
    /// The memory from which it was reached.
    pub via_memory_id: String,
    /// The link that was followed.
    pub link: LinkBody,
    /// `outgoing` or `incoming`.
    pub direction: &'static str,
    /// How many steps it is away.
    pub depth: usize,
}

impl From<&Related> for RelatedBody {
    fn from(related: &Related) -> Self {
        Self {
            note: related.note.as_ref().map(NoteBody::from),
            via_memory_id: related.via.to_string(),
            link: (&related.link).into(),
            direction: match related.direction {
                Direction::Outgoing => "outgoing",
                Direction::Incoming => "incoming",
            },
            depth: related.depth,
        }
    }
}

/// The last change of a memory.
#[derive(Clone, Debug, Serialize)]
pub struct RecentBody {
    /// The version that it made.
    #[serde(flatten)]
    pub version: VersionBody,
    /// The memory's title.
    pub title: String,
    /// The memory's type; null if it was deleted.
    pub note_type: Option<String>,
    /// How many changes of the memory are in the time span.
    pub changes_count: usize,
}

impl From<&RecentChange> for RecentBody {
    fn from(change: &RecentChange) -> Self {
        Self {
            version: (&change.version).into(),
            title: change.title.clone(),
            note_type: change.kind.clone(),
            changes_count: change.changes_count,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_observation_has_the_times_when_it_holds() {
        let note = quipu_notes::Note::parse("/a.md", "- [task] @due:2026-07-27 buy tea");
        let body = serde_json::to_value(ObservationBody::from(&note.observations[0])).unwrap();
        assert_eq!(
            (&body["times"], &body["text"]),
            (&json!(["@due:2026-07-27"]), &json!("buy tea"))
        );
    }
}
