//! Encrypted connections to the upstream, what is presented there, and what becomes of a refusal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quipu_server::{BaseUrl, UpstreamKey, UpstreamSettings, UpstreamTls};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::scripted::{self, Step, Upstream};
use super::{UPSTREAM_KEY, ask, forwarding_to, settings};

/// A certificate authority of our own.
struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(Vec::new()).expect("valid names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).expect("it is signed");
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("ca.pem"), certificate.pem()).expect("it is written");
        Self { certificate, issuer: Issuer::new(parameters, key), directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Returns what a server with a certificate for this name presents.
    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(vec![name.to_owned()]).expect("a valid name");
        let certificate = parameters.signed_by(&key, &self.issuer).expect("it is signed");
        let chain = vec![certificate.der().clone(), self.certificate.der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
        TlsAcceptor::from(Arc::new(config.expect("they fit")))
    }
}

async fn secured(authority: &Authority, name: &str) -> Upstream {
    Upstream::start_with(Some(authority.acceptor(name)), |_, _| {
        vec![Step::Write(scripted::json(200, "", &json!({"ok": true})))]
    })
    .await
}

#[tokio::test]
async fn certificates_are_checked_against_the_authorities_of_a_file() {
    let (own, other) = (Authority::new(), Authority::new());
    let upstream = secured(&own, "127.0.0.1").await;
    let trusting = |file: PathBuf| UpstreamSettings {
        tls: UpstreamTls::with_authorities(&file).expect("a file of certificates"),
        ..settings(&upstream)
    };
    let server = forwarding_to(trusting(own.file()));
    assert_eq!(ask(&server, &[], &json!({})).await.ok(), json!({"ok": true}));
    assert_eq!(upstream.seen()[0].headers["x-api-key"], UPSTREAM_KEY);
    // Authorities that browsers trust have not signed it, and neither has another one.
    for settings in [settings(&upstream), trusting(other.file())] {
        let server = forwarding_to(settings);
        let message = ask(&server, &[], &json!({})).await.error(502, "api_error");
        assert_eq!(message, "the upstream cannot be reached");
    }
    assert_eq!(upstream.seen().len(), 1, "nothing was sent to whom is not trusted");
    // Nor has anybody signed it for this host.
    let named = secured(&own, "elsewhere.example.org").await;
    let tls = UpstreamTls::with_authorities(&own.file()).expect("a file");
    let server = forwarding_to(UpstreamSettings { tls, ..settings(&named) });
    ask(&server, &[], &json!({})).await.error(502, "api_error");
    assert_eq!(named.seen().len(), 0);
}

#[tokio::test]
async fn a_file_without_certificates_is_said_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ca.pem");
    let message = || UpstreamTls::with_authorities(&file).expect_err("it is refused").to_string();
    assert!(message().contains("ca.pem"), "{}", message());
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&file, broken).expect("it is written");
    assert!(message().contains("ca.pem"), "{}", message());
}

#[tokio::test]
async fn a_key_can_be_a_bearer_token() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Write(scripted::json(200, "", &json!({})))]).await;
    let key = UpstreamKey::bearer(UPSTREAM_KEY).ok();
    let server = forwarding_to(UpstreamSettings { key, ..settings(&upstream) });
    ask(&server, &[], &json!({})).await.ok();
    let seen = &upstream.seen()[0];
    assert_eq!(seen.headers["authorization"], format!("Bearer {UPSTREAM_KEY}"));
    assert!(!seen.headers.contains_key("x-api-key"), "{:?}", seen.headers);
}

#[tokio::test]
async fn an_upstream_that_does_not_connect_is_given_up() {
    // It takes connections, and never says a word of TLS.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let settings = UpstreamSettings {
        connect_timeout: Duration::from_millis(30),
        ..UpstreamSettings::new(BaseUrl::parse(&url).expect("an address"), None)
    };
    let server = forwarding_to(settings);
    let message = ask(&server, &[], &json!({})).await.error(502, "api_error");
    assert_eq!(message, "the upstream cannot be reached");
}

#[tokio::test]
async fn a_refusal_of_the_key_of_this_server_is_not_about_that_of_the_caller() {
    let quoting = json!({"type": "error", "error": {
        "type": "authentication_error", "message": format!("invalid x-api-key: {UPSTREAM_KEY}"),
    }});
    let upstream =
        Upstream::start(move |_, _| vec![Step::Write(scripted::json(401, "", &quoting))]).await;
    let server = forwarding_to(settings(&upstream));
    server.store("notes").await;
    let body = json!({"model": "m", "max_tokens": 9, "messages": []});
    let streamed = json!({"model": "m", "max_tokens": 9, "messages": [], "stream": true});
    for (headers, body) in [
        (vec![], &body),
        (vec![("quipu-store", "notes")], &body),
        (vec![("quipu-store", "notes")], &streamed),
    ] {
        let reply = ask(&server, &headers, body).await;
        let message = reply.error(502, "api_error");
        assert!(message.contains("the key of this server"), "{message}");
        assert_eq!(reply.headers["x-should-retry"], "false");
        assert!(!reply.body.to_string().contains(UPSTREAM_KEY), "{}", reply.body);
    }
    // That of the caller is.
    let reply = server.send(super::messages("sk-quipu-wrong", &[], &body)).await;
    reply.error(401, "authentication_error");
}
