//! Distinguishes random text from words, patterns and placeholders.
//!
//! The shape of a token or the name in front of a value says that a credential could stand here;
//! these tests say that one does, and not `your-api-key-here`, `xxxxxxxx` or `get_token_v2`.

#[cfg(test)]
mod tests;

/// Fewer different characters than this are a pattern, not a credential.
const DISTINCT_MIN: usize = 8;
/// A prefix this long is nowhere by chance, so what follows it need not look random.
const TELLING_PREFIX_SIZE_BYTES_MIN: usize = 4;
/// Nor need a body this long.
const TELLING_BODY_SIZE_BYTES_MIN: usize = 32;
/// Generated values are at least this long.
const VALUE_SIZE_BYTES_MIN: usize = 16;
/// The least Shannon entropy of a random value, in bits per character. Sixteen random hex digits
/// have about 3.2, English text of the same length is not far below: see [`is_wordy`].
const ENTROPY_BITS_MIN: f64 = 3.0;

/// Pieces of names up to this size may mix letters and digits, as in `v2` and `x64`.
const PIECE_SIZE_BYTES_MAX: usize = 4;

/// What people write where a credential would be, in lower case.
const BLANKS: &str = "placeholder redacted changeme change-me change_me replace your xxxx **** ...";

/// What people write in made-up credentials, in lower case.
const MADE_UP: &str = "example insert dummy fake";

/// For each letter, the letters that often follow it in English words and in identifiers. Nine in
/// ten pairs of such text are in this table, three in ten pairs of random text.
const PAIRS: [&str; 26] = [
    "bcdgilmnprstuy",    // a
    "aeilosu",           // b
    "acehiklorstu",      // c
    "adeilorsu",         // d
    "acdefglmnpqrstvxy", // e
    "aefilou",           // f
    "ehinrs",            // g
    "aeio",              // h
    "abcdefglmnoprstvz", // i
    "aos",               // j
    "ei",                // k
    "adeilostuy",        // l
    "aeimopsu",          // m
    "acdefginostu",      // n
    "bcdfilmnoprstuvw",  // o
    "aeiloprstu",        // p
    "u",                 // q
    "acdeikmnorstuy",    // r
    "acehiopstuy",       // s
    "acehilorstuy",      // t
    "abceilmnprst",      // u
    "aei",               // v
    "aei",               // w
    "pt",                // x
    "p",                 // y
    "e",                 // z
];

/// Returns whether what follows the prefix of a shaped token is its body, and not a placeholder.
pub(super) fn is_body(prefix: &[u8], body: &[u8]) -> bool {
    let is_telling =
        prefix.len() >= TELLING_PREFIX_SIZE_BYTES_MIN || body.len() >= TELLING_BODY_SIZE_BYTES_MIN;
    if !is_telling {
        return is_random(body);
    }
    let is_blank = body.iter().all(|byte| matches!(byte, b'x' | b'X' | b'0' | b'.' | b'-' | b'_'));
    let is_text = has_separators(body) && is_wordy(body);
    !is_blank && !is_text && !is_left_blank(body)
}

/// Returns whether the body of a token with hardly any prefix is random, and not a placeholder.
pub(super) fn is_random(body: &[u8]) -> bool {
    let is_pattern = Counts::of(body).distinct() < DISTINCT_MIN
        || is_sequence(body)
        || body.iter().all(u8::is_ascii_lowercase);
    let is_text = has_placeholder(body) || (has_separators(body) && is_wordy(body));
    !is_pattern && !is_text
}

/// Returns whether a value that was assigned to the name of a credential is random.
///
/// Stricter than [`is_random`], because nothing about the value itself marks it as a credential.
pub(super) fn is_random_value(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let is_mixed = if has(u8::is_ascii_digit) {
        has(u8::is_ascii_alphabetic)
    } else {
        has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
    };
    let is_id =
        is_uuid(value) || is_ethereum_address(value) || is_named_hash(value) || is_constant(value);
    is_mixed
        && value.len() >= VALUE_SIZE_BYTES_MIN
        && Counts::of(value).entropy_bits() >= ENTROPY_BITS_MIN
        && !is_id
        && !is_sequence(value)
        && !has_placeholder(value)
        && !is_slug(value)
        && !is_wordy(value)
}

/// Returns whether the text holds a word that people write in place of a credential or in a made-up
/// one.
fn has_placeholder(text: &[u8]) -> bool {
    is_left_blank(text) || has_one_of(MADE_UP, text)
}

/// Returns whether the text holds a word that people write in place of a credential.
pub(super) fn is_left_blank(text: &[u8]) -> bool {
    has_one_of(BLANKS, text)
}

/// Returns whether the text holds one of the words.
///
/// Its letters must be of one case but for the first: long random texts hold any short word.
fn has_one_of(words: &str, text: &[u8]) -> bool {
    let has_one_case = |word: &[u8]| {
        let rest = || word.iter().skip(1);
        !rest().any(u8::is_ascii_uppercase) || !rest().any(u8::is_ascii_lowercase)
    };
    words.split(' ').any(|word| {
        let mut parts = text.windows(word.len());
        parts.any(|part| part.eq_ignore_ascii_case(word.as_bytes()) && has_one_case(part))
    })
}

/// Returns whether at least half of the characters equal or succeed the one before, as in
/// `aaaaaaaa`, `1234567890` and `abcdef0123456789`.
fn is_sequence(text: &[u8]) -> bool {
    let steps = pairs(text).filter(|(left, right)| matches!(right.wrapping_sub(*left), 0 | 1));
    steps.count() * 2 >= text.len()
}

/// Returns whether most letters stand in pairs as they do in words.
///
/// Text with few letters, such as a hash, is never wordy.
fn is_wordy(text: &[u8]) -> bool {
    let (mut all, mut common) = (0, 0);
    for (left, right) in pairs(text) {
        let is_camel_border = left.is_ascii_lowercase() && right.is_ascii_uppercase();
        if left.is_ascii_alphabetic() && right.is_ascii_alphabetic() && !is_camel_border {
            all += 1;
            common += usize::from(is_common_pair(left, right));
        }
    }
    all * 3 >= text.len() && common * 3 >= all * 2
}

fn is_common_pair(left: u8, right: u8) -> bool {
    let index = usize::from(left.to_ascii_lowercase().wrapping_sub(b'a'));
    let right = char::from(right.to_ascii_lowercase());
    PAIRS.get(index).is_some_and(|followers| followers.contains(right))
}

fn has_separators(text: &[u8]) -> bool {
    text.iter().filter(|byte| matches!(byte, b'-' | b'_')).count() >= 2
}

fn is_uuid(text: &[u8]) -> bool {
    let mut groups = text.split(|byte| *byte == b'-');
    [8, 4, 4, 4, 12].iter().all(|size| {
        groups
            .next()
            .is_some_and(|group| group.len() == *size && group.iter().all(u8::is_ascii_hexdigit))
    }) && groups.next().is_none()
}

/// Names such as `token` stand in front of these in texts about currencies.
fn is_ethereum_address(text: &[u8]) -> bool {
    text.len() == 42 && text.starts_with(b"0x")
}

/// Hashes such as `sha512-…` name their algorithm.
fn is_named_hash(text: &[u8]) -> bool {
    text.starts_with(b"sha") || text.starts_with(b"md5")
}

/// Returns whether the text is made of plain pieces, as names and versions are: `cmp2-qat-1208358`,
/// `jackson-0.11.2`.
fn is_slug(text: &[u8]) -> bool {
    let mut pieces = text.split(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/'));
    text.iter().any(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/'))
        && pieces.all(|piece| {
            piece.len() <= PIECE_SIZE_BYTES_MAX
                || piece.iter().all(u8::is_ascii_digit)
                || piece.iter().all(u8::is_ascii_lowercase)
        })
}

/// Returns whether the text is the name of a constant, such as `DB_PASSWORD_V2`.
fn is_constant(text: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    text.contains(&b'_') && text.iter().all(is_name)
}

fn pairs(text: &[u8]) -> impl Iterator<Item = (u8, u8)> {
    text.iter().copied().zip(text.iter().copied().skip(1))
}

/// How often each byte occurs.
struct Counts {
    of_byte: [u32; 256],
}

impl Counts {
    fn of(text: &[u8]) -> Self {
        let mut of_byte = [0; 256];
        for byte in text {
            if let Some(count) = of_byte.get_mut(usize::from(*byte)) {
                *count += 1;
            }
        }
        Self { of_byte }
    }

    fn distinct(&self) -> usize {
        self.of_byte.iter().filter(|count| **count > 0).count()
    }

    /// The Shannon entropy of a character.
    fn entropy_bits(&self) -> f64 {
        let total = f64::from(self.of_byte.iter().sum::<u32>());
        self.of_byte
            .iter()
            .filter(|count| **count > 0)
            .map(|count| f64::from(*count) / total)
            .map(|share| -share * share.log2())
            .sum()
    }
}
