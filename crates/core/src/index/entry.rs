//! Entries: everything that the index keeps of one memory.

use std::collections::HashSet;

use crate::model::{Memory, MemoryId, MemoryPath};
use crate::note::{self, Identifier, Note, Observation, Reference, Target, Value, alias_key};

use super::document::{extra, joined, spaced};
use super::terms::TERM_APART;
use super::{Document, LinkRow, Mark, NoteRow, terms};

/// Everything that the index keeps of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What the memory is called.
    pub row: NoteRow,
    /// Every name that it can be called by, in the form of [`alias_key`], each once.
    pub names: Vec<String>,
    /// Its terms.
    pub document: Document,
    /// The fields of its frontmatter as flat texts: `author.name`, `Ada`.
    pub fields: Vec<(String, String)>,
    /// Its links, in their order.
    pub links: Vec<IndexedLink>,
    /// Its observations and links, as documents of their own.
    pub facts: Vec<Fact>,
}

/// A link with the keys by which it is found from its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedLink {
    /// The link.
    pub row: LinkRow,
    /// Its keys: whatever the link means has at least one of these among its names.
    pub keys: Vec<String>,
}

/// A document inside a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is.
    pub kind: FactKind,
    /// Its place among those of its kind in the memory, from 0.
    pub position: usize,
    /// Its terms.
    pub document: Document,
}

/// What a document inside a memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactKind {
    /// An observation.
    Observation,
    /// A relation or another link.
    Relation,
}

/// Fields beyond these are not kept; no person writes as many.
const FIELDS_MAX: usize = 1000;

impl Entry {
    /// Makes the entry of a memory that was read with its text.
    pub fn read(memory: &Memory) -> Self {
        let text = memory.content.as_ref().map_or("", |content| content.as_str());
        let note = Note::parse(&memory.path, text);
        let row = row(memory, &note);
        let inherited = inherited_marks(&memory.path, &note);
        let marks = marks(&inherited, &note);
        let links: Vec<_> = links(memory.id, &memory.path, &note);
        Self {
            names: names(&row, &note),
            document: document(&memory.path, &note, text, &marks),
            fields: fields(&note),
            facts: facts(&note, &links, &inherited),
            links,
            row,
        }
    }
}

fn row(memory: &Memory, note: &Note) -> NoteRow {
    let permalink = note.permalink.clone().unwrap_or_else(|| note::permalink(&memory.path));
    NoteRow {
        memory: memory.id,
        store: memory.store,
        version: memory.version,
        path: memory.path.clone(),
        title: note.title.clone(),
        kind: note.kind.clone(),
        permalink,
        created_at: memory.created_at,
        updated_at: memory.updated_at,
    }
}

fn names(row: &NoteRow, note: &Note) -> Vec<String> {
    let path = row.path.as_str().trim_start_matches('/');
    let bare = path.strip_suffix(".md").unwrap_or(path);
    let stem = bare.rsplit('/').next().unwrap_or(bare);
    let names = [&row.memory.to_string(), path, bare, stem, &row.title, &row.permalink];
    let aliases = note.aliases.iter().map(|alias| alias_key(alias));
    each_once(names.into_iter().map(alias_key).chain(aliases))
}

/// Returns the keys by which a link is found from whatever it may mean, seen from its memory.
fn target_keys(from: &MemoryPath, target: &Target) -> Vec<String> {
    let mut keys = Vec::new();
    for reading in Identifier::of(target).readings() {
        let in_store = reading.with_store().map(|(_, reference)| reference);
        for reference in [reading.reference].into_iter().chain(in_store) {
            let name = match reference {
                Reference::Id(id) => id.to_string(),
                Reference::Glob(glob) => glob.as_str().to_owned(),
                Reference::Name(name) => name,
            };
            let bare = name.trim_matches('/');
            keys.extend([&name, bare, bare.strip_suffix(".md").unwrap_or(bare)].map(alias_key));
            let paths = note::path_candidates(&name, Some(&from.parent()));
            keys.extend(paths.iter().map(|path| alias_key(path.as_str().trim_start_matches('/'))));
        }
    }
    each_once(keys.into_iter())
}

fn each_once(keys: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    keys.filter(|key| !key.is_empty() && seen.insert(key.clone())).collect()
}

fn document(path: &MemoryPath, note: &Note, text: &str, marks: &[String]) -> Document {
    let body = text.get(note.body.clone()).unwrap_or_default();
    let tags = || note.tags.iter().chain(&note.inline_tags).map(String::as_str);
    let headings = || note.headings.iter().map(|heading| heading.text.as_str());
    let values: Vec<_> = fields(note).into_iter().map(|(_, value)| value).collect();
    let title = joined([note.title.as_str()]);
    let further_of_title = extra([note.title.as_str()]);
    let apart = further_of_title.iter().flat_map(|term| [TERM_APART, term.as_str()]);
    let mut further = extra(std::iter::once(body).chain(tags()));
    let path_and_values =
        || std::iter::once(path.as_str()).chain(values.iter().map(String::as_str));
    further.extend(path_and_values().flat_map(terms).map(|term| term.text));
    further.extend(extra(path_and_values()));
    Document {
        title: spaced(std::iter::once(title.as_str()).filter(|it| !it.is_empty()).chain(apart)),
        tags: joined(tags()),
        headings: joined(headings()),
        body: joined([body]),
        extra: spaced(further.iter().map(String::as_str)),
        marks: spaced(marks.iter().map(String::as_str)),
    }
}

/// Returns the marks of a memory that everything in it has too.
fn inherited_marks(path: &MemoryPath, note: &Note) -> Vec<String> {
    let mut marks = vec![Mark::Any.term(), Mark::Kind(&note.kind).term()];
    marks.extend(path.ancestors().map(|place| Mark::Place(place).term()));
    marks.push(Mark::Place(path.as_str()).term());
    marks.extend(tag_marks(&note.tags));
    each_once(marks.into_iter())
}

/// Returns the marks of tags; one inside of another, as `tea/green`, has that of both.
fn tag_marks(tags: &[String]) -> impl Iterator<Item = String> {
    tags.iter().flat_map(|tag| {
        let above = tag.match_indices('/').filter_map(|(end, _)| tag.get(..end));
        let above = above.filter(|above| !above.is_empty());
        std::iter::once(tag.as_str()).chain(above).map(|tag| Mark::Tag(tag).term())
    })
}

/// Returns the marks of a memory, those of its observations among them.
fn marks(inherited: &[String], note: &Note) -> Vec<String> {
    let observed = note.observations.iter().flat_map(observation_marks);
    let inline = tag_marks(&note.inline_tags);
    each_once(inherited.iter().cloned().chain(inline).chain(observed))
}

fn observation_marks(observation: &Observation) -> impl Iterator<Item = String> {
    let category = Mark::Category(&observation.category).term();
    tag_marks(&observation.tags).chain([category])
}

fn links(from: MemoryId, path: &MemoryPath, note: &Note) -> Vec<IndexedLink> {
    let indexed = |(position, edge): (usize, note::Edge<'_>)| IndexedLink {
        keys: target_keys(path, edge.target),
        row: LinkRow {
            from,
            position,
            kind: edge.kind.to_owned(),
            target: edge.target.clone(),
            context: edge.context.map(str::to_owned),
            line: edge.line,
        },
    };
    note.edges().enumerate().map(indexed).collect()
}

fn facts(note: &Note, links: &[IndexedLink], inherited: &[String]) -> Vec<Fact> {
    let marked = |own: Vec<String>| {
        let marks = each_once(inherited.iter().cloned().chain(own));
        spaced(marks.iter().map(String::as_str))
    };
    // A fact is looked for together with what it is about.
    let mut about = extra([note.title.as_str()]);
    about.extend(terms(&note.title).into_iter().map(|term| term.text));
    let observations = note.observations.iter().enumerate().map(|(position, observation)| {
        let mut texts = vec![observation.text.as_str()];
        texts.extend(observation.context.as_deref());
        texts.extend(observation.written_times());
        let mut further = extra(texts.iter().copied());
        further.extend(about.iter().cloned());
        Fact {
            kind: FactKind::Observation,
            position,
            document: Document {
                title: joined([observation.category.as_str()]),
                tags: joined(observation.tags.iter().map(String::as_str)),
                headings: String::new(),
                extra: spaced(further.iter().map(String::as_str)),
                body: joined(texts),
                marks: marked(observation_marks(observation).collect()),
            },
        }
    });
    let relations = links.iter().map(|link| {
        let LinkRow { kind, target, context, position, .. } = &link.row;
        let texts =
            [target.name.as_str(), context.as_deref().unwrap_or_default(), note.title.as_str()];
        Fact {
            kind: FactKind::Relation,
            position: *position,
            document: Document {
                title: joined([kind.as_str()]),
                tags: String::new(),
                headings: String::new(),
                body: joined(texts),
                extra: spaced(extra(texts).iter().map(String::as_str)),
                marks: marked(vec![Mark::Relation(kind).term()]),
            },
        }
    });
    observations.chain(relations).collect()
}

/// Returns the fields of the frontmatter as flat texts, lists item by item. What holds other values
/// is there too, without a value of its own.
fn fields(note: &Note) -> Vec<(String, String)> {
    let mut fields =
        vec![("title".to_owned(), note.title.clone()), ("type".to_owned(), note.kind.clone())];
    let tags = note.tags.iter().chain(&note.inline_tags);
    fields.extend(tags.map(|tag| ("tags".to_owned(), tag.clone())));
    fields.extend(note.permalink.iter().map(|link| ("permalink".to_owned(), link.clone())));
    let moments = [("created", note.created), ("modified", note.modified)];
    let moments =
        moments.into_iter().filter_map(|(key, at)| Some((key.to_owned(), at?.to_string())));
    fields.extend(moments);
    for (key, value) in &note.metadata {
        flatten(key, value, &mut fields);
    }
    fields.truncate(FIELDS_MAX);
    fields
}

fn flatten(key: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    if fields.len() >= FIELDS_MAX {
        return;
    }
    match value {
        Value::Null => fields.push((key.to_owned(), String::new())),
        Value::Text(text) => fields.push((key.to_owned(), text.clone())),
        Value::List(items) if items.is_empty() => fields.push((key.to_owned(), String::new())),
        Value::List(items) => items.iter().for_each(|item| flatten(key, item, fields)),
        Value::Map(entries) => {
            fields.push((key.to_owned(), String::new()));
            for (inner, value) in entries {
                flatten(&format!("{key}.{inner}"), value, fields);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TermQuery;
    use super::super::term_query::{TEXT, TITLE};
    use super::*;

    fn document_of(title: &str) -> Document {
        let path = MemoryPath::parse("/x.md").unwrap();
        let note = Note::parse(&path, &format!("---\ntitle: {title}\n---\n"));
        document(&path, &note, "", &[])
    }

    #[test]
    fn phrases_find_what_stands_beside_each_other_in_a_title() {
        for (title, phrases) in [
            ("Tea fooBar", ["foobar bar", "bar foo", "foobar foo", "foo bar"]),
            ("Running parseJson tests", ["test json", "tests json", "json parse", "json running"]),
        ] {
            for query in phrases.iter().flat_map(|phrase| {
                [TermQuery::phrase(phrase, TEXT), TermQuery::prefix(phrase, TITLE)]
            }) {
                assert!(!query.unwrap().accepts(&document_of(title)), "{phrases:?} {title}");
            }
        }
        let document = document_of("Running parseJson tests");
        for phrase in ["running parsejson", "parseJson test", "tests", "running"] {
            assert!(TermQuery::phrase(phrase, TITLE).unwrap().accepts(&document), "{phrase}");
        }
        for word in ["json", "parse", "parse_json", "runn"] {
            let query = [TermQuery::word(word, TITLE), TermQuery::prefix(word, TITLE)];
            let query = TermQuery::Or(query.into_iter().flatten().collect());
            assert!(query.accepts(&document), "{word}");
        }
    }
}
