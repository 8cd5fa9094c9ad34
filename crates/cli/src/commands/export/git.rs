//! A git repository with one commit for each version, by its actor.

use std::collections::HashMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use quipu_core::model::{Actor, MemoryId, Operation, Version};

use crate::failure::Failure;

use super::{LeftOut, Report, Source};

const BRANCH: &str = "main";

/// Makes the repository in a new or empty folder.
pub(super) fn write(source: &Source<'_>, target: &Path) -> Result<Report, Failure> {
    fs::create_dir_all(target)?;
    if fs::read_dir(target)?.next().is_some() {
        return Err(Failure::usage(format!("{} is not empty", target.display()))
            .with_hint("export to a new folder"));
    }
    git(target, &["init", "--quiet", "--initial-branch", BRANCH])?;
    let mut child = command(target)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| not_run(&error))?;
    let pipe = child.stdin.take().ok_or_else(|| Failure::other("git takes no input"))?;
    let mut stream = Stream::new(BufWriter::new(pipe));
    let ids = source.versions()?;
    let mut written = Ok(());
    for id in &ids {
        written = source.version(*id).and_then(|version| stream.commit(source, &version));
        if written.is_err() {
            break;
        }
    }
    let finished = stream.out.flush();
    let left_out = std::mem::take(&mut stream.left_out);
    drop(stream);
    let status = child.wait()?;
    written?;
    finished?;
    if !status.success() {
        return Err(Failure::other(format!("git fast-import ended with {status}")));
    }
    if !ids.is_empty() {
        git(target, &["reset", "--quiet", "--hard", BRANCH])?;
    }
    Ok(Report { form: "git", what: "versions", count: ids.len(), skipped: left_out })
}

/// Returns git in a folder, without the user's hooks.
fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args([
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.autocrlf=false",
    ]);
    command
}

fn git(folder: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let ended = command(folder).args(arguments).status().map_err(|error| not_run(&error))?;
    let verb = arguments.first().unwrap_or(&"");
    if ended.success() {
        Ok(())
    } else {
        Err(Failure::other(format!("git {verb} ended with {ended}")))
    }
}

fn not_run(error: &std::io::Error) -> Failure {
    Failure::other(format!("git cannot be run: {error}"))
        .with_hint("install git, or export an archive")
}

/// What is told to `git fast-import`.
struct Stream<W: Write> {
    out: W,
    /// Where each memory is.
    places: HashMap<MemoryId, String>,
    names: HashMap<Actor, String>,
    left_out: Vec<LeftOut>,
}

impl<W: Write> Stream<W> {
    fn new(out: W) -> Self {
        Self { out, places: HashMap::new(), names: HashMap::new(), left_out: Vec::new() }
    }

    fn commit(&mut self, source: &Source<'_>, version: &Version) -> Result<(), Failure> {
        let name = self.name(source, &version.actor);
        let seconds = version.created_at.as_micros() / 1_000_000;
        let message = message(version);
        writeln!(self.out, "commit refs/heads/{BRANCH}")?;
        writeln!(self.out, "committer {name} <{}@quipu.invalid> {seconds} +0000", version.actor)?;
        write!(self.out, "data {}\n{message}\n", message.len())?;
        let after =
            version.path.as_ref().map(|path| path.as_str().trim_start_matches('/').to_owned());
        let before = self.places.get(&version.memory);
        let is_gone = match version.operation {
            Operation::Deleted => true,
            // What a redacted version did to the file is not known any more.
            Operation::Created | Operation::Modified => after.is_some() && before != after.as_ref(),
        };
        if let Some(old) = before.filter(|_| is_gone) {
            writeln!(self.out, "D {}", quoted(old))?;
            self.places.remove(&version.memory);
        }
        let (Some(path), Some(content)) = (after, &version.content) else { return Ok(()) };
        if path.split('/').any(|segment| segment.eq_ignore_ascii_case(".git")) {
            let reason = "git takes no file of that name".to_owned();
            self.left_out.push(LeftOut { path, reason });
            return Ok(());
        }
        let text = content.as_str();
        writeln!(self.out, "M 100644 inline {}", quoted(&path))?;
        write!(self.out, "data {}\n{text}\n", text.len())?;
        self.places.insert(version.memory, path);
        Ok(())
    }

    /// Returns what to call an actor: a session by its title.
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

/// Returns a path as git reads it, whatever it holds.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}
