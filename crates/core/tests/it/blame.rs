//! Who wrote each line.

use std::time::Duration;

use proptest::prelude::*;
use quipu_core::engine::{BlamedLine, Precision, Precondition};
use quipu_core::model::{Actor, Memory, PrincipalName};
use quipu_core::settings::Limits;

use crate::support::{Fixture, actor, content, fixture, fixture_with, path};

fn write(fixture: &Fixture, name: &str, text: &str) -> Memory {
    let actor = Actor::User(PrincipalName::from_host(name));
    let target = (&path("/a"), &content(text));
    fixture.engine.put(&actor, fixture.store, target, Precondition::None).unwrap().memory
}

/// Returns the author of each line, in parentheses if the line may be older.
fn authors(fixture: &Fixture, memory: &Memory) -> Vec<String> {
    let line = |line: &BlamedLine| {
        let author = line.actor.to_string().replace("user_", "");
        match line.precision {
            Precision::Exact => format!("{author}: {}", line.text),
            Precision::AtMost => format!("({author}): {}", line.text),
        }
    };
    fixture.engine.blame(fixture.store, memory.id).unwrap().iter().map(line).collect()
}

#[test]
fn a_line_belongs_to_the_version_that_brought_it() {
    let fixture = fixture();
    write(&fixture, "ada", "one\ntwo\nthree\n");
    write(&fixture, "bob", "one\n2\nthree\n");
    let memory = write(&fixture, "cyd", "zero\none\n2\nthree\nfour");
    assert_eq!(
        authors(&fixture, &memory),
        ["cyd: zero", "ada: one", "bob: 2", "ada: three", "cyd: four"]
    );
    let blamed = fixture.engine.blame(fixture.store, memory.id).unwrap();
    assert_eq!(blamed[0].version, memory.version);
    assert_eq!(blamed[0].created_at, memory.updated_at);
}

#[test]
fn a_move_brings_no_line_and_a_restored_memory_starts_over() {
    let fixture = fixture();
    let memory = write(&fixture, "ada", "one\n");
    fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")).unwrap();
    assert_eq!(authors(&fixture, &memory), ["ada: one"]);
    fixture.engine.delete_at(&actor(), fixture.store, &path("/b")).unwrap();
    let bob = Actor::User(PrincipalName::from_host("bob"));
    fixture.engine.restore(&bob, fixture.store, memory.version, None).unwrap();
    assert_eq!(authors(&fixture, &memory), ["bob: one"]);
}

#[test]
fn what_cannot_be_told_is_marked() {
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 3, ..Limits::default() };
    let fixture = fixture_with(limits);
    write(&fixture, "ada", "one\n");
    write(&fixture, "bob", "one\ntwo\n");
    let redacted = write(&fixture, "cyd", "one\ntwo\nthree\n");
    let memory = write(&fixture, "dan", "one\ntwo\nthree\nfour\n");
    fixture.clock.advance(Duration::from_secs(1));
    fixture.engine.prune().unwrap();
    assert_eq!(authors(&fixture, &memory), ["(bob): one", "(bob): two", "cyd: three", "dan: four"]);
    fixture.engine.redact(&actor(), fixture.store, &[redacted.version]).unwrap();
    let authors = authors(&fixture, &memory);
    assert_eq!(authors, ["(bob): one", "(bob): two", "(dan): three", "(dan): four"]);
}

proptest! {
    /// The lines are those of the text, and each was in every text since its version.
    #[test]
    fn lines_and_versions_fit(
        texts in prop::collection::vec(prop::collection::vec(0..6_u8, 0..8), 1..8),
    ) {
        let fixture = fixture();
        let joined = |lines: &Vec<u8>| lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect::<String>();
        let memories: Vec<_> =
            texts.iter().map(|lines| write(&fixture, "ada", &joined(lines))).collect();
        let last = memories.last().unwrap();
        let blamed = fixture.engine.blame(fixture.store, last.id).unwrap();
        let text: String = blamed.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
        prop_assert_eq!(text, joined(texts.last().unwrap()));
        for line in blamed {
            let place = memories.iter().position(|memory| memory.version == line.version).unwrap();
            let count = |place: usize| {
                texts[place].iter().filter(|it| it.to_string() == line.text).count()
            };
            // It was there from then on; a line that came back later belongs to that later version.
            prop_assert!((place..texts.len()).all(|later| count(later) > 0));
        }
    }
}
