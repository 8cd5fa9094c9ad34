//! `quipu serve`: the REST API over HTTP, and what runs beside it.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use quipu_core::engine::NewKey;
use quipu_core::model::{KeySecret, Name, Role};
use quipu_core::{Engine, Error};
use quipu_server::http::webhooks::{self, Endpoint, Pauses};
use quipu_server::http::{App, HttpSettings, Listener, Tls};
use quipu_server::mcp::Hosts;
use tokio::runtime::Builder;
use tokio::signal;

use super::mcp;
use crate::args::ServeArguments;
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::log::{self, LogForm};
use crate::print::note;
use crate::settings::{ServeTable, Settings};
use crate::uses;

const PORT: u16 = 8420;
const PRUNE_EVERY: Duration = Duration::from_hours(1);
/// How long a webhook waits after the changes could not be read.
const WEBHOOK_PAUSE: Duration = Duration::from_secs(10);

pub(super) fn run(context: &Context, arguments: &ServeArguments) -> Result<(), Failure> {
    let form = if arguments.log_json { LogForm::Json } else { LogForm::Text };
    let _log = log::start(arguments.log_level, form);
    let data = context.open_or_create()?;
    let table = &context.settings.serve;
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let address = arguments.listen.or(table.listen).unwrap_or(default);
    let tls = tls(arguments, table)?;
    if tls.is_none() && !address.ip().is_loopback() {
        warn_of_plain_http(arguments, table)?;
    }
    let http = http_settings(arguments, &context.settings, address)?;
    let blocking_threads_max = http.pool.blocking_threads_max();
    let app = App::new(data.engine.clone(), http);
    start_companions(&app, &data, &context.settings)?;

    let runtime = Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(blocking_threads_max)
        .build()?;
    runtime.block_on(async {
        let listener = Listener::bind(address, tls).await.map_err(|error| {
            Failure::other(format!("{address} cannot be listened on: {error}"))
                .with_hint("choose another one with `--listen`; port 0 takes a free one")
        })?;
        // The key is shown once, so it is made when nothing can keep it from being shown.
        let key = first_key(context, &data)?;
        announce(&listener.url()?, key.as_ref())?;
        listener.serve(&app, stopped()).await;
        Ok(())
    })
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

fn warn_of_plain_http(arguments: &ServeArguments, table: &ServeTable) -> Result<(), Failure> {
    if !(arguments.allow_plain_http || table.allow_plain_http) {
        return Err(Failure::usage(
            "without TLS, keys and memories would cross the network in the clear",
        )
        .with_hint(
            "give `--tls-certificate` and `--tls-key`, or `--allow-plain-http` behind a proxy \
                 that encrypts",
        ));
    }
    note("this address can be reached from other hosts, and nothing on it is encrypted");
    Ok(())
}

/// Makes sure that there is an admin key, and returns the secret of one that was made just now.
fn first_key(context: &Context, data: &Data) -> Result<Option<KeySecret>, Failure> {
    let new = |name: &str, secret| -> Result<NewKey, Failure> {
        let name = Name::new(name).map_err(Error::from)?;
        Ok(NewKey { name, role: Role::Admin, stores: None, expires_at: None, secret })
    };
    if let Some(chosen) = &context.settings.admin_key {
        let secret = KeySecret::chosen(chosen)
            .ok_or_else(|| Failure::usage("QUIPU_ADMIN_KEY must have at least 16 characters"))?;
        if data.engine.principal(secret.reveal())?.is_none() {
            let new = new("admin (QUIPU_ADMIN_KEY)", Some(secret))?;
            data.engine.create_key(data.workspace, &new)?;
        }
        return Ok(None);
    }
    if data.engine.keys(data.workspace)?.is_empty() {
        let (_, secret) = data.engine.create_key(data.workspace, &new("admin", None)?)?;
        return Ok(Some(secret));
    }
    Ok(None)
}

fn http_settings(
    arguments: &ServeArguments,
    settings: &Settings,
    address: SocketAddr,
) -> Result<HttpSettings, Failure> {
    let table = &settings.serve;
    let default = HttpSettings::default();
    let mcp = mcp::settings(settings, None)?;
    // A server for other hosts is asked under names that only its owner knows.
    let hosts = if table.hosts.is_empty() && !address.ip().is_loopback() {
        Hosts::Any
    } else {
        Hosts::Only(table.hosts.clone())
    };
    Ok(HttpSettings {
        strict_headers: arguments.strict_headers || table.strict_headers,
        body_size_bytes_max: table.body_size_bytes_max.unwrap_or(default.body_size_bytes_max),
        request_timeout: table
            .request_timeout_seconds
            .map_or(default.request_timeout, Duration::from_secs),
        requests_max: table.requests_max.unwrap_or(default.requests_max),
        connections_max: table.connections_max.unwrap_or(default.connections_max),
        requests_per_minute_max: table.requests_per_minute_max,
        mount_root: settings.mount_root.clone(),
        tool: mcp.tool,
        mcp,
        hosts,
        ..default
    })
}

/// Starts what runs beside the server. The threads end with the process.
fn start_companions(app: &App, data: &Data, settings: &Settings) -> Result<(), Failure> {
    let follower = app.clone();
    std::thread::spawn(move || follower.follow(|| false));
    let engine = data.engine.clone();
    std::thread::spawn(move || quipu_server::follow_index(&engine, || false));
    uses::keep_written(&data.engine);
    let engine = data.engine.clone();
    let every = settings.serve.prune_every_minutes;
    let every = every.map_or(PRUNE_EVERY, |minutes| Duration::from_secs(minutes * 60));
    std::thread::spawn(move || prune_now_and_then(&engine, every));
    for webhook in &settings.webhooks {
        let endpoint = Endpoint::new(&webhook.url, &webhook.secret).ok_or_else(|| {
            Failure::usage(format!("the secret of the webhook {} is not valid", webhook.url))
                .with_hint("it is `whsec_` and base64")
        })?;
        let (engine, workspace) = (data.engine.clone(), data.workspace);
        std::thread::spawn(move || {
            let pauses = Pauses::default();
            while let Err(error) =
                webhooks::deliver(&engine, workspace, &endpoint, pauses, &|| false)
            {
                tracing::error!(%error, url = endpoint.url, "a webhook cannot follow the changes");
                std::thread::sleep(WEBHOOK_PAUSE);
            }
        });
    }
    Ok(())
}

fn prune_now_and_then(engine: &Engine, every: Duration) {
    loop {
        match engine.prune() {
            Ok(pruned) => tracing::info!(
                versions = pruned.versions_count,
                memories = pruned.memories_count,
                "pruned"
            ),
            Err(error) => tracing::error!(%error, "pruning failed"),
        }
        std::thread::sleep(every);
    }
}

/// Tells whoever started the server that it is ready.
fn announce(url: &str, key: Option<&KeySecret>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    // This is the only time that the key is shown; only its hash is kept.
    if let Some(key) = key {
        writeln!(out, "api key: {}", key.reveal())?;
    }
    writeln!(out, "listening on {url}")?;
    out.flush()?;
    Ok(())
}

/// Is ready when the process is told to end.
pub(super) async fn stopped() {
    #[cfg(unix)]
    {
        let terminated = signal::unix::signal(signal::unix::SignalKind::terminate());
        let Ok(mut terminated) = terminated else {
            return drop(signal::ctrl_c().await);
        };
        tokio::select! {
            _ = signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
    }
    #[cfg(not(unix))]
    drop(signal::ctrl_c().await);
}
