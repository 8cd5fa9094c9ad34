//! Private keys in armor: `-----BEGIN … PRIVATE KEY-----` to its end.
//!
//! Certificates and public keys have the same armor and are not secret. Neither is the first line
//! alone, which documents quote: key material must follow it.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::SecretKind;
use crate::characters::{Class, begins_token};
use crate::randomness::is_random;

/// How a block begins.
pub(super) const BEGIN: &str = "-----BEGIN ";

const END: &str = "-----END ";
const DASHES: &str = "-----";
/// Longer labels do not exist.
const LABEL_SIZE_BYTES_MAX: usize = 64;
/// The least base64 in one line that is taken for key material.
const MATERIAL_SIZE_BYTES_MIN: usize = 32;
/// The same if the block ends soon after, as made-up keys do.
const SHORT_MATERIAL_SIZE_BYTES_MIN: usize = 8;
const SHORT_BLOCK_SIZE_BYTES_MAX: usize = 256;
/// Blocks have at most a few lines such as `Proc-Type: 4,ENCRYPTED` before their material.
const HEADERS_MAX: usize = 5;
const HEADER_SIZE_BYTES_MAX: usize = 120;

/// Returns the private key whose `-----BEGIN ` is at `anchor`: through the end of its last line,
/// or to the end of the text if it has none.
pub(super) fn private_key(text: &str, anchor: Range<usize>) -> Option<(SecretKind, Range<usize>)> {
    let bytes = text.as_bytes();
    if !begins_token(bytes, anchor.start) {
        return None;
    }
    let label_end = private_label_end(text, anchor.end)?;
    if !has_material(bytes, label_end) {
        return None;
    }
    Some((SecretKind::PrivateKey, anchor.start..block_end(text, label_end)))
}

/// Returns the end of `… PRIVATE KEY…-----` if it is at `start`.
fn private_label_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes().get(start..)?;
    let is_label = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b' ';
    let size = bytes.iter().take(LABEL_SIZE_BYTES_MAX).take_while(is_label).count();
    let label = text.get(start..start + size)?;
    let is_closed = text.get(start + size..)?.starts_with(DASHES);
    (label.contains("PRIVATE KEY") && is_closed).then_some(start + size + DASHES.len())
}

/// Returns whether base64 follows, at most some header lines and line decoration away.
fn has_material(bytes: &[u8], start: usize) -> bool {
    let mut at = decoration_end(bytes, start);
    for _ in 0..HEADERS_MAX {
        match header_end(bytes, at) {
            Some(end) => at = decoration_end(bytes, end),
            None => break,
        }
    }
    let end = Class::Base64.run_end(bytes, at);
    let is_key = end - at >= MATERIAL_SIZE_BYTES_MIN && bytes.get(at..end).is_some_and(is_random);
    let is_short_key = end - at >= SHORT_MATERIAL_SIZE_BYTES_MIN && ends_soon(bytes, end);
    (is_key || is_short_key) && bytes.get(end..).is_some_and(ends_line)
}

/// Returns whether the last line of a private key follows within a short block.
fn ends_soon(bytes: &[u8], start: usize) -> bool {
    let rest = bytes.get(start..).unwrap_or_default();
    let near = rest.get(..SHORT_BLOCK_SIZE_BYTES_MAX).unwrap_or(rest);
    let holds = |text: &str| near.windows(text.len()).any(|part| part == text.as_bytes());
    holds(END) && holds("PRIVATE KEY")
}

/// Returns whether key material may end before the rest.
fn ends_line(rest: &[u8]) -> bool {
    match rest {
        [] | [b'"' | b'\'' | b'`' | b'\\' | b'=' | b'<' | b',', ..] => true,
        [byte, ..] => byte.is_ascii_whitespace() || rest.starts_with(DASHES.as_bytes()),
    }
}

/// Skips what stands between the lines of a block in quotations, comments and source code.
fn decoration_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'\\'), Some(b'n' | b'r')) => at += 2,
            (Some(byte), _) if is_decoration(*byte) => at += 1,
            _ => return at,
        }
    }
}

fn is_decoration(byte: u8) -> bool {
    byte.is_ascii_whitespace() || br#"\"',>#|*+"#.contains(&byte)
}

/// Returns the end of a line such as `Proc-Type: 4,ENCRYPTED`, without its line break.
fn header_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let is_line = |byte: &&u8| !matches!(byte, b'\n' | b'\r' | b'\\' | b'[');
    let size = rest.iter().take(HEADER_SIZE_BYTES_MAX).take_while(is_line).count();
    let line = rest.get(..size)?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let colon = line.iter().position(|byte| !is_name(byte))?;
    let is_header = line.get(colon..)?.starts_with(b": ")
        && matches!(rest.get(size), Some(b'\n' | b'\r' | b'\\'));
    is_header.then_some(start + size)
}

fn block_end(text: &str, start: usize) -> usize {
    let mut from = start;
    while let Some(offset) = text.get(from..).and_then(|rest| rest.find(END)) {
        from += offset + END.len();
        if let Some(end) = private_label_end(text, from) {
            return end;
        }
    }
    text.len()
}
