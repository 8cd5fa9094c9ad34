//! Reads the URL of a database, as libpq takes it.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use quipu_core::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::password_file::PasswordFile;

/// Where to connect, and how secure.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// One for each host of the URL, in its order.
    pub(crate) hosts: Vec<Config>,
    pub(crate) security: Security,
    pub(crate) root_certificates: Option<PathBuf>,
    pub(crate) password_file: Option<PathBuf>,
}

/// What a connection must prove, as libpq's `sslmode` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Parameters of libpq that are refused by name. Nothing else of a URL that is not understood is quoted: it
/// could be a part of a password.
const UNSUPPORTED: [&str; 20] = [
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "service",
    "servicefile",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslkeylogfile",
    "sslpassword",
    "sslsni",
];

impl Security {
    fn parse(word: &str) -> Result<Self, Error> {
        match word {
            "disable" => Ok(Self::Disable),
            // Nobody would notice that a connection is not encrypted in either case.
            "allow" | "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err(Error::invalid(
                "`sslmode` must be `disable`, `prefer`, `require`, `verify-ca` or `verify-full`",
            )),
        }
    }

    fn mode(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// The parameters of a URL that the driver does not read itself.
#[derive(Default)]
struct Parameters {
    security: Option<Security>,
    root_certificates: Option<PathBuf>,
    password_file: Option<PathBuf>,
    user_timeout: Option<Duration>,
    /// What is left for the driver.
    rest: Vec<String>,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, Error> {
        let mut parameters = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
            match (name, &*value) {
                ("sslmode", word) => parameters.security = Some(Security::parse(word)?),
                ("sslrootcert", file) => parameters.root_certificates = Some(PathBuf::from(file)),
                ("passfile", file) => parameters.password_file = Some(PathBuf::from(file)),
                ("target_session_attrs", "primary") => {
                    parameters.rest.push("target_session_attrs=read-write".to_owned());
                }
                ("target_session_attrs", word) if !["any", "read-write"].contains(&word) => {
                    return Err(Error::invalid(
                        "`target_session_attrs` must be `any`, `read-write` or `primary`: Quipu writes",
                    ));
                }
                // Here in milliseconds; for the driver in seconds.
                ("tcp_user_timeout", count) => {
                    let count = count.parse().map_err(|error| malformed().with_source(error))?;
                    parameters.user_timeout = Some(Duration::from_millis(count));
                }
                ("keepalives_count", count) => {
                    parameters.rest.push(format!("keepalives_retries={count}"));
                }
                // What the driver does anyway.
                ("gssencmode", "disable" | "prefer")
                | ("client_encoding" | "fallback_application_name", _) => {}
                ("gssencmode", _) => {
                    return Err(Error::invalid(
                        "`gssencmode` must be `disable` or `prefer`: use TLS to encrypt the connection",
                    ));
                }
                (name, _) if UNSUPPORTED.contains(&name) => {
                    let message =
                        format!("the URL of the database has `{name}`, which is not supported");
                    return Err(Error::invalid(message)
                        .with_hint("`docs/postgres.md` lists the parameters that are"));
                }
                _ => parameters.rest.push(pair.to_owned()),
            }
        }
        Ok(parameters)
    }
}

impl Endpoint {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(Error::invalid("the URL of a database begins with `postgres://`"));
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let Parameters { security, root_certificates, password_file, user_timeout, rest } =
            Parameters::parse(query)?;
        let url =
            if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        // The driver's message could quote a part of the URL, such as the password.
        let Some(hosts) = Config::from_str(&url).ok().and_then(|config| each_host(&config)) else {
            return Err(malformed());
        };
        // As in libpq, `require` with a certificate to check against checks.
        let security = match security.unwrap_or(Security::Prefer) {
            Security::Require if root_certificates.is_some() => Security::VerifyCa,
            given @ (Security::Disable
            | Security::Prefer
            | Security::Require
            | Security::VerifyCa
            | Security::VerifyFull) => given,
        };
        let mut this = Self {
            hosts,
            security,
            root_certificates: root_certificates.filter(|file| file != Path::new("system")),
            password_file,
        };
        this.each(|config| {
            config.ssl_mode(security.mode());
            user_timeout.map(|timeout| config.tcp_user_timeout(timeout));
        });
        Ok(this)
    }

    /// Changes how each host is connected to.
    pub(crate) fn each(&mut self, change: impl Fn(&mut Config)) {
        self.hosts.iter_mut().for_each(change);
    }

    /// Adds the passwords of a file where the URL has none.
    pub(crate) fn add_passwords(&mut self, file: &PasswordFile) {
        for config in &mut self.hosts {
            if config.get_password().is_some() {
                continue;
            }
            let password = file.password(config);
            password.map(|password| config.password(password));
        }
    }
}

fn malformed() -> Error {
    Error::invalid("the URL of the database is malformed").with_hint(
        "write `postgres://USER@HOST:PORT/DATABASE`, with special characters as `%` and two hex digits",
    )
}

/// Returns a copy of a configuration for each of its hosts.
///
/// The driver would try them in turn, but with one timeout for the socket only: a host that accepts and then
/// says nothing would use up the time of all others.
fn each_host(config: &Config) -> Option<Vec<Config>> {
    let (hosts, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let fits = |length: usize| length <= 1 || length == count;
    let is_paired = hosts.is_empty() || addresses.is_empty() || hosts.len() == addresses.len();
    if count == 0 || !fits(ports.len()) || !is_paired {
        return None;
    }
    let each = (0..count).map(|number| {
        let mut one = without_hosts(config);
        match hosts.get(number) {
            Some(Host::Tcp(host)) => {
                one.host(host);
            }
            Some(Host::Unix(directory)) => {
                one.host_path(directory);
            }
            None => {}
        }
        addresses.get(number).map(|address| one.hostaddr(*address));
        ports.get(number).or(ports.first()).map(|port| one.port(*port));
        one
    });
    Some(each.collect())
}

fn without_hosts(config: &Config) -> Config {
    let mut one = Config::new();
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config.get_application_name().map(|name| one.application_name(name));
    config.get_connect_timeout().map(|timeout| one.connect_timeout(*timeout));
    config.get_tcp_user_timeout().map(|timeout| one.tcp_user_timeout(*timeout));
    config.get_keepalives_interval().map(|interval| one.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
    one.ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding());
    one
}
