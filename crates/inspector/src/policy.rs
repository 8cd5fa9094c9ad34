//! What the browser may do with our pages.

/// The content security policy of every page: our own script and style, requests to this server, and
/// nothing else. Trusted types without any policy make every way of turning text into markup or
/// script an error.
pub const CONTENT: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Returns the policy of a page with a form whose answer leads to another site: browsers apply
/// `form-action` to redirections too.
pub fn content_with(target: &str) -> String {
    CONTENT.replace("form-action 'self'", &format!("form-action 'self' {target}"))
}

/// The other headers of every page. The referrer stays within the server, so that the addresses of
/// memories do not reach the sites that they link to; it is not `no-referrer`, with which browsers
/// hide the origin of a form from ourselves too.
pub const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", CONTENT),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];
