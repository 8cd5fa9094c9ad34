//! Passwords in connection strings: `scheme://user:password@host`, `Server=…;Password=…`,
//! `host=… password=…` and `jdbc:…?password=…`.
//!
//! Their place says that they are passwords, so they need not be random: everything but a
//! placeholder counts.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::SecretKind;
use crate::characters::{begins_token, ends_token, padding_end};
use crate::randomness::is_left_blank;

/// Shorter passwords are those of examples.
const PASSWORD_SIZE_BYTES_MIN: usize = 4;
const KEY_SIZE_BYTES_MAX: usize = 32;
const URL_SIZE_BYTES_MAX: usize = 512;

/// What stands for a password in descriptions, in lower case.
const STAND_INS: &str = "pass passwd password passphrase pwd token";

const HOST_KEYS: [&str; 4] = ["server", "host", "data source", "datasource"];
const PASSWORD_KEYS: [&str; 2] = ["password", "pwd"];

/// Finds the password of the URL whose `://` is at `anchor`.
pub(super) fn url_password(
    bytes: &[u8],
    anchor: Range<usize>,
) -> Option<(SecretKind, Range<usize>)> {
    let (before, after) = (bytes.get(..anchor.start)?, bytes.get(anchor.end..)?);
    if !before.last()?.is_ascii_alphanumeric() {
        return None;
    }
    let size = after.iter().take_while(|byte| is_authority(**byte)).count();
    let authority = after.get(..size)?;
    let login_size = authority.iter().rposition(|byte| *byte == b'@')?;
    let login = authority.get(..login_size)?;
    let colon = login.iter().position(|byte| *byte == b':')?;
    let is_real = is_real_password(login.get(..colon)?, login.get(colon + 1..)?);
    let span = anchor.end + colon + 1..anchor.end + login_size;
    is_real.then_some((SecretKind::ConnectionPassword, span))
}

/// Returns whether the byte may be in the part of a URL between `//` and the path. Brackets of any
/// sort may not: they are those of templates and of the text around the URL.
fn is_authority(byte: u8) -> bool {
    !byte.is_ascii_whitespace()
        && !matches!(byte, b'/' | b'?' | b'#' | b'\\' | b'"' | b'\'' | b'`' | b'|')
        && !matches!(byte, b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}')
}

/// Finds the password in the list of settings whose host is at `anchor`, such as `Server=`.
///
/// Reads no further than the next host, whose own anchor goes on from there.
pub(super) fn list_password(
    bytes: &[u8],
    anchor: Range<usize>,
) -> Option<(SecretKind, Range<usize>)> {
    if !begins_token(bytes, anchor.start) {
        return None;
    }
    let mut at = value_end(bytes, anchor.end);
    if is_template(bytes.get(anchor.end..at)?) {
        return None;
    }
    let separator = *bytes.get(at).filter(|byte| matches!(byte, b';' | b' '))?;
    while bytes.get(at) == Some(&separator) {
        let (key, value_start) = setting_key(bytes, at + 1)?;
        let is_one_of = |keys: &[&str]| keys.iter().any(|k| key.eq_ignore_ascii_case(k.as_bytes()));
        if is_one_of(&HOST_KEYS) {
            return None;
        }
        let value_start = value_start + usize::from(bytes.get(value_start) == Some(&b'\''));
        let end = value_end(bytes, value_start);
        if is_one_of(&PASSWORD_KEYS) {
            let is_real =
                ends_token(bytes, end) && is_real_password(b"", bytes.get(value_start..end)?);
            return is_real.then_some((SecretKind::ConnectionPassword, value_start..end));
        }
        at = end + usize::from(bytes.get(end) == Some(&b'\''));
    }
    None
}

/// Finds the password among the parameters of the Java database URL whose `jdbc:` is at `anchor`.
pub(super) fn jdbc_password(
    bytes: &[u8],
    anchor: Range<usize>,
) -> Option<(SecretKind, Range<usize>)> {
    let rest = bytes.get(anchor.end..)?;
    let is_url = |byte: &&u8| !byte.is_ascii_whitespace() && !br#""'`<>"#.contains(byte);
    let size = rest.iter().take(URL_SIZE_BYTES_MAX).take_while(is_url).count();
    let mut start = anchor.end;
    for parameter in rest.get(..size)?.split(|byte| matches!(byte, b'?' | b'&' | b';')) {
        let end = start + parameter.len();
        if let Some((key, value_start)) = setting_key(bytes.get(..end)?, start)
            && PASSWORD_KEYS.iter().any(|known| key.eq_ignore_ascii_case(known.as_bytes()))
        {
            let end = value_end(bytes, value_start).min(end);
            let is_real = is_real_password(b"", bytes.get(value_start..end)?);
            return is_real.then_some((SecretKind::ConnectionPassword, value_start..end));
        }
        start = end + 1;
    }
    None
}

/// Returns the key of `key=value` at `start`, and where the value begins.
fn setting_key(bytes: &[u8], start: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(start..)?;
    let size = rest.iter().take(KEY_SIZE_BYTES_MAX).position(|byte| *byte == b'=')?;
    let key = rest.get(..size)?.trim_ascii();
    let is_key = key.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_'));
    is_key.then_some((key, start + size + 1))
}

/// Returns the end of the value at `start`. An `=` can only end it: the values of one list must not
/// hold the next list, or each of many lists would be read by all before it.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let is_value = |byte: &&u8| {
        !byte.is_ascii_whitespace()
            && !matches!(byte, b';' | b'=' | b'"' | b'\'' | b'`' | b'[' | b'\\')
    };
    padding_end(bytes, start + rest.iter().take_while(is_value).count())
}

/// Returns whether a text in the place of a password is one, and neither a placeholder nor the user's
/// name once more.
pub(super) fn is_real_password(user: &[u8], password: &[u8]) -> bool {
    password.len() >= PASSWORD_SIZE_BYTES_MIN
        && !password.eq_ignore_ascii_case(user)
        && !is_variable(password)
        && !is_left_blank(password)
        && !STAND_INS.split(' ').any(|word| password.eq_ignore_ascii_case(word.as_bytes()))
}

/// Returns whether the text names a variable: `DB_PASS`, `$PASS`.
fn is_variable(text: &[u8]) -> bool {
    is_template(text) || text.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
}

/// Returns whether something is to be put in here: `$PASS`, `%s`, `{pass}`, `<pass>`, `:pass`, `…`.
fn is_template(text: &[u8]) -> bool {
    match text {
        [b'%', high, low, ..] => !(high.is_ascii_hexdigit() && low.is_ascii_hexdigit()),
        [b'$' | b'%' | b'{' | b'<' | b':' | b'&', ..] => true,
        _ => text.starts_with("…".as_bytes()),
    }
}
