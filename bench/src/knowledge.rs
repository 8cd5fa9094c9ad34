//! Search, context and recent activity as the store grows, and what the index costs writers.

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use quipu_core::backend::Sequence;
use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, MemoryPath, Name, PrincipalName, SecretPolicy, StoreId, StorePolicy, Timestamp,
};
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error};
use quipu_knowledge::{
    ContextRequest, Knowledge, RecentRequest, Scope, SearchRequest, SuggestRequest,
};
use quipu_sqlite::{OpenMode, SqliteBackend};
use tempfile::TempDir;

use crate::table::{median, number, print, processor_time, row, time};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The numbers of notes to measure at
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    sizes: Vec<u64>,
    /// How often each question is asked
    #[arg(long, default_value_t = 50)]
    questions: usize,
    /// How many notes each measurement of writing writes
    #[arg(long, default_value_t = 4000)]
    writes: u64,
}

pub(crate) fn run(arguments: &Arguments) {
    println!("Notes of about 1.5 KB with words of natural frequency, links and tags.");
    let heading: [&dyn Display; 5] =
        [&"notes", &"measured", &"median ms", &"slowest of ten, ms", &"processor ms"];
    let mut rows = vec![row(&heading)];
    let mut suggested: Vec<Vec<String>> = vec![row(&[
        &"notes",
        &"text",
        &"median ms",
        &"95th percentile, ms",
        &"processor ms",
        &"suggested",
    ])];
    for &size in &arguments.sizes {
        let (asked, of_texts) = measured(size, arguments);
        rows.extend(asked);
        suggested.extend(of_texts);
    }
    print("Questions by the number of notes", &rows);
    print("Suggestions by the number of notes", &suggested);
    writes(arguments);
}

pub(crate) struct Library {
    pub(crate) engine: Knowledge,
    store: StoreId,
    actor: Actor,
    directory: TempDir,
}

pub(crate) fn open() -> Library {
    // Next to the build, which is on a disk; the system's temporary directory may be in memory.
    let directory = tempfile::tempdir_in("target").expect("a directory can be made in `target`");
    let backend = SqliteBackend::open(directory.path(), OpenMode::Create).expect("it opens");
    let limits = Limits {
        memories_per_store_max: u64::MAX,
        store_size_bytes_max: u64::MAX,
        stores_per_workspace_max: u64::MAX,
        ..Limits::default()
    };
    let engine = Engine::new(Arc::new(backend), Arc::new(SystemClock), limits);
    let engine = Knowledge::new(engine, directory.path());
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewStore {
        policy: StorePolicy { secrets: SecretPolicy::Off, ..StorePolicy::default() },
        ..NewStore::named(Name::new("bench").expect("a name"))
    };
    let store = engine.create_store(workspace, &new).expect("a store").id;
    Library { engine, store, actor: Actor::User(PrincipalName::from_host("bench")), directory }
}

impl Library {
    fn write(&self, number: u64) {
        self.write_to(self.store, number);
    }

    pub(crate) fn write_to(&self, store: StoreId, number: u64) {
        self.write_text(store, number, note(number));
    }

    fn write_text(&self, store: StoreId, number: u64, text: String) {
        let path = MemoryPath::parse(&format!("/topic{}/note{number}.md", number % 50));
        let content = Content::new(text).expect("a text");
        let target = (&path.expect("a path"), &content);
        self.engine.put(&self.actor, store, target, Precondition::None).expect("it is written");
    }

    /// Writes from eight threads, as imports and busy servers do.
    fn fill(&self, numbers: Range<u64>) {
        self.fill_with(numbers, note);
    }

    pub(crate) fn fill_with(&self, numbers: Range<u64>, text: fn(u64) -> String) {
        let next = AtomicU64::new(numbers.start);
        let write = || {
            let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < numbers.end);
            std::iter::from_fn(take)
                .for_each(|number| self.write_text(self.store, number, text(number)));
        };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(write);
            }
        });
    }

    /// Brings the index up to date, as a search would.
    pub(crate) fn catch_up(&self) {
        self.engine.catch_up(&[self.store], &|_| Ok(())).expect("it indexes");
    }

    pub(crate) fn index(&self) -> Result<(), Error> {
        self.engine.follow(None).map(drop)
    }

    fn search(&self, text: &str) {
        let request = SearchRequest::new(vec![self.store], text);
        self.engine.search(&request).expect("it searches");
    }
}

/// Returns a pseudorandom number for a seed.
fn scrambled(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const VOCABULARY: u64 = 30_000;

/// Returns the word with a frequency rank: a sequence of syllables, shorter for common words.
fn word(rank: u64) -> String {
    const SYLLABLES: [&str; 40] = [
        "ba", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "cha", "dro", "fle", "gri",
        "hu", "jo", "ka", "lem", "min", "nor", "ost", "pel", "qua", "rin", "sor", "tam", "ul",
        "ven", "wil", "xan", "yor", "zet", "bro", "cle", "dun", "est", "fro", "gal", "hem", "ist",
    ];
    let mut rest = scrambled(rank);
    let length = 2 + usize::from(rank > 200) + usize::from(rank > 5000);
    let mut word = String::new();
    for _ in 0..length {
        let place = usize::try_from(rest % 40).expect("a small number");
        word.push_str(SYLLABLES.get(place).copied().unwrap_or_default());
        rest /= 40;
    }
    word
}

/// Returns a word that occurs in few notes, if any.
pub(crate) fn rare_word(number: u64) -> String {
    word(5000 + number * 37)
}

/// Returns a word that occurs in most notes.
pub(crate) fn common_word(number: u64) -> String {
    word(1 + number % 5)
}

pub(crate) fn two_words(number: u64) -> String {
    format!("{} {}", word(50 + number), word(300 + number))
}

/// Returns eight words, some of them common and some rare.
pub(crate) fn question(number: u64) -> String {
    [3, 8, 20, 60, 200, 900, 2500, 7000].map(|rank| word(rank + number)).join(" ")
}

/// Returns the frequency rank of a random word: about half of all words are among the first
/// hundred.
fn rank(seed: u64) -> u64 {
    let chance = scrambled(seed) % 1_000_000;
    let fraction = f64::from(u32::try_from(chance).expect("a small number")) / 1e6;
    let highest = f64::from(u32::try_from(VOCABULARY).expect("a small number"));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a rank")]
    let rank = highest.powf(fraction) as u64;
    rank
}

/// Returns a note of about 1.5 KB.
pub(crate) fn note(number: u64) -> String {
    let words = |from: u64, count: u64| {
        let seeds = (from..from + count).map(|place| number * 1000 + place);
        seeds.map(|seed| word(rank(seed))).collect::<Vec<_>>().join(" ")
    };
    let title = format!("{} {number}", words(900, 3));
    format!(
        "---\ntags: [{}, topic{}]\nstatus: {}\n---\n# {title}\n\n{}.\n\n## {}\n\n{}.\n\n\
         - [fact] {} #{}\n- relates_to [[note{}]]\n- see [[note{}]]\n",
        word(rank(number)),
        number % 50,
        if number.is_multiple_of(3) { "done" } else { "open" },
        words(0, 90),
        words(600, 3),
        words(100, 90),
        words(300, 12),
        word(number % 500),
        number / 2,
        number.saturating_sub(1),
    )
}

/// Returns the rows of questions, and those of suggestions.
fn measured(size: u64, arguments: &Arguments) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let library = open();
    let written = time(|| library.fill(0..size));
    let indexed = time(|| library.index().expect("it indexes"));
    let name = |what: &str| row(&[&size, &what]);
    let seconds = |what: &str, time: Duration| {
        let mut cells = name(what);
        cells.extend([number(time.as_secs_f64() * 1e3), String::new(), String::new()]);
        cells
    };
    let mut rows = vec![seconds("write all, 8 writers", written), seconds("index all", indexed)];
    let store = library.store;
    let questions: [(&str, &dyn Fn(u64)); 10] = [
        ("search: a rare word", &|it| library.search(&rare_word(it))),
        ("search: a common word", &|it| library.search(&common_word(it))),
        ("search: two words", &|it| library.search(&two_words(it))),
        ("search: phrase", &|it| {
            library.search(&format!("\"{} {}\"", word(2 + it % 9), word(3 + it % 7)));
        }),
        ("search: a question of 8 words", &|it| library.search(&question(it))),
        ("search: … since last month", &|it| {
            library.search(&format!("{} since last month", question(it)));
        }),
        ("search: a word with tag: and path:", &|it| {
            library.search(&format!("{} tag:topic{} path:topic{}", word(20), it % 50, it % 50));
        }),
        ("write, then search for it", &|it| {
            library.write(size + it);
            library.search(&format!("note{}", size + it));
        }),
        ("context: two steps", &|it| {
            let request = ContextRequest { depth: 2, ..ContextRequest::default() };
            let name = format!("note{}", it * 7 % size);
            let found = library.engine.context(&Scope::only(store), &name, &request);
            drop(found.expect("it walks"));
        }),
        ("recent: 20 changes", &|_| {
            let request = RecentRequest {
                stores: vec![store],
                since: Timestamp::MIN,
                operations: Vec::new(),
                kinds: Vec::new(),
                before: None,
                limit: 20,
            };
            drop(library.engine.recent(&request).expect("it lists"));
        }),
    ];
    for (what, ask) in questions {
        let mut cells = name(what);
        cells.extend(asked(arguments.questions, ask));
        rows.push(cells);
    }
    let bytes: u64 = std::fs::read_dir(library.directory.path())
        .into_iter()
        .flatten()
        .filter_map(|file| file.ok()?.metadata().ok())
        .map(|file| file.len())
        .sum();
    println!("{size} notes take {} MB with texts, history and index", bytes / 1_000_000);
    (rows, suggestions(&library, size, arguments.questions))
}

/// Measures suggestions for texts of the same words as the notes.
fn suggestions(library: &Library, size: u64, count: usize) -> Vec<Vec<String>> {
    // As a server does: the notes that were written above are merged into larger segments.
    library.index().expect("it indexes");
    // Beyond the notes, so that no text is one of them.
    let text = |number: u64, length: u64| {
        let seeds = (0..length).map(|place| (size + number) * 100_000 + place);
        seeds.map(|seed| word(rank(seed))).collect::<Vec<_>>().join(" ")
    };
    let texts: [(&str, &dyn Fn(u64) -> String); 4] = [
        ("a question of 8 words", &question),
        ("a prompt of 100 words", &|it| text(it, 100)),
        ("a file of 20 KB", &|it| text(it, 2900)),
        ("a note that is stored", &|it| note(it * 7 % size)),
    ];
    let mut rows = Vec::new();
    for (what, text) in texts {
        let (mut times, mut found) = (Vec::new(), 0);
        let numbers = 0..=u64::try_from(count).expect("a small number");
        let requests: Vec<_> =
            numbers.map(|it| SuggestRequest::new(vec![library.store], text(it))).collect();
        let spent = processor_time(|| {
            for request in &requests {
                times.push(time(|| {
                    found += library.engine.suggest(request).expect("it suggests").items.len();
                }));
            }
        });
        let mut times: Vec<_> = times.iter().skip(1).map(|it| it.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        let slow = times.get(times.len() * 19 / 20).copied().unwrap_or(f64::NAN);
        let all = f64::from(u32::try_from(requests.len()).unwrap_or(u32::MAX));
        let found = f64::from(u32::try_from(found).unwrap_or(u32::MAX)) / all;
        let (times, spent) = (median(times), spent.as_secs_f64() * 1e3 / all);
        let cells = [times, slow, spent, found].map(number);
        rows.push([row(&[&size, &what]), cells.to_vec()].concat());
    }
    rows
}

/// Repeats a call, and returns the median and the 90th percentile of its time, and its CPU time.
fn asked(count: usize, ask: &dyn Fn(u64)) -> [String; 3] {
    ask(0);
    let count = u64::try_from(count).expect("a small number");
    let mut times = Vec::new();
    let spent = processor_time(|| {
        times = (1..=count).map(|it| time(|| ask(it)).as_secs_f64() * 1e3).collect();
    });
    let spent = spent.as_secs_f64() * 1e3 / f64::from(u32::try_from(count).unwrap_or(1));
    times.sort_by(f64::total_cmp);
    let slow = times.get(times.len() * 9 / 10).copied().unwrap_or(f64::NAN);
    [number(median(times)), number(slow), number(spent)]
}

/// Measures eight writers without an index, with a follower, with a large index, and with
/// interleaved searches.
fn writes(arguments: &Arguments) {
    let largest = arguments.sizes.iter().copied().max().unwrap_or(1000);
    let mut rows = vec![row(&[&"8 writers", &"notes/s", &"of those without an index"])];
    let mut rates = [const { Vec::new() }; 4];
    let large = open();
    large.fill(0..largest);
    large.index().expect("it indexes");
    let mut start = largest;
    for _ in 0..5 {
        rates[0].push(rate(&open(), 0..arguments.writes));
        rates[1].push(while_followed(&open(), 0..arguments.writes));
        rates[2].push(rate(&large, start..start + arguments.writes));
        start += arguments.writes;
        large.index().expect("it indexes");
        rates[3].push(with_searches(&large, start..start + arguments.writes));
        start += arguments.writes;
        large.index().expect("it indexes");
    }
    let [plain, followed, large, mixed] = rates.map(median);
    let lines = [
        ("an empty store, not indexed".to_owned(), plain, plain),
        ("an empty store, indexed meanwhile".to_owned(), followed, plain),
        (format!("a store of {largest} indexed notes"), large, plain),
        ("the same with 5 % searches (of the line before)".to_owned(), mixed, large),
    ];
    for (name, rate, base) in lines {
        rows.push(row(&[&name, &number(rate), &format!("{:.0} %", 100.0 * rate / base)]));
    }
    print("What the index costs writers", &rows);
}

/// Writes from eight threads; every twentieth call is a search.
fn with_searches(library: &Library, numbers: Range<u64>) -> f64 {
    let next = AtomicU64::new(numbers.start);
    let work = || {
        while let it = next.fetch_add(1, Ordering::Relaxed)
            && it < numbers.end
        {
            library.write(it);
            if it % 20 == 0 {
                library.search(&two_words(it % 100));
            }
        }
    };
    let count = u32::try_from(numbers.end - numbers.start).expect("a small number");
    let taken = time(|| {
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(work);
            }
        });
    });
    f64::from(count) / taken.as_secs_f64()
}

fn rate(library: &Library, numbers: Range<u64>) -> f64 {
    let count = u32::try_from(numbers.end - numbers.start).expect("a small number");
    f64::from(count) / time(|| library.fill(numbers)).as_secs_f64()
}

/// Measures while another thread follows the feed, as in a server.
fn while_followed(library: &Library, numbers: Range<u64>) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut seen = Sequence(0);
            while !stop.load(Ordering::Relaxed) {
                library.engine.wait(seen, Duration::from_millis(100)).expect("it waits");
                // It pauses for as long as it works. The server's follower pauses longer, and waits for
                // quiet moments, which do not come here.
                let worked = time(|| {
                    seen = library.engine.follow(Some(seen)).expect("it indexes");
                });
                thread::sleep(worked);
            }
        });
        let rate = rate(library, numbers);
        stop.store(true, Ordering::Relaxed);
        rate
    })
}
