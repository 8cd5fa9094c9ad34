//! The settings of pass-through, checked when they are made.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::uri::{Authority, Scheme};
use axum::http::{HeaderName, HeaderValue, Uri, header};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The settings of pass-through.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// Where requests are forwarded to.
    pub base_url: BaseUrl,
    /// What is presented there; `None` if the upstream wants no key.
    pub key: Option<UpstreamKey>,
    /// What certificates of the upstream are checked against.
    pub tls: UpstreamTls,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long the upstream may take to begin its answer.
    pub first_byte_timeout: Duration,
    /// How long the upstream may be silent in the middle of its answer.
    pub idle_timeout: Duration,
    /// How long a caller may be silent in the middle of its request.
    pub upload_timeout: Duration,
    /// The largest body that is forwarded.
    pub body_size_bytes_max: usize,
    /// How many requests are forwarded concurrently.
    pub streams_max: usize,
    /// How many of them may be of one key.
    pub streams_per_key_max: usize,
    /// How many bytes of requests with memory are held concurrently, by the length of their JSON.
    pub memory_size_bytes_max: usize,
    /// How often the upstream is asked for one answer with memory; at least twice.
    pub turns_max: usize,
}

impl UpstreamSettings {
    /// Returns the settings for an upstream, with defaults.
    pub fn new(base_url: BaseUrl, key: Option<UpstreamKey>) -> Self {
        Self {
            base_url,
            key,
            tls: UpstreamTls::default(),
            connect_timeout: Duration::from_secs(10),
            // The vendor ends what takes longer, and its SDKs wait as long.
            first_byte_timeout: Duration::from_mins(10),
            idle_timeout: Duration::from_mins(5),
            upload_timeout: Duration::from_secs(30),
            body_size_bytes_max: 32 * 1024 * 1024,
            streams_max: 512,
            streams_per_key_max: 256,
            memory_size_bytes_max: 256 * 1024 * 1024,
            turns_max: 16,
        }
    }
}

/// Why a setting of the upstream cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamError(String);

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UpstreamError {}

/// The address of an upstream: `https://api.example.org`, perhaps with a path, without `/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    /// Empty, or a path without a slash at its end.
    prefix: String,
}

impl BaseUrl {
    /// Parses an address.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let wrong = |why: &str| {
            // The text may have a password in it.
            UpstreamError(format!("base_url {why}; write it as `https://api.example.org`"))
        };
        let uri: Uri =
            text.trim_end_matches('/').parse().map_err(|_invalid| wrong("is not a valid URL"))?;
        let parts = uri.into_parts();
        let is_web = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
        let scheme = parts.scheme.filter(is_web);
        let scheme = scheme.ok_or_else(|| wrong("must begin with `https://` or `http://`"))?;
        let authority = parts.authority.ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("must not contain a user or a password"));
        }
        let path = parts.path_and_query;
        if path.as_ref().is_some_and(|path| path.query().is_some()) || text.contains('#') {
            return Err(wrong("must not contain a query or a fragment"));
        }
        let prefix = path.as_ref().map_or("", |path| path.path()).trim_end_matches('/');
        if prefix.ends_with("/v1") {
            return Err(wrong("must not contain `/v1`, which is part of every request"));
        }
        Ok(Self { scheme, authority, prefix: prefix.to_owned() })
    }

    pub(super) fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Returns the host as a socket or a certificate names it: an IPv6 address without brackets.
    pub(super) fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_encrypted() { 443 } else { 80 })
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

/// The key of the upstream, as the header in which it is sent.
#[derive(Clone)]
pub struct UpstreamKey {
    name: HeaderName,
    value: HeaderValue,
}

impl UpstreamKey {
    /// Returns a key that is sent as `x-api-key`.
    pub fn api_key(secret: &str) -> Result<Self, UpstreamError> {
        Self::new(HeaderName::from_static("x-api-key"), secret)
    }

    /// Returns a key that is sent as `Authorization: Bearer …`.
    pub fn bearer(secret: &str) -> Result<Self, UpstreamError> {
        Self::new(header::AUTHORIZATION, &format!("Bearer {secret}"))
    }

    fn new(name: HeaderName, text: &str) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError("the key of the upstream is not one line of text".to_owned());
        let mut value = HeaderValue::from_str(text).map_err(|_invalid| wrong())?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }

    pub(super) fn header(&self) -> (HeaderName, HeaderValue) {
        (self.name.clone(), self.value.clone())
    }
}

impl fmt::Debug for UpstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamKey(…)")
    }
}

/// What certificates of the upstream are checked against.
#[derive(Clone)]
pub struct UpstreamTls(Arc<ClientConfig>);

impl UpstreamTls {
    /// Trusts the certificate authorities of a PEM file besides those that browsers trust.
    pub fn with_authorities(file: &Path) -> Result<Self, UpstreamError> {
        let unreadable =
            |error: &dyn fmt::Display| UpstreamError(format!("{}: {error}", file.display()));
        let mut roots = public_roots();
        let certificates = CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unreadable(&error))?;
        for certificate in certificates {
            roots.add(certificate).map_err(|error| unreadable(&error))?;
        }
        Ok(Self::trusting(roots))
    }

    fn trusting(roots: RootCertStore) -> Self {
        let builder = ClientConfig::builder().with_root_certificates(roots);
        Self(Arc::new(builder.with_no_client_auth()))
    }

    pub(super) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }
}

impl Default for UpstreamTls {
    fn default() -> Self {
        Self::trusting(public_roots())
    }
}

impl fmt::Debug for UpstreamTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamTls(…)")
    }
}

fn public_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_nothing_secret() {
        for (text, shown) in [
            ("https://api.example.org", "https://api.example.org"),
            ("https://api.example.org/", "https://api.example.org"),
            ("http://127.0.0.1:8000/gateway/", "http://127.0.0.1:8000/gateway"),
            ("http://[::1]:8000", "http://[::1]:8000"),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            "api.example.org",
            "ftp://api.example.org",
            "https://",
            "https://ada:secret@api.example.org",
            "https://api.example.org/?key=secret",
            "https://api.example.org/v1",
            "https://api.example.org/#v1",
        ] {
            let error = BaseUrl::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert_eq!(BaseUrl::parse("http://[::1]:8000").unwrap().host(), "::1");
        assert_eq!(BaseUrl::parse("https://api.example.org").unwrap().port(), 443);
    }

    #[test]
    fn the_key_stays_out_of_debug_output() {
        let url = BaseUrl::parse("https://api.example.org").unwrap();
        let settings = UpstreamSettings::new(url, UpstreamKey::api_key("sk-secret").ok());
        assert!(!format!("{settings:?}").contains("sk-secret"));
        let (_, value) = UpstreamKey::bearer("sk-secret").unwrap().header();
        assert!(!format!("{value:?}").contains("sk-secret"));
        assert!(UpstreamKey::api_key("two\nlines").is_err());
    }
}
