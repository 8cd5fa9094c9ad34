//! Glob patterns.

#[cfg(test)]
mod tests;

/// A pattern for paths and permalinks: `*` matches any characters including `/`, and `?` matches
/// one. A leading slash is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob(String);

/// The rest of a longer pattern is ignored; no path is as long.
const CHARS_MAX: usize = 1024;

impl Glob {
    /// Creates a pattern; every text is a valid one.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.trim_start_matches('/').chars().take(CHARS_MAX).collect())
    }

    /// Returns the pattern without a leading slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a text matches the pattern.
    pub fn matches(&self, text: &str) -> bool {
        let (mut pattern, mut text) = (self.0.chars(), text.trim_start_matches('/').chars());
        // Only the last star is ever retried, which keeps this quadratic at worst. Backtracking
        // into earlier stars cannot help, and takes exponential time on `*a*a*a…`.
        let mut retry = None;
        loop {
            let text_before = text.clone();
            match (pattern.next(), text.next()) {
                (None, None) => return true,
                (Some('*'), _) => {
                    retry = Some((pattern.clone(), text_before.clone()));
                    text = text_before;
                }
                (Some('?'), Some(_)) => {}
                (Some(wanted), Some(found)) if wanted == found => {}
                (_, _) => {
                    let Some((after_star, mut rest)) = retry.take() else { return false };
                    if rest.next().is_none() {
                        return false;
                    }
                    retry = Some((after_star.clone(), rest.clone()));
                    (pattern, text) = (after_star, rest);
                }
            }
        }
    }
}
