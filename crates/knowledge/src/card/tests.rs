use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,12}", Just(String::new()), "[a-z]{120,140}"]
}

fn link() -> impl Strategy<Value = LinkRow> {
    let optional = || prop::option::of(text());
    let target = (text(), optional(), optional(), optional());
    let target =
        target.prop_map(|(name, store, section, alias)| LinkTarget { store, name, section, alias });
    (text(), target, optional(), any::<u32>()).prop_map(|(kind, target, context, line)| LinkRow {
        from: memory(),
        position: 0,
        kind,
        target,
        context,
        line: line as usize,
    })
}

fn memory() -> MemoryId {
    MemoryId::from_bits(7)
}

fn store() -> StoreId {
    StoreId::from_bits(9)
}

fn card() -> impl Strategy<Value = Card> {
    let texts = (text(), text(), text(), "/[a-z]{1,8}(/[a-z日é]{1,8}){0,3}");
    let times = (any::<u128>(), 0_i64..1 << 50, 0_i64..1 << 50);
    let lists = (prop::collection::vec(text(), 0..6), prop::collection::vec(link(), 0..6));
    (texts, times, lists).prop_map(|(texts, (version, created, updated), (names, links))| {
        let (title, kind, permalink, path) = texts;
        let mut links = links;
        for (position, link) in links.iter_mut().enumerate() {
            link.position = position;
        }
        Card {
            memory: memory(),
            store: store(),
            version: VersionId::from_bits(version),
            path: MemoryPath::parse(&path).unwrap(),
            title,
            kind,
            permalink,
            created_at: Timestamp::from_micros(created),
            updated_at: Timestamp::from_micros(updated),
            names,
            links,
        }
    })
}

proptest! {
    #[test]
    fn a_card_is_read_as_it_was_written(card in card()) {
        let bytes = card.to_bytes();
        prop_assert_eq!(Card::read(store(), memory(), &bytes), Ok(card.clone()));
        let row = Card { names: Vec::new(), links: Vec::new(), ..card };
        prop_assert_eq!(Card::read_row(store(), memory(), &bytes), Ok(row));
    }

    /// A card that was cut off is damage, never a card with fewer links.
    #[test]
    fn a_truncated_card_is_damage(card in card(), cut in any::<prop::sample::Index>()) {
        let bytes = card.to_bytes();
        let part = &bytes[..cut.index(bytes.len())];
        prop_assert_eq!(Card::read(store(), memory(), part), Err(Damaged));
    }

    /// One wrong byte is damage or another card, but no panic and no endless list.
    #[test]
    fn a_changed_card_is_read_or_refused(
        card in card(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = card.to_bytes();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(read) = Card::read(store(), memory(), &bytes) {
            prop_assert!(read.names.len() + read.links.len() <= bytes.len());
            prop_assert!(read.links.iter().enumerate().all(|(at, link)| link.position == at));
        }
    }
}

/// The encoded head of a card: version, times, path and three texts.
fn head(path: &str) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    for text in [path, "title", "note", "permalink"] {
        put_bytes(&mut bytes, text.as_bytes());
    }
    bytes
}

#[test]
fn a_path_that_breaks_the_rules_is_damage() {
    assert!(Card::read_row(store(), memory(), &head("/a.md")).is_ok());
    for path in ["", "a.md", "/", "/a//b", "/../a", "/a/"] {
        assert_eq!(Card::read_row(store(), memory(), &head(path)), Err(Damaged), "{path}");
    }
}

/// A count that the rest cannot hold is refused before anything is allocated for it.
#[test]
fn counts_beyond_the_rest_are_damage() {
    for count in [1, 2, u64::from(u32::MAX), u64::MAX] {
        let mut bytes = head("/a.md");
        put_varint(&mut bytes, count);
        assert_eq!(Card::read(store(), memory(), &bytes), Err(Damaged), "{count} names");
        let mut bytes = head("/a.md");
        put_varint(&mut bytes, 0);
        put_varint(&mut bytes, count);
        assert_eq!(Card::read(store(), memory(), &bytes), Err(Damaged), "{count} links");
    }
}

#[test]
fn a_text_is_there_or_not_and_nothing_else() {
    let mut bytes = Vec::new();
    put_optional(&mut bytes, None);
    put_optional(&mut bytes, Some(""));
    put_optional(&mut bytes, Some("x"));
    let mut input = Input::new(&bytes);
    assert_eq!(optional(&mut input), Ok(None));
    assert_eq!(optional(&mut input), Ok(Some(String::new())), "empty is not missing");
    assert_eq!(optional(&mut input), Ok(Some("x".to_owned())));
    assert_eq!(optional(&mut Input::new(&[2, 0])), Err(Damaged));
    assert_eq!(optional(&mut Input::new(&[])), Err(Damaged));
}
