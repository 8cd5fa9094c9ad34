//! What a form asks to redact.

use std::ops::Range;
use std::time::Duration;

use quipu_core::backend::Span;
use quipu_core::engine::{
    Heads, Matcher, Pattern, Principal, RedactionPlan, Scope, Selection, Terms,
};
use quipu_core::model::{
    Actor, MemoryId, MemoryPath, Reason, Receipt, StoreId, Timestamp, VersionId,
};
use quipu_service::caller::Need;
use quipu_service::pattern::RegexMatcher;

use crate::choice;
use crate::reply::Trouble;
use crate::sessions::{time, tree_path};
use crate::visit::Visit;

use super::require_manager;

/// The fields that say what to redact, where, and what becomes of live memories.
pub(super) const FIELDS: [&str; 11] = [
    "matching",
    "regex",
    "path",
    "memory",
    "actor",
    "since",
    "until",
    "store",
    choice::NAMED,
    "all",
    "and_heads",
];

/// How long a regular expression may search, in all texts together.
const REGEX_TIME_MAX: Duration = Duration::from_secs(30);

/// How many authors a key may stand for. Each of them is named in the receipt.
const ACTORS_MAX: usize = 100;

/// The field that says which line ends the text has that is looked for.
pub(super) const ENDS: &str = "ends";

/// How the lines of a text end. A browser sends every line break as CR LF, whatever was typed or pasted,
/// so the form cannot say it; the plan finds it out and the confirmation carries it as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// LF.
    Lf,
    /// CR LF.
    CrLf,
    /// Some lines with LF, others with CR LF.
    Mixed,
}

impl LineEnds {
    fn of(word: &str) -> Option<Self> {
        [Self::Lf, Self::CrLf, Self::Mixed].into_iter().find(|ends| ends.as_str() == word)
    }

    /// Returns its word in a form.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "lf",
            Self::CrLf => "crlf",
            Self::Mixed => "mixed",
        }
    }

    /// Returns what a person calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lf => "LF line ends",
            Self::CrLf => "CR LF line ends",
            Self::Mixed => "mixed line ends",
        }
    }
}

/// What a redaction would do.
pub(super) struct Planned {
    /// What is found with these line ends.
    pub(super) plan: RedactionPlan,
    /// The line ends that the plan is about; `None` for a selection without line breaks.
    pub(super) ends: Option<LineEnds>,
    /// The other line ends with which the text is found, and in how many versions.
    pub(super) other: Option<(LineEnds, usize)>,
}

/// Finds a text whatever its lines end with.
struct AnyEnds<'a>(&'a str);

impl Matcher for AnyEnds<'_> {
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        // The search is in a copy whose lines end with LF; `skipped` has the places of those that did not.
        let mut bare = String::with_capacity(text.len());
        let mut skipped = Vec::new();
        for (place, piece) in text.split("\r\n").enumerate() {
            if place > 0 {
                skipped.push(bare.len());
                bare.push('\n');
            }
            bare.push_str(piece);
        }
        // The CR of a line break belongs to a match that starts with the break, and not to one that ends
        // before it.
        let whole = |at: usize| at + skipped.partition_point(|skip| *skip < at);
        let found = bare.match_indices(self.0);
        found.map(|(at, it)| whole(at)..whole(at + it.len())).collect()
    }
}

/// What a form asks to redact, checked and authorized.
pub(super) struct Request {
    /// The text, with LF line ends.
    matching: Option<String>,
    ends: Option<LineEnds>,
    regex: Option<RegexMatcher>,
    path: Option<MemoryPath>,
    memory: Option<MemoryId>,
    actors: Vec<Actor>,
    created: Span,
    scope: Scope,
    heads: Heads,
}

impl Request {
    /// Reads the submitted form. The visitor must have the right to manage every store that it names.
    pub(super) fn new(visit: &Visit<'_>) -> Result<Self, Trouble> {
        require_manager(visit)?;
        let form = &visit.form;
        let regex = form.get("regex").map(|regex| RegexMatcher::new(regex, REGEX_TIME_MAX));
        let memory = form.get("memory").map(|id| {
            id.trim().parse().map_err(|_malformed| {
                Trouble::Invalid(format!("`{id}` is not the id of a memory, such as `mem_…`"))
            })
        });
        let heads = if form.get("and_heads").is_some() { Heads::TakeOut } else { Heads::Refuse };
        Ok(Self {
            matching: form.get("matching").map(|text| text.replace("\r\n", "\n")),
            ends: form.get(ENDS).and_then(LineEnds::of),
            regex: regex.transpose()?,
            path: form.get("path").map(tree_path).transpose()?.flatten(),
            memory: memory.transpose()?,
            actors: actors(visit)?,
            created: Span {
                first: time(visit, form, "since")?.unwrap_or(Timestamp::MIN),
                last: time(visit, form, "until")?.unwrap_or(Timestamp::MAX),
            },
            scope: scope(visit)?,
            heads,
        })
    }

    fn has_lines(&self) -> bool {
        self.matching.as_ref().is_some_and(|text| text.contains('\n'))
    }

    /// Calls a function with the selection of the texts that have these line ends.
    fn with_selection<T>(
        &self,
        ends: LineEnds,
        call: impl FnOnce(&Selection<'_>) -> Result<T, quipu_core::Error>,
    ) -> Result<T, Trouble> {
        let (spelled, any);
        let pattern = match (&self.matching, &self.regex) {
            (Some(_), Some(_)) => {
                return Err(Trouble::Invalid(
                    "give either a text or a regular expression, not both".to_owned(),
                ));
            }
            (Some(text), None) => Some(match ends {
                LineEnds::Lf => Pattern::text(text)?,
                LineEnds::CrLf => {
                    spelled = text.replace('\n', "\r\n");
                    Pattern::text(&spelled)?
                }
                LineEnds::Mixed => {
                    any = AnyEnds(text);
                    Pattern::matcher(&any, "a text with any line ends")?
                }
            }),
            (None, Some(regex)) => Some(Pattern::matcher(regex, "a regular expression")?),
            (None, None) => None,
        };
        Ok(call(&Selection {
            pattern,
            path: self.path.clone(),
            memory: self.memory,
            actors: self.actors.clone(),
            versions: Vec::<VersionId>::new(),
            created: self.created,
        })?)
    }

    fn plan_with(&self, visit: &Visit<'_>, ends: LineEnds) -> Result<RedactionPlan, Trouble> {
        self.with_selection(ends, |selection| {
            visit.engine.plan_redaction(&self.scope, selection, self.heads)
        })
    }

    /// Returns what the redaction would do, with the line ends with which the text is found.
    pub(super) fn plan(&self, visit: &Visit<'_>) -> Result<Planned, Trouble> {
        if !self.has_lines() {
            let plan = self.plan_with(visit, LineEnds::Lf)?;
            return Ok(Planned { plan, ends: None, other: None });
        }
        // One memory may have both kinds of line ends. Only what is not found like this is nowhere, and
        // only then may a receipt say so.
        let any = self.plan_with(visit, LineEnds::Mixed)?;
        let whole = |plan| Planned { plan, ends: Some(LineEnds::Mixed), other: None };
        if any.hits_count() == 0 || self.ends == Some(LineEnds::Mixed) {
            return Ok(whole(any));
        }
        let mut kinds = [LineEnds::Lf, LineEnds::CrLf];
        if self.ends == Some(LineEnds::CrLf) {
            kinds.reverse();
        }
        let [first, second] = kinds;
        let plan = self.plan_with(visit, first)?;
        let other = self.plan_with(visit, second)?;
        Ok(match (plan.hits_count() > 0, other.hits_count() > 0) {
            (true, true) => {
                let other = Some((second, other.versions_count()));
                Planned { plan, ends: Some(first), other }
            }
            (true, false) => Planned { other: rest(&any, &plan), ends: Some(first), plan },
            (false, true) => Planned { other: rest(&any, &other), ends: Some(second), plan: other },
            (false, false) => whole(any),
        })
    }

    /// Redacts, if the plan is still the one whose digest is in the form.
    pub(super) fn redact(&self, visit: &Visit<'_>) -> Result<Receipt, Trouble> {
        let expect = visit.form.get("expect").map(str::to_owned);
        if expect.is_none() {
            return Err(Trouble::Invalid("look at the plan first".to_owned()));
        }
        let reason = visit.form.get("reason").map(Reason::new).transpose();
        let reason = reason.map_err(|error| Trouble::Invalid(error.to_string()))?;
        let terms = Terms { heads: self.heads, expect, reason };
        let actor = &visit.caller.actor;
        self.with_selection(self.ends.unwrap_or(LineEnds::Lf), |selection| {
            visit.engine.redact_selected(actor, &self.scope, selection, &terms)
        })
    }
}

/// Returns how many versions have the text with mixed line ends, if one kind of them does not find all.
fn rest(any: &RedactionPlan, found: &RedactionPlan) -> Option<(LineEnds, usize)> {
    let count = any.versions_count().saturating_sub(found.versions_count());
    (count > 0).then_some((LineEnds::Mixed, count))
}

/// Returns the authors that the form names. A key stands for its sessions too, as in a revert.
fn actors(visit: &Visit<'_>) -> Result<Vec<Actor>, Trouble> {
    let Some(id) = visit.form.get("actor") else { return Ok(Vec::new()) };
    let actors = match id.trim().parse() {
        Ok(Actor::ApiKey(key)) => visit.engine.actors_of_key(key)?,
        Ok(actor) => vec![actor],
        Err(error) => return Err(Trouble::Invalid(format!("`{id}`: {error}"))),
    };
    if actors.len() > ACTORS_MAX {
        return Err(Trouble::Invalid(format!(
            "the key has {} sessions, but one redaction names at most {ACTORS_MAX} authors; choose sessions",
            actors.len() - 1
        )));
    }
    Ok(actors)
}

/// Returns where to search: the chosen stores, or all of the workspace.
fn scope(visit: &Visit<'_>) -> Result<Scope, Trouble> {
    let viewer = match &visit.caller.principal {
        Principal::Key(key) => Some(key.clone()),
        Principal::Session(_) => None,
    };
    let all = Scope { viewer, ..Scope::all(visit.caller.workspace) };
    if visit.form.get("all").is_some() {
        visit.caller.require_workspace(Need::Manage)?;
        return Ok(all);
    }
    let stores = visit.form.all("store").map(|id| visit.store_with_id(id, Need::Manage));
    let mut stores: Vec<StoreId> =
        stores.map(|store| store.map(|store| store.id)).collect::<Result<_, _>>()?;
    for store in choice::named(visit, &visit.form, Need::Manage)? {
        if !stores.contains(&store.id) {
            stores.push(store.id);
        }
    }
    if stores.is_empty() {
        return Err(Trouble::Invalid("choose the stores to search, or all of them".to_owned()));
    }
    Ok(Scope { stores: Some(stores), ..all })
}
