//! Indexes that are damaged, truncated, mixed up or foreign.
//!
//! Whatever the file contains, a search neither panics nor hangs, and its results are correct:
//! damage is detected when it is read, and the index is rebuilt.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use quipu_knowledge::{INDEX_FILE, Knowledge, SearchRequest, SearchTarget};
use quipu_testkit::InMemoryBackend;
use quipu_testkit::knowledge::Library;

/// A store whose index has segments of several sizes, dead documents, and all kinds of rows.
fn library() -> Library {
    let library = Library::new(Arc::new(InMemoryBackend::default()));
    for number in 0..50 {
        let text = format!(
            "---\ntags: [t{}]\nkind: k{}\n---\n# Note {number}\n\ngreen tea in cup {} of {number}\n\
             - [fact] hot water {number} #steep\n- part_of [[Note {}]]\n",
            number % 4,
            number % 3,
            number % 11,
            number / 2,
        );
        library.put(&format!("/d{}/{number}.md", number % 5), &text);
        if number % 7 == 0 {
            library.find("tea");
        }
    }
    for number in 0..20 {
        library.put(&format!("/d{}/{number}.md", number % 5), "black tea, rewritten");
    }
    library.delete("/d3/33.md");
    library.find("tea");
    library
}

const QUERIES: [&str; 5] =
    ["\"green tea\"", "cup 7", "rewr*", "tea NOT tag:t2", "path:/d3 (water OR rewritten)"];

const PAGE: usize = 4096;

/// How many bits of each page are flipped, one at a time; `QUIPU_CASES` sets it.
#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn rounds() -> usize {
    let wanted = std::env::var("QUIPU_CASES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(3)
}

type Answers = Vec<(String, Vec<(String, f64)>, usize)>;

/// Returns the results of all queries, with scores.
fn answers(knowledge: &Knowledge, library: &Library) -> Answers {
    let mut answers = Vec::new();
    for query in QUERIES {
        for target in [SearchTarget::Memories, SearchTarget::Observations, SearchTarget::Relations]
        {
            let request = SearchRequest {
                targets: vec![target],
                limit: 500,
                ..SearchRequest::new(vec![library.store], query)
            };
            let page = knowledge.search(&request).expect("it searches");
            assert!(!page.is_behind);
            let hit =
                |hit: &quipu_knowledge::SearchHit| (hit.note.path.as_str().to_owned(), hit.score);
            let hits = page.hits.iter().map(hit).collect();
            answers.push((format!("{query} {target:?}"), hits, page.total.count));
        }
    }
    answers
}

/// Another process on the same memories, whose index file has these bytes.
fn with_index(library: &Library, directory: &Path, bytes: &[u8]) -> Knowledge {
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(directory.join(format!("{INDEX_FILE}{suffix}"))).unwrap_or_default();
    }
    fs::write(directory.join(INDEX_FILE), bytes).expect("it is written");
    Knowledge::new(library.engine.engine().clone(), directory)
}

/// Returns the index file as it is when no process uses it.
fn closed_file(library: &Library) -> Vec<u8> {
    let path = library.directory.path().join(INDEX_FILE);
    let connection = rusqlite::Connection::open(&path).expect("it opens");
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        .expect("the log is moved");
    fs::read(&path).expect("it is read")
}

#[test]
fn any_flipped_bit_is_detected_or_harmless() {
    let library = library();
    let expected = answers(&library.engine, &library);
    let pristine = closed_file(&library);
    let directory = tempfile::tempdir().expect("a directory");
    for page in 0..pristine.len() / PAGE {
        for round in 0..rounds() {
            // The header of a page comes first; rows fill the page from its end.
            let number = page * 31 + round * 7;
            let place = [number % 24, number * 37 % PAGE, PAGE - 1 - number % 400][round % 3];
            let bit = number % 8;
            let mut bytes = pristine.clone();
            bytes[page * PAGE + place] ^= 1 << bit;
            let knowledge = with_index(&library, directory.path(), &bytes);
            let found = answers(&knowledge, &library);
            assert!(found == expected, "page {page}, byte {place}, bit {bit}");
        }
    }
}

#[test]
fn a_truncated_or_sparse_file_is_replaced() {
    let library = library();
    let expected = answers(&library.engine, &library);
    let pristine = closed_file(&library);
    let directory = tempfile::tempdir().expect("a directory");
    let pages = pristine.len() / PAGE;
    for part in 0..8 {
        let cut = pages * part / 8 * PAGE + part * 511;
        let mut torn = pristine.clone();
        torn.truncate(cut);
        let knowledge = with_index(&library, directory.path(), &torn);
        assert!(answers(&knowledge, &library) == expected, "cut at {cut}");
        // After a power failure: sectors that were never written.
        let mut torn = pristine.clone();
        let hole = (pages * part / 8 * PAGE + 512)..;
        torn[hole].iter_mut().take(3 * 512).for_each(|byte| *byte = 0);
        let knowledge = with_index(&library, directory.path(), &torn);
        assert!(answers(&knowledge, &library) == expected, "a hole in part {part}");
    }
}

/// Pages of an older state among those of a newer one, as in a copy without its log.
#[test]
fn a_mixture_of_two_states_is_not_trusted() {
    let library = library();
    let old = closed_file(&library);
    for number in 0..40 {
        library.put(&format!("/new/{number}.md"), "green tea, later");
        library.find("later");
    }
    let expected = answers(&library.engine, &library);
    let new = closed_file(&library);
    let directory = tempfile::tempdir().expect("a directory");
    let pages = old.len().min(new.len()) / PAGE;
    for keep in 1..12 {
        let mut mixed = new.clone();
        for page in (0..pages).filter(|page| page % 12 == keep) {
            let place = page * PAGE..(page + 1) * PAGE;
            mixed[place.clone()].copy_from_slice(&old[place]);
        }
        let knowledge = with_index(&library, directory.path(), &mixed);
        assert!(answers(&knowledge, &library) == expected, "every {keep}th page is old");
    }
}

#[test]
fn files_that_are_not_an_index_are_replaced() {
    let library = library();
    let expected = answers(&library.engine, &library);
    let directory = tempfile::tempdir().expect("a directory");
    let foreign = directory.path().join("foreign.db");
    rusqlite::Connection::open(&foreign)
        .and_then(|it| {
            it.execute_batch(
                "CREATE TABLE a (x INTEGER PRIMARY KEY AUTOINCREMENT, y);
                INSERT INTO a (y) VALUES (1); CREATE VIEW v AS SELECT * FROM a;",
            )
        })
        .expect("it is made");
    let foreign = fs::read(&foreign).expect("it is read");
    for bytes in [&b""[..], b"x", b"SQLite format 3\0", &[0; 8192], &[255; 4096], &foreign] {
        let knowledge = with_index(&library, directory.path(), bytes);
        assert!(answers(&knowledge, &library) == expected, "{} bytes", bytes.len());
        assert_eq!(knowledge.check().expect("it checks").problems, []);
    }
}

/// "`rm` of `-wal`, of the index under a running server", while another one comes and goes.
#[test]
fn unlinking_files_of_an_index_in_use_loses_nothing() {
    let library = library();
    let name = |suffix: &str| library.directory.path().join(format!("{INDEX_FILE}{suffix}"));
    let removals: [&[&str]; 6] =
        [&[""], &["-wal"], &["-shm"], &["-wal", "-shm"], &["", "-shm"], &["", "-wal", "-shm"]];
    for (number, suffixes) in removals.iter().cycle().take(18).enumerate() {
        let before = format!("/removal/{number}a.md");
        library.put(&before, &format!("before{number}x"));
        assert_eq!(library.find(&format!("before{number}x")), [before]);
        for suffix in *suffixes {
            fs::remove_file(name(suffix)).expect("it is removed");
        }
        let after = format!("/removal/{number}b.md");
        library.put(&after, &format!("after{number}x"));
        // One process that opens the index for the first time, and one that has everything open.
        let other = Knowledge::new(library.engine.engine().clone(), library.directory.path());
        let word = format!("after{number}x");
        let request = SearchRequest::new(vec![library.store], word.as_str());
        assert_eq!(other.search(&request).expect("it searches").hits.len(), 1, "{suffixes:?}");
        assert_eq!(library.find(&word), [after], "{suffixes:?}");
        assert_eq!(library.find(&format!("before{number}x")).len(), 1, "{suffixes:?}");
        assert_eq!(library.engine.check().expect("it checks").problems, [], "{suffixes:?}");
    }
}

/// A directory in which nothing can be created, and a disk from which nothing can be removed.
#[test]
fn an_index_that_cannot_be_created_is_searched_in_memory() {
    let library = library();
    let expected = answers(&library.engine, &library);
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join(INDEX_FILE)).expect("a directory is made");
    let knowledge = Knowledge::new(library.engine.engine().clone(), directory.path());
    assert!(answers(&knowledge, &library) == expected);
    let nowhere = Knowledge::new(library.engine.engine().clone(), Path::new("/nonexistent/quipu"));
    assert!(answers(&nowhere, &library) == expected);
}

/// The tables of a small store have a page each, and one bit in the header of a page decides how
/// many rows it has: with four rows, a flipped bit leaves an empty table that is otherwise sound.
#[test]
fn any_flipped_bit_in_the_header_of_a_page_is_detected_or_harmless() {
    for count in [1, 14] {
        let library = Library::new(Arc::new(InMemoryBackend::default()));
        for number in 0..count {
            library.put(&format!("/d3/{number}.md"), &format!("green tea cup 7 water{number}"));
        }
        let expected = answers(&library.engine, &library);
        let pristine = closed_file(&library);
        let directory = tempfile::tempdir().expect("a directory");
        for page in 0..pristine.len() / PAGE {
            // The first page begins with the header of the file. Bytes 3 and 4 are the number of rows.
            let start = if page == 0 { 100 } else { page * PAGE };
            for bit in [24, 25, 32, 33, 34, 35, 36] {
                let mut bytes = pristine.clone();
                bytes[start + bit / 8] ^= 1 << (bit % 8);
                let knowledge = with_index(&library, directory.path(), &bytes);
                let found = answers(&knowledge, &library);
                assert!(found == expected, "{count} notes, page {page}, bit {bit}");
            }
        }
    }
}
