//! What a page answers.

use maud::Markup;
use quipu_core::Error;
use quipu_service::caller::Denied;

/// What a page answers.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A document.
    Page(Markup),
    /// A document that refuses what the visitor asked for, as it conflicts with what others did.
    Conflict(Markup),
    /// Another address, which the browser goes to. This is how every change ends, so that reloading
    /// repeats nothing.
    SeeOther(String),
    /// A document with a form whose answer leads to another site.
    Form {
        /// The document.
        page: Markup,
        /// Scheme and host of that site, which the content security policy has to name.
        target: String,
    },
    /// The form for signing in; the browser forgets its cookie.
    SignedOut,
    /// A file to save.
    Download {
        /// Its name.
        name: String,
        /// Its media type.
        kind: &'static str,
        /// What is in it.
        bytes: Vec<u8>,
    },
}

/// Why a page cannot be shown, or a change was not made.
#[derive(Debug)]
pub enum Trouble {
    /// The engine refused or failed.
    Engine(Error),
    /// The visitor may not do that.
    Denied(Denied),
    /// The request does not make sense; says what to do instead.
    Invalid(String),
    /// There is no such thing; says where to look.
    NotFound(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<Denied> for Trouble {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}
