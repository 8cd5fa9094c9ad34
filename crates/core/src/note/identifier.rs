//! What a person, a model or a link can call a memory.
//!
//! Which memory it is depends on what the store holds. The order in which to try is: the id, a
//! path ([`path_candidates`]), a permalink, an exact title (the [`Nearness`] decides between
//! several), an alias ([`alias_key`]) that only one memory has.

use unicode_normalization::UnicodeNormalization as _;

use super::links::{around, has_memory_extension, percent_decoded, store_and_name};
use super::{Glob, Target};
use crate::model::{Directory, MemoryId, MemoryPath};

const SCHEME: &str = "memory://";

/// What a text calls a memory, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier {
    /// The store, if the text names one for certain.
    pub store: Option<String>,
    /// What is called.
    pub reference: Reference,
    /// The section that follows a `#`, unless that belongs to the name.
    pub section: Option<String>,
    /// Whether the text was a `memory://` URL, whose first segment may name a store.
    pub is_url: bool,
    /// The sign after the store, with the spaces that stand beside it.
    store_sign: String,
    /// The sign before the section, with the spaces that stand beside it.
    section_sign: String,
}

/// The kinds of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The id of a memory.
    Id(MemoryId),
    /// All paths and permalinks that fit a pattern.
    Glob(Glob),
    /// A path, a permalink, a title or an alias.
    Name(String),
}

impl Identifier {
    /// Reads an id, a path, a permalink, a title, a `memory://` URL, a pattern or a wiki link.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let linked = text.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
        if let Some(target) = linked.and_then(Target::parse) {
            return Self::of(&target);
        }
        match text.get(..SCHEME.len()).filter(|start| start.eq_ignore_ascii_case(SCHEME)) {
            Some(_) => {
                let rest = text.get(SCHEME.len()..).unwrap_or_default();
                let (place, section) = match rest.split_once('#') {
                    Some((place, section)) if !place.is_empty() => (place, Some(section)),
                    Some(_) | None => (rest, None),
                };
                let section = section.map(percent_decoded).filter(|it| !it.is_empty());
                Self { is_url: true, section, ..Self::named(&percent_decoded(place)) }
            }
            None => Self::named(text),
        }
    }

    fn named(name: &str) -> Self {
        Self {
            store: None,
            reference: Reference::parse(name),
            section: None,
            is_url: false,
            store_sign: "::".to_owned(),
            section_sign: "#".to_owned(),
        }
    }

    /// Returns what the target of a link is called.
    pub fn of(target: &Target) -> Self {
        let mut found = Self::parse(&target.name);
        let mut name = target.name.trim();
        found.store.clone_from(&target.store);
        found.section = target.section.clone().or(found.section);
        if found.is_url {
            return found;
        }
        // What has no spaces beside it was read as a sign already, or is none.
        if let (None, Some((store, sign, rest))) = (&found.store, store_and_name(name))
            && sign != "::"
        {
            (found.store, found.store_sign, name) = (Some(store.to_owned()), sign.to_owned(), rest);
        }
        if let (None, Some((rest, sign, section))) = (&found.section, around(name, "#"))
            && sign != "#"
            && !has_memory_extension(section)
        {
            found.section_sign = sign.to_owned();
            (found.section, name) = (Some(section.to_owned()), rest);
        }
        Self { reference: Reference::parse(name), ..found }
    }

    /// Returns the ways to read it, in the order in which to try them: `#` and `::` may belong to a
    /// title, as in `C# tips` and `std::vector`.
    pub fn readings(&self) -> Vec<Self> {
        let plain = Self { section: None, ..self.clone() };
        let Some(name) = self.reference.name() else { return vec![plain] };
        let mut names = Vec::new();
        if let Some(section) = &self.section {
            // Of several signs all, all but the last, or none may belong to the name.
            let most = section.rsplit_once('#').map(|(most, _)| most.trim_end());
            let sections = std::iter::once(section.as_str()).chain(most);
            names.extend(sections.map(|section| format!("{name}{}{section}", self.section_sign)));
        }
        names.push(name.to_owned());
        names.extend(name.strip_suffix('#').map(|name| name.trim_end().to_owned()));
        let mut readings = Vec::new();
        if let Some(store) = &self.store {
            let sign = &self.store_sign;
            readings.extend(names.iter().map(|name| Self::named(&format!("{store}{sign}{name}"))));
        }
        let here = |name: &String| Self { reference: Reference::parse(name), ..plain.clone() };
        readings.extend(names.iter().map(here));
        readings
    }

    /// Splits a URL into the store that its first segment may name, and what is called in it.
    ///
    /// Whether there is such a store decides which reading is right; `None` if there is only one.
    pub fn with_store(&self) -> Option<(&str, Reference)> {
        let (store, rest) = self.reference.name()?.split_once('/')?;
        (self.is_url && !store.is_empty() && !store.contains(['*', '?']) && !rest.is_empty())
            .then(|| (store, Reference::parse(rest)))
    }
}

impl Reference {
    /// Returns the name or pattern; `None` if it is an id.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Id(_) => None,
            Self::Glob(glob) => Some(glob.as_str()),
            Self::Name(name) => Some(name),
        }
    }

    fn parse(text: &str) -> Self {
        if let Ok(id) = text.parse() {
            Self::Id(id)
        } else if text.contains('*') {
            Self::Glob(Glob::new(text))
        } else {
            Self::Name(text.to_owned())
        }
    }
}

/// Returns the paths that a name can mean, seen from a directory, the likeliest first.
///
/// `./` and `../` are seen from the directory; a name with the extension of a memory from the
/// directory and then from the root, as links to files are written both ways; anything else from
/// the root. Each is tried as it is and with `.md`.
pub fn path_candidates(name: &str, from: Option<&Directory>) -> Vec<MemoryPath> {
    let is_relative = name.starts_with("./") || name.starts_with("../");
    let is_near = is_relative || has_memory_extension(name);
    let near = from.filter(|_| is_near).and_then(|from| walked(from.as_str(), name));
    let is_rooted = !is_relative || from.is_none();
    let rooted = if is_rooted { walked("/", name) } else { None };
    let mut found = Vec::new();
    for path in near.into_iter().chain(rooted) {
        for path in [MemoryPath::parse(&path), MemoryPath::parse(&format!("{path}.md"))] {
            found.extend(path.ok().filter(|path| !found.contains(path)));
        }
    }
    found
}

/// Goes from a directory along a path; `None` above the root.
fn walked(from: &str, path: &str) -> Option<String> {
    let start = if path.starts_with('/') { "/" } else { from };
    let mut segments: Vec<&str> = start.split('/').filter(|it| !it.is_empty()).collect();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()?),
            name => segments.push(name),
        }
    }
    (!segments.is_empty()).then(|| format!("/{}", segments.join("/")).nfc().collect())
}

/// Returns what a name is when case, `_`, `-` and spaces make no difference, nor spaces around `#`,
/// as in `C# tips` and `memory://c#tips`.
pub fn alias_key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for character in name.nfc().flat_map(char::to_lowercase) {
        match character {
            '_' | '-' => push_gap(&mut key),
            space if space.is_whitespace() => push_gap(&mut key),
            '#' => {
                key.truncate(key.trim_end_matches('-').len());
                key.push('#');
            }
            other => key.push(other),
        }
    }
    key.truncate(key.trim_end_matches('-').len());
    key
}

fn push_gap(key: &mut String) {
    if !key.is_empty() && !key.ends_with(['-', '#']) {
        key.push('-');
    }
}

/// How near a memory is to a place; the smallest is the nearest.
///
/// The same folder comes first, then the folders above, those below, all others; in each the
/// shortest path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nearness {
    zone: Zone,
    path_size: usize,
    path: MemoryPath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    Same,
    Above,
    Below,
    Elsewhere,
}

impl Nearness {
    /// Measures how near a path is to a directory.
    pub fn new(from: &Directory, path: &MemoryPath) -> Self {
        let parent = path.parent();
        let zone = if parent == *from {
            Zone::Same
        } else if parent.contains_directory(from) {
            Zone::Above
        } else if from.contains_directory(&parent) {
            Zone::Below
        } else {
            Zone::Elsewhere
        };
        Self { zone, path_size: path.as_str().len(), path: path.clone() }
    }
}
