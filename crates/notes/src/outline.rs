//! Outlines: the headings of a text, read line by line.
//!
//! This looks at lines alone and not at blocks of markdown: it runs for every hit of a search, and a parser
//! takes far longer.

/// Reads headings, and leaves out what looks like one in a block of code.
#[derive(Debug, Default)]
pub struct Outline {
    /// The headings around the current line, with their levels.
    headings: Vec<(usize, String)>,
    /// The marker that ends the code block that is open.
    fence: Option<String>,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It has no text.
    Empty,
    /// A heading of this level.
    Heading(usize),
    /// Anything else.
    Text,
}

impl Outline {
    /// Reads the next line. A heading is among [`headings`](Self::headings) from then on.
    pub fn read(&mut self, line: &str) -> LineKind {
        let trimmed = line.trim();
        let heading = if self.fence.is_none() { heading(line) } else { None };
        self.follow_fence(trimmed);
        if let Some((level, text)) = heading {
            self.headings.retain(|(above, _)| *above < level);
            self.headings.push((level, text.to_owned()));
            return LineKind::Heading(level);
        }
        if trimmed.is_empty() { LineKind::Empty } else { LineKind::Text }
    }

    /// Returns the headings that the current line is below, from the top, with their levels.
    pub fn headings(&self) -> &[(usize, String)] {
        &self.headings
    }

    fn follow_fence(&mut self, line: &str) {
        match &self.fence {
            Some(fence) if line.starts_with(fence.as_str()) => self.fence = None,
            Some(_) => {}
            None => {
                let marker = ["```", "~~~"].into_iter().find(|marker| line.starts_with(marker));
                self.fence = marker.map(str::to_owned);
            }
        }
    }
}

/// Returns the level and the text of a line that is a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let indented = line.trim_start_matches(' ');
    let rest = indented.trim_start_matches('#');
    let level = indented.len() - rest.len();
    let is_heading = line.len() - indented.len() < 4
        && (1..=6).contains(&level)
        && (rest.trim().is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_in_code_are_text() {
        let mut outline = Outline::default();
        let lines = ["# Tea", "", "```sh", "# boil", "```", "## Pots", "clay", "# Cups"];
        let read: Vec<_> = lines.iter().map(|line| outline.read(line)).collect();
        let (text, empty) = (LineKind::Text, LineKind::Empty);
        let expected = [
            LineKind::Heading(1),
            empty,
            text,
            text,
            text,
            LineKind::Heading(2),
            text,
            LineKind::Heading(1),
        ];
        assert_eq!(read, expected);
        assert_eq!(outline.headings(), [(1, "Cups".to_owned())]);
    }
}
