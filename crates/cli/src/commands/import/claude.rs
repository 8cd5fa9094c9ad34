//! Claude's export: `conversations.json`, `projects.json` and `memories.json`.

use std::collections::BTreeMap;

use quipu_core::note::{Value, edit, slug};
use serde::Deserialize;

use crate::failure::Failure;

use super::conversation::{Conversation, Message};
use super::source::{Collected, documents};

/// An element of any of the files: each has fields that the others do not have.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Exported {
    uuid: String,
    name: String,
    created_at: Option<String>,
    updated_at: Option<String>,
    chat_messages: Option<Vec<Said>>,
    docs: Option<Vec<Document>>,
    description: Option<String>,
    prompt_template: Option<String>,
    conversations_memory: Option<String>,
    project_memories: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    text: String,
    sender: String,
    #[serde(default)]
    content: Vec<Piece>,
    #[serde(default)]
    attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(default)]
    file_name: String,
    extracted_content: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    filename: String,
    #[serde(default)]
    content: String,
}

/// Adds what a file of an export holds.
pub(super) fn collect(text: &str, size_max: u64, into: &mut Collected) -> Result<(), Failure> {
    for (number, document) in (1..).zip(documents(text)?) {
        let exported = match serde_json::from_value::<Exported>(document) {
            Ok(exported) => exported,
            Err(error) => {
                into.skip(format!("element {number}"), error.to_string());
                continue;
            }
        };
        if exported.chat_messages.is_some() {
            exported.into_conversation().add_to(size_max, into)?;
        } else if exported.docs.is_some() || exported.prompt_template.is_some() {
            exported.add_project(into)?;
        } else {
            exported.add_memories(number, into);
        }
    }
    Ok(())
}

impl Exported {
    fn into_conversation(self) -> Conversation {
        let messages = self.chat_messages.unwrap_or_default();
        let moment = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Conversation {
            program: "claude",
            id: self.uuid,
            title: self.name,
            created: moment(self.created_at),
            modified: moment(self.updated_at),
            messages: messages.into_iter().map(Said::into_message).collect(),
        }
    }

    /// Adds a project's description and instructions as a note, and its documents as they are.
    fn add_project(self, into: &mut Collected) -> Result<(), Failure> {
        let id: String = self.uuid.chars().take(8).collect();
        let folder = format!("/claude/projects/{}-{}", slug(&self.name), slug(&id));
        let mut body = format!("\n# {}\n", self.name.trim());
        let sections =
            [("Description", &self.description), ("Instructions", &self.prompt_template)];
        for (heading, text) in sections {
            if let Some(text) = text.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
                body += &format!("\n## {heading}\n\n{text}\n");
            }
        }
        let fields = [("title", self.name.as_str()), ("type", "project"), ("source", "claude")];
        let fields = fields.map(|(key, text)| (key.to_owned(), Some(Value::from(text))));
        let text = edit::set_metadata(&body, &fields);
        let text = text.map_err(|error| Failure::other(error.to_string()))?;
        into.add(self.name.clone(), format!("{folder}/project.md"), text);
        for document in self.docs.unwrap_or_default() {
            let name = document.filename.replace(['/', '\\'], "-");
            let source = format!("{}: {}", self.name, document.filename);
            into.add(source, format!("{folder}/{name}"), document.content);
        }
        Ok(())
    }

    /// Adds what Claude remembers of its own accord.
    fn add_memories(self, number: usize, into: &mut Collected) {
        if self.conversations_memory.is_none() && self.project_memories.is_empty() {
            return into.skip(format!("element {number}"), "it holds nothing that is known");
        }
        if let Some(text) = self.conversations_memory {
            into.add("memory of conversations", "/claude/memory/conversations.md", text);
        }
        for (project, text) in self.project_memories {
            let path = format!("/claude/memory/project-{}.md", slug(&project));
            into.add(format!("memory of project {project}"), path, text);
        }
    }
}

impl Said {
    fn into_message(self) -> Message {
        let pieces = self.content.into_iter().filter(|piece| piece.kind == "text");
        let pieces: Vec<_> = pieces.filter_map(|piece| piece.text).collect();
        let mut text = if pieces.is_empty() { self.text } else { pieces.join("\n\n") };
        for attachment in self.attachments {
            let Some(content) = attachment.extracted_content else { continue };
            text += &format!("\n\n### Attachment {}\n\n{content}", attachment.file_name);
        }
        let speaker = if self.sender == "human" { "User" } else { "Assistant" };
        Message { speaker, text }
    }
}
