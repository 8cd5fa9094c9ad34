//! From places in a text to numbers of lines.

/// Where the lines of a text begin.
#[derive(Debug)]
pub(super) struct Lines(Vec<usize>);

impl Lines {
    /// Finds the lines of a text.
    pub(super) fn new(text: &str) -> Self {
        let breaks = text.bytes().zip(1..).filter(|(byte, _)| *byte == b'\n');
        Self(breaks.map(|(_, next)| next).collect())
    }

    /// Returns the line, counted from 1, that holds a byte.
    pub(super) fn number(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }
}

/// Returns each line of a text with its end of line, and where it begins.
pub(super) fn with_offsets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        (start, line)
    })
}
