//! Retrieval quality: how well search finds the notes that answer questions.

mod tuning;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use quipu_core::Engine;
use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryPath, Name, PrincipalName, StoreId};
use quipu_core::settings::Limits;
use quipu_knowledge::{Knowledge, SearchRequest};
use quipu_sqlite::{OpenMode, SqliteBackend};
use serde_json::{Value, json};

use crate::table::{median, number, print, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The folder of notes
    #[arg(default_value = "bench/retrieval/notes")]
    folder: PathBuf,
    /// The questions, one JSON object on each line: {"question": "…", "answers": ["/path.md", …]}
    #[arg(default_value = "bench/retrieval/questions.jsonl")]
    questions: PathBuf,
    /// List the questions whose answers are not among the first ten
    #[arg(long)]
    misses: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Look for better parameters of ranking, by cross-validation
    #[arg(long)]
    tune: bool,
}

/// How many hits are examined for answers.
const DEPTH: usize = 100;

/// A question and the paths that answer it.
#[derive(Debug)]
struct Question {
    text: String,
    answers: HashSet<String>,
}

/// The hits for a question, best first: whether each is an answer.
#[derive(Clone, Debug)]
struct Ranking {
    hits: Vec<bool>,
    answers_count: usize,
    micros: f64,
}

pub(crate) fn run(arguments: &Arguments) {
    let questions = read_questions(&arguments.questions);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (engine, store) = open(directory.path());
    let notes_count = fill(&engine, store, &arguments.folder);
    // The first search brings the index up to date.
    search(&engine, store, "warm");
    if arguments.tune {
        return tuning::run(&engine, store, &questions);
    }
    let rankings: Vec<_> = questions.iter().map(|it| rank(&engine, store, it)).collect();
    let scores = Scores::of(&rankings);
    if arguments.json {
        println!("{:#}", scores.as_json(notes_count, questions.len()));
    } else {
        scores.print(notes_count, questions.len());
    }
    if arguments.misses {
        let missed =
            questions.iter().zip(&rankings).filter(|(_, ranking)| ranking.recall(10) < 1.0);
        missed.for_each(|(question, _)| println!("{} {:?}", question.text, question.answers));
    }
}

fn read_questions(file: &Path) -> Vec<Question> {
    let text = fs::read_to_string(file).expect("the questions can be read");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| Question::parse(line).unwrap_or_else(|| fail(line))).collect()
}

#[expect(clippy::panic, reason = "a benchmark with wrong input says so and ends")]
fn fail(line: &str) -> Question {
    panic!("not a question with answers: {line}")
}

impl Question {
    fn parse(line: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(line).ok()?;
        let text = document.get("question")?.as_str()?.to_owned();
        let rooted = |path: &str| format!("/{}", path.trim_start_matches('/'));
        let paths = document.get("answers")?.as_array()?.iter();
        let answers: HashSet<_> = paths.filter_map(Value::as_str).map(rooted).collect();
        (!answers.is_empty()).then_some(Self { text, answers })
    }
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

/// Writes every text of a folder to the store and returns their number.
fn fill(engine: &Knowledge, store: StoreId, folder: &Path) -> usize {
    let actor = Actor::User(PrincipalName::from_host("bench"));
    let mut waiting = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("the folder can be read") {
            let file = entry.expect("an entry").path();
            if file.is_dir() {
                waiting.push(file);
                continue;
            }
            let place = file.strip_prefix(folder).expect("it is below the folder");
            let path = MemoryPath::parse(&format!("/{}", place.display())).expect("a path");
            let text = Content::from_bytes(&fs::read(&file).expect("a file")).expect("a text");
            let written = engine.put(&actor, store, (&path, &text), Precondition::None);
            written.expect("it is written");
            count += 1;
        }
    }
    count
}

/// Returns the paths of the hits, best first.
fn search(engine: &Knowledge, store: StoreId, text: &str) -> Vec<String> {
    let request = SearchRequest { limit: DEPTH, ..SearchRequest::new(vec![store], text) };
    let page = engine.search(&request).expect("a search");
    page.hits.iter().map(|hit| hit.note.path.to_string()).collect()
}

fn rank(engine: &Knowledge, store: StoreId, question: &Question) -> Ranking {
    let start = Instant::now();
    let found = search(engine, store, &question.text);
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

    fn print(&self, notes_count: usize, questions_count: usize) {
        let title = format!("{questions_count} questions, {notes_count} notes");
        let share = |value: f64| format!("{value:.3}");
        let head = ["recall@5", "recall@10", "MRR", "nDCG@10", "median µs"].map(str::to_owned);
        let scores = row(&[
            &share(self.recall_5),
            &share(self.recall_10),
            &share(self.reciprocal_rank),
            &share(self.gain_10),
            &number(self.median_micros),
        ]);
        print(&title, &[head.to_vec(), scores]);
    }

    fn as_json(&self, notes_count: usize, questions_count: usize) -> Value {
        json!({
            "questions": questions_count,
            "notes": notes_count,
            "recall_at_5": self.recall_5,
            "recall_at_10": self.recall_10,
            "mrr": self.reciprocal_rank,
            "ndcg_at_10": self.gain_10,
            "median_micros": self.median_micros,
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
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/retrieval"));
        let questions = read_questions(&root.join("questions.jsonl"));
        assert!(questions.len() >= 120);
        for answer in questions.iter().flat_map(|question| &question.answers) {
            assert!(root.join("notes").join(answer.trim_start_matches('/')).is_file(), "{answer}");
        }
    }
}
