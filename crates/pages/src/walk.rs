//! Looks at every page of a database for bytes that belong to nothing.
//!
//! What a page is can be told only by who names it: the last page of a long row looks like anything.
//! So each page is first noted as whatever it may be, in the order of the file, and when all are
//! known, the B-trees are walked from their roots.
//!
//! Pages that were in the list of free pages keep numbers of other pages when they are used again.
//! These tell nothing about any row. So outside of B-tree pages, a number that can be that of a page
//! counts as nothing; text is always a larger number.

use crate::page::{Malformed, Overflow, PageNumber, Tree, big_endian_32};

/// Where SQLite puts its locks; the page there is never used.
const LOCK_OFFSET: usize = 0x4000_0000;

/// Where the header of the file names the first page of the list of free pages.
const FREE_LIST_OFFSET: usize = 32;

/// What is left of removed rows in a database.
#[derive(Debug, PartialEq, Eq)]
pub enum Remains {
    /// In the unused room of these B-tree pages, which can be cleared one by one.
    InPages(Vec<PageNumber>),
    /// Somewhere else, where `secure_delete` should have cleared them, or nobody knows where.
    Elsewhere,
}

/// What was noted of the pages of a database.
#[derive(Debug)]
pub(crate) struct Walk {
    pages_count: u32,
    page_size: usize,
    first_free: u32,
    pages: Vec<Noted>,
}

/// What was noted of a page.
#[derive(Debug)]
struct Noted {
    /// If it can be a B-tree page: what it leads to.
    tree: Option<Box<NotedTree>>,
    /// If it is a page of a long row or of the list of free pages: the next one of those.
    next: u32,
    /// If it is a page of the list of free pages: the free pages that it names.
    free: Vec<PageNumber>,
    /// Where its last four bytes end that are more than the number of a page.
    end: usize,
}

#[derive(Debug)]
struct NotedTree {
    has_remains: bool,
    children: Vec<PageNumber>,
    overflows: Vec<Overflow>,
}

impl Walk {
    /// Makes the walk over a database with this number of pages.
    pub(crate) fn new(pages_count: u32) -> Self {
        Self { pages_count, page_size: 0, first_free: 0, pages: Vec::new() }
    }

    /// Takes in the next page of the file.
    pub(crate) fn add(&mut self, page: &[u8]) {
        let number = PageNumber(u32::try_from(self.pages.len() + 1).unwrap_or(u32::MAX));
        if number.0 == 1 {
            self.page_size = page.len();
            self.first_free = big_endian_32(page, FREE_LIST_OFFSET).unwrap_or_default();
        }
        let tree = Tree::read(number, page).ok().map(|tree| {
            let has_remains = tree.has_remains(page);
            let Tree { children, overflows, .. } = tree;
            Box::new(NotedTree { has_remains, children, overflows })
        });
        // A page of the list of free pages looks like no B-tree page, its first byte being zero.
        let free = if tree.is_none() { named_free(page).unwrap_or_default() } else { Vec::new() };
        self.pages.push(Noted {
            tree,
            next: big_endian_32(page, 0).unwrap_or_default(),
            free,
            end: self.end(page),
        });
    }

    fn end(&self, page: &[u8]) -> usize {
        let (numbers, _) = page.as_chunks::<4>();
        let is_text = |number: &[u8; 4]| u32::from_be_bytes(*number) > self.pages_count;
        numbers.iter().rposition(is_text).map_or(0, |last| 4 * (last + 1))
    }

    /// Returns where bytes are that belong to nothing, given the roots of the B-trees.
    pub(crate) fn remains(&self, roots: &[PageNumber]) -> Remains {
        match self.walk(roots) {
            Ok(remains) => Remains::InPages(remains),
            Err(Malformed) => Remains::Elsewhere,
        }
    }

    fn walk(&self, roots: &[PageNumber]) -> Result<Vec<PageNumber>, Malformed> {
        let mut remains = Vec::new();
        let mut seen = Seen(vec![false; self.pages.len()]);
        let mut stack = roots.to_vec();
        stack.push(PageNumber(1));
        while let Some(number) = stack.pop() {
            let tree = seen.enter(number, self)?.tree.as_ref().ok_or(Malformed)?;
            if tree.has_remains {
                remains.push(number);
            }
            for overflow in &tree.overflows {
                self.follow(*overflow, &mut seen)?;
            }
            stack.extend(&tree.children);
        }
        self.walk_free_list(&mut seen)?;
        // A page that belongs to nothing may hold anything.
        let lock_page = LOCK_OFFSET / self.page_size.max(1);
        let is_known = |(index, seen): (usize, &bool)| *seen || index == lock_page;
        if seen.0.iter().enumerate().all(is_known) { Ok(remains) } else { Err(Malformed) }
    }

    /// Looks at the pages on which a long row goes on; the last one may have an unused end.
    fn follow(&self, overflow: Overflow, seen: &mut Seen) -> Result<(), Malformed> {
        let Overflow { first: mut number, size_bytes: mut left } = overflow;
        let room = self.page_size.checked_sub(4).ok_or(Malformed)?;
        while left > 0 {
            let page = seen.enter(number, self)?;
            let used = left.min(room);
            if page.end > (4 + used).next_multiple_of(4) {
                return Err(Malformed);
            }
            left -= used;
            number = PageNumber(page.next);
        }
        Ok(())
    }

    /// Looks at the free pages, which must hold nothing.
    fn walk_free_list(&self, seen: &mut Seen) -> Result<(), Malformed> {
        let mut trunk = self.first_free;
        while trunk != 0 {
            let page = seen.enter(PageNumber(trunk), self)?;
            if page.end > 0 {
                return Err(Malformed);
            }
            for &leaf in &page.free {
                if seen.enter(leaf, self)?.end > 0 {
                    return Err(Malformed);
                }
            }
            trunk = page.next;
        }
        Ok(())
    }
}

/// Which pages were reached; each can be reached in one way only.
struct Seen(Vec<bool>);

impl Seen {
    fn enter<'w>(&mut self, number: PageNumber, walk: &'w Walk) -> Result<&'w Noted, Malformed> {
        let index = number.0.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let index = index.ok_or(Malformed)?;
        let seen = self.0.get_mut(index).ok_or(Malformed)?;
        if std::mem::replace(seen, true) {
            return Err(Malformed);
        }
        walk.pages.get(index).ok_or(Malformed)
    }
}

/// Returns the free pages that a page of the list of free pages names.
fn named_free(page: &[u8]) -> Result<Vec<PageNumber>, Malformed> {
    let count = usize::try_from(big_endian_32(page, 4)?).ok().ok_or(Malformed)?;
    if count > (page.len() / 4).saturating_sub(2) {
        return Err(Malformed);
    }
    (0..count).map(|index| big_endian_32(page, 8 + 4 * index).map(PageNumber)).collect()
}
