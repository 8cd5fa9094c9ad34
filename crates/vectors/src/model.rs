//! Models as files: a directory with weights, a tokenizer, and a manifest that says what they are.
//!
//! Opening reads the manifest alone, so a start costs nothing. The weights are loaded by the first text, in
//! the thread that has it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bert::{self, Bert};
use crate::safetensors::Weights;
use crate::table::Table;
use crate::{
    EncodeError, Encoder, Prefixes, Purpose, TOKENS_MAX_ASSUMED, estimated_tokens, normalized,
};

/// What a directory of a model contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The kind of the model.
    pub kind: Kind,
    /// The length of its vectors.
    pub dimensions: usize,
    /// Where it came from, in the words of whoever installed it.
    pub source: String,
    /// What stands in front of questions and passages.
    #[serde(flatten)]
    pub prefixes: Prefixes,
    /// Its files, in the order of their names.
    pub files: Vec<ModelFile>,
}

/// What `config_sentence_transformers.json` says of texts.
#[derive(Deserialize)]
struct PromptsConfig {
    #[serde(default)]
    prompts: HashMap<String, String>,
}

/// A file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFile {
    /// Its name in the directory.
    pub name: String,
    /// Its length.
    pub size_bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// The kinds of models that are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A transformer of the BERT family.
    Bert,
    /// A static table, with the tensor `embeddings`.
    Model2Vec,
    /// A static table, with the tensor `embedding.weight`.
    WordLlama,
}

/// A model whose weights are loaded when they are first needed.
#[derive(Debug)]
pub struct LocalEncoder {
    directory: PathBuf,
    manifest: Manifest,
    identity: String,
    /// A failure is kept as well: a broken file is not read again for each text.
    loaded: OnceLock<Result<Loaded, EncodeError>>,
}

#[derive(Debug)]
enum Loaded {
    Bert(Box<Bert>),
    Table(Box<Table>),
}

/// The file of the weights.
pub const WEIGHTS: &str = "model.safetensors";
/// The file of the tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";
/// Files that a directory may have besides [`WEIGHTS`] and [`TOKENIZER`].
pub const OPTIONAL_FILES: [&str; 4] = [
    "config.json",
    "config_sentence_transformers.json",
    "pooling.json",
    "sentence_bert_config.json",
];

const MANIFEST: &str = "manifest.json";
/// How many questions are encoded at the same time on a machine with many cores.
const QUESTIONS_MAX: usize = 4;
const CONFIG_SIZE_BYTES_MAX: u64 = 1024 * 1024;
/// A sentence that every model can place.
const PROBE: &str = "the tea is green";

impl Manifest {
    /// Loads the model in a directory, encodes a sentence, and returns what it is.
    ///
    /// Fails if anything is missing, cut off, of the wrong shape or not a number, so that a manifest stands for a
    /// model that works. Prefixes are those that the model says itself.
    pub fn of(directory: &Path, source: &str) -> Result<Self, EncodeError> {
        let kind = Kind::of(&Weights::open(&directory.join(WEIGHTS))?)?;
        let loaded = Loaded::open(directory, kind)?;
        loaded.check(kind)?;
        let mut names = vec![TOKENIZER, WEIGHTS];
        names.extend(OPTIONAL_FILES.into_iter().filter(|name| directory.join(name).exists()));
        names.sort_unstable();
        let files = names.into_iter().map(|name| ModelFile::of(directory, name));
        let files = files.collect::<io::Result<_>>().map_err(|error| unreadable(&error))?;
        let prompts: Option<PromptsConfig> =
            read_config(directory, "config_sentence_transformers.json")?;
        let prompts = prompts.and_then(|config| Prefixes::of_prompts(&config.prompts));
        let (dimensions, source) = (loaded.dimensions(), source.to_owned());
        let prefixes = prompts.unwrap_or_default();
        Ok(Self { kind, dimensions, source, prefixes, files })
    }

    /// Reads the manifest of a directory.
    pub fn read(directory: &Path) -> Result<Self, EncodeError> {
        let manifest = read_config(directory, MANIFEST)?;
        manifest.ok_or_else(|| EncodeError::new(format!("the model has no `{MANIFEST}`")))
    }

    /// Writes the manifest into a directory.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        std::fs::write(directory.join(MANIFEST), text)
    }

    /// Returns the length of all files.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// Returns the names of the files that are not what they were when the manifest was written.
    pub fn changed_files(&self, directory: &Path) -> io::Result<Vec<&str>> {
        let mut changed = Vec::new();
        for file in &self.files {
            if ModelFile::of(directory, &file.name)? != *file {
                changed.push(file.name.as_str());
            }
        }
        Ok(changed)
    }

    /// Returns what vectors of this model depend on.
    fn identity(&self) -> String {
        let mut hash = Sha256::new();
        for file in &self.files {
            hash.update(format!("{} {}\n", file.name, file.sha256));
        }
        let digest = hex(&hash.finalize());
        let digest = digest.get(..32).unwrap_or(&digest);
        self.prefixes.identified(format!("{}:{digest}", self.kind.as_str()))
    }
}

impl ModelFile {
    fn of(directory: &Path, name: &str) -> io::Result<Self> {
        let mut file = File::open(directory.join(name))?;
        let size_bytes = file.metadata()?.len();
        Ok(Self { name: name.to_owned(), size_bytes, sha256: sha256(&mut file)? })
    }
}

impl Kind {
    fn of(weights: &Weights) -> Result<Self, EncodeError> {
        if weights.contains(&bert::prefixed(weights, "embeddings.word_embeddings.weight")) {
            return Ok(Self::Bert);
        }
        let tables = [Self::Model2Vec, Self::WordLlama];
        tables.into_iter().find(|kind| weights.contains(kind.table_name())).ok_or_else(|| {
            EncodeError::new(
                "the weights are of no supported kind: a BERT, model2vec or wordllama model"
                    .to_owned(),
            )
        })
    }

    /// Returns the name of the tensor that is a static table.
    pub(crate) fn table_name(self) -> &'static str {
        match self {
            Self::WordLlama => "embedding.weight",
            Self::Bert | Self::Model2Vec => "embeddings",
        }
    }

    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::Model2Vec => "model2vec",
            Self::WordLlama => "wordllama",
        }
    }
}

impl LocalEncoder {
    /// Opens the model in a directory by its manifest.
    pub fn open(directory: &Path) -> Result<Self, EncodeError> {
        let manifest = Manifest::read(directory)?;
        for file in &manifest.files {
            let size = directory.join(&file.name).metadata().map(|metadata| metadata.len());
            if size.map_err(|error| unreadable(&error))? != file.size_bytes {
                return Err(EncodeError::new(format!(
                    "`{}` has changed since it was installed",
                    file.name
                )));
            }
        }
        let (directory, identity) = (directory.to_owned(), manifest.identity());
        Ok(Self { directory, manifest, identity, loaded: OnceLock::new() })
    }

    /// Returns what the directory contains.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn loaded(&self) -> Result<&Loaded, EncodeError> {
        let loaded = self.loaded.get_or_init(|| {
            let loaded = Loaded::open(&self.directory, self.manifest.kind)?;
            if loaded.dimensions() == self.manifest.dimensions {
                Ok(loaded)
            } else {
                Err(EncodeError::new(
                    "the weights have changed since they were installed".to_owned(),
                ))
            }
        });
        loaded.as_ref().map_err(EncodeError::clone)
    }
}

impl Encoder for LocalEncoder {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn dimensions(&self) -> usize {
        self.manifest.dimensions
    }

    fn tokens_max(&self) -> usize {
        let most = self.loaded().map_or(TOKENS_MAX_ASSUMED, Loaded::tokens_max);
        most.saturating_sub(self.tokens(&self.manifest.prefixes.passage))
    }

    fn tokens(&self, text: &str) -> usize {
        match self.loaded() {
            Ok(Loaded::Bert(bert)) => bert.tokens(text),
            // It reads far more than a passage, so an estimate does.
            Ok(Loaded::Table(_)) | Err(_) => estimated_tokens(text),
        }
    }

    fn questions_max(&self) -> usize {
        // The other half is for whoever asks.
        thread::available_parallelism().map_or(1, |count| (count.get() / 2).clamp(1, QUESTIONS_MAX))
    }

    fn encode(&self, purpose: Purpose, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let loaded = self.loaded()?;
        let prefixes = &self.manifest.prefixes;
        texts.iter().map(|text| loaded.encode(&prefixes.add(purpose, text))).collect()
    }
}

impl Loaded {
    fn open(directory: &Path, kind: Kind) -> Result<Self, EncodeError> {
        Ok(match kind {
            Kind::Bert => Self::Bert(Box::new(Bert::open(directory)?)),
            Kind::Model2Vec | Kind::WordLlama => {
                Self::Table(Box::new(Table::open(directory, kind)?))
            }
        })
    }

    fn dimensions(&self) -> usize {
        match self {
            Self::Bert(bert) => bert.dimensions(),
            Self::Table(table) => table.dimensions(),
        }
    }

    fn tokens_max(&self) -> usize {
        match self {
            Self::Bert(bert) => bert.tokens_max(),
            Self::Table(table) => table.tokens_max(),
        }
    }

    fn encode(&self, text: &str) -> Result<Vec<f32>, EncodeError> {
        normalized(match self {
            Self::Bert(bert) => bert.encode(text)?,
            Self::Table(table) => table.encode(text)?,
        })
    }

    fn check(&self, kind: Kind) -> Result<(), EncodeError> {
        match self {
            Self::Bert(bert) => bert.check()?,
            Self::Table(table) => table.check(kind)?,
        }
        self.encode(PROBE).map(drop)
    }
}

/// Reads a small JSON file of a model, if it exists.
pub(crate) fn read_config<T: DeserializeOwned>(
    directory: &Path,
    name: &str,
) -> Result<Option<T>, EncodeError> {
    let failed = |error: &dyn std::fmt::Display| {
        EncodeError::new(format!("`{name}` of the model cannot be read: {error}"))
    };
    let file = match File::open(directory.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| failed(&error))?,
    };
    let mut text = Vec::new();
    let read = file.take(CONFIG_SIZE_BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| failed(&error))?;
    serde_json::from_slice(&text).map(Some).map_err(|error| failed(&error))
}

/// Returns the SHA-256 of what a reader has left, in hexadecimal digits.
pub fn sha256(reader: &mut dyn io::Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn unreadable(error: &io::Error) -> EncodeError {
    EncodeError::new(format!("a file of the model cannot be read: {error}"))
}

#[cfg(test)]
mod tests;
