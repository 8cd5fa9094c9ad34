//! Credentials as requests carry them: bearer tokens, basic authentication, JSON web tokens,
//! signed URLs, and the tokens of Telegram's bots, which have no prefix.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::SecretKind;
use crate::base64::decoded;
use crate::characters::{Class, before, begins_token, ends_token, is_word, padding_end};
use crate::connections::is_real_password;
use crate::randomness::{is_random, is_random_value};

/// The base64url digits of the 32 bytes of a signature, without the padding.
const SAS_DIGITS: usize = 43;
const BASIC_SIZE_BYTES_MIN: usize = 8;
const JWT_SIGNATURE_SIZE_BYTES_MIN: usize = 16;
const TELEGRAM_SIZE_BYTES: usize = 35;
const TELEGRAM_ID_DIGITS: std::ops::RangeInclusive<usize> = 8..=12;

/// Finds the token after `Bearer `.
pub(super) fn bearer(bytes: &[u8], anchor: Range<usize>) -> Option<(SecretKind, Range<usize>)> {
    if !begins_token(bytes, anchor.start) {
        return None;
    }
    let end = padding_end(bytes, Class::Bearer.run_end(bytes, anchor.end));
    let is_token = ends_token(bytes, end) && is_random_value(bytes.get(anchor.end..end)?);
    is_token.then_some((SecretKind::AuthorizationHeader, anchor.end..end))
}

/// Finds the base64 of `user:password` after `Basic `.
pub(super) fn basic(bytes: &[u8], anchor: Range<usize>) -> Option<(SecretKind, Range<usize>)> {
    let end = padding_end(bytes, Class::Base64.run_end(bytes, anchor.end));
    if end - anchor.end < BASIC_SIZE_BYTES_MIN
        || !begins_token(bytes, anchor.start)
        || !ends_token(bytes, end)
    {
        return None;
    }
    let login = decoded(bytes.get(anchor.end..end)?);
    let colon = login.iter().position(|byte| *byte == b':')?;
    let is_login = login.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && is_real_password(login.get(..colon)?, login.get(colon + 1..)?);
    is_login.then_some((SecretKind::AuthorizationHeader, anchor.end..end))
}

/// Finds the JSON web token whose `eyJ` is at `anchor`.
pub(super) fn json_web_token(
    bytes: &[u8],
    anchor: Range<usize>,
) -> Option<(SecretKind, Range<usize>)> {
    let start = anchor.start;
    if !begins_token(bytes, start) || before(bytes, start, 1) == Some(b'.') {
        return None;
    }
    let header_end = Class::Word.run_end(bytes, start);
    if !bytes.get(header_end..)?.starts_with(b".eyJ") {
        return None;
    }
    let payload_end = Class::Word.run_end(bytes, header_end + 1);
    let end = Class::Word.run_end(bytes, payload_end + 1);
    let is_signed = bytes.get(payload_end) == Some(&b'.')
        && end.saturating_sub(payload_end + 1) >= JWT_SIGNATURE_SIZE_BYTES_MIN;
    let header = decoded(bytes.get(start..header_end)?);
    let is_token = is_signed && header.windows(5).any(|window| window == b"\"alg\"");
    is_token.then_some((SecretKind::JsonWebToken, start..end))
}

/// Finds the signature after the `sig=` of a shared access URL, where `+`, `/` and `=` may be
/// written as `%2B`, `%2F` and `%3D`.
pub(super) fn sas_signature(
    bytes: &[u8],
    anchor: Range<usize>,
) -> Option<(SecretKind, Range<usize>)> {
    if !matches!(before(bytes, anchor.start, 1), Some(b'?' | b'&' | b';')) {
        return None;
    }
    let mut end = anchor.end;
    for _ in 0..SAS_DIGITS {
        end += match bytes.get(end..)? {
            [b'%', b'2', b'B' | b'b' | b'F' | b'f', ..] => 3,
            [byte, ..] if Class::Base64.holds(*byte) => 1,
            _ => return None,
        };
    }
    end += match bytes.get(end..)? {
        [b'%', b'3', b'D' | b'd', ..] => 3,
        [b'=', ..] => 1,
        _ => return None,
    };
    let is_signature = ends_token(bytes, end) && is_random(bytes.get(anchor.end..end)?);
    is_signature.then_some((SecretKind::AzureSasSignature, anchor.end..end))
}

/// Finds the bot token whose `:A` is at `anchor`, between the bot's id and its secret.
pub(super) fn telegram(bytes: &[u8], anchor: Range<usize>) -> Option<(SecretKind, Range<usize>)> {
    let secret_start = anchor.start + 1;
    let end = Class::Word.run_end(bytes, secret_start);
    if end - secret_start != TELEGRAM_SIZE_BYTES || !is_random(bytes.get(secret_start..end)?) {
        return None;
    }
    let before_colon = bytes.get(..anchor.start)?;
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let id_digits =
        before_colon.iter().rev().take(TELEGRAM_ID_DIGITS.end() + 1).take_while(is_digit).count();
    let start = anchor.start - id_digits;
    let follows_border =
        !before(bytes, start, 1).is_some_and(is_word) || bytes.get(..start)?.ends_with(b"/bot");
    let is_token = TELEGRAM_ID_DIGITS.contains(&id_digits) && follows_border;
    is_token.then_some((SecretKind::TelegramToken, start..end))
}
