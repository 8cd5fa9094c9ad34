use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;

use super::*;

/// A random change of a database.
#[derive(Clone, Debug)]
enum Step {
    Insert(u16, usize),
    Delete(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..400_u16, prop_oneof![0..200_usize, 0..9000_usize]).prop_map(|(k, n)| Step::Insert(k, n)),
        1 => (0..400_u16).prop_map(Step::Delete),
    ]
}

/// Returns everything in a database, as text.
fn contents(connection: &Connection) -> Vec<String> {
    let sql = "SELECT 'a ' || key || ' ' || value FROM plain
        UNION ALL SELECT 'b ' || name || ' ' || value FROM named ORDER BY 1";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_>>().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Clearing changes no row and leaves no remains.
    #[test]
    fn only_unallocated_space_is_cleared(steps in vec(step(), 1..300), bits in 9..14_u32) {
        let directory = tempfile::tempdir().unwrap();
        let connection = Connection::open(directory.path().join("random.db")).unwrap();
        connection.pragma_update(None, "page_size", 1 << bits).unwrap();
        connection.pragma_update(None, "secure_delete", true).unwrap();
        connection.execute_batch(
            "CREATE TABLE plain (key INTEGER PRIMARY KEY, value TEXT);
             CREATE TABLE named (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
             CREATE INDEX by_value ON named (value);",
        ).unwrap();
        for step in steps {
            match step {
                Step::Insert(key, size) => {
                    let value = "x".repeat(size);
                    connection.execute("REPLACE INTO plain VALUES (?1, ?2)", (key, &value)).unwrap();
                    let name = format!("{}{key}", "n".repeat(usize::from(key % 97)));
                    connection.execute("REPLACE INTO named VALUES (?1, ?2)", (name, &value)).unwrap();
                }
                Step::Delete(key) => {
                    connection.execute("DELETE FROM plain WHERE key = ?1", [key]).unwrap();
                }
            }
        }
        let before = contents(&connection);
        let Remains::InPages(pages) = scan(&connection).unwrap() else {
            panic!("every page is understood");
        };
        clear(&connection, &pages.into_iter().collect()).unwrap();
        prop_assert_eq!(scan(&connection).unwrap(), Remains::InPages(Vec::new()));
        prop_assert_eq!(contents(&connection), before);
        let integrity: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        prop_assert_eq!(integrity, "ok");
    }

    /// Whatever a page holds, reading it neither panics nor takes long.
    #[test]
    fn any_page_can_be_read(page in vec(any::<u8>(), 512..=512), kind in 0..4_usize) {
        let mut page = page;
        page[0] = [2, 5, 10, 13][kind];
        for number in [PageNumber(1), PageNumber(2)] {
            if let Ok(tree) = Tree::read(number, &page) {
                tree.clear(&mut page);
                prop_assert!(!tree.has_remains(&page));
            }
        }
    }
}
