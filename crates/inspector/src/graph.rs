//! The links of a store as a picture and as a list.

mod layout;
mod network;
mod picture;

use maud::{Markup, html};
use quipu_core::backend::Archived;
use quipu_core::model::{Memory, Store, View};
use quipu_knowledge::{DEPTH_MAX, NoteCard, Scope};
use quipu_service::caller::Need;

use crate::form::address;
use crate::layout::{Room, page, trail};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;
use crate::{Page, shows};

use layout::Center;
use network::{Network, Node};
use picture::Legend;

/// The pages of this module.
pub(crate) static PAGES: [Page; 1] = [shows("/ui/stores/{store}/graph", graph)];

/// How far around a memory one looks if nothing is said.
const DEPTH: usize = 2;
/// How much of the focused memory is shown.
const PREVIEW_CHARS_MAX: usize = 600;

/// What colors mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coloring {
    /// The folder of a memory.
    Folder,
    /// The type of a memory.
    Type,
}

impl Coloring {
    const ALL: [Self; 2] = [Self::Folder, Self::Type];

    fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Type => "type",
        }
    }

    /// Returns the group of a memory: its topmost folder, or its type.
    fn group(self, note: &NoteCard) -> String {
        match self {
            Self::Folder => match note.path.as_str().trim_start_matches('/').split_once('/') {
                Some((folder, _)) => format!("/{folder}/"),
                None => "/".to_owned(),
            },
            Self::Type => note.kind.clone(),
        }
    }
}

/// What the address asks for.
struct Look<'a> {
    store: &'a Store,
    focus: Option<&'a Memory>,
    depth: usize,
    coloring: Coloring,
}

fn graph(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Read)?;
    let scope = network::scope(&store, &visit.stores(Archived::Show)?);
    let focus = focus(visit, &scope)?;
    let depth = visit.query.get("depth").and_then(|text| text.parse().ok()).unwrap_or(DEPTH);
    let by_type = visit.query.get("color") == Some(Coloring::Type.as_str());
    let look = Look {
        store: &store,
        focus: focus.as_ref(),
        depth: depth.clamp(1, DEPTH_MAX),
        coloring: if by_type { Coloring::Type } else { Coloring::Folder },
    };
    let (network, center) = match look.focus {
        Some(focus) => (Network::around(visit, &scope, focus.id, look.depth)?, Center::First),
        None => (Network::of_store(visit, &scope)?, Center::None),
    };
    let legend = Legend::new(&network, look.coloring);
    let title = match look.focus {
        Some(focus) => format!("{} · graph", focus.path),
        None => format!("{} · graph", store.name),
    };
    let content = html! {
        (trail(&[("Stores", "/ui".to_owned()), (store.name.as_str(), format!("/ui/stores/{}", store.id))], "Graph"))
        h1 { @match look.focus {
            Some(focus) => { "Links around " (focus.path) }
            None => { "Links of " (visible::short(store.name.as_str())) }
        } }
        (controls(&look))
        @for sentence in &network.left_out { p { small { (sentence) } } }
        @if network.nodes.is_empty() {
            p { "No memory of this store links to another one. A link is written as " code { "[[Title]]" } "." }
        } @else {
            figure.graph {
                (picture::svg(&network, &legend, look.coloring, center))
                figcaption { (legend.markup()) }
            }
            @if let Some(focus) = look.focus { (preview(focus)) }
            (list(&look, &network))
        }
    };
    Ok(Reply::Page(page(visit, Room::Stores, &title, &content)))
}

/// Returns the memory that the address names by its id, or by a path, a permalink or a title as a person
/// types it.
fn focus(visit: &Visit<'_>, scope: &Scope) -> Result<Option<Memory>, Trouble> {
    let Some(name) = visit.query.get("focus") else { return Ok(None) };
    Ok(Some(visit.engine.resolve(&Scope::only(scope.home), name, View::Full)?))
}

fn controls(look: &Look<'_>) -> Markup {
    let path = format!("/ui/stores/{}/graph", look.store.id);
    html! {
        form.row action=(path) {
            label { "Around"
                input name="focus" value=[look.focus.map(|focus| focus.path.as_str())]
                    placeholder="path or title; empty for all" autocomplete="off" spellcheck="false";
            }
            label { "Links away"
                select name="depth" { @for depth in 1..=DEPTH_MAX {
                    option value=(depth) selected[depth == look.depth] { (depth) }
                } }
            }
            label { "Color by"
                select name="color" { @for coloring in Coloring::ALL {
                    option value=(coloring.as_str()) selected[coloring == look.coloring] { (coloring.as_str()) }
                } }
            }
            button { "Show" }
            @if look.focus.is_some() { a.button href=(path) { "Whole store" } }
        }
    }
}

fn preview(focus: &Memory) -> Markup {
    let content = focus.content.as_ref().map_or("", |content| content.as_str());
    let shown: String = content.chars().take(PREVIEW_CHARS_MAX).collect();
    html! {
        section aria-labelledby="preview" {
            h2 #preview { a href={ "/ui/stores/" (focus.store) "/memories/" (focus.id) } { (focus.path) } }
            pre { (shown) @if shown.len() < content.len() { "…" } }
        }
    }
}

/// Lists the drawn memories, with the links of each.
fn list(look: &Look<'_>, network: &Network) -> Markup {
    html! {
        section aria-labelledby="list" {
            h2 #list { "The same as a list" }
            ul.nodes { @for (place, node) in network.nodes.iter().enumerate() {
                li { (entry(look, network, place, node)) }
            } }
        }
    }
}

fn entry(look: &Look<'_>, network: &Network, place: usize, node: &Node) -> Markup {
    let outgoing = network.links.iter().filter(|(from, _, _)| *from == place);
    let outgoing: Vec<_> =
        outgoing.filter_map(|(_, to, kind)| Some((kind, network.nodes.get(*to)?))).collect();
    html! {
        @match node {
            Node::Note(note) => {
                a href={ "/ui/stores/" (note.store) "/memories/" (note.memory) } { (visible::short(&note.title)) }
                " " small.mono { (note.path) }
                " " small { (look.coloring.group(note)) " · " (text::count(network.degree(place) as u64, "link", "links")) }
                @if note.store == look.store.id {
                    " " a href=(around(look, note)) aria-label={ "Links around " (visible::plain(&note.title)) } { "around" }
                }
            }
            Node::Missing(name) => { (visible::short(name)) " " span.badge { "does not exist" } }
        }
        @if !outgoing.is_empty() {
            br; small { @for (place, (kind, to)) in outgoing.iter().enumerate() {
                @if place > 0 { ", " }
                (visible::short(kind)) " " (visible::short(picture::title(to)))
            } }
        }
    }
}

fn around(look: &Look<'_>, note: &NoteCard) -> String {
    let path = format!("/ui/stores/{}/graph", look.store.id);
    let (memory, depth) = (note.memory.to_string(), look.depth.to_string());
    address(
        &path,
        &[("focus", &memory), ("depth", &depth), ("color", &look.coloring.as_str().to_owned())],
    )
}
