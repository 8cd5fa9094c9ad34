//! Page cursors: opaque to clients, a place in one list to us.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::answer::Failure;
use super::call::Call;
use super::query::Query;

const PREFIX: &str = "page_";

/// How many bytes of the digest of a list are in its cursors. It protects from mistakes, not from
/// forgery: what a cursor leads to is authorized like any other request.
const DIGEST_SIZE_BYTES: usize = 9;

/// The parameters by which lists are filtered by their creation.
pub(super) const CREATED: [&str; 4] =
    ["created_at[gte]", "created_at[gt]", "created_at[lte]", "created_at[lt]"];

/// The cursors of one list: of its route, its store, and its filters. A place in one list means
/// nothing in another, where it would silently leave things out.
#[derive(Debug)]
pub(super) struct Cursors(String);

impl Cursors {
    /// Returns the cursors of the list of this kind that is asked for. `filters` are the names of
    /// the parameters that decide what is in the list and in which order.
    pub(super) fn new(call: &Call<'_>, kind: &str, filters: &[&str]) -> Self {
        Self::of(kind, call.parameter("store"), call.query(), filters)
    }

    fn of(kind: &str, store: &str, query: &Query, filters: &[&str]) -> Self {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        };
        add(kind);
        add(store);
        for name in filters {
            for value in query.all(name).unwrap_or_default() {
                add(name);
                add(value);
            }
        }
        let digest = digest.finalize();
        let start = digest.get(..DIGEST_SIZE_BYTES).unwrap_or_default();
        Self(URL_SAFE_NO_PAD.encode(start))
    }

    /// Returns the cursor for a place in the list.
    pub(super) fn encode(&self, place: impl Display) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(format!("{}:{place}", self.0)))
    }

    /// Returns the place at which the caller wants to go on.
    pub(super) fn place<T: FromStr>(&self, query: &Query) -> Result<Option<T>, Failure> {
        let Some(cursor) = query.get("page")? else { return Ok(None) };
        let place = cursor
            .strip_prefix(PREFIX)
            .and_then(|encoded| URL_SAFE_NO_PAD.decode(encoded).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .and_then(|text| text.strip_prefix(&self.0)?.strip_prefix(':')?.parse().ok());
        place.map(Some).ok_or_else(|| {
            Failure::invalid(
                "page: not a cursor of this list with these filters; pass next_page of the page \
                 before and repeat its filters",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cursors: &Cursors, page: &str) -> Option<String> {
        let text =
            form_urlencoded::Serializer::new(String::new()).append_pair("page", page).finish();
        cursors.place(&Query::new(&text)).ok().flatten()
    }

    fn cursors(kind: &str, store: &str, query: &str) -> Cursors {
        Cursors::of(kind, store, &Query::new(query), &["path_prefix", "depth", "statuses"])
    }

    #[test]
    fn a_cursor_leads_back_to_its_place_in_its_list_only() {
        let list = cursors("memories", "s", "path_prefix=/a/&limit=3");
        let cursor = list.encode("/a/ü b");
        assert!(cursor.starts_with("page_"));
        let same = cursors("memories", "s", "limit=7&path_prefix=/a/&page=x&other=1");
        assert_eq!(place(&same, &cursor).as_deref(), Some("/a/ü b"));
        for other in [
            cursors("versions", "s", "path_prefix=/a/"),
            cursors("memories", "t", "path_prefix=/a/"),
            cursors("memories", "s", ""),
            cursors("memories", "s", "path_prefix=/b/"),
            cursors("memories", "s", "path_prefix=/a/&depth=1"),
            cursors("memories", "s", "path_prefix=/a/&statuses[]=idle"),
        ] {
            assert_eq!(place(&other, &cursor), None, "{other:?}");
        }
        for wrong in ["", "page_", "page_!", "x", "page_AAAA"] {
            assert_eq!(place(&list, wrong), None, "{wrong}");
        }
    }
}
