//! The index: the searchable part of each store, in a file of its own.
//!
//! This module stores documents and their terms and knows nothing of markdown or queries.
//! [`postings`] are lists of documents, [`block`]s hold the posting lists of neighboring terms, and
//! a [`segment`] is an immutable inverted index, in memory or in the rows of a [`mod@file`]. A
//! [`view`] reads the index of one store, a [`batch`] applies changes, [`upkeep`] merges segments,
//! and [`mod@scrub`] erases redacted text. Vectors have [rows](vector_rows) of their own.

#[cfg(any(test, feature = "fuzzing"))]
mod any;
mod batch;
mod bits;
mod block;
mod cache;
mod codec;
mod columns;
mod error;
mod file;
mod merge;
mod note_rows;
mod places;
mod postings;
mod replacing;
mod rows;
mod scrub;
mod seal;
mod segment;
mod store_rows;
mod term;
mod upkeep;
mod vector_rows;
mod view;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use any::{any_segments, read_any};
pub(crate) use batch::{Applied, Batch, BatchBuilder};
pub(crate) use bits::Bits;
pub(crate) use codec::{Damaged, Input, put_bytes, put_varint};
pub(crate) use columns::{MemoryRow, Numbers};
pub(crate) use error::IndexError;
pub use file::INDEX_FILE;
#[cfg(test)]
pub(crate) use file::{FORMAT, SCHEMA};
pub(crate) use file::{IndexFile, Snapshot};
pub(crate) use note_rows::{each_note, note};
pub(crate) use places::{DirectoryPlaces, Paths, PlacesView, natural, split};
pub(crate) use postings::{
    Counts, Doc, Field, Fields, Place, Positions, Posting, Postings, Weights, each_place,
};
pub(crate) use replacing::is_file_or_missing;
pub(crate) use scrub::scrub;
pub(crate) use segment::{Document, Documents, Totals};
#[cfg(test)]
pub(crate) use store_rows::put_store;
pub(crate) use store_rows::{
    Cursor, StoreRow, add_store, ids as store_ids, least_purged, raise_purged, store as store_row,
    used_bytes,
};
pub(crate) use term::{
    Day, DayKind, Mark, Space, day_prefix, field_prefix, memory as memory_term, word,
};
pub(crate) use upkeep::{is_due, merge_small, remove_store, step as upkeep_step};
pub(crate) use vector_rows::{
    Embeddings, EncoderRow, Lines, MemoryVectors, PassageVector, PutVectors, StoredPassage,
    StoredVectors, add_encoder, each_vectors_after, embeddings, encoder, forget_rejected,
    incomplete_stores, notes_without_vectors, put_vectors, remove_outdated,
};
pub(crate) use view::{List, Overlay, SegmentView, StoreView};

#[cfg(test)]
mod tests;
