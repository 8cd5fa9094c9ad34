//! Tests of URLs and password files.

use super::*;

const URL: &str = "postgres://ada:p%40ss@one:5433,two:5434/memory?sslmode=verify-full&target_session_attrs=read-write";

#[test]
fn no_password_is_in_the_debug_output() {
    let settings = PostgresSettings {
        listen_url: Some("postgres://ada:s3cret@three/memory".to_owned()),
        ..PostgresSettings::new(URL)
    };
    let shown = format!("{settings:?}");
    assert!(!shown.contains("p%40ss") && !shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("postgres://one:5433,two:5434/memory"), "{shown}");
}

#[test]
fn a_url_names_hosts_and_how_secure_the_connection_is() {
    let endpoint = PostgresSettings::new(URL).endpoint().unwrap();
    assert_eq!(endpoint.security, Security::VerifyFull);
    assert_eq!(endpoint.config.get_hosts().len(), 2);
    assert_eq!(endpoint.config.get_ports(), [5433, 5434]);
    assert_eq!(endpoint.config.get_password(), Some(b"p@ss".as_slice()));
}

#[test]
fn require_with_a_root_certificate_verifies() {
    let url = "postgres://one/memory?sslmode=require&sslrootcert=%2Fca.pem";
    let endpoint = PostgresSettings::new(url).endpoint().unwrap();
    assert_eq!(endpoint.security, Security::VerifyCa);
    assert_eq!(endpoint.root_certificates.as_deref(), Some(Path::new("/ca.pem")));
}

#[test]
fn malformed_urls_are_refused_without_quoting_them() {
    for url in
        ["mysql://a:s3cret@b/c", "postgres://a:s3cret@b:x/c", "postgres://a:s3cret@b/c?sslmode=no"]
    {
        let error = PostgresSettings::new(url).endpoint().err().expect("it is refused");
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    }
}

#[test]
fn a_password_comes_from_the_first_line_that_fits() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pgpass");
    fs::write(&file, "# comment\none:5432:*:bob:no\n*:*:memory:ada:a\\:b\n*:*:*:*:last\n").unwrap();
    let password = |url: &str| {
        let settings =
            PostgresSettings { password_file: Some(file.clone()), ..PostgresSettings::new(url) };
        let endpoint = settings.endpoint().unwrap();
        endpoint.config.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    assert_eq!(password("postgres://ada@one/memory").as_deref(), Some("a:b"));
    assert_eq!(password("postgres://bob@one/other").as_deref(), Some("no"));
    assert_eq!(password("postgres://eve@one/other").as_deref(), Some("last"));
    assert_eq!(password("postgres://eve:own@one/other").as_deref(), Some("own"));
}

#[test]
fn a_schema_is_quoted() {
    let schema = |name: &str| {
        PostgresSettings { schema: name.to_owned(), ..PostgresSettings::new(URL) }.quoted_schema()
    };
    assert_eq!(schema("a\"b").unwrap(), "\"a\"\"b\"");
    for name in ["", "pg_catalog", "a\nb"] {
        assert!(schema(name).is_err(), "{name}");
    }
}
