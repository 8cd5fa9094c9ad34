//! Patterns with `*` and `?`.

/// A pattern of paths or permalinks: `*` stands for any characters, `/` among them, and `?` for
/// one. A slash at the beginning makes no difference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob(String);

/// How long a pattern may be; the rest of a longer one is ignored, as no path is as long.
const CHARS_MAX: usize = 1024;

impl Glob {
    /// Makes a pattern.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.trim_start_matches('/').chars().take(CHARS_MAX).collect())
    }

    /// Returns the pattern, without a slash at its beginning.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether a text fits the pattern.
    pub fn matches(&self, text: &str) -> bool {
        let (mut pattern, mut text) = (self.0.chars(), text.trim_start_matches('/').chars());
        // Where to go on when the last star must stand for one more character.
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
