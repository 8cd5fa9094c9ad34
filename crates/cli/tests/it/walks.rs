//! ARCHITECTURE.md walks through the code. A walk that names what is gone is worse than none.

use std::fs;
use std::path::Path;

use crate::support::root;

/// Fewer steps would not lead through every layer.
const STEPS_MIN: usize = 5;

/// A function that a walk names, as in `crates/core/src/engine.rs::change_for`.
type Named<'d> = (&'d str, &'d str);

/// Returns the titles and texts of the walks.
fn walks(document: &str) -> Vec<(&str, &str)> {
    let sections = document.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.filter(|(title, _)| title.starts_with("One ")).collect()
}

/// Returns the numbered steps of a walk.
fn steps(walk: &str) -> Vec<&str> {
    let start = |number: usize| format!("\n{number}. ");
    let from = |number: usize| walk.split_once(&start(number)).map(|(_, rest)| (number, rest));
    let until_next = |(number, rest): (usize, &'_ str)| -> usize {
        [start(number + 1), "\n\n".to_owned()]
            .iter()
            .filter_map(|end| rest.find(end))
            .min()
            .unwrap_or(rest.len())
    };
    let numbered = (1..).map_while(from);
    numbered.filter_map(|step| step.1.get(..until_next(step))).collect()
}

/// Returns the functions that a text names between backticks.
fn named(text: &str) -> Vec<Named<'_>> {
    let quoted = text.split('`').skip(1).step_by(2);
    let split = quoted.filter_map(|name| name.rsplit_once("::"));
    let is_file = |file: &str| Path::new(file).extension().is_some_and(|it| it == "rs");
    split.filter(|(file, _)| is_file(file)).collect()
}

/// Returns what is wrong with a name.
fn problem((file, function): Named<'_>) -> Option<String> {
    let Ok(text) = fs::read_to_string(root().join(file)) else {
        return Some(format!("there is no file `{file}`"));
    };
    // Other names may begin with this one.
    let mut declarations = ["(", "<"].iter().map(|next| format!("fn {function}{next}"));
    let is_declared = declarations.any(|declaration| text.contains(&declaration));
    (!is_declared).then(|| format!("`{file}` has no function `{function}`"))
}

#[test]
fn the_walks_name_functions_that_exist() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it can be read");
    let walks = walks(&document);
    let titles: Vec<_> = walks.iter().map(|(title, _)| *title).collect();
    assert_eq!(titles, ["One write", "One search", "One redaction", "One page", "One mount read"]);
    for (title, walk) in walks {
        let steps = steps(walk);
        assert!(steps.len() >= STEPS_MIN, "{title}: {steps:#?}");
        for step in steps {
            assert!(!named(step).is_empty(), "{title}: names no function: {step}");
        }
        let problems: Vec<_> = named(walk).into_iter().filter_map(problem).collect();
        assert!(problems.is_empty(), "{title}: {problems:#?}");
    }
}

#[test]
fn a_wrong_name_is_noticed() {
    let file = "crates/cli/src/main.rs";
    let text =
        format!("1. `{file}::main`, `{file}::mai` and `crates/cli/src/no.rs::main`, in `a::b`");
    let problems: Vec<_> = named(&text).into_iter().filter_map(problem).collect();
    let no_function = format!("`{file}` has no function `mai`");
    assert_eq!(problems, [no_function.as_str(), "there is no file `crates/cli/src/no.rs`"]);
}

#[test]
fn steps_end_where_the_next_one_begins() {
    let walk = "intro\n\n1. one\n   more\n2. two\n\nafter 3. not a step\n";
    assert_eq!(steps(walk), ["one\n   more", "two"]);
}
