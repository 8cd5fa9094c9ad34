//! Small enums that have the same textual form at every door.

use std::fmt;

/// The error for a text that is not one of the allowed words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseWordError {
    /// The words that are allowed.
    pub words: Vec<&'static str>,
}

impl fmt::Display for ParseWordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "must be one of: {}", self.words.join(", "))
    }
}

impl std::error::Error for ParseWordError {}

/// Gives an enum its textual form, in both directions.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $type {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the word that all doors use for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::model::ParseWordError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().copied().find(|value| value.as_str() == text);
                found.ok_or_else(|| $crate::model::ParseWordError {
                    words: Self::ALL.iter().map(|value| value.as_str()).collect(),
                })
            }
        }
    };
}

pub(super) use words;

#[cfg(test)]
mod tests {
    use super::super::{Operation, Role};

    #[test]
    fn words_are_read_back() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(*role));
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        let error = "renamed".parse::<Operation>().unwrap_err();
        assert_eq!(error.to_string(), "must be one of: created, modified, deleted");
    }
}
