//! Log lines, written where they keep nobody waiting.
//!
//! The standard error may be a full disk, a pipe that was closed, or one that nobody reads just now.
//! A request must neither fail nor wait because of that, so lines go to a thread through a queue, and
//! what cannot be written is counted and forgotten.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// So many lines may wait to be written; a line is a few hundred bytes.
const LINES_WAITING_MAX: usize = 1024;

/// How long the end of the process waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

static LINES_LOST: AtomicU64 = AtomicU64::new(0);

/// Returns how many lines could not be written since the process began.
pub fn lines_lost() -> u64 {
    LINES_LOST.load(Ordering::Relaxed)
}

/// Writes lines to the standard error. Each write must be a line, and none fails.
#[derive(Debug)]
pub struct LogWriter(SyncSender<Entry>);

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Everything before this has been written when its other end hears so.
    Flush(SyncSender<()>),
}

/// Sees to it that the last lines are written, if they can be, when this is dropped.
#[derive(Debug)]
pub struct LogGuard(Arc<LogWriter>);

/// Starts a thread that writes to the standard error.
pub fn to_stderr() -> (Arc<LogWriter>, LogGuard) {
    let (lines, written) = sync_channel(LINES_WAITING_MAX);
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
                    LINES_LOST.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Nobody may wait for it any more.
            Entry::Flush(done) => done.send(()).unwrap_or_default(),
        }
    }
}

impl Write for &LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.try_send(Entry::Line(line.to_owned())).is_err() {
            LINES_LOST.fetch_add(1, Ordering::Relaxed);
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
        // It is no failure if the last lines cannot be written in time.
        let left = FLUSH_TIMEOUT.saturating_sub(start.elapsed());
        flushed.recv_timeout(left).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_find_no_room_are_counted_and_nobody_waits() {
        let (lines, waiting) = sync_channel(2);
        let mut writer = &LogWriter(lines);
        let before = lines_lost();
        for _ in 0..5 {
            writer.write_all(b"a line\n").unwrap();
        }
        assert!(lines_lost() >= before + 3);
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
        let before = lines_lost();
        lines.send(Entry::Line(b"a line\n".to_vec())).unwrap();
        drop(lines);
        write(&waiting, Full);
        assert!(lines_lost() > before);
    }
}
