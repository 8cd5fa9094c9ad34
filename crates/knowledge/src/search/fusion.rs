//! Fusion: words and meaning in one order.
//!
//! The scores are added, and not the ranks. A rank says nothing of how much better the first is than the
//! second: reciprocal rank fusion lets any memory that is third in both lists win over the one that has
//! every word of the question, and was clearly worse than words alone. But scores must be comparable to be
//! added. What a score of words is worth is seen in the best one of the same question, and what a cosine is
//! worth in all the others ([`similar`](super::similar)).
//!
//! The order is made of the best hits by words and the best by meaning, as many of each as can be paged
//! through, whatever page is asked for. So pages fit together.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use quipu_core::Error;
use quipu_notes::query::{Expr, Query, Term};
use quipu_vectors::quantized::Question;

use super::clause::Clause;
use super::context::BEST_MAX;
use super::explanation::ScoreReason;
use super::matching::{FoundBy, Match, Matches, Search, TargetRanking};
use super::neighbors::{Directories, Document, Place};
use super::rank::{Hit, Ranking};
use super::scoring::Scoring;
use super::similar::{CANDIDATES_MAX, Coverage, Similar};
use super::surroundings::{Surroundings, sums_around};
use super::{SearchMode, SearchRequest, SearchTarget};
use crate::Knowledge;
use crate::index::{IndexError, StoreView};
use crate::vectors::{Meaning, Similarity, no_model};

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

/// How a request is to be answered.
pub(super) enum Strategy {
    /// By words, and why not by meaning.
    Text { notice: Option<String> },
    /// By meaning, or by both.
    Meaning { meaning: Arc<Meaning>, question: Arc<Question>, ranked_by: RankedBy },
}

impl Strategy {
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
                SearchMode::Hybrid => {
                    text(Some("no embedding model is configured; showing keyword results"))
                }
                SearchMode::Best | SearchMode::Text | SearchMode::Title | SearchMode::Permalink => {
                    text(None)
                }
            };
        };
        if knowledge.indexer.is_of_past() {
            return text(Some("the past is searched by keywords only"));
        }
        if request.targets() != [SearchTarget::Memories] {
            let notice = "observations and relations are searched by keywords only";
            return text(is_explicit.then_some(notice));
        }
        let Some(question) = question(&request.text) else { return text(None) };
        knowledge.engine.require_blocking()?;
        match meaning.question(&question, request.asked_by.as_ref()) {
            Ok(question) => Ok(Self::Meaning { meaning: Arc::clone(meaning), question, ranked_by }),
            Err(reason) => {
                let notice =
                    format!("semantic search is unavailable ({reason}); showing keyword results");
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

/// Which memories may be found by their meaning alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// All that meet the conditions.
    Conditions,
    /// Those that a search by words selects. Quotes, `AND`, `OR`, `NOT` and prefixes say which memories are
    /// meant, so meaning only orders these.
    Selection,
}

impl Scope {
    fn of(text: &str) -> Self {
        let is_open = Query::parse(text).expr.is_some_and(|expr| Self::is_open(&expr));
        if is_open { Self::Conditions } else { Self::Selection }
    }

    fn is_open(expr: &Expr) -> bool {
        match expr {
            Expr::Juxtaposed(parts) => parts.iter().all(Self::is_open),
            Expr::Filter(_) => true,
            Expr::Term(_) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) => is_plain(expr),
        }
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

impl<'s> Fusion<'_, 's> {
    /// Returns a page of the matches.
    pub(super) fn page(
        &self,
        strategy: &Strategy,
        page: Range<usize>,
    ) -> Result<Fused, IndexError> {
        let views = self.search.views();
        let plans = self.search.plans();
        let mut rankings = self.search.rankings(&views, &plans)?;
        // One more than requested shows whether there is a next page.
        let mut fused = self.matches(strategy, (&views, &mut rankings), page.end + 1)?;
        fused.matches.cut(&page);
        self.search.explain(&mut fused.matches, &rankings)?;
        Ok(fused)
    }

    /// Returns the best matches, at least `limit` if there are as many.
    fn matches(
        &self,
        strategy: &Strategy,
        (views, rankings): (&[&StoreView<'_>], &mut [TargetRanking<'_, 's>]),
        limit: usize,
    ) -> Result<Fused, IndexError> {
        let by_text = |notice: Option<String>, coverage, matches| {
            Ok(Fused { matches, ranked_by: RankedBy::Text, coverage, notice })
        };
        let (meaning, question, ranked_by) = match strategy {
            Strategy::Text { notice } => {
                return by_text(notice.clone(), None, Search::by_words(rankings, limit)?);
            }
            Strategy::Meaning { meaning, question, ranked_by } => (meaning, question, *ranked_by),
        };
        // Only memories have vectors.
        let [of_memories] = rankings else { return Err(IndexError::Damaged) };
        let of = (self.knowledge, self.search.scoring);
        let similar = Similar::compared(of, views, &of_memories.ranking, (meaning, question))?;
        let coverage = Some(similar.coverage);
        if similar.coverage.embedded == 0 {
            let notice = format!("{}; showing keyword results", similar.unusable);
            return by_text(Some(notice), coverage, Search::by_words(rankings, limit)?);
        }
        let scope = Scope::of(&self.search.request.text);
        let matches = match ranked_by {
            RankedBy::Vector => similar.by_meaning(of_memories, scope)?,
            RankedBy::Text | RankedBy::Hybrid => {
                let words = Search::by_words(rankings, CANDIDATES_MAX)?;
                let [of_memories] = rankings else { return Err(IndexError::Damaged) };
                similar.fused(of_memories, words, scope)?
            }
        };
        Ok(Fused { matches, ranked_by, coverage, notice: None })
    }
}

/// What surrounds a match says about its meaning.
#[derive(Clone, Copy)]
struct InContext {
    /// How many times as much its meaning is worth because of the words around it.
    factor: f64,
    /// How similar it and those around it are, relative to the best match.
    share: f64,
}

impl Default for InContext {
    fn default() -> Self {
        Self { factor: 1.0, share: 0.0 }
    }
}

impl Similar {
    /// Returns the matches by meaning alone; the score is the cosine, less for notes that are expired or stale.
    fn by_meaning(&self, of: &TargetRanking<'_, '_>, scope: Scope) -> Result<Matches, IndexError> {
        let TargetRanking { target, ranking, plan, selection, .. } = of;
        let condition = match scope {
            Scope::Conditions => plan.constraints(),
            Scope::Selection => selection.clause.clone(),
        };
        let (nearest, count) = self.nearest(ranking, &condition, 0.0)?;
        let documents: Vec<_> = nearest.iter().map(|near| near.document).collect();
        let mut matches = Matches::default();
        matches.total.count = count;
        for (hit, near) in ranking.hits_of(&[], &documents)?.into_iter().zip(nearest) {
            let cosine = f64::from(near.similarity.cosine);
            let mut found = Match::new(*target, Hit { score: 0.0, ..hit }, FoundBy::Meaning);
            self.add(&mut found, (near.similarity, cosine), ranking)?;
            matches.hits.push(found);
        }
        matches.sort();
        Ok(matches)
    }

    /// Adds meaning to matches by words, and the nearest memories to the matches.
    fn fused(
        &self,
        of: &TargetRanking<'_, '_>,
        mut matches: Matches,
        scope: Scope,
    ) -> Result<Matches, IndexError> {
        if scope == Scope::Conditions {
            self.extend(of, &mut matches)?;
        }
        let by_words = |hit: &Hit| hit.score - hit.bonuses.of_surroundings();
        let best = matches.hits.iter().map(|found| by_words(&found.hit)).fold(0.0, f64::max);
        let scale = if best > 0.0 { best } else { 1.0 };
        let context = self.context(of, &matches)?;
        for found in &mut matches.hits {
            let Some(document) = found.hit.document else { continue };
            let Some(similarity) = self.of(document) else { continue };
            let InContext { factor, share } = context.get(&document).copied().unwrap_or_default();
            let worth = scale * self.worth(similarity) * factor;
            self.add(found, (similarity, worth), &of.ranking)?;
            let bonus = found.hit.score * self.scoring.similar_surroundings * share;
            if bonus > 0.0 {
                found.add(ScoreReason::SimilarSurroundings(share), bonus);
            }
        }
        matches.sort();
        Ok(matches)
    }

    /// Looks at what surrounds the best matches by words and the best by meaning.
    ///
    /// A message that means what was asked for is more likely the answer in a session about it. With the
    /// worth of its meaning alone added, vectors gained nothing in conversations.
    fn context(
        &self,
        TargetRanking { ranking, selection, .. }: &TargetRanking<'_, '_>,
        matches: &Matches,
    ) -> Result<HashMap<Document, InContext>, IndexError> {
        if selection.words.len() < 2 {
            return Ok(HashMap::new());
        }
        let similar = |found: &&Match| Some((found.hit.document?, self.of(found.hit.document?)?));
        let mut nearest: Vec<_> = matches.hits.iter().filter_map(|it| similar(&it)).collect();
        nearest.sort_by(|(_, left), (_, right)| right.cosine.total_cmp(&left.cosine));
        let nearest = nearest.into_iter().map(|(document, _)| document).take(BEST_MAX);
        let first = matches.hits.iter().take(BEST_MAX).filter_map(|found| found.hit.document);
        let best: Vec<_> = first.chain(nearest).collect();
        let directories = Directories::of(&ranking.segments, &best)?;
        let place = |document: &Document| Some((directories.place(*document)?, *document));
        let places: BTreeSet<_> = best.iter().filter_map(place).collect();
        let scores = ranking.scores(&selection.words)?;
        let by_words = Surroundings::of(&directories, &scores, &places);
        let worth = |document| self.of(document).map_or(0.0, |it| self.worth(it));
        let by_meaning = sums_around(&directories, &places, worth);
        let Scoring { surroundings, directory, .. } = self.scoring;
        let in_context = |(place, document): &(Place, Document)| {
            let factor = (1.0 + surroundings * by_words.share_around(*place))
                * (1.0 + directory * by_words.share_of_directory(*place));
            let share = by_meaning.get(place).copied().unwrap_or_default();
            (*document, InContext { factor, share })
        };
        Ok(places.iter().map(in_context).collect())
    }

    /// Adds the nearest memories to matches by words: those that have words too and are not among the best
    /// by these, and those that are found by their meaning alone, which are counted.
    fn extend(&self, of: &TargetRanking<'_, '_>, matches: &mut Matches) -> Result<(), IndexError> {
        let TargetRanking { target, ranking, plan, .. } = of;
        let has_words = of.has_words();
        if matches.hits.len() < matches.total.count {
            let least = self.mean + self.scoring.similar_floor * self.deviation;
            let (nearest, _) = self.nearest(ranking, &has_words, least)?;
            let known: HashSet<_> = matches.hits.iter().filter_map(|it| it.hit.document).collect();
            let documents = nearest.iter().map(|near| near.document);
            let further: Vec<_> = documents.filter(|it| !known.contains(it)).collect();
            let further = ranking.hits_of(&of.selection.words, &further)?;
            let found = |hit| Match::new(*target, hit, FoundBy::Words);
            matches.hits.extend(further.into_iter().map(found));
        }
        let alone = Clause::All(vec![plan.constraints(), Clause::Not(Box::new(has_words))]);
        let (nearest, count) = self.nearest(ranking, &alone, self.found_above())?;
        matches.total.count += count;
        let documents: Vec<_> = nearest.iter().map(|near| near.document).collect();
        let found = |hit| Match::new(*target, hit, FoundBy::Meaning);
        matches.hits.extend(ranking.hits_of(&[], &documents)?.into_iter().map(found));
        Ok(())
    }

    /// Adds to a match what its meaning is worth, less if its note is expired or stale.
    fn add(
        &self,
        found: &mut Match,
        (similarity, worth): (Similarity, f64),
        ranking: &Ranking<'_, '_>,
    ) -> Result<(), IndexError> {
        let similar = self.shown(similarity);
        found.similar = Some(similar);
        found.add(ScoreReason::Similar(similar), worth);
        let document = found.hit.document.ok_or(IndexError::Damaged)?;
        if let Some(state) = ranking.freshness(document)? {
            found.add(ScoreReason::Freshness(state), worth * (state.factor() - 1.0));
        }
        Ok(())
    }
}
