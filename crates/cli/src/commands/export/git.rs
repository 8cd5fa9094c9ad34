//! A git repository with one commit per version, authored by its actor.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use quipu_core::model::{Actor, MemoryId, Operation, Version, VersionId};

use crate::failure::Failure;

use super::{Report, Skipped, Source, create, names};

const BRANCH: &str = "main";

/// The variables that make git use another repository than the one in the folder: those of
/// `git rev-parse --local-env-vars`, and a few more of the kind.
const REPOSITORY_VARIABLES: [&str; 18] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Keeps the checked-out files equal to the texts, whatever a memory named `.gitattributes` or the
/// user's configuration says.
const ATTRIBUTES: &str = "* -text -filter -ident !working-tree-encoding\n";

/// Creates the repository in a new or empty folder.
pub(super) fn write(source: &Source<'_>, target: &Path) -> Result<Report, Failure> {
    create(target)?;
    let unreadable = |error| Failure::other(format!("cannot read {}: {error}", target.display()));
    if fs::read_dir(target).map_err(unreadable)?.next().is_some() {
        return Err(Failure::usage(format!("{} is not empty", target.display()))
            .with_hint("export to a new folder"));
    }
    git(target, &["init", "--quiet", "--initial-branch", BRANCH])?;
    let ids = source.versions()?;
    let mut child = command(target)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| not_run(&error))?;
    let pipe = child.stdin.take().ok_or_else(|| Failure::other("git does not read its input"))?;
    let mut stream = Stream::new(BufWriter::new(pipe));
    let streamed = stream.write_all(source, &ids);
    let skipped = std::mem::take(&mut stream.skipped);
    drop(stream);
    let status = child.wait()?;
    let streamed = streamed?;
    // The exit status says more than the broken pipe that follows from it.
    if !status.success() {
        return Err(Failure::other(format!("git fast-import failed: {status}")));
    }
    streamed?;
    if !ids.is_empty() {
        let information = target.join(".git").join("info");
        create(&information)?;
        fs::write(information.join("attributes"), ATTRIBUTES)?;
        git(target, &["reset", "--quiet", "--hard", BRANCH])?;
    }
    Ok(Report { form: "git", what: "versions", count: ids.len(), skipped })
}

/// Returns a git command for the repository in a folder, without the user's hooks.
fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    for variable in REPOSITORY_VARIABLES {
        command.env_remove(variable);
    }
    command.arg("-C").arg(folder).args([
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.autocrlf=false",
        // Otherwise fast-import merges names that differ only in case.
        "-c",
        "core.ignorecase=false",
    ]);
    command
}

fn git(folder: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let ended = command(folder).args(arguments).status().map_err(|error| not_run(&error))?;
    let verb = arguments.first().unwrap_or(&"");
    if ended.success() {
        Ok(())
    } else {
        Err(Failure::other(format!("git {verb} failed: {ended}")))
    }
}

fn not_run(error: &io::Error) -> Failure {
    Failure::other(format!("cannot run git: {error}"))
        .with_hint("install git, or export an archive")
}

/// The input of `git fast-import`.
struct Stream<W: Write> {
    out: W,
    /// The path of each memory.
    paths: HashMap<MemoryId, String>,
    /// The memory at each path.
    owners: BTreeMap<String, MemoryId>,
    names: HashMap<Actor, String>,
    skipped: Vec<Skipped>,
}

impl<W: Write> Stream<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            paths: HashMap::new(),
            owners: BTreeMap::new(),
            names: HashMap::new(),
            skipped: Vec::new(),
        }
    }

    /// Writes all versions. The outer result fails if a version cannot be read, the inner one if git
    /// does not accept the input.
    fn write_all(
        &mut self,
        source: &Source<'_>,
        ids: &[VersionId],
    ) -> Result<io::Result<()>, Failure> {
        for id in ids {
            let version = source.version(*id)?;
            if let Err(error) = self.commit(source, &version) {
                return Ok(Err(error));
            }
        }
        Ok(self.out.flush())
    }

    fn commit(&mut self, source: &Source<'_>, version: &Version) -> io::Result<()> {
        let name = self.name(source, &version.actor);
        let seconds = version.created_at.as_micros() / 1_000_000;
        let message = message(version);
        writeln!(self.out, "commit refs/heads/{BRANCH}")?;
        writeln!(self.out, "committer {name} <{}@quipu.invalid> {seconds} +0000", version.actor)?;
        write!(self.out, "data {}\n{message}\n", message.len())?;
        let after =
            version.path.as_ref().map(|path| path.as_str().trim_start_matches('/').to_owned());
        let before = self.paths.get(&version.memory);
        let is_gone = match version.operation {
            Operation::Deleted => true,
            // A redacted version no longer says what it did to the file.
            Operation::Created | Operation::Modified => after.is_some() && before != after.as_ref(),
        };
        if let Some(old) = before.filter(|_| is_gone).cloned() {
            writeln!(self.out, "D {}", quoted(&old))?;
            self.owners.remove(&old);
            self.paths.remove(&version.memory);
        }
        let (Some(path), Some(content)) = (after, &version.content) else { return Ok(()) };
        if let Some(reason) = names::refused(&path) {
            let path = format!("/{path}");
            if self.skipped.iter().all(|it| it.path != path) {
                self.skipped.push(Skipped { path, reason: reason.to_owned() });
            }
            return Ok(());
        }
        let text = content.as_str();
        writeln!(self.out, "M 100644 inline {}", quoted(&path))?;
        write!(self.out, "data {}\n{text}\n", text.len())?;
        self.occupy(version.memory, path);
        Ok(())
    }

    /// Records that a memory is at a path. Any memory that was there, above it or below it, moved away
    /// in a version that was redacted since, and git has replaced its file.
    fn occupy(&mut self, memory: MemoryId, path: String) {
        let below = format!("{path}/");
        let inside = self.owners.range(below.clone()..).map(|(other, _)| other);
        let inside = inside.take_while(|other| other.starts_with(&below)).cloned();
        let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        let lost: Vec<String> =
            inside.chain(above.map(str::to_owned)).chain([path.clone()]).collect();
        for other in lost {
            if let Some(owner) = self.owners.remove(&other) {
                self.paths.remove(&owner);
            }
        }
        self.owners.insert(path.clone(), memory);
        self.paths.insert(memory, path);
    }

    /// Returns the name of an actor: the title of a session, or else its id.
    fn name(&mut self, source: &Source<'_>, actor: &Actor) -> String {
        if let Some(name) = self.names.get(actor) {
            return name.clone();
        }
        let title = match actor {
            Actor::Session(id) => source.data.engine.session(*id).ok().map(|session| session.title),
            Actor::ApiKey(_) | Actor::User(_) | Actor::ServiceAccount(_) => None,
        };
        let name = title.unwrap_or_default().replace(['<', '>', '\n', '\r', '\0'], " ");
        let name = if name.trim().is_empty() { actor.to_string() } else { name.trim().to_owned() };
        self.names.insert(actor.clone(), name.clone());
        name
    }
}

fn message(version: &Version) -> String {
    let path = version.path.as_ref().map_or("(redacted)", |path| path.as_str());
    let operation = version.operation.as_str();
    format!(
        "{operation} {path}\n\nQuipu-Version: {}\nQuipu-Memory: {}\n",
        version.id, version.memory
    )
}

/// Returns a path quoted for fast-import.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}
