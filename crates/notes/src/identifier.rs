//! Identifiers: how people, models and links refer to a memory.
//!
//! What an identifier resolves to depends on the store. The order of resolution is: id, path
//! ([`path_candidates`]), permalink, exact title (the nearest one, see [`Proximity`]), unique alias
//! ([`alias_key`]).

#[cfg(test)]
mod tests;

use unicode_normalization::UnicodeNormalization as _;

use crate::note::links::{has_memory_extension, percent_decoded, split_around, store_and_name};
use crate::{Glob, LinkTarget};

const SCHEME: &str = "memory://";
/// The length of a memory's id after its prefix.
const ID_CHARS: usize = 24;

/// A parsed reference to one or more memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier {
    /// The store, if the text names one unambiguously.
    pub store: Option<String>,
    /// What is referred to.
    pub reference: Reference,
    /// The section after a `#`, unless the `#` belongs to the name.
    pub section: Option<String>,
    /// Whether the text is a `memory://` URL, whose first segment may name a store.
    pub is_url: bool,
    /// The separator after the store, including spaces.
    store_separator: String,
    /// The separator before the section, including spaces.
    section_separator: String,
}

/// What an identifier refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A text in the form of a memory's id: `mem_` and 24 letters and digits. Whether the id is
    /// valid is for the caller to check.
    Id(String),
    /// All memories whose path or permalink matches a pattern.
    Glob(Glob),
    /// A path, a permalink, a title or an alias.
    Name(String),
}

impl Identifier {
    /// Parses an id, a path, a permalink, a title, a `memory://` URL, a pattern or a wiki link.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let linked = text.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
        if let Some(target) = linked.and_then(LinkTarget::parse) {
            return Self::from(&target);
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
            store_separator: "::".to_owned(),
            section_separator: "#".to_owned(),
        }
    }

    /// Returns the possible interpretations, in the order to try them: `#` and `::` may be part of
    /// a title, as in `C# tips` and `std::vector`.
    pub fn readings(&self) -> Vec<Self> {
        let plain = Self { section: None, ..self.clone() };
        let Some(name) = self.reference.name() else { return vec![plain] };
        let mut names = Vec::new();
        if let Some(section) = &self.section {
            // Of several `#`, all, all but the last, or none may be part of the name.
            let most = section.rsplit_once('#').map(|(most, _)| most.trim_end());
            let sections = std::iter::once(section.as_str()).chain(most);
            names.extend(
                sections.map(|section| format!("{name}{}{section}", self.section_separator)),
            );
        }
        names.push(name.to_owned());
        names.extend(name.strip_suffix('#').map(|name| name.trim_end().to_owned()));
        let mut readings = Vec::new();
        if let Some(store) = &self.store {
            let separator = &self.store_separator;
            readings
                .extend(names.iter().map(|name| Self::named(&format!("{store}{separator}{name}"))));
        }
        let here = |name: &String| Self { reference: Reference::parse(name), ..plain.clone() };
        readings.extend(names.iter().map(here));
        readings
    }

    /// Splits a URL into the store that its first segment may name, and the rest.
    ///
    /// The caller checks whether there is such a store. `None` if the first segment cannot be one.
    pub fn split_store(&self) -> Option<(&str, Reference)> {
        let (store, rest) = self.reference.name()?.split_once('/')?;
        (self.is_url && !store.is_empty() && !store.contains(['*', '?']) && !rest.is_empty())
            .then(|| (store, Reference::parse(rest)))
    }
}

impl From<&LinkTarget> for Identifier {
    /// Returns the identifier of a link's target.
    fn from(target: &LinkTarget) -> Self {
        let mut found = Self::parse(&target.name);
        let mut name = target.name.trim();
        found.store.clone_from(&target.store);
        found.section = target.section.clone().or(found.section);
        if found.is_url {
            return found;
        }
        // Separators without spaces have been split off when the target was parsed.
        if let (None, Some((store, separator, rest))) = (&found.store, store_and_name(name))
            && separator != "::"
        {
            (found.store, found.store_separator, name) =
                (Some(store.to_owned()), separator.to_owned(), rest);
        }
        if let (None, Some((rest, separator, section))) = (&found.section, split_around(name, "#"))
            && separator != "#"
            && !has_memory_extension(section)
        {
            found.section_separator = separator.to_owned();
            (found.section, name) = (Some(section.to_owned()), rest);
        }
        Self { reference: Reference::parse(name), ..found }
    }
}

impl Reference {
    /// Returns the name or pattern; `None` for an id.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Id(_) => None,
            Self::Glob(glob) => Some(glob.as_str()),
            Self::Name(name) => Some(name),
        }
    }

    fn parse(text: &str) -> Self {
        if looks_like_id(text) {
            Self::Id(text.to_owned())
        } else if text.contains('*') {
            Self::Glob(Glob::new(text))
        } else {
            Self::Name(text.to_owned())
        }
    }
}

/// Returns whether a text has the form of a memory's id.
fn looks_like_id(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric();
    text.strip_prefix("mem_").is_some_and(|it| it.len() == ID_CHARS && it.bytes().all(is_digit))
}

/// Returns the paths that a name may refer to, seen from a directory, the likeliest first.
///
/// `./` and `../` are relative to the directory. A name with a memory's file extension is tried
/// relative to the directory and then to the root, since links to files are written both ways. All
/// other names are relative to the root. Each path is followed by the same path with `.md`.
///
/// The paths are absolute and normalized, but may break other rules of paths, such as length
/// limits. A directory begins and ends with a slash.
pub fn path_candidates(name: &str, from: Option<&str>) -> Vec<String> {
    let is_relative = name.starts_with("./") || name.starts_with("../");
    let is_near = is_relative || has_memory_extension(name);
    let near = from.filter(|_| is_near).and_then(|from| resolved(from, name));
    let is_rooted = !is_relative || from.is_none();
    let rooted = if is_rooted { resolved("/", name) } else { None };
    let mut found = Vec::new();
    for path in near.into_iter().chain(rooted) {
        for path in [format!("{path}.md"), path].into_iter().rev() {
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// Resolves a path relative to a directory; `None` if it leads above the root.
fn resolved(from: &str, path: &str) -> Option<String> {
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

/// Returns a name normalized for comparison: case, the difference between `_`, `-` and spaces, and
/// spaces around `#` are dropped, so that `C# Tips` equals `memory://c#tips`.
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

/// How near a memory is to a directory; the least is the nearest.
///
/// The directory itself comes first, then its ancestors, its descendants, and all others; within
/// each, the shortest path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proximity {
    zone: Zone,
    path_size: usize,
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    Same,
    Above,
    Below,
    Elsewhere,
}

impl Proximity {
    /// Compares a path with a directory, which begins and ends with a slash.
    pub fn new(from: &str, path: &str) -> Self {
        let parent = path.rfind('/').and_then(|end| path.get(..=end)).unwrap_or("/");
        let zone = if parent == from {
            Zone::Same
        } else if from.starts_with(parent) {
            Zone::Above
        } else if parent.starts_with(from) {
            Zone::Below
        } else {
            Zone::Elsewhere
        };
        Self { zone, path_size: path.len(), path: path.to_owned() }
    }
}
