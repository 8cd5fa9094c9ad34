//! Which pages are in a write-ahead log.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use crate::page::PageNumber;

const HEADER_SIZE: usize = 32;
const FRAME_HEADER_SIZE: usize = 24;

/// Returns the numbers of all pages that have a frame in a log.
///
/// Frames of uncommitted transactions and of earlier generations of the log count too: telling them apart
/// takes salts and checksums, and clearing a page that needs no clearing is harmless. The caller keeps
/// writers away.
pub fn logged_pages(log: &Path, page_size: usize) -> io::Result<BTreeSet<PageNumber>> {
    let mut pages = BTreeSet::new();
    let file = File::open(log)?;
    let header_size = u64::try_from(HEADER_SIZE).unwrap_or(u64::MAX);
    let frame_size = u64::try_from(FRAME_HEADER_SIZE + page_size).unwrap_or(u64::MAX);
    let frames_count = file.metadata()?.len().saturating_sub(header_size) / frame_size;
    if frames_count == 0 {
        return Ok(pages);
    }
    let mut file = BufReader::with_capacity(1 << 20, file);
    file.read_exact(&mut [0; HEADER_SIZE])?;
    let mut frame = vec![0; FRAME_HEADER_SIZE + page_size];
    for _ in 0..frames_count {
        file.read_exact(&mut frame)?;
        if let Some(number) = frame.first_chunk::<4>() {
            pages.insert(PageNumber(u32::from_be_bytes(*number)));
        }
    }
    Ok(pages)
}
