//! How the index follows what is written.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use quipu_core::Engine;
use quipu_core::backend::Sequence;
use quipu_core::engine::{Precondition, Remedy, SearchRequest};
use quipu_core::index::{FIRST_INDEX_CURSOR, INDEX_CURSOR};
use quipu_core::settings::Limits;

use super::{Library, actor, at, new_store, paths, put};
use crate::conformance::Fixture;

fn assert_sound(library: &Library) {
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

/// A search sees everything that was acknowledged before it began.
pub fn what_was_written_is_found_at_once(fixture: &Fixture) {
    let library = Library::of(fixture);
    for number in 0..300 {
        library.put(&format!("/{number}"), &format!("unique{number} tea"));
        if number % 50 == 0 {
            assert_eq!(library.find(&format!("unique{number}")), [format!("/{number}")]);
        }
    }
    assert_eq!(library.find("unique299"), ["/299"]);
    assert_eq!(library.engine.index_pending().expect("it indexes"), 0);
    assert_sound(&library);
}

/// The same across handles, as across processes.
pub fn what_was_written_through_another_handle_is_found_at_once(fixture: &Fixture) {
    let library = Library::of(fixture);
    let clock = Arc::clone(&library.clock);
    let other = Engine::new(fixture.again(), clock as _, Limits::default());
    for number in 0..10 {
        put(&other, library.store, &format!("/{number}"), &format!("unique{number}"));
        assert_eq!(library.find(&format!("unique{number}")), [format!("/{number}")]);
        let request = SearchRequest::new(vec![library.store], format!("unique{number}"));
        assert_eq!(paths(&other.search(&request).expect("it searches")), [format!("/{number}")]);
    }
    assert_sound(&library);
}

/// The index holds what is there now, at its path, and nothing else.
pub fn what_was_changed_moved_or_deleted_is_found_as_it_is(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a.md", "# Kettle\n\n- [fact] whistles\n- uses [[Water]]");
    assert_eq!(library.find("whistles"), ["/a.md"]);
    library.put("/a.md", "# Kettle\n\nsilent");
    assert_eq!(library.find("whistles"), Vec::<String>::new());
    assert_eq!(library.find("silent"), ["/a.md"]);
    library.engine.rename(&actor(), library.store, &at("/a.md"), &at("/b.md")).expect("it moves");
    assert_eq!(library.find("silent"), ["/b.md"]);
    library.delete("/b.md");
    assert_eq!(library.find("silent"), Vec::<String>::new());
    library.put("/b.md", "silent again");
    assert_eq!(library.find("silent"), ["/b.md"]);
    // What else a title can be found by stands beside nothing.
    library.put("/title.md", "---\ntitle: Running parseJson tests\n---\n");
    for query in ["\"test json\"", "\"json parse\"", "\"json running\"", "ª", "a*"] {
        assert_eq!(library.find(query), Vec::<String>::new(), "{query}");
    }
    for query in ["json", "\"running parseJson\"", "\"tests\""] {
        assert_eq!(library.find(query), ["/title.md"], "{query}");
    }
    assert_sound(&library);
}

/// The index may still hold the version that is redacted.
pub fn redacted_text_leaves_the_index_even_if_it_is_behind(fixture: &Fixture) {
    let library = Library::of(fixture);
    let leaked = library.put("/a", "the password is hunter2");
    assert_eq!(library.find("hunter2"), ["/a"]);
    library.put("/a", "clean");
    let versions = [leaked.version];
    library.engine.redact(&actor(), library.store, &versions).expect("it redacts");
    let known = fixture.read(|reader| reader.note(library.store, leaked.id));
    assert_eq!(known, None);
    assert_eq!(library.find("hunter2"), Vec::<String>::new());
    assert_eq!(library.find("clean"), ["/a"]);
    assert_sound(&library);
}

/// Nothing of the store is left, and the others stay.
pub fn a_deleted_store_leaves_the_index(fixture: &Fixture) {
    let library = Library::of(fixture);
    let doomed = new_store(&library.engine, "doomed");
    let memory = put(&library.engine, doomed, "/gone", "tea\n- [fact] y\n- z [[A]]");
    put(&library.engine, doomed, "/gone2", "tea");
    library.put("/kept", "tea");
    assert_eq!(library.find("tea"), ["/kept"]);
    put(&library.engine, doomed, "/unindexed", "tea");
    library.engine.erase_store(doomed).expect("it deletes");
    assert_eq!(fixture.read(|reader| reader.note(doomed, memory.id)), None);
    assert_eq!(library.find("tea"), ["/kept"]);
    assert_sound(&library);
}

/// An entry never outlives the version that it was made of.
pub fn pruned_versions_leave_the_index(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "tea");
    library.find("tea");
    library.delete("/a");
    library.put("/b", "tea");
    library.clock.advance(Duration::from_hours(24 * 60));
    library.engine.prune().expect("it prunes");
    assert_eq!(library.find("tea"), ["/b"]);
    assert_sound(&library);
}

/// "The index … can be made again at any time."
pub fn a_rebuilt_index_is_the_same(fixture: &Fixture) {
    let library = Library::of(fixture);
    for number in 0..200 {
        let text = format!("# Note {number}\n\ntea [[Note {}]]\n- [fact] x{number}", number + 1);
        library.put(&format!("/{number:03}"), &text);
    }
    let before = (library.find("tea"), library.find("x77"), library.find("tag:none"));
    library.engine.rebuild().expect("it rebuilds");
    let after = (library.find("tea"), library.find("x77"), library.find("tag:none"));
    assert_eq!(before.0.len(), after.0.len());
    assert_eq!(before.1, after.1);
    assert_eq!(before.2, after.2);
    assert_sound(&library);
}

/// A wrong entry and a missing one are found, and a rebuilding mends them.
pub fn a_damaged_index_is_noticed_and_mended(fixture: &Fixture) {
    let library = Library::of(fixture);
    let missing = library.put("/missing", "tea");
    library.put("/kept", "tea");
    library.find("tea");
    fixture.write(|writer| writer.remove_note(library.store, missing.id));
    let report = library.engine.check().expect("it checks");
    assert!(matches!(report.problems.as_slice(), [only]
        if only.remedy == Remedy::Rebuild && only.message.contains("/missing")));
    library.engine.rebuild().expect("it rebuilds");
    assert_eq!(library.find_sorted("tea"), ["/kept", "/missing"]);
    assert_sound(&library);
}

/// When the feed no longer holds what the index has not seen, nothing is missing all the same.
pub fn an_index_that_missed_changes_is_built_anew(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "tea");
    library.find("tea");
    library.put("/b", "tea");
    library.delete("/a");
    fixture.write(|writer| writer.put_cursor(INDEX_CURSOR, Sequence(0)));
    library.clock.advance(Duration::from_hours(24 * 60));
    library.put("/c", "tea");
    let rule = quipu_core::backend::PruneRule { before: library.clock_now(), keep_newest: 10 };
    fixture.write(|writer| writer.prune(&rule, 0).map(drop));
    assert_eq!(library.find_sorted("tea"), ["/b", "/c"]);
    assert_sound(&library);
}

/// An index that another kind of program has made, or made anew meanwhile, is not trusted.
pub fn an_index_of_another_kind_is_built_anew(fixture: &Fixture) {
    let library = Library::of(fixture);
    let gone = library.put("/gone", "tea");
    library.put("/kept", "tea");
    library.find("tea");
    for step in 0..2 {
        fixture.write(|writer| writer.put_cursor(FIRST_INDEX_CURSOR, Sequence(1)));
        if step == 1 {
            library.delete("/gone");
            let version = [gone.version];
            library.engine.redact(&actor(), library.store, &version).expect("it redacts");
        }
        fixture.write(|writer| writer.remove_note(library.store, gone.id));
        assert_eq!(library.find("tea").len(), 2 - step);
        assert_eq!(fixture.read(|reader| reader.cursor(FIRST_INDEX_CURSOR)), None);
        assert_sound(&library);
    }
}

/// Several handles index while several write.
pub fn indexers_of_several_handles_do_not_harm_each_other(fixture: &Fixture) {
    let library = Library::of(fixture);
    thread::scope(|scope| {
        for thread in 0..4 {
            let library = &library;
            scope.spawn(move || write_and_search(fixture, library, thread));
        }
    });
    let request = SearchRequest { limit: 200, ..SearchRequest::new(vec![library.store], "tea") };
    assert_eq!(library.search(&request).hits.len(), 80);
    assert_sound(&library);
}

fn write_and_search(fixture: &Fixture, library: &Library, thread: usize) {
    let clock = Arc::clone(&library.clock);
    let engine = Engine::new(fixture.again(), clock as _, Limits::default());
    for number in 0..25 {
        let (path, word) = (format!("/{thread}/{number}"), format!("w{thread}x{number}"));
        let memory = put(&engine, library.store, &path, &format!("tea {word}"));
        let request = SearchRequest::new(vec![library.store], word.as_str());
        assert_eq!(paths(&engine.search(&request).expect("it searches")), [path]);
        if number % 5 == 0 {
            let gone = engine.delete(&actor(), library.store, memory.id, Precondition::None);
            gone.expect("it is deleted");
        }
    }
}

/// Broken frontmatter, deep nesting, long lines, no text at all.
pub fn strange_notes_are_indexed(fixture: &Fixture) {
    let library = Library::of(fixture);
    let texts = [
        String::new(),
        "---\n: : [broken\n---\nkettle".to_owned(),
        "---\ntitle: [a, {b: c}]\ntags: {x: y}\n---\nkettle".to_owned(),
        format!("{}kettle", "> ".repeat(2_000)),
        format!("kettle {}", "[[".repeat(20_000)),
        format!("kettle {}", "[[Same]] ".repeat(5_000)),
        format!("---\n{}---\nkettle", "k: v\n".repeat(5_000)),
        format!("---\nk: {}\n---\nkettle", "[".repeat(5_000)),
        "- [x] done\n- [] empty\n- [a] \n- [[only]] kettle".to_owned(),
        "\u{feff}---\ntitle: BOM\n---\nkettle".to_owned(),
        "\u{301}\u{302} kettle \u{0}x".replace('\0', ""),
    ];
    for (number, text) in texts.iter().enumerate() {
        library.put(&format!("/{number:02}.md"), text);
    }
    assert_eq!(library.find("kettle").len(), texts.len() - 1);
    assert_sound(&library);
    library.engine.rebuild().expect("it rebuilds");
    for number in 0..texts.len() {
        library.delete(&format!("/{number:02}.md"));
    }
    assert_eq!(library.find("kettle"), Vec::<String>::new());
    assert_sound(&library);
}
