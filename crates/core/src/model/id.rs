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

    /// Creates an id for something created at `at`; `random` distinguishes it from others of that moment.
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

/// The error for a text that is not an id of the expected kind.
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
                if f.width().is_some() {
                    return f.pad(&format!("{}_{FORMAT}{text}", $prefix));
                }
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(FORMAT)?;
                f.write_str(text)
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
    /// The id of a key; it identifies the key and is not a secret.
    KeyId = "apikey";
    /// The id of a receipt.
    ReceiptId = "rcpt";
    /// The id of an agent.
    AgentId = "agent";
    /// The id of an environment.
    EnvironmentId = "env";
    /// The id of an event of a session.
    EventId = "sevt";
}

/// How many base58 digits fit into a machine word, and the weight of the next one.
const WORD_DIGITS: usize = 10;
const WORD: u128 = 58_u128.pow(10);

/// Encodes a number. Dividing 128 bits is slow, so it is done once for ten digits.
fn encode(mut bits: u128) -> [u8; DIGITS] {
    let mut digits = [0; DIGITS];
    for word in digits.rchunks_mut(WORD_DIGITS) {
        let mut rest = u64::try_from(bits % WORD).expect("58 to the power of ten fits");
        bits /= WORD;
        for digit in word.iter_mut().rev() {
            let value = usize::try_from(rest % 58).expect("a remainder of 58 fits");
            *digit = *ALPHABET.get(value).expect("a remainder of 58 is in the alphabet");
            rest /= 58;
        }
    }
    digits
}

/// The value of each letter of the alphabet; other bytes have none.
const VALUES: [Option<u8>; 256] = {
    let mut values = [None; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        #[expect(clippy::indexing_slicing, reason = "a mistake would not compile")]
        #[expect(clippy::cast_possible_truncation, reason = "there are 58")]
        {
            values[ALPHABET[value] as usize] = Some(value as u8);
        }
        value += 1;
    }
    values
};

fn decode(text: &str) -> Option<u128> {
    if text.len() != DIGITS {
        return None;
    }
    let word = |digits: &[u8]| {
        digits.iter().try_fold(0_u64, |bits, byte| {
            let value = VALUES.get(usize::from(*byte)).copied().flatten()?;
            Some(bits * 58 + u64::from(value))
        })
    };
    let (high, low) = text.as_bytes().split_at_checked(DIGITS - 2 * WORD_DIGITS)?;
    let words = low.chunks(WORD_DIGITS);
    words.into_iter().try_fold(u128::from(word(high)?), |bits, digits| {
        bits.checked_mul(WORD)?.checked_add(u128::from(word(digits)?))
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
    fn malformed_texts_are_not_ids() {
        let too_big = format!("mem_01{}", "z".repeat(22));
        for text in ["", "mem_", "mem_01", "mem_01short", "mem_010OIl11111111111111111", &too_big] {
            assert!(text.parse::<MemoryId>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_id_survives_a_round_trip_through_text(bits: u128) {
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
