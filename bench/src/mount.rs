//! The mount against a plain directory, a FUSE pass-through, a no-op FUSE file system and bare
//! SQLite, and how soon it shows changes made elsewhere.

mod archived;
mod changes;
mod load;
mod nothing;
mod process;

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::getuid;
use tempfile::TempDir;

use self::archived::{Archived, archived};
use self::process::{Mounted, is_available, kind_of};
use crate::bare::{Bare, Rows};
use crate::engine::{Opened, fill, open, scratch, text};
use crate::table::{median, micros_each, number, print, row, spent, time};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The binary to measure
    #[arg(long, default_value = "target/release/quipu")]
    binary: PathBuf,
    /// How many files there are to read
    #[arg(long, default_value_t = 2000)]
    files: u32,
    /// How many files are written in each round
    #[arg(long, default_value_t = 200)]
    writes: u32,
    /// How often each measurement is repeated; the median is shown
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// How many changes by others are waited for
    #[arg(long, default_value_t = 300)]
    changes: u64,
    /// How long the idle mount is watched, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Measure only this
    #[arg(long)]
    only: Option<Part>,
}

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Warm reads: `rg`, `stat`, and opening, reading and closing.
    Reads,
    /// Eight writers at the same time.
    Writers,
}

const STORES_COUNT: u64 = 8;
/// The number of memories in each of the stores that are mounted together.
const MEMORIES_EACH: u64 = 250;
const LINE: &str = "- [fact] one more line that is appended\n";

pub(crate) fn run(arguments: &Arguments) {
    if !getuid().is_root() || !Path::new("/dev/fuse").exists() {
        println!("SKIPPED: nothing was measured. The mount needs root and /dev/fuse.");
        return;
    }
    if arguments.only == Some(Part::Writers) {
        return load::writers(arguments);
    }
    let sides = Sides::new(arguments);
    println!(
        "Files of 2 KB. The plain directory is on {}, bindfs shows it a second time; bare FUSE is \
         the same files from a file system that does nothing.",
        kind_of(sides.plain.path())
    );
    if sides.bindfs.is_none() {
        println!("bindfs is not installed and could not be, so its columns are empty.");
    }
    reads(arguments, &sides);
    if arguments.only == Some(Part::Reads) {
        return;
    }
    writes(arguments, &sides);
    load::writers(arguments);
    load::run(arguments, &sides);
    changes::run(arguments, &sides);
    let idle = idle(arguments, "1 store, after all of this", &sides.quipu);
    drop(sides);
    many_stores(arguments, idle);
}

/// The same files in several file systems.
struct Sides {
    quipu: Mounted,
    /// Only reads are measured on these; they are kept here to stay mounted.
    #[expect(dead_code, reason = "it unmounts when it is dropped")]
    read_only: Mounted,
    #[expect(dead_code, reason = "it unmounts when it is dropped")]
    archived: Archived,
    bindfs: Option<Mounted>,
    opened: Opened,
    plain: TempDir,
    roots: TempDir,
}

/// When a write is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durable {
    AfterSync,
    AfterClose,
}

/// One measurement in each file system.
struct Figures {
    plain: f64,
    bindfs: Option<f64>,
    nothing: Option<f64>,
    quipu: f64,
}

impl Sides {
    fn new(arguments: &Arguments) -> Self {
        let (opened, plain, roots) = (open(), scratch(), scratch());
        fill(&opened, 0, arguments.files.into());
        fs::create_dir(plain.path().join("notes")).expect("it can be made");
        for memory in 0..arguments.files.into() {
            fs::write(note(plain.path(), memory), text(memory)).expect("it can be written");
        }
        let (bound, memory) = (roots.path().join("bindfs"), roots.path().join("memory"));
        fs::create_dir(&bound).expect("it can be made");
        let stores = ["bench".to_owned()];
        let data = opened.directory.path();
        let (quipu, _) = Mounted::quipu(&arguments.binary, data, &memory, &stores);
        let (read_only, _) = Mounted::quipu(
            &arguments.binary,
            data,
            &roots.path().join("read-only"),
            &["bench:ro".to_owned()],
        );
        let archived = archived(arguments, &roots.path().join("archived"));
        let bindfs = Mounted::bindfs(plain.path(), &bound);
        Self { quipu, read_only, archived, bindfs, opened, plain, roots }
    }

    fn quipu_path(&self) -> PathBuf {
        self.roots.path().join("memory/bench")
    }

    fn bindfs_path(&self) -> Option<PathBuf> {
        self.bindfs.is_some().then(|| self.roots.path().join("bindfs"))
    }

    /// Measures the file systems alternately, after one warm-up round. The no-op file system takes
    /// part if it is given.
    fn alternating(
        &self,
        rounds: usize,
        nothing: Option<&Path>,
        measure: impl FnMut(&Path, Durable) -> f64,
    ) -> Figures {
        self.alternating_with(&self.quipu_path(), rounds, nothing, measure)
    }

    /// Measures another Quipu mount in the same way.
    fn alternating_with(
        &self,
        quipu: &Path,
        rounds: usize,
        nothing: Option<&Path>,
        mut measure: impl FnMut(&Path, Durable) -> f64,
    ) -> Figures {
        let bindfs = self.bindfs_path();
        let mut turn = || {
            let mut synced = |path: &Path| measure(path, Durable::AfterSync);
            let plain = synced(self.plain.path());
            let (bound, nothing) = (bindfs.as_deref().map(&mut synced), nothing.map(&mut synced));
            (plain, bound, nothing, measure(quipu, Durable::AfterClose))
        };
        turn();
        let turns: Vec<_> = (0..rounds).map(|_| turn()).collect();
        let middle = |values: Vec<f64>| (!values.is_empty()).then(|| median(values));
        Figures {
            plain: median(turns.iter().map(|turn| turn.0).collect()),
            bindfs: middle(turns.iter().filter_map(|turn| turn.1).collect()),
            nothing: middle(turns.iter().filter_map(|turn| turn.2).collect()),
            quipu: median(turns.iter().map(|turn| turn.3).collect()),
        }
    }
}

fn note(root: &Path, memory: u64) -> PathBuf {
    root.join(format!("notes/{memory:06}.md"))
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

fn reads(arguments: &Arguments, sides: &Sides) {
    let idle_root = scratch();
    let nothing = nothing::mount(idle_root.path(), arguments.files);
    let nothing_path = Some(idle_root.path());
    let heading =
        ["warm", "plain", "bindfs", "bare FUSE", "Quipu", "of plain", "of bare FUSE", "goal"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut line = |name: &str, goal: &str, figures: &Figures| {
        rows.push(row(&[
            &name,
            &number(figures.plain),
            &shown(figures.bindfs),
            &shown(figures.nothing),
            &number(figures.quipu),
            &number(figures.quipu / figures.plain),
            &shown(figures.nothing.map(|nothing| figures.quipu / nothing)),
            &goal,
        ]));
    };
    let files = arguments.files;
    if is_available("rg", "ripgrep") {
        for (name, mount, goal) in [
            ("writable", "memory/bench", "2.20 of plain"),
            ("read-only", "read-only/bench", "1.30 of plain"),
            ("archived", "archived/bench", "1.30 of plain"),
        ] {
            let mount = sides.roots.path().join(mount);
            let figures =
                sides.alternating_with(&mount, arguments.rounds, nothing_path, |root, _| {
                    ripgrep(root, files)
                });
            line(&format!("rg over {files} files, {name}, ms"), goal, &figures);
        }
    } else {
        println!("rg is not installed and could not be, so it is not measured.");
    }
    let figures = sides.alternating(arguments.rounds, nothing_path, |root, _| {
        micros_each(files, |file| {
            fs::metadata(note(root, file.into())).expect("it is there");
        })
    });
    line("stat, µs", "", &figures);
    let figures = sides.alternating(arguments.rounds, nothing_path, |root, _| {
        micros_each(files, |file| {
            assert!(
                !fs::read(note(root, file.into())).expect("it is there").is_empty(),
                "it has a text"
            );
        })
    });
    line("open, read, close, µs", "", &figures);
    print("Reading", &rows);
    nothing.umount_and_join().expect("nothing uses it");
}

/// Returns the time of a search that reads every file and finds nothing, in milliseconds.
fn ripgrep(root: &Path, files: u32) -> f64 {
    let searched = root.join("notes");
    let search = |word: &str| {
        let mut command = Command::new("rg");
        command.args(["--no-ignore-parent", "--files-with-matches", word]).arg(&searched);
        command.output().expect("it runs")
    };
    let mut found = Vec::new();
    let elapsed = time(|| found = search("unheardof").stdout);
    assert!(found.is_empty(), "no file has that word");
    let found = search("kettle").stdout;
    let lines = found.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    assert_eq!(u32::try_from(lines), Ok(files), "every file is searched");
    elapsed.as_secs_f64() * 1e3
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Create,
    Overwrite,
    Append,
}

impl Writing {
    /// Returns the memory to write in a round: a new one each time, or an existing one.
    fn memory(self, turn: u64, file: u32) -> u64 {
        match self {
            Self::Create => turn * 1_000_000 + u64::from(file),
            Self::Overwrite | Self::Append => file.into(),
        }
    }

    /// Writes a text, or appends a line, and returns once it is durable.
    fn write(self, path: &Path, text: &str, durable: Durable) {
        let (opened, text) = match self {
            Self::Create => (File::create_new(path), text),
            Self::Overwrite => (File::create(path), text),
            Self::Append => (OpenOptions::new().append(true).open(path), LINE),
        };
        let mut file = opened.expect("it opens");
        file.write_all(text.as_bytes()).expect("it takes the text");
        if durable == Durable::AfterSync {
            file.sync_all().expect("it becomes durable");
        }
    }
}

/// Returns a text that is unique to a round.
fn text_of(turn: u64, file: u32) -> String {
    text(turn * 1_000_000 + u64::from(file))
}

fn writes(arguments: &Arguments, sides: &Sides) {
    let heading = [
        "durable, one writer",
        "plain, fsync",
        "bindfs, fsync",
        "bare SQLite",
        "the engine",
        "Quipu, close",
        "of plain",
        "of bare SQLite",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let (directory, alone) = (scratch(), open());
    let bare = Bare::open(directory.path(), Rows::SameAsQuipu);
    for (name, writing) in [
        ("create 2 KB, µs", Writing::Create),
        ("overwrite 2 KB, µs", Writing::Overwrite),
        ("append a line to 2 KB, µs", Writing::Append),
    ] {
        let mut turn = 0;
        let figures = sides.alternating(arguments.rounds, None, |root, durable| {
            turn += 1;
            micros_each(arguments.writes, |file| {
                let path = note(root, writing.memory(turn, file));
                writing.write(&path, &text_of(turn, file), durable);
            })
        });
        assert_stored(sides, writing.memory(turn, 0));
        let versions = |write: &dyn Fn(u64, String)| {
            let round = |turn| {
                micros_each(arguments.writes, |file| {
                    write(writing.memory(turn, file), text_of(turn, file));
                })
            };
            median((0..arguments.rounds).zip(1..).map(|(_, turn)| round(turn)).collect())
        };
        let bare = versions(&|memory, text| bare.write(memory, &text));
        let engine = versions(&|memory, text| {
            alone.put(memory, text);
        });
        rows.push(row(&[
            &name,
            &number(figures.plain),
            &shown(figures.bindfs),
            &number(bare),
            &number(engine),
            &number(figures.quipu),
            &number(figures.quipu / figures.plain),
            &number(figures.quipu / bare),
        ]));
    }
    print("Writing", &rows);
}

/// Fails unless the store holds the text that the mount shows.
fn assert_stored(sides: &Sides, memory: u64) {
    let shown = fs::read_to_string(note(&sides.quipu_path(), memory)).expect("it is there");
    assert_eq!(sides.opened.stored(memory), shown, "a closed file is stored");
}

/// Returns a row for an idle mount.
fn idle(arguments: &Arguments, name: &str, mounted: &Mounted) -> Vec<String> {
    let span = Duration::from_secs(arguments.seconds);
    let (before, _) = spent(mounted.id());
    sleep(span);
    let (after, resident) = spent(mounted.id());
    let percent = after.saturating_sub(before).as_secs_f64() / span.as_secs_f64() * 100.0;
    row(&[&name, &format!("{percent:.3}"), &number(resident)])
}

fn many_stores(arguments: &Arguments, idle_row: Vec<String>) {
    let mut opened = open();
    let names: Vec<_> = (1..=STORES_COUNT).map(|number| format!("bench-{number}")).collect();
    for name in &names {
        opened.add_store(name);
        fill(&opened, 0, MEMORIES_EACH);
    }
    let root = scratch();
    let memory = root.path().join("memory");
    let mount = || Mounted::quipu(&arguments.binary, opened.directory.path(), &memory, &names);
    let taken: Vec<_> = (0..arguments.rounds).map(|_| mount().1.as_secs_f64() * 1e3).collect();
    let worst = taken.iter().copied().fold(0.0, f64::max);
    let rows = vec![
        row(&[&"start until ready, ms", &"median", &"worst", &"goal"]),
        row(&[
            &format!("{STORES_COUNT} stores of {MEMORIES_EACH} memories in one process"),
            &number(median(taken)),
            &number(worst),
            &200,
        ]),
    ];
    print("Starting", &rows);

    let (mounted, _) = mount();
    for name in &names {
        fs::metadata(note(&memory.join(name), 0)).expect("it is there");
    }
    let rows = vec![
        row(&[&"nobody uses the mount", &"CPU, %", &"memory, MB"]),
        idle_row,
        idle(arguments, &format!("{STORES_COUNT} stores"), &mounted),
    ];
    print("Idling", &rows);
}
