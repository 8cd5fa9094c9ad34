//! Tables of measurements.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Prints rows with aligned columns; the first row is the heading.
pub(crate) fn print(title: &str, rows: &[Vec<String>]) {
    println!("\n## {title}\n");
    let columns_count = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns_count).filter_map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<_> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        println!("| {} |", cells.join(" | "));
        if number == 0 {
            let rules: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
            println!("|-{}-|", rules.join("-|-"));
        }
    }
}

/// Builds a row from anything that implements `Display`.
pub(crate) fn row(cells: &[&dyn Display]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

/// Returns how long `work` takes.
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Returns the CPU time that this process spends on `work`.
pub(crate) fn processor_time(work: impl FnOnce()) -> Duration {
    let now = || {
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(spent.tv_sec).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_nanos(spent.tv_nsec.unsigned_abs())
    };
    let start = now();
    work();
    now().saturating_sub(start)
}

/// Returns the CPU time of a process and its resident memory in MB.
pub(crate) fn spent(process: u32) -> (Duration, f64) {
    let process = PathBuf::from(format!("/proc/{process}"));
    let threads = std::fs::read_dir(process.join("task")).expect("it runs, on Linux");
    let nanos = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok())
        .filter_map(|spent| spent.split(' ').next()?.parse::<u64>().ok())
        .sum();
    let status = std::fs::read_to_string(process.join("status")).expect("it runs, on Linux");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    (Duration::from_nanos(nanos), resident.unwrap_or(f64::NAN) / 1024.0)
}

/// Returns a count per second.
pub(crate) fn per_second(count: usize, span: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / span.as_secs_f64()
}

/// Returns the average time of `work` in microseconds.
pub(crate) fn micros_each(count: u32, mut work: impl FnMut(u32)) -> f64 {
    let elapsed = time(|| (0..count).for_each(&mut work));
    elapsed.as_secs_f64() * 1e6 / f64::from(count)
}

/// Returns the median of several measurements.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Formats a number with a precision that suits its magnitude.
pub(crate) fn number(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
