//! `edit_note`: changes a part of a note, or nothing.

use quipu_core::engine::Effect;
use quipu_core::model::Memory;
use quipu_core::{Error, ErrorKind};
use quipu_notes::Value as Field;
use quipu_notes::edit::{
    EditError, append, find_replace, insert_after_section, insert_before_section, prepend,
    replace_section, set_metadata,
};
use serde_json::Value;

use super::Call;
use super::found;
use super::notes;
use super::shown;
use crate::answer::Answer;
use crate::arguments::Arguments;

/// What to do with a text.
#[derive(Debug)]
enum Edit {
    Append(String),
    Prepend(String),
    FindReplace {
        find: String,
        content: String,
        expected: usize,
    },
    ReplaceSection {
        section: String,
        content: String,
    },
    InsertBefore {
        section: String,
        content: String,
    },
    InsertAfter {
        section: String,
        content: String,
    },
    /// Only the frontmatter changes.
    Nothing,
}

const OPERATIONS: [&str; 6] = [
    "append",
    "prepend",
    "find_replace",
    "replace_section",
    "insert_before_section",
    "insert_after_section",
];

pub(super) fn edit_note(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let identifier = arguments.required("identifier")?;
    let fields = notes::metadata(arguments)?;
    let edit = Edit::new(arguments, &fields)?;
    let expected = found::expected_checksum(arguments)?;
    let found = found::to_change(call, &identifier, arguments)?;
    let actor = call.writer(&found.store)?;
    let mut before = String::new();
    let work = |memory: &Memory, text: &str| -> Result<String, Error> {
        if memory.id != found.memory.id || expected.is_some_and(|hash| hash != memory.hash) {
            return Err(stale(memory));
        }
        text.clone_into(&mut before);
        let edited = edit.applied(text)?;
        if fields.is_empty() {
            return Ok(edited);
        }
        set_metadata(&edited, &fields).map_err(|error| refused(&error))
    };
    let written = call.engine().edit(&actor, found.store.id, &found.memory.path, work)?;
    let after = written.memory.content.as_ref().map_or("", |content| content.as_str());
    let diff = shown::diff(&before, after);
    let action = match written.effect {
        Effect::Created => "created",
        Effect::Changed => "updated",
        Effect::Unchanged => "unchanged",
    };
    let mut answer = notes::card(call, &found.store, &written, action);
    answer.text = format!("{}\n{diff}", answer.text);
    if let Value::Object(fields) = &mut answer.data {
        fields.insert("diff".to_owned(), Value::String(diff));
    }
    Ok(answer)
}

fn stale(memory: &Memory) -> Error {
    Error::new(
        ErrorKind::PreconditionFailed,
        format!("the note at `{}` has changed since it was read; nothing was written", memory.path),
    )
    .with_hint("read it again and repeat the change on its new text")
}

fn refused(error: &EditError) -> Error {
    Error::invalid(format!("{error}; nothing was written"))
}

impl Edit {
    fn new(arguments: &Arguments, fields: &[(String, Option<Field>)]) -> Result<Self, Error> {
        let Some(operation) = arguments.choice("operation", &OPERATIONS)? else {
            return if fields.is_empty() {
                arguments.required("operation").map(|_| Self::Nothing)
            } else {
                Ok(Self::Nothing)
            };
        };
        let content = arguments.required_text("content")?;
        let section = || arguments.required("section");
        Ok(match operation {
            "append" => Self::Append(content),
            "prepend" => Self::Prepend(content),
            "find_replace" => Self::FindReplace {
                find: arguments.required_text("find_text")?,
                content,
                expected: arguments.count("expected_replacements", 1, usize::MAX)?,
            },
            "replace_section" => Self::ReplaceSection { section: section()?, content },
            "insert_before_section" => Self::InsertBefore { section: section()?, content },
            _ => Self::InsertAfter { section: section()?, content },
        })
    }

    fn applied(&self, text: &str) -> Result<String, Error> {
        let edited = match self {
            Self::Append(content) => Ok(append(text, content)),
            Self::Prepend(content) => Ok(prepend(text, content)),
            Self::FindReplace { find, content, expected } => {
                find_replace(text, find, content, *expected)
            }
            Self::ReplaceSection { section, content } => replace_section(text, section, content),
            Self::InsertBefore { section, content } => {
                insert_before_section(text, section, content)
            }
            Self::InsertAfter { section, content } => insert_after_section(text, section, content),
            Self::Nothing => Ok(text.to_owned()),
        };
        edited.map_err(|error| refused(&error))
    }
}
