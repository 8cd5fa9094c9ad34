//! Ids: `prefix_01` and 22 base58 characters.
//!
//! The characters spell a 128-bit number: 56 bits of microseconds since 1970, then 72 random
//! bits. So ids of one kind sort by creation, as text and as numbers, and the moment of creation
//! can be read back from the id.

use std::fmt;
use std::hash::Hash;
use std::str::FromStr;

use super::Timestamp;

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const DIGITS: usize = 22;
const FORMAT: &str = "01";
const RANDOM_BITS: u32 = 72;

/// What the id types have in common.
///
/// Each noun has its own type, so a memory's id can never be passed where a store's is meant.
pub trait Id: Copy + Eq + Ord + Hash + fmt::Debug + fmt::Display + FromStr {
    /// The word before the underscore, such as `mem`.
    const PREFIX: &'static str;

    /// Makes an id for a thing created at `at`; `random` tells it from others of that moment.
    fn new(at: Timestamp, random: u128) -> Self {
        let time = u128::from(at.as_micros().unsigned_abs()) << RANDOM_BITS;
        Self::from_bits(time | (random & ((1 << RANDOM_BITS) - 1)))
    }

    /// Returns the id with these bits.
    fn from_bits(bits: u128) -> Self;

    /// Returns the bits, for a backend to store.
    fn bits(self) -> u128;

    /// Returns the moment that is part of the id.
    fn created_at(self) -> Timestamp {
        let micros = i64::try_from(self.bits() >> RANDOM_BITS).expect("56 bits fit in 63");
        Timestamp::from_micros(micros)
    }
}

/// Says that a text is not an id of the wanted kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseIdError {
    prefix: &'static str,
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an id of the form `{}_{FORMAT}` and {DIGITS} characters", self.prefix)
    }
}

impl std::error::Error for ParseIdError {}

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl Id for $name {
            const PREFIX: &'static str = $prefix;

            fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            fn bits(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let digits = encode(self.0);
                let text = str::from_utf8(&digits).expect("the alphabet is ASCII");
                f.pad(&format!("{}_{FORMAT}{text}", $prefix))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix($prefix)
                    .and_then(|rest| rest.strip_prefix('_'))
                    .and_then(|rest| rest.strip_prefix(FORMAT))
                    .and_then(decode)
                    .map(Self)
                    .ok_or(ParseIdError { prefix: $prefix })
            }
        }
    )*};
}

id_types! {
    /// The id of a workspace.
    WorkspaceId = "wrkspc";
    /// The id of a store.
    StoreId = "memstore";
    /// The id of a memory; it survives renames.
    MemoryId = "mem";
    /// The id of a version.
    VersionId = "memver";
    /// The id of a session.
    SessionId = "sesn";
    /// The id of a key; it names the key and is no secret.
    KeyId = "apikey";
}

fn encode(mut bits: u128) -> [u8; DIGITS] {
    let mut digits = [0; DIGITS];
    for digit in digits.iter_mut().rev() {
        let value = usize::try_from(bits % 58).expect("a remainder of 58 fits");
        *digit = *ALPHABET.get(value).expect("a remainder of 58 is in the alphabet");
        bits /= 58;
    }
    digits
}

fn decode(text: &str) -> Option<u128> {
    if text.len() != DIGITS {
        return None;
    }
    text.bytes().try_fold(0_u128, |bits, byte| {
        let value = ALPHABET.iter().position(|&letter| letter == byte)?;
        bits.checked_mul(58)?.checked_add(u128::try_from(value).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_a_prefix_a_format_and_22_characters() {
        let id = StoreId::from_bits(0);
        assert_eq!(id.to_string(), format!("memstore_01{}", "1".repeat(22)));
    }

    #[test]
    fn the_time_of_creation_is_part_of_the_id() {
        let at = Timestamp::from_micros(1_790_000_000_123_456);
        assert_eq!(MemoryId::new(at, u128::MAX).created_at(), at);
    }

    #[test]
    fn ids_of_another_kind_are_refused() {
        let memory = MemoryId::from_bits(7).to_string();
        assert!(memory.parse::<VersionId>().is_err());
        assert!(memory.parse::<MemoryId>().is_ok());
    }

    #[test]
    fn strange_texts_are_not_ids() {
        let too_big = format!("mem_01{}", "z".repeat(22));
        for text in ["", "mem_", "mem_01", "mem_01short", "mem_010OIl11111111111111111", &too_big] {
            assert!(text.parse::<MemoryId>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_number_survives_the_way_through_text(bits: u128) {
            let id = VersionId::from_bits(bits);
            prop_assert_eq!(id.to_string().parse::<VersionId>(), Ok(id));
        }

        #[test]
        fn text_order_is_number_order(left: u128, right: u128) {
            let texts = [left, right].map(|bits| VersionId::from_bits(bits).to_string());
            prop_assert_eq!(texts[0].cmp(&texts[1]), left.cmp(&right));
        }
    }
}
