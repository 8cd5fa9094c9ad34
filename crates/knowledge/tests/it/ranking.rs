//! Scores match the formula, recomputed in the simplest way.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use quipu_core::Engine;
use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, MemoryPath, PrincipalName, StoreId};
use quipu_knowledge::{INDEX_FILE, Knowledge, Scoring, SearchRequest};
use quipu_testkit::InMemoryBackend;
use quipu_testkit::knowledge::{Library, new_store};

/// Words that are their own stems and have no variants, so that only fields and counts matter. The
/// last two share a prefix, and none is a prefix of another.
const WORDS: [&str; 6] = ["tea", "cup", "pot", "milk", "cord", "corn"];

/// The parameters, where some of the texts are long.
const SCORING: Scoring = Scoring { long: 12.0, ..Scoring::DEFAULT };

/// The common prefix of the last two words.
const PREFIX: &str = "cor";

/// A note: its heading, which is also its title, and the words of its text.
#[derive(Clone, Debug)]
struct Text {
    heading: Vec<usize>,
    body: Vec<usize>,
}

fn text() -> impl Strategy<Value = Text> {
    let words = |count| prop::collection::vec(0..WORDS.len(), count);
    (words(1..3), words(0..30)).prop_map(|(heading, body)| Text { heading, body })
}

fn joined(words: &[usize]) -> String {
    let words: Vec<_> = words.iter().filter_map(|word| WORDS.get(*word).copied()).collect();
    words.join(" ")
}

fn written(text: &Text) -> String {
    format!("# {}\n\n{}\n", joined(&text.heading), joined(&text.body))
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
enum Query {
    Word(usize),
    Phrase(usize, usize),
    Prefix,
    Path(usize),
    All(Vec<Query>),
    Any(Vec<Query>),
    Without(Box<Query>, Box<Query>),
    /// Words side by side.
    Beside(Vec<Query>),
}

fn query() -> impl Strategy<Value = Query> {
    let word = (0..WORDS.len()).prop_map(Query::Word);
    let beside = prop::collection::vec(word, 2..5).prop_map(Query::Beside);
    prop_oneof![1 => beside, 2 => combined()]
}

fn combined() -> impl Strategy<Value = Query> {
    let word = || 0..WORDS.len();
    let leaf = prop_oneof![
        4 => word().prop_map(Query::Word),
        3 => (word(), word()).prop_map(|(first, second)| Query::Phrase(first, second)),
        1 => Just(Query::Prefix),
        1 => (0..2_usize).prop_map(Query::Path),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            several().prop_map(Query::All),
            several().prop_map(Query::Any),
            (inner.clone(), inner.clone())
                .prop_map(|(with, without)| Query::Without(Box::new(with), Box::new(without))),
        ]
    })
}

impl Query {
    /// Formats the query as it is typed.
    fn typed(&self) -> String {
        let each = |parts: &[Self], operator: &str| {
            let parts: Vec<_> = parts.iter().map(Self::typed).collect();
            format!("({})", parts.join(operator))
        };
        match self {
            Self::Word(word) => WORDS[*word].to_owned(),
            Self::Phrase(first, second) => format!("\"{} {}\"", WORDS[*first], WORDS[*second]),
            Self::Prefix => format!("{PREFIX}*"),
            Self::Path(directory) => format!("path:/d{directory}"),
            Self::All(parts) => each(parts, " AND "),
            Self::Any(parts) => each(parts, " OR "),
            Self::Without(with, without) => {
                format!("({} AND NOT {})", with.typed(), without.typed())
            }
            Self::Beside(words) => words.iter().map(Self::typed).collect::<Vec<_>>().join(" "),
        }
    }

    /// Returns whether a note matches.
    fn matches(&self, path: &str, text: &Text) -> bool {
        match self {
            Self::Word(_) | Self::Phrase(..) | Self::Prefix => self.weight(text) > 0.0,
            Self::Path(directory) => path.starts_with(&format!("/d{directory}/")),
            Self::All(parts) => parts.iter().all(|part| part.matches(path, text)),
            Self::Any(parts) | Self::Beside(parts) => {
                parts.iter().any(|part| part.matches(path, text))
            }
            Self::Without(with, without) => {
                with.matches(path, text) && !without.matches(path, text)
            }
        }
    }

    /// Returns the words that a note is scored by, each as alternatives.
    fn words(&self) -> Vec<Vec<&Self>> {
        match self {
            Self::Word(_) | Self::Phrase(..) | Self::Prefix => vec![vec![self]],
            Self::Path(_) => Vec::new(),
            Self::All(parts) | Self::Beside(parts) => parts.iter().flat_map(Self::words).collect(),
            Self::Any(parts) => {
                let mut word: Vec<&Self> = Vec::new();
                for leaf in parts.iter().flat_map(Self::words).flatten() {
                    // Written twice, an alternative is the same.
                    if !word.contains(&leaf) {
                        word.push(leaf);
                    }
                }
                // Alternatives without words, such as paths, are none.
                if word.is_empty() { Vec::new() } else { vec![word] }
            }
            Self::Without(with, _) => with.words(),
        }
    }

    /// Returns whether a leaf begins at a place of a text.
    fn is_at(&self, words: &[usize], at: usize) -> bool {
        match self {
            Self::Word(word) => words.get(at) == Some(word),
            Self::Phrase(first, second) => words.get(at..at + 2) == Some(&[*first, *second]),
            Self::Prefix => WORDS[words[at]].starts_with(PREFIX),
            Self::Path(_) | Self::All(_) | Self::Any(_) | Self::Without(..) | Self::Beside(_) => {
                false
            }
        }
    }

    /// Returns the weighted frequency of a leaf in a note: a heading counts as a title, a heading and
    /// text, and each of its words is also in the frontmatter (once), which has no positions.
    fn weight(&self, text: &Text) -> f64 {
        let Scoring { title, heading, other, .. } = SCORING;
        let in_heading = f64::from(title) + f64::from(heading);
        let all: Vec<usize> = text.heading.iter().chain(&text.body).copied().collect();
        match self {
            Self::Word(word) => {
                let count = |words: &[usize]| number(words.iter().filter(|it| *it == word).count());
                let in_fields = if text.heading.contains(word) { f64::from(other) } else { 0.0 };
                count(&text.heading) * in_heading + count(&all) + in_fields
            }
            Self::Phrase(first, second) => {
                let is_it = |pair: &&[usize]| **pair == [*first, *second];
                let count = |words: &[usize]| number(words.windows(2).filter(is_it).count());
                count(&text.heading) * in_heading + count(&all)
            }
            Self::Prefix => {
                let words = (0..WORDS.len()).filter(|word| WORDS[*word].starts_with(PREFIX));
                words.map(|word| Self::Word(word).weight(text)).sum()
            }
            Self::Path(_) | Self::All(_) | Self::Any(_) | Self::Without(..) | Self::Beside(_) => {
                0.0
            }
        }
    }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("there are few"))
}

fn length(text: &Text) -> f64 {
    number(text.heading.len() + text.body.len())
}

/// A note, by store and path.
type Notes = BTreeMap<(usize, String), Text>;

/// Returns the scores of the matching notes of some stores.
fn scores(notes: &Notes, stores: &[usize], query: &Query) -> BTreeMap<Place, f64> {
    let notes: Vec<_> = notes.iter().filter(|((store, _), _)| stores.contains(store)).collect();
    let count = number(notes.len());
    let mean = (notes.iter().map(|(_, text)| length(text)).sum::<f64>() / count).max(1.0);
    let Scoring { k1, b, length_prior, long, coverage, .. } = SCORING;
    let counted = |length: f64| if length <= long { length } else { (long * length).sqrt() };
    let words = query.words();
    let idf = |word: &Vec<&Query>| {
        let having = number(notes.iter().filter(|(_, it)| has(word, it)).count());
        if having > 0.0 { (1.0 + (count - having + 0.5) / (having + 0.5)).ln() } else { 0.0 }
    };
    let idfs: Vec<f64> = words.iter().map(idf).collect();
    let all: f64 = idfs.iter().sum();
    let mut own: BTreeMap<&Place, f64> = BTreeMap::new();
    for (place, text) in &notes {
        let (mut score, mut covered) = (0.0, 0.0);
        for (word, idf) in words.iter().zip(&idfs) {
            let weight: f64 = word.iter().map(|leaf| leaf.weight(text)).sum();
            let relative_length =
                (counted(length(text)) + length_prior) / (counted(mean) + length_prior);
            let norm = k1 * (1.0 - b + b * relative_length);
            score += idf * weight * (k1 + 1.0) / (weight + norm);
            covered += if weight > 0.0 { *idf } else { 0.0 };
        }
        let bonus = if all > 0.0 { coverage * covered / all } else { 0.0 };
        own.insert(place, score * (1.0 + bonus));
    }
    let found: Vec<_> =
        notes.iter().copied().filter(|(place, text)| query.matches(&place.1, text)).collect();
    let context = Context { notes: &notes, found: &found, words: &words, idfs: &idfs, own: &own };
    let has_context = words.len() > 1 && all > 0.0;
    let score = |(place, text): &(&Place, &Text)| {
        let score = if has_context { context.score(place, text) } else { own[place] };
        ((*place).clone(), score)
    };
    found.iter().map(score).collect()
}

/// A store and a path.
type Place = (usize, String);

fn has(word: &[&Query], text: &Text) -> bool {
    word.iter().any(|leaf| leaf.weight(text) > 0.0)
}

/// What the bonuses of a note depend on.
struct Context<'n> {
    notes: &'n [(&'n Place, &'n Text)],
    found: &'n [(&'n Place, &'n Text)],
    words: &'n [Vec<&'n Query>],
    idfs: &'n [f64],
    own: &'n BTreeMap<&'n Place, f64>,
}

impl Context<'_> {
    fn score(&self, place: &Place, text: &Text) -> f64 {
        let scoring = SCORING;
        let own = self.own[place];
        let mut of_neighbors = 0.0;
        for (distance, other, _) in self.members(place) {
            of_neighbors += match distance {
                1 => self.own[other],
                2 => self.own[other] * 2.0 / 3.0,
                3 => self.own[other] / 3.0,
                _ => 0.0,
            };
        }
        let share = scoring.neighbor * (1.0 - length(text) / scoring.neighbor_length).max(0.0);
        let score = own * (1.0 + scoring.nearness * self.nearest(text)) + share * of_neighbors;
        let relative = |score: &dyn Fn(&Place) -> f64| {
            let best = self.found.iter().map(|(place, _)| score(place)).fold(0.0, f64::max);
            if best > 0.0 { score(place) / best } else { 0.0 }
        };
        let around = relative(&|place| self.around(place));
        let score = score * (1.0 + scoring.surroundings * around);
        if self.directories().len() < 2 {
            return score;
        }
        score * (1.0 + scoring.directory * relative(&|place| self.of_directory(place)))
    }

    /// Returns the notes in the directory of one, with their distances from it.
    fn members(&self, place: &Place) -> Vec<(usize, &Place, &Text)> {
        let members = members(place, self.notes);
        let at = members.iter().position(|(it, _)| *it == place).expect("it is a member");
        let member = |(other, (place, text)): (usize, &(_, _))| (at.abs_diff(other), *place, *text);
        members.iter().enumerate().map(member).collect()
    }

    /// Returns the sizes of the directories in which something was found.
    fn directories(&self) -> BTreeMap<&Place, usize> {
        let directory = |(place, _): &(&Place, _)| {
            let members = members(place, self.notes);
            (members[0].0, members.len())
        };
        self.found.iter().map(directory).collect()
    }

    /// Returns the score of a note and those around it as one text.
    fn around(&self, place: &Place) -> f64 {
        let members = self.members(place);
        let count = |word: usize| {
            let having = members.iter().filter(|(_, _, text)| has(&self.words[word], text));
            having.map(|(distance, ..)| (1.0 - number(*distance) / 6.0).max(0.0)).sum()
        };
        self.score_of(count, 1.0)
    }

    /// Returns the score of the directory of a note as one text.
    fn of_directory(&self, place: &Place) -> f64 {
        let members = self.members(place);
        let count = |word: usize| {
            number(members.iter().filter(|(_, _, text)| has(&self.words[word], text)).count())
        };
        let sizes = self.directories();
        let mean = number(sizes.values().sum()) / number(sizes.len());
        self.score_of(count, 0.25 + 0.75 * number(members.len()) / mean)
    }

    /// Returns the score of a text of some relative length by how many of its notes have each word.
    fn score_of(&self, count: impl Fn(usize) -> f64, length: f64) -> f64 {
        let mut sum = 0.0;
        for (word, idf) in self.idfs.iter().enumerate() {
            sum += idf * count(word) * 2.2 / (count(word) + 1.2 * length);
        }
        sum * (1.0 + self.share(|word| count(word).min(1.0)))
    }

    fn share(&self, is_in: impl Fn(usize) -> f64) -> f64 {
        let shares = self.idfs.iter().enumerate().map(|(word, idf)| idf * is_in(word));
        shares.sum::<f64>() / self.idfs.iter().sum::<f64>()
    }

    /// Returns the share of the words in the best of all passages of 20 words.
    fn nearest(&self, text: &Text) -> f64 {
        let body: Vec<usize> = text.heading.iter().chain(&text.body).copied().collect();
        let begins = |word: usize, at: usize| self.words[word].iter().any(|it| it.is_at(&body, at));
        let mut best = 0.0_f64;
        for start in 0..body.len() {
            let end = (start + 20).min(body.len());
            let in_it = |word: usize| (start..end).any(|at| begins(word, at));
            if (0..self.words.len()).filter(|word| in_it(*word)).count() > 1 {
                best = best.max(self.share(|word| number(usize::from(in_it(word)))));
            }
        }
        best
    }
}

/// Returns the notes in the directory of one, which have numbers as names.
fn members<'n>(place: &Place, notes: &[(&'n Place, &'n Text)]) -> Vec<(&'n Place, &'n Text)> {
    let parts = |(store, path): &Place| {
        let (directory, name) = path.rsplit_once('/').expect("a path has a slash");
        let name: u32 = name.trim_end_matches(".md").parse().expect("a number");
        ((*store, directory.to_owned()), name)
    };
    let (directory, _) = parts(place);
    let mut members: Vec<_> =
        notes.iter().copied().filter(|(place, _)| parts(place).0 == directory).collect();
    members.sort_by_key(|(place, _)| parts(place).1);
    members
}

/// Two stores, and the notes in them.
struct Fixture {
    library: Library,
    stores: [StoreId; 2],
    notes: Notes,
}

/// Writes a text to a path of a store, or deletes the note there.
type Step = (usize, usize, Option<Text>);

fn step() -> impl Strategy<Value = Step> {
    (0..2_usize, 0..12_usize, prop::option::weighted(0.85, text()))
}

impl Fixture {
    fn new() -> Self {
        let library = Library::new(Arc::new(InMemoryBackend::default()));
        let other = new_store(&library.engine, "other");
        let stores = [library.store, other];
        Self { library, stores, notes: BTreeMap::new() }
    }

    fn apply(&mut self, (store, place, text): &Step) {
        let path = format!("/d{}/{place}.md", place % 2);
        let at = MemoryPath::parse(&path).expect("a path");
        let engine: &Engine = &self.library.engine;
        let actor = Actor::User(PrincipalName::from_host("ada"));
        match text {
            Some(text) => {
                let content = Content::new(written(text)).expect("a text");
                let target = (&at, &content);
                let put = engine.put(&actor, self.stores[*store], target, Precondition::None);
                put.expect("it is written");
                self.notes.insert((*store, path), text.clone());
            }
            None if self.notes.remove(&(*store, path)).is_some() => {
                engine.delete_at(&actor, self.stores[*store], &at).expect("it is deleted");
            }
            None => {}
        }
    }

    /// Fails unless a query finds exactly the expected notes, with the right scores and in order.
    fn compare(
        &self,
        knowledge: &Knowledge,
        searched: &[usize],
        query: &Query,
    ) -> Result<(), TestCaseError> {
        let stores = searched.iter().map(|store| self.stores[*store]).collect();
        let new = SearchRequest::new(stores, query.typed());
        let request = SearchRequest { limit: 500, explain: true, ..new };
        let page = knowledge.with_scoring(SCORING).search(&request).expect("it searches");
        prop_assert!(!page.is_behind);
        let mut expected = scores(&self.notes, searched, query);
        prop_assert_eq!(page.hits.len(), expected.len(), "{}", query.typed());
        prop_assert!(page.hits.is_sorted_by(|left, right| left.score >= right.score));
        for hit in &page.hits {
            let store = self.stores.iter().position(|store| *store == hit.note.store);
            let place = (store.expect("a store"), hit.note.path.as_str().to_owned());
            let wanted = expected.remove(&place).expect("it fits");
            let is_near = (hit.score - wanted).abs() < 1e-5 * wanted.max(1.0);
            prop_assert!(is_near, "{}: {place:?} {} {wanted}", query.typed(), hit.score);
            let explained = hit.explanation.as_ref().expect("it was asked for").score();
            let is_near = (explained - hit.score).abs() < 1e-9 * hit.score.max(1.0);
            prop_assert!(is_near, "{}: {place:?} {explained} {}", query.typed(), hit.score);
        }
        Ok(())
    }

    fn compare_all(&self, knowledge: &Knowledge, queries: &[Query]) -> Result<(), TestCaseError> {
        for query in queries {
            for searched in [&[0][..], &[1], &[0, 1]] {
                self.compare(knowledge, searched, query)?;
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The statistics are those of the live notes in the searched stores, whatever their history:
    /// in one segment or many, merged or not, on disk or in memory.
    #[test]
    fn scores_are_exact(
        steps in prop::collection::vec(step(), 1..80),
        later in prop::collection::vec(step(), 0..6),
        queries in prop::collection::vec(query(), 1..6),
        pause in 1..9_usize,
    ) {
        let mut fixture = Fixture::new();
        for (number, step) in steps.iter().enumerate() {
            fixture.apply(step);
            if number % pause == 0 {
                fixture.library.engine.follow(None).expect("it follows");
            }
        }
        fixture.compare_all(&fixture.library.engine, &queries)?;
        let engine = fixture.library.engine.engine().clone();
        let nowhere = Knowledge::new(engine, Path::new("/nonexistent/quipu"));
        fixture.compare_all(&nowhere, &queries)?;
        // From here on the file cannot be written, and changes are searched as an overlay.
        let file = fixture.library.directory.path().join(INDEX_FILE);
        let holder = rusqlite::Connection::open(file).expect("it opens");
        holder.execute_batch("BEGIN IMMEDIATE").expect("it begins");
        for step in &later {
            fixture.apply(step);
        }
        if later.len() % 3 == 0 {
            fixture.compare_all(&fixture.library.engine, &queries[..1])?;
        }
        holder.execute_batch("ROLLBACK").expect("it ends");
        fixture.compare_all(&fixture.library.engine, &queries)?;
    }

    /// Whatever happens in one store, the results for another one stay bit-identical.
    #[test]
    fn no_store_changes_what_is_found_in_another(
        steps in prop::collection::vec(step(), 1..40),
        others in prop::collection::vec(step(), 1..40),
        queries in prop::collection::vec(query(), 1..4),
    ) {
        let mut fixture = Fixture::new();
        let answers = |fixture: &Fixture| -> Vec<Vec<(String, u64)>> {
            let ask = |query: &Query| {
                let store = vec![fixture.stores[0]];
                let request = SearchRequest { limit: 500, ..SearchRequest::new(store, query.typed()) };
                let hits = fixture.library.engine.search(&request).expect("it searches").hits;
                hits.iter().map(|it| (it.note.path.to_string(), it.score.to_bits())).collect()
            };
            queries.iter().map(ask).collect()
        };
        for (_, place, text) in steps {
            fixture.apply(&(0, place, text));
        }
        let before = answers(&fixture);
        for (_, place, text) in others {
            fixture.apply(&(1, place, text));
        }
        fixture.library.engine.follow(None).expect("it follows");
        prop_assert_eq!(answers(&fixture), before);
    }
}
