//! Encrypted connections, and whom they prove to reach.

use std::fs;
use std::path::Path;

use quipu_core::ErrorKind;
use quipu_postgres::{PostgresBackend, PostgresSettings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::cluster::{Cluster, Options};

/// A cluster that speaks TLS, and the certificates to verify it with.
fn encrypted(directory: &Path) -> Cluster {
    let file = |name: &str| directory.join(name);
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::new(Vec::new()).expect("valid names");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).expect("it is signed");
    let issuer = Issuer::new(ca, ca_key);
    let other_key = KeyPair::generate().expect("a key");
    let mut other = CertificateParams::new(Vec::new()).expect("valid names");
    other.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let other = other.self_signed(&other_key).expect("it is signed");
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(vec!["localhost".to_owned()]).expect("valid names");
    let server = server.signed_by(&key, &issuer).expect("it is signed");
    for (name, pem) in [
        ("ca.pem", ca_certificate.pem()),
        ("other.pem", other.pem()),
        ("server.pem", server.pem()),
        ("server.key", key.serialize_pem()),
    ] {
        fs::write(file(name), pem).expect("it is written");
    }
    Cluster::start(&Options {
        certificate: Some((file("server.pem"), file("server.key"))),
        rules: "hostssl all guarded all scram-sha-256\\n",
        ..Options::default()
    })
}

#[test]
fn passwords_are_bound_to_the_encrypted_connection() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let cluster = encrypted(directory.path());
    let sql = "SET password_encryption = 'scram-sha-256';
        CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'right'";
    cluster.sql("postgres", sql);
    let bound = |word: &str, password: &str| {
        let url = format!(
            "postgres://guarded:{password}@localhost:{}/postgres?sslmode=require&channel_binding={word}",
            cluster.port()
        );
        PostgresBackend::open(&PostgresSettings::new(url)).map(drop)
    };
    for word in ["require", "prefer", "disable"] {
        let opened = bound(word, "right");
        assert!(opened.is_ok(), "{word}: {:?}", opened.err());
        let error = bound(word, "wrong").expect_err("the password is wrong");
        assert!(error.message().contains("authentication failed"), "{error:?}");
    }
    // Without a password there is nothing to bind.
    let url = format!(
        "postgres://postgres@localhost:{}/postgres?sslmode=require&channel_binding=require",
        cluster.port()
    );
    let error = PostgresBackend::open(&PostgresSettings::new(url)).map(drop).expect_err("refused");
    assert!(error.message().contains("did not prove"), "{error:?}");
}

#[test]
fn the_mode_of_the_connection_says_what_is_verified() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let file = |name: &str| directory.path().join(name);
    let cluster = encrypted(directory.path());
    let open = |host: &str, mode: &str, root: Option<&str>| {
        let root = root.map_or_else(String::new, |name| {
            format!("&sslrootcert={}", file(name).display().to_string().replace('/', "%2F"))
        });
        let port = cluster.port();
        let url = format!("postgres://postgres@{host}:{port}/postgres?sslmode={mode}{root}");
        PostgresBackend::open(&PostgresSettings::new(url)).map(drop)
    };
    for (host, mode, root) in [
        ("localhost", "verify-full", Some("ca.pem")),
        ("127.0.0.1", "verify-ca", Some("ca.pem")),
        ("127.0.0.1", "require", None),
        ("127.0.0.1", "prefer", None),
    ] {
        let opened = open(host, mode, root);
        assert!(opened.is_ok(), "{host} {mode}: {:?}", opened.err());
    }
    for (host, mode, root) in [
        // The certificate is for another name.
        ("127.0.0.1", "verify-full", Some("ca.pem")),
        ("localhost", "verify-full", Some("other.pem")),
        ("localhost", "verify-ca", Some("other.pem")),
        // As libpq does: with something to verify against, it is verified.
        ("localhost", "require", Some("other.pem")),
        // The server accepts encrypted connections only.
        ("127.0.0.1", "disable", None),
    ] {
        let error = open(host, mode, root).expect_err("it is refused");
        assert_eq!(*error.kind(), ErrorKind::StorageUnavailable, "{host} {mode}: {error:?}");
    }
}
