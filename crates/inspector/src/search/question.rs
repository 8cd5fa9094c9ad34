//! What is searched for, as the address says it.

use quipu_core::model::{Actor, Store, StoreId, Timestamp};
use quipu_core::timeframe;
use quipu_knowledge::{SearchFilter, SearchPage, SearchRequest, Total};
use quipu_service::caller::Need;

use crate::choice;
use crate::form::address;
use crate::paging::Paging;
use crate::reply::Trouble;
use crate::visit::Visit;

use super::{HITS_PER_PAGE, REACHABLE_MAX, SEARCH};

/// What is searched for.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    /// The query as typed.
    pub(super) text: String,
    /// The chosen stores; none means all that the visitor may read.
    pub(super) stores: Vec<StoreId>,
    /// One of these types, if there are any.
    pub(super) kinds: Vec<String>,
    /// All of these tags.
    pub(super) tags: Vec<String>,
    /// The author of the newest version.
    pub(super) author: Option<Actor>,
    /// Whether the parts of each score are shown.
    pub(super) explain: bool,
    /// The time since when it must have changed, as written.
    pub(super) since: Option<String>,
    since_at: Option<Timestamp>,
}

impl Question {
    /// Reads the address of a visit. A store that the visitor may not read, or that is gone, is an error:
    /// without it, the search would be wider than what the address says.
    pub(super) fn new(visit: &Visit<'_>, readable: &[Store]) -> Result<Self, Trouble> {
        let query = &visit.query;
        let mut stores = Vec::new();
        for id in query.all("store") {
            let store = readable.iter().find(|store| store.id.to_string() == id);
            let store = store.ok_or_else(|| {
                Trouble::NotFound(
                    "A store of this search does not exist, or you may not read it. Search in all \
                     stores instead."
                        .to_owned(),
                )
            })?;
            stores.push(store.id);
        }
        for store in choice::named(visit, query, Need::Read)? {
            if !stores.contains(&store.id) {
                stores.push(store.id);
            }
        }
        let author = query.get("author").map(str::parse).transpose();
        let author = author.map_err(|error| Trouble::Invalid(format!("author: {error}")))?;
        let since = query.get("since").map(str::to_owned);
        let at = |text: &String| timeframe::since(text, visit.engine.now());
        let since_at = since.as_ref().map(|text| {
            at(text).ok_or_else(|| {
                Trouble::Invalid("since: use a time such as `7d` or `2026-11-15`".to_owned())
            })
        });
        Ok(Self {
            text: query.text("q").unwrap_or_default().to_owned(),
            stores,
            kinds: query.all("type").map(str::to_owned).collect(),
            tags: query.all("tag").map(str::to_owned).collect(),
            author,
            explain: query.get("explain") == Some("1"),
            since_at: since_at.transpose()?,
            since,
        })
    }

    /// Returns whether nothing is asked for yet.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs().is_empty()
    }

    /// Returns a page of the hits.
    pub(super) fn answer(
        &self,
        visit: &Visit<'_>,
        paging: Paging,
        readable: &[Store],
    ) -> Result<SearchPage, Trouble> {
        let all = || readable.iter().map(|store| store.id).collect();
        let stores = if self.stores.is_empty() { all() } else { self.stores.clone() };
        let filter = SearchFilter {
            kinds: self.kinds.clone(),
            tags: self.tags.clone(),
            changed_after: self.since_at,
            ..SearchFilter::default()
        };
        let new = SearchRequest::new(stores, self.text.as_str());
        let asked_by = Some(visit.caller.actor.clone());
        let request = SearchRequest { filter, explain: self.explain, asked_by, ..new };
        let Some(author) = &self.author else {
            let (offset, limit) = (paging.offset(), HITS_PER_PAGE);
            return Ok(visit.engine.search(&SearchRequest { offset, limit, ..request })?);
        };
        // The index does not know authors, so the best hits are filtered here.
        let request = SearchRequest { limit: REACHABLE_MAX, ..request };
        let mut found = visit.engine.search(&request)?;
        let is_lower_bound = found.total.is_lower_bound || found.total.count > REACHABLE_MAX;
        found.hits.retain(|hit| hit.actor == *author);
        found.total = Total { count: found.hits.len(), is_lower_bound };
        found.hits = paging.cut(&found.hits).cloned().collect();
        Ok(found)
    }

    /// Returns the names and values that the address has, besides the number of the page.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("q", self.text.clone())];
        pairs.extend(self.stores.iter().map(|store| ("store", store.to_string())));
        pairs.extend(self.kinds.iter().map(|kind| ("type", kind.clone())));
        pairs.extend(self.tags.iter().map(|tag| ("tag", tag.clone())));
        pairs.extend(self.author.iter().map(|author| ("author", author.to_string())));
        pairs.extend(self.since.iter().map(|since| ("since", since.clone())));
        pairs.extend(self.explain.then(|| ("explain", "1".to_owned())));
        pairs.retain(|(_, value)| !value.is_empty());
        pairs
    }

    /// Returns the address of the first page of this search.
    pub(super) fn address(&self) -> String {
        address(SEARCH, &self.pairs())
    }

    /// Returns the address of this search with the parts of each score.
    pub(super) fn explained(&self) -> String {
        Self { explain: true, ..self.clone() }.address()
    }

    /// Returns the address of this search in one store.
    pub(super) fn in_store(&self, store: StoreId) -> String {
        Self { stores: vec![store], ..self.clone() }.address()
    }

    /// Returns the address of this search among memories of a type.
    pub(super) fn of_kind(&self, kind: &str) -> String {
        Self { kinds: vec![kind.to_owned()], ..self.clone() }.address()
    }

    /// Returns the address of this search among memories that also have a tag.
    pub(super) fn with_tag(&self, tag: &str) -> String {
        let mut narrowed = self.clone();
        narrowed.tags.push(tag.to_owned());
        narrowed.address()
    }

    /// Returns the address of this search among memories that an author has written last.
    pub(super) fn by_author(&self, author: &Actor) -> String {
        Self { author: Some(author.clone()), ..self.clone() }.address()
    }
}
