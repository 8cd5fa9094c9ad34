use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::bits::Bits;
use super::super::codec::Damaged;
use super::super::postings::Doc;

/// Lengths around the size of a word.
const LENGTHS: [usize; 10] = [0, 1, 2, 63, 64, 65, 127, 128, 129, 200];

fn doc(number: usize) -> Doc {
    Doc::try_from(number).unwrap()
}

#[test]
fn all_and_none_have_every_and_no_document() {
    for len in LENGTHS {
        let (all, none) = (Bits::all(len), Bits::none(len));
        assert!(all.iter().eq(0..doc(len)), "{len}");
        assert_eq!(none.iter().next(), None);
        assert_eq!((all.count(), none.count()), (len, 0));
        assert!(none.is_empty());
        assert_eq!(all.is_empty(), len == 0);
        let mut rest = all.clone();
        rest.subtract(&all);
        assert_eq!(rest, none);
    }
}

/// Inserting everything one by one is the same set as `all`, bit by bit: nothing is set beyond the
/// end, where it would come back with the next operation.
#[test]
fn the_end_of_a_set_is_clean() {
    for len in LENGTHS {
        let mut bits = Bits::none(len);
        (0..doc(len)).try_for_each(|it| bits.insert(it)).unwrap();
        assert_eq!(bits, Bits::all(len));
        assert_eq!(bits.to_bytes(), Bits::all(len).to_bytes());
        let mut without = Bits::all(len);
        (0..doc(len)).for_each(|it| without.remove(it));
        assert_eq!(without, Bits::none(len));
    }
}

#[test]
fn documents_that_do_not_exist_are_neither_contained_nor_removed() {
    for len in LENGTHS {
        let mut bits = Bits::all(len);
        for beyond in [doc(len), doc(len) + 1, doc(len) + 64, Doc::MAX] {
            assert!(!bits.contains(beyond), "{beyond} of {len}");
            bits.remove(beyond);
            assert_eq!(bits.insert(beyond), Err(Damaged));
        }
        assert_eq!(bits, Bits::all(len));
    }
}

#[test]
fn inserting_twice_is_inserting_once() {
    let mut bits = Bits::none(70);
    for at in [0, 0, 63, 64, 64, 69] {
        bits.insert(at).unwrap();
    }
    assert!(bits.iter().eq([0, 63, 64, 69]));
    bits.remove(64);
    bits.remove(64);
    assert!(bits.iter().eq([0, 63, 69]));
}

/// What is missing at the end of a shorter set is not in it.
#[test]
fn sets_of_other_lengths_are_combined_as_sets() {
    let (long, short) = (Bits::all(200), Bits::all(70));
    let mut both = long.clone();
    both.intersect(&short);
    assert!(both.iter().eq(0..70));
    let mut rest = long;
    rest.subtract(&short);
    assert!(rest.iter().eq(70..200));
}

/// Tombstones are kept in chunks; each is added at its first document.
#[test]
fn bytes_are_added_at_their_place() {
    let mut bits = Bits::none(4_100);
    let mut chunk = Bits::none(2_048);
    [0, 7, 8, 2_047].into_iter().try_for_each(|at| chunk.insert(at)).unwrap();
    bits.insert_bytes(0, &chunk.to_bytes()).unwrap();
    bits.insert_bytes(2_048, &chunk.to_bytes()).unwrap();
    assert!(bits.iter().eq([0, 7, 8, 2_047, 2_048, 2_055, 2_056, 4_095]));
    // The last chunk is as long as all others, but may only contain documents that exist.
    bits.insert_bytes(4_096, &[0b1111, 0, 0]).unwrap();
    assert_eq!(bits.count(), 12);
    assert_eq!(bits.insert_bytes(4_096, &[0b1_0000]), Err(Damaged));
    assert_eq!(bits.insert_bytes(Doc::MAX, &[0b10]), Err(Damaged));
    assert_eq!(bits.insert_bytes(Doc::MAX - 7, &[0, 1]), Err(Damaged));
    assert_eq!(bits.insert_bytes(Doc::MAX, &[0]), Ok(()));
}

/// One operation on a set.
#[derive(Clone, Debug)]
enum Step {
    Insert(Doc),
    Remove(Doc),
    Unite(BTreeSet<Doc>),
    Intersect(BTreeSet<Doc>),
    Subtract(BTreeSet<Doc>),
}

fn step(len: Doc) -> impl Strategy<Value = Step> {
    let set = move || prop::collection::btree_set(0..len, 0..40);
    prop_oneof![
        4 => (0..len).prop_map(Step::Insert),
        2 => (0..len).prop_map(Step::Remove),
        1 => set().prop_map(Step::Unite),
        1 => set().prop_map(Step::Intersect),
        1 => set().prop_map(Step::Subtract),
    ]
}

fn bits(len: usize, docs: &BTreeSet<Doc>) -> Bits {
    let mut bits = Bits::none(len);
    docs.iter().try_for_each(|doc| bits.insert(*doc)).unwrap();
    bits
}

proptest! {
    #[test]
    fn a_set_stays_like_a_tree_set(
        (len, steps) in prop::sample::select(&LENGTHS[1..])
            .prop_flat_map(|len| (Just(len), prop::collection::vec(step(doc(len)), 0..30))),
    ) {
        let (mut set, mut naive) = (Bits::none(len), BTreeSet::new());
        for step in steps {
            match step {
                Step::Insert(doc) => {
                    set.insert(doc).unwrap();
                    naive.insert(doc);
                }
                Step::Remove(doc) => {
                    set.remove(doc);
                    naive.remove(&doc);
                }
                Step::Unite(other) => {
                    set.unite(&bits(len, &other));
                    naive.extend(other);
                }
                Step::Intersect(other) => {
                    set.intersect(&bits(len, &other));
                    naive.retain(|doc| other.contains(doc));
                }
                Step::Subtract(other) => {
                    set.subtract(&bits(len, &other));
                    naive.retain(|doc| !other.contains(doc));
                }
            }
            prop_assert!(set.iter().eq(naive.iter().copied()));
            prop_assert_eq!(set.count(), naive.len());
            prop_assert_eq!(set.is_empty(), naive.is_empty());
            prop_assert!((0..doc(len)).all(|doc| set.contains(doc) == naive.contains(&doc)));
            let mut copy = Bits::none(len);
            copy.insert_bytes(0, &set.to_bytes()).unwrap();
            prop_assert_eq!(&copy, &set);
        }
    }
}
