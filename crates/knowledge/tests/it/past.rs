//! Searching and following links in a store as it was.

use std::sync::Arc;

use quipu_core::Moment;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryPath, Name, PrincipalName};
use quipu_knowledge::{Knowledge, SearchRequest};
use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_over};

fn put(knowledge: &Knowledge, store: quipu_core::model::StoreId, at: &str, text: &str) {
    let actor = Actor::User(PrincipalName::from_host("ada"));
    let target =
        (&MemoryPath::parse(at).expect("a valid path"), &Content::new(text).expect("a short text"));
    knowledge.put(&actor, store, target, Precondition::None).expect("it is written");
}

#[test]
fn words_titles_and_links_are_those_of_the_moment() {
    let knowledge =
        knowledge_over(Arc::new(InMemoryBackend::default()), Arc::new(ManualClock::default()));
    let workspace = knowledge.default_workspace().unwrap().id;
    let new = NewStore::named(Name::new("notes").unwrap());
    let store = knowledge.create_store(workspace, &new).unwrap().id;
    put(&knowledge, store, "/tea.md", "# Tea\n\nGreen, see [[Kettle]].\n");
    put(&knowledge, store, "/kettle.md", "# Kettle\n\nCopper.\n");
    let then = Moment::Sequence(knowledge.newest_sequence().unwrap());
    put(&knowledge, store, "/tea.md", "# Tea\n\nBlack.\n");
    put(&knowledge, store, "/cup.md", "# Cup\n\nGreen.\n");
    let past = knowledge.at(&knowledge.moment(store, &then).unwrap()).unwrap();
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
