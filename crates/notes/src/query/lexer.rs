//! The lexer of the query language.

use crate::phrase::truncated;

use super::{DEPTH_MAX, Field, Filter, TERMS_MAX, Term};

/// A lexeme of the query language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lexeme {
    Term(Term),
    Filter(Filter),
    And,
    Or,
    Not,
    Open,
    Close,
}

/// Returns the lexemes of a query and how many terms were dropped. Every `Open` has its `Close`.
pub(super) fn tokens(text: &str) -> (Vec<Lexeme>, usize) {
    let mut lexer = Lexer { rest: text, ..Lexer::default() };
    while lexer.step() {}
    (balanced(lexer.tokens), lexer.omitted_count)
}

#[derive(Default)]
struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Lexeme>,
    terms_count: usize,
    omitted_count: usize,
    /// Whether no closing quote is left. Searching for one after every opening quote would take
    /// quadratic time.
    is_quote_free: bool,
}

impl<'a> Lexer<'a> {
    /// Consumes one lexeme; `false` at the end.
    fn step(&mut self) -> bool {
        self.rest = self.rest.trim_start_matches(is_space);
        let Some(first) = self.rest.chars().next() else { return false };
        match first {
            '(' => self.take(Lexeme::Open, 1),
            ')' => self.take(Lexeme::Close, 1),
            quote if is_quote(quote) => match self.quoted() {
                Some(phrase) => self.add(&cleaned(phrase), Term::Phrase),
                None => self.rest = self.rest.trim_start_matches(is_quote),
            },
            _ => self.word(),
        }
        true
    }

    fn take(&mut self, token: Lexeme, size: usize) {
        self.tokens.push(token);
        self.rest = self.rest.get(size..).unwrap_or_default();
    }

    /// Consumes the text between the quote at the beginning and the next one.
    fn quoted(&mut self) -> Option<&'a str> {
        let mut characters = self.rest.chars();
        characters.next().filter(|quote| is_quote(*quote) && !self.is_quote_free)?;
        let after = characters.as_str();
        match after.split_once(is_quote) {
            Some((inside, rest)) => {
                self.rest = rest;
                Some(inside)
            }
            None => {
                self.is_quote_free = true;
                None
            }
        }
    }

    fn word(&mut self) {
        let end = self.rest.find(|it| is_space(it) || is_quote(it) || matches!(it, '(' | ')'));
        let (word, rest) =
            self.rest.split_at_checked(end.unwrap_or(self.rest.len())).unwrap_or(("", ""));
        self.rest = rest;
        // Inside of a word, as in `main()`, an opening parenthesis is a separator.
        self.rest = self.rest.strip_prefix('(').unwrap_or(self.rest);
        match word {
            "AND" => return self.tokens.push(Lexeme::And),
            "OR" => return self.tokens.push(Lexeme::Or),
            "NOT" => return self.tokens.push(Lexeme::Not),
            _ => {}
        }
        if let Some((field, value)) = field(word) {
            let quoted = if value.is_empty() { self.quoted().map(cleaned) } else { None };
            let value = quoted.unwrap_or_else(|| value.to_owned());
            let value = value.trim_start_matches(['#', ' ']).trim();
            if !value.is_empty() {
                return self.filter(field, value);
            }
        }
        match word.strip_suffix('*') {
            Some(start) => self.add(start.trim_end_matches('*'), Term::Prefix),
            None => self.add(word, Term::Word),
        }
    }

    fn filter(&mut self, field: Field, value: &str) {
        if self.room() == 0 {
            self.omitted_count += 1;
        } else {
            self.terms_count += 1;
            self.tokens.push(Lexeme::Filter(Filter { field, value: value.to_owned() }));
        }
    }

    /// Adds as much of a term as the limit allows: `a-b-c` counts as three.
    fn add(&mut self, text: &str, make: fn(String) -> Term) {
        if !has_letter(text) {
            return;
        }
        let truncated = truncated(text, self.room());
        self.terms_count += truncated.kept_count;
        self.omitted_count += truncated.omitted_count;
        if !truncated.kept.is_empty() {
            self.tokens.push(Lexeme::Term(make(truncated.kept.to_owned())));
        }
    }

    fn room(&self) -> usize {
        TERMS_MAX.saturating_sub(self.terms_count)
    }
}

fn is_space(character: char) -> bool {
    character.is_whitespace() || character.is_control()
}

fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}')
}

/// Punctuation alone is in no index.
fn has_letter(text: &str) -> bool {
    text.chars().any(|character| character.is_alphanumeric() || !character.is_ascii())
}

/// Collapses white space.
fn cleaned(phrase: &str) -> String {
    phrase.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn field(word: &str) -> Option<(Field, &str)> {
    let (name, value) = word.split_once(':')?;
    let fields = [("tag", Field::Tag), ("type", Field::Type), ("path", Field::Path)];
    let field = fields.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?.1;
    Some((field, value))
}

/// Drops parentheses that are unbalanced or nested too deep.
fn balanced(mut tokens: Vec<Lexeme>) -> Vec<Lexeme> {
    let mut open = Vec::new();
    let mut keep = vec![true; tokens.len()];
    let mut drop_at = |place: usize| {
        if let Some(kept) = keep.get_mut(place) {
            *kept = false;
        }
    };
    for (place, token) in tokens.iter().enumerate() {
        if *token == Lexeme::Open {
            open.push(place);
        } else if *token == Lexeme::Close {
            let depth = open.len();
            match open.pop() {
                None => drop_at(place),
                Some(partner) if depth > DEPTH_MAX => {
                    [place, partner].into_iter().for_each(&mut drop_at);
                }
                Some(_) => {}
            }
        }
    }
    open.into_iter().for_each(drop_at);
    let mut keep = keep.into_iter();
    tokens.retain(|_| keep.next().unwrap_or(true));
    tokens
}
