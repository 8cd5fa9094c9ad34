//! `quipu model install`.
//!
//! Everything is gathered and checked in a temporary directory beside the models, which is then renamed. So
//! a model is installed as a whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_vectors::{Manifest, OPTIONAL_FILES, Prefixes, TOKENIZER, WEIGHTS, sha256};
use serde_json::json;

use super::download::Download;
use super::known::{self, KnownModel};
use crate::args::ModelInstallArguments;
use crate::context::Context;
use crate::encoder::{self, ModelName};
use crate::failure::Failure;
use crate::print::{answer, size};

/// Where a model comes from.
enum Source<'s> {
    Directory(&'s Path),
    Address(&'s str),
    Known(&'static KnownModel),
}

/// A model is gathered in a directory whose name begins with this.
const STAGED_PREFIX: &str = ".install-";
const ABANDONED_AFTER: Duration = Duration::from_hours(24);
const WEIGHTS_SIZE_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
const OTHER_SIZE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The file that says how vectors of tokens become one, as authors of models name it and as it is installed.
const POOLING: (&str, &str) = ("1_Pooling/config.json", "pooling.json");

pub(super) fn run(context: &Context, arguments: &ModelInstallArguments) -> Result<(), Failure> {
    let source = source(&arguments.source)?;
    let name = name(&source, arguments)?;
    let target = name.directory(&context.settings);
    if target.exists() {
        return Err(Failure::usage(format!("the model `{}` is installed already", name.as_str()))
            .with_hint(format!(
                "choose another `--name`, or `quipu model remove {}`",
                name.as_str()
            )));
    }
    // Creates the data directory for its owner alone, if it is missing.
    context.open_or_create()?;
    let models = encoder::models(&context.settings);
    fs::create_dir_all(&models)?;
    remove_abandoned(&models);
    let staged = tempfile::Builder::new().prefix(STAGED_PREFIX).tempdir_in(&models)?;
    source.gather(staged.path())?;
    check_digest(staged.path(), WEIGHTS, arguments.sha256.as_deref())?;
    let mut manifest = Manifest::of(staged.path(), &arguments.source)
        .map_err(|error| Failure::other(format!("{} was not installed: {error}", name.as_str())))?;
    manifest.prefixes = prefixes(manifest.prefixes, &[name.as_str(), source.name()], arguments);
    manifest.write(staged.path())?;
    File::open(staged.path())?.sync_all()?;
    fs::rename(staged.path(), &target)?;
    // Renamed, so there is nothing left to remove.
    drop(staged.keep());
    let body = json!({"name": name.as_str(), "manifest": manifest});
    answer(context.form, &body, |out| {
        let kind = manifest.kind.as_str();
        let size = size(manifest.size_bytes());
        let name = name.as_str();
        writeln!(out, "installed {name} ({kind}, {} dimensions, {size})", manifest.dimensions)?;
        let Prefixes { question, passage } = &manifest.prefixes;
        for (texts, prefix) in [("questions", question), ("passages", passage)] {
            if !prefix.is_empty() {
                writeln!(out, "{texts} begin with {prefix:?}")?;
            }
        }
        writeln!(out, "`quipu model use {name}` searches with it")
    })
}

/// Removes what installations have left that were killed, as far as it can be removed. One that is still
/// running is not that old.
fn remove_abandoned(models: &Path) {
    let Ok(entries) = fs::read_dir(models) else { return };
    for entry in entries.flatten() {
        let is_staged = entry.file_name().to_string_lossy().starts_with(STAGED_PREFIX);
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let age = changed.ok().and_then(|changed| changed.elapsed().ok());
        if is_staged && age.is_some_and(|age| age > ABANDONED_AFTER) {
            fs::remove_dir_all(entry.path()).unwrap_or_default();
        }
    }
}

fn source(text: &str) -> Result<Source<'_>, Failure> {
    if text.starts_with("https://") || text.starts_with("http://") {
        return Ok(Source::Address(text.trim_end_matches('/')));
    }
    let known = known::MODELS.iter().find(|model| model.name == text);
    match (known, Path::new(text)) {
        // A name stands for exact bytes, whatever is in the working directory.
        (Some(model), _) => Ok(Source::Known(model)),
        (None, path) if path.exists() => Ok(Source::Directory(path)),
        (None, _) => {
            let names: Vec<_> = known::MODELS.iter().map(|model| model.name).collect();
            Err(Failure::usage(format!("`{text}` is neither a directory nor a known model"))
                .with_hint(format!("known are: {}", names.join(", "))))
        }
    }
}

/// Returns the name that was given, or that of the source.
fn name(source: &Source<'_>, arguments: &ModelInstallArguments) -> Result<ModelName, Failure> {
    let default = match source {
        Source::Directory(path) => {
            fs::canonicalize(path)?.file_name().map(|name| name.to_string_lossy().into_owned())
        }
        Source::Address(_) => None,
        Source::Known(model) => Some(model.name.to_owned()),
    };
    let name = arguments.name.clone().or(default);
    let name = name.ok_or_else(|| Failure::usage("give the model a name with `--name`"))?;
    ModelName::parse(&name)
        .map_err(|error| Failure::usage(error.to_string()).with_hint("choose a name with `--name`"))
}

/// Returns the prefixes that were given, those that the model says itself, or those of the family that one of
/// its names is of.
fn prefixes(of_model: Prefixes, names: &[&str], arguments: &ModelInstallArguments) -> Prefixes {
    let of_family = || names.iter().find_map(|name| Prefixes::of_family(name));
    let known = if of_model.is_empty() { of_family().unwrap_or_default() } else { of_model };
    Prefixes {
        question: arguments.question_prefix.clone().unwrap_or(known.question),
        passage: arguments.passage_prefix.clone().unwrap_or(known.passage),
    }
}

impl Source<'_> {
    /// Returns what the model is called where it comes from.
    fn name(&self) -> &str {
        match self {
            Self::Directory(path) => path.file_name().and_then(OsStr::to_str).unwrap_or_default(),
            Self::Address(address) => address,
            Self::Known(model) => model.name,
        }
    }

    /// Brings the files of the model into a directory, under the names that they are installed with.
    fn gather(&self, target: &Path) -> Result<(), Failure> {
        match self {
            Self::Directory(path) => copy(path, target),
            Self::Address(base) => {
                let download = Download::new();
                for (path, name) in remote_files() {
                    let url = format!("{base}/{path}");
                    let is_there = download.file(&url, &target.join(name), size_max(name))?;
                    if !is_there && (name == WEIGHTS || name == TOKENIZER) {
                        return Err(Failure::other(format!("there is no {url}")));
                    }
                }
                Ok(())
            }
            Self::Known(model) => {
                let download = Download::new();
                for file in model.files {
                    let name = if file.path == POOLING.0 { POOLING.1 } else { file.path };
                    let url = format!("{}/{}", model.base, file.path);
                    if !download.file(&url, &target.join(name), size_max(name))? {
                        return Err(Failure::other(format!("there is no {url}")));
                    }
                    check_digest(target, name, Some(file.sha256))?;
                }
                Ok(())
            }
        }
    }
}

/// Returns the files of a model, small ones first, as they are named below an address and installed.
fn remote_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    let path = |name| if name == POOLING.1 { POOLING.0 } else { name };
    let names = OPTIONAL_FILES.into_iter().chain([TOKENIZER, WEIGHTS]);
    names.map(move |name| (path(name), name))
}

fn size_max(name: &str) -> u64 {
    if name == WEIGHTS { WEIGHTS_SIZE_BYTES_MAX } else { OTHER_SIZE_BYTES_MAX }
}

/// Copies the files of a model from a directory, or from that of a file of weights.
fn copy(path: &Path, target: &Path) -> Result<(), Failure> {
    let (directory, weights) = if path.is_dir() {
        (path.to_owned(), weights(path)?)
    } else {
        (path.parent().unwrap_or(Path::new(".")).to_owned(), path.to_owned())
    };
    let mut files = vec![(weights, WEIGHTS), (tokenizer(&directory)?, TOKENIZER)];
    let optional = remote_files().filter(|(_, name)| OPTIONAL_FILES.contains(name));
    files.extend(optional.map(|(path, name)| (directory.join(path), name)));
    // What was installed before has the names of installed files.
    files.push((directory.join(POOLING.1), POOLING.1));
    for (from, name) in files {
        if !from.is_file() {
            continue;
        }
        let most = size_max(name);
        if from.metadata().is_ok_and(|file| file.len() > most) {
            return Err(Failure::other(format!(
                "{} is larger than {}",
                from.display(),
                size(most)
            )));
        }
        let to = target.join(name);
        let copied = fs::copy(&from, &to).and_then(|_| File::open(&to)?.sync_all());
        copied
            .map_err(|error| Failure::other(format!("cannot copy {}: {error}", from.display())))?;
    }
    Ok(())
}

/// Finds the weights: under their usual name, or as the only such file of a directory or of the folder
/// `weights` in it, as the package `wordllama` has it.
fn weights(directory: &Path) -> Result<PathBuf, Failure> {
    let usual = directory.join(WEIGHTS);
    if usual.is_file() {
        return Ok(usual);
    }
    only_file(&[directory.to_owned(), directory.join("weights")], "safetensors").ok_or_else(|| {
        Failure::other(format!("there is no {WEIGHTS} in {}", directory.display()))
            .with_hint("other formats have to be converted to safetensors first")
    })
}

/// Finds the tokenizer, in the same manner.
fn tokenizer(directory: &Path) -> Result<PathBuf, Failure> {
    let usual = directory.join(TOKENIZER);
    if usual.is_file() {
        return Ok(usual);
    }
    let mut places = vec![directory.join("tokenizers")];
    places.extend(directory.parent().map(|parent| parent.join("tokenizers")));
    only_file(&places, "json").ok_or_else(|| {
        Failure::other(format!("there is no {TOKENIZER} in {}", directory.display()))
    })
}

/// Returns the only file with this extension in the first directory that has such files.
fn only_file(directories: &[PathBuf], extension: &str) -> Option<PathBuf> {
    for directory in directories {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_wanted = |file: &PathBuf| file.extension().is_some_and(|end| end == extension);
        let mut files: Vec<_> = files.filter(is_wanted).collect();
        match (files.pop(), files.is_empty()) {
            (Some(file), true) => return Some(file),
            (Some(_), false) => return None,
            (None, _) => {}
        }
    }
    None
}

/// Fails unless a file has this SHA-256, if one is expected.
fn check_digest(directory: &Path, name: &str, expected: Option<&str>) -> Result<(), Failure> {
    let Some(expected) = expected else { return Ok(()) };
    let found = sha256(&mut File::open(directory.join(name))?)?;
    if found.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    Err(Failure::other(format!("{name} has the SHA-256 {found}, not {expected}"))
        .with_hint("nothing was installed"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::known::KnownFile;
    use super::*;

    /// Returns the address of a server that has one file.
    fn serving(content: &'static [u8]) -> &'static str {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // A request is a few hundred bytes, and comes at once.
                assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", content.len());
                stream.write_all(&[head.as_bytes(), content].concat()).unwrap();
            }
        });
        url.leak()
    }

    #[test]
    fn a_known_name_stands_for_exact_bytes() {
        let sha256 = sha256(&mut &b"weights"[..]).unwrap().leak();
        let files: &'static [KnownFile] =
            vec![KnownFile { path: "model.safetensors", sha256 }].leak();
        let gathered = |content| {
            let model = KnownModel { name: "known", about: "", base: serving(content), files };
            let target = tempfile::tempdir().unwrap();
            Source::Known(Box::leak(Box::new(model))).gather(target.path())
        };
        gathered(b"weights").unwrap();
        let error = format!("{:?}", gathered(b"others!").unwrap_err());
        assert!(error.contains("has the SHA-256"), "{error}");
    }
}
