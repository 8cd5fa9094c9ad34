//! Fusion: words and meaning in one order.
//!
//! The scores are added, and not the ranks. A rank says nothing of how much better the first is than the
//! second: reciprocal rank fusion lets any memory that is third in both lists win over the one that has
//! every word of the question, and was clearly worse than words alone. But scores must be comparable to be
//! added. What a score of words is worth is seen in the best one of the same question. What a cosine is
//! worth depends on the encoder and on the question, and is seen in all the others: of one encoder
//! unrelated texts have a cosine of 0.1, of another 0.7. So cosines count by how many standard deviations
//! they are above the mean of all memories that were searched, which the scan yields for free.
//!
//! The order is made of the best hits by words and the best by meaning, as many of each as can be paged
//! through, whatever page is asked for. So pages fit together.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use quipu_core::Error;
use quipu_core::model::StoreId;
use quipu_notes::query::{Expr, Query, Term};
use quipu_vectors::quantized::Question;

use super::clause::Clause;
use super::explanation::{Explanation, ScoreReason, SimilarScore};
use super::neighbors::Document;
use super::plan::{Plan, Selection, Word};
use super::rank::{Hit, Ranking};
use super::scoring::Scoring;
use super::{HITS_MAX, Match, Matches, Search, SearchMode, SearchRequest, SearchTarget};
use crate::Knowledge;
use crate::index::{IndexError, Space, StoreView};
use crate::vectors::{Available, Matrix, Meaning, Similarity, no_model};

/// How many of the best hits by words, and by meaning, are considered. One more than can be paged through
/// shows whether there is a next page.
const CANDIDATES_MAX: usize = HITS_MAX + 1;

/// How many unrelated memories are assumed in addition to those that were searched, and which cosines they
/// have. A few memories say little about what is usual: of a single one, the cosine is the mean.
const PRIOR_COUNT: f64 = 5.0;
const PRIOR_MEAN: f64 = 0.1;
const PRIOR_DEVIATION: f64 = 0.1;

/// What the order of a page is by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankedBy {
    /// By words.
    #[default]
    Text,
    /// By meaning.
    Vector,
    /// By both.
    Hybrid,
}

impl RankedBy {
    /// Returns the name, as in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Vector => "vector",
            Self::Hybrid => "hybrid",
        }
    }
}

impl SearchMode {
    /// The names that requests use, without the other names of one of them.
    pub const NAMES: &str = "text, title, permalink, vector, hybrid";

    /// Returns what a name means; `None` if it is unknown. `semantic` is another name of `vector`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "title" => Some(Self::Title),
            "permalink" => Some(Self::Permalink),
            "vector" | "semantic" => Some(Self::Vector),
            "hybrid" => Some(Self::Hybrid),
            _ => None,
        }
    }
}

/// How many memories of the searched stores have vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// How many have vectors.
    pub embedded: usize,
    /// How many there are.
    pub memories: usize,
}

impl Coverage {
    /// Returns whether all memories have vectors.
    pub fn is_complete(self) -> bool {
        self.embedded >= self.memories
    }
}

/// How a request is to be answered.
pub(super) enum Asked {
    /// By words, and why not by meaning.
    Text { notice: Option<String> },
    /// By meaning, or by both.
    Meaning { meaning: Arc<Meaning>, question: Arc<Question>, ranked_by: RankedBy },
}

impl Asked {
    /// Decides how to answer, and obtains the vector of the question, which may take a moment.
    pub(super) fn new(knowledge: &Knowledge, request: &SearchRequest) -> Result<Self, Error> {
        let text = |notice: Option<&str>| Ok(Self::Text { notice: notice.map(str::to_owned) });
        let ranked_by = match request.mode {
            SearchMode::Text | SearchMode::Title | SearchMode::Permalink => return text(None),
            SearchMode::Best | SearchMode::Hybrid => RankedBy::Hybrid,
            SearchMode::Vector => RankedBy::Vector,
        };
        let is_explicit = request.mode != SearchMode::Best;
        let Some(meaning) = &knowledge.meaning else {
            return match request.mode {
                SearchMode::Vector => Err(no_model()),
                SearchMode::Hybrid => text(Some("there is no model, so this is by words alone")),
                SearchMode::Best | SearchMode::Text | SearchMode::Title | SearchMode::Permalink => {
                    text(None)
                }
            };
        };
        if knowledge.indexer.is_of_past() {
            return text(Some("the past is searched by words alone"));
        }
        if request.targets() != [SearchTarget::Memories] {
            let notice = "observations and relations are searched by words alone";
            return text(is_explicit.then_some(notice));
        }
        let Some(question) = question(&request.text) else { return text(None) };
        knowledge.engine.require_blocking()?;
        match meaning.question(&question) {
            Ok(question) => Ok(Self::Meaning { meaning: Arc::clone(meaning), question, ranked_by }),
            Err(reason) => {
                let notice =
                    format!("the model cannot be used now ({reason}), so this is by words alone");
                text(Some(&notice))
            }
        }
    }
}

/// Returns the words of a query as a question; `None` if it has none.
fn question(text: &str) -> Option<String> {
    let query = Query::parse(text);
    if query.expr.as_ref().is_some_and(is_plain) {
        return Some(text.trim().to_owned());
    }
    let words: Vec<_> = query.terms().into_iter().map(Term::text).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns whether a query consists of words alone.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Term(Term::Word(_)) => true,
        Expr::Juxtaposed(parts) => parts.iter().all(is_plain),
        Expr::Term(Term::Prefix(_) | Term::Phrase(_))
        | Expr::Filter(_)
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_) => false,
    }
}

/// Returns whether memories without any of the words may be found. Quotes, `AND`, `OR`, `NOT` and prefixes
/// say which memories are meant, so then vectors only reorder them.
fn is_open(expr: &Expr) -> bool {
    match expr {
        Expr::Juxtaposed(parts) => parts.iter().all(is_open),
        Expr::Filter(_) => true,
        Expr::Term(_) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) => is_plain(expr),
    }
}

/// Matches, and how they were ranked.
pub(super) struct Fused {
    pub(super) matches: Matches,
    pub(super) ranked_by: RankedBy,
    pub(super) coverage: Option<Coverage>,
    pub(super) notice: Option<String>,
}

impl Fused {
    /// Returns matches by text, for which nothing else was asked.
    pub(super) fn by_text(matches: Matches) -> Self {
        Self { matches, ranked_by: RankedBy::Text, coverage: None, notice: None }
    }
}

/// One search that may be by meaning.
pub(super) struct Fusion<'f, 's> {
    pub(super) search: &'f Search<'s>,
    pub(super) knowledge: &'f Knowledge,
}

impl Fusion<'_, '_> {
    /// Returns the best `limit` matches.
    pub(super) fn matches(&self, asked: &Asked, limit: usize) -> Result<Fused, IndexError> {
        let by_text = |notice: Option<String>, coverage| -> Result<Fused, IndexError> {
            let matches = self.search.by_words(limit)?;
            Ok(Fused { matches, ranked_by: RankedBy::Text, coverage, notice })
        };
        let (meaning, question, ranked_by) = match asked {
            Asked::Text { notice } => return by_text(notice.clone(), None),
            Asked::Meaning { meaning, question, ranked_by } => (meaning, question, *ranked_by),
        };
        let Search { request, languages, scoring, .. } = *self.search;
        let plan = Plan::new(request, Space::Memories, languages, scoring);
        let views = self.search.views();
        let ranking = self.search.ranking(&views, &plan)?;
        let of = (self.knowledge, scoring);
        let similar = Similar::compared(of, &views, &ranking, (meaning, question))?;
        let coverage = Some(similar.coverage);
        if similar.coverage.embedded == 0 {
            let notice = format!("{}, so this is by words alone", similar.unusable);
            return by_text(Some(notice), coverage);
        }
        let matches = match ranked_by {
            RankedBy::Vector => similar.by_meaning(&ranking, &plan, request)?,
            RankedBy::Text | RankedBy::Hybrid => {
                let words = self.search.by_words(CANDIDATES_MAX)?;
                similar.fused((&ranking, &plan), words, request)?
            }
        };
        Ok(Fused { matches, ranked_by, coverage, notice: None })
    }
}

/// How similar the memories of the searched stores are to a question.
pub(crate) struct Similar {
    /// That of each document of each segment; `None` without vectors.
    segments: Vec<Vec<Option<Similarity>>>,
    pub(crate) coverage: Coverage,
    mean: f64,
    deviation: f64,
    scoring: Scoring,
    /// Why there are no vectors, if there are none.
    unusable: &'static str,
}

/// A document, and what its meaning is worth.
pub(crate) struct Near {
    pub(crate) document: Document,
    pub(crate) similarity: Similarity,
}

impl Similar {
    fn new(ranking: &Ranking<'_, '_>, scoring: Scoring) -> Self {
        let segments = ranking.segments.iter().map(|(_, segment)| segment.segment());
        let segments = segments.map(|segment| vec![None; segment.count(Space::Memories)]);
        Self {
            segments: segments.collect(),
            coverage: Coverage { embedded: 0, memories: 0 },
            mean: 0.0,
            deviation: 1.0,
            scoring,
            unusable: "the memories have no vectors yet",
        }
    }

    /// Compares a question with the vectors of all memories of the stores.
    pub(crate) fn compared(
        (knowledge, scoring): (&Knowledge, Scoring),
        views: &[&StoreView<'_>],
        ranking: &Ranking<'_, '_>,
        (meaning, question): (&Meaning, &Question),
    ) -> Result<Self, IndexError> {
        let mut similar = Self::new(ranking, scoring);
        let mut sums = Sums::default();
        for view in views {
            let memories = view.totals.count(Space::Memories);
            similar.coverage.memories += usize::try_from(memories).unwrap_or(usize::MAX);
            let of = (meaning.identity(), question.dimensions());
            let matrix = match knowledge.indexer.matrices.of(view, of)? {
                Available::Vectors(matrix) => matrix,
                Available::Nothing => continue,
                Available::OfAnother => {
                    similar.unusable = "the vectors are of another model";
                    continue;
                }
                Available::TooMany => {
                    similar.unusable = "there are too many vectors to be held in memory";
                    continue;
                }
            };
            similar.add(ranking, (view.store, &matrix), question, &mut sums)?;
        }
        similar.coverage.embedded = sums.count;
        (similar.mean, similar.deviation) = sums.mean_and_deviation();
        Ok(similar)
    }

    /// Adds the memories of a store.
    fn add(
        &mut self,
        ranking: &Ranking<'_, '_>,
        (store, matrix): (StoreId, &RwLock<Matrix>),
        question: &Question,
        sums: &mut Sums,
    ) -> Result<(), IndexError> {
        // Held for both: another search may reload the vectors, and then they have other slots.
        let matrix = matrix.read().unwrap_or_else(PoisonError::into_inner);
        let similarities = matrix.similarities(question);
        let segments = ranking.segments.iter().zip(&mut self.segments);
        for ((_, segment), found) in segments.filter(|((of, _), _)| *of == store) {
            let slots = matrix.slots_of(segment.segment())?;
            for doc in segment.segment().live(Space::Memories)?.iter() {
                let Some(one) = similarities.of(&slots, doc) else { continue };
                sums.add(f64::from(one.cosine));
                let place = usize::try_from(doc).ok().and_then(|doc| found.get_mut(doc));
                *place.ok_or(IndexError::Damaged)? = Some(one);
            }
        }
        Ok(())
    }

    /// Returns how similar a document is; `None` if it has no vectors.
    pub(crate) fn of(&self, (number, doc): Document) -> Option<Similarity> {
        *self.segments.get(number)?.get(usize::try_from(doc).ok()?)?
    }

    /// Returns how far a cosine is above the mean.
    pub(crate) fn above_mean(&self, similarity: Similarity) -> f64 {
        f64::from(similarity.cosine) - self.mean
    }

    /// Returns how many standard deviations a cosine is above the mean.
    pub(crate) fn deviations(&self, similarity: Similarity) -> f64 {
        self.above_mean(similarity) / self.deviation
    }

    /// Returns what a cosine is worth, as a share of the best score by words.
    pub(crate) fn worth(&self, similarity: Similarity) -> f64 {
        let Scoring { similar, similar_floor, similar_ceiling, .. } = self.scoring;
        let above = self.deviations(similarity) - similar_floor;
        similar * (above / (similar_ceiling - similar_floor)).clamp(0.0, 1.0)
    }

    pub(crate) fn shown(&self, similarity: Similarity) -> SimilarScore {
        let Similarity { cosine, lines } = similarity;
        let deviations = self.deviations(similarity);
        SimilarScore { cosine, deviations, first_line: lines.first, last_line: lines.last }
    }

    /// Returns the documents that meet the conditions of the request and are more similar than `least`, the
    /// best first, and how many there are.
    pub(crate) fn nearest(
        &self,
        ranking: &Ranking<'_, '_>,
        condition: &Clause,
        least: f64,
    ) -> Result<(Vec<Near>, usize), IndexError> {
        let mut nearest = Vec::new();
        for (number, ((_, segment), found)) in
            ranking.segments.iter().zip(&self.segments).enumerate()
        {
            let selected = segment.select(condition)?;
            for (doc, similarity) in (0..).zip(found) {
                let Some(similarity) = *similarity else { continue };
                if f64::from(similarity.cosine) > least && selected.contains(doc) {
                    nearest.push(Near { document: (number, doc), similarity });
                }
            }
        }
        let count = nearest.len();
        let by_cosine = |left: &Near, right: &Near| -> Ordering {
            let by_cosine = right.similarity.cosine.total_cmp(&left.similarity.cosine);
            by_cosine.then_with(|| left.document.cmp(&right.document))
        };
        if count > CANDIDATES_MAX {
            nearest.select_nth_unstable_by(CANDIDATES_MAX, by_cosine);
            nearest.truncate(CANDIDATES_MAX);
        }
        nearest.sort_unstable_by(by_cosine);
        Ok((nearest, count))
    }

    /// Returns the matches by meaning alone; the score is the cosine, less for notes that are over or stale.
    fn by_meaning(
        &self,
        ranking: &Ranking<'_, '_>,
        plan: &Plan,
        request: &SearchRequest,
    ) -> Result<Matches, IndexError> {
        let (nearest, count) = self.nearest(ranking, &plan.constraints(), 0.0)?;
        let documents: Vec<_> = nearest.iter().map(|near| near.document).collect();
        let mut matches = Matches::default();
        matches.total.count = count;
        for (mut hit, near) in ranking.hits_of(&[], &documents)?.into_iter().zip(nearest) {
            let factor = ranking.freshness_factor(near.document)?;
            hit.score = f64::from(near.similarity.cosine) * factor;
            let similar = self.shown(near.similarity);
            let explanation = request.explain.then(|| {
                let mut explanation = Explanation::default();
                explanation.add(ScoreReason::Similar(similar), hit.score);
                explanation
            });
            let similar = Some(similar);
            let found = Match { explanation, similar, has_words: false, ..Match::memory(hit) };
            matches.hits.push(found);
        }
        Ok(matches)
    }

    /// Adds meaning to matches by words, and the nearest memories to the matches.
    fn fused(
        &self,
        (ranking, plan): (&Ranking<'_, '_>, &Plan),
        mut matches: Matches,
        request: &SearchRequest,
    ) -> Result<Matches, IndexError> {
        let Selection { words, .. } = plan.selection(ranking)?;
        let is_open = Query::parse(&request.text).expr.is_some_and(|expr| is_open(&expr));
        if is_open {
            let least = self.mean + self.scoring.similar_floor * self.deviation;
            let (nearest, _) = self.nearest(ranking, &plan.constraints(), least)?;
            let known: HashSet<_> = matches.hits.iter().filter_map(|it| it.hit.document).collect();
            let documents = nearest.iter().map(|near| near.document);
            let further: Vec<_> = documents.filter(|it| !known.contains(it)).collect();
            // If all matches by words are known, these have no words.
            let has_all = matches.hits.len() >= matches.total.count;
            let words = if has_all { &[] } else { words.as_slice() };
            for hit in ranking.hits_of(words, &further)? {
                let has_words = hit.score > 0.0;
                matches.total.count += usize::from(!has_words);
                let explanation =
                    request.explain.then(|| ranking.explain(words, &hit)).transpose()?;
                matches.hits.push(Match { explanation, has_words, ..Match::memory(hit) });
            }
        }
        let best = matches.hits.iter().map(|found| found.hit.score).fold(0.0, f64::max);
        let scale = if best > 0.0 { best } else { 1.0 };
        for found in &mut matches.hits {
            let Some(document) = found.hit.document else { continue };
            let Some(similarity) = self.of(document) else { continue };
            let similar = self.shown(similarity);
            let added = scale * self.worth(similarity) * ranking.freshness_factor(document)?;
            found.hit.score += added;
            found.similar = Some(similar);
            if let Some(explanation) = &mut found.explanation {
                explanation.add(ScoreReason::Similar(similar), added);
            }
        }
        matches.sort();
        Ok(matches)
    }
}

impl Ranking<'_, '_> {
    /// Returns documents as hits, with the scores of their own words.
    pub(crate) fn hits_of(
        &self,
        words: &[Word],
        documents: &[Document],
    ) -> Result<Vec<Hit>, IndexError> {
        let scores = self.scores(words)?;
        documents.iter().map(|document| self.hit(*document, scores.of(*document))).collect()
    }
}

/// The sums that a mean and a standard deviation are computed from.
#[derive(Default)]
struct Sums {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean_and_deviation(&self) -> (f64, f64) {
        let count = f64::from(u32::try_from(self.count).unwrap_or(u32::MAX)) + PRIOR_COUNT;
        let prior_squares = PRIOR_MEAN * PRIOR_MEAN + PRIOR_DEVIATION * PRIOR_DEVIATION;
        let mean = (self.sum + PRIOR_COUNT * PRIOR_MEAN) / count;
        let variance = (self.squares + PRIOR_COUNT * prior_squares) / count - mean * mean;
        (mean, variance.max(f64::EPSILON).sqrt())
    }
}
