//! Entries: the indexed form of a memory.
//!
//! An entry depends on a memory's path, text and times alone, so it can be rebuilt at any time. Any change
//! of what is indexed of a text requires a new format version of the index.

mod days;

use std::collections::HashSet;

use quipu_core::model::{Memory, MemoryPath};
use quipu_notes::tokenizer::{Found, Language, Lexicon};
use quipu_notes::{
    Edge, Identifier, LinkTarget, Note, Observation, Reference, Value, alias_key, path_candidates,
    permalink,
};

use crate::card::{Card, LinkRow};
use crate::index::{Document, Documents, Field, Mark, MemoryRow, Space, word};
use days::day_marks;

/// The indexed form of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) card: Card,
    pub(crate) documents: Documents,
}

/// Further fields are not indexed; no one writes this many by hand.
const FIELDS_MAX: usize = 1000;

impl Entry {
    /// Builds the entry of a memory that was read with its text.
    pub(crate) fn read(memory: &Memory, lexicon: &mut Lexicon) -> Self {
        let text = memory.content.as_ref().map_or("", |content| content.as_str());
        let note = Note::parse(memory.path.as_str(), text);
        let reading = Reading { language: note.language, note: &note, text, memory };
        let card = reading.card();
        let row = MemoryRow {
            id: memory.id,
            updated_at: memory.updated_at,
            path: memory.path.as_str().to_owned(),
        };
        let documents = Documents {
            row,
            memory: reading.memory_document(&card, lexicon),
            observations: {
                let observations = note.observations.iter();
                observations.map(|it| reading.observation(it, lexicon)).collect()
            },
            relations: card.links.iter().map(|link| reading.relation(link, lexicon)).collect(),
        };
        Self { card, documents }
    }
}

/// A memory that is being indexed.
struct Reading<'m> {
    memory: &'m Memory,
    note: &'m Note,
    text: &'m str,
    language: Language,
}

impl Reading<'_> {
    fn card(&self) -> Card {
        let (memory, note) = (self.memory, self.note);
        let path = memory.path.as_str();
        let permalink = note.permalink.clone().unwrap_or_else(|| permalink(path));
        let bare_path = path.trim_start_matches('/');
        let bare = bare_path.strip_suffix(".md").unwrap_or(bare_path);
        let stem = bare.rsplit('/').next().unwrap_or(bare);
        let id = memory.id.to_string();
        let names = [&id, bare_path, bare, stem, &note.title, &permalink];
        let aliases = note.aliases.iter().map(String::as_str);
        let names = each_once(names.into_iter().chain(aliases).map(alias_key));
        let link = |(position, edge): (usize, Edge<'_>)| LinkRow {
            from: memory.id,
            position,
            kind: edge.kind.to_owned(),
            target: edge.target.clone(),
            context: edge.context.map(str::to_owned),
            line: edge.line,
        };
        Card {
            memory: memory.id,
            store: memory.store,
            version: memory.version,
            path: memory.path.clone(),
            title: note.title.clone(),
            kind: note.kind.clone(),
            permalink,
            created_at: memory.created_at,
            updated_at: memory.updated_at,
            names,
            links: note.edges().enumerate().map(link).collect(),
        }
    }

    fn memory_document(&self, card: &Card, lexicon: &mut Lexicon) -> Document {
        let note = self.note;
        let body = self.text.get(note.body.clone()).unwrap_or_default();
        let tags = || note.tags.iter().chain(&note.inline_tags).map(String::as_str);
        let fields = fields(note);
        let values = fields.iter().map(|(_, value)| value.as_str());
        let mut words = Words::new(Space::Memories, self.language, lexicon);
        words.add(Field::Title, [note.title.as_str()], Variants::Of(Field::TitleForms));
        words.add(Field::Tags, tags(), Variants::Of(Field::Forms));
        // The headings are in the body too.
        let headings = note.headings.iter().map(|heading| heading.text.as_str());
        words.add(Field::Headings, headings, Variants::Ignored);
        let length = words.add(Field::Body, [body], Variants::Of(Field::Forms));
        words.add_forms(std::iter::once(card.path.as_str()).chain(values));

        let mut marks = self.inherited_marks(Space::Memories);
        let mark = |mark: Mark<'_>| mark.term(Space::Memories);
        let observed = note.observations.iter();
        marks.extend(observed.flat_map(|it| observation_marks(it, Space::Memories)));
        marks.extend(tag_marks(&note.inline_tags, Space::Memories));
        // YAML can escape the byte that ends a key in its term. Such a key would pass for the field
        // before it, with the rest of the key as its value.
        let keyed = fields.iter().filter(|(key, _)| !key.contains('\0'));
        marks.extend(keyed.map(|(key, value)| mark(Mark::Field(key, value))));
        marks.extend(card.names.iter().map(|name| mark(Mark::Name(name))));
        marks.push(mark(Mark::Language(self.language.tag())));
        marks.push(mark(Mark::Title(&card.title)));
        marks.push(mark(Mark::Permalink(&card.permalink)));
        marks.extend(day_marks(self.memory, &card.title, &fields));
        for link in &card.links {
            let keys = link_keys(&card.path, &link.target);
            marks.extend(keys.iter().map(|key| mark(Mark::LinkTo(key))));
        }
        Document { length, words: words.into_found(), marks: distinct(marks) }
    }

    fn observation(&self, observation: &Observation, lexicon: &mut Lexicon) -> Document {
        let mut texts = vec![observation.text.as_str()];
        texts.extend(observation.context.as_deref());
        texts.extend(observation.written_times());
        let mut words = Words::new(Space::Observations, self.language, lexicon);
        words.add(Field::Title, [observation.category.as_str()], Variants::Ignored);
        let tags = observation.tags.iter().map(String::as_str);
        words.add(Field::Tags, tags, Variants::Ignored);
        let length = words.add(Field::Body, texts, Variants::Of(Field::Forms));
        // A fact is searched together with the title of its note.
        words.add_forms([self.note.title.as_str()]);
        let mut marks = self.inherited_marks(Space::Observations);
        marks.extend(observation_marks(observation, Space::Observations));
        Document { length, words: words.into_found(), marks: distinct(marks) }
    }

    fn relation(&self, link: &LinkRow, lexicon: &mut Lexicon) -> Document {
        let context = link.context.as_deref().unwrap_or_default();
        let texts = [link.target.name.as_str(), context, self.note.title.as_str()];
        let mut words = Words::new(Space::Relations, self.language, lexicon);
        words.add(Field::Title, [link.kind.as_str()], Variants::Ignored);
        let length = words.add(Field::Body, texts, Variants::Of(Field::Forms));
        let mut marks = self.inherited_marks(Space::Relations);
        marks.push(Mark::Relation(&link.kind).term(Space::Relations));
        Document { length, words: words.into_found(), marks: distinct(marks) }
    }

    /// Returns the marks of a memory that its observations and relations inherit.
    fn inherited_marks(&self, space: Space) -> Vec<Vec<u8>> {
        let path = &self.memory.path;
        let mut marks = vec![Mark::Type(&self.note.kind).term(space)];
        marks.extend(path.ancestors().map(|place| Mark::Place(place).term(space)));
        marks.push(Mark::Place(path.as_str()).term(space));
        marks.extend(tag_marks(&self.note.tags, space));
        marks
    }
}

/// The words of a document with their fields and positions.
struct Words<'l> {
    space: Space,
    language: Language,
    lexicon: &'l mut Lexicon,
    found: Vec<(Vec<u8>, Field, u32)>,
    /// The words without positions, with duplicates.
    forms: Vec<(Vec<u8>, Field)>,
}

/// What to do with the variants of words.
#[derive(Clone, Copy)]
enum Variants {
    /// They are indexed in this field.
    Of(Field),
    Ignored,
}

impl<'l> Words<'l> {
    fn new(space: Space, language: Language, lexicon: &'l mut Lexicon) -> Self {
        Self { space, language, lexicon, found: Vec::new(), forms: Vec::new() }
    }

    /// Adds the words of separate texts, and returns their number.
    fn add<'t>(
        &mut self,
        field: Field,
        texts: impl IntoIterator<Item = &'t str>,
        variants: Variants,
    ) -> u32 {
        let (mut count, mut position) = (0, 0);
        for text in texts {
            self.lexicon.read(text, self.language, |found| match (found, variants) {
                (Found::Term(term), _) => {
                    self.found.push((word(self.space, term), field, position));
                    count += 1;
                    position += 1;
                }
                (Found::Variant(variant), Variants::Of(field)) => {
                    self.forms.push((word(self.space, variant), field));
                }
                (Found::Variant(_), Variants::Ignored) => {}
            });
            // A gap keeps phrases from spanning two headings or tags.
            position += 1;
        }
        count
    }

    /// Adds the words of texts without their positions.
    fn add_forms<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        for text in texts {
            self.lexicon.read(text, self.language, |found| {
                let (Found::Term(form) | Found::Variant(form)) = found;
                self.forms.push((word(self.space, form), Field::Forms));
            });
        }
    }

    fn into_found(self) -> Vec<(Vec<u8>, Field, u32)> {
        let Self { mut found, forms, .. } = self;
        found.extend(distinct(forms).into_iter().map(|(form, field)| (form, field, 0)));
        found
    }
}

/// Returns the keys that a link may resolve by, seen from its memory.
pub(crate) fn link_keys(from: &MemoryPath, target: &LinkTarget) -> Vec<String> {
    let mut keys = Vec::new();
    for reading in Identifier::from(target).readings() {
        let in_store = reading.split_store().map(|(_, reference)| reference);
        for reference in [reading.reference].into_iter().chain(in_store) {
            let name = match reference {
                Reference::Id(id) => id,
                Reference::Glob(glob) => glob.as_str().to_owned(),
                Reference::Name(name) => name,
            };
            let bare = name.trim_matches('/');
            keys.extend([&name, bare, bare.strip_suffix(".md").unwrap_or(bare)].map(alias_key));
            let paths = path_candidates(&name, Some(from.parent().as_str()));
            let paths = paths.iter().filter(|path| MemoryPath::parse(path).is_ok());
            keys.extend(paths.map(|path| alias_key(path.trim_start_matches('/'))));
        }
    }
    each_once(keys)
}

/// Returns keys without duplicates, in any order.
fn distinct<T: Ord>(mut keys: Vec<T>) -> Vec<T> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns keys without duplicates and empty ones, in their order.
fn each_once<T: AsRef<[u8]> + Clone + Eq + std::hash::Hash>(
    keys: impl IntoIterator<Item = T>,
) -> Vec<T> {
    let mut seen = HashSet::new();
    let keys = keys.into_iter();
    keys.filter(|key| !key.as_ref().is_empty() && seen.insert(key.clone())).collect()
}

/// Returns the marks of tags; a nested tag such as `tea/green` also has that of its parent.
fn tag_marks(tags: &[String], space: Space) -> impl Iterator<Item = Vec<u8>> {
    tags.iter().flat_map(move |tag| {
        let above = tag.match_indices('/').filter_map(|(end, _)| tag.get(..end));
        let above = above.filter(|above| !above.is_empty());
        std::iter::once(tag.as_str()).chain(above).map(move |tag| Mark::Tag(tag).term(space))
    })
}

fn observation_marks(observation: &Observation, space: Space) -> impl Iterator<Item = Vec<u8>> {
    let category = Mark::Category(&observation.category).term(space);
    tag_marks(&observation.tags, space).chain([category])
}

/// Returns the frontmatter fields flattened, lists item by item. A field that contains other values
/// is included without a value of its own.
fn fields(note: &Note) -> Vec<(String, String)> {
    let mut fields =
        vec![("title".to_owned(), note.title.clone()), ("type".to_owned(), note.kind.clone())];
    let tags = note.tags.iter().chain(&note.inline_tags);
    fields.extend(tags.map(|tag| ("tags".to_owned(), tag.clone())));
    fields.extend(note.permalink.iter().map(|link| ("permalink".to_owned(), link.clone())));
    let moments = [("created", note.created), ("modified", note.modified)];
    fields.extend(moments.into_iter().filter_map(|(key, at)| {
        let at = quipu_core::model::Timestamp::from_micros(at?.as_microsecond());
        Some((key.to_owned(), at.to_string()))
    }));
    for (key, value) in &note.metadata {
        flatten(key, value, &mut fields);
    }
    fields.truncate(FIELDS_MAX);
    fields
}

/// Adds a field and what it contains, each list item by item.
pub(crate) fn flatten(key: &str, value: &Value, fields: &mut Vec<(String, String)>) {
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
mod tests;
