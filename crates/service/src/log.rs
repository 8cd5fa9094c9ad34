//! A log writer that neither fails nor blocks.
//!
//! Standard error may be a file on a full disk, a closed pipe, or a pipe whose reader is stopped. A
//! request must neither fail nor block on that, so lines go through a bounded queue to a writer
//! thread; lines that do not fit or cannot be written are dropped and counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The capacity of the queue; a line has a few hundred bytes.
const LINES_QUEUED_MAX: usize = 1024;

/// How long the process waits for the last lines before it exits.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

static LINES_DROPPED: AtomicU64 = AtomicU64::new(0);

/// Returns how many lines were dropped since the process started.
pub fn lines_dropped() -> u64 {
    LINES_DROPPED.load(Ordering::Relaxed)
}

/// Queues lines for standard error. Every write must be a whole line, and none fails.
#[derive(Debug)]
pub struct LogWriter(SyncSender<Entry>);

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Acknowledged when everything before it has been written.
    Flush(SyncSender<()>),
}

/// Flushes the queue when dropped.
#[derive(Debug)]
pub struct LogGuard(Arc<LogWriter>);

/// Starts the writer thread for standard error.
pub fn to_stderr() -> (Arc<LogWriter>, LogGuard) {
    let (lines, written) = sync_channel(LINES_QUEUED_MAX);
    // It ends with the process.
    thread::spawn(move || write(&written, io::stderr()));
    let writer = Arc::new(LogWriter(lines));
    (Arc::clone(&writer), LogGuard(writer))
}

fn write(entries: &Receiver<Entry>, mut out: impl Write) {
    for entry in entries {
        match entry {
            Entry::Line(line) => {
                if out.write_all(&line).is_err() {
                    LINES_DROPPED.fetch_add(1, Ordering::Relaxed);
                }
            }
            // The guard may have given up.
            Entry::Flush(done) => done.send(()).unwrap_or_default(),
        }
    }
}

impl Write for &LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.try_send(Entry::Line(line.to_owned())).is_err() {
            LINES_DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let start = Instant::now();
        let (done, flushed) = sync_channel(1);
        while self.0.0.try_send(Entry::Flush(done.clone())).is_err() {
            if start.elapsed() > FLUSH_TIMEOUT {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        // Lines that cannot be written in time are lost.
        let left = FLUSH_TIMEOUT.saturating_sub(start.elapsed());
        flushed.recv_timeout(left).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_fit_are_dropped_and_counted() {
        let (lines, waiting) = sync_channel(2);
        let mut writer = &LogWriter(lines);
        let before = lines_dropped();
        for _ in 0..5 {
            writer.write_all(b"a line\n").unwrap();
        }
        assert!(lines_dropped() >= before + 3);
        drop(waiting);
        writer.write_all(b"a line\n").unwrap();
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (lines, waiting) = sync_channel(2);
        let before = lines_dropped();
        lines.send(Entry::Line(b"a line\n".to_vec())).unwrap();
        drop(lines);
        write(&waiting, Full);
        assert!(lines_dropped() > before);
    }
}
