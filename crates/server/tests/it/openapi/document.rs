//! Reads the document, and holds values against its schemas.

use regex_lite::Regex;
use serde_json::{Map, Value};

/// The document.
pub(super) struct Document(Value);

/// One operation of the document.
pub(super) struct Operation<'a> {
    pub(super) method: String,
    pub(super) path: &'a str,
    pub(super) fields: &'a Value,
}

const METHODS: [&str; 4] = ["get", "post", "patch", "delete"];

impl Document {
    pub(super) fn load() -> Self {
        let text = include_str!("../../../openapi.json");
        Self(serde_json::from_str(text).expect("the document is JSON"))
    }

    pub(super) fn root(&self) -> &Value {
        &self.0
    }

    pub(super) fn operations(&self) -> Vec<Operation<'_>> {
        let mut operations = Vec::new();
        for (path, item) in object(&self.0["paths"]) {
            for method in METHODS {
                if let Some(fields) = item.get(method) {
                    operations.push(Operation { method: method.to_uppercase(), path, fields });
                }
            }
        }
        operations
    }

    /// Resolves a reference; returns any other value as it is.
    pub(super) fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                self.target(reference).unwrap_or_else(|| panic!("{reference} leads nowhere"))
            }
            None => value,
        }
    }

    pub(super) fn target(&self, reference: &str) -> Option<&Value> {
        self.0.pointer(reference.strip_prefix('#')?)
    }

    /// Calls `visit` with every object of the document.
    pub(super) fn each_object(&self, visit: &mut dyn FnMut(&Map<String, Value>)) {
        fn walk(value: &Value, visit: &mut dyn FnMut(&Map<String, Value>)) {
            match value {
                Value::Object(fields) => {
                    visit(fields);
                    fields.values().for_each(|field| walk(field, visit));
                }
                Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        walk(&self.0, visit);
    }

    /// Returns what is wrong with a value; nothing if it is as the schema says. A keyword that is
    /// not known here is a problem too, so that no rule goes unchecked.
    pub(super) fn problems(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        for (keyword, rule) in object(schema) {
            problems.extend(self.problems_with(schema, keyword, rule, value));
        }
        problems
    }

    fn problems_with(
        &self,
        schema: &Value,
        keyword: &str,
        rule: &Value,
        value: &Value,
    ) -> Vec<String> {
        let is_kept = match keyword {
            "description" | "examples" | "default" | "format" => true,
            "$ref" => return self.problems(self.resolve(schema), value),
            "properties" | "additionalProperties" | "propertyNames" => {
                return self.problems_of_fields(keyword, schema, value);
            }
            "items" => {
                let items = value.as_array().into_iter().flatten();
                return items.flat_map(|item| self.problems(rule, item)).collect();
            }
            "allOf" => {
                return list(rule).iter().flat_map(|rule| self.problems(rule, value)).collect();
            }
            "anyOf" => self.matches_count(rule, value) > 0,
            "oneOf" => self.matches_count(rule, value) == 1,
            _ => return plain_problem(keyword, rule, value).into_iter().collect(),
        };
        if is_kept { Vec::new() } else { vec![format!("{value} breaks {keyword} {rule}")] }
    }

    fn matches_count(&self, rules: &Value, value: &Value) -> usize {
        list(rules).iter().filter(|rule| self.problems(rule, value).is_empty()).count()
    }

    fn problems_of_fields(&self, keyword: &str, schema: &Value, value: &Value) -> Vec<String> {
        let Some(fields) = value.as_object() else { return Vec::new() };
        let named = schema.get("properties");
        let mut problems = Vec::new();
        for (name, field) in fields {
            let own = named.and_then(|named| named.get(name));
            let found = match (keyword, own) {
                ("properties", Some(own)) => self.problems(own, field),
                ("additionalProperties", None) if schema[keyword] == false => {
                    vec!["is not expected".to_owned()]
                }
                ("additionalProperties", None) => self.problems(&schema[keyword], field),
                ("propertyNames", _) => {
                    self.problems(&schema["propertyNames"], &Value::String(name.clone()))
                }
                _ => Vec::new(),
            };
            problems.extend(found.into_iter().map(|problem| format!("{name}: {problem}")));
        }
        problems
    }
}

/// Checks a keyword that needs nothing but its value.
fn plain_problem(keyword: &str, rule: &Value, value: &Value) -> Option<String> {
    let text = value.as_str();
    let length = text.map(|text| text.chars().count() as u64);
    let number = value.as_u64();
    let limit = rule.as_u64();
    let is_kept = match keyword {
        "type" => is_of_type(rule, value),
        "const" => rule == value,
        "enum" => list(rule).contains(value),
        "required" => value.as_object().is_none_or(|fields| {
            list(rule).iter().all(|name| fields.contains_key(name.as_str().expect("a name")))
        }),
        "pattern" => text.is_none_or(|text| {
            let pattern = rule.as_str().expect("a pattern is a text");
            Regex::new(pattern).expect("a pattern is valid").is_match(text)
        }),
        "minLength" => length.is_none_or(|length| Some(length) >= limit),
        "maxLength" => length.is_none_or(|length| Some(length) <= limit),
        "minimum" => number.is_none_or(|number| Some(number) >= limit),
        "maximum" => number.is_none_or(|number| Some(number) <= limit),
        "minItems" => value.as_array().is_none_or(|items| Some(items.len() as u64) >= limit),
        "maxItems" => value.as_array().is_none_or(|items| Some(items.len() as u64) <= limit),
        "maxProperties" => {
            value.as_object().is_none_or(|fields| Some(fields.len() as u64) <= limit)
        }
        _ => return Some(format!("the keyword {keyword} is not known to this test")),
    };
    (!is_kept).then(|| format!("{value} breaks {keyword} {rule}"))
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    rule == name || rule.as_array().is_some_and(|names| names.contains(&name.into()))
}

pub(super) fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("not an object: {value}"))
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}
