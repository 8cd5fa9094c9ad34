use proptest::prelude::*;
use quipu_core::model::{Id as _, MemoryId, Timestamp};

use super::super::codec::{Damaged, put_bytes};
use super::super::columns::{
    Columns, FactRow, Facts, Fixed, Memories, MemoryRow, each_path, memory_id, moment,
};
use super::super::term::Space;

#[test]
fn a_column_of_another_width_is_damage() {
    for size in [1, 3, 5, 7] {
        assert_eq!(Fixed::<4>::from_bytes(vec![0; size]), Err(Damaged), "{size}");
    }
    assert_eq!(Fixed::<4>::from_bytes(vec![0; 8]).map(|it| it.len()), Ok(2));
    assert_eq!(Fixed::<16>::from_bytes(vec![0; 8]), Err(Damaged));
    assert_eq!(Fixed::<16>::from_bytes(Vec::new()).map(|it| it.len()), Ok(0));
}

#[test]
fn values_beyond_the_end_are_damage() {
    let mut column = Fixed::<4>::default();
    assert_eq!(column.get(0), Err(Damaged));
    column.push(1_u32.to_le_bytes());
    column.push(u32::MAX.to_le_bytes());
    assert_eq!((column.number(0), column.number(1)), (Ok(1), Ok(u32::MAX)));
    assert_eq!(column.number(2), Err(Damaged));
    assert_eq!(column.number(u32::MAX), Err(Damaged));
    assert!(column.iter().map(u32::from_le_bytes).eq([1, u32::MAX]));
}

fn rows() -> impl Strategy<Value = Vec<(u32, u128, i64, String)>> {
    prop::collection::vec((any::<u32>(), any::<u128>(), any::<i64>(), "/[a-z日é/]{0,20}"), 0..20)
}

proptest! {
    #[test]
    fn memories_are_read_as_they_were_written(rows in rows()) {
        let mut memories = Memories::default();
        for (length, id, at, path) in &rows {
            memories.push(*length, &MemoryRow {
                id: MemoryId::from_bits(*id),
                updated_at: Timestamp::from_micros(*at),
                path: path.clone(),
            });
        }
        let mut paths = Vec::new();
        each_path(&memories.paths, |doc, path| paths.push((doc, path.to_owned()))).unwrap();
        prop_assert_eq!(paths.len(), rows.len());
        for (doc, (length, id, at, path)) in (0..).zip(&rows) {
            prop_assert_eq!(memories.lengths.number(doc), Ok(*length));
            prop_assert_eq!(memory_id(memories.ids.get(doc).unwrap()).bits(), *id);
            let expected = Timestamp::from_micros(*at);
            prop_assert_eq!(moment(memories.times.get(doc).unwrap()), expected);
            prop_assert_eq!(&paths[usize::try_from(doc).unwrap()], &(doc, path.clone()));
        }
        // Columns are stored as bytes and taken back as they are.
        let again = Fixed::<4>::from_bytes(memories.lengths.as_bytes().to_vec());
        prop_assert_eq!(again, Ok(memories.lengths));
    }

    #[test]
    fn facts_know_their_memory_and_their_position(
        rows in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 0..20),
    ) {
        let mut facts = Facts::default();
        for (length, memory, position) in &rows {
            facts.push(*length, FactRow { memory: *memory, position: *position });
        }
        for (doc, (length, memory, position)) in (0..).zip(rows) {
            let row = FactRow::from_bytes(facts.rows.get(doc).unwrap());
            prop_assert_eq!((row.memory, row.position), (memory, position));
            prop_assert_eq!(facts.lengths.number(doc), Ok(length));
        }
    }
}

#[test]
fn a_list_of_paths_that_was_cut_off_is_damage() {
    let mut paths = Vec::new();
    put_bytes(&mut paths, b"/a.md");
    put_bytes(&mut paths, b"");
    put_bytes(&mut paths, "/日.md".as_bytes());
    let read = |bytes: &[u8]| {
        let mut found = Vec::new();
        each_path(bytes, |_, path| found.push(path.to_owned())).map(|()| found)
    };
    assert_eq!(read(&paths).unwrap(), ["/a.md", "", "/日.md"]);
    for end in 1..paths.len() {
        let is_boundary = end == 6 || end == 7;
        assert_eq!(read(&paths[..end]).is_ok(), is_boundary, "{end}");
    }
    let mut foreign = Vec::new();
    put_bytes(&mut foreign, &[0xff]);
    assert_eq!(read(&foreign), Err(Damaged));
}

#[test]
fn each_space_has_columns_of_its_own() {
    let mut columns = Columns::default();
    let row = |number| FactRow { memory: number, position: 0 };
    columns.facts_mut(Space::Observations).unwrap().push(1, row(1));
    columns.facts_mut(Space::Relations).unwrap().push(2, row(2));
    columns.facts_mut(Space::Relations).unwrap().push(3, row(3));
    assert!(columns.facts_mut(Space::Memories).is_none());
    assert!(columns.facts(Space::Memories).is_none());
    assert_eq!(columns.counts(), [0, 1, 2]);
    let lengths = |space| {
        let facts = columns.facts(space).unwrap();
        facts.lengths.iter().map(u32::from_le_bytes).collect::<Vec<_>>()
    };
    assert_eq!((lengths(Space::Observations), lengths(Space::Relations)), (vec![1], vec![2, 3]));
}
