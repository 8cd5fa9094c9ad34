//! `quipu serve`: the HTTP server and its background threads.

mod companions;
mod descriptors;
mod first_key;
mod upstream;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quipu_mcp::{Hosts, HttpEndpoint};
use quipu_server::webhooks::Endpoint;
use quipu_server::{App, HttpSettings, Listener, PublicUrl, Tls};
use quipu_service::Service;
use tokio::runtime::Builder;
use tokio::signal;

use super::mcp;
use crate::args::ServeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::log::{self, LogForm};
use crate::print::note;
use crate::settings::{ServeTable, Settings};
use companions::Companions;
use first_key::FirstKey;

const PORT: u16 = 8420;

pub(super) fn run(context: &Context, arguments: &ServeArguments) -> Result<(), Failure> {
    let form = if arguments.log_json { LogForm::Json } else { LogForm::Text };
    let _log = log::start(arguments.log_level, form);
    let table = &context.settings.serve;
    let address = arguments.listen.or(table.listen).unwrap_or_else(default_address);
    let tls = tls(arguments, table)?;
    if tls.is_none() && !address.ip().is_loopback() {
        warn_of_plain_http(arguments, table)?;
    }
    let endpoints = endpoints(&context.settings)?;
    let mcp = mcp::settings(&context.settings, None)?;
    let mut http = http_settings(arguments, &context.settings);
    http.public_url = table.public_url.as_deref().map(public_url).transpose()?;
    http.has_tls = tls.is_some();
    http.tool = mcp.tool;
    http.upstream = upstream::settings(&context.settings)?;
    descriptors::fit(&mut http);
    let data = context.open_or_create()?.with_vectors(context);
    log_start(context, &http, &endpoints);
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(http.pool.blocking_threads_max())
        .build()?;
    let service = Service::new(data.engine.clone(), http.pool_limits());
    let hosts = hosts(table, address);
    let mcp = HttpEndpoint::new(service.clone(), mcp, &hosts, http.body_size_bytes_max);
    let app = App::new(service, http, Arc::new(mcp));
    runtime.block_on(async {
        // Signals are handled before the server is reachable: a supervisor that stops it as soon as
        // it answers must get a clean shutdown.
        let stopped = stopped()?;
        let listener = Listener::bind(address, tls).map_err(|error| {
            Failure::other(format!("cannot listen on {address}: {error}"))
                .with_hint("choose another address with `--listen`; port 0 picks a free port")
        })?;
        // The key is shown only once, so it is created after everything that may fail.
        let key = first_key::ensure(context, &data)?;
        let companions = Companions::start(&app, &data, &context.settings, endpoints);
        announce(&listener.url()?, key.as_ref())?;
        listener.serve(&app, stopped).await;
        companions.stop();
        context.end();
        companions.join();
        tracing::info!("stopped");
        Ok(())
    })
}

/// Returns where a server listens if nothing else is said.
pub(super) fn default_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))
}

/// Logs the effective settings, none of which is secret.
fn log_start(context: &Context, http: &HttpSettings, endpoints: &[Endpoint]) {
    let (limits, serve) = (data_limits(&context.settings), &context.settings.serve);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data = %context.place(),
        lock_timeout_seconds = context.settings.lock_timeout.as_secs(),
        strict_headers = http.strict_headers,
        requests_max = http.requests_max,
        connections_max = http.connections_max,
        requests_per_minute_max = http.requests_per_minute_max,
        body_size_bytes_max = http.body_size_bytes_max,
        request_timeout_seconds = http.request_timeout.as_secs(),
        write_timeout_seconds = http.write_timeout.as_secs(),
        lock_held_seconds_max = http.lock_held_max.as_secs(),
        disk_free_bytes_min = http.disk_free_bytes_min,
        upstream = http.upstream.as_ref().map(|it| it.base_url.to_string()),
        prune_every_minutes = serve.prune_every_minutes,
        limits,
        webhooks = endpoints.len(),
        "starting"
    );
}

fn data_limits(settings: &Settings) -> String {
    format!("{:?}", settings.limits)
}

/// Returns the webhooks of the settings, or an error that names the invalid one.
fn endpoints(settings: &Settings) -> Result<Vec<Endpoint>, Failure> {
    let endpoint = |webhook: &crate::settings::WebhookTable| {
        Endpoint::new(&webhook.url, &webhook.secret).map_err(|error| {
            Failure::usage(format!("invalid webhook `{}`: {error}", webhook.url))
                .with_hint("see `[[webhooks]]` in docs/rest.md")
        })
    };
    settings.webhooks.iter().map(endpoint).collect()
}

fn tls(arguments: &ServeArguments, table: &ServeTable) -> Result<Option<Tls>, Failure> {
    let certificate = arguments.tls_certificate.as_ref().or(table.tls_certificate.as_ref());
    let key = arguments.tls_key.as_ref().or(table.tls_key.as_ref());
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::from_files(certificate, key);
            tls.map(Some).map_err(|error| Failure::usage(format!("TLS: {error}")))
        }
        (None, None) => Ok(None),
        _ => Err(Failure::usage("TLS needs both a certificate and its key")),
    }
}

fn public_url(text: &str) -> Result<PublicUrl, Failure> {
    PublicUrl::parse(text).ok_or_else(|| {
        Failure::usage(format!("serve.public_url: `{text}` is not an address"))
            .with_hint("write it as `https://memory.example.org`, without a path")
    })
}

fn warn_of_plain_http(arguments: &ServeArguments, table: &ServeTable) -> Result<(), Failure> {
    if !(arguments.allow_plain_http || table.allow_plain_http) {
        return Err(Failure::usage(
            "without TLS, keys and memories would cross the network unencrypted",
        )
        .with_hint(
            "pass `--tls-certificate` and `--tls-key`, or `--allow-plain-http` behind a proxy that \
                 terminates TLS",
        ));
    }
    note("other hosts can reach this address, and the traffic is not encrypted");
    Ok(())
}

/// Returns the names under which MCP clients may address the server.
fn hosts(table: &ServeTable, address: SocketAddr) -> Hosts {
    // Other hosts reach the server under names that only its operator knows.
    if table.hosts.is_empty() && !address.ip().is_loopback() {
        Hosts::Any
    } else {
        Hosts::Only(table.hosts.clone())
    }
}

fn http_settings(arguments: &ServeArguments, settings: &Settings) -> HttpSettings {
    let table = &settings.serve;
    let default = HttpSettings::default();
    HttpSettings {
        strict_headers: arguments.strict_headers || table.strict_headers,
        body_size_bytes_max: table.body_size_bytes_max.unwrap_or(default.body_size_bytes_max),
        request_timeout: table
            .request_timeout_seconds
            .map_or(default.request_timeout, Duration::from_secs),
        write_timeout: table
            .write_timeout_seconds
            .map_or(default.write_timeout, Duration::from_secs),
        lock_held_max: table
            .lock_held_seconds_max
            .map_or(default.lock_held_max, Duration::from_secs),
        disk_free_bytes_min: table.disk_free_bytes_min.unwrap_or(default.disk_free_bytes_min),
        requests_max: table.requests_max.unwrap_or(default.requests_max),
        connections_max: table.connections_max.unwrap_or(default.connections_max),
        requests_per_minute_max: table.requests_per_minute_max,
        metrics_open: table.metrics_open,
        mount_root: settings.mount_root.clone(),
        // A database server has backups of its own.
        backups: settings.database.is_none().then(|| settings.data.join("backups")),
        ..default
    }
}

/// Prints the address, and the first key if one was created.
fn announce(url: &str, key: Option<&FirstKey>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    // The key is shown only here; only its hash is stored.
    match key {
        Some(FirstKey::Shown(secret)) => writeln!(out, "api key: {}", secret.reveal())?,
        Some(FirstKey::Saved(path)) => writeln!(out, "api key file: {}", path.display())?,
        None => {}
    }
    writeln!(out, "listening on {url}")?;
    out.flush()?;
    Ok(())
}

/// Installs handlers for SIGINT and SIGTERM, and returns a future that resolves when one arrives.
pub(super) fn stopped() -> std::io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use signal::unix::{SignalKind, signal};
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        Ok(async move {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async { drop(signal::ctrl_c().await) })
}
