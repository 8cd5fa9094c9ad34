//! Scans every page of a database for bytes that belong to no row.
//!
//! A page does not say what it is; only the page that refers to it does. An overflow page can look like
//! anything, even like a B-tree page. So the pages are first summarized as everything that they could be,
//! in file order, and when all are known, the B-trees are walked from their roots. Walking right away
//! would read the file in random order.
//!
//! Pages that were on the freelist keep page numbers in them when they are used again. These reveal
//! nothing about any row. So outside of B-tree pages, four bytes that can be a page number do not count
//! as remains; text is always a larger number.
//!
//! Every page must be reached exactly once. What cannot be explained is [`Remains::Elsewhere`], and the
//! file is rewritten as a whole: an unknown page may hold anything.

use crate::page::{Malformed, Overflow, PageNumber, Tree, big_endian_32};

/// The offset of SQLite's lock bytes; the page there is never used.
const LOCK_OFFSET: usize = 0x4000_0000;

/// The offset of the number of the first freelist trunk page in the file header.
const FREE_LIST_OFFSET: usize = 32;

/// What is left of removed rows in a database.
#[derive(Debug, PartialEq, Eq)]
pub enum Remains {
    /// In the unallocated space of these B-tree pages, which can be cleared one by one.
    InPages(Vec<PageNumber>),
    /// Somewhere else, where `secure_delete` should have zeroed them, or in a page that is not understood.
    Elsewhere,
}

/// A walk over the pages of a database.
#[derive(Debug)]
pub(crate) struct Walk {
    pages_count: u32,
    page_size: usize,
    first_free: u32,
    pages: Vec<PageSummary>,
}

/// What a page may be.
#[derive(Debug)]
struct PageSummary {
    /// If it is a B-tree page: what it refers to.
    tree: Option<Box<TreeSummary>>,
    /// If it is an overflow page or a freelist trunk: the next one in its chain.
    next: u32,
    /// If it is a freelist trunk: its leaves.
    leaves: Vec<PageNumber>,
    /// The end of the last four bytes that are no page number.
    text_end: usize,
}

#[derive(Debug)]
struct TreeSummary {
    has_remains: bool,
    children: Vec<PageNumber>,
    overflows: Vec<Overflow>,
}

impl Walk {
    /// Starts a walk over a database with this number of pages.
    pub(crate) fn new(pages_count: u32) -> Self {
        Self { pages_count, page_size: 0, first_free: 0, pages: Vec::new() }
    }

    /// Adds the next page of the file.
    pub(crate) fn add(&mut self, page: &[u8]) {
        let number = PageNumber(u32::try_from(self.pages.len() + 1).unwrap_or(u32::MAX));
        if number.0 == 1 {
            self.page_size = page.len();
            self.first_free = big_endian_32(page, FREE_LIST_OFFSET).unwrap_or_default();
        }
        let tree = Tree::read(number, page).ok().map(|tree| {
            let has_remains = tree.has_remains(page);
            let Tree { children, overflows, .. } = tree;
            Box::new(TreeSummary { has_remains, children, overflows })
        });
        // A trunk page cannot look like a B-tree page: it begins with a page number, so with a zero byte
        // unless the database has more than 16 million pages.
        let leaves =
            if tree.is_none() { trunk_leaves(page).unwrap_or_default() } else { Vec::new() };
        self.pages.push(PageSummary {
            tree,
            next: big_endian_32(page, 0).unwrap_or_default(),
            leaves,
            text_end: self.text_end(page),
        });
    }

    fn text_end(&self, page: &[u8]) -> usize {
        let (numbers, _) = page.as_chunks::<4>();
        let is_text = |number: &[u8; 4]| u32::from_be_bytes(*number) > self.pages_count;
        numbers.iter().rposition(is_text).map_or(0, |last| 4 * (last + 1))
    }

    /// Returns where bytes are that belong to no row, given the roots of the B-trees.
    pub(crate) fn remains(&self, roots: &[PageNumber]) -> Remains {
        match self.walk(roots) {
            Ok(remains) => Remains::InPages(remains),
            Err(Malformed) => Remains::Elsewhere,
        }
    }

    fn walk(&self, roots: &[PageNumber]) -> Result<Vec<PageNumber>, Malformed> {
        let mut remains = Vec::new();
        let mut visited = Visited(vec![false; self.pages.len()]);
        let mut stack = roots.to_vec();
        stack.push(PageNumber(1));
        while let Some(number) = stack.pop() {
            let tree = visited.enter(number, self)?.tree.as_ref().ok_or(Malformed)?;
            if tree.has_remains {
                remains.push(number);
            }
            for overflow in &tree.overflows {
                self.follow(*overflow, &mut visited)?;
            }
            stack.extend(&tree.children);
        }
        self.walk_free_list(&mut visited)?;
        // A page that nothing refers to may hold anything.
        let lock_page = LOCK_OFFSET / self.page_size.max(1);
        let is_known = |(index, is_visited): (usize, &bool)| *is_visited || index == lock_page;
        if visited.0.iter().enumerate().all(is_known) { Ok(remains) } else { Err(Malformed) }
    }

    /// Follows an overflow chain; the end of its last page may be unused, and must be zero then.
    fn follow(&self, overflow: Overflow, visited: &mut Visited) -> Result<(), Malformed> {
        let Overflow { first: mut number, size_bytes: mut remaining } = overflow;
        let capacity = self.page_size.checked_sub(4).ok_or(Malformed)?;
        while remaining > 0 {
            let page = visited.enter(number, self)?;
            let used = remaining.min(capacity);
            if page.text_end > (4 + used).next_multiple_of(4) {
                return Err(Malformed);
            }
            remaining -= used;
            number = PageNumber(page.next);
        }
        Ok(())
    }

    /// Follows the freelist, whose pages must be empty.
    fn walk_free_list(&self, visited: &mut Visited) -> Result<(), Malformed> {
        let mut trunk = self.first_free;
        while trunk != 0 {
            let page = visited.enter(PageNumber(trunk), self)?;
            if page.text_end > 0 {
                return Err(Malformed);
            }
            for &leaf in &page.leaves {
                if visited.enter(leaf, self)?.text_end > 0 {
                    return Err(Malformed);
                }
            }
            trunk = page.next;
        }
        Ok(())
    }
}

/// The pages that were reached. Reaching one twice means that the file is corrupt.
struct Visited(Vec<bool>);

impl Visited {
    fn enter<'w>(
        &mut self,
        number: PageNumber,
        walk: &'w Walk,
    ) -> Result<&'w PageSummary, Malformed> {
        let index = number.0.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let index = index.ok_or(Malformed)?;
        let is_visited = self.0.get_mut(index).ok_or(Malformed)?;
        if std::mem::replace(is_visited, true) {
            return Err(Malformed);
        }
        walk.pages.get(index).ok_or(Malformed)
    }
}

/// Returns the leaves of a freelist trunk page.
fn trunk_leaves(page: &[u8]) -> Result<Vec<PageNumber>, Malformed> {
    let count = usize::try_from(big_endian_32(page, 4)?).ok().ok_or(Malformed)?;
    if count > (page.len() / 4).saturating_sub(2) {
        return Err(Malformed);
    }
    (0..count).map(|index| big_endian_32(page, 8 + 4 * index).map(PageNumber)).collect()
}
