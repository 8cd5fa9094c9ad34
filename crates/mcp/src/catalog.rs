//! The tools that are offered, with their schemas.
//!
//! They are written by hand in `tools.json`: a model pays for every byte of it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use rmcp::model::Tool;

use super::access::Identity;

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("tools.json")).expect("a test reads the same text")
});

/// The tool with the schema of the memory tool.
pub(super) const MEMORY: &str = "memory";

/// Which tools are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSet(BTreeSet<String>);

/// The tools that are offered on request only: one mistaken call would cost a whole store.
const ADMIN: [&str; 1] = ["delete_project"];

/// A word that names neither a tool nor a group of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTool(String);

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = TOOLS.iter().map(|tool| &*tool.name).collect();
        write!(
            f,
            "`{}` is not a tool; choose from all, read, notes, admin, {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for UnknownTool {}

impl FromStr for ToolSet {
    type Err = UnknownTool;

    /// Parses a comma-separated list of tools and groups.
    fn from_str(text: &str) -> Result<Self, UnknownTool> {
        let mut names = BTreeSet::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let is_admin = |tool: &&Tool| ADMIN.contains(&&*tool.name);
            let mut chosen = TOOLS
                .iter()
                .filter(|tool| match word {
                    "all" => !is_admin(tool),
                    "read" => reads_only(tool),
                    "notes" => tool.name != MEMORY && !is_admin(tool),
                    "admin" => is_admin(tool),
                    name => tool.name == name,
                })
                .map(|tool| tool.name.to_string())
                .peekable();
            if chosen.peek().is_none() {
                return Err(UnknownTool(word.to_owned()));
            }
            names.extend(chosen);
        }
        Ok(if names.is_empty() { Self::default() } else { Self(names) })
    }
}

impl Default for ToolSet {
    /// Returns all tools except those that are offered on request only.
    fn default() -> Self {
        "all".parse().expect("a group of tools")
    }
}

impl fmt::Display for ToolSet {
    /// Writes what [`ToolSet::from_str`] parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return f.write_str("all");
        }
        f.write_str(&self.0.iter().cloned().collect::<Vec<_>>().join(","))
    }
}

impl ToolSet {
    fn offers(&self, tool: &Tool) -> bool {
        self.0.contains(&*tool.name)
    }

    /// Returns the tools for a client with this power.
    pub(super) fn tools(&self, power: Power) -> impl Iterator<Item = &'static Tool> {
        TOOLS.iter().filter(move |tool| self.offers(tool) && power >= needed(tool))
    }
}

/// The most that a client may do in any store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Power {
    Read,
    Write,
    /// Create and delete stores too.
    Manage,
}

fn needed(tool: &Tool) -> Power {
    match &*tool.name {
        "create_memory_project" | "delete_project" => Power::Manage,
        // Without write access, it rejects every command except `view`.
        MEMORY => Power::Read,
        _ if reads_only(tool) => Power::Read,
        _ => Power::Write,
    }
}

fn reads_only(tool: &Tool) -> bool {
    tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true)
}

/// Returns whether a tool can write.
pub(super) fn writes(name: &str) -> bool {
    tool(name).is_some_and(|tool| !reads_only(tool))
}

/// Returns the tools that a client is offered.
pub(super) fn offered(client: &Identity) -> impl Iterator<Item = &'static Tool> {
    let power = match (client.manages(), client.writes()) {
        (true, _) => Power::Manage,
        (false, true) => Power::Write,
        (false, false) => Power::Read,
    };
    client.settings.tools.tools(power)
}

/// Returns a tool, whether or not it is offered.
pub(super) fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model reads the whole list in every conversation.
    const LIST_SIZE_BYTES_MAX: usize = 24 * 1024;

    fn names(set: &str, power: Power) -> Vec<&'static str> {
        set.parse::<ToolSet>().unwrap().tools(power).map(|tool| &*tool.name).collect()
    }

    #[test]
    fn the_list_is_small() {
        let list = serde_json::to_vec(&*TOOLS).unwrap();
        assert!(list.len() < LIST_SIZE_BYTES_MAX, "{} bytes", list.len());
    }

    #[test]
    fn every_tool_has_a_title_a_description_and_hints() {
        assert_eq!(TOOLS.len(), 16);
        for tool in &*TOOLS {
            assert!(tool.title.is_some() && tool.description.is_some(), "{}", tool.name);
            let hints = tool.annotations.as_ref().unwrap();
            assert!(hints.read_only_hint.is_some(), "{}", tool.name);
            assert_eq!(hints.open_world_hint, Some(false), "{}", tool.name);
            let is_complete = hints.destructive_hint.is_some() && hints.idempotent_hint.is_some();
            assert!(is_complete || reads_only(tool), "{}", tool.name);
        }
    }

    #[test]
    fn required_arguments_are_described() {
        for tool in &*TOOLS {
            let properties = tool.input_schema.get("properties").unwrap().as_object().unwrap();
            let required = tool.input_schema.get("required").and_then(|list| list.as_array());
            for name in required.into_iter().flatten() {
                assert!(properties.contains_key(name.as_str().unwrap()), "{}: {name}", tool.name);
            }
        }
    }

    #[test]
    fn groups_and_names_choose_tools() {
        assert_eq!(names("memory", Power::Manage), ["memory"]);
        assert_eq!(names("", Power::Manage).len(), TOOLS.len() - ADMIN.len());
        assert_eq!(names("all", Power::Manage).len(), TOOLS.len() - ADMIN.len());
        assert_eq!(names("all,admin", Power::Manage).len(), TOOLS.len());
        assert!(!names("notes", Power::Manage).contains(&"delete_project"));
        assert!(!names("notes", Power::Manage).contains(&"memory"));
        assert_eq!(names("memory, read_note", Power::Manage), ["memory", "read_note"]);
        assert!(names("read", Power::Manage).contains(&"search_notes"));
        assert!(!names("read", Power::Manage).contains(&"write_note"));
        assert!("reed".parse::<ToolSet>().unwrap_err().to_string().starts_with("`reed`"));
    }

    #[test]
    fn without_writing_only_reading_tools_and_the_memory_tool_remain() {
        let names = names("", Power::Read);
        assert!(names.contains(&"memory") && names.contains(&"read_note"));
        assert!(!names.contains(&"write_note") && !names.contains(&"delete_project"));
    }

    #[test]
    fn only_managers_are_offered_tools_that_manage_stores() {
        let names = names("", Power::Write);
        assert_eq!(names.len(), TOOLS.len() - 2);
        assert!(names.contains(&"write_note") && names.contains(&"list_memory_projects"));
        assert!(!names.contains(&"create_memory_project") && !names.contains(&"delete_project"));
    }
}
