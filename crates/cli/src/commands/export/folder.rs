//! A folder with one file per memory.

use std::fs;
use std::io;
use std::path::Path;

use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, Listing, Memory, View};

use quipu_mount::sync::DataDirectory;

use crate::args::ExportArguments;
use crate::failure::Failure;

use super::{PAGE, Report, Skipped, Source, create, names};

/// Writes every memory to its path below the folder. Other files there are not touched.
pub(super) fn write(source: &Source<'_>, arguments: &ExportArguments) -> Result<Report, Failure> {
    let mut report = Report { form: "folder", what: "memories", count: 0, skipped: Vec::new() };
    let data = DataDirectory::new(source.directory);
    if is_inside(&arguments.target, &data) {
        return Err(Failure::usage(format!(
            "{} is inside Quipu's data directory",
            arguments.target.display()
        ))
        .with_hint("export to another folder"));
    }
    create(&arguments.target)?;
    let mut after = None;
    loop {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after,
            limit: PAGE,
            view: View::Full,
        };
        let page = source.data.engine.list(source.store.id, &query)?;
        for listing in page.items {
            let Listing::Memory(memory) = listing else { continue };
            match write_memory(&memory, arguments, &data) {
                Ok(()) => report.count += 1,
                Err(error) if is_about_file(&error) => {
                    let (path, reason) = (memory.path.to_string(), error.to_string());
                    report.skipped.push(Skipped { path, reason });
                }
                Err(error) => {
                    let message = format!("cannot write `{}`: {error}", memory.path);
                    return Err(Failure::other(message));
                }
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(report);
        }
    }
}

fn write_memory(
    memory: &Memory,
    arguments: &ExportArguments,
    data: &DataDirectory,
) -> io::Result<()> {
    let text = memory.content.as_ref().map_or("", |content| content.as_str());
    if let Some(reason) = names::refused(memory.path.as_str()) {
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, reason));
    }
    let file = arguments.target.join(memory.path.as_str().trim_start_matches('/'));
    stay_inside(&arguments.target, &file, data)?;
    // Reading a pipe would block until somebody writes to it.
    if file.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let message = "the path is taken by something that is not a regular file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    match fs::read(&file) {
        Ok(bytes) if bytes == text.as_bytes() => return Ok(()),
        Ok(_) if !arguments.overwrite => {
            let message = "a different file exists; `--overwrite` replaces it";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&file, text)
}

/// Returns whether a folder, which need not exist, is inside the data directory.
fn is_inside(folder: &Path, data: &DataDirectory) -> bool {
    let full = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let existing = full.ancestors().find_map(|place| place.canonicalize().ok());
    existing.is_some_and(|place| place.ancestors().any(|it| data.is(it)))
}

/// Rejects a file that a symbolic link would place outside of the folder, or that is in the data
/// directory.
fn stay_inside(folder: &Path, file: &Path, data: &DataDirectory) -> io::Result<()> {
    let below = file.ancestors().take_while(|place| *place != folder);
    for place in below {
        let message = match place.symlink_metadata() {
            Ok(metadata) if metadata.file_type().is_symlink() => "a symbolic link is in the way",
            Ok(_) if data.is(place) => "it would be in Quipu's data directory",
            Ok(_) | Err(_) => continue,
        };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// Returns whether an error concerns one file only, so that the others can still be written.
fn is_about_file(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
    )
}
