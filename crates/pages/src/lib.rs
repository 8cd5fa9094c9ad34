//! Finds and clears the bytes of an SQLite file that belong to no row.
//!
//! `secure_delete` overwrites what is deleted, but when SQLite moves rows between pages, copies of them
//! can stay in the unallocated space of a page. Redaction promises that no byte is left, so both files of
//! Quipu, the database and the index, are scanned page by page. [`scan`] reports what is left, which is
//! also the proof that nothing is; [`clear`] zeroes it.
//!
//! Pages are read and written through SQLite's virtual table `sqlite_dbpage`. Opening the file a second
//! time is the obvious way and a trap: POSIX locks belong to the process, so closing that second
//! descriptor would drop SQLite's locks on the file, and another process might then reset the log under
//! us.

mod build_flags;
mod log;
mod page;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Result};

pub use log::logged_pages;
pub use page::PageNumber;
pub use walk::Remains;

use page::Tree;
use walk::Walk;

/// Scans every page of the snapshot that a connection sees.
pub fn scan(connection: &Connection) -> Result<Remains> {
    let mut roots = connection.prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")?;
    let roots = roots.query_map([], |row| row.get(0).map(PageNumber))?;
    let roots = roots.collect::<Result<Vec<_>>>()?;
    // Without `sqlite_dbpage`, nothing can be proved about the pages.
    let Ok(mut pages) = connection.prepare("SELECT data FROM sqlite_dbpage") else {
        return Ok(Remains::Elsewhere);
    };
    let mut walk = Walk::new(connection.pragma_query_value(None, "page_count", |row| row.get(0))?);
    let mut rows = pages.query([])?;
    while let Some(row) = rows.next()? {
        walk.add(row.get_ref(0)?.as_blob().unwrap_or_default());
    }
    Ok(walk.remains(&roots))
}

/// Zeroes the unallocated space of pages, where it holds anything.
pub fn clear(connection: &Connection, pages: &BTreeSet<PageNumber>) -> Result<()> {
    let mut read = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    let mut write =
        connection.prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?;
    for &number in pages {
        let page = read.query_row([number.0], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        let Some(mut page) = page else { continue };
        // A page that is no longer part of a B-tree was freed, and `secure_delete` has zeroed it.
        if let Ok(tree) = Tree::read(number, &page)
            && tree.has_remains(&page)
        {
            tree.clear(&mut page);
            write.execute((number.0, page))?;
        }
    }
    Ok(())
}

/// Rewrites a database from its rows, with the temporary copy beside it.
pub fn rebuild(connection: &Connection, database: &Path) -> Result<()> {
    // In a file, because the copy may not fit into memory. It is unlinked as soon as it is open and holds
    // live rows only, so it leaves no removed text behind.
    if let Some(directory) = database.parent().and_then(Path::to_str) {
        connection.pragma_update(None, "temp_store_directory", directory)?;
    }
    connection.pragma_update(None, "temp_store", "file")?;
    let rebuilt = connection.execute_batch("VACUUM");
    connection.pragma_update(None, "temp_store", "memory")?;
    rebuilt
}
