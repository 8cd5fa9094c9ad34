//! Conditions on the fields of the frontmatter.

use quipu_notes::{Comparison, FieldFilter, Predicate};
use serde_json::Value;

/// Parses conditions on fields: `{"status": "open", "priority": {"$gt": 1}, "tags": ["a", "b"]}`.
///
/// A plain value must equal the field, and each value of a list must be one of the field's values.
/// The error describes what is allowed.
pub fn field_filters(value: &Value) -> Result<Vec<FieldFilter>, String> {
    let Value::Object(fields) = value else {
        return Err("metadata filters are an object of fields and conditions".to_owned());
    };
    let mut filters = Vec::new();
    for (key, wanted) in fields {
        match wanted {
            Value::Object(operators) => {
                for (operator, operand) in operators {
                    let predicate = predicate(operator, operand)
                        .map_err(|problem| format!("metadata filter `{key}`: {problem}"))?;
                    filters.push(FieldFilter { key: key.clone(), predicate });
                }
            }
            Value::Array(items) => filters.extend(items.iter().map(|item| {
                let predicate = Predicate::Is(Comparison::Equal, text(item));
                FieldFilter { key: key.clone(), predicate }
            })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let predicate = Predicate::Is(Comparison::Equal, text(wanted));
                filters.push(FieldFilter { key: key.clone(), predicate });
            }
        }
    }
    Ok(filters)
}

const OPERATORS: &str = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $between, $contains, $exists";

fn predicate(operator: &str, operand: &Value) -> Result<Predicate, String> {
    let is = |comparison| Ok(Predicate::Is(comparison, text(operand)));
    let list = || {
        operand
            .as_array()
            .map_or_else(|| vec![text(operand)], |items| items.iter().map(text).collect())
    };
    match operator {
        "$eq" => is(Comparison::Equal),
        "$ne" => is(Comparison::NotEqual),
        "$gt" => is(Comparison::Greater),
        "$gte" => is(Comparison::GreaterOrEqual),
        "$lt" => is(Comparison::Less),
        "$lte" => is(Comparison::LessOrEqual),
        "$in" => Ok(Predicate::In(list())),
        "$contains" => Ok(Predicate::Contains(list())),
        "$exists" => match operand.as_bool() {
            Some(false) => Ok(Predicate::Absent),
            Some(true) => Ok(Predicate::Exists),
            None => Err("$exists takes true or false".to_owned()),
        },
        "$between" => match list().as_slice() {
            [low, high] => Ok(Predicate::Between(low.clone(), high.clone())),
            _ => Err("$between takes a list of two values".to_owned()),
        },
        other => Err(format!("`{other}` is not one of {OPERATORS}")),
    }
}

/// Returns a JSON value as it is written in frontmatter.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_are_parsed() {
        let filters = field_filters(&json!({
            "status": "open",
            "tags": ["a", "b"],
            "priority": {"$gte": 1, "$lt": 3},
            "author.name": {"$in": ["Ada"]},
            "due": {"$between": ["2026-01-01", "2026-02-01"]},
            "done": {"$exists": false},
        }))
        .unwrap();
        assert_eq!(filters.len(), 8);
        for tag in ["a", "b"] {
            let equal = Predicate::Is(Comparison::Equal, tag.to_owned());
            assert!(filters.iter().any(|it| it.key == "tags" && it.predicate == equal));
        }
        let greater = Predicate::Is(Comparison::GreaterOrEqual, "1".to_owned());
        assert!(filters.iter().any(|it| it.key == "priority" && it.predicate == greater));
    }

    #[test]
    fn an_invalid_condition_names_what_is_allowed() {
        for (wrong, part) in [
            (json!("x"), "an object"),
            (json!({"a": {"$near": 1}}), "$gte"),
            (json!({"a": {"$between": [1]}}), "two values"),
            (json!({"a": {"$exists": "yes"}}), "true or false"),
        ] {
            let error = field_filters(&wrong).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
