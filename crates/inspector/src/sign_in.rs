//! Signing in and out.
//!
//! A sign-in is a key of its own, derived from the one that was typed in: it has the name of the person, ends
//! with the key that it comes from, and is listed and revocable like others. The cookie holds its secret,
//! so nothing about sign-ins is kept in the memory of the server.

use std::time::Duration;

use maud::{Markup, html};
use quipu_core::engine::{Derivation, NewDerivedKey, Principal};
use quipu_core::model::{Key, KeyKind, KeySecret, Name, PrincipalName, Timestamp};
use quipu_knowledge::Knowledge;

use crate::form::Form;
use crate::reply::{Reply, Trouble};
use crate::visit::Visit;
use crate::{Page, changes, layout};

/// The first page.
pub const HOME: &str = "/ui";
/// The page that asks for a key.
pub const SIGN_IN: &str = "/ui/sign-in";
/// Where the one-time links of `quipu ui` lead.
pub const ENTER: &str = "/ui/enter";

/// What to say about a key that does not work.
pub const WRONG_KEY: &str =
    "This key is not valid, was revoked or has expired. Make one with `quipu key create`.";
/// What a name may be.
const NAME_HINT: &str =
    "Your name has 1 to 32 ASCII letters, digits, dots, dashes, underscores or @.";

/// The pages of this module.
pub(crate) static PAGES: [Page; 1] = [changes("/ui/sign-out", sign_out)];

/// A sign-in that is not used ends after this time.
const IDLE_MAX: Duration = Duration::from_hours(12);
/// A sign-in ends after this time, however much it is used.
const VALID_FOR: Duration = Duration::from_hours(7 * 24);

/// A request of somebody who has not signed in.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The query of the address.
    pub query: Form,
    /// The fields of the submitted form.
    pub form: Form,
}

/// What a guest who has signed in gets.
#[derive(Debug)]
pub struct Entered {
    /// The secret for the cookie.
    pub secret: KeySecret,
    /// Where to go.
    pub next: String,
}

impl Guest {
    /// Returns the form that takes a key.
    pub fn ask(&self) -> Markup {
        form(next(&self.query), None)
    }

    /// Returns the key in the submitted form, for the limits on wrong ones.
    pub fn key(&self) -> Option<&str> {
        self.form.get("key").map(str::trim)
    }

    /// Returns the secret of the one-time link, for the limits on wrong ones.
    pub fn link(&self) -> Option<&str> {
        self.query.get("link")
    }

    /// Signs in with the key in the submitted form; `None` if it is not valid.
    ///
    /// A sign-in or a token of a host is no key here: what is derived from one would outlive it.
    pub fn sign_in(&self, engine: &Knowledge) -> Result<Option<Entered>, Trouble> {
        let Some(presented) = self.key() else { return Ok(None) };
        let Some(Principal::Key(key)) = engine.principal(presented)? else { return Ok(None) };
        if key.is_derived() {
            return Ok(None);
        }
        let name = self.form.get("name").unwrap_or_default().trim();
        let name = PrincipalName::parse(name).ok().and_then(|_| Name::new(name).ok());
        let name = name.ok_or_else(|| Trouble::Invalid(NAME_HINT.to_owned()))?;
        let new = sign_in_of(&key, name, engine.now());
        let (_, secret) = engine.derive_key(Derivation::Key(key.id), &new)?;
        Ok(Some(Entered { secret, next: next(&self.form).to_owned() }))
    }

    /// Returns the form again, after a key that does not work or a name that cannot be shown.
    pub fn ask_again(&self, trouble: &str) -> Markup {
        form(next(&self.form), Some(trouble))
    }

    /// Signs in with a one-time link; `None` if it is not valid anymore.
    pub fn enter(&self, engine: &Knowledge) -> Result<Option<Entered>, Trouble> {
        let Some(presented) = self.link() else { return Ok(None) };
        let now = engine.now();
        let exchange = engine.exchange_key(presented, KeyKind::Link, |link| {
            Ok(vec![sign_in_of(link, link.name.clone(), now)])
        })?;
        let issued = exchange.and_then(|exchange| exchange.issued.into_iter().next());
        Ok(issued.map(|(_, secret)| Entered { secret, next: HOME.to_owned() }))
    }

    /// Returns the page for a link that does not work.
    pub fn too_late(&self) -> Markup {
        layout::plain(
            "This link has ended",
            &html! {
                h1 { "This link has ended" }
                p.message { "It works once, and for a minute. Run " code { "quipu ui" } " again to get another." }
                p { a href=(SIGN_IN) { "Sign in with a key" } }
            },
        )
    }
}

fn sign_in_of(key: &Key, name: Name, now: Timestamp) -> NewDerivedKey {
    NewDerivedKey {
        kind: KeyKind::Browser,
        name,
        role: key.role,
        stores: key.stores.clone(),
        expires_at: now.plus(IDLE_MAX),
        payload: None,
    }
}

/// Returns until when a sign-in is to be extended because it is used; `None` if that is not due yet. Not
/// at every page: extending it is a write.
pub fn extension(key: &Key, now: Timestamp) -> Option<Timestamp> {
    let until = now.plus(IDLE_MAX).min(key.created_at.plus(VALID_FOR));
    let is_due = |ends_at| ends_at < until && ends_at < now.plus(IDLE_MAX / 2);
    key.expires_at.is_none_or(is_due).then_some(until)
}

fn sign_out(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    if let Some(key) = visit.caller.key() {
        visit.engine.revoke_key(key)?;
    }
    Ok(Reply::SignedOut)
}

/// Returns where to go after signing in: never to another site.
fn next(form: &Form) -> &str {
    let next = form.get("next").unwrap_or(HOME);
    let is_ours = next == HOME || next.starts_with("/ui/") || next.starts_with("/ui?");
    if is_ours && !next.contains(['\\', '\r', '\n']) { next } else { HOME }
}

fn form(next: &str, trouble: Option<&str>) -> Markup {
    layout::plain(
        "Sign in",
        &html! {
            h1 { "Sign in" }
            @if let Some(trouble) = trouble {
                p.message role="alert" { (trouble) }
            }
            form.narrow method="post" action=(SIGN_IN) {
                input type="hidden" name="next" value=(next);
                label { "Key"
                    input type="password" name="key" required autocomplete="current-password"
                        placeholder="sk-quipu-…" spellcheck="false";
                }
                label { "Your name"
                    input name="name" required autocomplete="username" maxlength="32"
                        pattern="[A-Za-z0-9._@\\-]+" spellcheck="false"
                        aria-describedby="name-why";
                }
                p #name-why { small {
                    "Letters, digits, dots, dashes, underscores, @. The history shows it with everything that you change."
                } }
                button.primary { "Sign in" }
            }
            p { "On the machine that runs the server, " code { "quipu ui" } " opens this page signed in." }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::address;

    #[test]
    fn signing_in_leads_to_no_other_site() {
        let after = |next: &str| {
            let query = address("", &[("next", next)]);
            super::next(&Form::parse(query.trim_start_matches('?').as_bytes())).to_owned()
        };
        assert_eq!(after("/ui/search?q=a"), "/ui/search?q=a");
        for other in
            ["https://example.com", "//example.com", "/\\example.com", "/uix", "/ui/\r\nx", ""]
        {
            assert_eq!(after(other), HOME, "{other}");
        }
    }
}
