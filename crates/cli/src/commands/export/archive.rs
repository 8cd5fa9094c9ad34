//! One file with every version, one JSON object per line. `docs/import-export.md` describes it.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use quipu_service::wire::VersionBody;
use serde::Serialize;

use crate::commands::import::{ARCHIVE_FORMAT, ARCHIVE_VERSION};
use crate::failure::Failure;

use super::{Report, Source};

/// The header, which is the first line.
#[derive(Serialize)]
struct Header<'a> {
    format: &'static str,
    version: u32,
    exported_at: String,
    store: StoreHeader<'a>,
    versions_count: usize,
}

#[derive(Serialize)]
struct StoreHeader<'a> {
    id: String,
    name: &'a str,
    description: &'a str,
    metadata: &'a std::collections::BTreeMap<String, String>,
    created_at: String,
}

/// Writes the archive to a new file.
pub(super) fn write(source: &Source<'_>, target: &Path) -> Result<Report, Failure> {
    let new = File::create_new(target)
        .map_err(|error| Failure::usage(format!("cannot create {}: {error}", target.display())))?;
    let mut out = BufWriter::new(new);
    let ids = source.versions()?;
    let store = source.store;
    let header = Header {
        format: ARCHIVE_FORMAT,
        version: ARCHIVE_VERSION,
        exported_at: source.data.engine.now().to_string(),
        store: StoreHeader {
            id: store.id.to_string(),
            name: store.name.as_str(),
            description: store.description.as_str(),
            metadata: store.metadata.pairs(),
            created_at: store.created_at.to_string(),
        },
        versions_count: ids.len(),
    };
    serde_json::to_writer(&mut out, &header)?;
    for id in &ids {
        out.write_all(b"\n")?;
        serde_json::to_writer(&mut out, &VersionBody::from(&source.version(*id)?))?;
    }
    out.write_all(b"\n")?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(Report { form: "archive", what: "versions", count: ids.len(), skipped: Vec::new() })
}
