//! Finds and clears the bytes of an SQLite file that belong to no row.
//!
//! `secure_delete` overwrites what is deleted, but when SQLite moves rows between pages, copies of them
//! can stay in the unused room of a page. Redaction promises that no byte is left, so both files of
//! Quipu, the database and the index, are looked at page by page. [`scan`] says what is left, which is
//! also the proof that nothing is; [`clear`] clears it.
//!
//! Pages are read and written through SQLite's `sqlite_dbpage`. Opening the file a second time would not
//! do: closing it again would drop this process's POSIX locks on it, and another process might then
//! remove the log under us.

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

/// Looks at every page that a connection sees.
pub fn scan(connection: &Connection) -> Result<Remains> {
    let mut roots = connection.prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")?;
    let roots = roots.query_map([], |row| row.get(0).map(PageNumber))?;
    let roots = roots.collect::<Result<Vec<_>>>()?;
    // Without `sqlite_dbpage`, nothing can be said about the pages.
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

/// Clears the unused room of pages, where it holds anything.
pub fn clear(connection: &Connection, pages: &BTreeSet<PageNumber>) -> Result<()> {
    let mut read = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    let mut write =
        connection.prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?;
    for &number in pages {
        let page = read.query_row([number.0], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        let Some(mut page) = page else { continue };
        // What is no B-tree page any more was freed, and with that cleared.
        if let Ok(tree) = Tree::read(number, &page)
            && tree.has_remains(&page)
        {
            tree.clear(&mut page);
            write.execute((number.0, page))?;
        }
    }
    Ok(())
}

/// Writes a database again from its rows, with its temporary copy beside it.
pub fn rebuild(connection: &Connection, database: &Path) -> Result<()> {
    // The copy holds live rows only and has no name, but it may be too large for the memory.
    if let Some(directory) = database.parent().and_then(Path::to_str) {
        connection.pragma_update(None, "temp_store_directory", directory)?;
    }
    connection.pragma_update(None, "temp_store", "file")?;
    let rebuilt = connection.execute_batch("VACUUM");
    connection.pragma_update(None, "temp_store", "memory")?;
    rebuilt
}
