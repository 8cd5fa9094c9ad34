//! Holds the format number together with what it stands for.
//!
//! An index is trusted if its number is right. So whoever changes the layout, the tokens, or anything
//! else that is indexed of a text must change the number too, or data directories would hold a mixture.

use quipu_core::model::{
    Content, Id as _, Memory, MemoryId, MemoryPath, StoreId, Timestamp, VersionId,
};
use sha2::{Digest as _, Sha256};

use crate::entry::Entry;
use crate::index::{FORMAT, SCHEMA, SegmentBuilder};

/// The number, and the digest of everything that it stands for.
const GOLDEN: (i64, &str) = (1, "12ce56060fc9a752297c3e331b08d8c0bb4249f8b18144c65f2b2cf70c5161d6");

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

#[test]
fn what_is_indexed_has_a_number() {
    let mut digest = Sha256::new();
    let mut segment = SegmentBuilder::default();
    for (number, (path, text)) in (0..).zip(NOTES) {
        let Entry { card, documents } = Entry::read(&memory(number, path, text));
        digest.update(card.to_bytes());
        segment.add(documents);
    }
    let segment = segment.finish();
    for block in &segment.blocks {
        for bytes in [&block.first, &block.postings, &block.positions] {
            digest.update(bytes.len().to_le_bytes());
            digest.update(bytes);
        }
    }
    let memories = &segment.columns.memories;
    digest.update(memories.lengths.as_bytes());
    digest.update(memories.ids.as_bytes());
    digest.update(memories.times.as_bytes());
    digest.update(&memories.paths);
    for facts in [&segment.columns.observations, &segment.columns.relations] {
        digest.update(facts.lengths.as_bytes());
        digest.update(facts.rows.as_bytes());
    }
    digest.update(SCHEMA);
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
