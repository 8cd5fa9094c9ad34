//! Folder sync: the cost of one edit among many files, compared with a bare `stat` of every file.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use quipu_mount::sync::{FolderSync, MassDeletion};

use crate::engine::{self, Opened};
use crate::table::{number, print, processor_time, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many files the folder holds
    #[arg(long, default_value_t = 20_000)]
    files: usize,
    /// How many syncs are measured
    #[arg(long, default_value_t = 15)]
    rounds: usize,
}

/// How long a file must be unchanged before its stamp is trusted, with a margin.
const RACY: Duration = Duration::from_millis(2_500);

pub(crate) fn run(arguments: &Arguments) {
    let opened = engine::open();
    let folder = engine::scratch();
    for file in 0..arguments.files {
        let directory = folder.path().join(format!("d{}", file / 100));
        fs::create_dir_all(&directory).expect("a directory");
        let text = format!("# Note {file}\n\n{}", "Some text about it.\n".repeat(30));
        fs::write(directory.join(format!("{file}.md")), text).expect("a file");
    }
    sync(&opened, folder.path());
    thread::sleep(RACY);
    sync(&opened, folder.path());
    let file = folder.path().join("d0/0.md");
    let (mut edited, mut idle, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        fs::write(&file, format!("edit {round}\n")).expect("a file");
        edited.push(processor_time(|| sync(&opened, folder.path())));
        sync(&opened, folder.path());
        idle.push(processor_time(|| sync(&opened, folder.path())));
        bare.push(processor_time(|| stat_all(folder.path())));
    }
    print(
        "Folder sync",
        &[
            row(&[&format!("{} files, milliseconds of CPU", arguments.files), &"median", &"goal"]),
            row(&[&"one edit", &median(edited), &"50"]),
            row(&[&"nothing to do", &median(idle), &"50"]),
            row(&[&"bare `stat` of every file", &median(bare), &"-"]),
        ],
    );
}

fn sync(opened: &Opened, folder: &Path) {
    let engine = opened.engine.engine().clone();
    let sync = FolderSync::new(engine, opened.store, folder, MassDeletion::Refuse);
    let sync = sync.expect("the folder is there");
    sync.lock().expect("nobody else syncs").run(&()).expect("it syncs");
}

fn stat_all(directory: &Path) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            stat_all(&entry.path());
        } else {
            entry.metadata().expect("a file");
        }
    }
}

fn median(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    number(middle.as_secs_f64() * 1000.0)
}
