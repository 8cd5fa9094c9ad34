//! Page cursors: opaque to clients, a place in a list to us.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::answer::Failure;

const PREFIX: &str = "page_";

/// Returns the cursor for a place in a list of this kind.
pub(super) fn encode(kind: &str, place: impl Display) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(format!("{kind}:{place}")))
}

/// Returns the place that a cursor of this kind stands for.
pub(super) fn decode<T: FromStr>(kind: &str, cursor: Option<&str>) -> Result<Option<T>, Failure> {
    let Some(cursor) = cursor else { return Ok(None) };
    let place = cursor
        .strip_prefix(PREFIX)
        .and_then(|encoded| URL_SAFE_NO_PAD.decode(encoded).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| text.strip_prefix(kind)?.strip_prefix(':')?.parse().ok());
    place.map(Some).ok_or_else(|| {
        Failure::invalid("page: not a cursor of this list; pass next_page of the page before")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place_in_its_list_only() {
        let cursor = encode("memories", "/a/ü b");
        assert!(cursor.starts_with("page_"));
        assert_eq!(decode("memories", Some(&cursor)).unwrap(), Some("/a/ü b".to_owned()));
        assert!(decode::<String>("versions", Some(&cursor)).is_err());
        for wrong in ["", "page_", "page_!", "x", "page_AAAA"] {
            assert!(decode::<String>("memories", Some(wrong)).is_err(), "{wrong}");
        }
    }
}
