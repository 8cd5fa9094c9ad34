//! Permalinks: paths as they are spelled in links.

#[cfg(test)]
mod tests;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// The slug of a name without letters or digits.
const UNNAMED: &str = "untitled";

/// Returns the permalink of a path, such as `projects/tea-house` for `/Projects/TeaHouse.md`.
pub fn permalink(path: &str) -> String {
    let text = without_extension(path.trim_start_matches('/'));
    let segments: Vec<_> = text.split('/').map(slug).collect();
    segments.join("/")
}

/// Returns the `number`th alternative to a permalink that is taken, 1-based.
pub fn numbered_permalink(permalink: &str, number: usize) -> String {
    format!("{permalink}-{number}")
}

/// Strips the extension. A leading dot (`.hidden`) and a dot in a number (`1.2`) start none.
pub(crate) fn without_extension(name: &str) -> &str {
    let is_extension = |text: &str| {
        (1..=8).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && text.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    match name.rsplit_once('.') {
        Some((stem, extension))
            if !stem.is_empty() && !stem.ends_with('/') && is_extension(extension) =>
        {
            stem
        }
        _ => name,
    }
}

/// Returns a text as one segment of a permalink; never empty.
pub fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    let mut before = ' ';
    for character in text.nfc() {
        let breaks_word = character.is_uppercase() && (before.is_lowercase() || is_digit(before));
        if breaks_word {
            dash(&mut slug);
        }
        push(&mut slug, character);
        before = character;
    }
    match slug.trim_end_matches('-') {
        "" => UNNAMED.to_owned(),
        slug => slug.to_owned(),
    }
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

/// Adds a dash unless it would be the first character or repeat one.
fn dash(slug: &mut String) {
    if !slug.is_empty() && !slug.ends_with('-') {
        slug.push('-');
    }
}

fn push(slug: &mut String, character: char) {
    match character {
        '\'' | '\u{2018}' | '\u{2019}' | '\u{2bc}' => {}
        _ if character.is_ascii_alphanumeric() => slug.push(character.to_ascii_lowercase()),
        _ if character.is_ascii() => dash(slug),
        _ => match latin(character) {
            Some(letters) => slug.push_str(&letters),
            None if character.is_alphanumeric() => slug.extend(character.to_lowercase()),
            None if is_combining_mark(character) => slug.push(character),
            None => dash(slug),
        },
    }
}

/// Transliterates a Latin letter to ASCII.
fn latin(character: char) -> Option<String> {
    let mut base = None;
    decompose_canonical(character, |part| base = base.or(Some(part)));
    if let Some(letter) = base.filter(char::is_ascii_alphabetic) {
        return Some(letter.to_ascii_lowercase().to_string());
    }
    undecomposed(character).map(str::to_owned)
}

/// Transliterates a Latin letter that Unicode does not decompose into a letter and an accent.
pub(crate) fn undecomposed(character: char) -> Option<&'static str> {
    Some(match character {
        'Æ' | 'æ' | 'Ǽ' | 'ǽ' => "ae",
        'Œ' | 'œ' => "oe",
        'Ø' | 'ø' | 'Ǿ' | 'ǿ' | 'º' => "o",
        'ß' | 'ẞ' => "ss",
        'Þ' | 'þ' => "th",
        'Ð' | 'ð' | 'Đ' | 'đ' => "d",
        'Ł' | 'ł' | 'Ŀ' | 'ŀ' => "l",
        'Ħ' | 'ħ' => "h",
        'ı' => "i",
        'ĸ' => "k",
        'Ŋ' | 'ŋ' | 'ŉ' => "n",
        'Ŧ' | 'ŧ' => "t",
        'Ĳ' | 'ĳ' => "ij",
        'ſ' => "s",
        'ª' => "a",
        _ => return None,
    })
}
