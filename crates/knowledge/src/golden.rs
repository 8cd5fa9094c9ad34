//! Ties the format version to the format.
//!
//! An index is trusted if its format version matches. So any change of the layout, the tokenizer,
//! or of what else is indexed of a text requires a new version. Otherwise existing indexes would
//! hold a mixture of both.

use quipu_core::backend::Sequence;
use quipu_core::model::{
    Content, Id as _, Memory, MemoryId, MemoryPath, StoreId, Timestamp, VersionId,
};
use quipu_notes::tokenizer::Lexicon;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};

use crate::entry::Entry;
use quipu_vectors::quantized::Quantized;

use crate::index::{
    Applied, BatchBuilder, Cursor, FORMAT, Lines, MemoryVectors, PassageVector, PutVectors, SCHEMA,
    add_encoder, add_store, put_vectors,
};

/// The format version, and the digest of everything that it covers.
const GOLDEN: (i64, &str) = (6, "b09e7159aa5e0eb8ee2f004cff78cca16057c9e4830f9b2a94c0eacf79777f51");

const NOTES: [(&str, &str); 6] = [
    ("/plain.md", "The Cafés were connecting parseJson2, foo-bar/baz.rs and user's 日本語."),
    (
        "/projects/tea/green.md",
        "---\ntitle: Green tea\ntags: [tea, drink/hot]\naliases: [sencha]\nauthor: {name: Ada}\n\
         permalink: green\ncreated: 2026-11-15\n---\n# Green tea\n\n## Brewing\n\n\
         - [fact] @since:2026-01-01 brewed at 75 °C #green (hot)\n- part_of [[Drinks]] (often)\n\
         See [black](black.md) and [[other:Store note#part|shown]].\n",
    ),
    (
        "/de/steuer.md",
        "# Steuererklärung\n\nDie Unterlagen für die Steuererklärung sind nicht vollständig, und wir haben sie nicht abgegeben.\n",
    ),
    (
        "/fr/velo.md",
        "# Le vélo\n\nNous avons réparé les roues du vélo, mais il n'est pas dans la cave de l'immeuble.\n",
    ),
    (
        "/ru/chaj.md",
        "# Чай\n\nМы пили зелёный чай с друзьями, и он был очень горячим, но мы не спешили.\n",
    ),
    ("/empty", ""),
];

fn memory(number: u64, path: &str, text: &str) -> Memory {
    let content = Content::new(text).unwrap();
    let at = Timestamp::from_micros(1_700_000_000_000_000 + i64::try_from(number).unwrap());
    Memory {
        id: MemoryId::new(at, 1),
        store: StoreId::new(at, 2),
        version: VersionId::new(at, 3),
        path: MemoryPath::parse(path).unwrap(),
        hash: content.hash(),
        size_bytes: content.size_bytes(),
        content: Some(content),
        created_at: at,
        updated_at: at,
    }
}

/// Adds every row of every table, by key, with the types of its values.
fn add_rows(digest: &mut Sha256, connection: &Connection) {
    let of_text = ["stores", "segments", "columns", "dead", "postings", "positions", "notes"];
    for table in of_text.into_iter().chain(["encoders", "vectors", "embeddings"]) {
        digest.update(table);
        let sql = format!("SELECT * FROM {table} ORDER BY 1, 2");
        let mut statement = connection.prepare(&sql).unwrap();
        let count = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..count {
                match row.get_ref(column).unwrap() {
                    ValueRef::Integer(number) => digest.update(number.to_le_bytes()),
                    ValueRef::Blob(blob) => {
                        digest.update(blob.len().to_le_bytes());
                        digest.update(blob);
                    }
                    other @ (ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_)) => {
                        panic!("{table} holds {other:?}")
                    }
                }
            }
        }
    }
}

#[test]
fn format_changes_require_a_new_version() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    let at = Timestamp::from_micros(1_700_000_000_000_000);
    let store = StoreId::new(at, 2);
    add_store(&connection, store, Sequence(1)).unwrap();
    let memories: Vec<_> =
        (0..).zip(NOTES).map(|(number, (path, text))| memory(number, path, text)).collect();
    let mut from = Cursor::START;
    // The last one is indexed twice, so that one document is dead.
    for (memories, sequence) in [(memories.as_slice(), 7), (&memories[NOTES.len() - 1..], 8)] {
        let mut batch = BatchBuilder::default();
        for memory in memories {
            let Entry { card, documents } = Entry::read(memory, &mut Lexicon::default());
            batch.add(documents, card.to_bytes());
        }
        let to = Cursor { sequence: Sequence(sequence), at };
        let applied = batch.finish().apply(&connection, store, (from, to), to.sequence);
        assert_eq!(applied.unwrap(), Applied::Done);
        from = to;
    }
    let encoder = add_encoder(&connection, ("golden", 3), at).unwrap();
    let made = MemoryVectors {
        memory: memories[0].id,
        version: memories[0].version,
        updated_at: memories[0].updated_at,
        passages: vec![PassageVector {
            lines: Lines { first: 1, last: 300 },
            vector: Quantized::new(&[0.6, -0.8, 0.0]).unwrap(),
        }],
    };
    let put = put_vectors(&connection, store, (&encoder, from.sequence), &[made], |_, _| true);
    assert_eq!(put.unwrap(), PutVectors::Put { embedded: 1, rejected: 0 });
    let mut digest = Sha256::new();
    digest.update(SCHEMA);
    add_rows(&mut digest, &connection);
    let mut hex = String::new();
    for byte in digest.finalize() {
        hex.push_str(&format!("{byte:02x}"));
    }
    assert_eq!(
        (FORMAT, hex.as_str()),
        GOLDEN,
        "what is indexed has changed: increase `FORMAT`, and keep the new digest with it here"
    );
}
