use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::rows::SegmentState;
use super::super::upkeep::{is_due, merge_small, remove_store, step};
use super::{Fixture, Text, store_id, text};

/// How many segments of one tier are merged into one of the next.
const FACTOR: usize = 8;

/// Returns the number of live segments of each tier.
fn tiers(fixture: &Fixture) -> BTreeMap<u32, usize> {
    let mut tiers = BTreeMap::new();
    for row in fixture.segments() {
        assert_eq!(row.state, SegmentState::Live);
        *tiers.entry(row.counts[0].max(1).ilog(FACTOR)).or_default() += 1;
    }
    tiers
}

fn small_merges(fixture: &Fixture) {
    fixture.file.write(|connection| merge_small(connection, fixture.store)).unwrap();
}

/// A search visits each segment, so their number must stay logarithmic.
#[test]
fn single_writes_leave_few_segments() {
    let mut fixture = Fixture::new();
    for number in 0..130 {
        fixture.put(number, "tea");
        small_merges(&fixture);
        assert!(tiers(&fixture).values().all(|count| *count < FACTOR), "{:?}", tiers(&fixture));
    }
    assert_eq!(tiers(&fixture), BTreeMap::from([(0, 2), (2, 2)]));
    fixture.assert_holds_its_model();
}

/// Small merges stop where they would take long; the background continues.
#[test]
fn large_merges_wait_for_the_background() {
    let mut fixture = Fixture::new();
    for round in 0..9 {
        let notes: Vec<_> = (0..70).map(|it| (round * 70 + it, Text::of("tea"))).collect();
        fixture.apply(&notes, &[]);
        small_merges(&fixture);
    }
    assert_eq!(fixture.segments().len(), 9);
    let num = fixture.row().num;
    assert!(fixture.file.read(|it| is_due(it.connection, num)).unwrap());
    while step(&fixture.file, num).unwrap() {}
    assert_eq!(fixture.segments().len(), 1);
    assert!(!fixture.file.read(|it| is_due(it.connection, num)).unwrap());
    fixture.assert_holds_its_model();
}

/// A segment of which exactly half is dead stays; one more, and it is rewritten.
#[test]
fn a_mostly_dead_segment_is_rewritten() {
    let mut fixture = Fixture::new();
    fixture.apply(&(0..100).map(|it| (it, Text::of("tea"))).collect::<Vec<_>>(), &[]);
    let num = fixture.row().num;
    fixture.apply(&[], &(0..50).collect::<Vec<_>>());
    assert!(!step(&fixture.file, num).unwrap());
    fixture.apply(&[], &[50]);
    while step(&fixture.file, num).unwrap() {}
    let segments = fixture.segments();
    assert_eq!((segments.len(), segments[0].counts[0], segments[0].dead), (1, 49, 0));
    fixture.assert_holds_its_model();
}

/// Of a store that was emptied, nothing is left but its row.
#[test]
fn a_segment_without_live_memories_disappears() {
    let mut fixture = Fixture::new();
    fixture.apply(&(0..200).map(|it| (it, Text::of("tea"))).collect::<Vec<_>>(), &[]);
    fixture.apply(&[], &(0..200).collect::<Vec<_>>());
    let num = fixture.row().num;
    while step(&fixture.file, num).unwrap() {}
    assert_eq!(fixture.segments().len(), 0);
    for table in ["postings", "positions", "columns", "dead", "notes"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let count = fixture
            .file
            .read(|it| Ok(it.connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?));
        assert_eq!(count.unwrap(), 0, "{table}");
    }
    fixture.put(1, "tea again");
    fixture.assert_holds_its_model();
}

/// What a process left that died in the middle of a merge.
#[test]
fn unfinished_segments_are_removed_before_anything_else() {
    use super::super::rows::{SegmentRow, next_segment, put_block, put_segment};
    let mut fixture = Fixture::new();
    fixture.put(1, "tea");
    let num = fixture.row().num;
    let left = fixture.file.write(|connection| {
        let id = next_segment(connection)?;
        put_segment(connection, num, &SegmentRow::new(id, SegmentState::Unfinished, [0; 3]))?;
        let block = super::super::block::Block { first: b"mwtea".to_vec(), ..Default::default() };
        put_block(connection, id, &block)
    });
    left.unwrap();
    fixture.assert_holds_its_model();
    assert!(fixture.file.read(|it| is_due(it.connection, num)).unwrap());
    assert!(step(&fixture.file, num).unwrap());
    assert_eq!(tiers(&fixture), BTreeMap::from([(0, 1)]));
    fixture.assert_holds_its_model();
}

#[test]
fn upkeep_of_a_store_without_a_row_is_nothing() {
    let fixture = Fixture::new();
    fixture.file.write(|connection| merge_small(connection, store_id(77))).unwrap();
    assert!(!step(&fixture.file, 77).unwrap());
    remove_store(&fixture.file, store_id(77)).unwrap();
}

/// A reader that began before a merge keeps reading what it began with.
#[test]
fn a_snapshot_outlives_the_merge_of_its_segments() {
    let mut fixture = Fixture::new();
    for number in 0..8 {
        fixture.apply(&[(number, Text::of("tea")), (100 + number, Text::of("cup"))], &[]);
    }
    let num = fixture.row().num;
    fixture.view(|view| {
        while step(&fixture.file, num).unwrap() {}
        super::assert_holds(view, &fixture.model);
    });
    assert_eq!(fixture.segments().len(), 1);
    fixture.assert_holds_its_model();
}

/// One step of a random run.
#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<(u32, Text)>, Vec<u32>),
    SmallMerges,
    Background,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let put = prop::collection::vec((0_u32..60, text()), 0..6);
    let removed = prop::collection::vec(0_u32..60, 0..6);
    let step = prop_oneof![
        6 => (put, removed).prop_map(|(put, removed)| Step::Apply(put, removed)),
        2 => Just(Step::SmallMerges),
        1 => Just(Step::Background),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn merging_changes_nothing_and_bounds_the_tiers(steps in steps()) {
        let mut fixture = Fixture::new();
        for step in &steps {
            match step {
                Step::Apply(put, removed) => fixture.apply(put, removed),
                Step::SmallMerges => small_merges(&fixture),
                Step::Background => {
                    while super::super::upkeep::step(&fixture.file, fixture.row().num).unwrap() {}
                    prop_assert!(tiers(&fixture).values().all(|count| *count < FACTOR));
                    let half = |row: &super::SegmentRow| row.dead * 2 <= row.counts[0];
                    prop_assert!(fixture.segments().iter().all(half));
                    fixture.assert_holds_its_model();
                }
            }
        }
        fixture.assert_holds_its_model();
    }
}
