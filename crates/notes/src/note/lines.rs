//! Line numbers of byte offsets.

/// The offsets at which lines begin, without the first.
#[derive(Debug)]
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    /// Scans a text.
    pub(crate) fn new(text: &str) -> Self {
        let breaks = text.bytes().zip(1..).filter(|(byte, _)| *byte == b'\n');
        Self(breaks.map(|(_, next)| next).collect())
    }

    /// Returns the 1-based line of a byte offset.
    pub(crate) fn number(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }
}

/// Returns the lines of a text, terminators included, with their offsets.
pub(crate) fn with_offsets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        (start, line)
    })
}
