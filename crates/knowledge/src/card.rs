//! Cards: the stored properties of a memory besides its terms.

use quipu_core::model::{Id as _, MemoryId, MemoryPath, StoreId, Timestamp, VersionId};
use quipu_notes::LinkTarget;

use crate::index::{Damaged, Input, put_bytes, put_varint};

/// The names and links of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) memory: MemoryId,
    pub(crate) store: StoreId,
    /// The version that was indexed.
    pub(crate) version: VersionId,
    pub(crate) path: MemoryPath,
    pub(crate) title: String,
    /// The note's type.
    pub(crate) kind: String,
    /// The permalink that it has unless an older memory requests the same one.
    pub(crate) permalink: String,
    pub(crate) created_at: Timestamp,
    /// When its text or path last changed.
    pub(crate) updated_at: Timestamp,
    /// Its distinct names, as alias keys.
    pub(crate) names: Vec<String>,
    /// Its links, in order.
    pub(crate) links: Vec<LinkRow>,
}

/// A link of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// The memory that contains it.
    pub from: MemoryId,
    /// Its index among the links of that memory, 0-based.
    pub position: usize,
    /// The relation of the memory to the target.
    pub kind: String,
    /// The target, as written.
    pub target: LinkTarget,
    /// The context of a relation.
    pub context: Option<String>,
    /// The line, 1-based.
    pub line: usize,
}

impl Card {
    /// Encodes the card. The memory and the store are the key of its row.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.version.bits().to_be_bytes());
        bytes.extend_from_slice(&self.created_at.as_micros().to_le_bytes());
        bytes.extend_from_slice(&self.updated_at.as_micros().to_le_bytes());
        for text in [self.path.as_str(), &self.title, &self.kind, &self.permalink] {
            put_bytes(&mut bytes, text.as_bytes());
        }
        put_count(&mut bytes, self.names.len());
        self.names.iter().for_each(|name| put_bytes(&mut bytes, name.as_bytes()));
        put_count(&mut bytes, self.links.len());
        for LinkRow { kind, target, context, line, .. } in &self.links {
            put_bytes(&mut bytes, kind.as_bytes());
            put_bytes(&mut bytes, target.name.as_bytes());
            let optional = [&target.store, &target.section, &target.alias, context];
            for text in optional {
                put_optional(&mut bytes, text.as_deref());
            }
            put_count(&mut bytes, *line);
        }
        bytes
    }

    /// Decodes a card with its names and links.
    pub(crate) fn read(store: StoreId, memory: MemoryId, bytes: &[u8]) -> Result<Self, Damaged> {
        let mut input = Input::new(bytes);
        let mut card = Self::read_head(store, memory, &mut input)?;
        for _ in 0..count(&mut input)? {
            card.names.push(input.text()?.to_owned());
        }
        for position in 0..count(&mut input)? {
            let (kind, name) = (input.text()?.to_owned(), input.text()?.to_owned());
            let (store, section) = (optional(&mut input)?, optional(&mut input)?);
            let (alias, context) = (optional(&mut input)?, optional(&mut input)?);
            let target = LinkTarget { store, name, section, alias };
            let line = input.varint_usize()?;
            card.links.push(LinkRow { from: memory, position, kind, target, context, line });
        }
        Ok(card)
    }

    /// Decodes a card without its names and links, of which there may be many.
    pub(crate) fn read_row(
        store: StoreId,
        memory: MemoryId,
        bytes: &[u8],
    ) -> Result<Self, Damaged> {
        Self::read_head(store, memory, &mut Input::new(bytes))
    }

    fn read_head(store: StoreId, memory: MemoryId, input: &mut Input<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            memory,
            store,
            version: VersionId::from_bits(u128::from_be_bytes(input.array()?)),
            created_at: Timestamp::from_micros(i64::from_le_bytes(input.array()?)),
            updated_at: Timestamp::from_micros(i64::from_le_bytes(input.array()?)),
            path: MemoryPath::parse(input.text()?).ok().ok_or(Damaged)?,
            title: input.text()?.to_owned(),
            kind: input.text()?.to_owned(),
            permalink: input.text()?.to_owned(),
            names: Vec::new(),
            links: Vec::new(),
        })
    }
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    put_varint(bytes, u64::try_from(count).unwrap_or(u64::MAX));
}

/// Decodes a count of items, each of which takes at least a byte.
fn count(input: &mut Input<'_>) -> Result<usize, Damaged> {
    let count = input.varint_usize()?;
    if count <= input.len() { Ok(count) } else { Err(Damaged) }
}

fn put_optional(bytes: &mut Vec<u8>, text: Option<&str>) {
    bytes.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(bytes, text.as_bytes());
    }
}

fn optional(input: &mut Input<'_>) -> Result<Option<String>, Damaged> {
    match input.byte()? {
        0 => Ok(None),
        1 => Ok(Some(input.text()?.to_owned())),
        _ => Err(Damaged),
    }
}

#[cfg(test)]
mod tests;
