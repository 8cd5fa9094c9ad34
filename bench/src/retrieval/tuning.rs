//! Chooses the parameters of ranking by cross-validation.
//!
//! One parameter after the other moves to the next value, as long as all questions together are answered
//! better. That yields some dozens of candidates. The questions are divided into folds. For each fold, the
//! candidate is chosen that is best for all other questions, and then scored on the fold. So the scores that
//! are reported come from questions that had no say in the choice, and show whether a gain would carry over
//! to others. Parameters that are chosen and scored on the same questions always look better than they are.
//!
//! It takes minutes and not hours: of a large set a sample of the questions is asked, the number of candidates
//! has a limit, and each is asked each question once, for all folds.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::thread;

use quipu_knowledge::{Knowledge, Scoring};

use super::sets::Question;
use super::{Ranking, Scores, Shelf, rank, ratio};
use crate::table::{print, row};

const FOLDS: usize = 5;

/// How often the search for better parameters goes through all of them.
const ROUNDS_MAX: usize = 3;

/// How many candidates are tried.
const CANDIDATES_MAX: usize = 60;

/// How many questions of a set are asked.
const QUESTIONS_MAX: usize = 150;

/// How many hits are examined for answers. A deeper page takes longer, because each hit is shown
/// with an excerpt.
const DEPTH: usize = 10;

/// A parameter and the values to try, in ascending order. The parameters are changed in this order.
struct Parameter {
    name: &'static str,
    get: fn(&Scoring) -> f64,
    set: fn(&mut Scoring, f64),
    values: &'static [f64],
}

macro_rules! parameter {
    ($field:ident, $values:expr) => {
        Parameter {
            name: stringify!($field),
            get: |it| it.$field,
            set: |it, value| it.$field = value,
            values: &$values,
        }
    };
    (weight of $field:ident, $values:expr) => {
        Parameter {
            name: stringify!($field),
            get: |it| f64::from(it.$field),
            set: |it, value| it.$field = narrowed(value),
            values: &$values,
        }
    };
}

#[expect(clippy::cast_possible_truncation, reason = "a weight that is written with a digit or two")]
fn narrowed(value: f64) -> f32 {
    value as f32
}

/// The parameters of words and of context.
const OF_WORDS: &[Parameter] = &[
    parameter!(neighbor, [0.0, 0.1, 0.2, 0.3, 0.4, 0.6]),
    parameter!(date, [0.0, 0.25, 0.5, 1.0, 2.0]),
    parameter!(surroundings, [0.0, 0.5, 1.0, 1.5, 2.0]),
    parameter!(directory, [0.0, 0.5, 1.0, 1.5, 2.0]),
    parameter!(coverage, [0.0, 0.5, 1.0, 1.5, 2.0]),
    parameter!(nearness, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0]),
    parameter!(k1, [1.2, 1.6, 2.0, 2.5, 3.0, 4.0]),
    parameter!(b, [0.6, 0.75, 0.85, 0.95, 1.0]),
    parameter!(length_prior, [0.0, 10.0, 20.0, 30.0, 40.0, 60.0]),
    parameter!(long, [100.0, 200.0, 300.0, 500.0, 1000.0]),
    parameter!(neighbor_length, [100.0, 200.0, 400.0]),
    parameter!(weight of title, [0.5, 1.0, 2.0]),
    parameter!(weight of tag, [1.0, 2.0, 4.0, 6.0]),
    parameter!(weight of other, [0.25, 0.5, 0.75, 1.0]),
];

/// The weights of meaning.
const OF_MEANING: &[Parameter] = &[
    parameter!(similar, [0.1, 0.2, 0.35, 0.5, 0.7, 1.0]),
    parameter!(similar_floor, [0.0, 0.5, 1.0, 1.5, 2.0]),
    parameter!(similar_ceiling, [2.5, 3.0, 3.5, 4.0, 5.0, 6.0]),
    parameter!(similar_surroundings, [0.0, 0.5, 1.0, 1.5]),
];

/// What the questions are answered with, and the answers so far.
struct Trial<'t> {
    shelves: &'t [Shelf],
    engines: Vec<&'t Knowledge>,
    parameters: &'static [Parameter],
    /// The questions of each set that are asked.
    questions: Vec<Vec<&'t Question>>,
    /// The fold of each question of each set.
    folds: Vec<Vec<usize>>,
    /// The candidates, and the answers to the questions of each set.
    known: RefCell<Vec<(Scoring, Vec<Vec<Ranking>>)>>,
}

/// Looks for better parameters: those of meaning if there are engines with an encoder, otherwise those of words.
pub(super) fn run(shelves: &[Shelf], with_vectors: &[Knowledge]) {
    let by_words = shelves.iter().map(|shelf| &shelf.engine);
    let (engines, parameters) = if with_vectors.is_empty() {
        (by_words.collect(), OF_WORDS)
    } else {
        (with_vectors.iter().collect(), OF_MEANING)
    };
    let sample = |shelf: &'_ Shelf| -> usize { shelf.set.questions.len().div_ceil(QUESTIONS_MAX) };
    let questions = shelves.iter().map(|it| it.set.questions.iter().step_by(sample(it).max(1)));
    let questions: Vec<Vec<_>> = questions.map(Iterator::collect).collect();
    let folds = questions.iter().map(|questions| folds(questions)).collect();
    let known = RefCell::default();
    let trial = Trial { shelves, engines, parameters, questions, folds, known };
    trial.collect();
    let mut rows = vec![row(&[&"chosen without", &"parameters"])];
    let mut held_out = vec![Vec::new(); shelves.len()];
    for fold in 0..FOLDS {
        let best = trial.best(|it| it != fold);
        rows.push(row(&[&format!("fold {}", fold + 1), &trial.shown(&best)]));
        for (all, some) in held_out.iter_mut().zip(trial.rankings(&best, |it| it == fold)) {
            all.extend(some);
        }
    }
    let best = trial.best(|_| true);
    rows.push(row(&[&"(all)", &trial.shown(&best)]));
    print("Best parameters", &rows);
    let lines = [
        ("the defaults", trial.rankings(&Scoring::DEFAULT, |_| true)),
        ("chosen on other questions", held_out),
        ("chosen on the same questions", trial.rankings(&best, |_| true)),
    ];
    let mut rows =
        vec![row(&[&"set", &"parameters", &"recall@5", &"recall@10", &"MRR", &"nDCG@10"])];
    for (place, shelf) in shelves.iter().enumerate() {
        for (name, sets) in &lines {
            let scores = Scores::of(sets.get(place).map(Vec::as_slice).unwrap_or_default());
            let share = |value: f64| format!("{value:.3}");
            rows.push(row(&[
                &shelf.set.name,
                name,
                &share(scores.recall_5),
                &share(scores.recall_10),
                &share(scores.reciprocal_rank),
                &share(scores.gain_10),
            ]));
        }
    }
    print(&format!("Questions in {FOLDS} folds"), &rows);
}

/// Returns the fold of each question. Questions about the same note are in the same fold: otherwise
/// parameters could be fitted to a note by one of them, and rewarded for it by another.
fn folds(questions: &[&Question]) -> Vec<usize> {
    let subject = |question: &Question| question.answers.iter().min().cloned();
    let subjects: BTreeSet<_> = questions.iter().map(|it| subject(it)).collect();
    let place = |question: &&Question| subjects.iter().position(|it| *it == subject(question));
    questions.iter().map(|question| place(question).unwrap_or_default() % FOLDS).collect()
}

impl Trial<'_> {
    fn shown(&self, scoring: &Scoring) -> String {
        let shown = |it: &Parameter| format!("{} {}", it.name, (it.get)(scoring));
        self.parameters.iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    /// Tries candidates: each parameter moves to the next value as long as that is better.
    fn collect(&self) {
        let mut best = Scoring::DEFAULT;
        let mut best_value = self.value(&best, |_| true);
        for _ in 0..ROUNDS_MAX {
            let before = best;
            for parameter in self.parameters {
                let values = parameter.values;
                let lower = |from: f64| values.iter().copied().rfind(|value| *value < from);
                let higher = |from: f64| values.iter().copied().find(|value| *value > from);
                self.climb(parameter, &lower, (&mut best, &mut best_value));
                self.climb(parameter, &higher, (&mut best, &mut best_value));
            }
            if best == before || self.is_full() {
                break;
            }
        }
    }

    /// Moves one parameter in one direction as long as that is better.
    fn climb(
        &self,
        parameter: &Parameter,
        next: &dyn Fn(f64) -> Option<f64>,
        (best, best_value): (&mut Scoring, &mut f64),
    ) {
        while let Some(to) = next((parameter.get)(best)).filter(|_| !self.is_full()) {
            let mut scoring = *best;
            (parameter.set)(&mut scoring, to);
            let value = self.value(&scoring, |_| true);
            println!("{}: {value:.4} {}", self.known.borrow().len(), self.shown(&scoring));
            if value <= *best_value {
                break;
            }
            (*best, *best_value) = (scoring, value);
        }
    }

    fn is_full(&self) -> bool {
        self.known.borrow().len() >= CANDIDATES_MAX
    }

    /// Returns the candidate that is best for the questions of some folds.
    fn best(&self, is_asked: impl Fn(usize) -> bool) -> Scoring {
        let candidates: Vec<_> = self.known.borrow().iter().map(|(it, _)| *it).collect();
        let values = candidates.into_iter().map(|it| (self.value(&it, &is_asked), it));
        let best = values.reduce(|best, other| if other.0 > best.0 { other } else { best });
        best.map_or(Scoring::DEFAULT, |(_, scoring)| scoring)
    }

    /// Returns the mean over the sets, each of which counts the same however many questions it has.
    fn value(&self, scoring: &Scoring, is_asked: impl Fn(usize) -> bool) -> f64 {
        let sets = self.rankings(scoring, is_asked);
        let value = |rankings: &Vec<Ranking>| {
            let scores = Scores::of(rankings);
            scores.recall_10 + scores.reciprocal_rank + scores.gain_10
        };
        sets.iter().map(value).sum::<f64>() / ratio(sets.len(), 1)
    }

    /// Returns the answers to the questions of each set that are in some folds.
    fn rankings(&self, scoring: &Scoring, is_asked: impl Fn(usize) -> bool) -> Vec<Vec<Ranking>> {
        if !self.known.borrow().iter().any(|(known, _)| known == scoring) {
            let answered = self.answered(scoring);
            self.known.borrow_mut().push((*scoring, answered));
        }
        let known = self.known.borrow();
        let rankings = known.iter().find(|(known, _)| known == scoring).map(|it| &it.1);
        let asked = |(rankings, folds): (&Vec<Ranking>, &Vec<usize>)| {
            let all = rankings.iter().zip(folds);
            all.filter(|(_, fold)| is_asked(**fold)).map(|(ranking, _)| ranking.clone()).collect()
        };
        rankings.into_iter().flatten().zip(&self.folds).map(asked).collect()
    }

    /// Answers the questions of all sets, each in a thread of its own.
    fn answered(&self, scoring: &Scoring) -> Vec<Vec<Ranking>> {
        thread::scope(|scope| {
            let sets = self.shelves.iter().zip(&self.engines).zip(&self.questions);
            let threads = sets.map(|((shelf, engine), questions)| {
                let engine = engine.with_scoring(*scoring);
                let rank = move |question: &&Question| rank(&engine, shelf.store, question, DEPTH);
                scope.spawn(move || questions.iter().map(rank).collect())
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|it| it.join().expect("searches do not panic")).collect()
        })
    }
}
