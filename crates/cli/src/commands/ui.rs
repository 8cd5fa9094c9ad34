//! `quipu ui`: opens the inspector in a browser that is signed in by a one-time link.
//!
//! Whoever can read the data directory may do everything, so the link needs no key to be derived from.
//! It can be used once and for a minute, because links end up in histories and in lists of processes.

use std::io::{self, IsTerminal as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use quipu_core::Error;
use quipu_core::engine::{Derivation, NewDerivedKey};
use quipu_core::model::{KeyKind, Name, PERSON_NAME_SIZE_BYTES_MAX, PrincipalName};
use serde::Serialize;

use super::serve::default_address;
use crate::args::UiArguments;
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{Form, answer, note};
use crate::settings::ServeTable;

/// How long the link can be used.
const VALID_FOR: Duration = Duration::from_mins(1);

/// How long to wait for the server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A browser that has not failed for this long has started; it may run until it is closed.
const BROWSER_START: Duration = Duration::from_millis(1500);
const BROWSER_POLL: Duration = Duration::from_millis(50);

#[derive(Serialize)]
struct LinkBody {
    url: String,
    expires_at: String,
}

pub(super) fn run(context: &Context, arguments: &UiArguments) -> Result<(), Failure> {
    let server = match &arguments.url {
        Some(url) => Server::parse(url)?,
        None => Server::configured(&context.settings.serve),
    };
    // Before the link is made: its minute starts then.
    server.require_listening()?;
    let data = context.open_or_create()?;
    let body = link(&data, arguments, &server, &context.settings.user)?;
    let browser = context.settings.browser.as_deref();
    let is_interactive =
        !arguments.print && context.form == Form::Text && io::stdout().is_terminal();
    if let Some(browser) = browser.filter(|_| is_interactive) {
        if has_opened(browser, &body.url) {
            return answer(context.form, &body, |out| {
                writeln!(out, "opened {}/ui in the browser", server.url)
            });
        }
        note(&format!("`{browser}` cannot be started; open this link yourself"));
    }
    note(&format!("the link works once, within {} seconds", VALID_FOR.as_secs()));
    answer(context.form, &body, |out| writeln!(out, "{}", body.url))
}

/// Makes the one-time key and returns the link that contains it.
fn link(
    data: &Data,
    arguments: &UiArguments,
    server: &Server,
    user: &PrincipalName,
) -> Result<LinkBody, Failure> {
    let stores = data
        .named
        .iter()
        .map(|name| data.find_store(name).map(|store| store.id))
        .collect::<Result<Vec<_>, _>>()?;
    let name: String = user.as_str().chars().take(PERSON_NAME_SIZE_BYTES_MAX).collect();
    let expires_at = data.engine.now().plus(VALID_FOR);
    let new = NewDerivedKey {
        kind: KeyKind::Link,
        name: Name::new(name).map_err(Error::from)?,
        role: arguments.role,
        stores: if stores.is_empty() { None } else { Some(stores) },
        expires_at,
        payload: None,
    };
    let (_, secret) = data.engine.derive_key(Derivation::Owner(data.workspace), &new)?;
    let url = format!("{}/ui/enter?link={}", server.url, secret.reveal());
    Ok(LinkBody { url, expires_at: expires_at.to_string() })
}

/// Where the server is.
#[derive(Debug)]
struct Server {
    /// Its URL, without a slash at the end.
    url: String,
    /// Its host and port.
    authority: String,
}

impl Server {
    /// Reads a URL such as `https://memory.example.com` or `http://127.0.0.1:8420/`.
    fn parse(url: &str) -> Result<Self, Failure> {
        let malformed = || {
            Failure::usage(format!("`{url}` is not the URL of a server"))
                .with_hint("it looks like `http://127.0.0.1:8420` or `https://memory.example.com`")
        };
        let url = url.trim_end_matches('/');
        let (scheme, rest) = url.split_once("://").ok_or_else(malformed)?;
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(malformed()),
        };
        let authority = rest.split('/').next().unwrap_or_default();
        // An IPv6 address contains colons, and ends with a bracket if there is no port.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !authority.ends_with(']') => {
                (host, port.parse().ok().ok_or_else(malformed)?)
            }
            Some(_) | None => (authority, default_port),
        };
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty()
            || host.contains(['@', '?', '#'])
            || (host.contains(':') && !is_bracketed)
        {
            return Err(malformed());
        }
        Ok(Self { url: url.to_owned(), authority: format!("{host}:{port}") })
    }

    /// Returns the server that the settings describe, as this host reaches it.
    fn configured(table: &ServeTable) -> Self {
        let address = table.listen.unwrap_or_else(default_address);
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        let authority = SocketAddr::from((ip, address.port())).to_string();
        let scheme = if table.tls_certificate.is_some() { "https" } else { "http" };
        Self { url: format!("{scheme}://{authority}"), authority }
    }

    fn require_listening(&self) -> Result<(), Failure> {
        let addresses = self.authority.to_socket_addrs();
        let mut addresses = addresses.into_iter().flatten();
        if addresses.any(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok()) {
            return Ok(());
        }
        Err(Failure::other(format!("nothing listens on {}", self.authority))
            .with_hint("start the server with `quipu serve`, or name another one with `--url`"))
    }
}

/// Starts a browser, and returns whether it has not failed at once.
///
/// The command is that of `$BROWSER`: the first of a list that is separated by colons, in which `%s` stands
/// for the URL.
fn has_opened(browser: &str, url: &str) -> bool {
    let command = browser.split(':').next().unwrap_or_default();
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else { return false };
    let mut arguments: Vec<_> = words.map(|word| word.replace("%s", url)).collect();
    if !command.contains("%s") {
        arguments.push(url.to_owned());
    }
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return false };
    let polls_count = BROWSER_START.as_millis() / BROWSER_POLL.as_millis();
    for _ in 0..polls_count {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(BROWSER_POLL),
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (url, expected, authority) in [
            ("http://127.0.0.1:8420", "http://127.0.0.1:8420", "127.0.0.1:8420"),
            ("http://127.0.0.1:8420/", "http://127.0.0.1:8420", "127.0.0.1:8420"),
            ("https://memory.example.com", "https://memory.example.com", "memory.example.com:443"),
            ("http://example.com/quipu/", "http://example.com/quipu", "example.com:80"),
            ("http://[::1]", "http://[::1]", "[::1]:80"),
            ("https://[::1]:8420", "https://[::1]:8420", "[::1]:8420"),
        ] {
            let server = Server::parse(url).unwrap();
            assert_eq!((server.url.as_str(), server.authority.as_str()), (expected, authority));
        }
        for malformed in ["", "localhost", "://x", "ftp://x", "http://", "http://::1", "http://u@h"]
        {
            assert!(Server::parse(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn the_settings_say_where_the_server_is() {
        let url = |listen: Option<&str>, tls: Option<&str>| {
            let listen = listen.map(|listen| listen.parse().unwrap());
            let tls_certificate = tls.map(Into::into);
            let table = ServeTable { listen, tls_certificate, ..ServeTable::default() };
            Server::configured(&table).url
        };
        assert_eq!(url(None, None), "http://127.0.0.1:8420");
        assert_eq!(url(Some("0.0.0.0:80"), None), "http://127.0.0.1:80");
        assert_eq!(url(Some("[::]:80"), Some("cert.pem")), "https://[::1]:80");
        assert_eq!(url(Some("192.0.2.1:99"), None), "http://192.0.2.1:99");
    }

    #[cfg(unix)]
    #[test]
    fn a_browser_gets_the_link() {
        let directory = tempfile::tempdir().unwrap();
        let seen = directory.path().join("seen");
        let script = directory.path().join("browser");
        std::fs::write(&script, format!("printf %s \"$*\" > {}", seen.display())).unwrap();
        let opened = |browser: &str| {
            let has_opened =
                has_opened(&browser.replace("SCRIPT", script.to_str().unwrap()), "a:b?c");
            (has_opened, std::fs::read_to_string(&seen).unwrap_or_default())
        };
        assert_eq!(opened("sh SCRIPT"), (true, "a:b?c".to_owned()));
        assert_eq!(opened("sh SCRIPT --new=%s -x:lynx"), (true, "--new=a:b?c -x".to_owned()));
        for missing in ["", ":firefox", "/no/such/browser", "false"] {
            assert!(!has_opened(missing, "a:b?c"), "{missing}");
        }
    }
}
