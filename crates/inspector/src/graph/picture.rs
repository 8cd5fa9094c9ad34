//! Draws a graph as SVG.
//!
//! Colors are classes of the style sheet: the content security policy allows no style in the document,
//! and each theme has its own. The list below the picture says the same in words.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::visible;

use super::Coloring;
use super::layout::{Center, Point, places};
use super::network::{Network, Node};

/// How many colors there are; further groups share the last one, which is gray.
const COLORS: usize = 8;
/// How many nodes have their names beside them; with more, names would cover each other.
const NAMES_MAX: usize = 60;
/// How many links have arrows; with more, those of a hub would merge.
const ARROWS_MAX: usize = 80;
const NAME_CHARS_MAX: usize = 28;

const WIDTH: f32 = 1000.0;
const HEIGHT: f32 = 640.0;
/// Space around the nodes, for their names.
const MARGIN: f32 = 40.0;

/// The groups of a graph, of which each has a color.
pub(super) struct Legend {
    /// The largest groups, with how many nodes they have.
    groups: Vec<(String, usize)>,
    /// How many nodes are in other groups.
    others_count: usize,
    missing_count: usize,
}

impl Legend {
    pub(super) fn new(network: &Network, coloring: Coloring) -> Self {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut missing_count = 0;
        for node in &network.nodes {
            match node {
                Node::Note(note) => *counts.entry(coloring.group(note)).or_default() += 1,
                Node::Missing(_) => missing_count += 1,
            }
        }
        let mut groups: Vec<_> = counts.into_iter().collect();
        groups.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let kept = if groups.len() > COLORS { COLORS - 1 } else { groups.len() };
        let others_count = groups.split_off(kept).into_iter().map(|(_, count)| count).sum();
        Self { groups, others_count, missing_count }
    }

    /// Returns the class of a node.
    fn class(&self, node: &Node, coloring: Coloring) -> String {
        let Node::Note(note) = node else { return "missing".to_owned() };
        let group = coloring.group(note);
        let color = self.groups.iter().position(|(name, _)| *name == group);
        format!("color-{}", color.unwrap_or(COLORS - 1))
    }

    pub(super) fn markup(&self) -> Markup {
        let entry = |class: &str, name: &str, count: usize| {
            html! { li {
                svg aria-hidden="true" width="14" height="14" viewBox="-8 -8 16 16" { circle class=(class) r="6" {} }
                " " (name) " " small { (count) }
            } }
        };
        html! {
            ul.legend aria-label="Colors" {
                @for (color, (name, count)) in self.groups.iter().enumerate() {
                    (entry(&format!("color-{color}"), name, *count))
                }
                @if self.others_count > 0 {
                    (entry(&format!("color-{}", COLORS - 1), "others", self.others_count))
                }
                @if self.missing_count > 0 { (entry("missing", "does not exist", self.missing_count)) }
            }
        }
    }
}

/// A node as it is drawn.
struct Circle {
    at: Point,
    radius: f32,
}

/// Draws a graph. The first node is in the middle and larger if there is a focus.
pub(super) fn svg(
    network: &Network,
    legend: &Legend,
    coloring: Coloring,
    center: Center,
) -> Markup {
    let links: Vec<_> = network.links.iter().map(|(from, to, _)| (*from, *to)).collect();
    let circles = circles(network, &links, center);
    let has_names = network.nodes.len() <= NAMES_MAX;
    let arrow = (links.len() <= ARROWS_MAX).then_some("url(#arrow)");
    let label = format!(
        "Graph of {} memories and {} links. The list below says the same.",
        network.nodes.len(),
        links.len()
    );
    html! {
        svg #graph.graph role="group" aria-label=(label) tabindex="0"
            viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } data-pan {
            defs {
                marker #arrow viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7"
                    orient="auto" { path.arrow d="M0 0 8 4 0 8z" {} }
            }
            g { @for (from, to) in &links {
                @if let (Some(from), Some(to)) = (circles.get(*from), circles.get(*to)) { (line(from, to, arrow)) }
            } }
            g { @for (node, circle) in network.nodes.iter().zip(&circles) {
                @let name = has_names.then(|| shortened(&visible::plain(title(node))));
                (shape(node, circle, &legend.class(node, coloring), name.as_deref()))
            } }
        }
    }
}

fn circles(network: &Network, links: &[(usize, usize)], center: Center) -> Vec<Circle> {
    let places = places(network.nodes.len(), links, center);
    let circle = |(node, at): (usize, Point)| {
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let weight = (network.degree(node) as f32).sqrt().min(6.0);
        let is_focus = node == 0 && center == Center::First;
        Circle {
            at: Point {
                x: MARGIN + at.x * (WIDTH - 2.0 * MARGIN),
                y: MARGIN + at.y * (HEIGHT - 2.0 * MARGIN),
            },
            radius: if is_focus { 14.0 } else { 5.0 + weight },
        }
    };
    places.into_iter().enumerate().map(circle).collect()
}

/// Draws a link from the edge of one node to the edge of the other.
fn line(from: &Circle, to: &Circle, arrow: Option<&str>) -> Markup {
    let (x, y) = (to.at.x - from.at.x, to.at.y - from.at.y);
    let length = x.hypot(y).max(0.1);
    let (x, y) = (x / length, y / length);
    let short = |value: f32| format!("{value:.1}");
    html! {
        line x1=(short(from.at.x + x * from.radius)) y1=(short(from.at.y + y * from.radius))
            x2=(short(to.at.x - x * (to.radius + 1.0))) y2=(short(to.at.y - y * (to.radius + 1.0)))
            marker-end=[arrow] {}
    }
}

/// Draws a node: a circle that leads to the memory, or a diamond if there is none.
fn shape(node: &Node, circle: &Circle, class: &str, name: Option<&str>) -> Markup {
    let Circle { at: Point { x, y }, radius } = circle;
    let (x, y, radius) = (format!("{x:.1}"), format!("{y:.1}"), format!("{radius:.1}"));
    let text = html! {
        @if let Some(name) = name { text x=(x) y=(y) dy={ "-" (radius) } text-anchor="middle" { (name) } }
    };
    match node {
        // The links of the picture are not stops of the Tab key: there are up to 300, and the list has them.
        Node::Note(note) => html! {
            a href={ "/ui/stores/" (note.store) "/memories/" (note.memory) } tabindex="-1" {
                title { (visible::plain(&note.title)) " · " (note.path) }
                circle class=(class) cx=(x) cy=(y) r=(radius) {}
                (text)
            }
        },
        Node::Missing(name) => html! {
            g {
                title { (visible::plain(name)) " · does not exist" }
                path class=(class) transform={ "translate(" (x) " " (y) ")" } d="M0 -7 7 0 0 7 -7 0z" {}
                (text)
            }
        },
    }
}

pub(super) fn title(node: &Node) -> &str {
    match node {
        Node::Note(note) => &note.title,
        Node::Missing(name) => name,
    }
}

fn shortened(title: &str) -> String {
    if title.chars().count() <= NAME_CHARS_MAX {
        return title.to_owned();
    }
    title.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect()
}
