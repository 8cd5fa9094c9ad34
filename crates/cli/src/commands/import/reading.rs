//! Reading the texts of items.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use quipu_core::model::Content;

use super::source::{Body, Item};

/// Why an item cannot be a memory.
pub(super) enum Unfit {
    /// It is not text, and its name does not claim that it is.
    Binary,
    Reason(String),
}

/// The extensions of files that are meant to be text. One that is not valid text is an error that
/// people want to hear of, not an image to be counted.
const TEXT_EXTENSIONS: [&str; 9] =
    ["md", "markdown", "mdx", "txt", "text", "org", "rst", "adoc", "tex"];

/// How much of a file is read to tell text from binary data.
const SAMPLE_SIZE_BYTES: u64 = 8192;

/// Returns whether a file is binary, such as an image.
fn is_binary(file: &Path) -> bool {
    let extension = file.extension().unwrap_or_default();
    if TEXT_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        return false;
    }
    let mut sample = Vec::new();
    let read =
        fs::File::open(file).and_then(|file| file.take(SAMPLE_SIZE_BYTES).read_to_end(&mut sample));
    // A character may be cut in half where the sample ends.
    let is_text = |error: std::str::Utf8Error| error.error_len().is_none();
    read.is_ok() && (sample.contains(&0) || !str::from_utf8(&sample).map_or_else(is_text, |_| true))
}

impl Item {
    /// Returns the text of the item, which has at most `size_max` bytes.
    pub(super) fn content(&self, size_max: u64) -> Result<Content, Unfit> {
        self.text(size_max).map_err(|reason| match &self.body {
            Body::File(file) if is_binary(file) => Unfit::Binary,
            Body::File(_) | Body::Text(_) => Unfit::Reason(reason),
        })
    }

    /// Returns the text of a new memory: the item's own, with its dates if it has some.
    pub(super) fn dated(&self, content: Content, size_max: u64) -> Content {
        let dated = self.dates.and_then(|dates| dates.added_to(&content, size_max));
        dated.unwrap_or(content)
    }

    fn text(&self, size_max: u64) -> Result<Content, String> {
        let too_long = || format!("it is longer than the {size_max} bytes that a memory may have");
        let content = match &self.body {
            Body::Text(text) => Content::new(text.as_str()),
            Body::File(file) => {
                let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
                if metadata.len() > size_max {
                    return Err(too_long());
                }
                Content::from_bytes(&fs::read(file).map_err(|error| error.to_string())?)
            }
        };
        let content = content.map_err(|error| error.to_string())?;
        if content.size_bytes() > size_max { Err(too_long()) } else { Ok(content) }
    }
}
