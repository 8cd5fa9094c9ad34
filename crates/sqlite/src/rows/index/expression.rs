//! Queries in the language of FTS5.

use quipu_core::index::{Column, Mark, Phrase, TermQuery, WordEnd};

/// What a query comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// Every document.
    All,
    /// No document.
    Nothing,
    /// The documents that this selects.
    Some(String),
}

impl Expression {
    pub(super) fn of(query: &TermQuery) -> Self {
        match query {
            TermQuery::Phrase(phrase) => Self::Some(written(phrase, phrase.columns)),
            TermQuery::Mark(mark) => Self::Some(format!("marks : \"{mark}\"")),
            TermQuery::And(parts) => Self::all_of(parts),
            TermQuery::Or(parts) => Self::one_of(parts.iter().map(Self::of)),
            TermQuery::Not(part) => match Self::of(part) {
                Self::All => Self::Nothing,
                Self::Nothing => Self::All,
                Self::Some(part) => Self::Some(format!("({} NOT {part})", any())),
            },
        }
    }

    fn all_of(parts: &[TermQuery]) -> Self {
        let mut wanted = Vec::new();
        let mut unwanted = Vec::new();
        for part in parts {
            match part {
                TermQuery::Not(part) => unwanted.push(Self::of(part)),
                TermQuery::Phrase(_)
                | TermQuery::Mark(_)
                | TermQuery::And(_)
                | TermQuery::Or(_) => match Self::of(part) {
                    Self::All => {}
                    Self::Nothing => return Self::Nothing,
                    Self::Some(part) => wanted.push(part),
                },
            }
        }
        let wanted = match wanted.as_slice() {
            [] => None,
            parts => Some(format!("({})", parts.join(" AND "))),
        };
        match (wanted, Self::one_of(unwanted.into_iter())) {
            (_, Self::All) => Self::Nothing,
            (None, Self::Nothing) => Self::All,
            (Some(wanted), Self::Nothing) => Self::Some(wanted),
            (wanted, Self::Some(unwanted)) => {
                Self::Some(format!("({} NOT {unwanted})", wanted.unwrap_or_else(any)))
            }
        }
    }

    fn one_of(parts: impl Iterator<Item = Self>) -> Self {
        let mut wanted = Vec::new();
        for part in parts {
            match part {
                Self::All => return Self::All,
                Self::Nothing => {}
                Self::Some(part) => wanted.push(part),
            }
        }
        match wanted.as_slice() {
            [] => Self::Nothing,
            parts => Self::Some(format!("({})", parts.join(" OR "))),
        }
    }
}

/// Returns what selects the documents that have one of the words in their title; `None` if there
/// are only phrases, which take long to look for.
pub(super) fn titled(phrases: &[&Phrase]) -> Option<String> {
    let titles: Vec<_> = phrases
        .iter()
        .filter(|phrase| phrase.terms.len() == 1 && phrase.columns.contains(&Column::Title))
        .map(|phrase| written(phrase, &[Column::Title]))
        .collect();
    (!titles.is_empty()).then(|| format!("({})", titles.join(" OR ")))
}

fn any() -> String {
    format!("marks : \"{}\"", Mark::Any.term())
}

fn written(phrase: &Phrase, columns: &[Column]) -> String {
    // A word that may stand anywhere and is no mark need not be looked for in certain columns,
    // which takes longer.
    let is_anywhere = matches!(phrase.terms.as_slice(), [word] if !Mark::is_like(word))
        && phrase.end == WordEnd::Whole
        && columns.len() == Column::ALL.len() - 1;
    let columns: Vec<_> = columns.iter().map(|column| column.as_str()).collect();
    let columns = if is_anywhere { String::new() } else { format!("{{{}}} : ", columns.join(" ")) };
    let star = match phrase.end {
        WordEnd::Whole => "",
        WordEnd::Prefix => " *",
    };
    // Terms are letters and digits only, so there is nothing to escape.
    format!("{columns}\"{}\"{star}", phrase.terms.join(" "))
}
