//! The arguments of `model`.

use clap::{Args, Subcommand};

use super::examples;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Install a model from a directory, from an address, or by a known name
    ///
    /// A directory, or the address of one, has `model.safetensors`, `tokenizer.json` and, for a
    /// transformer, `config.json`. The model is checked before it is installed.
    #[command(after_help = examples::MODEL_INSTALL)]
    Install(ModelInstallArguments),
    /// List installed models and the names that can be installed
    List,
    /// Search with a model; `none` switches vectors off
    Use(ModelNameArguments),
    /// Remove an installed model
    Remove(ModelNameArguments),
    /// Make the vectors of all memories that have none
    ///
    /// A server does so by itself in the background; this is for data that no server runs on.
    Embed,
    /// Verify the files of a model and encode sentences: length, time, similarity
    Check(ModelCheckArguments),
}

#[derive(Args, Debug)]
pub(crate) struct ModelInstallArguments {
    /// Directory, address (`https://…`) or known name; `./NAME` is a directory of that name
    #[arg(value_name = "PATH|URL|NAME")]
    pub(crate) source: String,
    /// Name to install it under [default: that of the directory, or the known name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Fail unless the weights have this SHA-256
    #[arg(long, value_name = "SHA256")]
    pub(crate) sha256: Option<String>,
    /// What the model wants in front of a question, such as `query: ` [default: what it says itself, or
    /// that of its family]
    #[arg(long, value_name = "TEXT")]
    pub(crate) question_prefix: Option<String>,
    /// What the model wants in front of a passage, such as `passage: ` [default: likewise]
    #[arg(long, value_name = "TEXT")]
    pub(crate) passage_prefix: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ModelNameArguments {
    /// Name of an installed model
    pub(crate) name: String,
}

#[derive(Args, Debug)]
pub(crate) struct ModelCheckArguments {
    /// Name of an installed model [default: what the settings name]
    pub(crate) name: Option<String>,
}
