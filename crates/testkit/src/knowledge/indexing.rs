//! How the index follows what is written.

use std::fs;
use std::thread;
use std::time::Duration;

use quipu_core::backend::PruneRule;
use quipu_core::engine::Precondition;
use quipu_knowledge::{INDEX_FILE, SearchRequest};

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
    assert_sound(&library);
}

/// The same across handles, as across processes.
pub fn what_was_written_through_another_handle_is_found_at_once(fixture: &Fixture) {
    let library = Library::of(fixture);
    let other = library.again(fixture);
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
    assert_no_file_holds(&library, "hunter2");
    assert_eq!(library.find("hunter2"), Vec::<String>::new());
    assert_eq!(library.find("clean"), ["/a"]);
    assert_sound(&library);
}

/// Nothing of the store is left, and the others stay.
pub fn a_deleted_store_leaves_the_index(fixture: &Fixture) {
    let library = Library::of(fixture);
    let doomed = new_store(&library.engine, "doomed");
    put(&library.engine, doomed, "/gone", "tea kettle\n- [fact] y\n- z [[A]]");
    put(&library.engine, doomed, "/gone2", "tea");
    library.put("/kept", "tea");
    let request = SearchRequest::new(vec![doomed], "kettle");
    assert_eq!(paths(&library.search(&request)), ["/gone"]);
    put(&library.engine, doomed, "/unindexed", "tea");
    library.engine.erase_store(doomed).expect("it deletes");
    assert_no_file_holds(&library, "kettl");
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

/// What was changed in the file is noticed by whoever reads it, although it could be right, and made
/// again.
pub fn rows_that_were_changed_are_not_trusted(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "# Kettle\n\ntea\n- [fact] hot\n- part_of [[Kitchen]]");
    library.put("/b", "tea");
    for change in [
        "UPDATE notes SET card = CAST(replace(card, 'ettl', 'abbl') AS BLOB)",
        "UPDATE notes SET totals = x'010101090909'",
        "UPDATE stores SET at = at + 1000000",
        "UPDATE stores SET totals = x'09090909090901020304'",
        "UPDATE segments SET dead = 1",
        "UPDATE segments SET state = 2",
        "UPDATE segments SET memories = 1 << 62",
        "UPDATE segments SET store = store + 1",
        "UPDATE columns SET memory_ids = observation_lengths",
        "UPDATE columns SET memory_lengths = zeroblob(length(memory_lengths))",
        "UPDATE postings SET data = zeroblob(length(data))",
        "UPDATE positions SET data = substr(data, 2)",
        "DELETE FROM positions",
        "DELETE FROM columns",
        "INSERT INTO dead SELECT id, 0, x'01' FROM segments; UPDATE segments SET dead = 1",
        "DROP TABLE notes",
        "ALTER TABLE postings RENAME TO lists",
        "DELETE FROM numbers",
    ] {
        assert_eq!(library.find("\"tea hot\""), Vec::<String>::new());
        library.change_index(change);
        library.put("/c", change);
        assert_eq!(library.find_sorted("tea"), ["/a", "/b"], "{change}");
        assert_eq!(library.find("\"kettle\""), ["/a"], "{change}");
        assert_sound(&library);
    }
}

/// When the feed no longer holds what the index has not seen, nothing is missing all the same.
pub fn an_index_that_missed_changes_is_rebuilt(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "tea");
    library.put("/kept", "tea");
    library.find("tea");
    library.put("/b", "tea");
    library.delete("/a");
    library.clock.advance(Duration::from_hours(24 * 60));
    library.put("/c", "tea");
    let rule = PruneRule { before: library.clock_now(), keep_newest: 1 };
    fixture.prune(&rule, usize::MAX);
    assert_eq!(library.find_sorted("tea"), ["/b", "/c", "/kept"]);
    assert_sound(&library);
}

/// "Removing the index is always safe and heals itself", also while it is used.
pub fn an_index_that_was_removed_is_rebuilt(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "tea");
    assert_eq!(library.find("tea"), ["/a"]);
    for suffix in ["", "-wal", "-shm"] {
        let path = library.directory.path().join(format!("{INDEX_FILE}{suffix}"));
        fs::remove_file(path).expect("it is removed");
    }
    library.put("/b", "tea");
    assert_eq!(library.find_sorted("tea"), ["/a", "/b"]);
    assert_sound(&library);
}

/// "An index of another format is rebuilt, never trusted."
pub fn an_index_of_another_format_is_rebuilt(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "tea");
    library.find("tea");
    library.change_index("PRAGMA user_version = 999; DELETE FROM postings;");
    let other = library.again(fixture);
    let request = SearchRequest::new(vec![library.store], "tea");
    assert_eq!(paths(&other.search(&request).expect("it searches")), ["/a"]);
    assert_sound(&library);
}

/// A backup that was put in the place of the data may be older than the index.
pub fn an_index_of_another_database_is_rebuilt(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "tea");
    library.find("tea");
    library.change_index("UPDATE stores SET sequence = sequence + 1000000");
    library.put("/b", "tea");
    assert_eq!(library.find_sorted("tea"), ["/a", "/b"]);
    assert_sound(&library);
}

/// A file that is no database, or not a sound one, is replaced by one that is.
pub fn a_damaged_file_is_replaced(fixture: &Fixture) {
    let library = Library::of(fixture);
    let path = library.directory.path().join(INDEX_FILE);
    fs::write(&path, "rubbish".repeat(2_000)).expect("it is written");
    library.put("/a", "tea");
    assert_eq!(library.find("tea"), ["/a"]);
    library.change_index("UPDATE postings SET data = x'ff'");
    assert_eq!(library.find("tea"), ["/a"]);
    library.change_index("UPDATE segments SET memories = 7; UPDATE columns SET memory_ids = x'01'");
    assert_eq!(library.find("tea"), ["/a"]);
    assert_sound(&library);
}

/// "Order and scores in a store depend on that store alone."
pub fn scores_and_order_depend_on_no_other_store(fixture: &Fixture) {
    let library = Library::of(fixture);
    for (path, text) in [("/a", "tea tea kettle"), ("/b", "tea water"), ("/c", "kettle water")] {
        library.put(path, text);
    }
    let scores = || -> Vec<(String, f64)> {
        let found = ["tea kettle", "water", "kettle"].iter().flat_map(|text| {
            let page = library.search(&library.request(text));
            page.hits.into_iter().map(|hit| (hit.note.path.as_str().to_owned(), hit.score))
        });
        found.collect()
    };
    let before = scores();
    let other = new_store(&library.engine, "other");
    for number in 0..50 {
        put(&library.engine, other, &format!("/{number}"), "kettle kettle water secretword");
    }
    let request = SearchRequest::new(vec![other], "kettle");
    assert_eq!(library.search(&request).total.count, 50);
    assert_eq!(scores(), before);
}

/// Fails if any file of the index holds a word.
fn assert_no_file_holds(library: &Library, word: &str) {
    for entry in fs::read_dir(library.directory.path()).expect("a directory") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).expect("a file");
        let is_there = bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!is_there, "`{word}` is in {}", path.display());
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
    let engine = library.again(fixture);
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
