//! Retrieval quality: how well search finds the notes that answer questions.

mod chats;
mod long;
mod sets;
mod tuning;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use quipu_core::Engine;
use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryPath, Name, PrincipalName, StoreId};
use quipu_core::settings::Limits;
use quipu_knowledge::{Knowledge, Scoring, SearchRequest};
use quipu_sqlite::{OpenMode, SqliteBackend};
use quipu_vectors::{Encoder, LocalEncoder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::table::{median, number, print, row};
use sets::{Question, Set};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The sets: directories of notes, of BEIR or of SMART; or `chats`, `talks`, `sessions` and
    /// `long`, which are generated
    #[arg(default_value = "bench/retrieval")]
    sets: Vec<String>,
    /// List the questions whose answers are not among the first ten
    #[arg(long)]
    misses: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Look for better parameters of ranking, by cross-validation over all sets
    #[arg(long)]
    tune: bool,
    /// Also search by meaning, with the model in this directory
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Write the sets into this directory, for other programs to search
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
}

/// How many hits are examined for answers.
const DEPTH: usize = 100;

/// The hits for a question, best first: whether each is an answer.
#[derive(Clone, Debug)]
struct Ranking {
    hits: Vec<bool>,
    answers_count: usize,
    micros: f64,
}

/// A set whose texts are in a store.
struct Shelf {
    set: Set,
    engine: Knowledge,
    store: StoreId,
    _directory: TempDir,
}

pub(crate) fn run(arguments: &Arguments) {
    let sets: Vec<_> = arguments.sets.iter().map(|name| named(name)).collect();
    if let Some(directory) = &arguments.export {
        return sets.iter().for_each(|set| sets::write(set, &directory.join(&set.name)));
    }
    let shelves: Vec<_> = sets.into_iter().map(Shelf::new).collect();
    let encoder = arguments.model.as_deref().map(opened);
    let with_vectors =
        shelves.iter().filter_map(|shelf| Some(shelf.with_encoder(encoder.as_ref()?)));
    let with_vectors: Vec<_> = with_vectors.collect();
    if arguments.tune {
        return tuning::run(&shelves, &with_vectors);
    }
    let mut rows = vec![row(&[
        &"set",
        &"by",
        &"notes",
        &"questions",
        &"recall@5",
        &"recall@10",
        &"MRR",
        &"nDCG@10",
        &"median µs",
    ])];
    let mut documents = Vec::new();
    for (place, shelf) in shelves.iter().enumerate() {
        let plain = shelf.engine.with_scoring(PLAIN);
        let engines = [("plain BM25", Some(&plain)), ("words", Some(&shelf.engine))];
        let engines = engines.into_iter().chain([("words and meaning", with_vectors.get(place))]);
        for (by, engine) in engines.filter_map(|(by, engine)| Some((by, engine?))) {
            for line in shelf.lines(engine) {
                rows.push(line.row(by));
                documents.push(line.as_json(by));
            }
            if arguments.misses && by != "plain BM25" {
                shelf.print_misses(engine);
            }
        }
    }
    if arguments.json {
        println!("{:#}", Value::Array(documents));
    } else {
        print("Retrieval", &rows);
    }
}

/// Textbook BM25 over the text of a note, to compare with.
const PLAIN: Scoring = Scoring {
    k1: 1.2,
    b: 0.75,
    length_prior: 0.0,
    long: f64::INFINITY,
    title: 0.0,
    tag: 0.0,
    heading: 0.0,
    other: 0.0,
    coverage: 0.0,
    date: 0.0,
    nearness: 0.0,
    neighbor: 0.0,
    surroundings: 0.0,
    directory: 0.0,
    ..Scoring::DEFAULT
};

/// Returns the set with a name or in a directory.
fn named(name: &str) -> Set {
    match name {
        "chats" => chats::chats(),
        "talks" => chats::talks(),
        "sessions" => chats::sessions(),
        "long" => long::long(),
        directory => sets::read(Path::new(directory)),
    }
}

impl Shelf {
    fn new(set: Set) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (engine, store) = open(directory.path());
        fill(&engine, store, &set);
        // The first search brings the index up to date.
        search(&engine, store, "warm", DEPTH);
        Self { set, engine, store, _directory: directory }
    }

    /// Returns the scores of all questions, then those of each category.
    fn lines(&self, engine: &Knowledge) -> Vec<Line> {
        let questions = &self.set.questions;
        let rank = |question| rank(engine, self.store, question, DEPTH);
        let rankings: Vec<_> = questions.iter().map(rank).collect();
        let categories = long::categories(questions).into_iter().map(Some);
        let lines = std::iter::once(None).chain(categories).map(|category| {
            let asked = questions.iter().zip(&rankings);
            let asked = asked.filter(|(it, _)| category.is_none() || it.category == category);
            let rankings: Vec<_> = asked.map(|(_, ranking)| ranking.clone()).collect();
            let category = category.map(|category| format!(": {category}"));
            Line {
                set: format!("{}{}", self.set.name, category.unwrap_or_default()),
                notes: self.set.texts.len(),
                questions: rankings.len(),
                scores: Scores::of(&rankings),
            }
        });
        lines.collect()
    }

    fn print_misses(&self, engine: &Knowledge) {
        for question in &self.set.questions {
            if rank(engine, self.store, question, DEPTH).recall(10) < 1.0 {
                println!("{} {:?}", question.text, question.answers);
            }
        }
    }

    /// Returns the engine with an encoder, after making the vectors of all texts.
    fn with_encoder(&self, encoder: &Arc<dyn Encoder>) -> Knowledge {
        let engine = self.engine.clone().with_encoder(Some(Arc::clone(encoder)));
        engine.embed(&|_| Ok(())).expect("it embeds");
        // The first search reads the vectors.
        search(&engine, self.store, "warm", DEPTH);
        engine
    }
}

/// Opens the model in a directory.
fn opened(directory: &Path) -> Arc<dyn Encoder> {
    Arc::new(LocalEncoder::open(directory).expect("a model"))
}

fn open(directory: &Path) -> (Knowledge, StoreId) {
    let backend = SqliteBackend::open(directory, OpenMode::Create).expect("it opens");
    let limits = Limits {
        memories_per_store_max: u64::MAX,
        store_size_bytes_max: u64::MAX,
        content_size_bytes_max: u64::MAX,
        ..Limits::default()
    };
    let engine = Engine::new(Arc::new(backend), Arc::new(SystemClock), limits);
    let engine = Knowledge::new(engine, directory);
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewStore::named(Name::new("retrieval").expect("a name"));
    let store = engine.create_store(workspace, &new).expect("a store").id;
    (engine, store)
}

/// Writes every text of a set to the store.
fn fill(engine: &Knowledge, store: StoreId, set: &Set) {
    let actor = Actor::User(PrincipalName::from_host("bench"));
    for (path, text) in &set.texts {
        let path = MemoryPath::parse(path).expect("a path");
        let text = Content::new(text.clone()).expect("a text");
        let written = engine.put(&actor, store, (&path, &text), Precondition::None);
        written.expect("it is written");
    }
}

/// Returns the paths of the hits, best first.
fn search(engine: &Knowledge, store: StoreId, text: &str, depth: usize) -> Vec<String> {
    let request = SearchRequest { limit: depth, ..SearchRequest::new(vec![store], text) };
    let page = engine.search(&request).expect("a search");
    if let Some(notice) = page.notice {
        println!("{text}: {notice}");
    }
    page.hits.iter().map(|hit| hit.note.path.to_string()).collect()
}

fn rank(engine: &Knowledge, store: StoreId, question: &Question, depth: usize) -> Ranking {
    let start = Instant::now();
    let found = search(engine, store, &question.text, depth);
    let micros = start.elapsed().as_secs_f64() * 1e6;
    let hits = found.iter().map(|path| question.answers.contains(path)).collect();
    Ranking { hits, answers_count: question.answers.len(), micros }
}

impl Ranking {
    /// Returns the recall at `depth`: the fraction of the answers among the first hits.
    fn recall(&self, depth: usize) -> f64 {
        let found = self.hits.iter().take(depth).filter(|is_answer| **is_answer).count();
        ratio(found, self.answers_count)
    }

    /// Returns the reciprocal rank of the first answer, or zero if there is none.
    fn reciprocal_rank(&self) -> f64 {
        let first = self.hits.iter().position(|is_answer| *is_answer);
        first.map_or(0.0, |place| ratio(1, place + 1))
    }

    /// Returns the normalized discounted cumulative gain (nDCG) at `depth`.
    fn gain(&self, depth: usize) -> f64 {
        let discounted = |places: &mut dyn Iterator<Item = usize>| -> f64 {
            places.map(|place| 1.0 / ratio(place + 2, 1).log2()).sum()
        };
        let hits = self.hits.iter().take(depth).enumerate();
        let found = discounted(&mut hits.filter(|(_, is_answer)| **is_answer).map(|it| it.0));
        found / discounted(&mut (0..self.answers_count.min(depth)))
    }
}

/// Averages over all questions.
#[derive(Debug)]
struct Scores {
    recall_5: f64,
    recall_10: f64,
    reciprocal_rank: f64,
    gain_10: f64,
    median_micros: f64,
}

impl Scores {
    fn of(rankings: &[Ranking]) -> Self {
        let mean = |score: &dyn Fn(&Ranking) -> f64| {
            rankings.iter().map(score).sum::<f64>() / ratio(rankings.len(), 1)
        };
        Self {
            recall_5: mean(&|it| it.recall(5)),
            recall_10: mean(&|it| it.recall(10)),
            reciprocal_rank: mean(&Ranking::reciprocal_rank),
            gain_10: mean(&|it| it.gain(10)),
            median_micros: median(rankings.iter().map(|it| it.micros).collect()),
        }
    }
}

/// The scores of some questions of a set.
struct Line {
    set: String,
    notes: usize,
    questions: usize,
    scores: Scores,
}

impl Line {
    fn row(&self, by: &str) -> Vec<String> {
        let Self { set, notes, questions, scores } = self;
        let share = |value: f64| format!("{value:.3}");
        row(&[
            set,
            &by,
            notes,
            questions,
            &share(scores.recall_5),
            &share(scores.recall_10),
            &share(scores.reciprocal_rank),
            &share(scores.gain_10),
            &number(scores.median_micros),
        ])
    }

    fn as_json(&self, by: &str) -> Value {
        let Self { set, notes, questions, scores } = self;
        json!({
            "set": set,
            "by": by,
            "notes": notes,
            "questions": questions,
            "recall_at_5": scores.recall_5,
            "recall_at_10": scores.recall_10,
            "mrr": scores.reciprocal_rank,
            "ndcg_at_10": scores.gain_10,
            "median_micros": scores.median_micros,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(hits: &[bool], answers_count: usize) -> Ranking {
        Ranking { hits: hits.to_vec(), answers_count, micros: 0.0 }
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn the_first_hit_is_the_best() {
        let best = ranking(&[true, false], 1);
        assert!(close(best.recall(5), 1.0) && close(best.gain(10), 1.0));
        assert!(close(best.reciprocal_rank(), 1.0));
        let second = ranking(&[false, true], 1);
        assert!(close(second.reciprocal_rank(), 0.5));
        assert!(close(second.gain(10), 1.0 / 3_f64.log2()));
        let none = ranking(&[false; 20], 1);
        assert!(close(none.recall(10) + none.reciprocal_rank() + none.gain(10), 0.0));
    }

    #[test]
    fn only_the_first_hits_count() {
        let late = ranking(&[false, false, false, false, false, true], 1);
        assert!(close(late.recall(5), 0.0) && close(late.recall(10), 1.0));
        let half = ranking(&[true, false, false], 2);
        assert!(close(half.recall(5), 0.5));
        assert!(close(half.gain(10), 1.0 / (1.0 + 1.0 / 3_f64.log2())));
    }

    #[test]
    fn the_set_that_is_shipped_fits_together() {
        let set = sets::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/retrieval")));
        assert!(set.questions.len() >= 120);
        let paths: Vec<_> = set.texts.iter().map(|(path, _)| path).collect();
        for answer in set.questions.iter().flat_map(|question| &question.answers) {
            assert!(paths.contains(&answer), "{answer}");
        }
    }
}
