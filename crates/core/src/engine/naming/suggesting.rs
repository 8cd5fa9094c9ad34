//! What may have been meant by a name that means nothing.

use crate::Error;
use crate::backend::Reader;
use crate::index::{Column, IndexQuery, TermQuery, What};
use crate::model::slug;

use super::super::{Engine, existing_store};
use super::{Cards, NAMED_MAX, NoteCard, Scope};

/// The columns that hold what a memory is called.
const NAMES: &[Column] = &[Column::Title, Column::Extra];
/// How many words of a name are looked for.
const NAMED_WORDS_MAX: usize = 12;

impl Engine {
    /// Returns memories whose names are near to one that means nothing, the nearest first.
    pub fn suggest(
        &self,
        scope: &Scope,
        identifier: &str,
        limit: usize,
    ) -> Result<Vec<NoteCard>, Error> {
        let words = identifier.trim_start_matches("memory://").trim_end_matches(".md");
        let parts: Vec<_> = words
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(NAMED_WORDS_MAX)
            .flat_map(|word| [TermQuery::word(word, NAMES), TermQuery::prefix(word, NAMES)])
            .flatten()
            .collect();
        self.read_indexed(|reader| {
            let query = IndexQuery {
                stores: scope.stores.clone(),
                what: What::Memories,
                terms: TermQuery::Or(parts.clone()),
                fields: Vec::new(),
                paths: Vec::new(),
                changed_after: None,
                limit,
            };
            let mut near = Vec::new();
            let mut cards = Cards::new(reader);
            for hit in reader.search_index(&query)?.hits {
                if let Some(row) = reader.note(hit.store, hit.memory)? {
                    near.push(cards.card(row)?);
                }
            }
            Ok(near)
        })
    }

    /// Returns the error for a name that no memory has.
    pub(in crate::engine) fn nothing_called(
        &self,
        scope: &Scope,
        identifier: &str,
    ) -> Result<Error, Error> {
        let near = self.suggest(scope, identifier, NAMED_MAX)?;
        let error = Error::not_found(format!("no memory is called `{identifier}`"));
        Ok(if near.is_empty() {
            error.with_hint("list the store or search it to see what it holds")
        } else {
            let near = self.read(|reader| {
                near.iter().map(|card| named(reader, scope, card)).collect::<Result<Vec<_>, _>>()
            })?;
            error.with_hint(format!("did you mean {}?", near.join(" or ")))
        })
    }
}

/// Returns a name by which a memory can be asked for, and its title.
fn named(reader: &dyn Reader, scope: &Scope, card: &NoteCard) -> Result<String, Error> {
    let NoteCard { path, title, .. } = card;
    if card.store == scope.home {
        return Ok(format!("`{path}` ({title})"));
    }
    let store = existing_store(reader, card.store)?;
    Ok(format!("`memory://{}{path}` ({title})", slug(&store.name)))
}
