//! The first admin key: created once, shown only to the user who started the server.

use std::fs::{self, File, OpenOptions};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use quipu_core::Error;
use quipu_core::engine::NewKey;
use quipu_core::model::{Forwarding, Key, KeySecret, Name, Role};

use crate::context::{Context, Data};
use crate::failure::Failure;

/// The file that the first key is written to if standard output is not a terminal.
const FILE_NAME: &str = "first-key";

/// Where the first key can be found.
#[derive(Debug)]
pub(super) enum FirstKey {
    /// It is shown on the terminal.
    Shown(KeySecret),
    /// It is in a file that only its owner can read, because redirected output often ends up in a
    /// log.
    Saved(PathBuf),
}

/// Ensures that an admin key exists, and returns it if it was created here. Servers that start
/// concurrently agree on one.
pub(super) fn ensure(context: &Context, data: &Data) -> Result<Option<FirstKey>, Failure> {
    if let Some(chosen) = &context.settings.admin_key {
        let secret = KeySecret::chosen(chosen)
            .ok_or_else(|| Failure::usage("QUIPU_ADMIN_KEY must have at least 16 characters"))?;
        let is_known = data.engine.principal(secret.reveal())?.is_some();
        if !is_known {
            let new = admin("admin (QUIPU_ADMIN_KEY)", secret)?;
            data.engine.ensure_key(data.workspace, &new)?;
        }
        return Ok(None);
    }
    if !data.engine.keys(data.workspace)?.iter().all(Key::is_derived) {
        return Ok(None);
    }
    let secret = random_secret(data);
    if std::io::stdout().is_terminal() {
        let created =
            data.engine.create_first_key(data.workspace, &admin("admin", secret.clone())?)?;
        return Ok(created.map(|_| FirstKey::Shown(secret)));
    }
    // The file is written before the key exists: the other order could lose the key forever.
    let directory = &context.settings.data;
    let draft = directory.join(format!("{FILE_NAME}.{}", std::process::id()));
    write_owner_only(&draft, &secret).map_err(|error| {
        Failure::other(format!("cannot write the first key to {}: {error}", draft.display()))
    })?;
    let created = data.engine.create_first_key(data.workspace, &admin("admin", secret)?);
    if !matches!(created, Ok(Some(_))) {
        fs::remove_file(&draft)?;
        created?;
        return Ok(None);
    }
    let path = directory.join(FILE_NAME);
    fs::rename(&draft, &path)?;
    Ok(Some(FirstKey::Saved(path)))
}

fn admin(name: &str, secret: KeySecret) -> Result<NewKey, Failure> {
    let name = Name::new(name).map_err(Error::from)?;
    let (role, secret) = (Role::Admin, Some(secret));
    Ok(NewKey {
        name,
        role,
        stores: None,
        expires_at: None,
        secret,
        forwarding: Forwarding::Denied,
    })
}

fn random_secret(data: &Data) -> KeySecret {
    let mut random = [0; 32];
    let halves = [data.engine.random(), data.engine.random()].map(u128::to_le_bytes);
    for (place, byte) in random.iter_mut().zip(halves.concat()) {
        *place = byte;
    }
    KeySecret::from_random(random)
}

fn write_owner_only(path: &Path, secret: &KeySecret) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(path)?;
    writeln!(file, "{}", secret.reveal())?;
    file.sync_all()
}
