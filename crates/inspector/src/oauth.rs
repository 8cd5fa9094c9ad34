//! Signing in for MCP hosts that only do OAuth: an authorization server for `/mcp`.
//!
//! The pages ask the person who has signed in ([`consent`]); programs talk to the rest. What a host gets
//! is an ordinary key, listed and revocable like others. Nothing is stored for a host until somebody
//! agrees: see [`client`].

pub(crate) mod client;
pub(crate) mod consent;
mod metadata;
mod token;

use std::fmt;

pub use client::register;
pub use metadata::{authorization_server, protected_resource};
pub use token::{exchange, revoke};

/// Where people decide about a host.
pub const AUTHORIZE: &str = "/ui/authorize";
/// Where hosts register.
pub const REGISTER: &str = "/oauth/register";
/// Where hosts exchange codes and refresh tokens.
pub const TOKEN: &str = "/oauth/token";
/// Where hosts end their tokens.
pub const REVOKE: &str = "/oauth/revoke";

/// What a host is refused for, in the words of RFC 6749, 7591 and 8707.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The request lacks something or contradicts itself.
    InvalidRequest,
    /// The client is not one that registered here.
    InvalidClient,
    /// What it registers cannot be accepted.
    InvalidClientMetadata,
    /// A redirection address cannot be accepted.
    InvalidRedirectUri,
    /// The code or token is not valid, was used or belongs to somebody else.
    InvalidGrant,
    /// The token would be for another server.
    InvalidTarget,
    /// This server issues codes and refresh tokens only.
    UnsupportedGrantType,
    /// This server answers with codes only.
    UnsupportedResponseType,
}

impl Code {
    /// Returns the code as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidTarget => "invalid_target",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
        }
    }
}

/// Why a host does not get what it asks for.
#[derive(Debug)]
pub enum Refusal {
    /// The request is at fault: the code, and words for whoever debugs the host.
    Host(Code, String),
    /// The engine failed.
    Engine(quipu_core::Error),
}

impl Refusal {
    fn new(code: Code, words: impl fmt::Display) -> Self {
        Self::Host(code, words.to_string())
    }
}

impl From<quipu_core::Error> for Refusal {
    fn from(error: quipu_core::Error) -> Self {
        Self::Engine(error)
    }
}

/// Fails if a request names another server than this one as what its token is for.
fn check_resource(resource: Option<&str>, base: &str) -> Result<(), Refusal> {
    let is_ours = |resource: &str| {
        let rest = resource.strip_prefix(base);
        rest.is_some_and(|rest| matches!(rest.trim_end_matches('/'), "" | "/mcp"))
    };
    match resource {
        Some(resource) if !is_ours(resource) => {
            Err(Refusal::new(Code::InvalidTarget, format!("this server is {base}/mcp")))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_for_this_server_only() {
        let base = "https://memory.example.org";
        for ours in [
            "https://memory.example.org",
            "https://memory.example.org/mcp",
            "https://memory.example.org/mcp/",
        ] {
            assert!(check_resource(Some(ours), base).is_ok(), "{ours}");
        }
        for other in
            ["https://memory.example.org.evil.test/mcp", "https://memory.example.org/v1", "mcp", ""]
        {
            assert!(check_resource(Some(other), base).is_err(), "{other}");
        }
        assert!(check_resource(None, base).is_ok());
    }
}
