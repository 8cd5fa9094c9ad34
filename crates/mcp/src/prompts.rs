//! Prompts: templates that a person can insert into a conversation.

use quipu_core::Error;
use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::tools::{self, Call};

const MEMORY_GUIDE: &str = include_str!("memory_guide.md");

pub(super) fn all() -> Vec<Prompt> {
    let argument =
        |name: &str, description: &str| PromptArgument::new(name).with_description(description);
    let timeframe = || argument("timeframe", "Such as 7d, 2 weeks, yesterday").with_required(false);
    vec![
        Prompt::new("memory_guide", Some("How to keep a memory with this server"), None)
            .with_title("Memory guide"),
        Prompt::new(
            "continue_conversation",
            Some("What is known about a topic, to continue an earlier conversation"),
            Some(vec![
                argument("topic", "What to continue with").with_required(false),
                timeframe(),
            ]),
        )
        .with_title("Continue a conversation"),
        Prompt::new("recent_activity", Some("What changed recently"), Some(vec![timeframe()]))
            .with_title("Recent activity"),
        Prompt::new(
            "search_knowledge_base",
            Some("What the notes say about something"),
            Some(vec![argument("query", "What to look for").with_required(true), timeframe()]),
        )
        .with_title("Search the notes"),
    ]
}

/// Returns whether a prompt takes this argument.
pub(super) fn takes(prompt: &str, argument: &str) -> bool {
    let mut arguments =
        all().into_iter().filter(|it| it.name == prompt).filter_map(|it| it.arguments);
    arguments.any(|arguments| arguments.iter().any(|it| it.name == argument))
}

/// Returns the messages of a prompt.
pub(super) fn get(
    call: &Call,
    name: &str,
    arguments: &Arguments,
) -> Result<GetPromptResult, Error> {
    let (description, text) = match name {
        "memory_guide" => ("How to keep a memory with this server", MEMORY_GUIDE.to_owned()),
        "continue_conversation" => ("What is known", continued(call, arguments)?),
        "recent_activity" => ("What changed recently", recent(call, arguments)?),
        "search_knowledge_base" => ("What the notes say", searched(call, arguments)?),
        other => return Err(Error::invalid(format!("there is no prompt `{other}`"))),
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(description))
}

fn recent(call: &Call, arguments: &Arguments) -> Result<String, Error> {
    let changes = tools::answer(call, "recent_activity", arguments)?.text;
    Ok(format!(
        "These notes changed recently:\n\n{changes}\n\nSay in a few sentences what has been \
         going on and what seems to be open. Read what matters with read_note or build_context first."
    ))
}

fn searched(call: &Call, arguments: &Arguments) -> Result<String, Error> {
    let query = arguments.required("query")?;
    let found = found(call, &query, arguments)?;
    Ok(format!(
        "The notes were searched for \"{query}\":\n\n{found}\n\nAnswer from these notes and name \
         those that you use. Read them in full with read_note, follow their connections with \
         build_context, and say so if they do not answer the question."
    ))
}

fn continued(call: &Call, arguments: &Arguments) -> Result<String, Error> {
    let about = match arguments.word("topic")? {
        Some(topic) => {
            let found = found(call, &topic, arguments)?;
            format!("Let's continue with this topic: {topic}\n\nThe notes about it:\n\n{found}")
        }
        None => {
            let changes = tools::answer(call, "recent_activity", arguments)?.text;
            format!("Let's continue with what we did recently:\n\n{changes}")
        }
    };
    Ok(format!(
        "{about}\n\nFirst read what is relevant to it: build_context for the most important note, read_note \
         for the others. Then sum up where things stand and what comes next, and continue. Write down \
         what you find out as you go."
    ))
}

/// Searches every store for a text.
fn found(call: &Call, query: &str, arguments: &Arguments) -> Result<String, Error> {
    let mut search = Map::new();
    search.insert("query".to_owned(), Value::from(query));
    search.insert("search_all_projects".to_owned(), Value::from(true));
    // Checked here, so that an error names the prompt's argument and not the tool's.
    arguments.since("timeframe", call.client.engine.now())?;
    if let Some(timeframe) = arguments.word("timeframe")? {
        search.insert("after_date".to_owned(), Value::from(timeframe));
    }
    Ok(tools::answer(call, "search_notes", &Arguments::new(Some(search)))?.text)
}
