//! Recorded cases of the memory tool: what the SDK's tool answers, what the documentation says where
//! it differs, and Quipu's choice where that differs too.

use quipu_service::tool::Answer;
use serde_json::{Map, Value};

use crate::tool::tool;

const CASES: &str = include_str!("../data/memory-tool.jsonl");

#[test]
fn every_recorded_case_is_answered_as_recorded() {
    let mut steps_count = 0;
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        let tool = tool();
        for step in case["steps"].as_array().expect("a case has steps") {
            let input = expanded(&step["input"]);
            let answer = tool.call(&input);
            let problem = difference(step, &answer);
            assert_eq!(problem, None, "{}: {}", case["id"], step["input"]);
            steps_count += 1;
        }
    }
    assert!(steps_count > 500, "{steps_count} steps");
}

/// Returns what is wrong with an answer, if anything is.
fn difference(step: &Value, answer: &Answer) -> Option<String> {
    let (rec, doc, expect) = (&step["rec"], &step["doc"], &step["expect"]);
    let is_exact = |name: &str| step[name] != "is_error";
    let (wanted, text) = if rec.is_object() {
        (rec, is_exact("rec_match").then_some(&rec["content"]))
    } else if doc.is_object() && doc["content"].is_string() {
        (doc, Some(&doc["content"]))
    } else if doc.is_object() {
        // The documentation says only whether it is an error.
        let agrees = doc["is_error"] == expect["is_error"] && is_exact("match");
        (doc, agrees.then_some(&expect["content"]))
    } else {
        (expect, is_exact("match").then_some(&expect["content"]))
    };
    let is_right =
        wanted["is_error"] == answer.is_error && text.is_none_or(|text| *text == answer.content);
    (!is_right).then(|| format!("wanted {wanted}\n got {answer:?}"))
}

/// Writes out long texts, which are recorded as `{"$repeat": [text, count]}`.
fn expanded(input: &Value) -> Value {
    match input {
        Value::Object(fields) if fields.contains_key("$repeat") => Value::String(repeated(fields)),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), expanded(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            input.clone()
        }
    }
}

fn repeated(fields: &Map<String, Value>) -> String {
    let part = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let repeat = &fields["$repeat"];
    let count = repeat[1].as_u64().and_then(|count| usize::try_from(count).ok());
    let text = repeat[0].as_str().expect("a text").repeat(count.expect("a count"));
    format!("{}{text}{}", part("$prepend"), part("$append"))
}
