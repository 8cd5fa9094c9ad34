//! The instructions that a host's model gets when a connection begins.

use quipu_core::Error;
use quipu_core::model::{Access, Store};

use super::access::{Client, Identity};
use super::catalog;

const INTRODUCTION: &str = "\
You have a memory that outlives this conversation: stores of markdown notes, shared with other \
agents and people. Everything else is forgotten when the conversation ends.
";

const WRITING: &str = "
- Record as you go: decisions and their reasons, what works, what failed, what comes next.
- Assume interruption: whoever continues knows only what is in memory.
- Write notes that connect: observations `- [category] fact #tag`, relations \
`- relation_type [[Other note]]`.
- Keep it tidy: edit a note rather than adding a similar one, correct what is no longer true, never \
store secrets.";

/// The tools that look something up, best first.
const LOOKING: [&str; 4] = ["search_notes", "build_context", "recent_activity", "read_note"];

/// Returns the protocol, which mentions only tools that this client is offered.
fn protocol(client: &Identity) -> String {
    let offered: Vec<_> = catalog::offered(client).map(|tool| &*tool.name).collect();
    let mut ways: Vec<_> = LOOKING.into_iter().filter(|name| offered.contains(name)).collect();
    ways.truncate(3);
    if offered.contains(&catalog::MEMORY) {
        ways.push("`view` of the memory tool");
    }
    let ways = match ways.as_slice() {
        [] => String::new(),
        [only] => format!(" ({only})"),
        [several @ .., last] => format!(" ({}, or {last})", several.join(", ")),
    };
    let looking = format!(
        "\n- Look first: before you start on a task, look for what is known{ways} and build on it."
    );
    let mut text = INTRODUCTION.to_owned() + &looking;
    let is_written = offered.iter().any(|name| catalog::writes(name)) && client.writes();
    if !is_written {
        return text + "\n- You can read this memory, but not change it.";
    }
    text += WRITING;
    let undoing: Vec<_> =
        ["note_history", "restore_note"].into_iter().filter(|it| offered.contains(it)).collect();
    match undoing.as_slice() {
        ["note_history", "restore_note"] => {
            text + " Every change is a version; note_history and restore_note undo mistakes."
        }
        _ => text + " Every change is a version, so that mistakes can be undone.",
    }
}

/// Returns the instructions for a client: the protocol, and the stores that it can use.
pub(super) fn text(client: &Client) -> Result<String, Error> {
    let identity = &client.identity;
    let custom = identity.settings.instructions.clone();
    let protocol = custom.unwrap_or_else(|| protocol(identity));
    let default = client.default_store()?;
    let is_default = |store: &Store| default.as_ref().is_some_and(|default| default.id == store.id);
    let lines: Vec<_> = client
        .stores()?
        .iter()
        .map(|store| entry(identity, store, if is_default(store) { "default, " } else { "" }))
        .collect();
    if lines.is_empty() {
        return Ok(protocol.trim().to_owned());
    }
    Ok(format!("{}\n\nStores (`project` of the tools):\n{}", protocol.trim(), lines.join("\n")))
}

fn entry(client: &Identity, store: &Store, prefix: &str) -> String {
    let access = match client.access(store.id) {
        Some(Access::ReadWrite) => "read and write",
        Some(Access::ReadOnly) | None => "read only",
    };
    let attached = client.grant.instructions(store.id);
    let purpose = [store.description.as_str(), attached]
        .map(|text| text.trim().replace('\n', "\n  "))
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let head = format!("- {} ({prefix}{access})", store.name);
    if purpose.is_empty() { head } else { format!("{head}: {purpose}") }
}
