//! What only the transcript of Codex says about a call: the directory that a command runs in.
//!
//! Its lines are not documented. Each has the fields `type` and `payload`; a call of a tool is a payload of
//! the type `function_call`, with a `call_id` and, as a text of JSON, its `arguments`. What is not found is
//! as if the model had chosen nothing.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde_json::Value;

/// How much of the end of a transcript is looked at.
const TAIL_SIZE_BYTES: u64 = 512 * 1024;

/// How many directories are tried.
const DIRECTORIES_MAX: usize = 8;

/// What the model has chosen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// This directory; where it says nothing, that of the session (an empty path).
    One(String),
    /// Perhaps one of these.
    OneOf(Vec<String>),
}

/// Returns the directories that a call may run in.
pub(super) fn directories(transcript: &str, call_id: &str) -> Chosen {
    let tail = tail(transcript).unwrap_or_default();
    let lines = tail.lines().rev();
    let of_call = lines.filter(|line| !call_id.is_empty() && line.contains(call_id));
    let mut arguments = of_call.filter_map(|line| arguments(line, call_id));
    match arguments.next() {
        Some(arguments) => Chosen::One(workdir(&arguments)),
        None => Chosen::OneOf(written(&tail)),
    }
}

fn tail(path: &str) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_SIZE_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_SIZE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the arguments of a call, if the line is about its beginning.
fn arguments(line: &str, call_id: &str) -> Option<Value> {
    let line: Value = serde_json::from_str(line).ok()?;
    let payload = line.get("payload")?;
    let is_call = payload.get("type")? == "function_call" && payload.get("call_id")? == call_id;
    let arguments = payload.get("arguments").filter(|_| is_call)?.as_str()?;
    serde_json::from_str(arguments).ok()
}

fn workdir(arguments: &Value) -> String {
    arguments.get("workdir").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns what is written behind `workdir` anywhere, the last first: in arguments, in programs that call
/// tools, behind the escapes of either.
fn written(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (place, word) in text.rmatch_indices("workdir") {
        let behind = text.get(place + word.len()..).unwrap_or_default();
        let behind = behind.trim_start_matches(['\\', '"', '\'', '`', ' ']);
        let Some(behind) = behind.strip_prefix(':') else { continue };
        let behind = behind.trim_start_matches(['\\', '"', '\'', '`', ' ']);
        let end = behind.find(['"', '\'', '`', '\\', '\n', ',', '}']).unwrap_or(behind.len());
        let directory = behind.get(..end).unwrap_or_default().to_owned();
        if !directory.is_empty() && !found.contains(&directory) {
            found.push(directory);
        }
        if found.len() == DIRECTORIES_MAX {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(lines: &[&str], call_id: &str) -> Chosen {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, lines.join("\n")).expect("it is written");
        directories(file.path().to_str().expect("a text"), call_id)
    }

    const CALL: &str = r#"{"timestamp":"2026-11-01T00:00:00Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"rm 1.sql\",\"workdir\":\"/work/app/migrations\"}","call_id":"call_1"}}"#;
    const OTHER: &str = r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"call_2"}}"#;
    const PROGRAM: &str = r#"{"type":"response_item","payload":{"type":"custom_tool_call","call_id":"call_3","name":"exec","input":"await tools.exec_command({cmd: 'rm 1.sql', workdir: \"db\"}); tools.exec_command({workdir: `/x`})"}}"#;

    #[test]
    fn the_directory_of_a_call_is_in_its_line() {
        let one = |directory: &str| Chosen::One(directory.to_owned());
        assert_eq!(chosen(&[CALL, OTHER], "call_1"), one("/work/app/migrations"));
        assert_eq!(chosen(&[CALL, OTHER], "call_2"), one(""));
    }

    #[test]
    fn without_a_line_all_that_were_chosen_are_tried() {
        let all = chosen(&[CALL, OTHER, PROGRAM, "{ torn"], "call_4");
        let expected = ["/x", "db", "/work/app/migrations"].map(str::to_owned);
        assert_eq!(all, Chosen::OneOf(expected.to_vec()));
        assert_eq!(chosen(&[], ""), Chosen::OneOf(Vec::new()));
        assert_eq!(directories("/nowhere", "call_1"), Chosen::OneOf(Vec::new()));
    }
}
