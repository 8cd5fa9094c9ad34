//! What hosts discover about this server.

use serde_json::{Value, json};

use super::{AUTHORIZE, REGISTER, REVOKE, TOKEN};

/// Describes `/mcp` as something that OAuth protects (RFC 9728). `base` is the address of the server.
pub fn protected_resource(base: &str) -> Value {
    json!({
        "resource": format!("{base}/mcp"),
        "resource_name": "Quipu",
        "authorization_servers": [base],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["memory"],
    })
}

/// Describes the authorization server (RFC 8414).
pub fn authorization_server(base: &str) -> Value {
    json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}{AUTHORIZE}"),
        "token_endpoint": format!("{base}{TOKEN}"),
        "registration_endpoint": format!("{base}{REGISTER}"),
        "revocation_endpoint": format!("{base}{REVOKE}"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
        "scopes_supported": ["memory"],
    })
}
