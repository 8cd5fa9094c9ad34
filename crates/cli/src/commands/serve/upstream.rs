//! The upstream that the settings name, if they name one.

use std::fs;
use std::time::Duration;

use quipu_server::{BaseUrl, UpstreamError, UpstreamKey, UpstreamSettings, UpstreamTls};

use crate::failure::Failure;
use crate::settings::{Auth, Settings};

/// Returns where requests are forwarded, or an error that names the invalid setting.
pub(super) fn settings(settings: &Settings) -> Result<Option<UpstreamSettings>, Failure> {
    let table = &settings.upstream;
    let Some(base_url) = &table.base_url else { return Ok(None) };
    let base_url = BaseUrl::parse(base_url).map_err(|error| invalid(&error))?;
    let mut upstream = UpstreamSettings::new(base_url, key(settings)?);
    if let Some(file) = &table.ca_file {
        upstream.tls = UpstreamTls::with_authorities(file)
            .map_err(|error| Failure::usage(format!("upstream.ca_file: {error}")))?;
    }
    let seconds = |time: &mut Duration, value: Option<u64>| {
        if let Some(value) = value {
            *time = Duration::from_secs(value);
        }
    };
    seconds(&mut upstream.connect_timeout, table.connect_timeout_seconds);
    seconds(&mut upstream.first_byte_timeout, table.first_byte_timeout_seconds);
    seconds(&mut upstream.idle_timeout, table.idle_timeout_seconds);
    seconds(&mut upstream.upload_timeout, table.upload_timeout_seconds);
    let number = |limit: &mut usize, value: Option<usize>| {
        if let Some(value) = value {
            *limit = value;
        }
    };
    number(&mut upstream.body_size_bytes_max, table.body_size_bytes_max);
    number(&mut upstream.streams_max, table.streams_max);
    number(&mut upstream.streams_per_key_max, table.streams_per_key_max);
    number(&mut upstream.memory_size_bytes_max, table.memory_size_bytes_max);
    number(&mut upstream.turns_max, table.turns_max);
    Ok(Some(upstream))
}

/// Returns the key of the upstream, from a file or a variable. None of the errors shows it.
fn key(settings: &Settings) -> Result<Option<UpstreamKey>, Failure> {
    let table = &settings.upstream;
    let secret = match (&table.api_key_file, &table.api_key_variable) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage(
                "upstream: set either `api_key_file` or `api_key_variable`, not both",
            ));
        }
        (Some(file), None) => fs::read_to_string(file).map_err(|error| {
            Failure::usage(format!("upstream.api_key_file: {}: {error}", file.display()))
        })?,
        (None, Some(name)) => settings.upstream_key.clone().ok_or_else(|| {
            Failure::usage(format!("upstream.api_key_variable: the variable {name} is not set"))
        })?,
        (None, None) => return Ok(None),
    };
    let secret = secret.trim();
    if secret.is_empty() {
        return Err(Failure::usage("upstream: the API key is empty"));
    }
    let key = match table.auth {
        Auth::ApiKey => UpstreamKey::api_key(secret),
        Auth::Bearer => UpstreamKey::bearer(secret),
    };
    key.map(Some).map_err(|error| invalid(&error))
}

fn invalid(error: &UpstreamError) -> Failure {
    Failure::usage(format!("upstream: {error}")).with_hint("see docs/upstream.md")
}
