//! `quipu ls`, `cat`, `put`, `edit`, `mv` and `rm`.

use std::fs;
use std::io::Read as _;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;

use anstyle::AnsiColor;
use quipu_core::engine::{Effect, ListQuery, MemoryUpdate, PathContents, Precondition, Written};
use quipu_core::model::{
    Content, Directory, Listing, Memory, MemoryId, MemoryPath, SecretPolicy, Store, Version, View,
};
use quipu_core::{Error, ErrorKind};
use quipu_service::wire::{FindingBody, ListBody, ListingBody, MemoryBody, VersionBody};
use serde::Serialize;

use crate::args::{
    CatArguments, EditArguments, LsArguments, MvArguments, PutArguments, RmArguments,
};
use crate::context::{Context, Data, path};
use crate::failure::Failure;
use crate::print::{Form, answer, count, local, note, note_findings, raw, size, style};

pub(super) fn ls(context: &Context, arguments: &LsArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?;
    let store = data.store()?;
    let directory = directory(&arguments.directory)?;
    let query = ListQuery {
        directory: directory.clone(),
        depth: if arguments.recursive { None } else { NonZero::new(1) },
        after: None,
        limit: usize::MAX,
        view: View::Basic,
    };
    let mut items = data.engine.list(store.id, &query)?.items;
    if items.is_empty() && !directory.is_root() {
        items.push(Listing::Memory(memory_instead(&data, &store, &directory)?));
    }
    let body = ListBody::complete(items.iter().map(ListingBody::from).collect());
    let blue = style(AnsiColor::Blue).bold();
    answer(context.form, &body, |out| {
        for item in &items {
            match item {
                Listing::Directory(directory) if arguments.long => {
                    writeln!(out, "{:>10}  {:25}  {blue}{directory}{blue:#}", "-", "")?;
                }
                Listing::Directory(directory) => writeln!(out, "{blue}{directory}{blue:#}")?,
                Listing::Memory(memory) if arguments.long => {
                    let (size, at) = (size(memory.size_bytes), local(memory.updated_at));
                    writeln!(out, "{size:>10}  {at}  {}  {}", memory.path, memory.id)?;
                }
                Listing::Memory(memory) => writeln!(out, "{}", memory.path)?,
            }
        }
        Ok(())
    })
}

/// Parses a directory as people type it: missing slashes are added at both ends.
fn directory(text: &str) -> Result<Directory, Failure> {
    match text.trim_end_matches('/') {
        "" => Ok(Directory::root()),
        text => Ok(path(text)?.as_directory()),
    }
}

/// Returns the memory at the path of a directory that does not exist.
fn memory_instead(data: &Data, store: &Store, directory: &Directory) -> Result<Memory, Failure> {
    let path = path(directory.as_str().trim_end_matches('/'))?;
    Ok(data.engine.memory_at(store.id, &path, View::Basic)?)
}

/// Returns the memory with this path or id.
pub(super) fn find(data: &Data, store: &Store, text: &str, view: View) -> Result<Memory, Failure> {
    match text.parse() {
        Ok(id) => Ok(data.engine.memory(store.id, id, view)?),
        Err(_) => Ok(data.engine.memory_at(store.id, &path(text)?, view)?),
    }
}

pub(super) fn cat(context: &Context, arguments: &CatArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?;
    let store = data.store()?;
    let memories = arguments
        .memories
        .iter()
        .map(|text| find(&data, &store, text, View::Full))
        .collect::<Result<Vec<_>, _>>()?;
    match (context.form, memories.as_slice()) {
        (Form::Text, several) => {
            several.iter().try_for_each(|memory| print_text(memory.content.as_ref()))
        }
        (Form::Json, [only]) => answer(context.form, &MemoryBody::from(only), |_| Ok(())),
        (Form::Json, several) => {
            let body = ListBody::complete(several.iter().map(MemoryBody::from).collect());
            answer(context.form, &body, |_| Ok(()))
        }
    }
}

/// The result of a write, as JSON.
#[derive(Serialize)]
struct WrittenBody {
    #[serde(flatten)]
    memory: MemoryBody,
    changed: bool,
    findings: Vec<FindingBody>,
    /// Whether the findings were redacted before the text was stored.
    redacted: bool,
}

impl From<&Written> for WrittenBody {
    fn from(written: &Written) -> Self {
        Self {
            memory: MemoryBody { content: None, ..(&written.memory).into() },
            changed: written.effect.has_changed(),
            findings: written.findings.iter().map(FindingBody::from).collect(),
            redacted: written.findings.iter().any(|finding| !finding.is_forgotten())
                && written.policy == SecretPolicy::Redact,
        }
    }
}

/// Prints the result of a write.
pub(super) fn report(context: &Context, written: &Written) -> Result<(), Failure> {
    note_findings(written);
    answer(context.form, &WrittenBody::from(written), |out| writeln!(out, "{}", line(written)))
}

fn line(written: &Written) -> String {
    let memory = &written.memory;
    match written.effect {
        Effect::Created | Effect::Changed => {
            format!("{}  {}  {}", memory.version, memory.path, size(memory.size_bytes))
        }
        Effect::Unchanged => format!("unchanged  {}", memory.path),
    }
}

pub(super) fn put(context: &Context, arguments: &PutArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.store()?;
    let author = data.author(&store, &arguments.writer)?;
    let path = path(&arguments.path)?;
    let content = read_content(arguments.file.as_deref())?;
    let written = if arguments.new {
        data.engine.create(&author, store.id, &path, &content)?
    } else {
        let precondition = precondition(arguments.if_hash.as_deref())?;
        data.engine.put(&author, store.id, (&path, &content), precondition)?
    };
    report(context, &written)
}

fn precondition(hash: Option<&str>) -> Result<Precondition, Failure> {
    match hash.map(str::parse) {
        None => Ok(Precondition::None),
        Some(Ok(hash)) => Ok(Precondition::ContentIs(hash)),
        Some(Err(error)) => Err(Failure::usage(error.to_string())),
    }
}

fn read_content(file: Option<&Path>) -> Result<Content, Failure> {
    let bytes = match file {
        Some(file) if file != Path::new("-") => fs::read(file)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?,
        Some(_) | None => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes)?;
            bytes
        }
    };
    Ok(Content::from_bytes(&bytes).map_err(Error::from)?)
}

pub(super) fn edit(context: &Context, arguments: &EditArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.store()?;
    let author = data.author(&store, &arguments.writer)?;
    let path = path(&arguments.path)?;
    let before = match data.engine.memory_at(store.id, &path, View::Full) {
        Ok(memory) => Some(memory),
        Err(error) if *error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let old = before.as_ref().and_then(|memory| memory.content.clone());
    let old = old.as_ref().map_or("", Content::as_str);

    let draft = Draft::new(&path, old)?;
    let ended = draft.open_in(&context.settings.editor);
    let text = draft.text(old)?;
    if let Err(failure) = ended {
        if text != old.as_bytes() {
            draft.keep();
        }
        return Err(failure);
    }
    if text == old.as_bytes() {
        note("nothing was changed");
        return match before {
            Some(memory) if context.form == Form::Json => {
                let memory = MemoryBody { content: None, ..(&memory).into() };
                let (changed, findings, redacted) = (false, Vec::new(), false);
                let body = WrittenBody { memory, changed, findings, redacted };
                answer(context.form, &body, |_| Ok(()))
            }
            Some(_) | None => Ok(()),
        };
    }
    let saved = Content::from_bytes(&text).map_err(Error::from).and_then(|content| match &before {
        None => data.engine.create(&author, store.id, &path, &content),
        Some(memory) => {
            let precondition = Precondition::ContentIs(memory.hash);
            let update = MemoryUpdate { content: Some(content), path: None, precondition };
            data.engine.update(&author, store.id, memory.id, &update)
        }
    });
    match saved {
        Ok(written) => report(context, &written),
        Err(error) => {
            draft.keep();
            Err(error.into())
        }
    }
}

/// A private temporary file with the text that is being edited.
struct Draft {
    directory: tempfile::TempDir,
    file: std::path::PathBuf,
}

impl Draft {
    fn new(path: &MemoryPath, text: &str) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("quipu-edit-").tempdir()?;
        let file = directory.path().join(path.file_name());
        fs::write(&file, text)?;
        Ok(Self { directory, file })
    }

    /// Runs the editor and waits for it.
    fn open_in(&self, editor: &str) -> Result<(), Failure> {
        let hint = "set VISUAL or EDITOR to your editor";
        match editor_command(editor).arg(&self.file).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                let failure = Failure::other(format!("the editor `{editor}` failed: {status}"));
                let is_unknown = status.code() == Some(COMMAND_NOT_FOUND);
                Err(if is_unknown { failure.with_hint(hint) } else { failure })
            }
            Err(error) => {
                Err(Failure::other(format!("cannot start the editor `{editor}`: {error}"))
                    .with_hint(hint))
            }
        }
    }

    /// Returns the text that the editor left, or `old` if it removed the file.
    fn text(&self, old: &str) -> Result<Vec<u8>, Failure> {
        match fs::read(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(old.into()),
            text => Ok(text?),
        }
    }

    /// Keeps the file and tells the user where it is.
    fn keep(self) {
        // The path stays valid because the directory is no longer removed.
        drop(self.directory.keep());
        note(&format!("your text is saved in {}", self.file.display()));
    }
}

/// The exit code of a shell that does not find the program.
const COMMAND_NOT_FOUND: i32 = 127;

/// Returns the command that runs an editor. As in other programs, the setting is a shell command: it
/// may have arguments and quotes.
#[cfg(unix)]
fn editor_command(editor: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor);
    command
}

/// Returns the command that runs an editor; the setting may have arguments.
#[cfg(not(unix))]
fn editor_command(editor: &str) -> Command {
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

pub(super) fn mv(context: &Context, arguments: &MvArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.store()?;
    let author = data.author(&store, &arguments.writer)?;
    let (from, to) = (path(&arguments.from)?, path(&arguments.to)?);
    let moved = data.engine.rename(&author, store.id, &from, &to)?;
    let body = ListBody::complete(moved.iter().map(WrittenBody::from).collect());
    answer(context.form, &body, |out| {
        moved.iter().try_for_each(|written| writeln!(out, "{}", line(written)))
    })
}

pub(super) fn rm(context: &Context, arguments: &RmArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.store()?;
    let author = data.author(&store, &arguments.writer)?;
    // All are resolved before any is deleted, so that a typo in one name deletes nothing.
    let targets = arguments
        .paths
        .iter()
        .map(|text| target(&data, &store, text, arguments))
        .collect::<Result<Vec<_>, _>>()?;
    let mut versions = Vec::new();
    for target in targets {
        let removed = match target {
            Target::Memory(id) => {
                let deleted = data.engine.delete(&author, store.id, id, Precondition::None);
                deleted.map(|version| vec![version])
            }
            Target::Directory(path) => {
                let removed = data.engine.delete_at(&author, store.id, &path);
                removed.map(|removed| removed.versions)
            }
        };
        match removed {
            Ok(removed) => versions.extend(removed),
            // It was deleted with its directory, or by somebody else in the meantime.
            Err(error) if *error.kind() == ErrorKind::NotFound => {}
            Err(error) if versions.is_empty() => return Err(error.into()),
            Err(error) => {
                // Each deletion is a transaction of its own, so the earlier ones stand.
                print_deleted(context, &versions)?;
                return Err(Failure::from(error).after(&count(
                    versions.len(),
                    "memory was deleted",
                    "memories were deleted",
                )));
            }
        }
    }
    print_deleted(context, &versions)
}

fn print_deleted(context: &Context, versions: &[Version]) -> Result<(), Failure> {
    let body = ListBody::complete(versions.iter().map(VersionBody::from).collect());
    answer(context.form, &body, |out| {
        for version in versions {
            let path = version.path.as_ref().map_or("", MemoryPath::as_str);
            writeln!(out, "{}  {path}  deleted", version.id)?;
        }
        if versions.len() > 1 {
            writeln!(out, "{}", count(versions.len(), "memory deleted", "memories deleted"))?;
        }
        Ok(())
    })
}

/// Something to delete.
enum Target {
    Memory(MemoryId),
    /// A directory with everything below it, or the memory at its path.
    Directory(MemoryPath),
}

/// Resolves a path or id given to `rm`; fails if nothing is there.
fn target(
    data: &Data,
    store: &Store,
    text: &str,
    arguments: &RmArguments,
) -> Result<Target, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(Target::Memory(data.engine.memory(store.id, id, View::Basic)?.id));
    }
    let path = path(if arguments.recursive { text.trim_end_matches('/') } else { text })?;
    match data.engine.contents_at(store.id, Some(&path), NonZero::<usize>::MIN)? {
        Some(PathContents::Memory(memory)) => Ok(Target::Memory(memory.id)),
        Some(PathContents::Directory(_)) if arguments.recursive => Ok(Target::Directory(path)),
        Some(PathContents::Directory(_)) => {
            let error = Error::not_found(format!("`{path}` is a directory, not a memory"));
            Err(Failure::from(error).with_hint("`-r` deletes a directory and everything below it"))
        }
        None => {
            let error = Error::not_found(format!("no memory lives at `{path}`"));
            Err(Failure::from(error).with_hint("`quipu ls -R` lists the memories of the store"))
        }
    }
}

/// Prints the text alone, byte for byte.
pub(super) fn print_text(content: Option<&Content>) -> Result<(), Failure> {
    content.map_or(Ok(()), |content| raw(content.as_str()))
}
