//! Queries in terms: what a document must have.

use super::terms::{Run, each_run, folded, is_ideograph, parts};
use super::{Column, Document, Mark, terms};

/// What a document must have, in the terms of [`terms()`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermQuery {
    /// Terms beside each other.
    Phrase(Phrase),
    /// A [`Mark`], as its term.
    Mark(String),
    /// All of these; every document has all of none.
    And(Vec<TermQuery>),
    /// At least one of these; no document has one of none.
    Or(Vec<TermQuery>),
    /// Not this.
    Not(Box<TermQuery>),
}

/// Terms that stand beside each other in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// The terms; there is at least one.
    pub terms: Vec<String>,
    /// Where the last term ends.
    pub end: WordEnd,
    /// The columns in which it may stand.
    pub columns: &'static [Column],
}

/// Where a word of a query ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordEnd {
    /// Where the document's word ends.
    Whole,
    /// Anywhere in the document's word.
    Prefix,
}

/// The columns that words are looked for in.
pub(crate) const TEXT: &[Column] =
    &[Column::Title, Column::Tags, Column::Headings, Column::Body, Column::Extra];
/// The columns that phrases are looked for in: those whose terms stand as in the text.
pub(crate) const PHRASES: &[Column] =
    &[Column::Title, Column::Tags, Column::Headings, Column::Body];
/// The columns that titles are looked for in.
pub(crate) const TITLE: &[Column] = &[Column::Title];

/// Shorter beginnings of words would find nearly everything.
const PREFIX_CHARS_MIN: usize = 2;
/// What changes more often between letters and digits is no identifier but a key or a hash.
const PARTS_MAX: usize = 16;

impl TermQuery {
    /// Returns the query that every document fits.
    pub fn any() -> Self {
        Self::And(Vec::new())
    }

    /// Returns the query that no document fits.
    pub fn none() -> Self {
        Self::Or(Vec::new())
    }

    /// Returns the query for a mark.
    pub fn mark(mark: Mark<'_>) -> Self {
        Self::Mark(mark.term())
    }

    /// Returns the query for a word as it is written, which may turn out to be several terms
    /// (`foo-bar`, `日本語`) or none.
    pub fn word(written: &str, columns: &'static [Column]) -> Option<Self> {
        let found: Vec<_> = terms(written).into_iter().map(|term| term.text).collect();
        let mut letters = written.chars().filter(|letter| letter.is_alphanumeric());
        if let (Some(letter), None) = (letters.next(), letters.next())
            && is_ideograph(letter)
        {
            return Self::prefix(written, columns);
        }
        let mut spellings = vec![Self::phrase_of(found, WordEnd::Whole, columns)?];
        // `parseJson` also means `parse_json`, and the other way round.
        let spelled_out = Self::phrase_of(pieces(written), WordEnd::Whole, columns);
        let joined = written.replace(['_', '-'], "");
        for other in spelled_out.into_iter().chain(Self::phrase(&joined, columns)) {
            if !spellings.contains(&other) {
                spellings.push(other);
            }
        }
        if spellings.len() > 1 { Some(Self::Or(spellings)) } else { spellings.pop() }
    }

    /// Returns a query for each term of a word that is several, such as `foo-bar` or `日本語`.
    pub fn pieces(written: &str, columns: &'static [Column]) -> Vec<Self> {
        let found = terms(written);
        if found.len() < 2 {
            return Vec::new();
        }
        let one = |term: super::Term| Self::phrase_of(vec![term.text], WordEnd::Whole, columns);
        found.into_iter().filter_map(one).collect()
    }

    /// Returns the query for words that stand beside each other, if there are any in the text.
    pub fn phrase(written: &str, columns: &'static [Column]) -> Option<Self> {
        let found = terms(written).into_iter().map(|term| term.text).collect();
        Self::phrase_of(found, WordEnd::Whole, columns)
    }

    /// Returns the query for words of which the last goes on anyhow.
    pub fn prefix(written: &str, columns: &'static [Column]) -> Option<Self> {
        let mut found: Vec<_> = terms(written).into_iter().map(|term| term.text).collect();
        let mut last_run = None;
        each_run(written, |run, range| last_run = Some((run, range)));
        let (run, range) = last_run?;
        let last = written.get(range).unwrap_or_default();
        if run == Run::Word {
            // The beginning of a word has no ending to lose.
            found.pop();
            found.push(folded(last).into_owned());
        }
        let is_long = last.chars().count() >= PREFIX_CHARS_MIN || last.chars().all(is_ideograph);
        let end = if is_long { WordEnd::Prefix } else { WordEnd::Whole };
        Self::phrase_of(found, end, columns)
    }

    fn phrase_of(found: Vec<String>, end: WordEnd, columns: &'static [Column]) -> Option<Self> {
        if found.iter().all(String::is_empty) {
            return None;
        }
        // What else a document can be found by stands there in no order.
        let columns = if found.len() > 1 && columns == TEXT { PHRASES } else { columns };
        Some(Self::Phrase(Phrase { terms: found, end, columns }))
    }

    /// Tells whether a document fits.
    pub fn accepts(&self, document: &Document) -> bool {
        match self {
            Self::Phrase(phrase) => phrase.occurrences(document).next().is_some(),
            Self::Mark(mark) => document.marks.split(' ').any(|it| it == mark),
            Self::And(all) => all.iter().all(|query| query.accepts(document)),
            Self::Or(some) => some.iter().any(|query| query.accepts(document)),
            Self::Not(query) => !query.accepts(document),
        }
    }

    /// Returns the phrases that the query looks for, without those that must not be there.
    pub fn phrases(&self) -> Vec<&Phrase> {
        match self {
            Self::Phrase(phrase) => vec![phrase],
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::phrases).collect(),
            Self::Mark(_) | Self::Not(_) => Vec::new(),
        }
    }
}

impl Phrase {
    /// Returns where the phrase stands in a document: the column, and the place of its first term.
    pub fn occurrences<'a>(
        &'a self,
        document: &'a Document,
    ) -> impl Iterator<Item = (Column, usize)> + 'a {
        self.columns.iter().flat_map(move |&column| {
            let terms: Vec<&str> =
                document.column(column).split(' ').filter(|term| !term.is_empty()).collect();
            let places: Vec<_> = terms
                .windows(self.terms.len().max(1))
                .enumerate()
                .filter(|(_, window)| self.fits(window))
                .map(|(place, _)| (column, place))
                .collect();
            places
        })
    }

    /// Tells whether these terms are the phrase.
    pub fn fits(&self, terms: &[&str]) -> bool {
        let last = self.terms.len().saturating_sub(1);
        terms.len() == self.terms.len()
            && self.terms.iter().zip(terms).enumerate().all(|(place, (wanted, term))| {
                match self.end {
                    WordEnd::Prefix if place == last => term.starts_with(wanted.as_str()),
                    WordEnd::Prefix | WordEnd::Whole => term == wanted,
                }
            })
    }
}

/// A text that may be longer than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured<'a> {
    /// As much of its beginning as there is room for.
    pub(crate) kept: &'a str,
    /// How many pieces that is.
    pub(crate) kept_count: usize,
    /// How many pieces come after it.
    pub(crate) left_out_count: usize,
}

/// Cuts a text that a query asks for to so many pieces, because each of them takes time to look for:
/// `foo-bar`, `fooBar` and `"foo bar"` are two, `日本語` is three.
pub(crate) fn measured(written: &str, room: usize) -> Measured<'_> {
    let (mut kept_count, mut total_count, mut end) = (0, 0, 0);
    each_run(written, |run, range| {
        let piece = written.get(range.clone()).unwrap_or_default();
        let mut add = |count: usize, piece_end: usize| {
            total_count += count;
            if total_count <= room {
                (kept_count, end) = (total_count, piece_end);
            }
        };
        match run {
            Run::Word => add(word_parts(piece).len().max(1), range.end),
            Run::Ideographs => {
                let ends = piece.char_indices().map(|(at, letter)| at + letter.len_utf8());
                ends.for_each(|piece_end| add(1, range.start + piece_end));
            }
        }
    });
    if total_count <= room && room > 0 {
        return Measured { kept: written, kept_count: total_count.max(1), left_out_count: 0 };
    }
    let kept = written.get(..end).unwrap_or_default();
    Measured { kept, kept_count, left_out_count: total_count.max(1) - kept_count }
}

/// Returns the parts of an identifier; none of a word that is none, or has too many.
fn word_parts(word: &str) -> Vec<&str> {
    let parts = parts(word);
    if parts.len() > PARTS_MAX { Vec::new() } else { parts }
}

/// Returns the terms of a word with the parts of identifiers one by one.
fn pieces(written: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    each_run(written, |run, range| {
        let piece = written.get(range).unwrap_or_default();
        let parts = if run == Run::Word { word_parts(piece) } else { Vec::new() };
        if parts.is_empty() {
            pieces.extend(terms(piece).into_iter().map(|term| term.text));
        }
        pieces.extend(parts.into_iter().flat_map(terms).map(|term| term.text));
    });
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::document::{extra, joined, spaced};
    use super::*;

    fn document(text: &str) -> Document {
        Document {
            body: joined([text]),
            extra: spaced(extra([text]).iter().map(String::as_str)),
            ..Document::default()
        }
    }

    fn finds(query: Option<TermQuery>, text: &str) -> bool {
        query.is_some_and(|query| query.accepts(&document(text)))
    }

    #[test]
    fn a_word_finds_its_other_forms() {
        assert!(finds(TermQuery::word("connecting", TEXT), "the Connections"));
        assert!(finds(TermQuery::word("café", TEXT), "CAFE"));
        assert!(!finds(TermQuery::word("tea", TEXT), "teapot"));
    }

    #[test]
    fn identifiers_are_found_whole_and_in_parts() {
        for query in ["parseJsonValue", "parse_json_value", "parsejsonvalue"] {
            assert!(finds(TermQuery::word(query, TEXT), "call parseJsonValue()"), "{query}");
        }
        assert!(finds(TermQuery::word("json", TEXT), "call parseJsonValue()"));
        assert!(finds(TermQuery::word("parseJson", TEXT), "use parse_json here"));
        assert!(finds(TermQuery::word("foo-bar/baz.rs", TEXT), "see foo-bar/baz.rs"));
        assert!(!finds(TermQuery::word("bar-foo", TEXT), "see foo-bar"));
    }

    #[test]
    fn prefixes_look_at_whole_words() {
        assert!(finds(TermQuery::prefix("organiz", TEXT), "the organization"));
        assert!(finds(TermQuery::prefix("te", TEXT), "teapot"));
        assert!(!finds(TermQuery::prefix("t", TEXT), "teapot"));
        assert!(finds(TermQuery::prefix("green te", TEXT), "green teapot"));
    }

    #[test]
    fn scripts_without_spaces_are_found_inside_a_run() {
        for query in ["日本", "本語", "日本語", "語", "本"] {
            assert!(finds(TermQuery::word(query, TEXT), "これは日本語"), "{query}");
        }
        assert!(!finds(TermQuery::word("日語", TEXT), "日本語"));
    }

    #[test]
    fn what_is_written_as_one_is_measured_in_pieces() {
        let check = |text: &str, room, kept: &str, counts: (usize, usize)| {
            let found = measured(text, room);
            assert_eq!((found.kept, (found.kept_count, found.left_out_count)), (kept, counts));
        };
        check("foo-bar/baz", 3, "foo-bar/baz", (3, 0));
        check("foo-bar/baz.", 2, "foo-bar", (2, 1));
        check("parseJson tea", 2, "parseJson", (2, 1));
        check("parseJson", 1, "", (0, 2));
        check("日本語の", 3, "日本語", (3, 1));
        check("…", 1, "…", (1, 0));
        check("…", 0, "", (0, 1));
        let hash = "a1".repeat(20_000);
        check(&hash, 1, &hash, (1, 0));
        assert_eq!(pieces(&hash).len(), 1);
    }

    #[test]
    fn signs_alone_are_no_word() {
        assert_eq!(TermQuery::word("--", TEXT), None);
        assert_eq!(TermQuery::phrase("", TEXT), None);
        assert_eq!(TermQuery::prefix("!", TEXT), None);
    }

    #[test]
    fn all_of_none_is_everything_and_one_of_none_is_nothing() {
        assert!(TermQuery::any().accepts(&document("x")));
        assert!(!TermQuery::none().accepts(&document("x")));
    }
}
