//! What is attached to a session. Stores are attached for real; files and repositories are only kept, so
//! that an app reads back what it said. Nothing mounts them, and no token of a repository is kept.

use quipu_core::model::{Attachment, Session, Timestamp};
use serde_json::{Value, json};

use super::agents::Fields;
use super::{AttachmentBody, SessionDetails};

/// How many files and repositories a session may name.
pub const RESOURCES_MAX: usize = 100;

/// How long an id, an address or a path may be.
const TEXT_CHARS_MAX: usize = 2_048;

/// Returns a file or a repository as it is kept; fails with a sentence. `random` makes its id.
pub fn kept_resource(sent: &Fields, at: Timestamp, random: u128) -> Result<Value, String> {
    let text = |field: &str| -> Result<Option<String>, String> {
        match sent.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.chars().nth(TEXT_CHARS_MAX).is_none() => {
                Ok(Some(text.clone()))
            }
            Some(Value::String(_)) => {
                Err(format!("{field}: must have at most {TEXT_CHARS_MAX} characters"))
            }
            Some(_) => Err(format!("{field}: must be a text")),
        }
    };
    let required = |field: &str| text(field)?.ok_or_else(|| format!("{field}: is required"));
    let kind = required("type")?;
    let known: &[&str] = match kind.as_str() {
        "file" => &["type", "file_id", "mount_path"],
        "github_repository" => &["type", "url", "authorization_token", "checkout", "mount_path"],
        _ => return Err("type: must be one of: memory_store, file, github_repository".to_owned()),
    };
    if let Some(unknown) = sent.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("unknown field `{unknown}`"));
    }
    let mount_path = text("mount_path")?;
    let (id, at) = (format!("sesrsc_{random:032x}"), at.to_string());
    if kind == "file" {
        let file_id = required("file_id")?;
        let mount_path = mount_path.unwrap_or_else(|| format!("/mnt/session/uploads/{file_id}"));
        return Ok(json!({
            "id": id, "type": kind, "file_id": file_id, "mount_path": mount_path,
            "mounted": false, "created_at": at, "updated_at": at,
        }));
    }
    let url = without_credentials(&required("url")?)
        .ok_or("url: must be an address such as `https://github.com/owner/name`")?;
    let name = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".git").unwrap_or(name);
    let mount_path = mount_path.unwrap_or_else(|| format!("/workspace/{name}"));
    let checkout = match sent.get("checkout") {
        None | Some(Value::Null) => Value::Null,
        Some(Value::Object(checkout)) => {
            let known =
                |(field, _): &(&String, &Value)| matches!(field.as_str(), "type" | "name" | "sha");
            let known = checkout.iter().filter(known);
            Value::Object(known.map(|(field, value)| (field.clone(), value.clone())).collect())
        }
        Some(_) => return Err("checkout: must be an object".to_owned()),
    };
    Ok(json!({
        "id": id, "type": kind, "url": url, "mount_path": mount_path, "checkout": checkout,
        "mounted": false, "created_at": at, "updated_at": at,
    }))
}

/// Takes whatever may be a credential out of an address: a user and a password, and everything behind the
/// path. `None` if it is none of `http` or `https`, so that it is unknown where a credential would be.
pub(super) fn without_credentials(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"))?;
    let (host, path) = (uri.host().filter(|host| !host.is_empty())?, uri.path());
    let port = uri.port().map_or_else(String::new, |port| format!(":{port}"));
    // What looks like a user behind a slash is one that was cut in the middle.
    (!path.contains('@')).then(|| format!("{scheme}://{host}{port}{path}"))
}

/// Returns everything that is attached to a session: its stores, then what is only kept.
pub fn resources(session: &Session, details: &SessionDetails, mount_root: &str) -> Vec<Value> {
    let store = |attachment: &Attachment| {
        serde_json::to_value(AttachmentBody::new(attachment, mount_root)).unwrap_or_default()
    };
    session.attachments.iter().map(store).chain(details.resources.iter().cloned()).collect()
}

/// Returns whether a resource has this id. A store has its own.
pub fn has_id(resource: &Value, id: &str) -> bool {
    let field = resource.get("id").or_else(|| resource.get("memory_store_id"));
    field.and_then(Value::as_str) == Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(sent: &Value) -> Result<Value, String> {
        kept_resource(sent.as_object().expect("an object"), Timestamp::MIN, 7)
    }

    #[test]
    fn no_credential_of_a_repository_is_kept() {
        let kept = kept(&json!({
            "type": "github_repository", "url": "https://ada:hunter2@example.org/a/b.git",
            "authorization_token": "hunter2", "checkout": {"type": "branch", "name": "main"},
        }))
        .unwrap();
        assert_eq!(kept["url"], "https://example.org/a/b.git");
        assert_eq!(kept["mount_path"], "/workspace/b");
        assert_eq!(kept["mounted"], false);
        assert!(!kept.to_string().contains("hunter2"));
    }

    #[test]
    fn an_address_is_kept_without_what_may_be_a_credential_or_not_at_all() {
        for url in ["https://x:y@h.org:8443/a/b?access_token=t#t", "https://h.org:8443/a/b"] {
            assert_eq!(without_credentials(url).unwrap(), "https://h.org:8443/a/b");
        }
        for url in
            ["https:x:y@h/a", "//x:y@h/a", "https:///x:y@h/a", "https://x:y/p@h/a", "x:y@h:a"]
        {
            assert_eq!(without_credentials(url), None, "{url}");
        }
    }

    #[test]
    fn other_resources_and_fields_are_refused() {
        for (wrong, named) in [
            (json!({"type": "disk"}), "type"),
            (json!({"type": "file"}), "file_id"),
            (json!({"type": "file", "file_id": "f", "token": "t"}), "token"),
            (json!({"type": "file", "file_id": "f".repeat(2_049)}), "file_id"),
            (json!({"type": "github_repository", "url": 1}), "url"),
        ] {
            let refused = kept(&wrong).unwrap_err();
            assert!(refused.contains(named), "{wrong}: {refused}");
        }
    }
}
