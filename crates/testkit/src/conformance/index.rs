//! The index: what is put into it, and what it answers.

use std::cmp::Ordering;
use std::sync::Arc;

use quipu_core::backend::PruneRule;
use quipu_core::index::{
    Column, Document, Entry, IndexQuery, LinkQuery, Mark, NoteName, Phrase, TermQuery, What,
    WordEnd,
};
use quipu_core::model::{Memory, MemoryId, Redaction, Store};

use super::{Fixture, Rows};

const BODY: &[Column] = &[Column::Title, Column::Headings, Column::Body];

/// Writes memories and puts them into the index.
fn indexed(fixture: &Fixture, store: &Store, notes: &[(&str, &str)]) -> Vec<Memory> {
    fixture.with_stores(&[store]);
    let memories: Vec<_> = (1..)
        .zip(notes)
        .map(|(number, (path, text))| Rows::memory(store, number, path, text))
        .collect();
    fixture.with_memories(1, &memories.iter().collect::<Vec<_>>());
    let entries: Vec<_> = memories.iter().map(|memory| Arc::new(Entry::read(memory))).collect();
    fixture.write(|writer| writer.put_notes(&entries));
    memories
}

fn word(word: &str) -> TermQuery {
    let terms = vec![word.to_owned()];
    TermQuery::Phrase(Phrase { terms, end: WordEnd::Whole, columns: BODY })
}

fn query(store: &Store, terms: TermQuery) -> IndexQuery {
    IndexQuery {
        stores: vec![store.id],
        what: What::Memories,
        terms,
        fields: Vec::new(),
        paths: Vec::new(),
        changed_after: None,
        limit: 100,
    }
}

fn found(fixture: &Fixture, query: &IndexQuery) -> Vec<MemoryId> {
    let matches = fixture.read(|reader| reader.search_index(query));
    assert_eq!(matches.total.count, matches.hits.len());
    matches.hits.iter().map(|hit| hit.memory).collect()
}

fn sorted(mut ids: Vec<MemoryId>) -> Vec<MemoryId> {
    ids.sort_unstable();
    ids
}

/// "Returns the documents of the index that fit the query, the best first."
pub fn the_documents_that_fit_are_found_the_best_first(fixture: &Fixture) {
    let store = Rows::store(1);
    let notes = [("/a", "tea"), ("/b", "# Tea\n\nmore text than that"), ("/c", "kettle")];
    let memories = indexed(fixture, &store, &notes);
    assert_eq!(found(fixture, &query(&store, word("tea"))), [memories[1].id, memories[0].id]);
    let scores: Vec<_> = fixture
        .read(|reader| reader.search_index(&query(&store, word("tea"))))
        .hits
        .iter()
        .map(|hit| hit.score)
        .collect();
    assert!(scores.is_sorted_by(|left, right| left.total_cmp(right) != Ordering::Less));
    let first = IndexQuery { limit: 1, ..query(&store, word("tea")) };
    let matches = fixture.read(|reader| reader.search_index(&first));
    assert_eq!((matches.hits.len(), matches.total.count), (1, 2));
}

/// "Which documents fit is exact": all of, one of, not, beside each other, beginnings.
pub fn every_kind_of_query_is_answered(fixture: &Fixture) {
    let store = Rows::store(1);
    let notes = [("/a", "green tea"), ("/b", "tea green"), ("/c", "teapot"), ("/d", "")];
    let memories = indexed(fixture, &store, &notes);
    let [a, b, c, d] = [0, 1, 2, 3].map(|number: usize| memories[number].id);
    let find = |terms: TermQuery| sorted(found(fixture, &query(&store, terms)));
    let phrase = |terms: &[&str], end| {
        let terms = terms.iter().map(|&term| term.to_owned()).collect();
        TermQuery::Phrase(Phrase { terms, end, columns: BODY })
    };
    let not = |query: TermQuery| TermQuery::Not(Box::new(query));
    let (tea, green, pot) = (word("tea"), word("green"), word("teapot"));
    assert_eq!(find(TermQuery::any()), [a, b, c, d]);
    assert_eq!(find(TermQuery::none()), []);
    assert_eq!(find(phrase(&["green", "tea"], WordEnd::Whole)), [a]);
    assert_eq!(find(phrase(&["tea"], WordEnd::Prefix)), [a, b, c]);
    assert_eq!(find(phrase(&["green", "te"], WordEnd::Prefix)), [a]);
    assert_eq!(find(TermQuery::And(vec![tea.clone(), green.clone()])), [a, b]);
    assert_eq!(find(TermQuery::Or(vec![pot.clone(), green.clone()])), [a, b, c]);
    assert_eq!(find(not(tea.clone())), [c, d]);
    assert_eq!(find(TermQuery::Or(vec![not(tea.clone()), green.clone()])), [a, b, c, d]);
    assert_eq!(find(TermQuery::And(vec![not(pot), not(green)])), [d]);
    assert_eq!(find(not(TermQuery::any())), []);
    assert_eq!(find(not(TermQuery::none())), [a, b, c, d]);
    assert_eq!(find(TermQuery::mark(Mark::Place("/c"))), [c]);
    let columns = &[Column::Title];
    let titled =
        TermQuery::Phrase(Phrase { terms: vec!["a".to_owned()], end: WordEnd::Whole, columns });
    assert_eq!(find(titled), [a]);
}

/// "Returns how many documents of the index fit the query, `query.limit` at most."
pub fn documents_are_counted_up_to_a_limit(fixture: &Fixture) {
    let store = Rows::store(1);
    indexed(fixture, &store, &[("/a", "tea"), ("/b", "tea"), ("/c", "tea"), ("/d", "")]);
    let count = |limit| {
        let query = IndexQuery { limit, ..query(&store, word("tea")) };
        fixture.read(|reader| reader.count_index(&query))
    };
    assert_eq!((count(100), count(2), count(0)), (3, 2, 0));
}

/// Only the stores that are asked for, and only documents of the kind that is.
pub fn only_the_stores_and_documents_that_are_asked_for_are_found(fixture: &Fixture) {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&other]);
    let memories = indexed(fixture, &store, &[("/a", "- [tea] green\n- tea [[pot]]")]);
    let find = |what, word: &str| {
        let query = IndexQuery { what, ..query(&store, self::word(word)) };
        fixture.read(|reader| reader.search_index(&query)).hits.len()
    };
    assert_eq!([find(What::Memories, "tea"), find(What::Memories, "green")], [1, 1]);
    assert_eq!([find(What::Observations, "tea"), find(What::Observations, "pot")], [1, 0]);
    assert_eq!([find(What::Relations, "tea"), find(What::Relations, "green")], [1, 0]);
    assert_eq!(found(fixture, &query(&other, word("tea"))), []);
    let both = IndexQuery { stores: vec![other.id, store.id], ..query(&store, word("tea")) };
    assert_eq!(found(fixture, &both), [memories[0].id]);
}

/// "Only documents of memories that changed after this moment."
pub fn documents_are_selected_by_the_time_of_their_memory(fixture: &Fixture) {
    let store = Rows::store(1);
    let memories = indexed(fixture, &store, &[("/a", "tea"), ("/b", "tea\n- [fact] tea")]);
    let changed_after = Some(memories[0].updated_at);
    for (what, expected) in [(What::Memories, 1), (What::Observations, 1)] {
        for terms in [word("tea"), TermQuery::any()] {
            let query = IndexQuery { what, changed_after, ..query(&store, terms) };
            let matches = fixture.read(|reader| reader.search_index(&query));
            assert_eq!(matches.hits.len(), expected);
            assert_eq!(matches.hits[0].memory, memories[1].id);
        }
    }
}

/// "Returns what the index knows of a memory."
pub fn a_note_is_read_back_as_it_was_put(fixture: &Fixture) {
    let store = Rows::store(1);
    let text = "---\ntype: recipe\npermalink: own/name\n---\n# Tea";
    let memories = indexed(fixture, &store, &[("/a", text), ("/b", "plain")]);
    for memory in &memories {
        let note = fixture.read(|reader| reader.note(store.id, memory.id));
        assert_eq!(note, Some(Entry::read(memory).row));
        assert_eq!(fixture.read(|reader| reader.note(Rows::store(2).id, memory.id)), None);
    }
    let absent = Rows::memory(&store, 9, "/c", "").id;
    assert_eq!(fixture.read(|reader| reader.note(store.id, absent)), None);
}

/// "in byte order of the paths, from the first path after `after` on"
pub fn notes_come_by_path_page_by_page(fixture: &Fixture) {
    let store = Rows::store(1);
    let memories = indexed(fixture, &store, &[("/b", ""), ("/a/x", ""), ("/a.md", "")]);
    let page = |after: Option<usize>, limit| {
        let after = after.map(|number| &memories[number].path);
        let notes = fixture.read(|reader| reader.notes(store.id, after, limit));
        notes.into_iter().map(|note| note.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2), ["/a.md", "/a/x"]);
    assert_eq!(page(Some(1), 2), ["/b"]);
    assert_eq!(page(Some(0), 2), Vec::<String>::new());
}

/// "Returns the memories of a store that the index knows by a name, the oldest first."
pub fn notes_are_found_by_their_names(fixture: &Fixture) {
    let store = Rows::store(1);
    let notes = [("/x/b.md", "# Tea"), ("/a.md", "# Tea"), ("/c.md", "---\npermalink: a\n---\n")];
    let memories = indexed(fixture, &store, &notes);
    let named = |name: NoteName| {
        let notes = fixture.read(|reader| reader.notes_named(store.id, &name));
        notes.into_iter().map(|note| note.memory).collect::<Vec<_>>()
    };
    let [first, second, third] = [0, 1, 2].map(|number: usize| memories[number].id);
    let text = |text: &str| text.to_owned();
    assert_eq!(named(NoteName::Title(text("Tea"))), [first, second]);
    assert_eq!(named(NoteName::Title(text("tea"))), []);
    assert_eq!(named(NoteName::Alias(text("tea"))), [first, second]);
    assert_eq!(named(NoteName::Alias(text("x/b"))), [first]);
    assert_eq!(named(NoteName::Permalink(text("a"))), [second, third]);
    assert_eq!(named(NoteName::Permalink(text("x/b"))), [first]);
}

/// "The links of a memory, in their order", and "the links that have one of these keys".
pub fn links_are_found_from_both_ends(fixture: &Fixture) {
    let store = Rows::store(1);
    let text = "- needs [[Pot#Lid|the lid]] (hot)\n\n[[other::Tea]]";
    let memories = indexed(fixture, &store, &[("/a", text), ("/b", "[[pot]]")]);
    let entry = Entry::read(&memories[0]);
    let links =
        |query: LinkQuery, limit| fixture.read(|reader| reader.links(store.id, &query, limit));
    let expected: Vec<_> = entry.links.iter().map(|link| link.row.clone()).collect();
    assert_eq!(expected.len(), 2);
    assert_eq!(links(LinkQuery::From(memories[0].id), 10), expected);
    assert_eq!(links(LinkQuery::From(memories[0].id), 1), expected[..1]);
    let keys = ["pot", "nothing"].map(str::to_owned).to_vec();
    let towards = links(LinkQuery::Towards(keys), 10);
    let from: Vec<_> = towards.iter().map(|link| link.from).collect();
    assert_eq!(from, [memories[0].id, memories[1].id]);
    assert_eq!(links(LinkQuery::Towards(Vec::new()), 10), []);
}

/// "Adds the entry of a memory to the index, in place of the one that was there", and removes it.
pub fn putting_a_note_again_replaces_it_and_removing_leaves_nothing(fixture: &Fixture) {
    let store = Rows::store(1);
    let memories = indexed(fixture, &store, &[("/a", "tea\n- [fact] tea\n- tea [[pot]]")]);
    let changed = Rows::changed(&memories[0], 5, "/b", "kettle");
    fixture.write(|writer| {
        writer.commit(&Rows::commit(5, Some(&memories[0]), Some(&changed)))?;
        writer.put_notes(&[Arc::new(Entry::read(&changed))])
    });
    let everything = [What::Memories, What::Observations, What::Relations];
    for what in everything {
        assert_eq!(found(fixture, &IndexQuery { what, ..query(&store, word("tea")) }), []);
    }
    assert_eq!(found(fixture, &query(&store, word("kettl"))), [changed.id]);
    assert_eq!(fixture.backend.verify_index().expect("it verifies"), Vec::<String>::new());
    fixture.write(|writer| {
        writer.remove_note(Rows::store(2).id, changed.id)?;
        writer.put_notes(&[Arc::new(Entry::read(&changed))])
    });
    assert_eq!(found(fixture, &query(&store, word("kettl"))), [changed.id]);
    fixture.write(|writer| writer.remove_note(store.id, changed.id));
    assert_eq!(found(fixture, &query(&store, TermQuery::any())), []);
    assert_eq!(fixture.backend.verify_index().expect("it verifies"), Vec::<String>::new());
}

/// "Removes all entries from the index."
pub fn a_cleared_index_is_empty(fixture: &Fixture) {
    let store = Rows::store(1);
    let memories = indexed(fixture, &store, &[("/a", "tea\n- [fact] tea\n- tea [[pot]]")]);
    fixture.write(|writer| writer.clear_index());
    assert_eq!(found(fixture, &query(&store, TermQuery::any())), []);
    assert_eq!(fixture.backend.verify_index().expect("it verifies"), Vec::<String>::new());
    fixture.write(|writer| writer.put_notes(&[Arc::new(Entry::read(&memories[0]))]));
    assert_eq!(found(fixture, &query(&store, word("tea"))), [memories[0].id]);
}

/// Redaction, pruning and the removal of a store take entries along.
pub fn entries_go_with_what_they_were_made_of(fixture: &Fixture) {
    let store = Rows::store(1);
    let notes = [("/a", "tea"), ("/b", "tea"), ("/c", "tea")];
    let memories = indexed(fixture, &store, &notes);
    let changed = Rows::changed(&memories[0], 5, "/a", "clean");
    fixture.write(|writer| {
        writer.commit(&Rows::commit(5, Some(&memories[0]), Some(&changed)))?;
        let redaction = Redaction { at: Rows::at(6), by: Rows::actor("ada") };
        writer.redact(store.id, memories[0].version, &redaction)
    });
    assert_eq!(found(fixture, &query(&store, word("tea"))).len(), 2);
    fixture.write(|writer| {
        writer.commit(&Rows::commit(7, Some(&memories[1]), None))?;
        let rule = PruneRule { before: Rows::at(7), keep_newest: 10 };
        writer.prune(&rule, 100).map(drop)
    });
    assert_eq!(found(fixture, &query(&store, word("tea"))), [memories[2].id]);
    fixture.write(|writer| writer.remove_store(store.id));
    assert_eq!(fixture.read(|reader| reader.note(store.id, memories[2].id)), None);
    assert_eq!(fixture.backend.verify_index().expect("it verifies"), Vec::<String>::new());
}

/// "Compares what the index keeps of each entry with what is made of the version."
pub fn an_entry_that_differs_from_its_text_is_reported(fixture: &Fixture) {
    let store = Rows::store(1);
    let memories = indexed(fixture, &store, &[("/a", "tea"), ("/b", "kettle")]);
    assert_eq!(fixture.backend.verify_index().expect("it verifies"), Vec::<String>::new());
    let right = Entry::read(&memories[0]);
    let document = Document { body: "coffee".to_owned(), ..right.document.clone() };
    let wrong = [Arc::new(Entry { document, ..right })];
    fixture.write(|writer| {
        writer.clear_index()?;
        writer.put_notes(&wrong)
    });
    let problems = fixture.backend.verify_index().expect("it verifies");
    assert!(matches!(problems.as_slice(), [only] if only.contains("/a")), "{problems:?}");
}
