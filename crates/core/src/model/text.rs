//! Short texts with a limit: names, descriptions, instructions.
//!
//! Lengths are counted in characters (Unicode scalar values).

use std::fmt;

/// The error for a short text that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// It is empty and must not be.
    Empty {
        /// What the text is, such as `name`.
        what: &'static str,
    },
    /// It has more characters than allowed.
    TooLong {
        /// What the text is.
        what: &'static str,
        /// How many characters are allowed.
        chars_max: usize,
    },
    /// It has a control character, such as a line break, and must not have one.
    ControlCharacter {
        /// What the text is.
        what: &'static str,
    },
    /// There are more metadata pairs than allowed.
    TooManyPairs {
        /// How many pairs are allowed.
        pairs_max: usize,
    },
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { what } => write!(f, "the {what} must not be empty"),
            Self::TooLong { what, chars_max } => {
                write!(f, "the {what} must have at most {chars_max} characters")
            }
            Self::ControlCharacter { what } => {
                write!(f, "the {what} must not have control characters")
            }
            Self::TooManyPairs { pairs_max } => {
                write!(f, "the metadata must have at most {pairs_max} pairs")
            }
        }
    }
}

impl std::error::Error for TextError {}

/// Checks a length in characters, without counting further than needed.
pub(super) fn check_length(
    what: &'static str,
    text: &str,
    chars_max: usize,
) -> Result<(), TextError> {
    if text.len() > chars_max && text.chars().nth(chars_max).is_some() {
        return Err(TextError::TooLong { what, chars_max });
    }
    Ok(())
}

macro_rules! short_texts {
    ($($(#[$doc:meta])* $name:ident($what:literal, $chars_max:literal, $check:ident);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Checks the rules and returns the text as this type.
            pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
                let text = text.into();
                check_length($what, &text, $chars_max)?;
                $check($what, &text)?;
                Ok(Self(text))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )*};
}

short_texts! {
    /// The name of a store, a key or a workspace: 1 to 255 characters on one line.
    Name("name", 255, one_line);
    /// What a store is for: at most 1,024 characters, shown to agents.
    Description("description", 1024, anything);
    /// What an agent should do with an attached store: at most 4,096 characters.
    Instructions("instructions", 4096, anything);
    /// Why something was changed or erased: 1 to 500 characters on one line.
    Reason("reason", 500, one_line);
}

fn one_line(what: &'static str, text: &str) -> Result<(), TextError> {
    if text.is_empty() {
        return Err(TextError::Empty { what });
    }
    if text.chars().any(char::is_control) {
        return Err(TextError::ControlCharacter { what });
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "it stands where a check stands for other texts")]
fn anything(_what: &'static str, _text: &str) -> Result<(), TextError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_every_limit() {
        assert!(Name::new("ü".repeat(255)).is_ok());
        let too_long = TextError::TooLong { what: "name", chars_max: 255 };
        assert_eq!(Name::new("ü".repeat(256)), Err(too_long));
        assert!(Description::new("ü".repeat(1024)).is_ok());
        assert!(Description::new("ü".repeat(1025)).is_err());
        assert!(Instructions::new("ü".repeat(4096)).is_ok());
        assert!(Instructions::new("ü".repeat(4097)).is_err());
    }

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(Name::new(""), Err(TextError::Empty { what: "name" }));
        assert_eq!(Name::new("a\nb"), Err(TextError::ControlCharacter { what: "name" }));
    }

    #[test]
    fn descriptions_may_be_empty_and_have_lines() {
        assert!(Description::new("").is_ok());
        assert!(Description::new("one\ntwo").is_ok());
    }
}
