//! Suggestions for names that do not resolve.

use quipu_core::Error;
use quipu_core::backend::Reader;
use quipu_core::engine::existing_store;
use quipu_core::model::slug;
use quipu_notes::Phrase;

use super::{Cards, NAMED_MAX, NoteCard, Scope};
use crate::Knowledge;
use crate::index::{Fields, Space};
use crate::search::{Clause, Phrases, Ranking};

/// The maximum number of words of a name to look up.
const WORDS_MAX: usize = 12;

impl Knowledge {
    /// Returns at most `limit` memories with names similar to an unknown one, the most similar
    /// first.
    pub fn similar(
        &self,
        scope: &Scope,
        identifier: &str,
        limit: usize,
    ) -> Result<Vec<NoteCard>, Error> {
        let words = identifier.trim_start_matches("memory://").trim_end_matches(".md");
        let words = words.split(|letter: char| !letter.is_alphanumeric());
        let words: Vec<_> = words.filter(|word| !word.is_empty()).take(WORDS_MAX).collect();
        self.lookup(&scope.stores, |lookup| {
            let languages = lookup.languages(&scope.stores)?;
            let mut phrases = Phrases::new(Space::Memories, self.scoring);
            let mut wanted = Vec::new();
            for word in &words {
                let spellings = Phrase::spellings(word, &languages);
                let all = spellings.into_iter().chain(Phrase::prefix(word, &languages));
                let all = all.map(|phrase| Clause::Words(phrases.add(phrase, Fields::NAMES)));
                wanted.push(Clause::Any(all.collect()));
            }
            let words: Vec<_> = wanted.iter().flat_map(Clause::words).collect();
            let any = Clause::Any(wanted);
            let views: Vec<_> = scope.stores.iter().filter_map(|it| lookup.view(*it)).collect();
            let ranked = Ranking::new(&views, &phrases)
                .and_then(|ranking| ranking.best(&any, &words, limit));
            let mut near = Vec::new();
            let mut cards = Cards::new(lookup);
            for hit in ranked.map_err(|error| lookup.failed(error))?.hits {
                if let Some(card) = lookup.note(hit.store, hit.memory)? {
                    near.push(cards.card(card)?);
                }
            }
            Ok(near)
        })
    }

    /// Returns the error for an unknown name.
    pub(crate) fn nothing_called(&self, scope: &Scope, identifier: &str) -> Result<Error, Error> {
        let near = self.similar(scope, identifier, NAMED_MAX)?;
        let error = Error::not_found(format!("no memory is called `{identifier}`"));
        if near.is_empty() {
            return Ok(error.with_hint("list the store or search it to see what it holds"));
        }
        let near = self.engine.read(|reader| {
            near.iter().map(|card| named(reader, scope, card)).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(error.with_hint(format!("did you mean {}?", near.join(" or "))))
    }
}

/// Returns a name that resolves to a memory, and its title.
fn named(reader: &dyn Reader, scope: &Scope, card: &NoteCard) -> Result<String, Error> {
    let NoteCard { path, title, .. } = card;
    if card.store == scope.home {
        return Ok(format!("`{path}` ({title})"));
    }
    let store = existing_store(reader, card.store)?;
    Ok(format!("`memory://{}{path}` ({title})", slug(&store.name)))
}
