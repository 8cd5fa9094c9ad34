//! Values of frontmatter fields.

/// A value in a note's frontmatter. Numbers, booleans and dates are kept as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Empty, `null` or `~`.
    Null,
    /// A scalar: a text, a number, a boolean or a date.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A mapping, in order.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// Returns the text of a scalar.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Returns the value of a map's key, or the item of a list at a 0-based index.
    pub fn at(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|entry| entry.0 == key).map(|it| &it.1),
            Self::List(items) => items.get(key.parse::<usize>().ok()?),
            Self::Null | Self::Text(_) => None,
        }
    }

    /// Returns the text, or the texts of a list joined with commas.
    pub(super) fn joined(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.trim().to_owned()),
            Self::List(items) => {
                let texts: Vec<_> = items.iter().filter_map(Self::joined).collect();
                Some(texts.join(", "))
            }
            Self::Null | Self::Map(_) => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Returns the tags in a list or a comma-separated text, without `#`, deduplicated.
pub(super) fn tags(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    add_tags(value, &mut found);
    let mut seen = std::collections::HashSet::new();
    found.retain(|tag| seen.insert(tag.clone()));
    found
}

fn add_tags(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null | Value::Map(_) => {}
        Value::Text(text) => {
            let names = text.split(',').map(|tag| tag.trim().trim_start_matches('#').trim());
            found.extend(names.filter(|tag| !tag.is_empty()).map(str::to_owned));
        }
        Value::List(items) => items.iter().for_each(|item| add_tags(item, found)),
    }
}

/// Returns the names in a list or a single text; names may contain commas.
pub(super) fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Text(text) => {
            let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(name).filter(|name| !name.is_empty()).into_iter().collect()
        }
        Value::List(items) => {
            items.iter().filter(|it| it.as_text().is_some()).flat_map(names).collect()
        }
        Value::Null | Value::Map(_) => Vec::new(),
    }
}
