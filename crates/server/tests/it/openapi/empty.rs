//! A parameter without a value is refused, unless the document says what it means.

use axum::http::Method;
use serde_json::{Value, json};

use super::document::{Document, list};
use crate::rest::server;

#[tokio::test]
async fn an_empty_parameter_is_rejected_unless_it_is_meaningful() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "x").await;
    let body = json!({"agent": "a", "environment_id": "e"});
    let session = server.post("/v1/sessions", body).await.ok();
    let agent = server.post("/v1/agents", json!({"name": "a", "model": "m"})).await.ok();
    let text = |value: &Value| value.as_str().expect("an id").to_owned();
    let document = Document::load();
    let (mut refused, mut meaningful) = (0, Vec::new());
    for operation in document.operations() {
        let path = operation
            .path
            .replace("{store}", store.rsplit('/').next().expect("an id"))
            .replace("{memory}", &text(&memory["id"]))
            .replace("{version}", &text(&memory["memory_version_id"]))
            .replace("{moment}", &text(&memory["memory_version_id"]))
            .replace("{session}", &text(&session["id"]))
            .replace("{agent}", &text(&agent["id"]))
            .replace("{thread}", &text(&session["id"]).replace("sesn_", "sthr_"));
        let method: Method = operation.method.parse().expect("a method");
        // What the parameters before it need is left out: the first of all checks is this one.
        let body = match operation.path {
            path if path.ends_with("/tool") => json!({"command": "view", "path": "/memories"}),
            path if path.ends_with("/memories") => json!({"path": "/new", "content": "x"}),
            _ => json!({"content": "y"}),
        };
        let parameters = operation.fields.get("parameters").map_or(&[][..], list);
        for parameter in parameters.iter().map(|parameter| document.resolve(parameter)) {
            if parameter["in"] != "query" {
                continue;
            }
            let name = text(&parameter["name"]);
            let uri = match operation.path {
                path_ if path_.ends_with("/context") && name != "url" => {
                    format!("{path}?url=a&{name}=")
                }
                path_ if path_.ends_with("/diff") && name != "from" => {
                    format!("{path}?from=now&{name}=")
                }
                path_ if path_.ends_with("/memory") && name != "path" => {
                    format!("{path}?path=/a&{name}=")
                }
                _ => format!("{path}?{name}="),
            };
            let key = &server.key;
            let reply = server.call_as(key, method.clone(), &uri, body.clone()).await;
            if parameter["allowEmptyValue"] == true {
                assert_eq!(reply.status, 200, "{method} {uri}: {}", reply.body);
                meaningful.push(name);
                continue;
            }
            let message = reply.invalid();
            assert!(message.starts_with(&format!("{name}: must not be empty")), "{uri}: {message}");
            refused += 1;
        }
    }
    assert!(refused > 50, "only {refused} parameters were tried");
    assert_eq!(meaningful, ["query", "query", "text"]);
    assert_eq!(server.all(&format!("{store}/memories")).await.len(), 1);
}
