//! What of a request's address is forwarded: a path below `/v1/` that means the same to everybody.

use axum::http::uri::PathAndQuery;
use axum::http::{Method, Uri};

use super::settings::BaseUrl;
use crate::answer::Failure;

const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Returns the address to forward a request to. The host is always that of the settings.
///
/// A path that servers read differently, such as one with `..`, an encoded slash or an empty segment,
/// could reach something outside of `/v1/`, so it is refused and not repaired.
pub(super) fn target(base: &BaseUrl, method: &Method, uri: &Uri) -> Result<Uri, Failure> {
    if !METHODS.contains(method) {
        return Err(Failure::invalid(format!("{method} requests are not forwarded")));
    }
    let path = uri.path();
    if !is_plain(path) {
        return Err(Failure::invalid(
            "this path cannot be forwarded: it contains `..`, an empty segment or an encoded slash",
        ));
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let address: PathAndQuery = format!("{}{path}{query}", base.prefix())
        .parse()
        .map_err(|_invalid| Failure::invalid("an address like this is not forwarded"))?;
    Uri::builder()
        .scheme(base.scheme().clone())
        .authority(base.authority().clone())
        .path_and_query(address)
        .build()
        .map_err(|_invalid| Failure::invalid("an address like this is not forwarded"))
}

fn is_plain(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/v1/") else { return false };
    rest.split('/').all(|segment| {
        let decoded = decoded(segment);
        // Some servers drop what follows a semicolon, or spaces, before they look for dots.
        let is_dots = |text: &[u8]| {
            let bare = text.split(|byte| *byte == b';').next().unwrap_or_default();
            bare.trim_ascii().iter().all(|byte| *byte == b'.')
        };
        // A percent sign that is left may be decoded by the next server.
        decoded.is_some_and(|text| {
            !is_dots(&text)
                && text.iter().all(|byte| !byte.is_ascii_control() && !b"/\\%".contains(byte))
        })
    })
}

/// Decodes a segment once; `None` if it is encoded wrongly.
fn decoded(segment: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let value = digit(bytes.next())? * 16 + digit(bytes.next())?;
        decoded.push(u8::try_from(value).ok()?);
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(uri: &str) -> Option<String> {
        let base = BaseUrl::parse("http://upstream.example.org:8000/gateway").unwrap();
        target(&base, &Method::GET, &uri.parse().ok()?).ok().map(|uri| uri.to_string())
    }

    #[test]
    fn the_path_and_the_query_are_kept_as_they_are() {
        for path in
            ["/v1/messages", "/v1/models/a%20b?x=%2F..&y", "/v1/files/ä?limit=1", "/v1/a;b=c/..x"]
        {
            let expected = format!("http://upstream.example.org:8000/gateway{path}");
            assert_eq!(forwarded(path).as_ref(), Some(&expected), "{path}");
        }
    }

    #[test]
    fn no_path_leads_out_of_v1_or_to_another_host() {
        for uri in [
            "/",
            "/v1",
            "/v1/",
            "/v2/messages",
            "/v1/../admin",
            "/v1/./messages",
            "/v1/x/..",
            "/v1/%2e%2e/admin",
            "/v1/.%2E/admin",
            "/v1/%252e%252e/admin",
            "/v1/..%2fadmin",
            "/v1/x%2f..%2fadmin",
            "/v1/x%5cadmin",
            "/v1//admin",
            "//elsewhere.example.org/v1/x",
            "/v1/..;/admin",
            "/v1/..;x=y/admin",
            "/v1/..%3b/admin",
            "/v1/.;./admin",
            "/v1/..%20/admin",
            "/v1/%20../admin",
            "/v1/;/admin",
            "/v1/x%00",
            "/v1/x%0d%0ahost:y",
            "/v1/%zz",
            "/v1/x%",
            "/V1/messages",
        ] {
            assert_eq!(forwarded(uri), None, "{uri}");
        }
        let absolute = forwarded("http://elsewhere.example.org/v1/messages");
        assert_eq!(absolute.unwrap(), "http://upstream.example.org:8000/gateway/v1/messages");
    }

    #[test]
    fn tunnels_and_unknown_methods_are_refused() {
        let base = BaseUrl::parse("http://upstream.example.org").unwrap();
        for method in ["CONNECT", "TRACE", "OPTIONS", "BREW"] {
            let method: Method = method.parse().unwrap();
            assert!(target(&base, &method, &"/v1/messages".parse().unwrap()).is_err());
        }
    }
}
