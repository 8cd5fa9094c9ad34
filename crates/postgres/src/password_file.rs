//! Passwords from a file in the format of `.pgpass`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use quipu_core::Error;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The lines of a password file.
#[derive(Clone, Default)]
pub(crate) struct PasswordFile(String);

impl PasswordFile {
    /// Reads a file; one that does not exist has no passwords.
    pub(crate) fn read(file: &Path) -> Result<Self, Error> {
        let found = match fs::metadata(file) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable().with_source(error)),
        };
        require_private(&found)?;
        let text = fs::read_to_string(file);
        text.map(Self).map_err(|error| unreadable().with_source(error))
    }

    /// Returns the password for a connection, of the first line that fits.
    pub(crate) fn password(&self, config: &Config) -> Option<String> {
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(_)) | None => "localhost".to_owned(),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
        let user = config.get_user().unwrap_or_default();
        let wanted = [&*host, &*port, config.get_dbname().unwrap_or(user), user];
        self.0.lines().find_map(|line| password_in(line, &wanted))
    }
}

/// Refuses a file that others can read, as libpq does; a named pipe of a shell, for example, is none.
#[cfg(unix)]
fn require_private(found: &fs::Metadata) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt as _;

    if found.is_file() && found.permissions().mode() & 0o077 != 0 {
        return Err(Error::invalid("the password file can be read by others")
            .with_hint("make it private with `chmod 600`"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn require_private(_: &fs::Metadata) -> Result<(), Error> {
    Ok(())
}

fn unreadable() -> Error {
    Error::invalid("the password file cannot be read")
}

/// Returns the password of a line if its other fields fit.
fn password_in(line: &str, wanted: &[&str]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let field = fields.last_mut()?;
        match character {
            '\\' => field.extend(characters.next()),
            ':' => fields.push(String::new()),
            other => field.push(other),
        }
    }
    let (password, fields) = fields.split_last()?;
    let fits = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
    let is_match = fields.len() == wanted.len() && fields.iter().zip(wanted).all(fits);
    is_match.then(|| password.clone())
}
