//! What all pages have in common.

use http::StatusCode;
use maud::{DOCTYPE, Markup, html};
use quipu_service::caller::Need;

use crate::assets::{ICON, SCRIPT, STYLE};
use crate::sign_in::{HOME, SIGN_IN};
use crate::visible;
use crate::visit::Visit;

/// The part of the site that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// The stores and what is in them.
    Stores,
    /// The search.
    Search,
    /// Sessions and other authors.
    Sessions,
    /// Redaction by content.
    Redact,
    /// Keys, limits and the state of the server.
    Admin,
}

/// Returns a whole document for somebody who has signed in. `title` is what the tab shows, so it says
/// what the page is about.
pub(crate) fn page(visit: &Visit<'_>, room: Room, title: &str, content: &Markup) -> Markup {
    let link = |to: Room, path: &str, text: &str| {
        html! { a href=(path) aria-current=[(to == room).then_some("true")] { (text) } }
    };
    let (name, role) = visit.who();
    let header = html! {
        nav aria-label="Main" {
            a.brand href=(HOME) { img src=(ICON.path) alt="" width="24" height="24"; "Quipu" }
            (link(Room::Stores, HOME, "Stores"))
            (link(Room::Sessions, "/ui/sessions", "Sessions"))
            @if visit.caller.may(Need::Manage) { (link(Room::Redact, "/ui/redact", "Redact")) }
            @if visit.is_admin() { (link(Room::Admin, "/ui/admin", "Admin")) }
        }
        // The page of the search has a field of its own.
        @if room != Room::Search {
            form.find role="search" action="/ui/search" {
                input type="search" name="q" aria-label="Search all stores" placeholder="Search"
                    autocomplete="off" spellcheck="false" data-key="/";
            }
        }
        form.who method="post" action="/ui/sign-out" {
            (visit.token_field())
            span title=(role) { (visible::short(&name)) " " small { (role) } }
            button { "Sign out" }
        }
    };
    document(title, &html! { header { (header) } main id="main" tabindex="-1" { (content) } })
}

/// Returns a whole document for anybody.
pub(crate) fn plain(title: &str, content: &Markup) -> Markup {
    let brand = html! {
        header { nav aria-label="Main" {
            a.brand href=(HOME) { img src=(ICON.path) alt="" width="24" height="24"; "Quipu" }
        } }
    };
    document(title, &html! { (brand) main id="main" tabindex="-1" { (content) } })
}

fn document(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (visible::plain(title)) " · Quipu" }
                link rel="icon" href=(ICON.path) type="image/svg+xml";
                link rel="stylesheet" href=(STYLE.path);
                script type="module" src=(SCRIPT.path) {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (body)
            }
        }
    }
}

/// A way through a store to where a page is: names with their addresses; the last is the page itself.
pub(crate) fn trail(steps: &[(&str, String)], here: &str) -> Markup {
    html! {
        nav.trail aria-label="Path" {
            @for (name, address) in steps { a href=(address) { (visible::short(name)) } " / " }
            span aria-current="page" { (visible::short(here)) }
        }
    }
}

/// Returns the page for a request that failed: what happened, and what to do next.
///
/// Signing in leads to the first page: only forms end here without a sign-in, and the address of a form is
/// not always one of a page.
pub fn failure_page(status: StatusCode, message: &str) -> Markup {
    let title = match status {
        StatusCode::UNAUTHORIZED => "Signed out",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        status if status.is_client_error() => "That does not work",
        _ => "Something went wrong",
    };
    let message = sentence(message);
    plain(
        title,
        &html! {
            h1 { (title) }
            p.message { (message) }
            @if status == StatusCode::UNAUTHORIZED {
                p { a.button href=(SIGN_IN) { "Sign in" } }
                p { "If you were writing something, it is still in the form: open the sign-in in \
                     another tab, then come back with the Back button and send it again." }
            } @else {
                p { a href=(HOME) { "All stores" } }
            }
        },
    )
}

/// Returns a page that only leads on to the address that was asked for.
///
/// A browser that follows a link from another site does not send our cookie. From here it does, so that
/// whoever is signed in need not sign in again.
pub fn arrival_page(uri: &http::Uri) -> Markup {
    let here = uri.path_and_query().map_or(HOME, |it| it.as_str());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0;url=" (here) };
                title { "Quipu" }
                link rel="stylesheet" href=(STYLE.path);
            }
            body { main { h1 { "Quipu" } p { a href=(here) { "Continue" } } } }
        }
    }
}

/// Returns a message as a sentence.
pub(crate) fn sentence(message: &str) -> String {
    let mut characters = message.chars();
    let start: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    let text = start + characters.as_str();
    if text.ends_with(['.', '!', '?', ':']) { text } else { text + "." }
}

/// Returns what a program that asks for `/` gets instead of the inspector.
pub fn front_text(version: &str) -> String {
    format!(
        "Quipu {version}: memory for AI agents.\n\
         \n\
         /ui            the inspector, for people\n\
         /v1            the Memory Stores API; SDKs need only base_url and a key\n\
         /mcp           MCP over HTTP\n\
         /quipu/docs    the API, described; /openapi.json for programs\n\
         /healthz       whether the server runs\n"
    )
}
