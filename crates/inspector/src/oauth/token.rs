//! Codes and refresh tokens, exchanged for keys.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quipu_core::engine::NewDerivedKey;
use quipu_core::model::{Key, KeyKind, Timestamp};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Knowledge;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Code, Refusal, check_resource};
use crate::form::Form;

/// How long an access token is valid; then the host refreshes it.
const ACCESS_VALID_FOR: Duration = Duration::from_hours(1);

/// What is kept with a code or a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// What stands for the client that it was issued to, see [`client_mark`].
    pub(super) client: String,
    /// The address that a code was sent to.
    pub(super) redirect_uri: String,
    /// The PKCE challenge of a code.
    pub(super) challenge: String,
    /// When everything that comes of it ends.
    pub(super) ends_at: Timestamp,
}

impl Grant {
    /// Returns the payload for the key.
    pub(super) fn payload(&self) -> String {
        json!({
            "client": self.client,
            "redirect_uri": self.redirect_uri,
            "challenge": self.challenge,
            "ends_at": self.ends_at.as_micros(),
        })
        .to_string()
    }

    fn of(key: &Key) -> Option<Self> {
        let payload: Value = serde_json::from_str(key.payload.as_deref()?).ok()?;
        let text = |name: &str| Some(payload.get(name)?.as_str()?.to_owned());
        Some(Self {
            client: text("client")?,
            redirect_uri: text("redirect_uri")?,
            challenge: text("challenge")?,
            ends_at: Timestamp::from_micros(payload.get("ends_at")?.as_i64()?),
        })
    }
}

/// Returns what stands for a client in a grant: its id is too long to be kept with every token.
pub(super) fn client_mark(id: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(id))
}

/// Exchanges a code or a refresh token for an access token. `base` is the address of the server.
pub fn exchange(engine: &Knowledge, form: &Form, base: &str) -> Result<Value, Refusal> {
    check_resource(form.get("resource"), base)?;
    let required = |name: &str| {
        form.get(name)
            .ok_or_else(|| Refusal::new(Code::InvalidRequest, format!("{name}: is required")))
    };
    let client = client_mark(required("client_id")?);
    match required("grant_type")? {
        "authorization_code" => {
            let verifier = required("code_verifier")?;
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
            let redirect_uri = form.get("redirect_uri");
            issue(engine, (required("code")?, KeyKind::Code), |grant| {
                grant.client == client
                    && grant.challenge == challenge
                    && redirect_uri.is_none_or(|uri| uri == grant.redirect_uri)
            })
        }
        "refresh_token" => issue(engine, (required("refresh_token")?, KeyKind::Refresh), |grant| {
            grant.client == client
        }),
        other => Err(Refusal::new(
            Code::UnsupportedGrantType,
            format!("grant_type: `{other}` is none of authorization_code, refresh_token"),
        )),
    }
}

fn issue(
    engine: &Knowledge,
    (presented, kind): (&str, KeyKind),
    fits: impl Fn(&Grant) -> bool,
) -> Result<Value, Refusal> {
    let now = engine.now();
    let exchanged = engine.exchange_key(presented, kind, |redeemed| {
        let grant = Grant::of(redeemed).filter(|grant| fits(grant));
        let grant = grant.ok_or_else(|| Error::new(ErrorKind::AccessDenied, MISMATCH))?;
        let new = |kind: KeyKind, expires_at: Timestamp, payload: Option<String>| NewDerivedKey {
            kind,
            name: redeemed.name.clone(),
            role: redeemed.role,
            stores: redeemed.stores.clone(),
            expires_at,
            payload,
        };
        let access_ends = now.plus(ACCESS_VALID_FOR).min(grant.ends_at);
        let renewable = Grant { challenge: String::new(), ..grant.clone() };
        Ok(vec![
            new(KeyKind::Key, access_ends, None),
            new(KeyKind::Refresh, grant.ends_at, Some(renewable.payload())),
        ])
    });
    let exchanged = match exchanged {
        Err(error) if *error.kind() == ErrorKind::AccessDenied => None,
        other => other?,
    };
    let issued = exchanged.map(|exchange| exchange.issued).unwrap_or_default();
    let [(access, secret), (_, refresh)] = issued.as_slice() else {
        return Err(Refusal::new(
            Code::InvalidGrant,
            "not valid, expired, used before, or issued to another client",
        ));
    };
    let ends_at = access.expires_at.unwrap_or(now);
    let seconds = (ends_at.as_micros() - now.as_micros()).max(0) / 1_000_000;
    Ok(json!({
        "access_token": secret.reveal(),
        "token_type": "Bearer",
        "expires_in": seconds,
        "refresh_token": refresh.reveal(),
        "scope": "memory",
    }))
}

/// Words that no caller sees: the answer does not say which part of a grant did not fit.
const MISMATCH: &str = "the grant was issued to another client or for another verifier";

/// Ends a token, and everything that was issued with it. An unknown token is no error (RFC 7009).
pub fn revoke(engine: &Knowledge, form: &Form) -> Result<(), Refusal> {
    let Some(presented) = form.get("token") else {
        return Err(Refusal::new(Code::InvalidRequest, "token: is required"));
    };
    engine.revoke_presented(presented)?;
    Ok(())
}
