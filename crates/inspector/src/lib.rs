//! The inspector: pages on which people see what agents remember, and put it right.
//!
//! Pages are HTML from Rust, and every one of them works without script. A page is a synchronous
//! function of a [`Visit`], which the HTTP server runs as it runs the handlers of its own routes: the
//! same callers, the same rights, the same limits. This crate knows neither sockets nor threads.
//!
//! Memory texts are hostile: an attacker may have written what an administrator looks at. Everything is
//! escaped, [`policy`] forbids the browser to run or fetch anything that is not ours, and no page puts
//! text into a script, a style or the address of a resource.

mod admin;
mod assets;
mod choice;
mod difference;
mod edit;
mod form;
mod graph;
mod history;
mod host;
mod layout;
mod markdown;
mod memory;
pub mod oauth;
mod paging;
mod past;
mod plan;
pub mod policy;
mod redact;
mod reply;
mod revert;
mod search;
mod sessions;
mod sign_in;
mod start;
mod store;
mod text;
mod visible;
mod visit;

use http::Method;

pub use assets::Asset;
pub use form::Form;
pub use host::{Backup, Host, Webhook};
pub use layout::{arrival_page, failure_page, front_text};
pub use reply::{Reply, Trouble};
pub use sign_in::{ENTER, Entered, Guest, HOME, SIGN_IN, WRONG_KEY, extension};
pub use visit::{Settings, Visit, form_token};

/// What a page does to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reads.
    Reads,
    /// It writes; it needs the form token.
    Writes,
}

/// The work of a page.
pub type Work = fn(&Visit<'_>) -> Result<Reply, Trouble>;

/// A page for people who have signed in.
#[derive(Clone, Debug)]
pub struct Page {
    /// GET or POST.
    pub method: Method,
    /// The path, with variable parts in braces.
    pub path: &'static str,
    /// What it does to the engine.
    pub effect: Effect,
    /// Answers a visit.
    pub work: Work,
}

/// Returns a page that shows something.
const fn shows(path: &'static str, work: Work) -> Page {
    Page { method: Method::GET, path, effect: Effect::Reads, work }
}

/// Returns the target of a form that changes something.
const fn changes(path: &'static str, work: Work) -> Page {
    Page { method: Method::POST, path, effect: Effect::Writes, work }
}

/// Returns a page that shows something for a form that must not end up in an address, such as one with a
/// text to be redacted: addresses are kept in histories and logs.
const fn asks(path: &'static str, work: Work) -> Page {
    Page { method: Method::POST, path, effect: Effect::Reads, work }
}

/// Returns all pages for people who have signed in.
pub fn pages() -> Vec<Page> {
    let rooms: [&[Page]; 14] = [
        &sign_in::PAGES,
        &start::PAGES,
        &store::PAGES,
        &edit::PAGES,
        &memory::PAGES,
        &history::PAGES,
        &past::PAGES,
        &search::PAGES,
        &graph::PAGES,
        &sessions::PAGES,
        &revert::PAGES,
        &redact::PAGES,
        &admin::PAGES,
        &oauth::consent::PAGES,
    ];
    rooms.into_iter().flatten().cloned().collect()
}
