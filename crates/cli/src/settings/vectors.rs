//! Settings of search by meaning.

use std::path::PathBuf;

use serde::Deserialize;

/// What makes vectors; see `docs/vectors.md`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VectorsTable {
    pub(crate) model: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) endpoint_model: Option<String>,
    pub(crate) endpoint_key_file: Option<PathBuf>,
    pub(crate) question_prefix: Option<String>,
    pub(crate) passage_prefix: Option<String>,
}
