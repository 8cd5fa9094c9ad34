//! The knowledge graph of the MCP reference memory server: each entity becomes a note.

use quipu_notes::{Value, edit, slug};
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::failure::Failure;

use super::conversation::cut;
use super::json::JsonFile;
use super::source::{Collected, Mark, StableId, TITLE_FIELD, short_hash};

/// The maximum length of a file name.
const NAME_CHARS_MAX: usize = 80;
/// The maximum size of a part's frontmatter and headings.
const FRAME_SIZE_BYTES: usize = 4096;

/// An entity of the graph.
#[derive(Deserialize)]
struct Entity {
    name: String,
    #[serde(default, rename = "entityType")]
    kind: String,
    #[serde(default)]
    observations: Vec<String>,
}

/// A relation between two entities.
#[derive(Deserialize)]
struct Relation {
    from: String,
    to: String,
    #[serde(rename = "relationType")]
    kind: String,
}

/// An entity with its observations and relations.
struct Draft {
    name: String,
    kind: String,
    /// Its path without the extension.
    base: String,
    observations: Vec<String>,
    relations: Vec<(String, String)>,
}

/// Adds the entities of a graph: an element on each line, a single list, or a document with two
/// lists.
pub(super) fn collect(file: &JsonFile, size_max: u64, into: &mut Collected) -> Result<(), Failure> {
    let mut graph = Graph { directory: into.directory.clone(), ..Graph::default() };
    let mut relations = Vec::new();
    for (number, element) in (1..).zip(elements(file)?) {
        let entity = Entity::deserialize(&element);
        let relation = Relation::deserialize(&element);
        match (entity, relation) {
            (Ok(entity), _) => graph.add(entity),
            (_, Ok(relation)) => relations.push(relation),
            (Err(error), Err(_)) => {
                let element = format!("{}, element {number}", file.name);
                into.skip(element, format!("it is no entity: {error}"));
            }
        }
    }
    for relation in relations {
        if let Some(reason) = graph.relate(&relation) {
            into.skip(format!("{} {} {}", relation.from, relation.kind, relation.to), reason);
        }
    }
    graph.tell_apart();
    let room = usize::try_from(size_max).unwrap_or(usize::MAX).saturating_sub(FRAME_SIZE_BYTES);
    for draft in &graph.drafts {
        for (number, part) in (1..).zip(graph.parts(draft, room.max(FRAME_SIZE_BYTES))) {
            let (suffix, title) = match number {
                1 => (String::new(), one_line(&draft.name)),
                number => (
                    format!("-part-{number}"),
                    format!("{} (part {number})", one_line(&draft.name)),
                ),
            };
            let text = draft.note(&title, &part)?;
            let stable_id = StableId::Name {
                endings: draft.names().map(|name| format!("{name}{suffix}.md")).to_vec(),
                mark: Mark { field: TITLE_FIELD, value: title.clone() },
            };
            into.add_stable(title, format!("{}{suffix}.md", draft.base), Some(stable_id), text);
        }
    }
    Ok(())
}

fn elements(file: &JsonFile) -> Result<Vec<Json>, Failure> {
    let mut elements = Vec::new();
    for mut document in file.documents()? {
        let lists = ["entities", "relations"].map(|key| document.get_mut(key).map(Json::take));
        if lists.iter().all(Option::is_none) {
            elements.push(document);
            continue;
        }
        for list in lists.into_iter().flatten() {
            elements.extend(list.as_array().cloned().unwrap_or_default());
        }
    }
    Ok(elements)
}

#[derive(Default)]
struct Graph {
    /// The directory of the store to import into.
    directory: String,
    drafts: Vec<Draft>,
    places: HashMap<String, usize>,
}

impl Graph {
    /// Adds an entity, or what is new about a known one.
    fn add(&mut self, entity: Entity) {
        if let Some(known) = self.places.get(&entity.name).and_then(|at| self.drafts.get_mut(*at)) {
            let new = entity.observations.into_iter();
            let new: Vec<_> = new.filter(|it| !known.observations.contains(it)).collect();
            known.observations.extend(new);
            return;
        }
        let kind = if entity.kind.trim().is_empty() { "entity" } else { entity.kind.trim() };
        let name = short_slug(&entity.name);
        self.places.insert(entity.name.clone(), self.drafts.len());
        self.drafts.push(Draft {
            base: format!("/{}/{name}", slug(kind)),
            kind: kind.to_owned(),
            name: entity.name,
            observations: entity.observations,
            relations: Vec::new(),
        });
    }

    /// Makes paths unique, independent of the order of the entities.
    fn tell_apart(&mut self) {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for draft in &self.drafts {
            *counts.entry(draft.base.clone()).or_default() += 1;
        }
        for draft in &mut self.drafts {
            if counts.get(&draft.base).is_some_and(|count| *count > 1) {
                draft.base = format!("{}-{}", draft.base, short_hash(&draft.name));
            }
        }
    }

    /// Adds a relation to its entity; fails with the reason if it cannot.
    fn relate(&mut self, relation: &Relation) -> Option<String> {
        let Some(draft) = self.places.get(&relation.from).and_then(|at| self.drafts.get_mut(*at))
        else {
            return Some(format!("there is no entity `{}`", relation.from));
        };
        let pair = (relation.kind.clone(), relation.to.clone());
        if !draft.relations.contains(&pair) {
            draft.relations.push(pair);
        }
        None
    }

    /// Returns an entity as markdown, split into parts of limited size.
    fn parts(&self, draft: &Draft, room: usize) -> Vec<String> {
        let observations = draft.observations.iter().flat_map(|observation| {
            let lines = observation.lines().map(str::trim).filter(|it| !it.is_empty());
            pieces(&lines.collect::<Vec<_>>().join("\n  "), room)
        });
        let observations =
            observations.map(|piece| ("Observations", format!("- [observation] {piece}\n")));
        let relations = draft.relations.iter().map(|(kind, target)| {
            ("Relations", format!("- {} {}\n", relation_kind(kind), self.link(target)))
        });
        let mut parts = vec![String::new()];
        let mut current = "";
        for (heading, line) in observations.chain(relations) {
            let used = parts.last().map_or(0, String::len);
            if used > 0 && used + line.len() > room {
                current = "Relations";
                let first = self.link(&draft.name);
                parts.push(format!("\n## {current}\n\n- part_of {first}\n"));
            }
            let Some(part) = parts.last_mut() else { continue };
            if heading != current {
                part.push_str(&format!("\n## {heading}\n\n"));
                current = heading;
            }
            part.push_str(&line);
        }
        parts
    }

    /// Returns a link by title, or by path if the title contains characters with a meaning in
    /// links.
    fn link(&self, name: &str) -> String {
        let name = one_line(name);
        if !name.contains(['[', ']', '|', '#']) && !name.contains("::") {
            return format!("[[{name}]]");
        }
        let shown = name.replace(['[', ']', '|'], " ");
        match self.places.get(&name).and_then(|at| self.drafts.get(*at)) {
            Some(draft) => format!("[[{}{}.md|{}]]", self.directory, draft.base, shown.trim()),
            None => format!("[[{}]]", shown.replace(['#', ':'], " ").trim()),
        }
    }
}

impl Draft {
    /// Returns the possible names of the entity's file: that without and that with a collision.
    fn names(&self) -> [String; 2] {
        let name = short_slug(&self.name);
        let told_apart = format!("{name}-{}", short_hash(&self.name));
        [name, told_apart]
    }

    fn note(&self, title: &str, part: &str) -> Result<String, Failure> {
        let body = format!("\n# {title}\n{part}");
        let fields = [("title", title), ("type", &one_line(&self.kind))];
        let fields = fields.map(|(key, text)| (key.to_owned(), Some(Value::from(text))));
        edit::set_metadata(&body, &fields).map_err(|error| Failure::other(error.to_string()))
    }
}

/// Splits a text that is longer than a part.
fn pieces(text: &str, size_max: usize) -> Vec<String> {
    let (first, mut rest) = cut(text, size_max);
    let mut pieces = vec![first.trim_end().to_owned()];
    while !rest.trim().is_empty() {
        let (piece, after) = cut(rest.trim_start(), size_max);
        pieces.push(piece.trim_end().to_owned());
        rest = after;
    }
    pieces
}

/// Returns the kind of a relation as written in notes: one word, or several in quotes.
fn relation_kind(kind: &str) -> String {
    let kind = one_line(kind).replace(['"', '[', ']', '`', '\\'], "");
    match kind.contains(char::is_whitespace) {
        true => format!("\"{kind}\""),
        false if kind.is_empty() => "relates_to".to_owned(),
        false => kind,
    }
}

fn short_slug(name: &str) -> String {
    slug(name).chars().take(NAME_CHARS_MAX).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
