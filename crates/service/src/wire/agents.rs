//! Agents and environments: what the SDKs send, what is kept of it, and what they get back.
//!
//! The engine keeps a name, labels and an opaque body. The body is a JSON object with every other field,
//! in the form in which it is answered: defaults are filled in when it is written, so that a version says
//! the same for as long as it is kept.

use super::resources::without_credentials;
use std::collections::BTreeMap;

use quipu_core::engine::DefinitionContent;
use quipu_core::model::{Content, Definition, Metadata, Name, Timestamp};
use serde_json::{Map, Value, json};

/// The fields of an object.
pub type Fields = Map<String, Value>;

/// How long the other texts of an agent or an environment may be, so that they stay readable in lists.
const DESCRIPTION_CHARS_MAX: usize = 2_048;

/// Returns what an agent says after it was created or changed with these fields; fails with a sentence.
///
/// A field that is left out stays as it is; null clears it where the contract allows that.
pub fn agent_content(
    before: Option<&Definition>,
    sent: &Fields,
) -> Result<DefinitionContent, String> {
    let mut body = before.map_or_else(empty_agent, |agent| fields_of(agent, empty_agent));
    let common = Common::read(before, sent)?;
    if before.is_none() && sent.get("model").is_none_or(Value::is_null) {
        return Err("model: is required".to_owned());
    }
    for (field, value) in sent {
        let kept = match field.as_str() {
            "name" | "metadata" => continue,
            "model" => model(value)?,
            "description" | "system" => text(field, value)?,
            "execution_identity" => match value {
                Value::Null => service_account(),
                Value::Object(kind) if kind.get("type").is_some_and(Value::is_string) => {
                    value.clone()
                }
                Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => {
                    return Err(format!("{field}: must be an object with a `type`"));
                }
            },
            "mcp_servers" => list(field, value, mcp_server)?,
            "skills" => list(field, value, skill)?,
            "tools" => list(field, value, tool)?,
            "multiagent" => match value {
                Value::Null | Value::Object(_) => value.clone(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    return Err(format!("{field}: must be an object"));
                }
            },
            _ => return Err(format!("unknown field `{field}`")),
        };
        body.insert(field.clone(), kept);
    }
    common.with_body(&body)
}

/// Returns what an environment says after it was created or changed with these fields; fails with a
/// sentence.
pub fn environment_content(
    before: Option<&Definition>,
    sent: &Fields,
) -> Result<DefinitionContent, String> {
    let mut body = before.map_or_else(empty_environment, |it| fields_of(it, empty_environment));
    let common = Common::read(before, sent)?;
    for (field, value) in sent {
        let kept = match field.as_str() {
            "name" | "metadata" => continue,
            "description" => text(field, value)?,
            "config" => match value {
                Value::Null => continue,
                Value::Object(sent) => config(body.get("config"), sent)?,
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    return Err(format!("{field}: must be an object"));
                }
            },
            "scope" => match value.as_str() {
                Some("organization") => value.clone(),
                None if value.is_null() => continue,
                Some(_) | None => return Err(format!("{field}: must be `organization`")),
            },
            _ => return Err(format!("unknown field `{field}`")),
        };
        body.insert(field.clone(), kept);
    }
    common.with_body(&body)
}

/// Returns an agent as the SDKs read it. Earlier versions are shown as archived with the newest.
pub fn agent_body(agent: &Definition, archived_at: Option<Timestamp>) -> Value {
    let mut fields = definition_fields(agent, fields_of(agent, empty_agent), archived_at);
    fields.insert("version".to_owned(), json!(agent.version));
    Value::Object(fields)
}

/// Returns an environment as the SDKs read it.
pub fn environment_body(environment: &Definition) -> Value {
    let body = fields_of(environment, empty_environment);
    Value::Object(definition_fields(environment, body, environment.archived_at))
}

/// Returns an agent as a session has it: without its labels and its moments, and with what the session
/// overrides.
pub(super) fn session_agent(agent: &Definition, overrides: &Fields) -> Fields {
    let mut fields = fields_of(agent, empty_agent);
    fields.extend(overrides.clone());
    fields.insert("type".to_owned(), json!("agent"));
    fields.insert("id".to_owned(), json!(agent.id.to_string()));
    fields.insert("version".to_owned(), json!(agent.version));
    fields.insert("name".to_owned(), json!(agent.name.as_str()));
    fields
}

/// Returns what a session overrides of its agent; fails with a sentence.
pub fn overrides(sent: &Fields) -> Result<Fields, String> {
    let mut kept = Fields::new();
    for (field, value) in sent {
        let value = match field.as_str() {
            "id" | "type" | "version" => continue,
            _ if value.is_null() && field != "system" => continue,
            "model" => model(value)?,
            "system" => text(field, value)?,
            "mcp_servers" => list(field, value, mcp_server)?,
            "skills" => list(field, value, skill)?,
            "tools" => list(field, value, tool)?,
            _ => return Err(format!("agent: unknown field `{field}`")),
        };
        kept.insert(field.clone(), value);
    }
    Ok(kept)
}

/// Returns the fields of an agent that nothing is known of but its id, version and model.
pub(super) fn unknown_agent(id: &str, version: u64, model: &str) -> Fields {
    let mut fields = empty_agent();
    fields.insert("type".to_owned(), json!("agent"));
    fields.insert("id".to_owned(), json!(id));
    fields.insert("name".to_owned(), json!(id));
    fields.insert("version".to_owned(), json!(version));
    fields.insert("model".to_owned(), json!({ "id": model }));
    fields
}

/// What agents and environments have in common.
struct Common {
    name: Name,
    metadata: Metadata,
}

impl Common {
    fn read(before: Option<&Definition>, sent: &Fields) -> Result<Self, String> {
        let name = match (sent.get("name"), before) {
            (Some(Value::String(name)), _) => {
                Name::new(name.as_str()).map_err(|error| format!("name: {error}"))?
            }
            (None | Some(Value::Null), Some(before)) => before.name.clone(),
            (None | Some(Value::Null), None) => return Err("name: is required".to_owned()),
            (Some(_), _) => return Err("name: must be a text".to_owned()),
        };
        let old = before.map(|before| before.metadata.clone()).unwrap_or_default();
        let metadata = match sent.get("metadata") {
            None | Some(Value::Null) => old,
            Some(Value::Object(pairs)) => {
                let mut patch = BTreeMap::new();
                for (key, value) in pairs {
                    let value = match value {
                        Value::Null => None,
                        Value::String(value) => Some(value.clone()),
                        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                            return Err(format!("metadata.{key}: must be a text"));
                        }
                    };
                    patch.insert(key.clone(), value);
                }
                old.patched(&patch).map_err(|error| error.to_string())?
            }
            Some(_) => return Err("metadata: must be an object".to_owned()),
        };
        Ok(Self { name, metadata })
    }

    fn with_body(self, body: &Fields) -> Result<DefinitionContent, String> {
        let text = serde_json::to_string(body).expect("values can be written as JSON");
        let body = Content::new(text).map_err(|error| error.to_string())?;
        Ok(DefinitionContent { name: self.name, metadata: self.metadata, body })
    }
}

fn definition_fields(
    definition: &Definition,
    mut fields: Fields,
    archived_at: Option<Timestamp>,
) -> Fields {
    let common = [
        ("type", json!(definition.id.kind().as_str())),
        ("id", json!(definition.id.to_string())),
        ("name", json!(definition.name.as_str())),
        ("metadata", json!(definition.metadata.pairs())),
        ("created_at", json!(definition.created_at.to_string())),
        ("updated_at", json!(definition.updated_at.to_string())),
        ("archived_at", json!(archived_at.map(|at| at.to_string()))),
    ];
    fields.extend(common.into_iter().map(|(name, value)| (name.to_owned(), value)));
    fields
}

/// Returns the fields of a body. Redaction may have emptied it.
fn fields_of(definition: &Definition, empty: fn() -> Fields) -> Fields {
    let kept: Fields = serde_json::from_str(definition.body.as_str()).unwrap_or_default();
    let mut fields = empty();
    fields.extend(kept);
    fields
}

fn empty_agent() -> Fields {
    let fields = [
        ("model", json!({"id": "unknown"})),
        ("description", Value::Null),
        ("system", Value::Null),
        ("execution_identity", service_account()),
        ("mcp_servers", json!([])),
        ("skills", json!([])),
        ("tools", json!([])),
        ("multiagent", Value::Null),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn empty_environment() -> Fields {
    let cloud = config(None, &Fields::new()).unwrap_or_default();
    let fields =
        [("description", Value::Null), ("config", cloud), ("scope", json!("organization"))];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn service_account() -> Value {
    json!({"type": "service_account"})
}

fn text(field: &str, value: &Value) -> Result<Value, String> {
    let is_long =
        |text: &str| field == "description" && text.chars().nth(DESCRIPTION_CHARS_MAX).is_some();
    match value {
        Value::Null => Ok(Value::Null),
        Value::String(text) if is_long(text) => {
            Err(format!("{field}: must have at most {DESCRIPTION_CHARS_MAX} characters"))
        }
        Value::String(_) => Ok(value.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(format!("{field}: must be a text"))
        }
    }
}

fn model(value: &Value) -> Result<Value, String> {
    let mut fields = match value {
        Value::String(id) => Fields::from_iter([("id".to_owned(), json!(id))]),
        Value::Object(fields) if fields.get("id").is_some_and(Value::is_string) => fields.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            return Err("model: must be the id of a model, or an object with one".to_owned());
        }
    };
    if let Some(Value::String(level)) = fields.get("effort") {
        let level = json!({ "type": level });
        fields.insert("effort".to_owned(), level);
    }
    fields.entry("speed").or_insert_with(|| json!("standard"));
    Ok(Value::Object(fields))
}

fn list(field: &str, value: &Value, each: fn(&Value) -> Value) -> Result<Value, String> {
    match value {
        Value::Null => Ok(json!([])),
        Value::Array(items) if items.iter().all(Value::is_object) => {
            Ok(items.iter().map(each).collect())
        }
        Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => Err(format!("{field}: must be a list of objects")),
    }
}

/// Returns what is kept of an MCP server: nothing that may be a credential.
fn mcp_server(server: &Value) -> Value {
    let mut kept = Fields::new();
    for field in ["type", "name"] {
        let value = server.get(field).cloned().unwrap_or_default();
        kept.insert(field.to_owned(), value);
    }
    let url = server.get("url").and_then(Value::as_str).and_then(without_credentials);
    kept.insert("url".to_owned(), json!(url.unwrap_or_default()));
    Value::Object(kept)
}

fn skill(skill: &Value) -> Value {
    let mut skill = skill.clone();
    if let Some(fields) = skill.as_object_mut()
        && fields.get("version").is_none_or(Value::is_null)
    {
        fields.insert("version".to_owned(), json!("latest"));
    }
    skill
}

/// Fills in what the SDKs expect of a toolset.
fn tool(tool: &Value) -> Value {
    let mut tool = tool.clone();
    let Some(fields) = tool.as_object_mut() else { return tool };
    let policy = match fields.get("type").and_then(Value::as_str) {
        Some("agent_toolset_20260401") => "always_allow",
        Some("mcp_toolset") => "always_ask",
        Some(_) | None => return tool,
    };
    let mut default = fields.get("default_config").and_then(Value::as_object).cloned();
    let default = default.get_or_insert_default();
    default.entry("enabled").or_insert_with(|| json!(true));
    default.entry("permission_policy").or_insert_with(|| json!({ "type": policy }));
    let mut configs = fields.get("configs").and_then(Value::as_array).cloned().unwrap_or_default();
    for config in configs.iter_mut().filter_map(Value::as_object_mut) {
        for (name, value) in &*default {
            config.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    fields.insert("default_config".to_owned(), Value::Object(default.clone()));
    fields.insert("configs".to_owned(), Value::Array(configs));
    tool
}

/// Returns the configuration of an environment, with what was sent in place of what there was.
fn config(before: Option<&Value>, sent: &Fields) -> Result<Value, String> {
    let mut kept = before.and_then(Value::as_object).cloned().unwrap_or_default();
    let is_other = sent.get("type").is_some_and(|kind| kept.get("type") != Some(kind));
    if is_other {
        kept = Fields::new();
    }
    kept.extend(
        sent.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())),
    );
    kept.entry("type").or_insert_with(|| json!("cloud"));
    match kept.get("type").and_then(Value::as_str) {
        Some("self_hosted") => return Ok(json!({"type": "self_hosted"})),
        Some("cloud") => {}
        Some(_) | None => return Err("config.type: must be `cloud` or `self_hosted`".to_owned()),
    }
    let networking = kept.entry("networking").or_insert_with(|| json!({"type": "unrestricted"}));
    match networking.as_object_mut() {
        Some(fields) if fields.get("type").and_then(Value::as_str) == Some("limited") => {
            fields.entry("allow_mcp_servers").or_insert(Value::Bool(false));
            fields.entry("allow_package_managers").or_insert(Value::Bool(false));
            fields.entry("allowed_hosts").or_insert_with(|| json!([]));
        }
        Some(_) => {}
        None => return Err("config.networking: must be an object".to_owned()),
    }
    let packages = kept.entry("packages").or_insert_with(|| json!({}));
    let Some(fields) = packages.as_object_mut() else {
        return Err("config.packages: must be an object".to_owned());
    };
    for manager in ["apt", "cargo", "gem", "go", "npm", "pip"] {
        let list = fields.entry(manager).or_insert_with(|| json!([]));
        if list.is_null() {
            *list = json!([]);
        }
    }
    Ok(Value::Object(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: impl Into<Value>) -> Fields {
        let value = value.into();
        value.as_object().cloned().expect("an object")
    }

    fn body(content: &DefinitionContent) -> Value {
        serde_json::from_str(content.body.as_str()).unwrap()
    }

    #[test]
    fn defaults_are_filled_in_when_an_agent_is_written() {
        let sent = fields(json!({
            "name": "a", "model": "m", "tools": [{"type": "agent_toolset_20260401", "configs": [{"name": "bash"}]}],
            "skills": [{"type": "anthropic", "skill_id": "xlsx"}],
        }));
        let body = body(&agent_content(None, &sent).unwrap());
        assert_eq!(body["model"], json!({"id": "m", "speed": "standard"}));
        let policy = json!({"type": "always_allow"});
        let default = json!({"enabled": true, "permission_policy": policy});
        let config = json!({"name": "bash", "enabled": true, "permission_policy": policy});
        assert_eq!(body["tools"][0]["default_config"], default);
        assert_eq!(body["tools"][0]["configs"], json!([config]));
        assert_eq!(body["skills"][0]["version"], "latest");
        assert_eq!(body["execution_identity"], json!({"type": "service_account"}));
    }

    #[test]
    fn no_credential_of_an_mcp_server_is_kept() {
        let server = json!({
            "type": "url", "name": "x", "url": "https://u:hunter2@example.org/mcp?key=hunter2",
            "authorization_token": "hunter2",
        });
        let sent = fields(json!({"name": "a", "model": "m", "mcp_servers": [server]}));
        let servers = body(&agent_content(None, &sent).unwrap())["mcp_servers"].clone();
        let kept = json!([{"type": "url", "name": "x", "url": "https://example.org/mcp"}]);
        assert_eq!(servers, kept);
    }

    #[test]
    fn what_is_no_field_of_an_agent_or_of_the_wrong_type_is_refused() {
        for (wrong, named) in [
            (json!({"name": "a"}), "model"),
            (json!({"model": "m"}), "name"),
            (json!({"name": "a", "model": 1}), "model"),
            (json!({"name": "a", "model": "m", "tools": [1]}), "tools"),
            (json!({"name": "a", "model": "m", "execution_identity": {}}), "execution_identity"),
            (json!({"name": "a", "model": "m", "system": 1}), "system"),
            (json!({"name": "a", "model": "m", "metadata": {"a": 1}}), "metadata.a"),
            (json!({"name": "a", "model": "m", "colour": "red"}), "colour"),
        ] {
            let refused = agent_content(None, &fields(wrong.clone())).unwrap_err();
            assert!(refused.contains(named), "{wrong}: {refused}");
        }
        assert!(
            environment_content(None, &fields(json!({"name": "e", "config": {"type": "x"}})))
                .is_err()
        );
    }

    #[test]
    fn an_environment_keeps_what_was_left_out_of_its_configuration() {
        let sent =
            fields(json!({"name": "e", "config": {"type": "cloud", "packages": {"pip": ["x"]}}}));
        let config = body(&environment_content(None, &sent).unwrap())["config"].clone();
        assert_eq!(config["networking"], json!({"type": "unrestricted"}));
        assert_eq!(
            (&config["packages"]["pip"], &config["packages"]["apt"]),
            (&json!(["x"]), &json!([]))
        );
        let changed =
            super::config(Some(&config), &fields(json!({"networking": {"type": "limited"}})));
        let changed = changed.unwrap();
        assert_eq!(changed["packages"]["pip"], json!(["x"]));
        assert_eq!(changed["networking"]["allowed_hosts"], json!([]));
        let own = super::config(Some(&config), &fields(json!({"type": "self_hosted"}))).unwrap();
        assert_eq!(own, json!({"type": "self_hosted"}));
    }
}
