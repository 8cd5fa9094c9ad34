//! The table `[upstream]`: where requests are forwarded that this server does not serve.

use std::path::PathBuf;

use serde::Deserialize;

/// Where requests are forwarded; see `docs/upstream.md`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UpstreamTable {
    pub(crate) base_url: Option<String>,
    pub(crate) api_key_file: Option<PathBuf>,
    pub(crate) api_key_variable: Option<String>,
    pub(crate) auth: Auth,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) connect_timeout_seconds: Option<u64>,
    pub(crate) first_byte_timeout_seconds: Option<u64>,
    pub(crate) idle_timeout_seconds: Option<u64>,
    pub(crate) upload_timeout_seconds: Option<u64>,
    pub(crate) body_size_bytes_max: Option<usize>,
    pub(crate) streams_max: Option<usize>,
    pub(crate) streams_per_key_max: Option<usize>,
    pub(crate) memory_size_bytes_max: Option<usize>,
    pub(crate) turns_max: Option<usize>,
}

impl UpstreamTable {
    /// Returns the value of the variable that is named for the key.
    pub(super) fn named_key<'v>(
        &self,
        variable: &impl Fn(&str) -> Option<&'v String>,
    ) -> Option<String> {
        variable(self.api_key_variable.as_deref()?).cloned()
    }
}

/// The header that the key is sent in.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Auth {
    /// `x-api-key`.
    #[default]
    ApiKey,
    /// `Authorization: Bearer …`.
    Bearer,
}

/// The keys that environment variables can set.
pub(super) const KEYS: [(&str, &str); 14] = [
    ("upstream", "base_url"),
    ("upstream", "api_key_file"),
    ("upstream", "api_key_variable"),
    ("upstream", "auth"),
    ("upstream", "ca_file"),
    ("upstream", "connect_timeout_seconds"),
    ("upstream", "first_byte_timeout_seconds"),
    ("upstream", "idle_timeout_seconds"),
    ("upstream", "upload_timeout_seconds"),
    ("upstream", "body_size_bytes_max"),
    ("upstream", "streams_max"),
    ("upstream", "streams_per_key_max"),
    ("upstream", "memory_size_bytes_max"),
    ("upstream", "turns_max"),
];
