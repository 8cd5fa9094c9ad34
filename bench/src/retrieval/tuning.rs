//! Chooses the parameters of ranking by cross-validation.
//!
//! The questions are divided into folds. For each fold, the parameters that are best for all other
//! questions are looked for, and then scored on the fold. So the scores that are reported come from
//! questions that had no say in the choice, and show whether a gain would carry over to others.
//! Parameters that are chosen and scored on the same questions always look better than they are.

use std::cell::RefCell;
use std::collections::BTreeSet;

use quipu_core::model::StoreId;
use quipu_knowledge::{Knowledge, Scoring};

use super::{Question, Ranking, Scores, rank};
use crate::table::{print, row};

const FOLDS: usize = 5;

/// How often the search for better parameters goes through all of them.
const ROUNDS_MAX: usize = 6;

/// A parameter and the values to try. The order is that in which they are changed.
type Parameter = (fn(&mut Scoring, f32), &'static [f32]);

const PARAMETERS: [Parameter; 6] = [
    (|it, value| it.b = f64::from(value), &[0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0]),
    (|it, value| it.k1 = f64::from(value), &[0.6, 0.9, 1.2, 1.6, 2.0, 2.5]),
    (|it, value| it.title = value, &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0]),
    (|it, value| it.heading = value, &[0.0, 0.5, 1.0, 1.5, 2.5, 4.0]),
    (|it, value| it.tag = value, &[0.5, 1.0, 2.0, 4.0, 6.0]),
    (|it, value| it.other = value, &[0.1, 0.2, 0.4, 0.7, 1.0, 1.5]),
];

/// What the questions are answered with, and the answers so far.
struct Trial<'t> {
    engine: &'t Knowledge,
    store: StoreId,
    questions: &'t [Question],
    known: RefCell<Vec<(Scoring, Vec<Ranking>)>>,
}

pub(super) fn run(engine: &Knowledge, store: StoreId, questions: &[Question]) {
    let trial = Trial { engine, store, questions, known: RefCell::default() };
    let folds = folds(questions);
    let everywhere = |_: usize| true;
    let mut held_out = Vec::new();
    let mut rows = vec![row(&[&"chosen without", &"parameters"])];
    for fold in 0..FOLDS {
        let is_held_out = |place: usize| folds.get(place) == Some(&fold);
        let best = trial.best(|place| !is_held_out(place));
        rows.push(row(&[&format!("fold {}", fold + 1), &shown(&best)]));
        held_out.extend(trial.rankings(&best, is_held_out));
    }
    let best = trial.best(everywhere);
    rows.push(row(&[&"(all)", &shown(&best)]));
    print("Best parameters", &rows);
    let lines = [
        ("the defaults", trial.rankings(&Scoring::DEFAULT, everywhere)),
        ("chosen on other questions", held_out),
        ("chosen on the same questions", trial.rankings(&best, everywhere)),
    ];
    let mut rows = vec![row(&[&"parameters", &"recall@5", &"recall@10", &"MRR", &"nDCG@10"])];
    for (name, rankings) in lines {
        let scores = Scores::of(&rankings);
        let share = |value: f64| format!("{value:.3}");
        rows.push(row(&[
            &name,
            &share(scores.recall_5),
            &share(scores.recall_10),
            &share(scores.reciprocal_rank),
            &share(scores.gain_10),
        ]));
    }
    print(&format!("{} questions in {FOLDS} folds", questions.len()), &rows);
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
    let Scoring { k1, b, title, tag, heading, other } = scoring;
    format!("k1 {k1:.2}, b {b:.2}, title {title}, tag {tag}, heading {heading}, other {other}")
}

impl Trial<'_> {
    /// Returns the parameters that are best for some questions, by coordinate descent.
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

    fn value(&self, scoring: &Scoring, is_asked: impl Fn(usize) -> bool) -> f64 {
        let scores = Scores::of(&self.rankings(scoring, is_asked));
        scores.recall_10 + scores.reciprocal_rank
    }

    fn rankings(&self, scoring: &Scoring, is_asked: impl Fn(usize) -> bool) -> Vec<Ranking> {
        if !self.known.borrow().iter().any(|(known, _)| known == scoring) {
            let engine = self.engine.with_scoring(*scoring);
            let ask = |question| rank(&engine, self.store, question);
            let rankings = self.questions.iter().map(ask).collect();
            self.known.borrow_mut().push((*scoring, rankings));
        }
        let known = self.known.borrow();
        let rankings =
            known.iter().find(|(known, _)| known == scoring).map(|(_, rankings)| rankings);
        let asked =
            rankings.into_iter().flatten().enumerate().filter(|(place, _)| is_asked(*place));
        asked.map(|(_, ranking)| ranking.clone()).collect()
    }
}
