use std::collections::BTreeSet;

use quipu_core::model::{Content, Id as _, MemoryId, StoreId, Timestamp, VersionId};

use super::*;

fn memory(path: &str, text: &str) -> Memory {
    let content = Content::new(text).unwrap();
    let at = Timestamp::from_micros(1_700_000_000_000_000);
    Memory {
        id: MemoryId::new(at, 1),
        store: StoreId::new(at, 2),
        version: VersionId::new(at, 3),
        path: MemoryPath::parse(path).unwrap(),
        hash: content.hash(),
        size_bytes: content.size_bytes(),
        content: Some(content),
        created_at: at,
        updated_at: at,
    }
}

fn entry(path: &str, text: &str) -> Entry {
    Entry::read(&memory(path, text), &mut Lexicon::default())
}

/// Returns the words of a document in a field, by position.
fn words(document: &Document, space: Space, wanted: Field) -> Vec<(u32, String)> {
    let prefix = word(space, "");
    let of = |(term, field, at): &(Vec<u8>, Field, u32)| {
        let text = term.strip_prefix(prefix.as_slice()).expect("a word of the space");
        let text = String::from_utf8(text.to_vec()).unwrap();
        (*field == wanted).then_some((*at, text))
    };
    let mut found: Vec<_> = document.words.iter().filter_map(of).collect();
    found.sort();
    found
}

fn listed(document: &Document, space: Space, field: Field) -> String {
    let words = words(document, space, field);
    words.iter().map(|(at, word)| format!("{at}:{word}")).collect::<Vec<_>>().join(" ")
}

fn has(document: &Document, mark: &[u8]) -> bool {
    document.marks.iter().any(|it| it == mark)
}

fn assert_marked(entry: &Entry, marks: &[Mark<'_>]) {
    for mark in marks {
        assert!(has(&entry.documents.memory, &mark.term(Space::Memories)), "{mark:?}");
    }
}

fn assert_unmarked(entry: &Entry, marks: &[Mark<'_>]) {
    for mark in marks {
        assert!(!has(&entry.documents.memory, &mark.term(Space::Memories)), "{mark:?}");
    }
}

#[test]
fn words_have_fields_and_positions() {
    let entry = entry("/x/a.md", "---\ntags: [hot, cold/wet]\n---\n# Green tea\n\ncups of tea\n");
    let memory = &entry.documents.memory;
    assert_eq!(listed(memory, Space::Memories, Field::Title), "0:green 1:tea");
    assert_eq!(listed(memory, Space::Memories, Field::Headings), "0:green 1:tea");
    assert_eq!(listed(memory, Space::Memories, Field::Body), "0:green 1:tea 2:cup 3:of 4:tea");
    // A gap keeps phrases from spanning two tags.
    assert_eq!(listed(memory, Space::Memories, Field::Tags), "0:hot 2:cold 3:wet");
    assert_eq!(memory.length, 5, "the length of a note is its text");
}

/// What a word is found by besides its stem has no position, so that phrases are exact.
#[test]
fn variants_have_no_positions() {
    let entry = entry("/x/path-word.md", "---\nauthor: Ada\n---\nparsing parseJson\n");
    let memory = &entry.documents.memory;
    for field in [Field::TitleForms, Field::Forms] {
        assert!(words(memory, Space::Memories, field).iter().all(|(at, _)| *at == 0));
    }
    let forms: BTreeSet<_> =
        words(memory, Space::Memories, Field::Forms).into_iter().map(|(_, word)| word).collect();
    for form in ["parsing", "json", "path", "word", "ada"] {
        assert!(forms.contains(form), "{form} of {forms:?}");
    }
}

#[test]
fn the_words_and_marks_of_a_document_are_distinct() {
    let text = "---\ntags: [a, a, A]\naliases: [x, X]\n---\n# T\n\n- [f] t #a\n- [f] t #a\n[[x]] [[x]] tea tea tea";
    let entry = entry("/a/b.md", text);
    let documents = &entry.documents;
    let all = [&documents.memory].into_iter();
    for document in all.chain(&documents.observations).chain(&documents.relations) {
        let words: BTreeSet<_> = document.words.iter().collect();
        assert_eq!(words.len(), document.words.len());
        let marks: BTreeSet<_> = document.marks.iter().collect();
        assert_eq!(marks.len(), document.marks.len());
        assert!(document.marks.iter().all(|mark| mark.len() > 2), "no mark is empty");
    }
}

#[test]
fn a_memory_is_marked_with_every_place_above_it() {
    let entry = entry("/a/b/c.md", "text");
    assert_marked(&entry, &[Mark::Place("/a"), Mark::Place("/a/b"), Mark::Place("/a/b/c.md")]);
    assert_unmarked(&entry, &[Mark::Place("/"), Mark::Place("/a/"), Mark::Place("/a/b/c")]);
}

#[test]
fn a_nested_tag_is_also_its_parents() {
    let entry =
        entry("/a.md", "---\ntags: [Drink/Hot/Tea]\n---\n- [fact] x #inner/part\n\n#loose/end");
    let tag = |tag| Mark::Tag(tag);
    assert_marked(&entry, &[tag("drink"), tag("drink/hot"), tag("drink/hot/tea")]);
    assert_marked(&entry, &[tag("inner"), tag("inner/part"), tag("loose"), tag("loose/end")]);
    assert_unmarked(&entry, &[tag("hot"), tag("tea"), tag("drink/"), tag("part"), tag("")]);
}

/// An observation has its own tags and those of the frontmatter, not those of its neighbors.
#[test]
fn observations_inherit_what_holds_for_the_note() {
    let text = "---\ntype: recipe\ntags: [front]\n---\n# Green tea\n\n- [fact] warm #mine\n- [rule] two\n\n#loose";
    let documents = entry("/x/a.md", text).documents;
    let [one, two] = documents.observations.as_slice() else { panic!("there are two") };
    let mark = |mark: Mark<'_>| mark.term(Space::Observations);
    for document in [one, two] {
        for inherited in [Mark::Type("recipe"), Mark::Place("/x"), Mark::Tag("front")] {
            assert!(has(document, &mark(inherited)), "{inherited:?}");
        }
        assert!(!has(document, &mark(Mark::Tag("loose"))));
        let forms = words(document, Space::Observations, Field::Forms);
        assert!(forms.iter().any(|(_, word)| word == "green"), "the words of the title");
    }
    assert!(has(one, &mark(Mark::Tag("mine"))) && !has(two, &mark(Mark::Tag("mine"))));
    assert!(has(one, &mark(Mark::Category("FACT"))) && !has(two, &mark(Mark::Category("fact"))));
    assert_eq!(listed(one, Space::Observations, Field::Body), "0:warm 1:mine");
    assert_eq!(listed(one, Space::Observations, Field::Title), "0:fact");
}

#[test]
fn relations_are_documents_of_their_own() {
    let documents =
        entry("/a.md", "# Title\n\n- depends_on [[Hot Water]] (each day)\n\n[[Cups]]").documents;
    let [first, second] = documents.relations.as_slice() else { panic!("there are two") };
    let body = listed(first, Space::Relations, Field::Body);
    assert_eq!(body, "0:hot 1:water 3:each 4:day 6:titl");
    assert_eq!(listed(first, Space::Relations, Field::Title), "0:depend 1:on");
    let is = |kind| Mark::Relation(kind).term(Space::Relations);
    assert!(has(first, &is("DEPENDS_ON")) && !has(first, &is("links_to")));
    assert!(has(second, &is("links_to")));
}

#[test]
fn fields_are_flattened_and_lists_have_several_values() {
    let text = "---\nstatus: Open\nauthor: {name: Ada, team: {id: 7}}\nlist: [a, b]\nnone:\nempty: []\n---\nx";
    let entry = entry("/a.md", text);
    let field = |key, value| Mark::Field(key, value);
    assert_marked(
        &entry,
        &[field("status", "Open"), field("author", ""), field("author.name", "Ada")],
    );
    assert_marked(&entry, &[field("author.team.id", "7"), field("list", "a"), field("list", "b")]);
    assert_marked(
        &entry,
        &[field("none", ""), field("empty", ""), field("title", "a"), field("type", "note")],
    );
    assert_unmarked(
        &entry,
        &[field("status", "open"), field("list", "a, b"), field("name", "Ada")],
    );
}

/// Nobody writes this many by hand, and each costs a term.
#[test]
fn the_number_of_fields_is_bounded() {
    let list = (0..5_000).map(|it| it.to_string()).collect::<Vec<_>>().join(", ");
    let entry = entry("/a.md", &format!("---\nlist: [{list}]\n---\nx"));
    let prefix = crate::index::field_prefix("list");
    let count = entry.documents.memory.marks.iter().filter(|it| it.starts_with(&prefix)).count();
    assert!((900..=FIELDS_MAX).contains(&count), "{count}");
}

#[test]
fn a_card_has_every_name_as_a_key() {
    let text = "---\ntitle: The Tea House\naliases: [Sencha Bar]\npermalink: tea\n---\nx";
    let entry = entry("/Docs/Tea_House.md", text);
    let id = memory("/x.md", "").id.to_string();
    for name in [
        "docs/tea-house.md",
        "docs/tea-house",
        "tea-house",
        "the-tea-house",
        "sencha-bar",
        "tea",
        &alias_key(&id),
    ] {
        assert!(entry.card.names.iter().any(|it| it == name), "{name} of {:?}", entry.card.names);
        assert_marked(&entry, &[Mark::Name(name)]);
    }
    assert_marked(&entry, &[Mark::Title("The Tea House"), Mark::Permalink("tea")]);
    assert_eq!(
        (entry.card.title.as_str(), entry.card.permalink.as_str()),
        ("The Tea House", "tea")
    );
}

/// A link is found from its target by any name that it may mean.
#[test]
fn a_link_has_a_key_for_each_reading() {
    let keys = |link: &str| {
        let entry = entry("/x/from.md", link);
        let [link] = entry.card.links.as_slice() else { panic!("{link}: one link") };
        link_keys(&entry.card.path, &link.target)
    };
    let assert_keys = |link: &str, wanted: &[&str]| {
        let keys = keys(link);
        for key in wanted {
            assert!(keys.iter().any(|it| it == key), "{link}: `{key}` of {keys:?}");
        }
        assert!(keys.iter().all(|key| !key.is_empty()), "{link}");
    };
    assert_keys("[[Tea House]]", &["tea-house", "tea-house.md"]);
    assert_keys("[[C# tips]]", &["c#tips", "c"]);
    assert_keys("[[other::Tea]]", &["tea", "other::tea"]);
    assert_keys("[[./near.md]]", &["x/near.md"]);
    assert_keys("[[../up]]", &["up", "up.md"]);
    assert_keys("[t](near.md)", &["x/near.md", "near.md", "near"]);
    assert_keys("[t](memory://tests/docs/a)", &["tests/docs/a", "docs/a"]);
    assert_keys("[[/abs/path.md]]", &["abs/path.md", "abs/path"]);
}

/// An entry depends on the path and the text alone, and any text has one.
#[test]
fn any_text_has_an_entry() {
    for text in
        ["", "\n", "---", "---\n---", "---\n: [\n---\n", "[[", "- [", "#", "# ", "\u{feff}x"]
    {
        let entry = entry("/a.md", text);
        assert_eq!(entry, self::entry("/a.md", text));
        assert!(!entry.card.title.is_empty(), "{text:?}");
        assert_marked(&entry, &[Mark::Place("/a.md"), Mark::Name("a")]);
    }
    let mut without = memory("/a.md", "x");
    without.content = None;
    assert_eq!(Entry::read(&without, &mut Lexicon::default()).documents.memory.length, 0);
}

#[test]
fn the_language_of_a_note_is_a_mark() {
    let german = "Die Häuser sind nicht alt, und wir haben sie mit der Zeit gesehen.";
    assert_marked(&entry("/de.md", german), &[Mark::Language("de")]);
    assert_marked(&entry("/en.md", "tea"), &[Mark::Language("en")]);
    let named = entry("/fr.md", "---\nlang: fr\n---\nchevaux");
    assert_marked(&named, &[Mark::Language("fr")]);
    assert_eq!(listed(&named.documents.memory, Space::Memories, Field::Body), "0:cheval");
}
