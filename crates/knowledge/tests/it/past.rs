//! Searching and following links in a store as it was.

use std::sync::Arc;

use quipu_core::Moment;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryPath, Name, PrincipalName, StoreId};
use quipu_knowledge::{Knowledge, SearchRequest};
use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_over};

fn put(knowledge: &Knowledge, store: StoreId, at: &str, text: &str) {
    let actor = Actor::User(PrincipalName::from_host("ada"));
    let target =
        (&MemoryPath::parse(at).expect("a valid path"), &Content::new(text).expect("a short text"));
    knowledge.put(&actor, store, target, Precondition::None).expect("it is written");
}

fn knowledge_with_store() -> (Knowledge, StoreId) {
    let knowledge =
        knowledge_over(Arc::new(InMemoryBackend::default()), Arc::new(ManualClock::default()));
    let workspace = knowledge.default_workspace().expect("a workspace").id;
    let new = NewStore::named(Name::new("notes").expect("a name"));
    let store = knowledge.create_store(workspace, &new).expect("a store").id;
    (knowledge, store)
}

/// Returns the knowledge of the present moment, which later writes do not change.
pub(crate) fn pinned(knowledge: &Knowledge, store: StoreId) -> Knowledge {
    let now = Moment::Sequence(knowledge.newest_sequence().expect("a sequence"));
    let past = knowledge.moment(store, &now).expect("the present is a moment");
    knowledge.at(&past).expect("it can be read")
}

#[test]
fn a_past_of_many_memories_is_searched_completely() {
    let (knowledge, store) = knowledge_with_store();
    for number in 0..1_500 {
        put(&knowledge, store, &format!("/{number}.md"), &format!("green {number}"));
    }
    let past = pinned(&knowledge, store);
    put(&knowledge, store, "/0.md", "black");
    let page = past.search(&SearchRequest::new(vec![store], "green")).unwrap();
    assert_eq!((page.total.count, page.is_behind), (1_500, false));
}

#[test]
fn a_past_that_does_not_fit_into_memory_is_searched_in_part() {
    let (knowledge, store) = knowledge_with_store();
    let filler = "x".repeat(100_000);
    let count = 200;
    for number in 0..count {
        put(&knowledge, store, &format!("/{number:03}.md"), &format!("green {filler}"));
    }
    let past = pinned(&knowledge, store);
    let page = past.search(&SearchRequest::new(vec![store], "green")).unwrap();
    assert!(page.is_behind);
    assert!((1..count).contains(&page.total.count), "{:?}", page.total);
}

#[test]
fn words_titles_and_links_are_those_of_the_moment() {
    let (knowledge, store) = knowledge_with_store();
    put(&knowledge, store, "/tea.md", "# Tea\n\nGreen, see [[Kettle]].\n");
    put(&knowledge, store, "/kettle.md", "# Kettle\n\nCopper.\n");
    let past = pinned(&knowledge, store);
    put(&knowledge, store, "/tea.md", "# Tea\n\nBlack.\n");
    put(&knowledge, store, "/cup.md", "# Cup\n\nGreen.\n");
    let found = |knowledge: &Knowledge, text: &str| {
        let page = knowledge.search(&SearchRequest::new(vec![store], text)).unwrap();
        assert!(!page.is_behind);
        page.hits.into_iter().map(|hit| hit.note.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(&knowledge, "green"), ["/cup.md"]);
    assert_eq!(found(&past, "green"), ["/tea.md"]);
    assert_eq!(found(&past, "black"), Vec::<String>::new());
    let links = |knowledge: &Knowledge| knowledge.graph(store, 10).unwrap().links.len();
    assert_eq!((links(&knowledge), links(&past)), (0, 1));
}
