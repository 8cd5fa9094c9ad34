//! What indexing costs per note, by the number of notes that are indexed at once.
//!
//! `valgrind --tool=callgrind --toggle-collect='*Knowledge*catch_up*' quipu-bench indexing --untimed`
//! counts the instructions of indexing alone, which repeat exactly where times do not.

use std::time::Duration;

use crate::table::{number, print, processor_time, row};
use crate::{engine, knowledge};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many notes to index at once
    #[arg(long, value_delimiter = ',', default_value = "1,20,200,2000")]
    batches: Vec<u64>,
    /// How many notes to index in all
    #[arg(long, default_value_t = 4000)]
    notes: u64,
    /// Index notes that are lists of facts, each of which is indexed on its own as well
    #[arg(long)]
    facts: bool,
    /// Do not measure times: the system call for them fails under valgrind
    #[arg(long)]
    untimed: bool,
}

pub(crate) fn run(arguments: &Arguments) {
    let text = if arguments.facts { engine::text } else { knowledge::note };
    println!("Notes of about {} bytes.", text(0).len());
    let mut rows = vec![row(&[&"at once", &"CPU µs for each note"])];
    for &size in &arguments.batches {
        let library = knowledge::open();
        let mut indexing = Duration::ZERO;
        let mut written = 0;
        while written < arguments.notes {
            library.fill_with(written..written + size, text);
            written += size;
            if arguments.untimed {
                library.catch_up();
            } else {
                indexing += processor_time(|| library.catch_up());
            }
        }
        let count = f64::from(u32::try_from(written).expect("a small number"));
        rows.push(row(&[&size, &number(indexing.as_secs_f64() * 1e6 / count)]));
    }
    print("Indexing, by the number of notes at once", &rows);
}
