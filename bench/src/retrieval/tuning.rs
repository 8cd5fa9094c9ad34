//! Chooses the parameters of ranking by cross-validation.
//!
//! The questions are divided into folds. For each fold, the parameters that are best for all other
//! questions are looked for, and then scored on the fold. So the scores that are reported come from
//! questions that had no say in the choice, and show whether a gain would carry over to others.
//! Parameters that are chosen and scored on the same questions always look better than they are.

use std::cell::RefCell;
use std::collections::BTreeSet;

use quipu_knowledge::Scoring;

use super::sets::Question;
use super::{Ranking, Scores, Shelf, rank, ratio};
use crate::table::{print, row};

const FOLDS: usize = 5;

/// How often the search for better parameters goes through all of them.
const ROUNDS_MAX: usize = 6;

/// How many hits are examined for answers. A deeper page takes longer, because each hit is shown
/// with an excerpt.
const DEPTH: usize = 10;

/// A parameter and the values to try. The order is that in which they are changed.
type Parameter = (fn(&mut Scoring, f32), &'static [f32]);

const PARAMETERS: [Parameter; 12] = [
    (|it, value| it.length_prior = f64::from(value), &[0.0, 5.0, 10.0, 20.0, 40.0]),
    (|it, value| it.b = f64::from(value), &[0.4, 0.6, 0.75, 0.85, 0.9, 0.95, 1.0]),
    (|it, value| it.k1 = f64::from(value), &[0.9, 1.2, 1.6, 2.0, 2.5, 3.0]),
    (|it, value| it.coverage = f64::from(value), &[0.0, 0.25, 0.5, 1.0, 2.0, 4.0]),
    (|it, value| it.nearness = f64::from(value), &[0.0, 0.25, 0.5, 1.0]),
    (|it, value| it.neighbor = f64::from(value), &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
    (|it, value| it.neighbor_length = f64::from(value), &[100.0, 200.0, 300.0, 500.0]),
    (|it, value| it.directory = f64::from(value), &[0.0, 0.5, 1.0, 2.0]),
    (|it, value| it.title = value, &[0.5, 1.0, 2.0, 3.0, 4.0]),
    (|it, value| it.heading = value, &[0.0, 0.25, 0.5, 1.0]),
    (|it, value| it.tag = value, &[1.0, 2.0, 4.0, 6.0]),
    (|it, value| it.other = value, &[0.1, 0.2, 0.4, 0.7, 1.0]),
];

/// What the questions are answered with, and the answers so far.
struct Trial<'t> {
    shelves: &'t [Shelf],
    /// The fold of each question of each set.
    folds: Vec<Vec<usize>>,
    /// The answers to the questions of each set.
    known: RefCell<Vec<(Scoring, Vec<Vec<Ranking>>)>>,
}

pub(super) fn run(shelves: &[Shelf]) {
    let folds = shelves.iter().map(|shelf| folds(&shelf.set.questions)).collect();
    let trial = Trial { shelves, folds, known: RefCell::default() };
    let mut rows = vec![row(&[&"chosen without", &"parameters"])];
    let mut held_out = vec![Vec::new(); shelves.len()];
    for fold in 0..FOLDS {
        let best = trial.best(|it| it != fold);
        rows.push(row(&[&format!("fold {}", fold + 1), &shown(&best)]));
        for (all, some) in held_out.iter_mut().zip(trial.rankings(&best, |it| it == fold)) {
            all.extend(some);
        }
    }
    let best = trial.best(|_| true);
    rows.push(row(&[&"(all)", &shown(&best)]));
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
fn folds(questions: &[Question]) -> Vec<usize> {
    let subject = |question: &Question| question.answers.iter().min().cloned();
    let subjects: BTreeSet<_> = questions.iter().map(subject).collect();
    let place = |question: &Question| subjects.iter().position(|it| *it == subject(question));
    questions.iter().map(|question| place(question).unwrap_or_default() % FOLDS).collect()
}

fn shown(scoring: &Scoring) -> String {
    let Scoring { k1, b, length_prior, coverage, nearness, .. } = scoring;
    let Scoring { neighbor, neighbor_length, directory, .. } = scoring;
    let Scoring { title, tag, heading, other, .. } = scoring;
    format!(
        "k1 {k1:.2}, b {b:.2}, length prior {length_prior:.0}, coverage {coverage:.2}, \
         nearness {nearness:.2}, neighbor {neighbor:.2} below \
         {neighbor_length:.0}, directory {directory:.2}, title {title}, tag {tag}, \
         heading {heading}, other {other}"
    )
}

impl Trial<'_> {
    /// Returns the parameters that are best for the questions of some folds, by coordinate descent.
    fn best(&self, is_asked: impl Fn(usize) -> bool) -> Scoring {
        let mut best = Scoring::DEFAULT;
        let mut best_value = self.value(&best, &is_asked);
        for _ in 0..ROUNDS_MAX {
            let before = best;
            let changes = PARAMETERS
                .iter()
                .flat_map(|(set, values)| values.iter().map(move |value| (set, *value)));
            for (set, value) in changes {
                let mut scoring = best;
                set(&mut scoring, value);
                let value = self.value(&scoring, &is_asked);
                if value > best_value {
                    (best, best_value) = (scoring, value);
                }
            }
            if best == before {
                break;
            }
        }
        best
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
            let answered = |Shelf { set, engine, store, .. }: &Shelf| {
                let engine = engine.with_scoring(*scoring);
                let rank = |question| rank(&engine, *store, question, DEPTH);
                set.questions.iter().map(rank).collect()
            };
            let rankings = self.shelves.iter().map(answered).collect();
            self.known.borrow_mut().push((*scoring, rankings));
        }
        let known = self.known.borrow();
        let rankings = known.iter().find(|(known, _)| known == scoring).map(|it| &it.1);
        let asked = |(rankings, folds): (&Vec<Ranking>, &Vec<usize>)| {
            let all = rankings.iter().zip(folds);
            all.filter(|(_, fold)| is_asked(**fold)).map(|(ranking, _)| ranking.clone()).collect()
        };
        rankings.into_iter().flatten().zip(&self.folds).map(asked).collect()
    }
}
