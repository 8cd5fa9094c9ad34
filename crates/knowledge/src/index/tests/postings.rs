use proptest::prelude::*;

use super::super::codec::{Damaged, Input, put_varint};
use super::super::postings::{
    Counts, Doc, Field, Fields, Occurrence, Place, Positions, Posting, PostingList, Postings,
    Weights,
};

fn occurrences() -> impl Strategy<Value = Vec<Occurrence>> {
    let place = prop_oneof![
        3 => (0_usize..4, 0_u32..300).prop_map(|(field, at)| (Field::ALL[field], at)),
        1 => (4_usize..6).prop_map(|field| (Field::ALL[field], 0)),
        1 => (0_usize..4).prop_map(|field| (Field::ALL[field], u32::MAX)),
    ];
    prop_oneof![
        2 => (0_u32..300).prop_map(|at| vec![(Field::Body, at)]),
        1 => prop::collection::btree_set(place, 1..7).prop_map(|set| set.into_iter().collect()),
    ]
}

type Lists = Vec<(Doc, Vec<Occurrence>)>;

fn lists() -> impl Strategy<Value = Lists> {
    prop::collection::btree_map(prop_oneof![0_u32..300, any::<u32>()], occurrences(), 0..20)
        .prop_map(|lists| lists.into_iter().collect())
}

fn written(lists: &Lists) -> PostingList {
    let mut list = PostingList::default();
    for (doc, occurrences) in lists {
        list.push(*doc, occurrences);
    }
    list
}

/// Weights that tell the fields apart, exactly representable.
fn weights() -> Weights {
    Weights::new(|field| match field {
        Field::Title => 64.0,
        Field::Tags => 32.0,
        Field::Headings => 16.0,
        Field::Body => 1.0,
        Field::TitleForms => 0.5,
        Field::Forms => 0.25,
    })
}

proptest! {
    /// The fast path of a search adds up what the plain iterator reads.
    #[test]
    fn weighted_frequencies_are_sums_over_the_occurrences(mut lists in lists()) {
        lists.retain(|(doc, _)| *doc < Doc::MAX);
        let list = written(&lists);
        let mut found = Vec::new();
        weights().each(&list.postings, |doc, weight| found.push((doc, weight))).unwrap();
        let weight = |occurrences: &[Occurrence]| {
            occurrences.iter().map(|(field, _)| weights().of(*field)).sum::<f32>()
        };
        let expected: Vec<_> = lists.iter().map(|(doc, all)| (*doc, weight(all))).collect();
        prop_assert_eq!(found, expected);
    }

    /// A list that was cut off is the beginning of it, or damage.
    #[test]
    fn a_truncated_list_has_no_other_documents(lists in lists(), cut in any::<prop::sample::Index>()) {
        let list = written(&lists);
        prop_assume!(!list.postings.is_empty());
        let part = &list.postings[..cut.index(list.postings.len())];
        let whole: Vec<_> = Postings::new(&list.postings).map(Result::unwrap).collect();
        let read: Vec<_> = Postings::new(part).collect();
        prop_assert!(read.len() <= whole.len());
        let is_end = |place: usize| place + 1 == read.len();
        for (place, posting) in read.iter().enumerate() {
            match posting {
                Ok(posting) => prop_assert_eq!(posting, &whole[place]),
                Err(Damaged) => prop_assert!(is_end(place), "nothing follows damage"),
            }
        }
    }

    /// Both readers of a list agree on any bytes: what one refuses, the other does not trust.
    #[test]
    fn both_readers_refuse_the_same_lists(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let plain: Result<Vec<_>, Damaged> = Postings::new(&bytes).collect();
        let mut fast = Vec::new();
        let read = weights().each(&bytes, |doc, _| fast.push(doc));
        if let (Ok(plain), Ok(())) = (&plain, read) {
            let docs: Vec<_> = plain.iter().map(|posting| posting.doc).collect();
            prop_assert_eq!(docs, fast);
        } else {
            // The fast one also refuses the highest number, which no document has.
            let is_highest = plain.as_ref().is_ok_and(|all| all.iter().any(|it| it.doc == Doc::MAX));
            prop_assert!(plain.is_err() == read.is_err() || is_highest);
        }
    }

    /// Positions are read document by document, whether they are decoded or skipped.
    #[test]
    fn positions_can_be_skipped(lists in lists(), skipped in prop::collection::vec(any::<bool>(), 20)) {
        let list = written(&lists);
        let mut positions = Positions::new(&list.positions);
        for ((posting, (_, expected)), is_skipped) in
            Postings::new(&list.postings).zip(&lists).zip(skipped)
        {
            let posting = posting.unwrap();
            if is_skipped {
                positions.take(&posting).unwrap();
                continue;
            }
            let mut expected = expected.clone();
            expected.retain(|(field, _)| !matches!(field, Field::TitleForms | Field::Forms));
            prop_assert_eq!(positions.read(&posting).unwrap(), expected);
        }
    }

    #[test]
    fn truncated_positions_are_damage(lists in lists(), cut in any::<prop::sample::Index>()) {
        let list = written(&lists);
        prop_assume!(!list.positions.is_empty());
        let mut part = Positions::new(&list.positions[..cut.index(list.positions.len())]);
        let mut all = Postings::new(&list.postings).map(Result::unwrap);
        prop_assert!(all.any(|posting| part.read(&posting).is_err()));
    }
}

/// A posting list of one document.
fn only(bytes: &[u8]) -> Result<Posting, Damaged> {
    Postings::new(bytes).next().unwrap()
}

#[test]
fn fields_that_do_not_exist_are_damage() {
    // Document 0, not plain, with a mask of fields and a count for each.
    assert_eq!(only(&[0, 0]), Err(Damaged), "no field");
    assert_eq!(only(&[0, 0b0100_0000, 1]), Err(Damaged), "a seventh field");
    assert_eq!(only(&[0, 0b1000_0000, 1]), Err(Damaged));
    assert_eq!(only(&[0, 0b1000]), Err(Damaged), "a count is missing");
    let posting = only(&[0, 0b11_1001, 5, 7]).unwrap();
    let counts = Field::ALL.map(|field| posting.counts.of(field));
    assert_eq!(counts, [5, 0, 0, 7, 1, 1]);
    assert!(weights().each(&[0, 0], |_, _| ()).is_err());
    assert!(weights().each(&[0, 0b0100_0000, 1], |_, _| ()).is_err());
}

#[test]
fn document_numbers_beyond_the_highest_are_damage() {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, u64::from(u32::MAX) << 1 | 1);
    assert_eq!(only(&bytes).map(|posting| posting.doc), Ok(Doc::MAX));
    bytes.push(1);
    let read: Vec<_> = Postings::new(&bytes).collect();
    assert!(matches!(read.as_slice(), [Ok(_), Err(Damaged)]));
    let mut bytes = Vec::new();
    put_varint(&mut bytes, u64::MAX);
    assert_eq!(only(&bytes), Err(Damaged));
    let mut twice = vec![1];
    put_varint(&mut twice, u64::MAX);
    assert_eq!(Postings::new(&twice).last(), Some(Err(Damaged)));
}

#[test]
fn positions_beyond_the_highest_are_damage() {
    let list = written(&vec![(0, vec![(Field::Body, 1), (Field::Body, u32::MAX)])]);
    let posting = only(&list.postings).unwrap();
    assert!(Positions::new(&list.positions).read(&posting).is_ok());
    let mut further = vec![2];
    put_varint(&mut further, u64::from(u32::MAX));
    assert_eq!(Positions::new(&further).read(&posting), Err(Damaged));
}

/// Marks take a byte and no position, and are told from words by that.
#[test]
fn marks_have_no_positions() {
    let mut list = PostingList::default();
    for doc in [0, 1, 5] {
        list.push_mark(doc);
    }
    assert_eq!((list.postings.as_slice(), list.positions.as_slice()), (&[1, 1, 7][..], &[][..]));
    let docs: Vec<_> = Postings::new(&list.postings).map(|it| it.unwrap().doc).collect();
    assert_eq!(docs, [0, 1, 5]);
    assert!(Postings::new(&list.postings).all(|it| it.unwrap().counts.is_mark()));
    assert!(!Counts::default().is_mark());
    assert!(Positions::new(&list.positions).is_empty());
}

#[test]
fn counts_of_any_size_come_back() {
    for count in [1, 2, 127, 128, 129, 70_000] {
        let occurrences: Vec<_> = (0..count).map(|at| (Field::Body, at)).collect();
        let list = written(&vec![(9, occurrences.clone())]);
        let posting = only(&list.postings).unwrap();
        assert_eq!(posting.counts.of(Field::Body), count);
        assert_eq!(Positions::new(&list.positions).read(&posting).unwrap(), occurrences);
        let mut weight = 0.0;
        weights().each(&list.postings, |_, it| weight = it).unwrap();
        // A word that is repeated more often does not count more.
        assert!((weight - f32::from(u16::try_from(count).unwrap_or(u16::MAX))).abs() < 0.5);
    }
}

#[test]
fn places_are_ordered_by_field_and_position() {
    let list = written(&vec![(
        0,
        vec![(Field::Title, 3), (Field::Tags, 0), (Field::Headings, 9), (Field::Body, 1)],
    )]);
    let posting = only(&list.postings).unwrap();
    let mut places: Vec<Place> = Vec::new();
    Positions::new(&list.positions).read_into(&posting, &mut places).unwrap();
    assert!(places.is_sorted());
    let fields: Vec<_> = places.iter().map(|place| place.field()).collect();
    assert_eq!(fields, [Field::Title, Field::Tags, Field::Headings, Field::Body]);
    let [title, tags, ..] = places.as_slice() else { panic!("there are four") };
    // However far it goes, a place stays in its field.
    assert_eq!(title.plus(u32::MAX).field(), Field::Title);
    assert!(title.plus(u32::MAX) < *tags);
    assert_eq!(title.plus(2).plus(3), title.plus(5));
    assert_eq!(title.plus(u32::MAX), title.plus(u32::MAX).plus(1));
}

#[test]
fn sets_of_fields_have_the_fields_of_their_name() {
    let of = |fields: Fields| {
        Field::ALL.into_iter().filter(|field| fields.contains(*field)).collect::<Vec<_>>()
    };
    assert_eq!(of(Fields::ALL), Field::ALL);
    assert_eq!(of(Fields::TITLE), [Field::Title, Field::TitleForms]);
    assert_eq!(of(Fields::NAMES), [Field::Title, Field::TitleForms, Field::Forms]);
    assert_eq!(of(Fields::default()), []);
}

/// A list is copied from segment to segment as it is encoded.
#[test]
fn an_encoded_list_says_how_long_it_is() {
    let list = written(&vec![(0, vec![(Field::Body, 200)]), (1, vec![(Field::Title, 1)])]);
    let mut positions = Positions::new(&list.positions);
    let taken: Vec<_> = Postings::new(&list.postings)
        .map(|posting| positions.take(&posting.unwrap()).unwrap().len())
        .collect();
    assert_eq!(taken, [2, 1]);
    assert!(positions.is_empty());
    assert_eq!(Input::new(&list.positions).len(), 3);
}
