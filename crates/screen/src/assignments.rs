//! Random values behind the name of a credential: `api_key = "…"`, `"password": "…"`,
//! `export TOKEN=…`, `--secret …`, `<token>…</token>`.
//!
//! The name makes the claim and the value must bear it out; neither alone is enough. Values
//! contain no operators, so every value belongs to one name and no text is read twice.

use std::ops::Range;

use crate::SecretKind;
use crate::characters::{Class, before, ends_token, is_word, padding_end};
use crate::randomness::is_random_value;

/// How far a name may reach on either side of its keyword.
const NAME_SIZE_BYTES_MAX: usize = 48;
const SPACES_MAX: usize = 32;
const TYPE_SIZE_BYTES_MAX: usize = 40;
const AWS_SECRET_SIZE_BYTES: usize = 40;

/// What makes a key a secret: `api_key`, but not `primary_key`.
const KEY_QUALIFIERS: &str = "access account admin api auth encryption master private role secret \
    service signing";

/// Parts of names that hold something about a credential instead of the credential.
const HARMLESS_PARTS: [&[&str]; 7] = [
    &["id", "ids", "label", "name", "names", "prefix", "ref", "type", "version"],
    &["address", "arn", "dir", "endpoint", "file", "filename", "path", "uri", "url"],
    &["checksum", "digest", "etag", "fingerprint", "hash", "hashed", "md5", "sha", "sha1"],
    &["encrypted", "pub", "public", "publishable", "sha256", "sha512"],
    &["at", "created", "date", "expiration", "expires", "expiry", "ttl"],
    &["count", "format", "len", "length", "limit", "max", "min", "pattern", "policy", "size"],
    // Tokens of other sorts: of pages, forms, retries and currencies.
    &["contract", "csrf", "cursor", "field", "header", "idempotency", "mint", "page", "scope"],
];

/// Words in front of the value of an authorization header.
const SCHEMES: [&str; 4] = ["apikey ", "bearer ", "key ", "token "];

/// Finds the value of a name with a keyword that means a credential wherever it stands, such as
/// `token`.
pub(super) fn of_keyword(bytes: &[u8], anchor: Range<usize>) -> Option<(SecretKind, Range<usize>)> {
    if !ends_word(bytes, anchor.end) {
        return None;
    }
    let name = name_around(bytes, anchor)?;
    let span = value_span(bytes, value_start(bytes, &name)?)?;
    let (name, value) = (bytes.get(name)?, bytes.get(span.clone())?);
    let is_aws_secret = is_aws_secret(name, value);
    if !(is_aws_secret || is_random_value(value)) || name_parts(name).any(is_harmless) {
        return None;
    }
    let kind = if is_aws_secret { SecretKind::AwsSecretKey } else { SecretKind::AssignedSecret };
    Some((kind, span))
}

/// Finds the value of a name with a keyword that must be a word of its own, such as `auth`.
pub(super) fn of_word(bytes: &[u8], anchor: Range<usize>) -> Option<(SecretKind, Range<usize>)> {
    let first_is_upper = bytes.get(anchor.start)?.is_ascii_uppercase();
    let glued = before(bytes, anchor.start, 1).is_some_and(|byte| {
        if first_is_upper { byte.is_ascii_uppercase() } else { byte.is_ascii_alphabetic() }
    });
    if glued { None } else { of_keyword(bytes, anchor) }
}

/// Finds the value of a name with `key` in it, if it is one of those that are secret.
pub(super) fn of_key(bytes: &[u8], anchor: Range<usize>) -> Option<(SecretKind, Range<usize>)> {
    let is_separated = matches!(before(bytes, anchor.start, 1), Some(b'_' | b'-' | b' '));
    let owner = bytes.get(..anchor.start - usize::from(is_separated))?;
    let is_secret = KEY_QUALIFIERS.split(' ').any(|word| {
        let start = owner.len().saturating_sub(word.len());
        owner.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
    });
    if is_secret { of_keyword(bytes, anchor) } else { None }
}

/// Returns whether a part of a name ends at `end`, give or take a plural.
fn ends_word(bytes: &[u8], end: usize) -> bool {
    let Some(last) = before(bytes, end, 1) else { return false };
    let continues = |at: usize| {
        bytes.get(at).is_some_and(|next| {
            next.is_ascii_lowercase() || (last.is_ascii_uppercase() && next.is_ascii_uppercase())
        })
    };
    let is_plural = matches!(bytes.get(end), Some(b's' | b'S'));
    !continues(end + usize::from(is_plural))
}

fn name_around(bytes: &[u8], keyword: Range<usize>) -> Option<Range<usize>> {
    let limit = NAME_SIZE_BYTES_MAX + 1;
    let is_name = |byte: &&u8| is_word(**byte);
    let after = bytes.get(keyword.end..)?.iter().take(limit).take_while(is_name).count();
    let before = bytes.get(..keyword.start)?.iter().rev().take(limit).take_while(is_name).count();
    (before < limit && after < limit).then_some(keyword.start - before..keyword.end + after)
}

/// The words of a name: `dbAccess_token` is `db`, `Access` and `token`.
fn name_parts(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_border = |byte: &u8| matches!(byte, b'_' | b'-');
    name.split(is_border).flat_map(|part| {
        part.chunk_by(|left, right| !(left.is_ascii_lowercase() && right.is_ascii_uppercase()))
    })
}

fn is_harmless(part: &[u8]) -> bool {
    HARMLESS_PARTS.iter().copied().flatten().any(|word| part.eq_ignore_ascii_case(word.as_bytes()))
}

fn is_aws_secret(name: &[u8], value: &[u8]) -> bool {
    let has = |word: &[u8]| name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    value.len() == AWS_SECRET_SIZE_BYTES
        && value.iter().all(|byte| Class::Base64.holds(*byte))
        && has(b"secret")
        && (has(b"aws") || has(b"access"))
}

/// Returns where the value that is assigned to the name begins, before its quote if it has one.
fn value_start(bytes: &[u8], name: &Range<usize>) -> Option<usize> {
    let at = closing_end(bytes, name.end);
    if at == name.end && bytes.get(name.clone())?.starts_with(b"--") && bytes.get(at) == Some(&b' ')
    {
        return Some(at + 1);
    }
    let operator = spaces_end(bytes, at);
    let end = match bytes.get(operator..)? {
        [b':', b':', ..] | [b'=', b'=', ..] => return None,
        // A user and a password, which have their own rule: `https://x-access-token:…@host`.
        [b':', ..] if before(bytes, name.start, 1) == Some(b'/') => return None,
        [b':', b'=' | b'-', ..] | [b'=', b'>', ..] => operator + 2,
        [b':', ..] => typed_end(bytes, operator + 1).unwrap_or(operator + 1),
        [b'=', ..] => operator + 1,
        [b',', ..] if is_quoted_next(bytes, at, operator + 1) => operator + 1,
        [b'>', ..] if before(bytes, name.start, 1) == Some(b'<') => operator + 1,
        [b'i', b's', b' ', ..] if operator > at => operator + 3,
        _ => return None,
    };
    let is_emphasis = |byte: &&u8| **byte == b'*';
    let emphasis = bytes.get(end..)?.iter().take(2).take_while(is_emphasis).count();
    Some(spaces_end(bytes, end + emphasis))
}

/// Returns whether a quote stands before `at` and, but for spaces, at `next`: `get("token", "…")`.
fn is_quoted_next(bytes: &[u8], at: usize, next: usize) -> bool {
    let is_quote = |byte: Option<u8>| matches!(byte, Some(b'"' | b'\''));
    is_quote(before(bytes, at, 1)) && is_quote(bytes.get(spaces_end(bytes, next)).copied())
}

/// Skips the quotes and markup that close a name: `"token"`, `**token**`, `["token"]`.
fn closing_end(bytes: &[u8], start: usize) -> usize {
    let is_quote = |byte: &&u8| matches!(byte, b'"' | b'\'' | b'`' | b'*' | b'\\');
    let rest = bytes.get(start..).unwrap_or_default();
    let quotes = rest.iter().take(2).take_while(is_quote).count();
    let end = start + quotes;
    end + usize::from(quotes > 0 && bytes.get(end) == Some(&b']'))
}

fn spaces_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t');
    start + rest.iter().take(SPACES_MAX).take_while(is_space).count()
}

/// Returns the end of `: Type =`, given the end of its colon, if a quote follows.
///
/// Types have no dash in them, so that what stands for a redacted value is none.
fn typed_end(bytes: &[u8], start: usize) -> Option<usize> {
    let is_type = |byte: &&u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b' ' | b'_' | b'&' | b'\'' | b'<' | b'>' | b'[' | b']' | b'|' | b'?')
    };
    let rest = bytes.get(start..)?;
    let size = rest.iter().take(TYPE_SIZE_BYTES_MAX).take_while(is_type).count();
    let equals = start + size;
    let value = spaces_end(bytes, equals + 1);
    let is_typed =
        bytes.get(equals) == Some(&b'=') && matches!(bytes.get(value), Some(b'"' | b'\''));
    is_typed.then_some(equals + 1)
}

/// Returns the value at `start` without its quotes, if it is one that could be a credential and
/// ends as values do.
fn value_span(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let (quote, start) = opening(bytes, start);
    let start = scheme_end(bytes, start);
    if let [b'%', ..] | [b'$', b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] = bytes.get(start..)? {
        return None;
    }
    let run_end = Class::Value.run_end(bytes, start);
    let end = padding_end(bytes, run_end);
    if !ends_token(bytes, end) {
        return None;
    }
    match (quote, bytes.get(end)) {
        (Some(quote), Some(next)) if *next == quote || *next == b'\\' => Some(start..end),
        (Some(_), _) | (None, Some(b'(' | b'{' | b':' | b'=')) => None,
        (None, _) if end > run_end => Some(start..end),
        (None, _) => {
            let value = bytes.get(start..end)?;
            let is_trailing = |byte: &&u8| matches!(byte, b'.' | b'*' | b'!');
            Some(start..end - value.iter().rev().take_while(is_trailing).count())
        }
    }
}

/// Reads the quote that opens a value, also an escaped one and one of Python's `b"…"`.
fn opening(bytes: &[u8], start: usize) -> (Option<u8>, usize) {
    let rest = bytes.get(start..).unwrap_or_default();
    match rest {
        [quote @ (b'"' | b'\'' | b'`'), ..] => (Some(*quote), start + 1),
        [b'\\' | b'b' | b'r' | b'u' | b'f', quote @ (b'"' | b'\''), ..] => {
            (Some(*quote), start + 2)
        }
        _ => (None, start),
    }
}

fn scheme_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let scheme = SCHEMES.iter().find(|scheme| {
        rest.get(..scheme.len()).is_some_and(|word| word.eq_ignore_ascii_case(scheme.as_bytes()))
    });
    start + scheme.map_or(0, |scheme| scheme.len())
}
