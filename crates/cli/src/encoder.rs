//! The encoder that the settings name: an installed model, or an endpoint.

use std::path::PathBuf;
use std::sync::Arc;

use quipu_vectors::{EncodeError, Encoder, EndpointEncoder, LocalEncoder, Prefixes};

use crate::print::note;
use crate::settings::Settings;

/// The name of an installed model, which is also that of its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelName(String);

/// What switches vectors off, in place of a name.
pub(crate) const NO_MODEL: &str = "none";

const NAME_CHARS_MAX: usize = 64;

impl ModelName {
    /// Returns a name of letters, digits, `.`, `_` and `-` that begins with a letter or digit, and so never
    /// leads out of the directory of the models.
    pub(crate) fn parse(text: &str) -> Result<Self, EncodeError> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let is_name = text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.chars().all(is_plain)
            && text.len() <= NAME_CHARS_MAX
            && text != NO_MODEL;
        if is_name {
            return Ok(Self(text.to_owned()));
        }
        Err(EncodeError::new(format!(
            "`{text}` cannot be the name of a model; use letters, digits, `.`, `_` and `-`"
        )))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directory of the model.
    pub(crate) fn directory(&self, settings: &Settings) -> PathBuf {
        models(settings).join(&self.0)
    }
}

/// Returns the directory of all models.
pub(crate) fn models(settings: &Settings) -> PathBuf {
    settings.data.join("models")
}

/// Returns the encoder that the settings name, if they name one. If it cannot be used, says so once, and
/// search goes on without.
pub(crate) fn open_encoder(settings: &Settings) -> Option<Arc<dyn Encoder>> {
    configured(settings).unwrap_or_else(|error| {
        note(&format!("searching without vectors: {error}"));
        None
    })
}

/// Returns the encoder that the settings name. Loads no weights and asks no server.
pub(crate) fn configured(settings: &Settings) -> Result<Option<Arc<dyn Encoder>>, EncodeError> {
    let table = &settings.vectors;
    match (table.model.as_deref(), &table.endpoint) {
        (Some(NO_MODEL), _) | (None, None) => Ok(None),
        (Some(name), _) => Ok(Some(Arc::new(installed(settings, &ModelName::parse(name)?)?))),
        (None, Some(url)) => {
            let model = table.endpoint_model.as_deref().ok_or_else(|| {
                EncodeError::new("`vectors.endpoint` needs `vectors.endpoint_model`".to_owned())
            })?;
            let encoder = EndpointEncoder::new(url, model, endpoint_key(settings)?)?;
            let known = Prefixes::of_family(model).unwrap_or_default();
            let (question, passage) = (&table.question_prefix, &table.passage_prefix);
            Ok(Some(Arc::new(encoder.with_prefixes(Prefixes {
                question: question.clone().unwrap_or(known.question),
                passage: passage.clone().unwrap_or(known.passage),
            }))))
        }
    }
}

/// Opens an installed model.
pub(crate) fn installed(
    settings: &Settings,
    name: &ModelName,
) -> Result<LocalEncoder, EncodeError> {
    let directory = name.directory(settings);
    if !directory.is_dir() {
        return Err(EncodeError::new(format!("the model `{}` is not installed", name.as_str())));
    }
    LocalEncoder::open(&directory)
        .map_err(|error| EncodeError::new(format!("the model `{}`: {error}", name.as_str())))
}

/// Returns the key of the endpoint, from the environment or from a file.
fn endpoint_key(settings: &Settings) -> Result<Option<String>, EncodeError> {
    if let Some(key) = &settings.endpoint_key {
        return Ok(Some(key.clone()));
    }
    let Some(file) = &settings.vectors.endpoint_key_file else { return Ok(None) };
    let text = std::fs::read_to_string(file).map_err(|error| {
        EncodeError::new(format!(
            "cannot read `vectors.endpoint_key_file`, {}: {error}",
            file.display()
        ))
    })?;
    Ok(Some(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_lead_out_of_the_directory() {
        for name in ["all-MiniLM-L6-v2", "potion.8M", "a"] {
            assert_eq!(ModelName::parse(name).unwrap().as_str(), name);
        }
        for name in ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "-x", "none", "ä", "a b"] {
            assert!(ModelName::parse(name).is_err(), "{name}");
        }
        assert!(ModelName::parse(&"x".repeat(65)).is_err());
    }
}
