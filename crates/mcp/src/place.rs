//! `memory://` URLs: how memories are named across stores.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use quipu_core::Error;
use quipu_core::model::{MemoryPath, Store};

use super::access::Client;

const SCHEME: &str = "memory://";

/// Returns the URL of a memory; `store` is the short name of its store.
pub(super) fn url_in(store: &str, path: &MemoryPath) -> String {
    format!("{SCHEME}{store}{}", encoded(path.as_str()))
}

/// Resolves a URL of the form `memory://store/path`.
pub(super) fn place(client: &Client, url: &str) -> Result<(Store, MemoryPath), Error> {
    let wrong = || {
        Error::invalid(format!("`{url}` is not the URL of a memory"))
            .with_hint("it has the form memory://store/path")
    };
    let rest = url.strip_prefix(SCHEME).ok_or_else(wrong)?;
    let (store, path) = rest.split_once('/').ok_or_else(wrong)?;
    let store = client.store(&decoded(store))?;
    let path = MemoryPath::parse(&format!("/{}", decoded(path)))?;
    Ok((store, path))
}

/// Splits the store off a path that may be written as a URL.
pub(super) fn split(client: &Client, text: &str) -> Result<(Option<Store>, String), Error> {
    let Some(rest) = text.strip_prefix(SCHEME) else { return Ok((None, text.to_owned())) };
    let rest = decoded(rest);
    match rest.split_once('/') {
        Some((store, path)) => Ok((Some(client.store(store)?), path.to_owned())),
        None => Err(Error::invalid(format!("`{text}` is not the URL of a memory"))
            .with_hint("it has the form memory://store/path")),
    }
}

/// Parses a path as models write it: the leading slash is optional, a trailing one is dropped.
pub(super) fn path(text: &str) -> Result<MemoryPath, Error> {
    let inner = text.trim().trim_matches('/');
    Ok(MemoryPath::parse(&format!("/{inner}"))?)
}

/// What is percent-encoded in the path of a URL.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// Decodes percent-encoding. Invalid escapes are kept, and so is a text that would not be UTF-8.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips() {
        for text in ["/a/b.md", "/tea time/été.md", "/100%/#1?.md", "/日本.md"] {
            let url = encoded(text);
            assert!(url.is_ascii() && !url.contains(' '), "{url}");
            assert_eq!(decoded(&url), text);
        }
    }

    #[test]
    fn invalid_escapes_are_kept() {
        for text in ["100%", "%zz", "%f", "%ff"] {
            assert_eq!(decoded(text), text);
        }
    }
}
