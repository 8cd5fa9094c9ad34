//! Who may forward, and what those are told who may not.

use axum::http::Method;
use quipu_core::engine::{NewAttachment, NewSession, SessionToken};
use quipu_core::model::{Access, Instructions, Role};
use serde_json::{Value, json};

use super::scripted::{self, Step, Upstream};
use super::{ask, forwarding_to, messages, new_key, settings};
use crate::rest::matrix::{INVALID, World};
use crate::rest::{Server, server};

async fn answering() -> Upstream {
    Upstream::start(|_, _| vec![Step::Write(scripted::json(200, "", &json!({})))]).await
}

#[tokio::test]
async fn without_an_upstream_an_unserved_route_says_how_to_get_one() {
    let server = server();
    for (method, uri) in [(Method::POST, "/v1/messages"), (Method::GET, "/v1/models")] {
        let reply = server.call_as(&server.key, method, uri, Value::Null).await;
        let message = reply.error(404, "not_found_error");
        assert!(
            message.contains("[upstream]") && message.contains("docs/upstream.md"),
            "{message}"
        );
    }
    let elsewhere = server.get("/v2/messages").await.error(404, "not_found_error");
    assert!(!elsewhere.contains("[upstream]"), "{elsewhere}");
}

#[tokio::test]
async fn only_keys_that_were_made_for_it_forward() {
    let upstream = answering().await;
    let server = forwarding_to(settings(&upstream));
    let store = server.store("notes").await;
    let store = store.rsplit('/').next().unwrap().parse().unwrap();
    for role in Role::ALL {
        for stores in [None, Some(vec![store])] {
            let key = server.new_key(*role, stores.clone());
            let reply = server.send(messages(&key, &[], &json!({}))).await;
            let message = reply.error(403, "permission_error");
            assert!(message.contains("quipu key create --forward"), "{message}");
            let (_, key) = new_key(&server, *role, stores);
            server.send(messages(&key, &[], &json!({}))).await.ok();
        }
    }
    assert_eq!(upstream.seen().len(), 6);
}

#[tokio::test]
async fn no_token_of_a_session_forwards_not_even_that_of_a_key_that_may() {
    let upstream = answering().await;
    let server = forwarding_to(settings(&upstream));
    let store = server.store("notes").await;
    let attachment = NewAttachment {
        store: store.rsplit('/').next().unwrap().parse().unwrap(),
        access: Access::ReadWrite,
        instructions: Instructions::default(),
    };
    let (key, _) = new_key(&server, Role::Admin, None);
    let titled = NewSession::titled("run", vec![attachment], SessionToken::Issue);
    let new = NewSession { key: Some(key), ..titled };
    let (_, token) = server.engine.create_session(server.workspace, &new).unwrap();
    let request = messages(token.unwrap().reveal(), &[], &json!({}));
    server.send(request).await.error(403, "permission_error");
    assert_eq!(upstream.seen().len(), 0);
}

#[tokio::test]
async fn nobody_forwards_without_a_valid_credential() {
    for caller in INVALID {
        let upstream = answering().await;
        let World { server, credential, .. } = World::forwarding(caller, settings(&upstream));
        for uri in ["/v1/messages", "/v1/models", "/v1/%2e%2e/x"] {
            let mut request = axum::http::Request::post(uri);
            if let Some(credential) = &credential {
                request = request.header("x-api-key", credential);
            }
            let request = request.body(axum::body::Body::from("{}")).unwrap();
            server.send(request).await.error(401, "authentication_error");
        }
        assert_eq!(upstream.seen().len(), 0, "{caller:?}");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_v1() {
    let upstream = answering().await;
    let server = forwarding_to(settings(&upstream));
    for uri in [
        "/v1/../admin",
        "/v1/%2e%2e/admin",
        "/v1/x%2f..%2f..%2fadmin",
        "/v1//admin",
        "/v1/x%5c..%5cadmin",
        "/v1/%252e%252e/admin",
    ] {
        server.get(uri).await.error(400, "invalid_request_error");
    }
    assert_eq!(upstream.seen().len(), 0);
    let absolute = "http://elsewhere.invalid/v1/models";
    server.get(absolute).await.ok();
    let seen = upstream.seen().pop().unwrap();
    assert_eq!(seen.line, "GET /v1/models HTTP/1.1");
    assert_eq!(format!("http://{}", seen.headers["host"]), upstream.url);
}

async fn told(server: &Server, key: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let reply = server.send(messages(key, headers, &json!({"messages": []}))).await;
    (reply.status, reply.body["error"]["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_store_is_opened_to_those_who_may_read_it() {
    let upstream = answering().await;
    let server = forwarding_to(settings(&upstream));
    let id = |uri: &str| uri.rsplit('/').next().unwrap().parse().unwrap();
    let notes = id(&server.store("notes").await);
    server.store("other").await;
    let everything = new_key(&server, Role::ReadOnly, None).1;
    let limited = new_key(&server, Role::ReadWrite, Some(vec![notes])).1;
    for (key, store, status) in [
        (&everything, "notes", 200),
        (&everything, "missing", 404),
        (&limited, "notes", 200),
        (&limited, "other", 403),
        (&limited, "missing", 403),
        (&limited, "", 400),
    ] {
        let (got, message) = told(&server, key, &[("quipu-store", store)]).await;
        assert_eq!(got, status, "{store}: {message}");
    }
    // Whatever else the app sends with the header goes through as it is.
    let request = axum::http::Request::get("/v1/models")
        .header("x-api-key", &limited)
        .header("quipu-store", "missing")
        .body(axum::body::Body::empty());
    server.send(request.unwrap()).await.ok();
}

#[tokio::test]
async fn only_the_maker_of_a_session_and_admins_write_as_it() {
    let upstream = answering().await;
    let server = forwarding_to(settings(&upstream));
    let id = |uri: &str| uri.rsplit('/').next().unwrap().parse().unwrap();
    let (notes, other) = (id(&server.store("notes").await), id(&server.store("other").await));
    let (maker, of_maker) = new_key(&server, Role::ReadWrite, None);
    let of_other = new_key(&server, Role::ReadWrite, None).1;
    let session = |store, title: &str| {
        let instructions = Instructions::default();
        let attachment = NewAttachment { store, access: Access::ReadWrite, instructions };
        let titled = NewSession::titled(title, vec![attachment], SessionToken::None);
        let new = NewSession { key: Some(maker), ..titled };
        server.engine.create_session(server.workspace, &new).unwrap().0.id.to_string()
    };
    let (own, elsewhere, archived) =
        (session(notes, "own"), session(other, "elsewhere"), session(notes, "archived"));
    server.engine.archive_session(archived.parse().unwrap()).unwrap();
    for (key, session, status) in [
        (&of_maker, &own, 200),
        (&server.key, &own, 200),
        (&of_other, &own, 403),
        (&of_maker, &elsewhere, 400),
        (&of_maker, &archived, 400),
        (&of_maker, &"sesn_nothing".to_owned(), 404),
    ] {
        let headers = [("quipu-store", "notes"), ("quipu-session", session.as_str())];
        let (got, message) = told(&server, key, &headers).await;
        assert_eq!(got, status, "{session}: {message}");
    }
}

#[tokio::test]
async fn a_tool_of_the_app_may_not_have_the_name_of_the_memory() {
    let upstream = answering().await;
    let server = forwarding_to(settings(&upstream));
    server.store("notes").await;
    let store = [("quipu-store", "notes")];
    for (body, is_fine) in [
        (json!({"tools": [{"name": "memory", "input_schema": {}}]}), false),
        (json!({"tools": [{"name": "memory", "type": "memory_20250818"}]}), true),
        (json!({"tools": 3}), false),
        (json!({"system": 3}), false),
        (json!([]), false),
    ] {
        let reply = ask(&server, &store, &body).await;
        assert_eq!(reply.status, if is_fine { 200 } else { 400 }, "{body}");
    }
    let seen = upstream.seen().pop().unwrap().json();
    assert_eq!(seen["tools"].as_array().unwrap().len(), 1);
}
