//! Suggestions: the few memories relevant to a text.
//!
//! A host asks with what is about to be given to a model (a prompt, a file, a task) and puts the answer
//! in front of it. Nobody looks at the answer in between, so it has to be short, to say where each text
//! comes from, and to be empty if nothing is known about the subject: a memory that has two words in
//! common with a prompt by chance costs tokens and misleads.
//!
//! The most telling words of the text are searched for, as in any search; [`evidence`] decides how much
//! a memory must have of them. Notes that are expired are replaced by their successors, or left out.

mod evidence;
mod picks;
mod semantic;

use std::collections::HashSet;

use quipu_core::Error;
use quipu_core::engine::existing_store;
use quipu_core::model::{Actor, MemoryId, MemoryPath, StoreId, View};
use quipu_notes::tokenizer::Language;
use quipu_notes::{Note, Phrase, excerpt};

use crate::Knowledge;
use crate::entry::link_keys;
use crate::lookup::Lookup;
use crate::names::{Cards, NoteCard};
use crate::search::{Freshness, Phrases, Ranking, SimilarScore};

use crate::index::Space;
use evidence::Subject;
use picks::Pick;
use semantic::{EmbeddedText, SemanticMatches};

/// What to suggest memories for.
#[derive(Clone, Debug)]
pub struct SuggestRequest {
    /// The stores to look in.
    pub stores: Vec<StoreId>,
    /// The prompt, file or task. What exceeds [`TEXT_SIZE_BYTES_MAX`] is not read.
    pub text: String,
    /// How many tokens the suggestions may take; see [`tokens`].
    pub budget_tokens: usize,
    /// The maximum number of suggestions.
    pub limit: usize,
    /// Memories that are known already.
    pub exclude: Vec<MemoryId>,
    /// Who asks; see [`SearchRequest::asked_by`](crate::SearchRequest::asked_by).
    pub asked_by: Option<Actor>,
}

impl SuggestRequest {
    /// Returns a request with the usual limits.
    pub fn new(stores: Vec<StoreId>, text: impl Into<String>) -> Self {
        let (budget_tokens, limit) = (BUDGET_TOKENS_DEFAULT, LIMIT_DEFAULT);
        let (text, exclude, asked_by) = (text.into(), Vec::new(), None);
        Self { stores, text, budget_tokens, limit, exclude, asked_by }
    }
}

/// The memories relevant to a text.
#[derive(Clone, Debug, Default)]
pub struct Suggestions {
    /// The suggestions, best first.
    pub items: Vec<Suggestion>,
    /// What they take, with the words around them.
    pub tokens: usize,
    /// Memories that match and are left out, because they are expired.
    pub left_out: Vec<LeftOut>,
    /// Whether the end of the text was not read.
    pub is_text_cut: bool,
    /// Whether acknowledged changes may be missing, because the index can neither be written nor
    /// completed in memory.
    pub is_behind: bool,
}

/// A memory relevant to a text, and why.
#[derive(Clone, Debug)]
pub struct Suggestion {
    /// The memory.
    pub note: NoteCard,
    /// The relevance; higher is better.
    pub score: f64,
    /// The words of the text that it has, as written there, the most telling first.
    pub words: Vec<String>,
    /// How similar it is to the text, if it says the same in other words.
    pub similar: Option<SimilarScore>,
    /// Why it counts less, if it is stale.
    pub freshness: Option<Freshness>,
    /// The memories that match and that it replaces.
    pub replaces: Vec<MemoryPath>,
    /// Other suggestions that it links to.
    pub links_to: Vec<MemoryPath>,
    /// The note without its frontmatter, or the passage that matches best.
    pub text: String,
    /// Whether `text` is all of the note.
    pub is_whole: bool,
    /// The author of the version that was read.
    pub actor: Actor,
    /// What it takes; see [`tokens`].
    pub tokens: usize,
}

/// A memory that matches and is not suggested.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Where it is.
    pub path: MemoryPath,
    /// Why it is left out.
    pub freshness: Freshness,
}

/// How much of a text is read.
pub const TEXT_SIZE_BYTES_MAX: usize = 100 * 1024;
/// The budget of a request that names none.
pub const BUDGET_TOKENS_DEFAULT: usize = 1000;
/// The largest budget.
pub const BUDGET_TOKENS_MAX: usize = 100_000;
/// The number of suggestions of a request that names none.
pub const LIMIT_DEFAULT: usize = 5;
/// The largest number of suggestions.
pub const LIMIT_MAX: usize = 50;

/// What the sentence before the suggestions takes.
const FRAME_TOKENS: usize = 50;
/// The author, the time and the punctuation around a suggestion, in bytes.
const HEAD_SIZE_BYTES: usize = 120;
/// A longer note is shown by an excerpt, however large the budget is.
const EXCERPT_SIZE_BYTES_MAX: usize = 2000;
/// A shorter excerpt says too little.
const EXCERPT_SIZE_BYTES_MIN: usize = 120;
/// The number of suggestions that share the budget, at least.
const SHARES: usize = 3;
/// How many links of a suggestion are compared with the other suggestions.
const LINKS_MAX: usize = 200;

/// Estimates how many tokens a text of a size takes: one for four bytes, which is right for English and
/// too many for most other languages.
pub fn tokens(size_bytes: usize) -> usize {
    size_bytes.div_ceil(4)
}

impl Knowledge {
    /// Returns the memories relevant to a text, within a budget of tokens.
    ///
    /// Equal requests have equal answers until something changes.
    pub fn suggest(&self, request: &SuggestRequest) -> Result<Suggestions, Error> {
        let mut request = request.clone();
        let mut seen = HashSet::new();
        request.stores.retain(|store| seen.insert(*store));
        let end = request.text.floor_char_boundary(TEXT_SIZE_BYTES_MAX);
        let is_text_cut = end < request.text.len();
        request.text.truncate(end);
        let asked = &EmbeddedText::new(self, &request)?;
        let suggestions = self.lookup(&request.stores, |lookup| {
            for &store in &request.stores {
                existing_store(lookup.reader, store)?;
            }
            let languages = &lookup.languages(&request.stores)?;
            let request = &request;
            Suggesting { knowledge: self, lookup, request, asked, languages }.suggestions()
        })?;
        Ok(Suggestions { is_text_cut, ..suggestions })
    }
}

/// One request.
struct Suggesting<'s> {
    knowledge: &'s Knowledge,
    lookup: &'s Lookup<'s>,
    request: &'s SuggestRequest,
    /// The text as a vector.
    asked: &'s Option<EmbeddedText>,
    /// The languages of the stores.
    languages: &'s [Language],
}

/// A memory with its text.
struct Readable {
    card: crate::card::Card,
    note: Note,
    text: String,
    actor: Actor,
}

impl Suggesting<'_> {
    fn suggestions(&self) -> Result<Suggestions, Error> {
        let (lookup, request) = (self.lookup, self.request);
        let failed = |error| lookup.failed(error);
        let views: Vec<_> = request.stores.iter().filter_map(|it| lookup.view(*it)).collect();
        let mut phrases = Phrases::new(Space::Memories, self.knowledge.scoring);
        let subject = Subject::new(&request.text, self.languages, &mut phrases);
        let now = self.knowledge.judged_at();
        let ranking = Ranking::new(&views, &phrases).map_err(failed)?.judged_at(now);
        let subject = subject.weighed(&ranking).map_err(failed)?;
        let mut suggestions = Suggestions { is_behind: lookup.is_behind, ..Suggestions::default() };
        let alike = match self.asked.as_ref().filter(|_| subject.has_evidence()) {
            Some(asked) => {
                SemanticMatches::new(self.knowledge, asked, &views, &ranking).map_err(failed)?
            }
            None => None,
        };
        let bearing = (&subject, alike.as_ref());
        let picks = self.picks(&ranking, bearing, &mut suggestions.left_out)?;
        if picks.is_empty() {
            return Ok(suggestions);
        }
        suggestions.tokens = FRAME_TOKENS;
        let mut cards = Cards::new(lookup);
        for pick in picks {
            if suggestions.items.len() >= request.limit {
                break;
            }
            let left = request.budget_tokens.saturating_sub(suggestions.tokens);
            let shown: Vec<_> = pick.words.iter().flat_map(|word| word.phrases(&phrases)).collect();
            if let Some(item) = self.shown(pick, &shown, left, &mut cards)? {
                suggestions.tokens += item.tokens;
                suggestions.items.push(item);
            }
        }
        if suggestions.items.is_empty() {
            suggestions.tokens = 0;
        }
        self.link(&mut suggestions.items)?;
        Ok(suggestions)
    }

    /// Reads a memory; `None` if its text was redacted since the index was read.
    fn readable(&self, store: StoreId, memory: MemoryId) -> Result<Option<Readable>, Error> {
        let lookup = self.lookup;
        let card = lookup.note(store, memory)?.ok_or_else(|| lookup.damaged())?;
        let Some(version) = lookup.reader.version(store, card.version, View::Full)? else {
            return Ok(None);
        };
        let Some(content) = &version.content else { return Ok(None) };
        let text = content.as_str().to_owned();
        Ok(Some(Readable { card, note: Note::parse_header(&text), text, actor: version.actor }))
    }

    /// Returns a suggestion of at most `left` tokens; `None` if it does not fit.
    fn shown(
        &self,
        Pick { score, words, similar, replaces, found }: Pick,
        phrases: &[&Phrase],
        left: usize,
        cards: &mut Cards<'_>,
    ) -> Result<Option<Suggestion>, Error> {
        let Readable { card, note, text, actor } = found;
        let words: Vec<_> = words.iter().map(|word| word.written.clone()).collect();
        let freshness = Freshness::of(&note.metadata, self.knowledge.judged_at());
        let replaced = replaces.iter().map(MemoryPath::as_str);
        let said = [card.path.as_str(), &card.title].into_iter().chain(replaced);
        let said = said.chain(words.iter().map(String::as_str)).map(|it| it.len() + 2);
        let head = HEAD_SIZE_BYTES
            + said.sum::<usize>()
            + freshness.as_ref().map_or(0, |it| it.to_string().len());
        let share = self.request.budget_tokens / SHARES * 4;
        let room = share.min(EXCERPT_SIZE_BYTES_MAX).min((left * 4).saturating_sub(head));
        if room < EXCERPT_SIZE_BYTES_MIN {
            return Ok(None);
        }
        let body = text.get(note.body.clone()).unwrap_or_default().trim();
        // Each line is quoted, which takes two bytes.
        let quoted = |text: &str| text.len() + 2 * text.lines().count();
        let is_whole = quoted(body) <= room;
        let text = if is_whole {
            body.to_owned()
        } else {
            // Lines have some thirty bytes or more, so a sixteenth is enough for their quotes.
            excerpt(body, note.language, phrases, room - room / 16)
        };
        let tokens = tokens(head + quoted(&text));
        if tokens > left {
            return Ok(None);
        }
        let note = cards.card(card)?;
        let links_to = Vec::new();
        Ok(Some(Suggestion {
            note,
            score,
            words,
            similar,
            freshness,
            replaces,
            links_to,
            text,
            is_whole,
            actor,
            tokens,
        }))
    }

    /// Notes which suggestions link to each other.
    fn link(&self, items: &mut [Suggestion]) -> Result<(), Error> {
        let mut cards = Vec::new();
        for item in items.iter() {
            let card = self.lookup.full_note(item.note.store, item.note.memory)?;
            cards.push(card.ok_or_else(|| self.lookup.damaged())?);
        }
        for (item, card) in items.iter_mut().zip(&cards) {
            let keys = card.links.iter().take(LINKS_MAX);
            let keys: HashSet<_> =
                keys.flat_map(|link| link_keys(&card.path, &link.target)).collect();
            let is_linked = |other: &&crate::card::Card| {
                other.store == card.store
                    && other.memory != card.memory
                    && other.names.iter().any(|name| keys.contains(name))
            };
            item.links_to.extend(cards.iter().filter(is_linked).map(|it| it.path.clone()));
        }
        Ok(())
    }
}
