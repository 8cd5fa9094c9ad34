use quipu_core::model::{Id as _, MemoryId, Timestamp};

use super::super::batch::{Applied, BatchBuilder};
use super::super::columns::MemoryRow;
use super::super::postings::Field;
use super::super::scrub::scrub;
use super::super::segment::{Document, Documents};
use super::super::store_rows::{Cursor, add_store};
use super::super::view::StoreView;
use super::*;

/// An index with one store, written without an engine.
struct Fixture {
    _directory: tempfile::TempDir,
    file: IndexFile,
    store: StoreId,
}

fn store_id(number: u128) -> StoreId {
    StoreId::from_bits(number)
}

fn memory(number: u32) -> MemoryId {
    MemoryId::from_bits(u128::from(number))
}

fn documents(number: u32, words: &str) -> Documents {
    let places = words.split(' ').zip(0..);
    let words: Vec<_> =
        places.map(|(text, at)| (term::word(Space::Memories, text), Field::Body, at)).collect();
    let length = u32::try_from(words.len()).unwrap();
    Documents {
        row: MemoryRow {
            id: memory(number),
            updated_at: Timestamp::from_micros(i64::from(number)),
            path: format!("/{number}.md"),
        },
        memory: Document { length, words, marks: Vec::new() },
        observations: Vec::new(),
        relations: Vec::new(),
    }
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = IndexFile::new(directory.path());
        let fixture = Self { _directory: directory, file, store: store_id(1) };
        fixture.add(fixture.store);
        fixture
    }

    fn add(&self, store: StoreId) -> i64 {
        let added = self.file.write(|connection| add_store(connection, store, Sequence(1)));
        added.unwrap().num
    }

    fn num(&self) -> i64 {
        let row = self.file.read(|snapshot| store_rows::store(snapshot.connection, self.store));
        row.unwrap().unwrap().num
    }

    /// Indexes memories as one segment.
    fn put(&self, memories: impl IntoIterator<Item = (u32, String)>) {
        let mut batch = BatchBuilder::default();
        for (number, words) in memories {
            batch.add(documents(number, &words), Vec::new());
        }
        let batch = batch.finish();
        let applied = self.file.write(|connection| {
            let row = store_rows::store(connection, self.store)?.unwrap();
            let to = Cursor { sequence: Sequence(row.cursor.sequence.0 + 1), ..row.cursor };
            batch.apply(connection, self.store, (row.cursor, to), Sequence(1_000_000))
        });
        assert_eq!(applied.unwrap(), Applied::Done);
    }

    fn segments(&self) -> Vec<SegmentRow> {
        let num = self.num();
        self.file.read(|snapshot| rows::segments(snapshot.connection, num)).unwrap()
    }

    /// Returns the memories with a word, by number.
    fn with(&self, word: &str) -> Vec<u128> {
        let found = self.file.read(|snapshot| {
            let row = store_rows::store(snapshot.connection, self.store)?;
            let view = StoreView::new(snapshot, self.store, row.as_ref(), None)?;
            view.memories_with(&term::word(Space::Memories, word))
        });
        let mut found: Vec<_> = found.unwrap().into_iter().map(MemoryId::bits).collect();
        found.sort_unstable();
        found
    }

    fn scrub(&self, memories: &[MemoryId], purged: u64) {
        let scrubbed = self.file.write(|connection| {
            let row = store_rows::store(connection, self.store)?.unwrap();
            scrub(connection, &row, memories, Sequence(purged))
        });
        scrubbed.unwrap();
    }
}

fn row(id: i64, count: usize, dead: usize) -> SegmentRow {
    SegmentRow { dead, ..SegmentRow::new(id, SegmentState::Live, [count, 0, 0]) }
}

fn due_ids(segments: &[SegmentRow], max: usize) -> Option<Vec<i64>> {
    due(segments, max).map(|rows| rows.iter().map(|row| row.id).collect())
}

#[test]
fn eight_segments_of_one_tier_are_due() {
    let mut segments: Vec<_> = (1..8).map(|id| row(id, 1, 0)).collect();
    segments.push(row(100, 8, 0));
    assert_eq!(due_ids(&segments, usize::MAX), None);
    segments.push(row(8, 7, 0));
    assert_eq!(due_ids(&segments, usize::MAX), Some((1..9).collect()));
    segments[0].state = SegmentState::Merged;
    assert_eq!(due_ids(&segments, usize::MAX), None);
}

/// Regression: a large merge that was due stopped small merges until the next upkeep.
#[test]
fn a_large_merge_does_not_block_small_merges() {
    let mut segments = vec![row(100, 1_000, 600)];
    segments.extend((1..9).map(|id| row(id, 1, 0)));
    assert_eq!(due_ids(&segments, usize::MAX), Some(vec![100]));
    assert_eq!(due_ids(&segments, SMALL_MERGE_MAX), Some((1..9).collect()));
    segments.extend((201..209).map(|id| row(id, 8, 5)));
    assert_eq!(due_ids(&segments, SMALL_MERGE_MAX), Some(vec![201]));
}

#[test]
fn merging_in_the_background_does_not_change_results() {
    let fixture = Fixture::new();
    for segment in 0..9 {
        fixture
            .put((0..200).map(|number| (segment * 200 + number, format!("all w{}", number % 7))));
    }
    // Some are dead before the merge begins.
    fixture.put((0..300).map(|number| (number, "new".to_owned())));
    let before = (fixture.with("all"), fixture.with("w3"), fixture.with("new"));
    assert_eq!(before.0.len(), 1_500);
    while step(&fixture.file, fixture.num()).unwrap() {}
    assert!(fixture.segments().len() < 4, "{:?}", fixture.segments());
    assert_eq!((fixture.with("all"), fixture.with("w3"), fixture.with("new")), before);
}

/// Tombstones that are added during a merge carry over to the new segment.
#[test]
fn a_memory_that_changes_during_a_merge_is_not_found_twice() {
    let fixture = Fixture::new();
    for segment in 0..8 {
        fixture.put((0..100).map(|number| (segment * 100 + number, "old".to_owned())));
    }
    let num = fixture.num();
    let sources = fixture.segments();
    let target = fixture.file.write(|connection| Target::new(connection, num)).unwrap();
    let (blocks, columns, live) = merged(&fixture, &sources);
    fixture.file.write(|connection| target.add(connection, blocks.into_iter())).unwrap();
    fixture.put([(5, "new".to_owned()), (250, "new".to_owned())]);
    let replaced =
        fixture.file.write(|connection| target.replace(connection, &sources, &live, &columns));
    replaced.unwrap();
    assert_eq!(fixture.with("new"), [5, 250]);
    assert_eq!(fixture.with("old").len(), 798);
}

fn merged(fixture: &Fixture, sources: &[SegmentRow]) -> (Vec<Block>, Columns, Vec<Bits>) {
    let merged = fixture.file.read(|snapshot| {
        let inputs = inputs(snapshot.connection, sources)?;
        let live = inputs.iter().map(|input| input.live.clone()).collect();
        let mut blocks = Vec::new();
        let columns = merge(inputs, |block| {
            blocks.push(block);
            Ok(())
        })?;
        Ok((blocks, columns, live))
    });
    merged.unwrap()
}

/// Regression: two processes may erase the same text, one after the other, and the second leaves
/// the `purged` sequence unchanged. It removed the first blocks of a merge in between, which then
/// went on.
#[test]
fn a_repeated_erasure_aborts_a_merge() {
    let fixture = Fixture::new();
    for segment in 0..8 {
        let words = |number: u32| format!("all unique{number}");
        fixture.put((0..40).map(|number| (segment * 40 + number, words(segment * 40 + number))));
    }
    fixture.put([(3, "clean".to_owned())]);
    fixture.scrub(&[memory(3)], 2_000);
    let sources = fixture.segments();
    let num = fixture.num();
    let target = fixture.file.write(|connection| Target::new(connection, num)).unwrap();
    let (mut blocks, columns, live) = merged(&fixture, &sources);
    let rest = blocks.split_off(blocks.len() / 2);
    fixture.file.write(|connection| target.add(connection, blocks.into_iter())).unwrap();
    fixture.scrub(&[memory(3)], 2_000);
    let added = fixture.file.write(|connection| target.add(connection, rest.into_iter()));
    assert!(matches!(added, Err(IndexError::Outdated)), "{added:?}");
    let replaced =
        fixture.file.write(|connection| target.replace(connection, &sources, &live, &columns));
    assert!(matches!(replaced, Err(IndexError::Outdated)), "{replaced:?}");
    assert_eq!(fixture.with("all").len(), 319);
    while step(&fixture.file, num).unwrap() {}
    assert_eq!(fixture.with("all").len(), 319);
    assert_eq!(fixture.with("unique77"), [77]);
}

#[test]
fn a_merge_does_not_bring_back_erased_text() {
    let fixture = Fixture::new();
    for segment in 0..8 {
        fixture.put(
            (0..40)
                .map(|number| (segment * 40 + number, format!("all u{}x", segment * 40 + number))),
        );
    }
    let (num, sources) = (fixture.num(), fixture.segments());
    let target = fixture.file.write(|connection| Target::new(connection, num)).unwrap();
    let (blocks, columns, live) = merged(&fixture, &sources);
    fixture.put([(7, "clean".to_owned())]);
    fixture.scrub(&[memory(7)], 2_000);
    for blocks in [blocks, Vec::new()] {
        let added = fixture.file.write(|connection| target.add(connection, blocks.into_iter()));
        assert!(matches!(added, Err(IndexError::Outdated)), "{added:?}");
    }
    let replaced =
        fixture.file.write(|connection| target.replace(connection, &sources, &live, &columns));
    assert!(matches!(replaced, Err(IndexError::Outdated)), "{replaced:?}");
    let found = fixture.file.read(|snapshot| {
        let sql = "SELECT count(*) FROM postings WHERE instr(data, 'u7x') OR instr(first, 'u7x')";
        Ok(snapshot.connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(found.unwrap(), 0);
    assert_eq!(fixture.with("clean"), [7]);
}

/// If a number were reused, a process that still removes a store would remove rows of another one,
/// or leave a new store segments that are not its own.
#[test]
fn store_numbers_are_never_reused() {
    let fixture = Fixture::new();
    let first = fixture.add(store_id(2));
    remove_store(&fixture.file, store_id(2)).unwrap();
    let second = fixture.add(store_id(2));
    assert_ne!(first, second);
    // The process that removed the store at the same time does the rest of its work.
    fixture.file.write(|connection| store_rows::remove_store(connection, first)).unwrap();
    let row = fixture.file.read(|snapshot| store_rows::store(snapshot.connection, store_id(2)));
    assert_eq!(row.unwrap().map(|row| row.num), Some(second));
}

#[test]
fn a_store_that_is_being_removed_gets_no_segment() {
    let fixture = Fixture::new();
    let num = fixture.num();
    fixture.put([(1, "tea".to_owned())]);
    let removed = fixture.file.write(|connection| {
        let row = store_rows::store(connection, fixture.store)?.unwrap();
        store_rows::put_store(connection, &row.removed())
    });
    removed.unwrap();
    let begun = fixture.file.write(|connection| Target::new(connection, num));
    assert!(matches!(begun, Err(IndexError::Outdated)));
    remove_store(&fixture.file, fixture.store).unwrap();
    for table in ["stores", "segments", "columns", "dead", "postings", "positions", "notes"] {
        let count = fixture.file.read(|snapshot| {
            let sql = format!("SELECT count(*) FROM {table}");
            Ok(snapshot.connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?)
        });
        assert_eq!(count.unwrap(), 0, "{table}");
    }
}

#[test]
fn removing_a_store_in_steps_leaves_other_stores_alone() {
    let fixture = Fixture::new();
    fixture.put((0..2_000).map(|number| (number, format!("all unique{number}"))));
    let other = Fixture { store: store_id(2), ..fixture };
    other.add(other.store);
    other.put((0..50).map(|number| (number, "all".to_owned())));
    remove_store(&other.file, store_id(1)).unwrap();
    assert_eq!(other.with("all").len(), 50);
    let gone = Fixture { store: store_id(1), ..other };
    gone.add(gone.store);
    assert_eq!(gone.with("all"), Vec::<u128>::new());
}

/// The segment is scrubbed in place, and nothing else in it changes.
#[test]
fn scrubbing_a_large_segment_erases_one_memory() {
    let fixture = Fixture::new();
    let words = |number: u32| format!("all shared{} secret{number}", number % 5);
    fixture.put((0..1_000).map(|number| (number, words(number))));
    let segment = fixture.segments()[0].id;
    fixture.put([(400, "clean".to_owned())]);
    fixture.scrub(&[memory(400)], 2_000);
    assert_eq!(fixture.segments()[0].id, segment, "it is not written again as a whole");
    assert_eq!(fixture.with("all").len(), 999);
    assert_eq!(fixture.with("shared0").len(), 199);
    assert_eq!(fixture.with("secret401"), [401]);
    assert_eq!(fixture.with("clean"), [400]);
    let left = fixture.file.read(|snapshot| {
        let mut left = 0;
        let connection = snapshot.connection;
        for block in rows::blocks_after(connection, segment, None, usize::MAX)? {
            let mut terms = super::super::block::BlockReader::new(&block.first, &block.postings);
            while let Some((found, _)) = terms.next()? {
                left += usize::from(found == term::word(Space::Memories, "secret400"));
                left += usize::from(found == term::memory(memory(400)));
            }
        }
        let paths = rows::column(connection, segment, "memory_paths")?;
        left += usize::from(paths.windows(8).any(|window| window == b"/400.md\x07"));
        Ok(left)
    });
    assert_eq!(left.unwrap(), 0);
    // Its number stays unused, so merging it later is harmless.
    fixture.put((0..600).map(|number| (number, "newer".to_owned())));
    while step(&fixture.file, fixture.num()).unwrap() {}
    assert_eq!(fixture.with("all").len(), 400);
    assert_eq!(fixture.with("newer").len(), 600);
}
