//! Frontmatter: the YAML mapping at the beginning of a note.
//!
//! A block that is not a valid YAML mapping is part of the body, with a remark that says so.

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::lines::with_offsets;
use super::{Remark, Value};

/// How deep values may be nested; no one writes deeper ones by hand.
pub(crate) const DEPTH_MAX: usize = 32;

const BOM: char = '\u{feff}';

/// The parsed beginning of a text.
#[derive(Debug, Default)]
pub(crate) struct Frontmatter {
    /// The fields in order, without repeated keys.
    pub(crate) fields: Vec<FrontmatterField>,
    /// The offset of the body.
    pub(crate) body_start: usize,
    /// The end of the block if there is one, valid or not.
    pub(crate) block_end: usize,
    /// The range of the YAML between the lines of dashes, if it is valid.
    pub(crate) yaml: Option<Range<usize>>,
    /// What could not be parsed.
    pub(crate) remarks: Vec<Remark>,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrontmatterField {
    /// The key.
    pub(crate) key: String,
    /// The value.
    pub(crate) value: Value,
    /// The line of the key inside the YAML, 0-based.
    pub(crate) line: usize,
}

impl Frontmatter {
    /// Parses the block at the beginning of a text, if there is one.
    pub(crate) fn parse(text: &str) -> Self {
        let bom_size = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
        let nothing = Self { body_start: bom_size, ..Self::default() };
        let Some((yaml, body_start)) = block(text, bom_size) else { return nothing };
        match fields(text.get(yaml.clone()).unwrap_or_default()) {
            Ok(fields) => {
                let (fields, remarks) = without_repeats(fields);
                Self { fields, body_start, block_end: body_start, yaml: Some(yaml), remarks }
            }
            Err(remark) => Self { remarks: vec![remark], block_end: body_start, ..nothing },
        }
    }
}

impl Frontmatter {
    /// Returns the keys of a YAML mapping, repeated ones included, with their 0-based lines.
    pub(crate) fn fields_of(yaml: &str) -> Result<Vec<(String, usize)>, String> {
        let fields = fields(yaml).map_err(|remark| remark.text)?;
        Ok(fields.into_iter().map(|field| (field.key, field.line)).collect())
    }
}

/// Returns the range between two lines of dashes, and the offset after them.
fn block(text: &str, start: usize) -> Option<(Range<usize>, usize)> {
    let mut lines = with_offsets(text.get(start..)?);
    let (_, first) = lines.next()?;
    if first.trim_end() != "---" || !first.ends_with('\n') {
        return None;
    }
    let (offset, closing) = lines.find(|(_, line)| matches!(line.trim_end(), "---" | "..."))?;
    let yaml = start + first.len()..start + offset;
    Some((yaml, start + offset + closing.len()))
}

/// Keeps the last value of a repeated key, at the position of the first.
fn without_repeats(fields: Vec<FrontmatterField>) -> (Vec<FrontmatterField>, Vec<Remark>) {
    let mut places = HashMap::new();
    let (mut kept, mut remarks) = (Vec::<FrontmatterField>::new(), Vec::new());
    for field in fields {
        let place = *places.entry(field.key.clone()).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(earlier) => {
                let text =
                    format!("`{}` is in the frontmatter twice; the last value wins", field.key);
                remarks.push(Remark { line: field.line + 2, text });
                *earlier = field;
            }
            None => kept.push(field),
        }
    }
    (kept, remarks)
}

/// A list or a map that is still open.
enum Open {
    List(Vec<Value>),
    Map { entries: Vec<(String, Value)>, key: Option<String> },
}

/// Builds the fields of the outermost map from YAML events.
struct Builder {
    open: Vec<Open>,
    /// The lines of the outermost keys.
    key_lines: Vec<usize>,
    root: Option<Value>,
}

/// Parses YAML; the error says what is wrong with it.
fn fields(yaml: &str) -> Result<Vec<FrontmatterField>, Remark> {
    if nests_too_deep(yaml) {
        return Err(broken(0, "values are nested too deep"));
    }
    let mut builder = Builder { open: Vec::new(), key_lines: Vec::new(), root: None };
    for event in Parser::new_from_str(yaml) {
        match event {
            Ok((event, span)) => {
                let line = span.start.line().saturating_sub(1);
                builder.take(event, line).map_err(|what| broken(line, what))?;
            }
            Err(error) => {
                let line = error.marker().line().saturating_sub(1);
                return Err(broken(line, &shown(error.info())));
            }
        }
    }
    match builder.root {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Map(entries)) => Ok(entries
            .into_iter()
            .zip(builder.key_lines)
            .map(|((key, value), line)| FrontmatterField { key, value, line })
            .collect()),
        Some(Value::Text(_) | Value::List(_)) => Err(broken(0, "it is not a mapping")),
    }
}

fn broken(yaml_line: usize, what: &str) -> Remark {
    let text = format!("the frontmatter is read as text, because {what}");
    Remark { line: yaml_line + 2, text }
}

/// Formats an error of the YAML parser as a clause.
fn shown(info: &str) -> String {
    let info: String = info.chars().take(120).collect();
    format!("it is not valid YAML: {info}")
}

/// Returns whether brackets may be nested too deep, counting those in quotes and comments too.
///
/// This runs before the YAML parser, whose time per byte grows with the number of open brackets: a
/// text of nothing but `[` would take minutes.
fn nests_too_deep(yaml: &str) -> bool {
    let mut depth: usize = 0;
    for byte in yaml.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX * 4 {
            return true;
        }
    }
    false
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), &'static str> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => Err("it holds several documents"),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
            Event::Alias(_) => Err("it uses an alias (`*name`), which notes do not have"),
            Event::Scalar(text, style, ..) => self.scalar(&text, style, line),
            Event::SequenceStart(..) => self.begin(Open::List(Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Map { entries: Vec::new(), key: None }),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), &'static str> {
        if self.open.len() >= DEPTH_MAX {
            return Err("values are nested too deep");
        }
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            return Err("a key is a list or a map");
        }
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self) -> Result<(), &'static str> {
        let value = match self.open.pop() {
            Some(Open::List(items)) => Value::List(items),
            Some(Open::Map { entries, .. }) => Value::Map(entries),
            None => return Ok(()),
        };
        self.value(value)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, line: usize) -> Result<(), &'static str> {
        let is_plain = style == ScalarStyle::Plain;
        let is_null = is_plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
        let depth = self.open.len();
        if let Some(Open::Map { key: key @ None, .. }) = self.open.last_mut() {
            *key = Some(text.to_owned());
            if depth == 1 {
                self.key_lines.push(line);
            }
            return Ok(());
        }
        self.value(if is_null { Value::Null } else { Value::Text(text.to_owned()) })
    }

    fn value(&mut self, value: Value) -> Result<(), &'static str> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Map { entries, key }) => {
                let key = key.take().ok_or("a key is a list or a map")?;
                entries.push((key, value));
            }
        }
        Ok(())
    }
}
