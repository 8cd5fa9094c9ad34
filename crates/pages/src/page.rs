//! The B-tree pages of SQLite's file format, as far as erasing needs them.
//!
//! A B-tree page has space that no cell uses: the gap between the cell pointers and the cells, free
//! blocks, and fragments of at most three bytes. SQLite never reads it, and `secure_delete` zeroes
//! it when a cell is deleted, but moving cells between pages leaves copies there. This module finds
//! such space in one page, and [`walk`](crate::walk) in a whole file.
//!
//! The space is what remains when everything that is used is subtracted. Collecting the free space that a
//! page declares would miss the fragments, of which it has only the total size.
//!
//! The format is described at <https://www.sqlite.org/fileformat2.html>.

use std::ops::Range;

/// The size of the file header, which only the first page has.
const FILE_HEADER_SIZE: usize = 100;

/// A page that violates the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The number of a page in its file; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNumber(pub u32);

impl PageNumber {
    /// Returns where the B-tree header of the page begins.
    fn header_start(self) -> usize {
        if self.0 == 1 { FILE_HEADER_SIZE } else { 0 }
    }
}

/// What a B-tree page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    InteriorIndex,
    InteriorTable,
    LeafIndex,
    LeafTable,
}

/// A parsed B-tree page.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Its child pages.
    pub(crate) children: Vec<PageNumber>,
    /// The overflow chains of its long rows.
    pub(crate) overflows: Vec<Overflow>,
    /// The unallocated bytes.
    slack: Vec<Range<usize>>,
}

/// The part of a row that did not fit on its B-tree page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow {
    /// The first page of the chain.
    pub(crate) first: PageNumber,
    /// How many bytes of the row are in the chain.
    pub(crate) size_bytes: usize,
}

impl Tree {
    /// Parses a B-tree page.
    pub(crate) fn read(number: PageNumber, page: &[u8]) -> Result<Self, Malformed> {
        let header = Header::read(number, page)?;
        let mut tree = Self { children: Vec::new(), overflows: Vec::new(), slack: Vec::new() };
        let mut used = Vec::new();
        for index in 0..header.cells_count {
            let start = big_endian_16(page, header.pointers_start + 2 * index)?;
            if start < header.cells_start {
                return Err(Malformed);
            }
            let cell = Cell::read(header.kind, page, start)?;
            tree.children.extend(cell.child);
            tree.overflows.extend(cell.overflow);
            used.push(start..start + cell.size_bytes);
        }
        tree.children.extend(header.last_child);
        let pointers_end = header.pointers_start + 2 * header.cells_count;
        if pointers_end > header.cells_start {
            return Err(Malformed);
        }
        tree.slack.push(pointers_end..header.cells_start);
        let mut free = free_blocks(page, &header)?;
        // The first four bytes of a free block are the offset of the next one and its own size.
        tree.slack.extend(free.iter().map(|block| block.start + 4..block.end));
        used.append(&mut free);
        used.sort_by_key(|range| range.start);
        let mut end = header.cells_start;
        for range in used {
            if range.start < end || range.end > page.len() {
                return Err(Malformed);
            }
            tree.slack.push(end..range.start);
            end = range.end;
        }
        tree.slack.push(end..page.len());
        Ok(tree)
    }

    /// Returns whether any unallocated byte is not zero.
    pub(crate) fn has_remains(&self, page: &[u8]) -> bool {
        self.slack.iter().any(|range| !is_clear(page, range.clone()))
    }

    /// Zeroes the unallocated bytes.
    pub(crate) fn clear(&self, page: &mut [u8]) {
        for range in &self.slack {
            if let Some(bytes) = page.get_mut(range.clone()) {
                bytes.fill(0);
            }
        }
    }
}

/// Returns whether a range of a page is all zeros; a range outside of the page is.
pub(crate) fn is_clear(page: &[u8], range: Range<usize>) -> bool {
    page.get(range).unwrap_or_default().iter().all(|byte| *byte == 0)
}

/// The header of a B-tree page.
struct Header {
    kind: Kind,
    cells_count: usize,
    /// Where the array of pointers to cells begins.
    pointers_start: usize,
    /// Where cells and free blocks begin.
    cells_start: usize,
    first_free: usize,
    last_child: Option<PageNumber>,
}

impl Header {
    fn read(number: PageNumber, page: &[u8]) -> Result<Self, Malformed> {
        let start = number.header_start();
        let kind = match page.get(start) {
            Some(2) => Kind::InteriorIndex,
            Some(5) => Kind::InteriorTable,
            Some(10) => Kind::LeafIndex,
            Some(13) => Kind::LeafTable,
            _ => return Err(Malformed),
        };
        let is_interior = matches!(kind, Kind::InteriorIndex | Kind::InteriorTable);
        let cells_start = match big_endian_16(page, start + 5)? {
            // 65,536 does not fit into the field and is written as zero.
            0 => 65_536,
            offset => offset,
        };
        if cells_start > page.len() {
            return Err(Malformed);
        }
        Ok(Self {
            kind,
            cells_count: big_endian_16(page, start + 3)?,
            pointers_start: start + if is_interior { 12 } else { 8 },
            cells_start,
            first_free: big_endian_16(page, start + 1)?,
            last_child: if is_interior {
                Some(PageNumber(big_endian_32(page, start + 8)?))
            } else {
                None
            },
        })
    }
}

/// One cell of a page.
struct Cell {
    size_bytes: usize,
    child: Option<PageNumber>,
    overflow: Option<Overflow>,
}

/// A cell is at least as large as the header of a free block, which it may become.
const CELL_SIZE_BYTES_MIN: usize = 4;

impl Cell {
    fn read(kind: Kind, page: &[u8], start: usize) -> Result<Self, Malformed> {
        let (child, mut at) = match kind {
            Kind::InteriorIndex | Kind::InteriorTable => {
                (Some(PageNumber(big_endian_32(page, start)?)), start + 4)
            }
            Kind::LeafIndex | Kind::LeafTable => (None, start),
        };
        if kind == Kind::InteriorTable {
            let (_, key_size) = varint(page, at)?;
            return Ok(Self { size_bytes: 4 + key_size, child, overflow: None });
        }
        let (payload, length_size) = varint(page, at)?;
        at += length_size;
        if kind == Kind::LeafTable {
            at += varint(page, at)?.1;
        }
        let payload = usize::try_from(payload).ok().ok_or(Malformed)?;
        let local = local_size(kind, page.len(), payload)?;
        at = at.checked_add(local).ok_or(Malformed)?;
        let overflow = if local < payload {
            let first = PageNumber(big_endian_32(page, at)?);
            at += 4;
            Some(Overflow { first, size_bytes: payload - local })
        } else {
            None
        };
        let size_bytes = (at - start).max(CELL_SIZE_BYTES_MIN);
        Ok(Self { size_bytes, child, overflow })
    }
}

/// Returns how many bytes of a row are stored on its B-tree page. Quipu reserves no bytes at the end of
/// a page, so all of it is usable.
fn local_size(kind: Kind, page_size: usize, payload: usize) -> Result<usize, Malformed> {
    let usable = page_size.checked_sub(35).ok_or(Malformed)?;
    let least = (page_size - 12) * 32 / 255 - 23;
    let most = match kind {
        Kind::LeafTable | Kind::InteriorTable => usable,
        Kind::LeafIndex | Kind::InteriorIndex => (page_size - 12) * 64 / 255 - 23,
    };
    if payload <= most {
        return Ok(payload);
    }
    let rest = least + (payload - least) % (page_size - 4);
    Ok(if rest <= most { rest } else { least })
}

/// Returns the free blocks of a page.
fn free_blocks(page: &[u8], header: &Header) -> Result<Vec<Range<usize>>, Malformed> {
    let mut blocks = Vec::new();
    let mut start = header.first_free;
    let mut end = header.cells_start;
    while start != 0 {
        let size = big_endian_16(page, start + 2)?;
        // Offsets must increase, so the chain cannot be a cycle.
        if start < end || size < 4 || start + size > page.len() {
            return Err(Malformed);
        }
        blocks.push(start..start + size);
        end = start + size;
        start = big_endian_16(page, start)?;
    }
    Ok(blocks)
}

/// Reads a varint of at most nine bytes, and returns its value and its size.
fn varint(page: &[u8], at: usize) -> Result<(u64, usize), Malformed> {
    let mut number = 0;
    for (index, byte) in page.get(at..).unwrap_or_default().iter().take(9).enumerate() {
        if index == 8 {
            return Ok((number << 8 | u64::from(*byte), 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok((number, index + 1));
        }
    }
    Err(Malformed)
}

pub(crate) fn big_endian_16(page: &[u8], at: usize) -> Result<usize, Malformed> {
    let bytes = page.get(at..).and_then(|rest| rest.first_chunk::<2>()).ok_or(Malformed)?;
    Ok(usize::from(u16::from_be_bytes(*bytes)))
}

pub(crate) fn big_endian_32(page: &[u8], at: usize) -> Result<u32, Malformed> {
    let bytes = page.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or(Malformed)?;
    Ok(u32::from_be_bytes(*bytes))
}
