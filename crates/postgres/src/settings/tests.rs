//! Tests of URLs and password files.

use std::fs;
use std::path::Path;

use super::*;
use crate::endpoint::Security;

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
    let ports: Vec<_> = endpoint.hosts.iter().map(|config| config.get_ports().to_vec()).collect();
    assert_eq!(ports, [[5433], [5434]]);
    for config in &endpoint.hosts {
        assert_eq!(config.get_hosts().len(), 1);
        assert_eq!(config.get_password(), Some(b"p@ss".as_slice()));
    }
}

#[test]
fn timeouts_of_the_url_are_kept() {
    let url = "postgres://one/memory?connect_timeout=3&tcp_user_timeout=7000&keepalives_idle=11&keepalives_count=4";
    let endpoint = PostgresSettings::new(url).endpoint().unwrap();
    let [config] = endpoint.hosts.as_slice() else { panic!("one host") };
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
    assert_eq!(config.get_keepalives_idle(), Duration::from_secs(11));
    assert_eq!(config.get_keepalives_retries(), Some(4));
    assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(7)));
}

#[test]
fn parameters_that_are_not_supported_are_named() {
    let refused = |query: &str| {
        let url = format!("postgres://a:s3cret@b/c?{query}");
        PostgresSettings::new(url).endpoint().err().expect("it is refused").to_string()
    };
    assert!(refused("sslcert=x").contains("`sslcert`"));
    assert!(refused("target_session_attrs=standby").contains("Quipu writes"));
    assert!(refused("gssencmode=require").contains("gssencmode"));
    // It could be the rest of a password.
    assert!(!refused("s3cret=1").contains("s3cret"));
    for query in ["gssencmode=disable", "client_encoding=UTF8", "target_session_attrs=primary"] {
        let url = format!("postgres://b/c?{query}");
        assert!(PostgresSettings::new(url).endpoint().is_ok(), "{query}");
    }
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
    write_private(&file, "# comment\none:5432:*:bob:no\n*:*:memory:ada:a\\:b\n*:*:*:*:last\n");
    let password = |url: &str| {
        let settings =
            PostgresSettings { password_file: Some(file.clone()), ..PostgresSettings::new(url) };
        let endpoint = settings.endpoint().unwrap();
        let password = endpoint.hosts[0].get_password();
        password.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    assert_eq!(password("postgres://ada@one/memory").as_deref(), Some("a:b"));
    assert_eq!(password("postgres://bob@one/other").as_deref(), Some("no"));
    assert_eq!(password("postgres://eve@one/other").as_deref(), Some("last"));
    assert_eq!(password("postgres://eve:own@one/other").as_deref(), Some("own"));
}

#[test]
fn each_host_has_a_password_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pgpass");
    write_private(&file, "one:*:*:*:first\ntwo:*:*:*:second\n");
    let url = "postgres://ada@one,two/memory";
    let settings = PostgresSettings { password_file: Some(file), ..PostgresSettings::new(url) };
    let endpoint = settings.endpoint().unwrap();
    let passwords: Vec<_> =
        endpoint.hosts.iter().map(|config| config.get_password().unwrap()).collect();
    assert_eq!(passwords, [b"first".as_slice(), b"second".as_slice()]);
}

#[cfg(unix)]
#[test]
fn a_password_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pgpass");
    write_private(&file, "*:*:*:*:s3cret\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let settings = PostgresSettings {
        password_file: Some(file),
        ..PostgresSettings::new("postgres://ada@one/memory")
    };
    let error = settings.endpoint().err().expect("it is refused");
    assert!(error.message().contains("read by others"), "{error:?}");
}

fn write_private(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
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
