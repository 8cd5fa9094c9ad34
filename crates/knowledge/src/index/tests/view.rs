use std::sync::Arc;

use proptest::prelude::*;
use rusqlite::Connection;

use super::super::batch::put_segment;
use super::super::error::IndexError;
use super::super::file::{SCHEMA, Snapshot};
use super::super::rows;
use super::super::segment::{Segment, SegmentBuilder};
use super::super::term::{self, Mark, Space};
use super::super::view::SegmentView;
use super::{Fixture, Text, documents, memory, numbers, path, text};

fn built(texts: &[Text]) -> Segment {
    let mut builder = SegmentBuilder::default();
    for (number, text) in (0..).zip(texts) {
        builder.add(documents(number, text));
    }
    builder.finish()
}

/// A segment in the rows of a database, with some dead memories.
fn stored(segment: &Segment, dead: &[u32]) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    put_segment(&connection, 1, 1, segment).unwrap();
    for doc in dead {
        rows::put_dead(&connection, 1, 1, *doc).unwrap();
    }
    connection
}

/// Everything that a view can be asked for.
fn answers(view: &SegmentView<'_>, wanted: &[String]) -> Vec<String> {
    let mut answers = Vec::new();
    for space in Space::ALL {
        answers.push(format!("{} {:?}", view.count(space), view.live(space).unwrap()));
        let lengths = view.lengths(space).unwrap();
        for doc in view.live(space).unwrap().iter() {
            answers.push(format!("{:?} {:?}", lengths.get(doc), view.fact(space, doc).unwrap()));
        }
        for word in wanted {
            let key = term::word(space, word);
            answers.push(format!("{word} {:?}", view.docs_with(space, &key).unwrap()));
            let list = view.list(&key).unwrap().map(|list| (list.postings, list.positions));
            answers.push(format!("{list:?}"));
            let mut with_prefix = Vec::new();
            let each = view.each_with_prefix(&key, |term, postings| {
                with_prefix.push((term.to_vec(), postings.to_vec()));
                Ok(())
            });
            each.unwrap();
            assert!(with_prefix.is_sorted());
            assert!(with_prefix.iter().all(|(term, _)| term.starts_with(&key)));
            answers.push(format!("{with_prefix:?}"));
        }
    }
    for doc in view.live(Space::Memories).unwrap().iter() {
        answers.push(format!("{:?} {:?}", view.memory(doc), view.updated_at(doc)));
    }
    let mut paths = Vec::new();
    view.each_path(|doc, path| paths.push((doc, path.to_owned()))).unwrap();
    answers.push(format!("{paths:?}"));
    let each = view.each_list(|term, postings, positions| {
        answers.push(format!("{term:?} {postings:?} {positions:?}"));
        Ok(())
    });
    each.unwrap();
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A segment answers the same from memory and from the file.
    #[test]
    fn a_stored_segment_is_like_one_in_memory(
        texts in prop::collection::vec(text(), 1..30),
        dead in prop::collection::btree_set(0_u32..30, 0..6),
        wanted in prop::collection::vec("[a-e]{0,3}", 6),
    ) {
        let segment = built(&texts);
        let dead: Vec<_> = dead.into_iter().filter(|doc| (*doc as usize) < texts.len()).collect();
        let connection = stored(&segment, &dead);
        let row = rows::segments(&connection, 1).unwrap().remove(0);
        let on_disk = SegmentView::stored(Snapshot::uncached(&connection), &row).unwrap();
        let mut in_memory = SegmentView::in_memory(Arc::new(segment));
        for doc in &dead {
            in_memory.kill(*doc);
        }
        prop_assert_eq!(answers(&on_disk, &wanted), answers(&in_memory, &wanted));
    }

    /// What is read by prefix is what a scan over all lists keeps.
    #[test]
    fn reading_by_prefix_is_filtering(
        texts in prop::collection::vec(text(), 1..30),
        prefix in "[mor][wt#]?[a-dx]{0,2}",
    ) {
        let view = SegmentView::in_memory(Arc::new(built(&texts)));
        let (mut found, mut scanned) = (Vec::new(), Vec::new());
        let each = view.each_with_prefix(prefix.as_bytes(), |term, postings| {
            found.push((term.to_vec(), postings.to_vec()));
            Ok(())
        });
        each.unwrap();
        let each = view.each_list(|term, postings, _| {
            if term.starts_with(prefix.as_bytes()) {
                scanned.push((term.to_vec(), postings.to_vec()));
            }
            Ok(())
        });
        each.unwrap();
        prop_assert_eq!(found, scanned);
    }
}

/// A dead memory takes its observations and relations with it.
#[test]
fn the_facts_of_a_dead_memory_are_dead() {
    let fact = |word: &str| vec![vec![word.to_owned()]];
    let text =
        |word: &str| Text { observations: fact(word), relations: fact(word), ..Text::of("tea") };
    let mut view = SegmentView::in_memory(Arc::new(built(&[text("a"), text("b"), text("a")])));
    let docs = |view: &SegmentView<'_>, space, word| {
        let docs = view.docs_with(space, &term::word(space, word)).unwrap();
        docs.iter().collect::<Vec<_>>()
    };
    for space in [Space::Observations, Space::Relations] {
        assert_eq!(docs(&view, space, "a"), [0, 2]);
    }
    view.kill(0);
    view.kill(0);
    for space in Space::ALL {
        assert_eq!(view.live(space).unwrap().iter().collect::<Vec<_>>(), [1, 2]);
    }
    for space in [Space::Observations, Space::Relations] {
        assert_eq!(docs(&view, space, "a"), [2]);
        assert_eq!(docs(&view, space, "b"), [1]);
    }
    assert_eq!(view.count(Space::Memories), 3, "dead ones included");
}

#[test]
fn documents_that_a_segment_does_not_have_are_damage() {
    let view = SegmentView::in_memory(Arc::new(built(&[Text::of("tea")])));
    assert!(matches!(view.memory(1), Err(IndexError::Damaged)));
    assert!(matches!(view.updated_at(1), Err(IndexError::Damaged)));
    assert!(matches!(view.fact(Space::Observations, 0), Err(IndexError::Damaged)));
    assert!(view.lengths(Space::Memories).unwrap().get(1).is_err());
    assert!(view.lengths(Space::Relations).unwrap().get(0).is_err());
}

/// An error of the visitor ends the reading and is passed on.
#[test]
fn an_error_of_a_visitor_is_passed_on() {
    let segment = built(&[Text::of("a b c d")]);
    let connection = stored(&segment, &[]);
    let row = rows::segments(&connection, 1).unwrap().remove(0);
    let on_disk = SegmentView::stored(Snapshot::uncached(&connection), &row).unwrap();
    for view in [&on_disk, &SegmentView::in_memory(Arc::new(segment))] {
        let mut count = 0;
        let each = view.each_with_prefix(&term::word(Space::Memories, ""), |_, _| {
            count += 1;
            if count == 2 { Err(IndexError::Outdated) } else { Ok(()) }
        });
        assert!(matches!(each, Err(IndexError::Outdated)));
        assert_eq!(count, 2);
        let each = view.each_list(|_, _, _| Err(IndexError::Outdated));
        assert!(matches!(each, Err(IndexError::Outdated)));
        let with =
            view.with_postings(&term::word(Space::Memories, "a"), |_| Err(IndexError::Outdated));
        assert!(matches!(with, Err(IndexError::Outdated)));
    }
}

/// Small segments are kept in memory between reads, and tombstones are not.
#[test]
fn what_dies_between_two_reads_is_dead_in_the_second() {
    let mut fixture = Fixture::new();
    for number in 0..6 {
        fixture.put(number, "tea");
    }
    assert_eq!(fixture.with("tea"), [0, 1, 2, 3, 4, 5]);
    fixture.put(2, "coffee");
    assert_eq!(fixture.with("tea"), [0, 1, 3, 4, 5]);
    fixture.apply(&[], &[4]);
    assert_eq!(fixture.with("tea"), [0, 1, 3, 5]);
    fixture.assert_holds_its_model();
}

#[test]
fn a_store_without_a_row_is_empty() {
    let fixture = Fixture::new();
    let read = fixture.file.read(|snapshot| {
        let view = super::StoreView::new(snapshot, super::store_id(99), None, None)?;
        assert_eq!(view.totals, super::Totals::default());
        assert_eq!(view.segments.len(), 0);
        assert_eq!(view.with_card(memory(1), |_| Ok(()))?, None);
        assert_eq!(view.foreign_languages()?, Vec::<String>::new());
        view.each_card(|_, _| panic!("there is none"))?;
        view.memories_with(&term::memory(memory(1)))
    });
    assert_eq!(read.unwrap(), []);
}

#[test]
fn reading_cards_ends_when_it_is_told_to() {
    let mut fixture = Fixture::new();
    (0..5).for_each(|number| fixture.put(number, "tea"));
    let mut seen = 0;
    fixture.view(|view| {
        view.each_card(|_, _| {
            seen += 1;
            Ok(seen < 3)
        })
        .unwrap();
    });
    assert_eq!(seen, 3);
}

/// A language counts only while a live note is in it.
#[test]
fn the_languages_of_a_store_are_those_of_its_live_notes() {
    let mut fixture = Fixture::new();
    let languages = |fixture: &Fixture| fixture.view(|view| view.foreign_languages().unwrap());
    let put = |fixture: &mut Fixture, number: u32, tag: &str| {
        let mut batch = super::BatchBuilder::default();
        let mut documents = documents(number, &Text::of("tea"));
        documents.memory.marks.push(Mark::Language(tag).term(Space::Memories));
        batch.add(documents, Vec::new());
        let (batch, from) = (batch.finish(), fixture.row().cursor);
        let applied = fixture.file.write(|connection| {
            batch.apply(connection, fixture.store, (from, from), super::Sequence(9))
        });
        assert_eq!(applied.unwrap(), super::Applied::Done);
    };
    put(&mut fixture, 1, "en");
    assert_eq!(languages(&fixture), Vec::<String>::new());
    put(&mut fixture, 2, "ru");
    put(&mut fixture, 3, "de");
    put(&mut fixture, 4, "de");
    assert_eq!(languages(&fixture), ["de", "ru"]);
    put(&mut fixture, 2, "en");
    assert_eq!(languages(&fixture), ["de"]);
    put(&mut fixture, 3, "en");
    assert_eq!(languages(&fixture), ["de"]);
    put(&mut fixture, 4, "en");
    assert_eq!(languages(&fixture), Vec::<String>::new());
}

/// Rows of different ages may each be intact: what belongs together is compared.
#[test]
fn segments_that_do_not_add_up_to_the_store_are_damage() {
    let mut fixture = Fixture::new();
    (0..3).for_each(|number| fixture.put(number, "tea"));
    let read = |fixture: &Fixture| {
        fixture.file.read(|snapshot| {
            let row = super::store_rows::store(snapshot.connection, fixture.store)?;
            super::StoreView::new(snapshot, fixture.store, row.as_ref(), None).map(drop)
        })
    };
    assert!(read(&fixture).is_ok());
    let (num, first) = (fixture.row().num, fixture.segments()[0].id);
    let removed = fixture.file.write(|connection| {
        while rows::remove_segment(connection, num, first, 100)? {}
        Ok(())
    });
    removed.unwrap();
    assert!(matches!(read(&fixture), Err(IndexError::Damaged)));
}

#[test]
fn paths_are_listed_with_dead_memories() {
    let view = SegmentView::in_memory(Arc::new(built(&[Text::of("a"), Text::of("b")])));
    let mut paths = Vec::new();
    view.each_path(|doc, path| paths.push((doc, path.to_owned()))).unwrap();
    assert_eq!(paths, [(0, path(0)), (1, path(1))]);
}

#[test]
fn a_memory_in_several_segments_is_found_once() {
    let mut fixture = Fixture::new();
    for round in 0..5 {
        fixture.put(7, &format!("tea round{round}"));
    }
    assert_eq!(fixture.with("tea"), [7]);
    assert_eq!(fixture.with("round3"), Vec::<u32>::new());
    assert_eq!(fixture.view(|view| numbers(view, &term::memory(memory(7)))), [7]);
    fixture.assert_holds_its_model();
}
