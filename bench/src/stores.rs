//! Search over many small stores, such as one per user.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use quipu_core::engine::NewStore;
use quipu_core::model::{Name, SecretPolicy, StoreId, StorePolicy};
use quipu_knowledge::SearchRequest;

use crate::knowledge::{self, Library, common_word, question, rare_word, two_words};
use crate::table::{median, number, print, row, spent, time};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many stores there are
    #[arg(long, default_value_t = 1000)]
    stores: usize,
    /// How many notes each of them has
    #[arg(long, default_value_t = 20)]
    notes: u64,
    /// How many of the stores are searched together
    #[arg(long, default_value_t = 1000)]
    together: usize,
    /// How often each question is asked
    #[arg(long, default_value_t = 30)]
    questions: u64,
}

/// Returns the text of a numbered search.
type Ask = fn(u64) -> String;

pub(crate) fn run(arguments: &Arguments) {
    let alone = filled(1, arguments.notes);
    let many = filled(arguments.stores, arguments.notes);
    let (_, resident_before) = spent(std::process::id());
    let together: Vec<StoreId> = many.1.iter().copied().take(arguments.together).collect();
    let kinds: [(&str, Ask); 4] = [
        ("a rare word", rare_word),
        ("a common word", common_word),
        ("two words", two_words),
        ("a question of 8 words", question),
    ];
    let heading = format!("over {} stores", together.len());
    let mut rows = vec![row(&[
        &"median ms",
        &"the only store",
        &format!("one of {}", arguments.stores),
        &"ratio",
        &heading,
        &"goal",
    ])];
    for (kind, ask) in kinds {
        let measure = |library: &Library, stores: &dyn Fn(u64) -> Vec<StoreId>| {
            let search = |number: u64| {
                let request = SearchRequest::new(stores(number), ask(number));
                time(|| drop(library.engine.search(&request).expect("it searches"))).as_secs_f64()
            };
            search(0);
            median((1..=arguments.questions).map(search).collect()) * 1e3
        };
        let only = measure(&alone.0, &|_| alone.1.clone());
        let one = measure(&many.0, &|number| {
            let place = usize::try_from(number * 7919).unwrap_or(0) % many.1.len();
            many.1.get(place).copied().into_iter().collect()
        });
        let all = measure(&many.0, &|_| together.clone());
        rows.push(row(&[
            &kind,
            &number(only),
            &number(one),
            &number(one / only),
            &number(all),
            &"30",
        ]));
    }
    print(&format!("Searches among stores of {} notes", arguments.notes), &rows);
    let (_, resident) = spent(std::process::id());
    let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    println!(
        "\n{resident_before:.0} MB of memory before the searches, {resident:.0} MB after, {files} open files"
    );
}

/// Returns stores with notes, all indexed.
fn filled(stores: usize, notes: u64) -> (Library, Vec<StoreId>) {
    let library = knowledge::open();
    let workspace = library.engine.default_workspace().expect("a workspace").id;
    let ids: Vec<StoreId> = (0..stores)
        .map(|number| {
            let new = NewStore {
                policy: StorePolicy { secrets: SecretPolicy::Off, ..StorePolicy::default() },
                ..NewStore::named(Name::new(format!("user {number}")).expect("a name"))
            };
            library.engine.create_store(workspace, &new).expect("a store").id
        })
        .collect();
    let next = AtomicU64::new(0);
    let count = u64::try_from(stores).unwrap_or(0) * notes;
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let note = next.fetch_add(1, Ordering::Relaxed)
                    && note < count
                {
                    let store = ids.get(usize::try_from(note / notes).unwrap_or(0));
                    library.write_to(*store.expect("a store"), note);
                }
            });
        }
    });
    let indexed = time(|| library.index().expect("it indexes"));
    println!("{count} notes in {stores} stores are indexed in {:.2} s", indexed.as_secs_f64());
    (library, ids)
}
