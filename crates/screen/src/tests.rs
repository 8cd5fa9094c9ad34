//! No credential stands in the source of these tests, not even an invented one: they are made
//! when the tests run, by [`sample`].

mod harmless;
mod places;
mod properties;
mod redaction;
mod secrets;

use crate::findings;

pub(crate) const DIGITS: &str = "0123456789";
pub(crate) const HEX: &str = "0123456789abcdef";
pub(crate) const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
pub(crate) const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(crate) const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
pub(crate) const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The kinds and lines of what is found in the text.
pub(crate) fn check(text: &str) -> Vec<(&'static str, usize)> {
    findings(text).iter().map(|finding| (finding.kind.as_str(), finding.line)).collect()
}

/// The parts of the text that are found to be secret.
pub(crate) fn secrets_in(text: &str) -> Vec<&str> {
    let secrets = findings(text).into_iter().map(|finding| text.get(finding.span));
    secrets.map(|secret| secret.expect("spans are on character boundaries")).collect()
}

/// Fills `{h32}` with 32 random hex digits, and so on for digits, upper case, alphanumeric, word
/// and base64 characters.
pub(crate) fn sample(pattern: &str, seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let mut text = String::new();
    for piece in pattern.split_inclusive('}') {
        let Some((before, size)) = piece.strip_suffix('}').and_then(|piece| piece.split_once('{'))
        else {
            text.push_str(piece);
            continue;
        };
        let (alphabet, size) = size.split_at(1);
        let alphabet = match alphabet {
            "d" => DIGITS,
            "h" => HEX,
            "u" => UPPER,
            "a" => ALNUM,
            "w" => WORD,
            "b" => BASE64,
            other => panic!("no alphabet is called `{other}`"),
        };
        text.push_str(before);
        text.push_str(&dice.text(alphabet, size.parse().expect("a size follows")));
    }
    text
}

/// Random numbers that are the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number of the `SplitMix64` sequence.
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("limits are small");
        usize::try_from(self.roll() % limit).expect("it is below the limit")
    }

    pub(crate) fn text(&mut self, alphabet: &str, size: usize) -> String {
        let alphabet = alphabet.as_bytes();
        (0..size).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }
}

/// Base64 as in tokens: the `URL` alphabet, not filled up.
pub(crate) fn encoded(text: &str) -> String {
    let alphabet = WORD.as_bytes();
    let digit = |group: u32, shift: u32| char::from(alphabet[(group >> shift & 63) as usize]);
    let mut digits = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        digits.extend([18, 12, 6, 0].map(|shift| digit(group, shift)).iter().take(chunk.len() + 1));
    }
    digits
}
