//! The whole query language, compared with an evaluator that walks over every note.
//!
//! The evaluator is written from `docs/search.md` and `docs/notes.md` and shares no code with the
//! search: it knows notes as lists of words, and a query as a tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use quipu_core::model::Directory;
use quipu_knowledge::{Found, SearchFilter, SearchPage, SearchRequest, SearchTarget};
use quipu_notes::{Comparison, FieldFilter, Predicate};
use quipu_testkit::InMemoryBackend;
use quipu_testkit::knowledge::Library;

/// Words that are their own stems and have no variants. The last three share a prefix.
const WORDS: [&str; 7] = ["tea", "cup", "pot", "milk", "cord", "corn", "cork"];
const PREFIXES: [&str; 3] = ["cor", "te", "mil"];
const TAGS: [&str; 4] = ["hot", "hot/very", "cold", "Hot/Very/Much"];
const KINDS: [&str; 3] = ["note", "memo", "Recipe"];
const CATEGORIES: [&str; 2] = ["fact", "risk"];
const PATHS: [&str; 8] =
    ["/a.md", "/b.md", "/x/a.md", "/x/b.md", "/x/y/a.md", "/x/y/c", "/xy/a.md", "/x/y/a.md.md"];
const PATTERNS: [&str; 12] =
    ["/x", "x", "/x/*", "x/y", "/x/y/", "*a*", "/x/?.md", "/*/y/*", "/a.md", "a", "/", "nowhere"];

/// A note, as its author thinks of it.
#[derive(Clone, Debug)]
struct Text {
    kind: usize,
    tags: Vec<usize>,
    priority: Option<u8>,
    title: Vec<usize>,
    body: Vec<usize>,
    observations: Vec<(usize, Vec<usize>, Option<usize>)>,
    relations: Vec<(Vec<usize>, Vec<usize>)>,
}

fn words(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..WORDS.len(), count)
}

fn text() -> impl Strategy<Value = Text> {
    let observation = (0..CATEGORIES.len(), words(1..4), prop::option::of(0..TAGS.len()));
    let head = (
        0..KINDS.len(),
        prop::collection::vec(0..TAGS.len(), 0..3),
        prop::option::of(0_u8..4),
        words(1..3),
    );
    let rest = (
        words(0..8),
        prop::collection::vec(observation, 0..3),
        prop::collection::vec((words(1..3), words(0..2)), 0..3),
    );
    (head, rest).prop_map(|((kind, tags, priority, title), (body, observations, relations))| Text {
        kind,
        tags,
        priority,
        title,
        body,
        observations,
        relations,
    })
}

fn spelled(words: &[usize]) -> Vec<String> {
    words.iter().map(|word| WORDS[*word].to_owned()).collect()
}

fn joined(words: &[usize]) -> String {
    spelled(words).join(" ")
}

impl Text {
    fn markdown(&self) -> String {
        let tags: Vec<_> = self.tags.iter().map(|tag| TAGS[*tag]).collect();
        let mut text = format!("---\ntype: {}\ntags: [{}]\n", KINDS[self.kind], tags.join(", "));
        if let Some(priority) = self.priority {
            text += &format!("priority: {priority}\n");
        }
        text += &format!("---\n# {}\n\n{}\n\n", joined(&self.title), joined(&self.body));
        for (category, words, tag) in &self.observations {
            let tag = tag.map_or_else(String::new, |tag| format!(" #{}", TAGS[tag]));
            text += &format!("- [{}] {}{tag}\n", CATEGORIES[*category], joined(words));
        }
        for (target, context) in &self.relations {
            let context = match context.as_slice() {
                [] => String::new(),
                words => format!(" ({})", joined(words)),
            };
            text += &format!("- needs [[{}]]{context}\n", joined(target));
        }
        text
    }
}

/// What a hit can be: a note, or a part of one.
#[derive(Clone, Debug)]
struct Naive {
    path: String,
    /// The position of the observation or relation.
    position: usize,
    /// Texts in which words stand next to each other.
    runs: Vec<Vec<String>>,
    /// Words that stand next to nothing.
    loose: Vec<String>,
    tags: Vec<String>,
    categories: Vec<String>,
    kind: String,
    priority: Option<u8>,
}

/// The words of a text with markup, in order.
fn run(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn naive(path: &str, text: &Text, target: SearchTarget) -> Vec<Naive> {
    let own = |tag: &usize| TAGS[*tag].to_lowercase();
    let tags: Vec<_> = text.tags.iter().map(own).collect();
    let base = Naive {
        path: path.to_owned(),
        position: 0,
        runs: Vec::new(),
        loose: spelled(&text.title),
        tags,
        categories: Vec::new(),
        kind: KINDS[text.kind].to_lowercase(),
        priority: text.priority,
    };
    match target {
        SearchTarget::Memories => {
            let body = text.markdown();
            let (_, body) = body.split_once("---\n#").expect("it has a heading");
            let mut note = base;
            note.runs = vec![run(body)];
            for (category, _, tag) in &text.observations {
                note.categories.push(CATEGORIES[*category].to_owned());
                note.tags.extend(tag.as_ref().map(own));
            }
            vec![note]
        }
        SearchTarget::Observations => {
            let all = text.observations.iter().enumerate();
            let part = all.map(|(position, (category, words, tag))| Naive {
                position,
                runs: vec![spelled(words)],
                tags: base.tags.iter().cloned().chain(tag.as_ref().map(own)).collect(),
                categories: vec![CATEGORIES[*category].to_owned()],
                ..base.clone()
            });
            part.collect()
        }
        SearchTarget::Relations => {
            let all = text.relations.iter().enumerate();
            let part = all.map(|(position, (target, context))| Naive {
                position,
                runs: vec![spelled(target), spelled(context), spelled(&text.title)],
                ..base.clone()
            });
            part.collect()
        }
    }
}

/// A query, as its author thinks of it.
#[derive(Clone, Debug)]
enum Query {
    Word(usize),
    Prefix(usize),
    Phrase(Vec<usize>),
    Tag(usize),
    Kind(usize),
    Path(usize),
    Not(Box<Query>),
    And(Vec<Query>),
    Or(Vec<Query>),
    /// Side by side.
    Beside(Vec<Query>),
}

fn leaf() -> impl Strategy<Value = Query> {
    prop_oneof![
        6 => (0..WORDS.len()).prop_map(Query::Word),
        2 => (0..PREFIXES.len()).prop_map(Query::Prefix),
        3 => words(2..4).prop_map(Query::Phrase),
        1 => (0..TAGS.len()).prop_map(Query::Tag),
        1 => (0..KINDS.len()).prop_map(Query::Kind),
        2 => (0..PATTERNS.len()).prop_map(Query::Path),
    ]
}

/// What can stand in parentheses.
fn group() -> impl Strategy<Value = Query> {
    leaf().prop_recursive(3, 10, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            several().prop_map(Query::And),
            several().prop_map(Query::Or),
            inner.clone().prop_map(|unwanted| Query::Not(Box::new(unwanted))),
        ]
    })
}

fn query() -> impl Strategy<Value = Query> {
    let not = prop::collection::vec(leaf(), 1..3)
        .prop_map(|parts| Query::Not(Box::new(Query::Beside(parts))));
    let part = prop_oneof![6 => leaf(), 1 => not, 1 => group()];
    prop_oneof![
        5 => prop::collection::vec(part, 1..5).prop_map(Query::Beside),
        2 => group(),
    ]
}

impl Query {
    fn typed(&self) -> String {
        let each = |parts: &[Self], glue: &str| {
            parts.iter().map(Self::typed).collect::<Vec<_>>().join(glue)
        };
        match self {
            Self::Word(word) => WORDS[*word].to_owned(),
            Self::Prefix(prefix) => format!("{}*", PREFIXES[*prefix]),
            Self::Phrase(words) => format!("\"{}\"", joined(words)),
            Self::Tag(tag) => format!("tag:{}", TAGS[*tag]),
            Self::Kind(kind) => format!("type:{}", KINDS[*kind]),
            Self::Path(pattern) => format!("path:{}", PATTERNS[*pattern]),
            Self::Not(unwanted) => format!("NOT ({})", unwanted.typed()),
            Self::And(parts) => format!("({})", each(parts, " AND ")),
            Self::Or(parts) => format!("({})", each(parts, " OR ")),
            Self::Beside(parts) => each(parts, " "),
        }
    }

    fn matches(&self, note: &Naive) -> bool {
        match self {
            Self::Word(word) => note.has_word(|it| it == WORDS[*word]),
            Self::Prefix(prefix) => note.has_word(|it| it.starts_with(PREFIXES[*prefix])),
            Self::Phrase(words) => {
                let words = spelled(words);
                note.runs.iter().any(|run| run.windows(words.len()).any(|it| it == words))
            }
            Self::Tag(tag) => note.has_tag(TAGS[*tag]),
            Self::Kind(kind) => note.kind == KINDS[*kind].to_lowercase(),
            Self::Path(pattern) => is_at(&note.path, PATTERNS[*pattern]),
            Self::Not(unwanted) => !unwanted.matches(note),
            Self::And(parts) | Self::Beside(parts) => parts.iter().all(|it| it.matches(note)),
            Self::Or(parts) => parts.iter().any(|part| part.matches(note)),
        }
    }

    /// Returns the same query without needless parentheses, as it is understood.
    fn flat(&self) -> Self {
        let Self::Beside(parts) = self else { return self.clone() };
        let mut flat = Vec::new();
        for part in parts.iter().map(Self::flat) {
            if let Self::Beside(inner) = part {
                flat.extend(inner);
            } else {
                flat.push(part);
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Self::Beside(flat) }
    }

    fn is_constraint(&self) -> bool {
        matches!(self, Self::Tag(_) | Self::Kind(_) | Self::Path(_) | Self::Not(_))
    }

    /// Returns the parts that only restrict, and the others.
    fn parts(&self) -> (Vec<&Self>, Vec<&Self>) {
        if let Self::Beside(parts) | Self::And(parts) = self {
            parts.iter().partition(|it| it.is_constraint())
        } else {
            (Vec::new(), vec![self])
        }
    }

    /// Returns the notes that are found.
    fn selected<'n>(&self, notes: &[&'n Naive]) -> Vec<&'n Naive> {
        let (constraints, parts) = self.parts();
        let is_allowed = |note: &&Naive| constraints.iter().all(|it| it.matches(note));
        let allowed: Vec<_> = notes.iter().copied().filter(is_allowed).collect();
        let is_beside = matches!(self, Self::Beside(_)) && parts.len() > 1;
        let is_known = |part: &Self| allowed.iter().any(|note| part.matches(note));
        let mut optional: Vec<Self> = Vec::new();
        let mut required: Vec<&Self> = Vec::new();
        for part in &parts {
            match part {
                Self::And(_) if parts.len() == 1 => return part.selected(&allowed),
                // Beside others, a phrase that no note has is its words.
                Self::Phrase(words) if is_beside && !is_known(part) => {
                    optional.extend(words.iter().copied().map(Self::Word));
                }
                Self::Word(_) | Self::Prefix(_) if is_beside => {
                    optional.push((*part).clone());
                }
                Self::Word(_)
                | Self::Prefix(_)
                | Self::Phrase(_)
                | Self::Tag(_)
                | Self::Kind(_)
                | Self::Path(_)
                | Self::Not(_)
                | Self::And(_)
                | Self::Or(_)
                | Self::Beside(_) => required.push(part),
            }
        }
        let has_any = |note: &Naive| {
            (optional.is_empty() || !required.is_empty())
                || optional.iter().any(|part| part.matches(note))
        };
        let fits = |note: &&Naive| required.iter().all(|it| it.matches(note)) && has_any(note);
        allowed.into_iter().filter(fits).collect()
    }

    /// Returns the notes that may follow: a single word is also tried as a prefix.
    fn further<'n>(&self, notes: &[&'n Naive]) -> Vec<&'n Naive> {
        let (constraints, parts) = self.parts();
        let is_allowed = |note: &&Naive| constraints.iter().all(|it| it.matches(note));
        let allowed: Vec<_> = notes.iter().copied().filter(is_allowed).collect();
        match parts.as_slice() {
            [Self::Word(word)] => {
                let is_it = |note: &&Naive| note.has_word(|it| it.starts_with(WORDS[*word]));
                allowed.into_iter().filter(is_it).collect()
            }
            [only @ Self::And(_)] => only.further(&allowed),
            _ => Vec::new(),
        }
    }
}

impl Naive {
    fn has_word(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.runs.iter().flatten().chain(&self.loose).any(|word| is_it(word))
    }

    /// A nested tag counts as the tags above it.
    fn has_tag(&self, wanted: &str) -> bool {
        let wanted = wanted.to_lowercase();
        let below = format!("{wanted}/");
        self.tags.iter().any(|tag| *tag == wanted || tag.starts_with(&below))
    }
}

/// A path, a path without `.md`, a directory, or a pattern.
fn is_at(path: &str, wanted: &str) -> bool {
    let place = wanted.strip_suffix("/*").unwrap_or(wanted);
    if place.contains(['*', '?']) {
        let letters = |text: &str| text.trim_start_matches('/').chars().collect::<Vec<_>>();
        return globbed(&letters(wanted), &letters(path));
    }
    let bare = place.trim_matches('/');
    bare.is_empty()
        || path == format!("/{bare}")
        || path == format!("/{bare}.md")
        || path.starts_with(&format!("/{bare}/"))
        || path.starts_with(&format!("/{bare}.md/"))
}

fn globbed(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), _) => (0..=text.len()).any(|skip| globbed(rest, &text[skip..])),
        (Some((wanted, rest)), Some((found, after))) => {
            (*wanted == '?' || wanted == found) && globbed(rest, after)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// The conditions of a request.
#[derive(Clone, Debug, Default)]
struct Conditions {
    directory: Option<usize>,
    kinds: Vec<usize>,
    tags: Vec<usize>,
    categories: Vec<usize>,
    priority: Option<(usize, u8)>,
}

const DIRECTORIES: [&str; 4] = ["/", "/x/", "/x/y/", "/none/"];
const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
];

fn conditions() -> impl Strategy<Value = Conditions> {
    let some = (
        prop::option::of(0..DIRECTORIES.len()),
        prop::collection::vec(0..KINDS.len(), 0..2),
        prop::collection::vec(0..TAGS.len(), 0..2),
        prop::collection::vec(0..CATEGORIES.len(), 0..2),
        prop::option::of((0..COMPARISONS.len(), 0_u8..4)),
    );
    let some = some.prop_map(|(directory, kinds, tags, categories, priority)| Conditions {
        directory,
        kinds,
        tags,
        categories,
        priority,
    });
    prop_oneof![2 => Just(Conditions::default()), 1 => some]
}

impl Conditions {
    fn filter(&self) -> SearchFilter {
        let owned = |all: &[&str], chosen: &[usize]| {
            chosen.iter().map(|it| all[*it].to_uppercase()).collect::<Vec<_>>()
        };
        let field = |(comparison, value): (usize, u8)| FieldFilter {
            key: "priority".to_owned(),
            predicate: Predicate::Is(COMPARISONS[comparison], value.to_string()),
        };
        SearchFilter {
            directory: self.directory.map(|it| Directory::parse(DIRECTORIES[it]).expect("a place")),
            kinds: owned(&KINDS, &self.kinds),
            tags: owned(&TAGS, &self.tags),
            categories: owned(&CATEGORIES, &self.categories),
            fields: self.priority.map(field).into_iter().collect(),
            changed_after: None,
        }
    }

    fn allow(&self, note: &Naive) -> bool {
        let is_kind = |kind: &usize| note.kind == KINDS[*kind].to_lowercase();
        let in_category = |it: &usize| note.categories.iter().any(|own| own == CATEGORIES[*it]);
        let has_priority = self.priority.is_none_or(|(comparison, wanted)| {
            let own = note.priority;
            match COMPARISONS[comparison] {
                Comparison::Equal => own == Some(wanted),
                Comparison::NotEqual => own != Some(wanted),
                Comparison::Greater => own.is_some_and(|own| own > wanted),
                Comparison::GreaterOrEqual => own.is_some_and(|own| own >= wanted),
                Comparison::Less => own.is_some_and(|own| own < wanted),
                Comparison::LessOrEqual => own.is_some_and(|own| own <= wanted),
            }
        });
        self.directory.is_none_or(|it| note.path.starts_with(DIRECTORIES[it]))
            && (self.kinds.is_empty() || self.kinds.iter().any(is_kind))
            && self.tags.iter().all(|tag| note.has_tag(TAGS[*tag]))
            && (self.categories.is_empty() || self.categories.iter().any(in_category))
            && has_priority
    }
}

/// A hit: its path, and the position of the part.
type Place = (String, usize);

/// Returns what is found, and what follows.
fn expected(
    notes: &BTreeMap<String, Text>,
    (query, conditions): (&Query, &Conditions),
    target: SearchTarget,
) -> (Vec<Place>, Vec<Place>) {
    let all: Vec<_> = notes.iter().flat_map(|(path, text)| naive(path, text, target)).collect();
    let allowed: Vec<_> = all.iter().filter(|note| conditions.allow(note)).collect();
    let place = |note: &&Naive| (note.path.clone(), note.position);
    let query = query.flat();
    let selected: Vec<_> = query.selected(&allowed).iter().map(place).collect();
    let mut further: Vec<_> = query.further(&allowed).iter().map(place).collect();
    further.retain(|it| !selected.contains(it));
    (selected, further)
}

fn places(page: &SearchPage) -> Vec<Place> {
    let place = |hit: &quipu_knowledge::SearchHit| {
        let position = match &hit.found {
            Found::Memory => 0,
            Found::Observation(observation) => observation.line,
            Found::Relation(link) => link.position,
        };
        (hit.note.path.as_str().to_owned(), position)
    };
    page.hits.iter().map(place).collect()
}

/// Observations are told apart by their lines; the evaluator counts them.
fn numbered(mut places: Vec<Place>, notes: &BTreeMap<String, Text>) -> Vec<Place> {
    for (path, line) in &mut places {
        let text = &notes[path];
        let markdown = text.markdown();
        let lines = markdown.lines().zip(1_usize..).filter(|(line, _)| line.starts_with("- ["));
        let position = lines.map(|(_, at)| at).position(|at| at == *line);
        *line = position.expect("a hit is an observation of the note");
    }
    places
}

fn sorted(mut places: Vec<Place>) -> Vec<Place> {
    places.sort();
    places
}

/// Fails unless a search finds what the evaluator finds, in one page and in many.
fn compare(
    library: &Library,
    notes: &BTreeMap<String, Text>,
    wanted: (&Query, &Conditions),
    target: SearchTarget,
) -> Result<(), TestCaseError> {
    let (selected, further) = expected(notes, wanted, target);
    let text = wanted.0.typed();
    let request = SearchRequest {
        targets: vec![target],
        filter: wanted.1.filter(),
        limit: 500,
        ..SearchRequest::new(vec![library.store], text.as_str())
    };
    let ask = |offset, limit| {
        let page = library.engine.search(&SearchRequest { offset, limit, ..request.clone() });
        let page = page.expect("it searches");
        let found = places(&page);
        let is_numbered = target == SearchTarget::Observations;
        (if is_numbered { numbered(found, notes) } else { found }, page)
    };
    let (found, page) = ask(0, 500);
    let (first, rest) = found.split_at(selected.len().min(found.len()));
    prop_assert_eq!(sorted(first.to_vec()), sorted(selected.clone()), "{} {:?}", text, target);
    prop_assert_eq!(
        sorted(rest.to_vec()),
        sorted(further.clone()),
        "further {} {:?}",
        text,
        target
    );
    prop_assert_eq!(page.total.count, selected.len() + further.len(), "{}", text);
    prop_assert!(!page.total.is_lower_bound && !page.has_more);
    prop_assert!(page.hits.is_sorted_by(|left, right| left.score >= right.score), "{}", text);
    for size in [1, 3] {
        let mut paged = Vec::new();
        loop {
            let (hits, page) = ask(paged.len(), size);
            paged.extend(hits);
            prop_assert_eq!(page.has_more, paged.len() < found.len(), "{}", text);
            prop_assert!(page.total.is_lower_bound || page.total.count == found.len(), "{}", text);
            prop_assert!(page.total.count <= found.len(), "{}", text);
            if !page.has_more {
                break;
            }
        }
        prop_assert_eq!(&paged, &found, "pages of {}: {}", size, text);
    }
    Ok(())
}

const TARGETS: [SearchTarget; 3] =
    [SearchTarget::Memories, SearchTarget::Observations, SearchTarget::Relations];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_search_finds_what_its_query_says(
        texts in prop::collection::vec((select(&PATHS[..]), text()), 1..14),
        queries in prop::collection::vec((query(), conditions()), 1..6),
        pause in 1..8_usize,
    ) {
        let library = Library::new(Arc::new(InMemoryBackend::default()));
        let mut notes = BTreeMap::new();
        for (number, (path, text)) in texts.iter().enumerate() {
            library.put(path, &text.markdown());
            notes.insert((*path).to_owned(), text.clone());
            // So there are several segments, with dead documents in them.
            if number % pause == 0 {
                library.engine.follow(None).expect("it follows");
            }
        }
        for (query, conditions) in &queries {
            for target in TARGETS {
                compare(&library, &notes, (query, conditions), target)?;
            }
        }
    }
}

/// The prefix of a word with an irregular form is not a prefix of its stem, so neither set of
/// matches holds the other one.
#[test]
fn the_total_counts_what_has_the_word_and_what_has_longer_ones() {
    let library = Library::new(Arc::new(InMemoryBackend::default()));
    for number in 0..3 {
        library.put(&format!("/go/{number}.md"), "they go there");
    }
    for number in 0..9 {
        library.put(&format!("/place/{number}.md"), "wentworth");
    }
    for limit in [4, 6, 20] {
        let request = SearchRequest { limit, ..SearchRequest::new(vec![library.store], "went") };
        let page = library.engine.search(&request).expect("it searches");
        assert_eq!(page.hits.len(), limit.min(12));
        assert_eq!((page.total.count, page.total.is_lower_bound), (12, false), "{limit}");
    }
}
