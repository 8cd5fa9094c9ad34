//! Drawings of the graph: DOT for Graphviz, or a self-contained SVG.

use std::collections::BTreeMap;

use quipu_knowledge::Graph;

/// Returns the graph in the DOT language.
pub(super) fn dot(graph: &Graph) -> String {
    let mut text = String::from("digraph quipu {\n  node [shape=box, style=rounded];\n");
    for (number, note) in graph.notes.iter().enumerate() {
        let (title, path) = (quoted(&note.title), quoted(note.path.as_str()));
        text.push_str(&format!("  n{number} [label={title}, tooltip={path}];\n"));
    }
    for (from, to, kind) in &graph.links {
        text.push_str(&format!("  n{from} -> n{to} [label={}];\n", quoted(kind)));
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    format!("\"{escaped}\"")
}

#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

/// The distance between neighboring memories.
const SPACING: f64 = 130.0;
/// The number of iterations of the layout.
const STEPS: u32 = 150;
/// Larger graphs keep the initial spiral, because each iteration is quadratic.
const RELAXED_MAX: usize = 600;
/// The maximum length of a label.
const LABEL_CHARS_MAX: usize = 24;
const MARGIN: f64 = 90.0;

/// Returns a drawing in which linked memories are close to each other. Deterministic.
pub(super) fn svg(graph: &Graph) -> String {
    let places = layout(graph);
    let side = |of: fn(&Point) -> f64, pick: fn(f64, f64) -> f64| {
        places.iter().map(of).reduce(pick).unwrap_or(0.0)
    };
    let (left, top) = (side(|at| at.x, f64::min), side(|at| at.y, f64::min));
    let width = side(|at| at.x, f64::max) - left + 2.0 * MARGIN;
    let height = side(|at| at.y, f64::max) - top + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{:.0} {:.0} {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <style>line {{ stroke: #999 }} circle {{ fill: #4a7ab5 }} text {{ fill: #222 }}\n\
         @media (prefers-color-scheme: dark) {{ text {{ fill: #ddd }} }}</style>\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"14\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#999\"/></marker></defs>\n",
        left - MARGIN,
        top - MARGIN
    );
    // Parallel links share one line.
    let mut lines: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for (from, to, kind) in &graph.links {
        lines.entry((*from, *to)).or_default().push(kind);
    }
    for ((from, to), kinds) in &lines {
        let (Some(start), Some(end)) = (places.get(*from), places.get(*to)) else { continue };
        text.push_str(&format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" marker-end=\"url(#arrow)\">\
             <title>{}</title></line>\n",
            start.x,
            start.y,
            end.x,
            end.y,
            escaped(&kinds.join(", "))
        ));
    }
    for (note, at) in graph.notes.iter().zip(&places) {
        let label: String = note.title.chars().take(LABEL_CHARS_MAX).collect();
        let dots = if note.title.chars().count() > LABEL_CHARS_MAX { "…" } else { "" };
        text.push_str(&format!(
            "<g><title>{}</title><circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}{dots}</text></g>\n",
            escaped(note.path.as_str()),
            at.x,
            at.y,
            at.x,
            at.y + 18.0,
            escaped(&label)
        ));
    }
    text.push_str("</svg>\n");
    text
}

/// Escapes a text for XML; characters that XML cannot represent are replaced.
fn escaped(text: &str) -> String {
    let is_refused = |character: char| {
        (character.is_control() && !matches!(character, '\t' | '\n' | '\r'))
            || matches!(character, '\u{fffe}' | '\u{ffff}')
    };
    let text = text.replace(is_refused, "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A force-directed layout: memories start on a spiral, then links attract and memories repel.
fn layout(graph: &Graph) -> Vec<Point> {
    let mut places: Vec<Point> = (0..graph.notes.len()).map(on_spiral).collect();
    if places.len() > RELAXED_MAX {
        return places;
    }
    for step in 0..STEPS {
        let heat = SPACING * 0.5 * f64::from(STEPS - step) / f64::from(STEPS);
        let forces = forces(graph, &places);
        for (place, force) in places.iter_mut().zip(forces) {
            let length = force.x.hypot(force.y).max(0.01);
            let moved = length.min(heat) / length;
            place.x += force.x * moved;
            place.y += force.y * moved;
        }
    }
    places
}

/// Returns the position of the `number`-th memory on an evenly spaced spiral.
fn on_spiral(number: usize) -> Point {
    let number = f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let (angle, radius) = (number * 2.399_963, SPACING * 0.6 * number.sqrt());
    Point { x: radius * angle.cos(), y: radius * angle.sin() }
}

fn forces(graph: &Graph, places: &[Point]) -> Vec<Point> {
    let mut forces: Vec<Point> = places
        .iter()
        .map(|at| {
            let mut force = Point { x: -at.x * 0.02, y: -at.y * 0.02 };
            for other in places {
                let (x, y) = (at.x - other.x, at.y - other.y);
                let distance = x.hypot(y);
                if distance > 0.01 {
                    let push = (SPACING / distance).powi(2) * 8.0;
                    force.x += x / distance * push;
                    force.y += y / distance * push;
                }
            }
            force
        })
        .collect();
    for (from, to, _) in &graph.links {
        let (Some(start), Some(end)) = (places.get(*from), places.get(*to)) else { continue };
        let (x, y) = (end.x - start.x, end.y - start.y);
        let pull = 0.06;
        if let Some(force) = forces.get_mut(*from) {
            force.x += x * pull;
            force.y += y * pull;
        }
        if let Some(force) = forces.get_mut(*to) {
            force.x -= x * pull;
            force.y -= y * pull;
        }
    }
    forces
}
