//! The inspector's doors: signing in and out, cookies, the proof that a form is ours.
//!
//! What the pages show is tested where they are made; here are the things that keep strangers out.

#[path = "inspector/matrix.rs"]
mod matrix;

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use quipu_core::engine::{Derivation, NewDerivedKey, Principal};
use quipu_core::model::{KeyKind, Name, Role};
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;

use crate::rest::{Reply, Server, server, server_with};

/// A browser: sends its cookie, and says where its forms come from.
pub(crate) struct Browser<'a> {
    pub(crate) server: &'a Server,
    pub(crate) cookie: String,
    pub(crate) site: &'static str,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        Self { server, cookie: String::new(), site: "same-origin" }
    }

    /// Signs in, which must work.
    pub(crate) async fn signed_in(server: &'a Server, key: &str) -> Self {
        let mut browser = Self::new(server);
        let reply = browser.post("/ui/sign-in", &[("key", key), ("name", "ada")]).await;
        assert_eq!((reply.status, location(&reply)), (303, "/ui"), "{}", reply.body);
        browser.accept(&reply);
        browser
    }

    /// Keeps the cookie of an answer.
    pub(crate) fn accept(&mut self, reply: &Reply) {
        let line = reply.headers["set-cookie"].to_str().expect("a text");
        line.split(';').next().expect("a pair").clone_into(&mut self.cookie);
    }

    fn request(&self, method: Method, uri: &str) -> axum::http::request::Builder {
        let request = Request::builder().method(method).uri(uri).header("accept", "text/html");
        let request = request.header("sec-fetch-site", self.site);
        if self.cookie.is_empty() { request } else { request.header("cookie", &self.cookie) }
    }

    pub(crate) async fn get(&self, uri: &str) -> Reply {
        let request = self.request(Method::GET, uri).body(Body::empty()).expect("a request");
        self.server.send(request).await
    }

    pub(crate) async fn post(&self, uri: &str, fields: &[(&str, &str)]) -> Reply {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.request(Method::POST, uri).body(Body::from(body)).expect("a request");
        self.server.send(request).await
    }

    /// Returns the form token of the start page.
    pub(crate) async fn token(&self) -> String {
        let page = text(&self.get("/ui").await).to_owned();
        let (_, rest) = page.split_once("name=\"token\" value=\"").expect("a form");
        rest.split('"').next().expect("a token").to_owned()
    }
}

pub(crate) fn text(reply: &Reply) -> &str {
    reply.body.as_str().expect("a page")
}

pub(crate) fn location(reply: &Reply) -> &str {
    reply.headers.get("location").map_or("", |value| value.to_str().expect("a text"))
}

/// Fails unless the answer leads to the form for signing in.
#[track_caller]
pub(crate) fn is_sign_in(reply: &Reply) {
    assert_eq!(reply.status, 303, "{}", reply.body);
    assert!(location(reply).starts_with("/ui/sign-in?next="), "{}", location(reply));
}

#[tokio::test]
async fn the_first_page_leads_people_to_the_inspector_and_programs_to_a_text() {
    let server = server();
    let browser = Browser::new(&server);
    assert_eq!(location(&browser.get("/").await), "/ui");
    is_sign_in(&browser.get("/ui").await);
    let reply = server.get("/").await;
    assert_eq!(reply.status, 200);
    assert!(text(&reply).contains("/v1") && text(&reply).contains("/mcp"));
}

#[tokio::test]
async fn a_key_becomes_a_cookie_that_scripts_and_other_sites_cannot_use() {
    let server = server();
    let reply =
        Browser::new(&server).post("/ui/sign-in", &[("key", &server.key), ("name", "ada")]).await;
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    for part in ["quipu=sk-quipu-", "; Path=/", "; HttpOnly", "; SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(&server.key), "the key itself is not in the cookie");
    assert!(!cookie.contains("Secure"), "this server has no TLS");
    let secure = HttpSettings { has_tls: true, ..HttpSettings::default() };
    let server = server_with(secure, Limits::default());
    let reply =
        Browser::new(&server).post("/ui/sign-in", &[("key", &server.key), ("name", "ada")]).await;
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-quipu=") && cookie.contains("; Secure"), "{cookie}");
}

#[tokio::test]
async fn whoever_signs_in_is_the_author_of_what_they_change() {
    let server = server();
    let browser = Browser::signed_in(&server, &server.key).await;
    let token = browser.token().await;
    let reply = browser.post("/ui/stores", &[("token", &token), ("name", "notes")]).await;
    assert_eq!(reply.status, 303, "{}", reply.body);
    let id = location(&reply).trim_start_matches("/ui/stores/").to_owned();
    let new = format!("/ui/stores/{id}/new");
    let reply =
        browser.post(&new, &[("token", &token), ("path", "/tea.md"), ("text", "green")]).await;
    assert_eq!(reply.status, 303, "{}", reply.body);
    let versions = server.all(&format!("/v1/memory_stores/{id}/memory_versions")).await;
    let author = &versions[0]["created_by"];
    assert_eq!(author["type"], "user_actor", "{author}");
    assert!(author["user_id"].as_str().unwrap().starts_with("user_ada@apikey_"), "{author}");
}

#[tokio::test]
async fn a_wrong_key_gets_the_form_again() {
    let server = server();
    for (key, name) in [("sk-quipu-wrong", "ada"), ("", "ada")] {
        let reply =
            Browser::new(&server).post("/ui/sign-in", &[("key", key), ("name", name)]).await;
        assert_eq!(reply.status, 401, "{}", reply.body);
        assert!(!reply.headers.contains_key("set-cookie"));
        assert!(text(&reply).contains("<form"), "{}", reply.body);
    }
    // A sign-in is no key: what came of it would outlive it.
    let browser = Browser::signed_in(&server, &server.key).await;
    let (_, secret) = browser.cookie.split_once('=').unwrap();
    let reply =
        Browser::new(&server).post("/ui/sign-in", &[("key", secret), ("name", "eve")]).await;
    assert_eq!(reply.status, 401, "{}", reply.body);
    // A name that the history could not show is asked for again, and the key is not wasted.
    let reply = Browser::new(&server)
        .post("/ui/sign-in", &[("key", &server.key), ("name", "a b\n<c>")])
        .await;
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert!(!reply.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn a_form_of_another_site_changes_nothing() {
    let server = server();
    let mut browser = Browser::signed_in(&server, &server.key).await;
    let token = browser.token().await;
    let before = server.engine.newest_sequence().unwrap();
    for site in ["cross-site", "same-site", "none", ""] {
        browser.site = site;
        let reply = browser.post("/ui/stores", &[("token", &token), ("name", "notes")]).await;
        assert_eq!(reply.status, 403, "{site}: {}", reply.body);
        let reply = browser.post("/ui/sign-in", &[("key", &server.key), ("name", "ada")]).await;
        assert_eq!(reply.status, 403, "{site}: {}", reply.body);
    }
    browser.site = "same-origin";
    for wrong in ["", "x", &token.to_uppercase()] {
        let reply = browser.post("/ui/stores", &[("token", wrong), ("name", "notes")]).await;
        assert_eq!(reply.status, 403, "{wrong}: {}", reply.body);
    }
    assert_eq!(server.engine.newest_sequence().unwrap(), before);
}

#[tokio::test]
async fn old_browsers_prove_their_origin() {
    let server = server();
    let send = async |origin: Option<&str>| {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/ui/sign-in")
            .header("host", "memory.test:8420");
        let request = match origin {
            Some(origin) => request.header("origin", origin),
            None => request,
        };
        let body = format!("key={}&name=ada", server.key);
        server.send(request.body(Body::from(body)).unwrap()).await.status
    };
    assert_eq!(send(Some("http://memory.test:8420")).await, 303);
    for other in [
        None,
        Some("null"),
        Some("http://evil.test"),
        Some("http://memory.test:8420.evil.test"),
        Some("memory.test:8420"),
    ] {
        assert_eq!(send(other).await, 403, "{other:?}");
    }
}

#[tokio::test]
async fn a_sign_in_ends_with_its_key() {
    let server = server();
    let key = server.new_key(Role::Admin, None);
    let browser = Browser::signed_in(&server, &key).await;
    assert_eq!(browser.get("/ui").await.status, 200);
    let Some(Principal::Key(parent)) = server.engine.principal(&key).unwrap() else {
        panic!("the key is valid");
    };
    server.engine.revoke_key(parent.id).unwrap();
    is_sign_in(&browser.get("/ui").await);
    let reply = browser.post("/ui/stores", &[("token", "x"), ("name", "notes")]).await;
    assert_eq!(reply.status, 401);
    assert!(text(&reply).contains("Sign in"), "{}", reply.body);
}

#[tokio::test]
async fn an_idle_sign_in_ends_and_a_used_one_is_bounded() {
    let server = server();
    let hours = |hours: u64| server.clock.advance(Duration::from_hours(hours));
    let idle = Browser::signed_in(&server, &server.key).await;
    let used = Browser::signed_in(&server, &server.key).await;
    hours(8);
    assert_eq!(used.get("/ui").await.status, 200);
    hours(8);
    is_sign_in(&idle.get("/ui").await);
    let mut elapsed_hours = 16;
    while used.get("/ui").await.status == 200 {
        hours(8);
        elapsed_hours += 8;
        assert!(elapsed_hours <= 7 * 24 + 12, "it ends after a week");
    }
    assert!(elapsed_hours >= 6 * 24, "it ended after {elapsed_hours} hours");
}

#[tokio::test]
async fn signing_out_ends_the_cookie_and_not_the_key() {
    let server = server();
    let browser = Browser::signed_in(&server, &server.key).await;
    let other = Browser::signed_in(&server, &server.key).await;
    assert_eq!(browser.post("/ui/sign-out", &[("token", "x")]).await.status, 403);
    let token = browser.token().await;
    let reply = browser.post("/ui/sign-out", &[("token", &token)]).await;
    assert_eq!((reply.status, location(&reply)), (303, "/ui/sign-in"));
    assert!(reply.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    is_sign_in(&browser.get("/ui").await);
    assert_eq!(other.get("/ui").await.status, 200);
}

#[tokio::test]
async fn a_link_works_once_and_for_a_minute() {
    let server = server();
    let link = || {
        let new = NewDerivedKey {
            kind: KeyKind::Link,
            name: Name::new("ada").unwrap(),
            role: Role::Admin,
            stores: None,
            expires_at: server.engine.now().plus(Duration::from_mins(1)),
            payload: None,
        };
        let (_, secret) =
            server.engine.derive_key(Derivation::Owner(server.workspace), &new).unwrap();
        format!("/ui/enter?link={}", secret.reveal())
    };
    let first = link();
    let mut browser = Browser::new(&server);
    let reply = browser.get(&first).await;
    assert_eq!((reply.status, location(&reply)), (303, "/ui"));
    browser.accept(&reply);
    assert_eq!(browser.get("/ui").await.status, 200);
    let late = link();
    server.clock.advance(Duration::from_secs(61));
    // Looking at what a link leads to does not use it up.
    let looked_at = link();
    let head = Request::builder().method(Method::HEAD).uri(&looked_at).body(Body::empty()).unwrap();
    assert!(!server.send(head).await.headers.contains_key("set-cookie"));
    assert_eq!(Browser::new(&server).get(&looked_at).await.status, 303);
    for used in [first.as_str(), &late, "/ui/enter?link=x", "/ui/enter"] {
        let reply = Browser::new(&server).get(used).await;
        assert_eq!(reply.status, 401, "{used}");
        assert!(text(&reply).contains("quipu ui") && !reply.headers.contains_key("set-cookie"));
    }
}

#[tokio::test]
async fn broken_cookies_lead_to_the_form() {
    let server = server();
    for cookie in
        ["quipu=", "quipu", "quipu=x; quipu=y", "quipu=\"", "other=1", "=;=;", "quipu=sk-quipu-%00"]
    {
        let mut browser = Browser::new(&server);
        browser.cookie = cookie.to_owned();
        is_sign_in(&browser.get("/ui").await);
    }
    // A key in a header opens no page.
    is_sign_in(&server.get("/ui").await);
}

#[tokio::test]
async fn huge_forms_are_refused() {
    let server = server();
    let huge = "x".repeat(100_000);
    let reply = Browser::new(&server).post("/ui/sign-in", &[("key", &huge), ("name", "ada")]).await;
    assert_eq!(reply.status, 413, "{}", reply.body);
    assert!(text(&reply).contains("<h1>"), "{}", reply.body);
}

#[tokio::test]
async fn every_answer_forbids_what_is_not_ours() {
    let server = server();
    let browser = Browser::signed_in(&server, &server.key).await;
    for uri in ["/ui", "/ui/sign-in", "/ui/nowhere", "/ui/stores/memstore_x", "/ui/assets/none.css"]
    {
        let reply = browser.get(uri).await;
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        for part in
            ["default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"]
        {
            assert!(policy.contains(part), "{uri}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{uri}: {policy}");
        assert_eq!(reply.headers["cache-control"], "no-store", "{uri}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff", "{uri}");
    }
}

#[tokio::test]
async fn a_link_from_another_site_leads_on_to_the_page() {
    let server = server();
    let mut browser = Browser::new(&server);
    browser.site = "cross-site";
    let reply = browser.get("/ui/search?q=a%22b").await;
    assert_eq!(reply.status, 200);
    assert!(text(&reply).contains("0;url=/ui/search?q=a%22b"), "{}", reply.body);
    // From our own page the browser sends its cookie; without one it has to sign in.
    browser.site = "same-origin";
    is_sign_in(&browser.get("/ui/search?q=a%22b").await);
}

#[tokio::test]
async fn servers_on_one_machine_have_cookies_of_their_own() {
    let server = server();
    let sign_in = async |host: &str| {
        let body = format!("key={}&name=ada", server.key);
        let request = Request::builder().method(Method::POST).uri("/ui/sign-in");
        let request = request.header("host", host).header("sec-fetch-site", "same-origin");
        let reply = server.send(request.body(Body::from(body)).unwrap()).await;
        reply.headers["set-cookie"].to_str().unwrap().split('=').next().unwrap().to_owned()
    };
    assert_eq!(sign_in("127.0.0.1:8420").await, "quipu-8420");
    assert_eq!(sign_in("[::1]:9000").await, "quipu-9000");
    assert_eq!(sign_in("memory.test").await, "quipu");
}
