//! Queries as tokens.

use crate::index::measured;

use super::{DEPTH_MAX, Field, Filter, TERMS_MAX, Term};

/// A part of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Term(Term),
    Filter(Filter),
    And,
    Or,
    Not,
    Open,
    Close,
}

/// Returns the tokens of a query and how many terms were left out. Every `Open` has its `Close`.
pub(super) fn tokens(text: &str) -> (Vec<Token>, usize) {
    let mut lexer = Lexer { rest: text, ..Lexer::default() };
    while lexer.step() {}
    (balanced(lexer.tokens), lexer.left_out)
}

#[derive(Default)]
struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    terms_count: usize,
    left_out: usize,
    /// Once a quote has no partner, no later one has.
    is_quote_free: bool,
}

impl<'a> Lexer<'a> {
    /// Takes one token off the rest; `false` at the end.
    fn step(&mut self) -> bool {
        self.rest = self.rest.trim_start_matches(is_space);
        let Some(first) = self.rest.chars().next() else { return false };
        match first {
            '(' => self.take(Token::Open, 1),
            ')' => self.take(Token::Close, 1),
            quote if is_quote(quote) => match self.quoted() {
                Some(phrase) => self.add(&cleaned(phrase), Term::Phrase),
                None => self.rest = self.rest.trim_start_matches(is_quote),
            },
            _ => self.word(),
        }
        true
    }

    fn take(&mut self, token: Token, size: usize) {
        self.tokens.push(token);
        self.rest = self.rest.get(size..).unwrap_or_default();
    }

    /// Takes the text between the quote at the beginning and the next one.
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
        // An opening bracket inside a word, as in `main()`, only separates.
        self.rest = self.rest.strip_prefix('(').unwrap_or(self.rest);
        match word {
            "AND" => return self.tokens.push(Token::And),
            "OR" => return self.tokens.push(Token::Or),
            "NOT" => return self.tokens.push(Token::Not),
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
            self.left_out += 1;
        } else {
            self.terms_count += 1;
            self.tokens.push(Token::Filter(Filter { field, value: value.to_owned() }));
        }
    }

    /// Adds as much of a term as there is room for: what is written as one may be many words.
    fn add(&mut self, text: &str, make: fn(String) -> Term) {
        if !has_letter(text) {
            return;
        }
        let measured = measured(text, self.room());
        self.terms_count += measured.kept_count;
        self.left_out += measured.left_out_count;
        if !measured.kept.is_empty() {
            self.tokens.push(Token::Term(make(measured.kept.to_owned())));
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

/// Signs alone can be found nowhere.
fn has_letter(text: &str) -> bool {
    text.chars().any(|character| character.is_alphanumeric() || !character.is_ascii())
}

/// Returns a phrase with single spaces.
fn cleaned(phrase: &str) -> String {
    phrase.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn field(word: &str) -> Option<(Field, &str)> {
    let (name, value) = word.split_once(':')?;
    let fields = [("tag", Field::Tag), ("type", Field::Type), ("path", Field::Path)];
    let field = fields.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?.1;
    Some((field, value))
}

/// Drops the parentheses that have no partner or are nested too deep.
fn balanced(mut tokens: Vec<Token>) -> Vec<Token> {
    let mut open = Vec::new();
    let mut keep = vec![true; tokens.len()];
    let mut drop_at = |place: usize| {
        if let Some(kept) = keep.get_mut(place) {
            *kept = false;
        }
    };
    for (place, token) in tokens.iter().enumerate() {
        if *token == Token::Open {
            open.push(place);
        } else if *token == Token::Close {
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
