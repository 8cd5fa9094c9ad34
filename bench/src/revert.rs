//! Reverting many changes at once, alone and merged with those of others.

use std::time::Instant;

use quipu_core::engine::{Approval, ChangeSelection, Goal, Precondition};
use quipu_core::model::{Actor, Content, PrincipalName, Reason};

use crate::engine::{self, Opened};
use crate::table::{median, number, print, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many memories the store holds
    #[arg(long, default_value_t = 10_000)]
    memories: u64,
    /// How many of them the reverted author has changed
    #[arg(long, default_value_t = 1_000)]
    changes: u64,
    /// How many lines each of them has
    #[arg(long, default_value_t = 40)]
    lines: u64,
    /// How many rounds are measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

pub(crate) fn run(arguments: &Arguments) {
    let opened = engine::open();
    opened.fill(arguments.memories, |memory| text(arguments, memory, ""));
    println!("{} changes in a store of {} memories", arguments.changes, arguments.memories);
    let mut rows = vec![row(&[&"seconds, median", &"plan", &"carry out"])];
    for (name, others) in [("nobody wrote after it", None), ("others did", Some("bob"))] {
        let (plan, done) = measure(arguments, &opened, others);
        rows.push(row(&[&name, &number(plan), &number(done)]));
    }
    print("Revert (goal: at most 1 second for 1,000 changes)", &rows);
}

/// Returns the text of a memory; an author changes a line of its own.
fn text(arguments: &Arguments, memory: u64, authors: &str) -> String {
    let line = |number: u64| match number {
        3 if authors.contains("rogue") => "what the rogue wrote\n".to_owned(),
        20 if authors.contains("bob") => "what others wrote\n".to_owned(),
        number => format!("line {number} of memory {memory}\n"),
    };
    (0..arguments.lines).map(line).collect()
}

/// Returns how many seconds it takes to plan the revert and to carry it out.
fn measure(arguments: &Arguments, opened: &Opened, others: Option<&str>) -> (f64, f64) {
    let (mut plans, mut reverts) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        // Everyone begins with the same texts, whatever the last round left.
        write(arguments, opened, "ada", "");
        let rogue = format!("rogue-{round}-{}", others.unwrap_or("alone"));
        write(arguments, opened, &rogue, "rogue");
        if let Some(others) = others {
            write(arguments, opened, others, "rogue bob");
        }
        let goal = Goal::Revert(ChangeSelection {
            actors: vec![by(&rogue)],
            ..ChangeSelection::default()
        });
        let begun = Instant::now();
        let plan = opened.engine.plan(opened.store, &goal).expect("it is planned");
        plans.push(begun.elapsed().as_secs_f64());
        assert_eq!(plan.left_count(), 0, "something is left");
        let reason = Reason::new("measured").expect("it is valid");
        let approval = Approval { expect: Some(plan.digest.into()), reason };
        let begun = Instant::now();
        let done = opened.engine.carry_out(&by("ada"), opened.store, &goal, &approval);
        reverts.push(begun.elapsed().as_secs_f64());
        let changed_count = done.expect("it is carried out").versions.len();
        assert_eq!(u64::try_from(changed_count), Ok(arguments.changes));
    }
    (median(plans), median(reverts))
}

fn by(name: &str) -> Actor {
    Actor::User(PrincipalName::from_host(name))
}

fn write(arguments: &Arguments, opened: &Opened, author: &str, authors: &str) {
    let actor = by(author);
    for memory in 0..arguments.changes {
        let content = Content::new(text(arguments, memory, authors)).expect("it is valid");
        let target = (&engine::path(memory), &content);
        let written = opened.engine.put(&actor, opened.store, target, Precondition::None);
        written.expect("it is written");
    }
}
