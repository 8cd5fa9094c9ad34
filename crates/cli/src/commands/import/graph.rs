//! The knowledge graph of the MCP reference memory server: each entity becomes a note.

use std::collections::{HashMap, HashSet};

use quipu_core::note::{Value, edit, slug};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::failure::Failure;

use super::source::Collected;

/// How long the name of a file may be.
const NAME_CHARS_MAX: usize = 80;

/// A thing that is remembered.
#[derive(Deserialize)]
struct Entity {
    name: String,
    #[serde(default, rename = "entityType")]
    kind: String,
    #[serde(default)]
    observations: Vec<String>,
}

/// What one thing is to another.
#[derive(Deserialize)]
struct Relation {
    from: String,
    to: String,
    #[serde(rename = "relationType")]
    kind: String,
}

/// An entity with everything that is said about it.
struct Draft {
    name: String,
    kind: String,
    path: String,
    observations: Vec<String>,
    relations: Vec<(String, String)>,
}

/// Adds the entities of a graph: one element on each line, or one document with two lists.
pub(super) fn collect(text: &str, into: &mut Collected) -> Result<(), Failure> {
    let mut graph = Graph::default();
    let mut relations = Vec::new();
    for (number, element) in (1..).zip(elements(text)?) {
        let entity = Entity::deserialize(&element);
        let relation = Relation::deserialize(&element);
        match (entity, relation) {
            (Ok(entity), _) => graph.add(entity),
            (_, Ok(relation)) => relations.push(relation),
            (Err(error), Err(_)) => {
                into.skip(format!("element {number}"), format!("it is no entity: {error}"));
            }
        }
    }
    for relation in relations {
        if let Some(reason) = graph.relate(&relation) {
            into.skip(format!("{} {} {}", relation.from, relation.kind, relation.to), reason);
        }
    }
    for draft in &graph.drafts {
        into.add(draft.name.clone(), draft.path.clone(), graph.note(draft)?);
    }
    Ok(())
}

fn elements(text: &str) -> Result<Vec<Json>, Failure> {
    let mut elements = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Json>() {
        let wrong = |error| Failure::usage(format!("the file is no JSON: {error}"));
        let mut document = document.map_err(wrong)?;
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
    drafts: Vec<Draft>,
    places: HashMap<String, usize>,
    paths: HashSet<String>,
}

impl Graph {
    /// Adds an entity, or what is new about one that is there.
    fn add(&mut self, entity: Entity) {
        if let Some(known) = self.places.get(&entity.name).and_then(|at| self.drafts.get_mut(*at)) {
            let new = entity.observations.into_iter();
            let new: Vec<_> = new.filter(|it| !known.observations.contains(it)).collect();
            known.observations.extend(new);
            return;
        }
        let kind = if entity.kind.trim().is_empty() { "entity" } else { entity.kind.trim() };
        let name: String = slug(&entity.name).chars().take(NAME_CHARS_MAX).collect();
        let base = format!("/{}/{name}", slug(kind));
        let mut path = format!("{base}.md");
        let mut number = 0;
        while self.paths.contains(&path) {
            number += 1;
            path = format!("{base}-{number}.md");
        }
        self.paths.insert(path.clone());
        self.places.insert(entity.name.clone(), self.drafts.len());
        self.drafts.push(Draft {
            kind: kind.to_owned(),
            name: entity.name,
            path,
            observations: entity.observations,
            relations: Vec::new(),
        });
    }

    /// Adds a relation to its entity; returns why not, if it cannot.
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

    fn note(&self, draft: &Draft) -> Result<String, Failure> {
        let mut body = format!("\n# {}\n", one_line(&draft.name));
        if !draft.observations.is_empty() {
            body += "\n## Observations\n\n";
        }
        for observation in &draft.observations {
            let lines: Vec<_> =
                observation.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
            body += &format!("- [observation] {}\n", lines.join("\n  "));
        }
        if !draft.relations.is_empty() {
            body += "\n## Relations\n\n";
        }
        for (kind, target) in &draft.relations {
            body += &format!("- {} {}\n", relation_kind(kind), self.link(target));
        }
        let fields = [("title", &draft.name), ("type", &draft.kind)];
        let fields =
            fields.map(|(key, text)| (key.to_owned(), Some(Value::from(one_line(text).as_str()))));
        edit::set_metadata(&body, &fields).map_err(|error| Failure::other(error.to_string()))
    }

    /// Returns a link by title, or by path if the title holds signs that mean something in links.
    fn link(&self, name: &str) -> String {
        let name = one_line(name);
        if !name.contains(['[', ']', '|', '#']) && !name.contains("::") {
            return format!("[[{name}]]");
        }
        let shown = name.replace(['[', ']', '|'], " ");
        match self.places.get(&name).and_then(|at| self.drafts.get(*at)) {
            Some(draft) => format!("[[{}|{}]]", draft.path, shown.trim()),
            None => format!("[[{}]]", shown.replace(['#', ':'], " ").trim()),
        }
    }
}

/// Returns a relation's kind as notes write it: one word, or several in quotes.
fn relation_kind(kind: &str) -> String {
    let kind = one_line(kind).replace(['"', '[', ']', '`', '\\'], "");
    match kind.contains(char::is_whitespace) {
        true => format!("\"{kind}\""),
        false if kind.is_empty() => "relates_to".to_owned(),
        false => kind,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
