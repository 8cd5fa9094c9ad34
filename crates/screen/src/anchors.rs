//! The strings at which a credential may begin, and a fast way to find them all.
//!
//! There are about two hundred anchors. Whether one begins at an offset is nearly always answered with
//! no by looking up the two bytes there in a table. An automaton over all anchors, in which each step
//! depends on the one before, was measured at half the speed, and took a millisecond to build.

use std::ops::Range;
use std::sync::LazyLock;

use crate::tokens::{FAMILIES, Family};
use crate::{SecretKind, assignments, blocks, connections, headers};

/// What to do at an anchor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// A token of the family may begin here.
    Token(&'static Family),
    /// The function decides.
    Spot(Spot),
    /// A private key may begin here.
    Block,
    /// Binary data follows in base64.
    Image,
}

/// Finds the credential that belongs to the anchor, if there is one.
type Spot = fn(&[u8], Range<usize>) -> Option<(SecretKind, Range<usize>)>;

/// The anchors of everything but the shaped tokens.
const SPOTS: &[(Rule, &[&str])] = &[
    (Rule::Block, &[blocks::BEGIN]),
    (Rule::Image, &[";base64,"]),
    (Rule::Spot(connections::url_password), &["://"]),
    (Rule::Spot(connections::list_password), &["Data Source="]),
    (Rule::Spot(connections::jdbc_password), &["jdbc:"]),
    (Rule::Spot(headers::json_web_token), &["eyJ"]),
    (Rule::Spot(headers::sas_signature), &["sig="]),
    (Rule::Spot(headers::telegram), &[":A"]),
];

/// More of them, to be found as they are, Capitalized and in UPPER CASE.
const WORDS: &[(Rule, &[&str])] = &[
    (Rule::Spot(connections::list_password), &["server=", "host="]),
    (Rule::Spot(headers::bearer), &["bearer "]),
    (Rule::Spot(headers::basic), &["basic "]),
    (
        Rule::Spot(assignments::of_keyword),
        &["secret", "token", "password", "passwd", "pwd", "credential", "authorization"],
    ),
    (Rule::Spot(assignments::of_word), &["auth", "pass"]),
    (Rule::Spot(assignments::of_key), &["key"]),
];

/// All anchors with their rules.
pub(super) static ANCHORS: LazyLock<Anchors> = LazyLock::new(Anchors::new);

/// See [`ANCHORS`].
pub(super) struct Anchors {
    /// For each pair of bytes, the place in `lists` of the anchors that begin with it.
    list_of_pair: Box<[u8; 1 << 16]>,
    /// The first list is empty, for all the pairs with which no anchor begins.
    lists: Vec<Vec<(Vec<u8>, Rule)>>,
}

impl Anchors {
    fn new() -> Self {
        let table = vec![0; 1 << 16].into_boxed_slice();
        let list_of_pair = table.try_into().expect("the table has one entry for each pair");
        let mut anchors = Self { list_of_pair, lists: vec![Vec::new()] };
        for family in FAMILIES {
            for prefix in family.prefixes {
                anchors.add(prefix.as_bytes().to_vec(), Rule::Token(family));
            }
        }
        for (rule, texts) in SPOTS {
            texts.iter().for_each(|text| anchors.add(text.as_bytes().to_vec(), *rule));
        }
        for (rule, words) in WORDS {
            words.iter().flat_map(|word| cases(word)).for_each(|word| anchors.add(word, *rule));
        }
        anchors
    }

    fn add(&mut self, anchor: Vec<u8>, rule: Rule) {
        let pair = anchor.first_chunk().expect("anchors have at least two bytes");
        let list = self.list_of_pair.get_mut(index_of(*pair)).expect("every pair has an index");
        if *list == 0 {
            *list = u8::try_from(self.lists.len()).expect("anchors begin in fewer than 256 ways");
            self.lists.push(Vec::new());
        }
        let list = self.lists.get_mut(usize::from(*list)).expect("the list has just been made");
        list.push((anchor, rule));
    }

    /// Returns every anchor in the text, with its place, from left to right.
    pub(super) fn in_text<'t>(
        &'t self,
        bytes: &'t [u8],
    ) -> impl Iterator<Item = (Range<usize>, Rule)> + 't {
        let places = bytes.array_windows().map(|pair| self.list(*pair)).enumerate();
        places.filter(|(_, list)| *list != 0).flat_map(move |(start, list)| {
            let list = self.lists.get(usize::from(list)).map_or(&[][..], Vec::as_slice);
            let rest = bytes.get(start..).unwrap_or_default();
            let matching = list.iter().filter(|(anchor, _)| rest.starts_with(anchor));
            matching.map(move |(anchor, rule)| (start..start + anchor.len(), *rule))
        })
    }

    fn list(&self, pair: [u8; 2]) -> u8 {
        self.list_of_pair.get(index_of(pair)).copied().unwrap_or(0)
    }
}

fn index_of(pair: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(pair))
}

/// Returns the word as it is, capitalized, and in upper case.
fn cases(word: &str) -> [Vec<u8>; 3] {
    let mut capitalized = word.as_bytes().to_vec();
    if let Some(first) = capitalized.first_mut() {
        first.make_ascii_uppercase();
    }
    [word.as_bytes().to_vec(), capitalized, word.as_bytes().to_ascii_uppercase()]
}
