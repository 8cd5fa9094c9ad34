//! What the engine promises about search and links, as tests that every backend's crate runs:
//! `quipu_testkit::knowledge_tests!(open);` with the same `open` as for the conformance suite.

pub mod graph;
pub mod indexing;
mod random;
pub mod searching;

use std::path::Path;
use std::sync::Arc;

use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, Memory, MemoryPath, Name, PrincipalName, SecretPolicy, StoreId, StorePolicy,
    Timestamp,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Clock as _, Engine};
use quipu_knowledge::{Knowledge, Scope, SearchPage, SearchRequest};
use tempfile::TempDir;

use crate::ManualClock;
use crate::conformance::Fixture;

pub use random::{Step, compare, steps};

/// An engine with one store in it, and its index.
#[derive(Debug)]
pub struct Library {
    /// The engine with its index.
    pub engine: Knowledge,
    /// Where the index is.
    pub directory: Arc<TempDir>,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    /// The store.
    pub store: StoreId,
}

impl Library {
    /// Makes an engine over a backend, and a store called `tests`.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let directory = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        let engine = knowledge(backend, &clock, directory.path());
        let store = new_store(&engine, "tests");
        Self { engine, directory, clock, store }
    }

    /// Returns another handle on the same data, as another process would have.
    pub fn again(&self, fixture: &Fixture) -> Knowledge {
        knowledge(fixture.again(), &self.clock, self.directory.path())
    }

    fn of(fixture: &Fixture) -> Self {
        Self::new(Arc::clone(&fixture.backend))
    }

    /// Returns the same store with an index of its own, which is empty.
    fn with_new_index(&self, backend: Arc<dyn Backend>) -> Self {
        let directory = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        let engine = knowledge(backend, &self.clock, directory.path());
        Self { engine, directory, clock: Arc::clone(&self.clock), store: self.store }
    }

    /// Writes a memory.
    pub fn put(&self, path: &str, text: &str) -> Memory {
        put(&self.engine, self.store, path, text)
    }

    /// Deletes what is at a path.
    pub fn delete(&self, path: &str) {
        self.engine.delete_at(&actor(), self.store, &at(path)).expect("it is deleted");
    }

    /// Returns the paths of the first 20 hits.
    pub fn find(&self, text: &str) -> Vec<String> {
        paths(&self.search(&self.request(text)))
    }

    /// Returns the paths of the first 20 hits, by path.
    pub fn find_sorted(&self, text: &str) -> Vec<String> {
        let mut found = self.find(text);
        found.sort();
        found
    }

    fn request(&self, text: &str) -> SearchRequest {
        SearchRequest { limit: 20, ..SearchRequest::new(vec![self.store], text) }
    }

    fn search(&self, request: &SearchRequest) -> SearchPage {
        self.engine.search(request).expect("it searches")
    }

    /// Changes the file of the index as nothing of Quipu would.
    fn change_index(&self, sql: &str) {
        let file = self.directory.path().join(quipu_knowledge::INDEX_FILE);
        let changed = rusqlite::Connection::open(file).expect("it opens").execute_batch(sql);
        changed.expect("it changes");
    }

    fn clock_now(&self) -> Timestamp {
        self.clock.now()
    }

    fn scope(&self) -> Scope {
        Scope::only(self.store)
    }
}

fn knowledge(backend: Arc<dyn Backend>, clock: &Arc<ManualClock>, directory: &Path) -> Knowledge {
    let engine = Engine::new(backend, Arc::clone(clock) as _, Limits::default());
    Knowledge::new(engine, directory)
}

/// Makes a store.
pub fn new_store(engine: &Engine, name: &str) -> StoreId {
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewStore {
        policy: StorePolicy { secrets: SecretPolicy::Off, ..StorePolicy::default() },
        ..NewStore::named(Name::new(name).expect("a valid name"))
    };
    engine.create_store(workspace, &new).expect("a store").id
}

fn put(engine: &Engine, store: StoreId, path: &str, text: &str) -> Memory {
    let content = Content::new(text).expect("valid content");
    let written = engine.put(&actor(), store, (&at(path), &content), Precondition::None);
    written.expect("it is written").memory
}

fn paths(page: &SearchPage) -> Vec<String> {
    page.hits.iter().map(|hit| hit.note.path.as_str().to_owned()).collect()
}

fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

fn at(path: &str) -> MemoryPath {
    MemoryPath::parse(path).expect("a valid path")
}

/// Makes a test of each function of the suite.
#[macro_export]
macro_rules! knowledge_tests {
    ($open:ident) => {
        $crate::knowledge_tests!(@module $open, searching:
            words_are_anded_after_stemming,
            too_few_hits_are_filled_with_what_has_some_of_the_words,
            a_question_is_never_answered_with_nothing,
            operators_quotes_and_beginnings_mean_what_they_say,
            filters_of_the_query_narrow_down,
            filters_of_the_query_nest,
            patterns_of_paths_do_not_spoil_the_order,
            many_patterns_of_paths_are_exact,
            quotes_are_no_suggestion,
            inflected_forms_are_found_in_the_language_of_a_note,
            titles_and_tags_count_more_than_the_text,
            identifiers_paths_digits_and_scripts_without_spaces_are_found,
            the_end_of_the_longest_text_is_found,
            filters_of_the_request_narrow_down,
            fields_of_the_frontmatter_are_compared,
            observations_and_relations_are_found_by_themselves,
            titles_and_permalinks_can_be_searched_alone,
            a_hit_says_where_who_and_when,
            without_words_the_newest_come_first,
            pages_follow_each_other,
            several_stores_are_searched_together,
            hostile_queries_are_answered,
        );
        $crate::knowledge_tests!(@module $open, indexing:
            what_was_written_is_found_at_once,
            what_was_written_through_another_handle_is_found_at_once,
            what_was_changed_moved_or_deleted_is_found_as_it_is,
            redacted_text_leaves_the_index_even_if_it_is_behind,
            a_deleted_store_leaves_the_index,
            pruned_versions_leave_the_index,
            a_rebuilt_index_is_the_same,
            rows_that_were_changed_are_not_trusted,
            an_index_that_missed_changes_is_rebuilt,
            an_index_that_was_removed_is_rebuilt,
            an_index_of_another_format_is_rebuilt,
            an_index_of_another_database_is_rebuilt,
            scores_and_order_depend_on_no_other_store,
            a_damaged_file_is_replaced,
            indexers_of_several_handles_do_not_harm_each_other,
            strange_notes_are_indexed,
        );
        $crate::knowledge_tests!(@module $open, graph:
            names_mean_memories_in_a_strict_order,
            names_that_several_have_are_reported,
            a_miss_suggests_near_names,
            taken_permalinks_get_numbers,
            later_notes_take_no_permalink_away,
            links_resolve_when_their_target_appears_and_not_when_it_goes,
            links_are_seen_from_their_folder,
            links_lead_into_other_stores_in_scope_only,
            backlinks_find_every_way_to_write_a_link,
            signs_in_titles_are_part_of_them,
            unresolved_links_and_orphans_are_listed,
            context_walks_the_graph,
            context_tells_each_kind_of_link_once,
            context_is_bounded_in_cycles_and_crowds,
            context_takes_patterns_directories_and_urls,
            recent_activity_has_deleted_memories_too,
            the_graph_has_every_note_and_link,
        );
    };
    (@module $open:ident, $module:ident: $($name:ident,)*) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    $crate::knowledge::$module::$name(&super::$open());
                }
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_function_of_the_suite_is_in_the_macro() {
        let list = include_str!("knowledge.rs");
        let sources = [
            include_str!("knowledge/searching.rs"),
            include_str!("knowledge/indexing.rs"),
            include_str!("knowledge/graph.rs"),
        ];
        for name in sources.iter().flat_map(|source| source.split("\npub fn ").skip(1)) {
            let name = name.split('(').next().expect("a function has a name");
            assert!(list.contains(&format!("            {name},\n")), "`{name}` is not listed");
        }
    }
}
