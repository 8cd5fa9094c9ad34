//! Conversations with a model as notes.

use quipu_core::model::Timestamp;
use quipu_notes::{Value, edit, slug};

use crate::failure::Failure;

use super::source::{Collected, Mark, StableId};

/// The maximum length of the readable part of a file name.
const SLUG_CHARS_MAX: usize = 60;
/// How many characters of a conversation's id are part of its file name.
const ID_CHARS: usize = 8;
/// The frontmatter field with a conversation's id.
const ID_FIELD: &str = "conversation_id";
/// The maximum size of a part's frontmatter and headings.
const FRAME_SIZE_BYTES: usize = 4096;

/// A conversation of any program.
pub(super) struct Conversation {
    /// The program, which also names the directory.
    pub(super) program: &'static str,
    pub(super) id: String,
    pub(super) title: String,
    pub(super) created: Option<Timestamp>,
    pub(super) modified: Option<Timestamp>,
    pub(super) messages: Vec<Message>,
}

/// A message of a conversation.
pub(super) struct Message {
    pub(super) speaker: &'static str,
    pub(super) text: String,
}

impl Conversation {
    /// Adds the conversation as a note, or as several if it is too long for one.
    pub(super) fn add_to(&self, size_max: u64, into: &mut Collected) -> Result<(), Failure> {
        let title = if self.title.trim().is_empty() { "Untitled" } else { self.title.trim() };
        if self.messages.iter().all(|message| message.text.trim().is_empty()) {
            into.skip(title, "it has no messages");
            return Ok(());
        }
        let room = usize::try_from(size_max).unwrap_or(usize::MAX).saturating_sub(FRAME_SIZE_BYTES);
        let parts = self.parts(room.max(FRAME_SIZE_BYTES));
        for (number, part) in (1..).zip(&parts) {
            let (suffix, title) = match number {
                1 => (String::new(), title.to_owned()),
                number => (format!("-part-{number}"), format!("{title} (part {number})")),
            };
            let text = self.note(&title, part)?;
            let path = format!("/{}/{}{suffix}.md", self.program, self.file_name());
            let stable_id = (!self.id.is_empty()).then(|| StableId::Name {
                endings: vec![format!("{}{suffix}.md", self.short_id())],
                mark: Mark { field: ID_FIELD, value: self.id.clone() },
            });
            into.add_stable(title, path, stable_id, text);
        }
        Ok(())
    }

    fn short_id(&self) -> String {
        slug(&self.id).chars().take(ID_CHARS).collect()
    }

    /// Returns a file name that is stable across exports unless the title changes.
    fn file_name(&self) -> String {
        let day = self.created.map(|at| at.to_string().chars().take(10).collect::<String>());
        let title: String = slug(&self.title).chars().take(SLUG_CHARS_MAX).collect();
        let title = title.trim_end_matches('-').to_owned();
        let parts = [day.unwrap_or_default(), title, self.short_id()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }

    /// Returns the messages as markdown, split into parts of at most `room` bytes.
    fn parts(&self, room: usize) -> Vec<String> {
        let mut parts = vec![String::new()];
        for Message { speaker, text } in &self.messages {
            let mut rest = text.trim();
            while !rest.is_empty() {
                let used = parts.last().map_or(0, String::len);
                let left = room.saturating_sub(used);
                let (piece, after) = cut(rest, left);
                // A message that does not fit begins a new part. Only one that is longer than a
                // part is split.
                if !after.is_empty() && used > 0 {
                    parts.push(String::new());
                    continue;
                }
                if let Some(part) = parts.last_mut() {
                    part.push_str(&format!("\n## {speaker}\n\n{}\n", piece.trim_end()));
                }
                rest = after.trim_start();
            }
        }
        parts
    }

    fn note(&self, title: &str, messages: &str) -> Result<String, Failure> {
        let title: String = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let body = format!("\n# {title}\n{messages}");
        let moment = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let fields = [
            ("title", Some(title)),
            ("type", Some("conversation".to_owned())),
            ("source", Some(self.program.to_owned())),
            (ID_FIELD, Some(self.id.clone()).filter(|id| !id.is_empty())),
            ("created", moment(self.created)),
            ("modified", moment(self.modified)),
        ];
        let fields = fields.map(|(key, text)| (key.to_owned(), text.map(Value::Text)));
        edit::set_metadata(&body, &fields).map_err(|error| Failure::other(error.to_string()))
    }
}

/// Splits a text after at most `size_max` bytes, preferably at the end of a line.
pub(super) fn cut(text: &str, size_max: usize) -> (&str, &str) {
    if text.len() <= size_max {
        return (text, "");
    }
    let end = (0..=size_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (head, _) = text.split_at_checked(end).unwrap_or((text, ""));
    let end = head.rfind('\n').filter(|at| *at > end / 2).map_or(end, |at| at + 1);
    text.split_at_checked(end).unwrap_or((text, ""))
}
