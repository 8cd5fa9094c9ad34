//! Page cursors: opaque to clients, a place in one list to us.

use std::fmt::{self, Display};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quipu_core::model::Timestamp;
use sha2::{Digest as _, Sha256};

use super::answer::Failure;
use super::call::Call;
use super::query::Query;

const PREFIX: &str = "page_";

/// How many bytes of a digest are in a cursor. It detects mistakes, not forgery: a page is authorized
/// like any other request.
const DIGEST_SIZE_BYTES: usize = 9;

/// The parameters that select a page of a list, not the list.
const PAGING: [&str; 2] = ["page", "limit"];

/// The cursors of one list: of its kind, its store, and all other parameters of its query. A place in
/// one list means nothing in another, where it would silently leave things out.
#[derive(Debug)]
pub(super) struct Cursors(Sha256);

impl Cursors {
    /// Returns the cursors of the list of this kind that the request selects.
    pub(super) fn new(call: &Call<'_>, kind: &str) -> Self {
        Self::of(kind, call.parameter("store"), call.query())
    }

    fn of(kind: &str, store: &str, query: &Query) -> Self {
        let mut digest = Sha256::new();
        add(&mut digest, kind);
        add(&mut digest, store);
        let mut pairs: Vec<_> = query.pairs().filter(|(name, _)| !PAGING.contains(name)).collect();
        pairs.sort_unstable();
        for (name, value) in pairs {
            add(&mut digest, name);
            add(&mut digest, value);
        }
        Self(digest)
    }

    /// Returns the cursor for a place in the list.
    pub(super) fn encode(&self, place: impl Display) -> String {
        let place = place.to_string();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(format!("{}:{place}", self.digest(&place))))
    }

    /// Returns the place at which the requested page starts.
    pub(super) fn place<T: FromStr>(&self, query: &Query) -> Result<Option<T>, Failure> {
        let Some(cursor) = query.get("page")? else { return Ok(None) };
        let decoded = cursor
            .strip_prefix(PREFIX)
            .and_then(|encoded| URL_SAFE_NO_PAD.decode(encoded).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let place = decoded.as_deref().and_then(|text| {
            let (digest, place) = text.split_once(':')?;
            if digest == self.digest(place) { place.parse().ok() } else { None }
        });
        place.map(Some).ok_or_else(|| {
            Failure::invalid(
                "page: not a cursor of this list; pass next_page of the page before, and repeat \
                 the other parameters",
            )
        })
    }

    fn digest(&self, place: &str) -> String {
        let mut digest = self.0.clone();
        add(&mut digest, place);
        URL_SAFE_NO_PAD.encode(digest.finalize().get(..DIGEST_SIZE_BYTES).unwrap_or_default())
    }
}

/// A place in a list of the past, and the moments that the list is of.
///
/// A request names them relative to now, or leaves one out: each page would be of another list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pinned<const COUNT: usize> {
    pub(super) moments: [Timestamp; COUNT],
    pub(super) place: String,
}

impl<const COUNT: usize> Display for Pinned<COUNT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.moments.iter().try_for_each(|at| write!(f, "{} ", at.as_micros()))?;
        f.write_str(&self.place)
    }
}

impl<const COUNT: usize> FromStr for Pinned<COUNT> {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (mut moments, mut place) = ([Timestamp::MIN; COUNT], text);
        for moment in &mut moments {
            let (micros, rest) = place.split_once(' ').ok_or(())?;
            *moment = Timestamp::from_micros(micros.parse().map_err(drop)?);
            place = rest;
        }
        Ok(Self { moments, place: place.to_owned() })
    }
}

fn add(digest: &mut Sha256, text: &str) {
    digest.update(text.len().to_le_bytes());
    digest.update(text);
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
        Cursors::of(kind, store, &Query::new(query))
    }

    #[test]
    fn a_place_keeps_its_moments() {
        let at = Timestamp::from_micros;
        let pinned = Pinned { moments: [at(7), at(8)], place: "/a b".to_owned() };
        assert_eq!(pinned.to_string().parse(), Ok(pinned));
        for wrong in ["", "7", "7 /a", "7 x /a"] {
            assert_eq!(wrong.parse::<Pinned<2>>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn a_cursor_decodes_for_its_own_list_only() {
        let list = cursors("memories", "s", "path_prefix=/a/&limit=3");
        let cursor = list.encode("/a/ü b");
        assert!(cursor.starts_with("page_"));
        let same = cursors("memories", "s", "limit=7&path_prefix=/a/&page=x");
        assert_eq!(place(&same, &cursor).as_deref(), Some("/a/ü b"));
        for other in [
            cursors("versions", "s", "path_prefix=/a/"),
            cursors("memories", "t", "path_prefix=/a/"),
            cursors("memories", "s", ""),
            cursors("memories", "s", "path_prefix=/b/"),
            cursors("memories", "s", "path_prefix=/a/&depth=1"),
            cursors("memories", "s", "path_prefix=/a/&view=full"),
            cursors("memories", "s", "path_prefix=/a/&statuses[]=idle"),
        ] {
            assert_eq!(place(&other, &cursor), None, "{other:?}");
        }
        for wrong in ["", "page_", "page_!", "x", "page_AAAA"] {
            assert_eq!(place(&list, wrong), None, "{wrong}");
        }
        for cut in 1..8 {
            assert_eq!(
                place(&list, cursor.get(..cursor.len() - cut).expect("ASCII")),
                None,
                "cut by {cut}"
            );
        }
    }
}
