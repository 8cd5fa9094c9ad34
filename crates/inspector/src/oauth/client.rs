//! Hosts that register themselves (RFC 7591).
//!
//! Anybody may register, so a table of registrations would be something that strangers can fill. The id
//! of a client therefore *is* its registration: name and addresses, encoded. That gives away nothing:
//! whoever could forge an id could register the same thing. Clients are public, they have no secret;
//! what protects a code is PKCE and the address that the person sees before agreeing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Code, Refusal};

/// The longest id. The addresses of real hosts are far shorter.
const ID_SIZE_BYTES_MAX: usize = 4096;
const REDIRECT_URIS_MAX: usize = 10;
const REDIRECT_URI_SIZE_BYTES_MAX: usize = 512;
const NAME_CHARS_MAX: usize = 80;

/// Schemes that a browser would run or open from the disk.
const SCHEMES_REFUSED: [&str; 14] = [
    "javascript",
    "data",
    "vbscript",
    "file",
    "blob",
    "about",
    "view-source",
    "filesystem",
    "ws",
    "wss",
    "ftp",
    "mailto",
    "tel",
    "intent",
];

/// A host, as it registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// What it calls itself; anybody can call themselves anything.
    pub(crate) name: String,
    redirect_uris: Vec<String>,
}

/// Registers a host: returns what it is told.
pub fn register(request: &[u8]) -> Result<Value, Refusal> {
    let invalid = |words: String| Refusal::new(Code::InvalidClientMetadata, words);
    let request: Value = serde_json::from_slice(request)
        .map_err(|error| invalid(format!("the registration is not JSON: {error}")))?;
    let client = Client::new(&request)?;
    let id = client.id();
    if id.len() > ID_SIZE_BYTES_MAX {
        return Err(invalid("the addresses are too long together".to_owned()));
    }
    Ok(json!({
        "client_id": id,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "memory",
    }))
}

impl Client {
    fn new(registration: &Value) -> Result<Self, Refusal> {
        let name = registration.get("client_name").and_then(Value::as_str).unwrap_or_default();
        let name: String =
            name.chars().filter(|it| !it.is_control()).take(NAME_CHARS_MAX).collect();
        let uris = registration.get("redirect_uris").and_then(Value::as_array);
        let uris: Vec<_> = uris.into_iter().flatten().map(Value::as_str).collect();
        if uris.is_empty() || uris.len() > REDIRECT_URIS_MAX {
            let words = format!("redirect_uris: 1 to {REDIRECT_URIS_MAX} addresses are required");
            return Err(Refusal::new(Code::InvalidRedirectUri, words));
        }
        let mut redirect_uris = Vec::with_capacity(uris.len());
        for uri in uris {
            let uri = uri.filter(|uri| is_acceptable(uri)).ok_or_else(|| {
                let words = "redirect_uris: each must be https, http on the same machine, or the scheme of an app";
                Refusal::new(Code::InvalidRedirectUri, words)
            })?;
            redirect_uris.push(uri.to_owned());
        }
        Ok(Self {
            name: if name.trim().is_empty() { "An MCP host".to_owned() } else { name },
            redirect_uris,
        })
    }

    /// Returns the id, which is the registration itself.
    fn id(&self) -> String {
        let registration = json!({"client_name": self.name, "redirect_uris": self.redirect_uris});
        URL_SAFE_NO_PAD.encode(registration.to_string())
    }

    /// Reads the id of a client that registered.
    pub(crate) fn from_id(id: &str) -> Result<Self, Refusal> {
        let unknown = || {
            Refusal::new(Code::InvalidClient, "client_id: not one of this server; register first")
        };
        if id.len() > ID_SIZE_BYTES_MAX {
            return Err(unknown());
        }
        let bytes = URL_SAFE_NO_PAD.decode(id).map_err(|_malformed| unknown())?;
        let registration = serde_json::from_slice(&bytes).map_err(|_malformed| unknown())?;
        Self::new(&registration)
    }

    /// Returns whether the host registered this address. On the same machine the port may differ, as
    /// programs listen on whichever is free (RFC 8252).
    pub(crate) fn allows(&self, uri: &str) -> bool {
        is_acceptable(uri)
            && self.redirect_uris.iter().any(|known| {
                known == uri
                    || matches!((loopback(known), loopback(uri)), (Some(known), Some(asked)) if known == asked)
            })
    }
}

fn is_acceptable(uri: &str) -> bool {
    let is_plain =
        |character: char| character.is_ascii_graphic() && !"\"<>\\^`{}|#;,'*".contains(character);
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    let scheme = scheme.to_ascii_lowercase();
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    let is_reachable = match scheme.as_str() {
        "https" => rest.strip_prefix("//").is_some_and(|rest| !host(rest).is_empty()),
        "http" => loopback(uri).is_some(),
        _ => !rest.is_empty() && !SCHEMES_REFUSED.contains(&scheme.as_str()),
    };
    uri.len() <= REDIRECT_URI_SIZE_BYTES_MAX
        && uri.chars().all(is_plain)
        && is_scheme
        && is_reachable
}

/// Returns the host of what follows `//`, with its port. Names and passwords before it are not hosts.
fn host(rest: &str) -> &str {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') { "" } else { authority }
}

/// Returns host and path of an address on the same machine, without its port.
fn loopback(uri: &str) -> Option<(&str, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let authority = host(rest);
    let path = rest.get(authority.len()..)?;
    let (name, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (name, port) = bracketed.split_once(']')?;
            (name, port.strip_prefix(':').unwrap_or(port))
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let is_local = matches!(name, "localhost" | "127.0.0.1" | "::1");
    (is_local && port.bytes().all(|byte| byte.is_ascii_digit())).then_some((name, path))
}

/// Returns scheme and host of an address, which is what a person and a content security policy need.
pub(crate) fn origin(uri: &str) -> String {
    match uri.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => format!("{scheme}://{}", host(rest)),
        _ => uri.split_once(':').map_or_else(String::new, |(scheme, _)| format!("{scheme}:")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(uris: &[&str]) -> Result<Value, Refusal> {
        register(json!({"client_name": "Host", "redirect_uris": uris}).to_string().as_bytes())
    }

    #[test]
    fn an_id_is_the_registration() {
        let told = registered(&["https://claude.ai/api/mcp/auth_callback"]).unwrap();
        let client = Client::from_id(told["client_id"].as_str().unwrap()).unwrap();
        assert_eq!(client.name, "Host");
        assert!(client.allows("https://claude.ai/api/mcp/auth_callback"));
        assert!(!client.allows("https://claude.ai/api/mcp/auth_callback/x"));
        assert!(Client::from_id("e30").is_err() && Client::from_id("!").is_err());
    }

    #[test]
    fn addresses_that_a_browser_would_run_or_send_in_the_clear_are_refused() {
        for bad in [
            "javascript:alert(1)",
            "JavaScript:x",
            "data:text/html,x",
            "http://example.com/cb",
            "https://",
            "https://user@evil.test/",
            "http://127.0.0.1.evil.test/",
            "http://localhost@evil.test/",
            "x",
            "",
            "https://a.test/#fragment",
            "https://a.test/\r\nx",
            "file:///etc/passwd",
            "http://localhost:80x/",
            "https://a.test/;form-action *",
            "https://*/cb",
            "https://*.test/cb",
            "https://a.test:*/cb",
            "ws://a.test/cb",
            "intent:x",
        ] {
            assert!(registered(&[bad]).is_err(), "{bad}");
        }
        for good in [
            "https://a.test/cb?x=1",
            "http://127.0.0.1:1/cb",
            "http://[::1]:9/cb",
            "cursor://anysphere/cb",
        ] {
            assert!(registered(&[good]).is_ok(), "{good}");
        }
    }

    #[test]
    fn on_the_same_machine_any_port_will_do() {
        let told = registered(&["http://127.0.0.1:3000/cb"]).unwrap();
        let client = Client::from_id(told["client_id"].as_str().unwrap()).unwrap();
        assert!(client.allows("http://127.0.0.1:4000/cb"));
        assert!(!client.allows("http://127.0.0.1:4000/other"));
        assert!(!client.allows("http://localhost:3000/cb"));
    }

    #[test]
    fn an_origin_is_what_people_and_policies_need() {
        assert_eq!(origin("https://a.test:8/cb?x"), "https://a.test:8");
        assert_eq!(origin("cursor://anysphere/cb"), "cursor:");
    }
}
