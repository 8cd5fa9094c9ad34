//! Claude's export: conversations, projects and memories.

use quipu_notes::{Value, edit, slug};
use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value as Json;

use crate::failure::Failure;

use super::conversation::{Conversation, Message};
use super::json::JsonFile;
use super::source::{Collected, Mark, StableId};

/// How many characters of an id tell documents of one name apart.
const ID_CHARS: usize = 8;

/// The file that describes a project, in the project's folder.
const PROJECT_FILE: &str = "project.md";

/// The frontmatter field with the project's id.
const PROJECT_FIELD: &str = "project_id";

/// An element of any of the files. Each kind has fields that the others lack.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Exported {
    uuid: Option<String>,
    name: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
    chat_messages: Option<Vec<Said>>,
    docs: Option<Vec<Document>>,
    description: Option<String>,
    prompt_template: Option<String>,
    /// The account that the memories belong to.
    account_uuid: Option<String>,
    conversations_memory: Option<String>,
    project_memories: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Said {
    text: Option<String>,
    sender: Option<String>,
    content: Option<Vec<Piece>>,
    attachments: Option<Vec<Attachment>>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
    /// The input of a tool call.
    #[serde(default)]
    input: Json,
}

#[derive(Deserialize)]
struct Attachment {
    file_name: Option<String>,
    extracted_content: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    uuid: Option<String>,
    filename: Option<String>,
    content: Option<String>,
}

/// Adds the contents of a file of an export.
pub(super) fn collect(file: &JsonFile, size_max: u64, into: &mut Collected) -> Result<(), Failure> {
    for (number, document) in (1_usize..).zip(file.documents()?) {
        let element = format!("{}, element {number}", file.name);
        let exported = match serde_json::from_value::<Exported>(document) {
            Ok(exported) => exported,
            Err(error) => {
                into.skip(element, error.to_string());
                continue;
            }
        };
        if exported.chat_messages.is_some() {
            exported.into_conversation().add_to(size_max, into)?;
        } else if exported.docs.is_some() || exported.prompt_template.is_some() {
            exported.add_project(into)?;
        } else {
            exported.add_memories(element, into);
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
            id: self.uuid.unwrap_or_default(),
            title: self.name.unwrap_or_default(),
            created: moment(self.created_at),
            modified: moment(self.updated_at),
            messages: messages.into_iter().map(Said::into_message).collect(),
        }
    }

    /// Adds a project's description and instructions as a note, and its documents verbatim.
    fn add_project(self, into: &mut Collected) -> Result<(), Failure> {
        let project = self.name.filter(|name| !name.trim().is_empty());
        let project = project.unwrap_or_else(|| "Untitled".to_owned());
        let id = short(self.uuid.as_deref());
        let folder = format!("/claude/projects/{}-{}", slug(&project), slug(&id));
        let mut body = format!("\n# {}\n", project.trim());
        let sections =
            [("Description", &self.description), ("Instructions", &self.prompt_template)];
        for (heading, text) in sections {
            if let Some(text) = text.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
                body += &format!("\n## {heading}\n\n{text}\n");
            }
        }
        let uuid = self.uuid.as_deref().filter(|uuid| !uuid.is_empty());
        let fields = [
            ("title", Some(project.as_str())),
            ("type", Some("project")),
            ("source", Some("claude")),
            (PROJECT_FIELD, uuid),
        ];
        let fields = fields.map(|(key, text)| (key.to_owned(), text.map(Value::from)));
        let text = edit::set_metadata(&body, &fields);
        let text = text.map_err(|error| Failure::other(error.to_string()))?;
        let stable_id = || {
            uuid.map(|uuid| StableId::Folder {
                ending: format!("-{}", slug(&id)),
                file: PROJECT_FILE,
                mark: Mark { field: PROJECT_FIELD, value: uuid.to_owned() },
            })
        };
        into.add_stable(project.clone(), format!("{folder}/{PROJECT_FILE}"), stable_id(), text);
        let documents = self.docs.unwrap_or_default();
        let mut counts = HashMap::from([(PROJECT_FILE.to_owned(), 1_usize)]);
        for document in &documents {
            *counts.entry(document.name()).or_default() += 1;
        }
        for document in documents {
            let source = format!("{project}: {}", document.filename.as_deref().unwrap_or_default());
            let name = match document.name() {
                name if counts.get(&name).is_some_and(|count| *count > 1) => {
                    document.name_with_id(&name)
                }
                name => name,
            };
            let text = document.content.unwrap_or_default();
            into.add_stable(source, format!("{folder}/{name}"), stable_id(), text);
        }
        Ok(())
    }

    /// Adds Claude's own memory.
    fn add_memories(self, element: String, into: &mut Collected) {
        if self.conversations_memory.is_none() && self.project_memories.is_none() {
            return into.skip(element, "it holds nothing that is known");
        }
        if let Some(text) = self.conversations_memory {
            // Exports of several accounts may go to one store.
            let account = slug(&short(self.account_uuid.as_deref()));
            let account = if account.is_empty() { account } else { format!("-{account}") };
            let path = format!("/claude/memory/conversations{account}.md");
            into.add("memory of conversations", path, text);
        }
        for (project, text) in self.project_memories.unwrap_or_default() {
            let path = format!("/claude/memory/project-{}.md", slug(&project));
            into.add(format!("memory of project {project}"), path, text);
        }
    }
}

/// Returns the beginning of an id.
fn short(id: Option<&str>) -> String {
    id.unwrap_or_default().chars().take(ID_CHARS).collect()
}

impl Document {
    fn name(&self) -> String {
        let name = self.filename.as_deref().unwrap_or_default().replace(['/', '\\'], "-");
        if name.trim().is_empty() { "document.md".to_owned() } else { name }
    }

    /// Returns a unique name that does not depend on the order of the documents.
    fn name_with_id(&self, name: &str) -> String {
        let id = short(self.uuid.as_deref());
        match name.rsplit_once('.') {
            _ if id.is_empty() => name.to_owned(),
            Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{id}.{ending}"),
            _ => format!("{name}-{id}"),
        }
    }
}

impl Said {
    fn into_message(self) -> Message {
        let pieces = self.content.unwrap_or_default();
        let pieces: Vec<_> = pieces.into_iter().filter_map(Piece::into_text).collect();
        let mut text =
            if pieces.is_empty() { self.text.unwrap_or_default() } else { pieces.join("\n\n") };
        for attachment in self.attachments.unwrap_or_default() {
            let Some(content) = attachment.extracted_content else { continue };
            let name = attachment.file_name.unwrap_or_default();
            text += &format!("\n\n### Attachment {name}\n\n{content}");
        }
        let speaker = if self.sender.as_deref() == Some("human") { "User" } else { "Assistant" };
        Message { speaker, text }
    }
}

impl Piece {
    /// Returns the message or the artifact; thinking and tool results are left out.
    fn into_text(self) -> Option<String> {
        match self.kind.as_deref().unwrap_or_default() {
            "text" => self.text.filter(|text| !text.trim().is_empty()),
            "tool_use" => artifact(&self.input),
            _ => None,
        }
    }
}

/// Returns the text of an artifact in a code fence that the text cannot close.
fn artifact(input: &Json) -> Option<String> {
    let field = |key: &str| input.get(key).and_then(Json::as_str);
    let text = field("content").or_else(|| field("file_text"))?;
    let title =
        field("title").or_else(|| field("path")).or_else(|| field("id")).unwrap_or_default();
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let language = field("language").unwrap_or_default();
    let language = if language.contains(['`', '\n']) { "" } else { language };
    Some(format!("### Artifact {title}\n\n{fence}{language}\n{}\n{fence}", text.trim_end()))
}
