//! `quipu model`: encoders for search by meaning.

mod download;
mod install;
mod known;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use quipu_core::Error;
use quipu_knowledge::EmbedReport;
use quipu_vectors::{EncodeError, Encoder, Manifest, Purpose};
use serde::Serialize;
use serde_json::json;
use toml_edit::{DocumentMut, Item, Table};

use super::mcp::replace_file;
use crate::args::{ModelCheckArguments, ModelCommand, ModelNameArguments};
use crate::context::Context;
use crate::encoder::{self, ModelName, NO_MODEL};
use crate::failure::Failure;
use crate::print::{answer, note, size};

pub(super) fn run(context: &Context, command: &ModelCommand) -> Result<(), Failure> {
    match command {
        ModelCommand::Install(arguments) => install::run(context, arguments),
        ModelCommand::List => list(context),
        ModelCommand::Use(arguments) => select(context, arguments),
        ModelCommand::Remove(arguments) => remove(context, arguments),
        ModelCommand::Embed => embed(context),
        ModelCommand::Check(arguments) => check(context, arguments),
    }
}

/// Makes the vectors of all memories that have none.
fn embed(context: &Context) -> Result<(), Failure> {
    const PARTS: u64 = 1_000;
    let data = context.open()?.with_vectors(context);
    let style = ProgressStyle::with_template("{bar:40} {percent} %, {eta} left")
        .expect("the template is valid");
    // Nothing is drawn unless standard error is a terminal.
    let bar = ProgressBar::new(PARTS).with_style(style);
    let report = data.engine.embed(&|share| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share is between 0 and 1"
        )]
        bar.set_position((share * 1_000.0) as u64);
        Ok(())
    });
    bar.finish_and_clear();
    let EmbedReport { embedded, rejected, memories } = report?;
    if rejected > 0 {
        let memories = if rejected == 1 { "memory" } else { "memories" };
        note(&format!(
            "the model rejected {rejected} {memories}; words find them, and meaning does not"
        ));
    }
    let body = json!({"embedded": embedded, "rejected": rejected, "memories": memories});
    answer(context.form, &body, |out| writeln!(out, "embedded {embedded} of {memories} memories"))
}

/// An installed model, as it is listed.
#[derive(Serialize)]
struct Listed {
    name: String,
    is_used: bool,
    #[serde(flatten)]
    manifest: Manifest,
}

fn list(context: &Context) -> Result<(), Failure> {
    let models = listed(context)?;
    let known: Vec<_> = known::MODELS
        .iter()
        .map(|model| json!({"name": model.name, "about": model.about}))
        .collect();
    let body = json!({
        "models": models,
        "endpoint": context.settings.vectors.endpoint,
        "known": known,
    });
    answer(context.form, &body, |out| {
        for model in &models {
            let mark = if model.is_used { "*" } else { " " };
            let Manifest { kind, dimensions, .. } = &model.manifest;
            let size = size(model.manifest.size_bytes());
            let kind = kind.as_str();
            writeln!(
                out,
                "{mark} {:<24} {kind:<10} {dimensions:>4} dimensions  {size}",
                model.name
            )?;
        }
        for model in known::MODELS {
            if !models.iter().any(|listed| listed.name == model.name) {
                writeln!(out, "  {:<24} not installed: {}", model.name, model.about)?;
            }
        }
        Ok(())
    })
}

fn listed(context: &Context) -> Result<Vec<Listed>, Failure> {
    let used = context.settings.vectors.model.as_deref();
    let entries = match std::fs::read_dir(encoder::models(&context.settings)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut models = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // What an interrupted installation has left begins with a dot, which is no name.
        let Ok(name) = ModelName::parse(&name) else { continue };
        match Manifest::read(&entry.path()) {
            Ok(manifest) => models.push(Listed {
                is_used: used == Some(name.as_str()),
                name: name.as_str().to_owned(),
                manifest,
            }),
            Err(error) => note(&format!("the model `{}`: {error}", name.as_str())),
        }
    }
    models.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(models)
}

/// Writes the name of a model into the settings file.
fn select(context: &Context, arguments: &ModelNameArguments) -> Result<(), Failure> {
    let name = arguments.name.as_str();
    if name != NO_MODEL {
        let name = ModelName::parse(name).map_err(|error| Failure::usage(error.to_string()))?;
        encoder::installed(&context.settings, &name).map_err(|error| not_installed(&error))?;
    }
    let file = &context.settings.file;
    let old = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let new = with_model(&old, name).ok_or_else(|| {
        Failure::other(format!("cannot change the settings in {}", file.display()))
            .with_hint(format!("write `model = \"{name}\"` below `[vectors]`"))
    })?;
    // Only an open data directory is sure to exist.
    if !file.exists() {
        context.open_or_create()?;
    }
    replace_file(file, &new)?;
    if context.settings.is_model_overridden {
        note("the variable QUIPU_VECTORS_MODEL overrides the settings file");
    }
    let body = json!({"model": name, "file": file.display().to_string()});
    answer(context.form, &body, |out| match name {
        NO_MODEL => writeln!(out, "searching without vectors"),
        name => writeln!(out, "searching with the vectors of {name}"),
    })
}

/// Returns the settings with another model, and everything else as it was.
fn with_model(old: &str, name: &str) -> Option<String> {
    let mut document: DocumentMut = old.parse().ok()?;
    let vectors = document.entry("vectors").or_insert(Item::Table(Table::new()));
    let vectors = vectors.as_table_like_mut()?;
    match vectors.get_mut("model") {
        // Assigning keeps a comment above the key; removing and inserting would drop it.
        Some(item) => *item = toml_edit::value(name),
        None => drop(vectors.insert("model", toml_edit::value(name))),
    }
    Some(document.to_string())
}

fn remove(context: &Context, arguments: &ModelNameArguments) -> Result<(), Failure> {
    let name = ModelName::parse(&arguments.name);
    let name = name.map_err(|error| Failure::usage(error.to_string()))?;
    let directory = name.directory(&context.settings);
    if !directory.is_dir() {
        return Err(not_installed(&EncodeError::new(format!(
            "the model `{}` is not installed",
            name.as_str()
        ))));
    }
    if context.settings.vectors.model.as_deref() == Some(name.as_str()) {
        return Err(Failure::usage(format!("the model `{}` is in use", name.as_str()))
            .with_hint("switch vectors off first: `quipu model use none`"));
    }
    std::fs::remove_dir_all(&directory)?;
    answer(context.form, &json!({"removed": name.as_str()}), |out| {
        writeln!(out, "removed {}", name.as_str())
    })
}

/// What `quipu model check` has found.
#[derive(Serialize)]
struct Checked {
    identity: String,
    dimensions: usize,
    first_ms: f64,
    question_ms: f64,
    similar: f32,
    different: f32,
}

const SENTENCE: &str = "The launch was moved to the second week of May.";
const SIMILAR: &str = "When is the release date?";
const DIFFERENT: &str = "She waters the tomatoes in the evening.";
const ROUNDS: usize = 5;

/// What helps against files that are not as they were installed.
const INSTALL_AGAIN: &str = "remove the model and install it again";

fn check(context: &Context, arguments: &ModelCheckArguments) -> Result<(), Failure> {
    let settings = &context.settings;
    let named = arguments.name.as_deref().or(settings.vectors.model.as_deref());
    let (encoder, hint): (Arc<dyn Encoder>, _) = match named.filter(|name| *name != NO_MODEL) {
        Some(name) => {
            let name = ModelName::parse(name).map_err(|error| Failure::usage(error.to_string()))?;
            if !name.directory(settings).is_dir() {
                let message = format!("the model `{}` is not installed", name.as_str());
                return Err(not_installed(&EncodeError::new(message)));
            }
            let broken =
                |error: EncodeError| Failure::other(error.to_string()).with_hint(INSTALL_AGAIN);
            let model = encoder::installed(settings, &name).map_err(broken)?;
            verify(model.manifest(), &name.directory(settings))?;
            (Arc::new(model), INSTALL_AGAIN)
        }
        None => {
            let configured = encoder::configured(settings);
            let configured = configured.map_err(|error| {
                Failure::other(error.to_string())
                    .with_hint("correct the settings below `[vectors]`")
            })?;
            let configured = configured.ok_or_else(|| {
                Failure::usage("no model is in use")
                    .with_hint("`quipu model list` shows what there is")
            })?;
            (
                configured,
                "check that the server is running and serves this model; `[vectors]` in the settings names it",
            )
        }
    };
    let checked = Checked::of(&*encoder).map_err(|error| {
        Failure::other(format!("{}: {}", encoder.identity(), error.in_detail())).with_hint(hint)
    })?;
    answer(context.form, &checked, |out| {
        let Checked { identity, dimensions, first_ms, question_ms, similar, different } = &checked;
        writeln!(out, "{identity}")?;
        writeln!(out, "{dimensions} dimensions")?;
        writeln!(out, "{question_ms:.2} ms for a question, {first_ms:.0} ms for the first one")?;
        writeln!(
            out,
            "similarity: {similar:.2} for related sentences, {different:.2} for unrelated ones"
        )
    })
}

/// Fails if a file is not what was installed.
fn verify(manifest: &Manifest, directory: &Path) -> Result<(), Failure> {
    let changed = manifest.changed_files(directory)?;
    if changed.is_empty() {
        return Ok(());
    }
    Err(Failure::other(format!("changed since it was installed: {}", changed.join(", ")))
        .with_hint(INSTALL_AGAIN))
}

impl Checked {
    fn of(encoder: &dyn Encoder) -> Result<Self, EncodeError> {
        let timed = |text: &str| -> Result<(Duration, Vec<f32>), EncodeError> {
            let begun = Instant::now();
            let vectors = encoder.encode(Purpose::Question, &[text])?;
            Ok((begun.elapsed(), vectors.into_iter().next().unwrap_or_default()))
        };
        let (first, sentence) = timed(SENTENCE)?;
        let (mut best, mut similar) = timed(SIMILAR)?;
        for _ in 1..ROUNDS {
            let (again, vector) = timed(SIMILAR)?;
            (best, similar) = (best.min(again), vector);
        }
        let (_, different) = timed(DIFFERENT)?;
        let dot = |other: &[f32]| sentence.iter().zip(other).map(|(a, b)| a * b).sum();
        Ok(Self {
            identity: encoder.identity().to_owned(),
            dimensions: encoder.dimensions(),
            first_ms: first.as_secs_f64() * 1e3,
            question_ms: best.as_secs_f64() * 1e3,
            similar: dot(&similar),
            different: dot(&different),
        })
    }
}

fn not_installed(error: &EncodeError) -> Failure {
    Failure::from(Error::not_found(error.to_string()))
        .with_hint("`quipu model list` shows what is installed and what can be")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_settings_stays_as_it_was() {
        assert_eq!(with_model("", "tiny").unwrap(), "[vectors]\nmodel = \"tiny\"\n");
        let old =
            "# mine\nstore = 'notes'\n\n[vectors]\n# the small one\nmodel = \"a\"\n\n[limits]\n";
        let new = with_model(old, "b").unwrap();
        assert_eq!(new, old.replace("\"a\"", "\"b\""));
        assert!(with_model("vectors = 3", "b").is_none());
        assert!(with_model("= x", "b").is_none());
    }
}
