//! Glob patterns, matched in time linear in the text for a given pattern.

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    tokens: Vec<Token>,
    /// The characters before the first wildcard, for a quick answer to most texts.
    prefix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Character(char),
    /// `?`: one character, not a slash.
    One,
    /// `*`: any characters but slashes.
    Star,
    /// `**`: any characters.
    Everything,
    /// `**/`: any number of whole directories.
    Directories,
}

/// What `*` and `?` stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// In a path: anything but a slash.
    Path,
    /// In a word: anything.
    Word,
}

impl Glob {
    pub(crate) fn new(pattern: &str, dialect: Dialect) -> Self {
        let mut tokens = Vec::new();
        let mut characters = pattern.chars().peekable();
        while let Some(character) = characters.next() {
            tokens.push(match character {
                '\\' => Token::Character(characters.next().unwrap_or('\\')),
                '?' if dialect == Dialect::Path => Token::One,
                '*' if dialect == Dialect::Word => Token::Everything,
                '*' if characters.next_if_eq(&'*').is_some() => {
                    let is_whole = matches!(
                        tokens.last(),
                        None | Some(Token::Character('/') | Token::Directories)
                    );
                    if is_whole && characters.next_if_eq(&'/').is_some() {
                        Token::Directories
                    } else {
                        Token::Everything
                    }
                }
                '*' => Token::Star,
                other => Token::Character(other),
            });
        }
        tokens.dedup_by(|next, before| next == before && is_repeatable(*next));
        let literal = |token: &Token| match token {
            Token::Character(character) => Some(*character),
            Token::One | Token::Star | Token::Everything | Token::Directories => None,
        };
        let prefix = tokens.iter().map_while(literal).collect();
        Self { tokens, prefix }
    }

    /// Returns whether the whole text matches.
    ///
    /// All positions of the pattern that the text so far can have reached are followed at once. To retry
    /// from the last star is shorter, but with two kinds of stars it takes cubic time.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(self.prefix.as_str()) else { return false };
        let tokens = self.tokens.get(self.prefix.chars().count()..).unwrap_or_default();
        if tokens.is_empty() {
            return rest.is_empty();
        }
        let mut reached = vec![false; tokens.len() + 1];
        let mut next = reached.clone();
        enter(tokens, &mut reached, 0);
        for character in rest.chars() {
            next.fill(false);
            let mut is_alive = false;
            for (place, token) in tokens.iter().enumerate() {
                if !reached.get(place).copied().unwrap_or_default() {
                    continue;
                }
                let to = match token {
                    Token::Character(wanted) => (*wanted == character).then_some(place + 1),
                    Token::One => (character != '/').then_some(place + 1),
                    Token::Star => (character != '/').then_some(place),
                    Token::Everything | Token::Directories => Some(place),
                };
                if let Some(to) = to {
                    is_alive = true;
                    step(tokens, &mut next, to, *token, character);
                }
            }
            if !is_alive {
                return false;
            }
            std::mem::swap(&mut reached, &mut next);
        }
        reached.last().copied().unwrap_or_default()
    }
}

fn is_repeatable(token: Token) -> bool {
    match token {
        Token::Star | Token::Everything | Token::Directories => true,
        Token::Character(_) | Token::One => false,
    }
}

/// Marks a position after a character, and what can be reached from it without another one.
fn step(tokens: &[Token], reached: &mut [bool], to: usize, from: Token, character: char) {
    match from {
        // Inside of a directory, what follows cannot begin yet.
        Token::Directories if character != '/' => {
            if let Some(place) = reached.get_mut(to) {
                *place = true;
            }
        }
        Token::Directories | Token::Everything | Token::Star | Token::One | Token::Character(_) => {
            enter(tokens, reached, to);
        }
    }
}

fn enter(tokens: &[Token], reached: &mut [bool], mut place: usize) {
    while let Some(mark) = reached.get_mut(place) {
        *mark = true;
        match tokens.get(place) {
            Some(Token::Star | Token::Everything | Token::Directories) => place += 1,
            Some(Token::Character(_) | Token::One) | None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(pattern: &str, text: &str) -> bool {
        Glob::new(pattern, Dialect::Path).matches(text)
    }

    #[test]
    fn a_star_stays_in_its_directory() {
        assert!(path("src/*.rs", "src/lib.rs"));
        assert!(!path("src/*.rs", "src/a/lib.rs"));
        assert!(path("s?c", "src") && !path("s?c", "s/c"));
        assert!(path("a*b*c", "axxbyyc") && !path("a*b*c", "axxbyy"));
    }

    #[test]
    fn two_stars_cross_directories() {
        assert!(path("src/**", "src/a/b") && !path("src/**", "src"));
        assert!(path("**/a.sql", "a.sql") && path("**/a.sql", "x/y/a.sql"));
        assert!(!path("**/a.sql", "x/ba.sql"));
        assert!(path("a/**/z", "a/z") && path("a/**/z", "a/b/c/z") && !path("a/**/z", "a/bz"));
        assert!(path("a**z", "a/b/z"));
        assert!(path("**/**/a", "a") && path("**/**/a", "x/a"));
    }

    #[test]
    fn a_backslash_takes_a_character_literally() {
        assert!(path("a\\*b", "a*b") && !path("a\\*b", "axb"));
        assert!(path("\\", "\\"));
    }

    #[test]
    fn words_have_no_directories() {
        let word = |pattern: &str, text| Glob::new(pattern, Dialect::Word).matches(text);
        assert!(word("https://*", "https://a/b") && word("-*f", "-rf") && !word("what?", "whats"));
        assert!(word("**", "") && word("*", ""));
    }

    #[test]
    fn hostile_patterns_take_no_longer_than_others() {
        let pattern = format!("{}b", "**/*a".repeat(100));
        assert!(!path(&pattern, &"a".repeat(4000)));
    }
}
