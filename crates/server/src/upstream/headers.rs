//! Which headers are forwarded: an allow-list in each direction.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};

const REQUEST: [&str; 11] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "content-encoding",
    "content-type",
    "idempotency-key",
    "range",
    "user-agent",
];
const REQUEST_PREFIXES: [&str; 1] = ["x-stainless-"];

const RESPONSE: [&str; 16] = [
    "accept-ranges",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "vary",
    "x-request-id",
    "x-should-retry",
];
const RESPONSE_PREFIXES: [&str; 2] = ["anthropic-ratelimit-", "x-ratelimit-"];

/// Returns the headers of a request that the upstream gets to see. None of them holds the secret of
/// the caller, wherever the caller has put it.
pub(super) fn of_request(headers: &HeaderMap, secret: &str) -> HeaderMap {
    let is_known = |name: &str| is_listed(name, &REQUEST, &REQUEST_PREFIXES);
    let mut kept = chosen(headers, is_known);
    let is_secret = |value: &HeaderValue| {
        value.as_bytes().windows(secret.len().max(1)).any(|part| part == secret.as_bytes())
    };
    let leaking: Vec<HeaderName> =
        kept.iter().filter(|(_, value)| is_secret(value)).map(|(name, _)| name.clone()).collect();
    for name in leaking {
        kept.remove(name);
    }
    kept
}

/// Returns the headers of an answer that the caller gets to see.
pub(super) fn of_response(headers: &HeaderMap) -> HeaderMap {
    chosen(headers, |name| is_listed(name, &RESPONSE, &RESPONSE_PREFIXES))
}

fn is_listed(name: &str, names: &[&str], prefixes: &[&str]) -> bool {
    names.contains(&name) || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the headers with these names, except for those that `Connection` declares to concern one
/// hop only.
fn chosen(headers: &HeaderMap, is_known: impl Fn(&str) -> bool) -> HeaderMap {
    let of_hop: Vec<_> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        let is_of_hop = of_hop.iter().any(|other| other == name.as_str());
        if is_known(name.as_str()) && !is_of_hop {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn nothing_of_the_caller_but_what_is_listed_goes_upstream() {
        let sent = headers(&[
            ("anthropic-beta", "files-api-2025-04-14"),
            ("anthropic-version", "2023-06-01"),
            ("anthropic-workspace-id", "wrkspc_1"),
            ("authorization", "Bearer sk-quipu-1"),
            ("connection", "keep-alive, x-stainless-lang"),
            ("content-type", "application/json"),
            ("cookie", "quipu=1"),
            ("forwarded", "for=192.0.2.1"),
            ("host", "quipu.example.org"),
            ("proxy-authorization", "Basic eA=="),
            ("quipu-store", "notes"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("x-api-key", "sk-quipu-1"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-stainless-lang", "python"),
            ("x-stainless-os", "Linux"),
        ]);
        let kept = of_request(&sent, "sk-quipu-1");
        let expected = ["anthropic-beta", "anthropic-version", "content-type", "x-stainless-os"];
        assert_eq!(names(&kept), expected);
    }

    #[test]
    fn a_secret_in_the_wrong_header_stays_here() {
        let sent = headers(&[("user-agent", "app (key sk-quipu-1)"), ("accept", "*/*")]);
        assert_eq!(names(&of_request(&sent, "sk-quipu-1")), ["accept"]);
    }

    #[test]
    fn nothing_of_the_upstream_but_what_is_listed_comes_back() {
        let answered = headers(&[
            ("anthropic-organization-id", "org_1"),
            ("anthropic-ratelimit-requests-remaining", "1"),
            ("connection", "close"),
            ("location", "https://elsewhere.example.org"),
            ("request-id", "req_1"),
            ("retry-after", "1"),
            ("server", "x"),
            ("set-cookie", "a=b"),
            ("strict-transport-security", "max-age=1"),
            ("transfer-encoding", "chunked"),
            ("x-api-key", "sk-upstream"),
        ]);
        let expected = ["anthropic-ratelimit-requests-remaining", "request-id", "retry-after"];
        assert_eq!(names(&of_response(&answered)), expected);
    }
}
