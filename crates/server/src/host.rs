//! What the inspector asks of the server: webhooks and backups.

use std::fs;
use std::path::Path;

use quipu_core::model::{CopyKind, CopyMade, WorkspaceId};
use quipu_core::{Engine, Error, ErrorKind};
use quipu_inspector::{Backup, Host, Webhook};

use super::App;

/// How many backups the inspector keeps. Nobody would notice that a button fills the disk.
const BACKUPS_MAX: usize = 20;

impl Host for App {
    fn webhooks(&self, engine: &Engine) -> Result<Vec<Webhook>, Error> {
        let webhook = |(endpoint, record): (super::webhooks::Endpoint, super::webhooks::Record)| {
            Ok(Webhook {
                url: endpoint.shown(),
                accepted_count: record.accepted_count,
                failed_count: record.failed_count,
                waiting_count: endpoint.waiting_count(engine)?,
                last_error: record.last_error,
                tested: record.tested,
            })
        };
        self.0.deliveries.all().into_iter().map(webhook).collect()
    }

    fn test_webhook(&self, engine: &Engine, place: usize) {
        if let Some((endpoint, _)) = self.0.deliveries.all().get(place) {
            self.0.deliveries.test(endpoint, engine.now());
        }
    }

    fn backups(&self) -> Result<Option<Vec<Backup>>, Error> {
        self.settings().backups.as_deref().map(written).transpose()
    }

    fn back_up(&self, engine: &Engine, workspace: WorkspaceId) -> Result<(), Error> {
        let Some(directory) = self.settings().backups.as_deref() else {
            return Err(Error::invalid("this server writes no backups"));
        };
        create(directory).map_err(|error| unusable(&error))?;
        if written(directory)?.len() >= BACKUPS_MAX {
            return Err(Error::invalid(format!("there are {BACKUPS_MAX} backups already"))
                .with_hint("delete older ones from the directory on the server, then try again"));
        }
        let at = engine.now();
        // Colons are not allowed in the names of files everywhere.
        let name = format!("quipu-{}.{EXTENSION}", at.to_string().replace(':', "-"));
        let target = directory.join(name);
        engine.backend().backup(&target)?;
        let kind = CopyKind::Backup;
        let target = std::path::absolute(&target).unwrap_or(target).display().to_string();
        let copy = CopyMade { workspace, at, kind, store: None, target };
        // The backup is there already, so this is no failure of it.
        if let Err(error) = engine.note_copy(&copy) {
            tracing::error!(%error, "redactions will not name a backup");
        }
        Ok(())
    }
}

const EXTENSION: &str = "backup";

/// Returns the backups in a directory, the newest first. Their names sort by time.
fn written(directory: &Path) -> Result<Vec<Backup>, Error> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(&error)),
    };
    let mut backups = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_backup = Path::new(&name).extension().is_some_and(|it| it == EXTENSION);
        if let Some(metadata) = entry.metadata().ok().filter(|it| is_backup && it.is_file()) {
            backups.push(Backup { name, size_bytes: metadata.len() });
        }
    }
    backups.sort_by(|one, other| other.name.cmp(&one.name));
    Ok(backups)
}

/// Creates the directory, for its owner alone.
fn create(directory: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(directory)
}

fn unusable(error: &std::io::Error) -> Error {
    let message = format!("the directory of backups cannot be used: {error}");
    Error::new(ErrorKind::StorageUnavailable, message)
}
