//! Signing in and out.

use maud::{Markup, html};
use quipu_core::engine::Principal;
use quipu_core::model::KeySecret;
use quipu_knowledge::Knowledge;

use crate::form::Form;
use crate::layout;
use crate::reply::Trouble;

/// The first page.
pub const HOME: &str = "/ui";
/// The page that asks for a key.
pub const SIGN_IN: &str = "/ui/sign-in";

/// A request of somebody who has not signed in.
#[derive(Debug)]
pub struct Guest<'a> {
    /// The query of the address.
    pub query: &'a Form,
    /// The fields of the submitted form.
    pub form: &'a Form,
}

/// What a guest gets.
#[derive(Debug)]
pub enum GuestReply {
    /// A document.
    Page(Markup),
    /// The guest has signed in: the secret for its cookie, and where to go.
    Entered(KeySecret, String),
}

impl Guest<'_> {
    /// Shows the form that takes a key.
    pub fn ask(&self) -> GuestReply {
        GuestReply::Page(form(next(self.query), None))
    }

    /// Returns the key in the submitted form, for the limits on wrong ones.
    pub fn key(&self) -> Option<&str> {
        self.form.get("key").map(str::trim)
    }

    /// Signs in with the key in the submitted form.
    pub fn sign_in(&self, engine: &Knowledge) -> Result<Option<GuestReply>, Trouble> {
        let Some(key) = self.key() else { return Ok(None) };
        match engine.principal(key)? {
            Some(Principal::Key(_)) => {
                let secret = KeySecret::chosen(key);
                Ok(secret.map(|secret| GuestReply::Entered(secret, next(self.form).to_owned())))
            }
            Some(Principal::Session(_)) | None => Ok(None),
        }
    }

    /// Shows the form again, after a key that does not work.
    pub fn ask_again(&self) -> GuestReply {
        let message = "This key is not valid, was revoked or has expired.";
        GuestReply::Page(form(next(self.form), Some(message)))
    }
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
                p.message role="alert" { (trouble) " " "Make one with " code { "quipu key create" } "." }
            }
            form.narrow method="post" action=(SIGN_IN) {
                input type="hidden" name="next" value=(next);
                label { "Key"
                    input type="password" name="key" required autocomplete="current-password"
                        placeholder="sk-quipu-…" spellcheck="false";
                }
                label { "Your name"
                    input name="name" required autocomplete="username" maxlength="32"
                        pattern="[A-Za-z0-9._\\-]+" spellcheck="false"
                        aria-describedby="name-why";
                }
                p #name-why { small {
                    "Letters, digits, dots, dashes. The history shows it with everything that you change."
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

    #[test]
    fn signing_in_leads_to_no_other_site() {
        let after = |next: &str| {
            let form = Form::parse(
                crate::form::address("", &[("next", next)]).trim_start_matches('?').as_bytes(),
            );
            super::next(&form).to_owned()
        };
        assert_eq!(after("/ui/search?q=a"), "/ui/search?q=a");
        for other in
            ["https://example.com", "//example.com", "/\\example.com", "/uix", "/ui/\r\nx", ""]
        {
            assert_eq!(after(other), HOME, "{other}");
        }
    }
}
