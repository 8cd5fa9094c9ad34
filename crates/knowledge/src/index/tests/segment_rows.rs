use rusqlite::Connection;

use super::super::block::Block;
use super::super::error::IndexError;
use super::super::file::SCHEMA;
use super::super::rows::{self, SegmentRow, SegmentState};

fn connection() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
}

fn live(id: i64, count: usize) -> SegmentRow {
    SegmentRow::new(id, SegmentState::Live, [count, 0, 0])
}

fn is_damaged<T>(read: &Result<T, IndexError>) -> bool {
    matches!(read, Err(IndexError::Damaged))
}

/// A chain of blocks with the first terms `m#00`, `m#01`, …
fn chain(connection: &Connection, segment: i64, count: usize) -> Vec<Block> {
    let first = |number: usize| format!("m#{number:02}").into_bytes();
    let blocks: Vec<_> = (0..count)
        .map(|number| Block {
            first: first(number),
            next: if number + 1 < count { first(number + 1) } else { Vec::new() },
            postings: vec![1; number + 1],
            positions: vec![2; number + 1],
        })
        .collect();
    for block in &blocks {
        rows::put_block(connection, segment, block).unwrap();
    }
    blocks
}

#[test]
fn the_row_of_a_segment_comes_back() {
    let connection = connection();
    for state in [SegmentState::Unfinished, SegmentState::Live, SegmentState::Merged] {
        let row = SegmentRow {
            is_foreign: state == SegmentState::Live,
            dead: 3,
            ..SegmentRow::new(5, state, [10, 1 << 28, 0])
        };
        rows::put_segment(&connection, 7, &row).unwrap();
        let found = rows::segment(&connection, 7, 5).unwrap().unwrap();
        assert_eq!(format!("{found:?}"), format!("{row:?}"));
        assert!(rows::segment(&connection, 8, 5).unwrap().is_none(), "of another store");
    }
    assert_eq!(rows::segments(&connection, 7).unwrap().len(), 1, "a row is replaced");
}

/// A count is the size of what is allocated for it.
#[test]
fn a_count_beyond_the_limit_is_damage() {
    let connection = connection();
    rows::put_segment(&connection, 1, &live(1, (1 << 28) + 1)).unwrap();
    assert!(is_damaged(&rows::segments(&connection, 1)));
}

#[test]
fn segments_are_listed_by_age_and_store() {
    let connection = connection();
    for (store, id) in [(1, 9), (2, 3), (1, 4), (1, 30)] {
        rows::put_segment(&connection, store, &live(id, 1)).unwrap();
    }
    let ids = |store| {
        let rows = rows::segments(&connection, store).unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!((ids(1), ids(2), ids(3)), (vec![4, 9, 30], vec![3], vec![]));
}

/// Caches are keyed by the ids of segments, so an id must not come back.
#[test]
fn the_ids_of_segments_are_never_reused() {
    let connection = connection();
    let first = rows::next_segment(&connection).unwrap();
    rows::put_segment(&connection, 1, &live(first, 1)).unwrap();
    assert!(!rows::remove_segment(&connection, 1, first, 10).unwrap());
    assert!(rows::next_segment(&connection).unwrap() > first);
}

/// Every number of the row is sealed.
#[test]
fn a_changed_number_in_the_row_of_a_segment_is_damage() {
    for change in [
        "state = 2",
        "memories = memories + 1",
        "observations = 1",
        "relations = 1",
        "is_foreign = 1",
        "dead = 1",
        "id = 2",
        "seal = seal + 1",
        "memories = -1",
    ] {
        let connection = connection();
        rows::put_segment(&connection, 1, &live(1, 3)).unwrap();
        connection.execute(&format!("UPDATE segments SET {change}"), []).unwrap();
        assert!(is_damaged(&rows::segments(&connection, 1)), "{change}");
    }
}

/// Tombstones are kept in chunks of 2,048 memories.
#[test]
fn tombstones_come_back_across_chunks() {
    let connection = connection();
    let count = 3 * 2_048 + 5;
    rows::put_segment(&connection, 1, &live(1, count)).unwrap();
    let docs = [0, 1, 2_047, 2_048, 2_049, 4_095, 4_096, 6_143, 6_144, 6_148];
    for (place, doc) in docs.iter().enumerate() {
        rows::put_dead(&connection, 1, 1, *doc).unwrap();
        let row = rows::segment(&connection, 1, 1).unwrap().unwrap();
        assert_eq!(row.dead, place + 1);
        let dead = rows::dead(&connection, &row).unwrap();
        assert!(dead.iter().eq(docs.iter().copied().take(place + 1)));
    }
    let chunks: i64 =
        connection.query_row("SELECT count(*) FROM dead", [], |row| row.get(0)).unwrap();
    assert_eq!(chunks, 4);
}

#[test]
fn a_tombstone_beyond_the_segment_is_damage() {
    let connection = connection();
    rows::put_segment(&connection, 1, &live(1, 10)).unwrap();
    rows::put_dead(&connection, 1, 1, 10).unwrap();
    let row = rows::segment(&connection, 1, 1).unwrap().unwrap();
    assert!(is_damaged(&rows::dead(&connection, &row)));
}

/// The row of a segment says how many tombstones it has: one that got lost is noticed.
#[test]
fn lost_tombstones_are_damage() {
    let connection = connection();
    rows::put_segment(&connection, 1, &live(1, 5_000)).unwrap();
    rows::put_dead(&connection, 1, 1, 7).unwrap();
    rows::put_dead(&connection, 1, 1, 4_000).unwrap();
    let row = rows::segment(&connection, 1, 1).unwrap().unwrap();
    connection.execute("DELETE FROM dead WHERE chunk = 1", []).unwrap();
    assert!(is_damaged(&rows::dead(&connection, &row)));
    connection.execute("DELETE FROM dead", []).unwrap();
    assert!(is_damaged(&rows::dead(&connection, &row)));
    connection.execute("INSERT INTO dead VALUES (1, -1, x'00')", []).unwrap();
    assert!(is_damaged(&rows::dead(&connection, &row)));
}

/// A tombstone of a segment that is not there belongs to nothing.
#[test]
fn a_tombstone_of_a_missing_segment_is_refused() {
    assert!(is_damaged(&rows::put_dead(&connection(), 1, 1, 0)));
}

#[test]
fn columns_come_back_and_are_sealed_by_name() {
    let connection = connection();
    let mut columns = super::super::columns::Columns::default();
    columns.memories.push(3, &super::documents(1, &super::Text::of("tea")).row);
    rows::put_columns(&connection, 1, &columns).unwrap();
    assert_eq!(rows::columns(&connection, 1).unwrap(), columns);
    assert!(is_damaged(&rows::columns(&connection, 2)), "there are none");
    // Two columns of the same shape in each other's place.
    connection
        .execute(
            "UPDATE columns SET observation_lengths = relation_lengths,
                relation_lengths = observation_lengths",
            [],
        )
        .unwrap();
    assert!(is_damaged(&rows::columns(&connection, 1)));
    rows::put_columns(&connection, 1, &columns).unwrap();
    connection.execute("UPDATE columns SET segment = 2", []).unwrap();
    assert!(is_damaged(&rows::column(&connection, 2, "memory_ids")), "of another segment");
}

#[test]
fn the_block_of_a_term_is_the_last_that_begins_before_it() {
    let connection = connection();
    let blocks = chain(&connection, 1, 5);
    let first = |term: &[u8]| {
        rows::with_block(&connection, 1, term, |first, postings| {
            Ok((first.to_vec(), postings.to_vec()))
        })
    };
    assert_eq!(first(b"m#").unwrap(), None);
    for block in &blocks {
        let expected = Some((block.first.clone(), block.postings.clone()));
        assert_eq!(first(&block.first).unwrap(), expected);
        assert_eq!(first(&[&block.first[..], b"x"].concat()).unwrap(), expected);
    }
    assert_eq!(first(b"zzz").unwrap().unwrap().0, b"m#04");
    // Without its row, the term would be looked for in the block before, and not be found.
    rows::remove_block(&connection, 1, b"m#02").unwrap();
    assert!(is_damaged(&first(b"m#02")));
    assert!(is_damaged(&first(b"m#02x")));
    assert!(first(b"m#01x").unwrap().is_some());
}

#[test]
fn blocks_are_read_from_the_one_that_may_have_a_term() {
    let connection = connection();
    chain(&connection, 1, 5);
    chain(&connection, 2, 3);
    let from = |term: &[u8], limit: usize| {
        let mut firsts = Vec::new();
        let read = rows::each_block(&connection, 1, term, |first, _| {
            firsts.push(String::from_utf8(first.to_vec()).unwrap());
            Ok(firsts.len() < limit)
        });
        read.map(|()| firsts.join(" "))
    };
    assert_eq!(from(b"", 9).unwrap(), "m#00 m#01 m#02 m#03 m#04");
    assert_eq!(from(b"m#02", 9).unwrap(), "m#02 m#03 m#04");
    assert_eq!(from(b"m#02x", 9).unwrap(), "m#02 m#03 m#04");
    assert_eq!(from(b"zz", 9).unwrap(), "m#04");
    assert_eq!(from(b"m#01", 2).unwrap(), "m#01 m#02");
    rows::remove_block(&connection, 1, b"m#03").unwrap();
    assert!(is_damaged(&from(b"", 9)));
    assert_eq!(from(b"", 3).unwrap(), "m#00 m#01 m#02", "what is not read is not missed");
    rows::remove_block(&connection, 1, b"m#04").unwrap();
    assert!(is_damaged(&from(b"", 9)), "the end is missing");
}

/// Merging and scrubbing read pages of blocks, and must not lose one between two pages.
#[test]
fn pages_of_blocks_add_up_for_every_size() {
    let connection = connection();
    let blocks = chain(&connection, 1, 7);
    for size in 1..=8 {
        let mut read: Vec<Block> = Vec::new();
        loop {
            let page = rows::blocks_after(&connection, 1, read.last(), size).unwrap();
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= size);
            read.extend(page);
        }
        assert_eq!(read, blocks, "pages of {size}");
    }
}

#[test]
fn a_gap_between_two_pages_of_blocks_is_damage() {
    for (gone, size) in [("m#03", 3), ("m#03", 9), ("m#06", 3), ("m#06", 6), ("m#00", 9)] {
        let connection = connection();
        chain(&connection, 1, 7);
        rows::remove_block(&connection, 1, gone.as_bytes()).unwrap();
        let mut last: Option<Block> = None;
        let is_noticed = loop {
            match rows::blocks_after(&connection, 1, last.as_ref(), size) {
                Err(IndexError::Damaged) => break true,
                Ok(mut page) => match page.pop() {
                    Some(block) => last = Some(block),
                    None => break false,
                },
                Err(error) => panic!("{error:?}"),
            }
        };
        // Nothing names the first block; the counts of the store do.
        assert_eq!(is_noticed, gone != "m#00", "{gone} in pages of {size}");
    }
}

#[test]
fn blocks_without_their_positions_are_damage() {
    let connection = connection();
    chain(&connection, 1, 3);
    connection.execute("DELETE FROM positions WHERE first = x'6d233031'", []).unwrap();
    assert!(is_damaged(&rows::blocks_after(&connection, 1, None, 9)));
    assert!(is_damaged(&rows::block_positions(&connection, 1, b"m#01")));
    assert_eq!(rows::block_positions(&connection, 1, b"m#02").unwrap(), vec![2; 3]);
}

/// Each part of a block is bound to the others and to its place.
#[test]
fn blocks_in_the_place_of_others_are_damage() {
    for change in [
        "UPDATE postings SET next = x'6d233032' WHERE first = x'6d233030'",
        "UPDATE postings SET data = (SELECT data FROM postings WHERE first = x'6d233032')
            WHERE first = x'6d233031'",
        "UPDATE postings SET segment = 9 WHERE segment = 1",
        "UPDATE postings SET data = substr(data, 2)",
    ] {
        let connection = connection();
        chain(&connection, 1, 3);
        connection.execute(change, []).unwrap();
        let read = |segment| rows::each_block(&connection, segment, b"", |_, _| Ok(true));
        assert!(is_damaged(&read(1).and_then(|()| read(9))), "{change}");
        let read = |segment| rows::blocks_after(&connection, segment, None, 9);
        assert!(is_damaged(&read(1).and_then(|_| read(9))), "{change}");
    }
}

/// A process that dies in between leaves a segment that can still be removed.
#[test]
fn removing_a_segment_in_steps_ends_with_its_row() {
    let connection = connection();
    chain(&connection, 1, 5);
    chain(&connection, 2, 5);
    for id in [1, 2] {
        rows::put_segment(&connection, 1, &live(id, 4)).unwrap();
        rows::put_columns(&connection, id, &super::super::columns::Columns::default()).unwrap();
        rows::put_dead(&connection, 1, id, 2).unwrap();
    }
    let mut steps = 0;
    while rows::remove_segment(&connection, 1, 1, 2).unwrap() {
        steps += 1;
        assert!(rows::segment(&connection, 1, 1).unwrap().is_some());
    }
    assert_eq!(steps, 3);
    for table in ["segments", "columns", "dead", "postings", "positions"] {
        let key = if table == "segments" { "id" } else { "segment" };
        let count = |id: i64| -> i64 {
            let sql = format!("SELECT count(*) FROM {table} WHERE {key} = {id}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(count(1), 0, "{table}");
        assert!(count(2) > 0, "{table}: the other segment stays");
    }
    assert!(!rows::remove_segment(&connection, 1, 1, 2).unwrap(), "removing twice is harmless");
}

/// Two blocks with one key are a bug or damage, never a silent replacement.
#[test]
fn a_block_is_not_written_twice() {
    let connection = connection();
    let blocks = chain(&connection, 1, 2);
    assert!(is_damaged(&rows::put_block(&connection, 1, &blocks[0])));
}

/// One flipped bit in the header of a page, and a table is empty or begins later, although each row
/// that is left is intact.
#[test]
fn a_segment_that_has_lost_its_first_block_is_damaged() {
    let connection = connection();
    let word = |text: &str| super::term::word(super::Space::Memories, text);
    let block = |first: Vec<u8>, next: Vec<u8>| Block { first, next, ..Block::default() };
    let memory = super::term::memory(super::memory(5));
    rows::put_block(&connection, 1, &block(memory.clone(), word("m"))).unwrap();
    rows::put_block(&connection, 1, &block(word("m"), Vec::new())).unwrap();
    let with = |term: &[u8]| rows::with_block(&connection, 1, term, |_, _| Ok(()));
    let each = |term: &[u8]| rows::each_block(&connection, 1, term, |_, _| Ok(true));
    let after = || rows::blocks_after(&connection, 1, None, 9);
    let below = super::term::memory(super::memory(4));
    assert_eq!(with(&below).unwrap(), None, "no block has to begin before the first memory");
    assert!(with(&word("a")).unwrap().is_some() && each(&word("a")).is_ok() && after().is_ok());
    for is_lost in [false, true] {
        let first = if is_lost { word("m") } else { memory.clone() };
        rows::remove_block(&connection, 1, &first).unwrap();
        assert!(is_damaged(&with(&below)) && is_damaged(&with(&word("a"))));
        assert!(is_damaged(&each(&word("a"))) && is_damaged(&each(&below)));
        assert!(is_damaged(&after()));
    }
}
