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
#[derive(Clone, Debug)]
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
            Self::Any(parts) => vec![parts.iter().flat_map(Self::words).flatten().collect()],
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
        let Scoring { title, heading, other, .. } = Scoring::DEFAULT;
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
    let idf = |leaf: &Query| {
        let having = number(notes.iter().filter(|(_, it)| leaf.weight(it) > 0.0).count());
        (having > 0.0).then(|| (1.0 + (count - having + 0.5) / (having + 0.5)).ln())
    };
    let Scoring { k1, b, length_prior, coverage, .. } = Scoring::DEFAULT;
    let words = query.words();
    let idfs: Vec<f64> = words
        .iter()
        .map(|word| word.iter().filter_map(|leaf| idf(leaf)).reduce(f64::min).unwrap_or(0.0))
        .collect();
    let all: f64 = idfs.iter().sum();
    let mut own: BTreeMap<&Place, f64> = BTreeMap::new();
    for (place, text) in &notes {
        let (mut score, mut covered) = (0.0, 0.0);
        for (word, idf_of_word) in words.iter().zip(&idfs) {
            if has(word, text) {
                covered += idf_of_word;
            }
            for leaf in word {
                let weight = leaf.weight(text);
                let relative_length = (length(text) + length_prior) / (mean + length_prior);
                let norm = k1 * (1.0 - b + b * relative_length);
                score += idf(leaf).unwrap_or(0.0) * weight * (k1 + 1.0) / (weight + norm);
            }
        }
        let bonus = if all > 0.0 { coverage * covered / all } else { 0.0 };
        own.insert(place, score * (1.0 + bonus));
    }
    let context = Context { notes: &notes, words: &words, idfs: &idfs, own: &own };
    let mut scored = BTreeMap::new();
    for (place, text) in &notes {
        if query.matches(&place.1, text) {
            let has_context = words.len() > 1 && all > 0.0;
            let score = if has_context { context.score(place, text) } else { own[place] };
            scored.insert((*place).clone(), score);
        }
    }
    scored
}

/// A store and a path.
type Place = (usize, String);

fn has(word: &[&Query], text: &Text) -> bool {
    word.iter().any(|leaf| leaf.weight(text) > 0.0)
}

/// What the bonuses of a note depend on.
struct Context<'n> {
    notes: &'n [(&'n Place, &'n Text)],
    words: &'n [Vec<&'n Query>],
    idfs: &'n [f64],
    own: &'n BTreeMap<&'n Place, f64>,
}

impl Context<'_> {
    fn score(&self, place: &Place, text: &Text) -> f64 {
        let Scoring { nearness, neighbor, neighbor_length, directory, .. } = Scoring::DEFAULT;
        let own = self.own[place];
        let members = members(place, self.notes);
        let at = members.iter().position(|(it, _)| *it == place).expect("it is a member");
        let mut of_neighbors = 0.0;
        for (other, (place, _)) in members.iter().enumerate() {
            of_neighbors += match at.abs_diff(other) {
                1 => self.own[*place],
                2 => self.own[*place] * 2.0 / 3.0,
                3 => self.own[*place] / 3.0,
                _ => 0.0,
            };
        }
        let share = neighbor * (1.0 - length(text) / neighbor_length).max(0.0);
        let score = own * (1.0 + nearness * self.nearest(text)) + share * of_neighbors;
        score * (1.0 + directory * self.directory_share(text, &members))
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

    /// Returns the share of the words that a note has. One that only its directory has counts by the
    /// chance that a directory of this size lacks it.
    fn directory_share(&self, text: &Text, members: &[(&Place, &Text)]) -> f64 {
        let size = i32::try_from(members.len()).expect("there are few");
        self.share(|word| {
            let leaves = &self.words[word];
            if has(leaves, text) {
                return 1.0;
            }
            if !members.iter().any(|(_, text)| has(leaves, text)) {
                return 0.0;
            }
            let having = |leaf: &&Query| {
                self.notes.iter().filter(|(_, text)| leaf.weight(text) > 0.0).count()
            };
            let most = leaves.iter().map(having).max().expect("a word has leaves");
            (1.0 - number(most) / number(self.notes.len())).powi(size)
        })
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
struct Bench {
    library: Library,
    stores: [StoreId; 2],
    notes: Notes,
}

/// Writes a text to a path of a store, or deletes the note there.
type Step = (usize, usize, Option<Text>);

fn step() -> impl Strategy<Value = Step> {
    (0..2_usize, 0..12_usize, prop::option::weighted(0.85, text()))
}

impl Bench {
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
        let page = knowledge.search(&request).expect("it searches");
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
        let mut bench = Bench::new();
        for (number, step) in steps.iter().enumerate() {
            bench.apply(step);
            if number % pause == 0 {
                bench.library.engine.follow(None).expect("it follows");
            }
        }
        bench.compare_all(&bench.library.engine, &queries)?;
        let engine = bench.library.engine.engine().clone();
        let nowhere = Knowledge::new(engine, Path::new("/nonexistent/quipu"));
        bench.compare_all(&nowhere, &queries)?;
        // From here on the file cannot be written, and changes are searched as an overlay.
        let file = bench.library.directory.path().join(INDEX_FILE);
        let holder = rusqlite::Connection::open(file).expect("it opens");
        holder.execute_batch("BEGIN IMMEDIATE").expect("it begins");
        for step in &later {
            bench.apply(step);
        }
        if later.len() % 3 == 0 {
            bench.compare_all(&bench.library.engine, &queries[..1])?;
        }
        holder.execute_batch("ROLLBACK").expect("it ends");
        bench.compare_all(&bench.library.engine, &queries)?;
    }

    /// Whatever happens in one store, the results for another one stay bit-identical.
    #[test]
    fn no_store_changes_what_is_found_in_another(
        steps in prop::collection::vec(step(), 1..40),
        others in prop::collection::vec(step(), 1..40),
        queries in prop::collection::vec(query(), 1..4),
    ) {
        let mut bench = Bench::new();
        let answers = |bench: &Bench| -> Vec<Vec<(String, u64)>> {
            let ask = |query: &Query| {
                let store = vec![bench.stores[0]];
                let request = SearchRequest { limit: 500, ..SearchRequest::new(store, query.typed()) };
                let hits = bench.library.engine.search(&request).expect("it searches").hits;
                hits.iter().map(|it| (it.note.path.to_string(), it.score.to_bits())).collect()
            };
            queries.iter().map(ask).collect()
        };
        for (_, place, text) in steps {
            bench.apply(&(0, place, text));
        }
        let before = answers(&bench);
        for (_, place, text) in others {
            bench.apply(&(1, place, text));
        }
        bench.library.engine.follow(None).expect("it follows");
        prop_assert_eq!(answers(&bench), before);
    }
}
