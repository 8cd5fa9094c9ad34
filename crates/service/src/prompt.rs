//! Instructions for an agent on how to use its memory.
//!
//! It goes into a system prompt: a short protocol, then what is attached and where.

use quipu_core::model::{Access, Attachment, Description, Instructions, Name, Store};

/// What goes into an agent's system prompt.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// The stores that it can use.
    pub stores: Vec<PromptStore>,
    /// The only subject that it should remember, if there is one.
    pub topic: Option<String>,
}

/// A store as an agent sees it.
#[derive(Clone, Debug)]
pub struct PromptStore {
    /// Its name.
    pub name: Name,
    /// Where the agent finds it, such as `/memories` or a mounted directory.
    pub place: String,
    /// What the agent may do there.
    pub access: Access,
    /// What it is for.
    pub description: Description,
    /// What the agent should do with it.
    pub instructions: Instructions,
}

/// Where the memory tool finds its store.
pub const TOOL_PLACE: &str = "/memories";

impl PromptStore {
    /// Returns an attached store as it appears in a mount below `root`.
    pub fn mounted(attachment: &Attachment, root: &str) -> Self {
        Self {
            name: attachment.name.clone(),
            place: attachment.mount_path(root),
            access: attachment.access,
            description: attachment.description.clone(),
            instructions: attachment.instructions.clone(),
        }
    }

    /// Returns a store as the memory tool shows it.
    pub fn in_tool(store: &Store, access: Access) -> Self {
        Self {
            name: store.name.clone(),
            place: TOOL_PLACE.to_owned(),
            access,
            description: store.description.clone(),
            instructions: Instructions::default(),
        }
    }
}

const PROTOCOL: &str = "\
# Memory

You have a memory that outlives this conversation. Everything else is forgotten when it ends.

- Look first. Before you start on a task, list your memory and read what is relevant to it, then build \
on that instead of starting over.
- Record progress as you go: decisions and their reasons, what works, what failed and why, what \
comes next. Write it when it happens, not at the end.
- Assume interruption. Your context can be cut off at any moment, and whoever continues knows \
only what is in memory. Leave it so that they can go on without asking.
- Keep it tidy. Correct or delete what is no longer true, extend an existing file rather than \
adding a similar one, give files names that tell what they hold, and never store secrets.";

impl Prompt {
    /// Returns the text.
    pub fn text(&self) -> String {
        let mut parts = vec![PROTOCOL.to_owned()];
        if let Some(topic) = &self.topic {
            parts.push(format!("Remember only what concerns this: {topic}"));
        }
        if !self.stores.is_empty() {
            let stores: Vec<_> = self.stores.iter().map(PromptStore::entry).collect();
            parts.push(format!("## Where it is\n\n{}", stores.join("\n")));
        }
        parts.join("\n\n") + "\n"
    }
}

impl PromptStore {
    fn entry(&self) -> String {
        let access = match self.access {
            Access::ReadWrite => "you may read and write",
            Access::ReadOnly => "read only, writes are refused",
        };
        let purpose = [self.description.as_str(), self.instructions.as_str()]
            .map(|text| text.trim().replace('\n', "\n  "))
            .into_iter()
            .filter(|text| !text.is_empty());
        let head = format!("- `{}`: {} ({access}).", self.place, self.name);
        std::iter::once(head).chain(purpose).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(access: Access, description: &str, instructions: &str) -> PromptStore {
        PromptStore {
            name: Name::new("Team notes").unwrap(),
            place: "/mnt/memory/team-notes".to_owned(),
            access,
            description: Description::new(description).unwrap(),
            instructions: Instructions::new(instructions).unwrap(),
        }
    }

    fn last_line(prompt: &Prompt) -> String {
        prompt.text().lines().last().unwrap().to_owned()
    }

    #[test]
    fn a_store_is_named_with_its_place_access_and_purpose() {
        let stores = vec![store(Access::ReadOnly, "What the team knows.", "Read it first.")];
        let prompt = Prompt { stores, topic: None };
        assert_eq!(
            last_line(&prompt),
            "- `/mnt/memory/team-notes`: Team notes (read only, writes are refused). \
             What the team knows. Read it first."
        );
    }

    #[test]
    fn unspecified_parts_are_left_out() {
        let stores = vec![store(Access::ReadWrite, "", " ")];
        let prompt = Prompt { stores, topic: None };
        let expected = "- `/mnt/memory/team-notes`: Team notes (you may read and write).";
        assert_eq!(last_line(&prompt), expected);
    }

    #[test]
    fn a_topic_restricts_what_is_remembered() {
        let prompt = Prompt { stores: Vec::new(), topic: Some("the tea order".to_owned()) };
        assert_eq!(last_line(&prompt), "Remember only what concerns this: the tea order");
    }
}
