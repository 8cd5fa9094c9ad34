//! `quipu log`, `show`, `diff` and `restore`.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use quipu_core::Error;
use quipu_core::backend::{Archived, Span, VersionFilter, VersionQuery};
use quipu_core::diff::{Diff, Line};
use quipu_core::model::{
    Actor, Content, MemoryId, MemoryPath, Operation, Refusal, Store, StoreId, Timestamp, Version,
    VersionId, View,
};
use quipu_core::timeframe;
use quipu_service::wire::{DiffBody, ListBody, VersionBody};
use serde::Serialize;

use super::memories::{print_text, report};
use crate::args::{DiffArguments, LogArguments, RestoreArguments, ShowArguments};
use crate::authors::Authors;
use crate::context::{Context, Data, path};
use crate::failure::Failure;
use crate::pager::Pager;
use crate::print::{Form, answer, count, local, note, size, style};

/// How many versions are read at a time: small enough that a long log starts without delay.
const PAGE: usize = 256;

/// The default limit on a terminal without a pager.
const TERMINAL_LIMIT: usize = 50;

pub(super) fn log(context: &Context, arguments: &LogArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let stores = if arguments.all { data.stores(Archived::Show)? } else { vec![data.store()?] };
    if arguments.refused {
        return refused(context, &data, &stores, arguments);
    }
    let mut versions = Versions::new(&data, &stores, arguments)?;
    let limit = arguments.limit.unwrap_or(usize::MAX);
    if context.form == Form::Json {
        let mut bodies = Vec::new();
        while bodies.len() < limit
            && let Some(version) = versions.next()?
        {
            bodies.push(VersionBody::from(&version));
        }
        return answer(context.form, &ListBody::complete(bodies), |_| Ok(()));
    }
    let mut pager = Pager::start(&context.settings.pager);
    let is_cut = arguments.limit.is_none() && !pager.is_paging() && io::stdout().is_terminal();
    let limit = if is_cut { TERMINAL_LIMIT } else { limit };
    let mut left_count = limit;
    let authors = data.authors();
    while left_count > 0
        && let Some(version) = versions.next()?
    {
        // The change in size is relative to the previous version.
        let before = data.engine.previous_version(&version, View::Basic)?;
        let store = stores.iter().find(|store| arguments.all && store.id == version.store);
        let shown = Shown { version: &version, before: before.as_ref(), store, authors: &authors };
        pager.write(|out| {
            if arguments.oneline {
                shown.one_line(out)
            } else {
                shown.header(out)?;
                writeln!(out)
            }
        })?;
        left_count -= 1;
    }
    if left_count == limit && limit > 0 {
        note("no versions match");
    }
    if is_cut && left_count == 0 && versions.next()?.is_some() {
        note(&format!(
            "only the newest {TERMINAL_LIMIT} versions are shown; `-n COUNT` shows more"
        ));
    }
    Ok(())
}

/// A refusal, as JSON.
#[derive(Serialize)]
struct RefusalBody {
    memory_store_id: String,
    path: String,
    created_at: String,
    actor: String,
    reason: String,
}

fn refused(
    context: &Context,
    data: &Data,
    stores: &[Store],
    arguments: &LogArguments,
) -> Result<(), Failure> {
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let mut refusals = Vec::new();
    for store in stores {
        refusals.extend(data.engine.refusals(store.id, limit)?);
    }
    refusals.sort_by_key(|refusal| Reverse(refusal.at));
    refusals.truncate(limit);
    let bodies = refusals.iter().map(|refusal| RefusalBody {
        memory_store_id: refusal.store.to_string(),
        path: refusal.path.clone(),
        created_at: refusal.at.to_string(),
        actor: refusal.actor.to_string(),
        reason: refusal.reason.clone(),
    });
    let authors = data.authors();
    answer(context.form, &ListBody::complete(bodies.collect()), |out| {
        for refusal in &refusals {
            let Refusal { path, reason, .. } = refusal;
            let author = authors.short(&refusal.actor);
            writeln!(out, "{}  {author}  {path} {reason}", local(refusal.at))?;
        }
        Ok(())
    })
}

/// The versions of some stores that the arguments select, newest first: a merge of one sorted source
/// per store.
struct Versions<'a> {
    data: &'a Data,
    /// One source per store.
    sources: Vec<Source>,
    /// Only changes by these actors; by anybody if empty.
    actors: Vec<Actor>,
    /// What the text must contain, in lower case.
    pattern: Option<String>,
}

/// The versions of one store that were read but not yet returned.
struct Source {
    store: StoreId,
    query: VersionQuery,
    buffer: VecDeque<Version>,
    is_exhausted: bool,
}

impl<'a> Versions<'a> {
    fn new(data: &'a Data, stores: &[Store], arguments: &LogArguments) -> Result<Self, Failure> {
        let actors = match arguments.actor.as_deref() {
            Some(text) => data.authors().matching(text)?,
            None => Vec::new(),
        };
        let pattern = arguments.grep.as_ref().map(|pattern| pattern.to_lowercase());
        let view = if pattern.is_some() { View::Full } else { View::Basic };
        let mut sources = Vec::new();
        for store in stores {
            let Some(mut filter) = filter(data, store, arguments)? else { continue };
            if let [only] = actors.as_slice() {
                filter.actors = vec![only.clone()];
            }
            sources.push(Source {
                store: store.id,
                query: VersionQuery { filter, before: None, limit: PAGE, view },
                buffer: VecDeque::new(),
                is_exhausted: false,
            });
        }
        Ok(Self { data, sources, actors, pattern })
    }

    fn next(&mut self) -> Result<Option<Version>, Failure> {
        loop {
            for source in &mut self.sources {
                source.fill(self.data)?;
            }
            let newest = self.sources.iter_mut().max_by_key(|source| source.newest());
            let Some(version) = newest.and_then(|source| source.buffer.pop_front()) else {
                return Ok(None);
            };
            if self.selects(&version) {
                return Ok(Some(version));
            }
        }
    }

    fn selects(&self, version: &Version) -> bool {
        let is_author = self.actors.is_empty() || self.actors.contains(&version.actor);
        let contains = |pattern: &String| {
            let content = version.content.as_ref();
            content.is_some_and(|content| content.as_str().to_lowercase().contains(pattern))
        };
        is_author && self.pattern.as_ref().is_none_or(contains)
    }
}

impl Source {
    fn fill(&mut self, data: &Data) -> Result<(), Failure> {
        if self.is_exhausted || !self.buffer.is_empty() {
            return Ok(());
        }
        let page = data.engine.versions(self.store, &self.query)?;
        self.query.before = page.next;
        self.is_exhausted = page.next.is_none();
        self.buffer.extend(page.items);
        Ok(())
    }

    fn newest(&self) -> Option<Timestamp> {
        self.buffer.front().map(|version| version.created_at)
    }
}

/// A version as the log shows it.
pub(super) struct Shown<'a> {
    pub(super) version: &'a Version,
    pub(super) before: Option<&'a Version>,
    /// The store, if versions of several stores are shown.
    pub(super) store: Option<&'a Store>,
    pub(super) authors: &'a Authors<'a>,
}

/// Returns the filter for a store, or `None` if the memory was never in it.
fn filter(
    data: &Data,
    store: &Store,
    arguments: &LogArguments,
) -> Result<Option<VersionFilter>, Failure> {
    let moment = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => timeframe::since(text, data.engine.now()).map(Some).ok_or_else(|| {
            Failure::usage(format!("`{text}` is not a time such as `7d` or `2026-11-15`"))
        }),
    };
    let all = Span::default();
    let created = Span {
        first: moment(&arguments.since)?.unwrap_or(all.first),
        last: moment(&arguments.until)?.unwrap_or(all.last),
    };
    let memory = match memory(data, store, arguments.memory.as_deref()) {
        // The memory may be in another store.
        Err(failure) if arguments.all && failure.is_not_found() => return Ok(None),
        memory => memory?,
    };
    let operation = arguments.operation;
    Ok(Some(VersionFilter { memory, path: None, operation, actors: Vec::new(), created }))
}

/// Returns the memory with this id, or the one that is or was at this path.
fn memory(data: &Data, store: &Store, text: Option<&str>) -> Result<Option<MemoryId>, Failure> {
    let Some(text) = text else { return Ok(None) };
    if let Ok(id) = text.parse() {
        let filter = VersionFilter { memory: Some(id), ..VersionFilter::default() };
        let query = VersionQuery { filter, before: None, limit: 1, view: View::Basic };
        if data.engine.versions(store.id, &query)?.items.is_empty() {
            let message = format!("no memory of the store has the id `{id}`");
            let hint = "`quipu ls -R -l` shows the ids";
            return Err(Failure::from(Error::not_found(message)).with_hint(hint));
        }
        return Ok(Some(id));
    }
    let newest = data.engine.history(store.id, &path(text)?, 1)?;
    Ok(newest.first().map(|version| version.memory))
}

fn color(operation: Operation) -> Style {
    match operation {
        Operation::Created => style(AnsiColor::Green),
        Operation::Modified => style(AnsiColor::Yellow),
        Operation::Deleted => style(AnsiColor::Red),
    }
}

fn path_text(version: &Version) -> &str {
    version.path.as_ref().map_or("(redacted)", MemoryPath::as_str)
}

impl Shown<'_> {
    fn header(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { version, before, store, authors } = *self;
        let color = color(version.operation);
        writeln!(out, "{color}version {}{color:#} ({})", version.id, version.operation)?;
        if let Some(store) = store {
            writeln!(out, "Store:  {}", store.name)?;
        }
        writeln!(out, "Path:   {}{}", path_text(version), moved_from(version, before))?;
        writeln!(out, "Actor:  {}", authors.full(&version.actor))?;
        writeln!(out, "Date:   {}", local(version.created_at))?;
        writeln!(out, "Size:   {}", size_change(version, before))?;
        if let Some(redaction) = &version.redaction {
            writeln!(out, "Redacted by {} on {}", redaction.by, local(redaction.at))?;
        }
        Ok(())
    }

    pub(super) fn one_line(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { version, before, store, authors } = *self;
        let store = store.map_or_else(String::new, |store| format!("{} ", store.name));
        let color = color(version.operation);
        writeln!(
            out,
            "{color}{}{color:#} {:8} {} {} {store}{}{} ({})",
            version.id,
            version.operation,
            local(version.created_at),
            authors.short(&version.actor),
            path_text(version),
            moved_from(version, before),
            size_change(version, before),
        )
    }
}

fn moved_from(version: &Version, before: Option<&Version>) -> String {
    match (&version.path, before.and_then(|before| before.path.as_ref())) {
        (Some(path), Some(old)) if path != old && version.operation == Operation::Modified => {
            format!(" (was {old})")
        }
        (Some(_) | None, _) => String::new(),
    }
}

/// Formats the size and the change in size.
fn size_change(version: &Version, before: Option<&Version>) -> String {
    if version.redaction.is_some() {
        return "unknown".to_owned();
    }
    let now = version.size_bytes.unwrap_or(0);
    let was = before.map_or(Some(0), |before| match before.operation {
        Operation::Deleted => Some(0),
        Operation::Created | Operation::Modified => before.size_bytes,
    });
    match was {
        None => size(now),
        Some(was) if now >= was => format!("{} (+{})", size(now), now - was),
        Some(was) => format!("{} (-{})", size(now), was - now),
    }
}

pub(super) fn show(context: &Context, arguments: &ShowArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let version = data.version(arguments.version)?;
    if arguments.text && context.form == Form::Text {
        if version.redaction.is_some() {
            let message = format!("the text of `{}` was redacted", version.id);
            return Err(Failure::from(Error::invalid(message)));
        }
        return print_text(version.content.as_ref());
    }
    let before = data.engine.previous_version(&version, View::Full)?;
    let authors = data.authors();
    answer(context.form, &VersionBody::from(&version), |out| {
        let (version, before) = (&version, before.as_ref());
        Shown { version, before, store: None, authors: &authors }.header(out)?;
        if version.redaction.is_some() {
            return Ok(());
        }
        if before.as_ref().is_some_and(|before| before.redaction.is_some()) {
            writeln!(out, "The previous text was redacted, so all of this one is shown.")?;
        }
        let old = before.as_ref().and_then(|before| before.content.as_ref());
        let text = |content: Option<&Content>| content.map_or("", Content::as_str).to_owned();
        let diff = Diff::new(&text(old), &text(version.content.as_ref()));
        writeln!(out)?;
        unified(out, &diff, 3)
    })
}

pub(super) fn diff(context: &Context, arguments: &DiffArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let (store, old, new) = compared(&data, arguments)?;
    let diff = data.engine.diff(store, old, new)?;
    let body = DiffBody::new(&diff, arguments.unified);
    answer(context.form, &body, |out| {
        if arguments.stat {
            let (added, removed) = (diff.added_count(), diff.removed_count());
            let added = count(added, "line added", "lines added");
            let removed = count(removed, "line removed", "lines removed");
            return writeln!(out, "{added}, {removed}");
        }
        if diff.is_empty() {
            return Ok(());
        }
        let old = old.map_or_else(|| "/dev/null".to_owned(), |id| id.to_string());
        let bold = Style::new().bold();
        writeln!(out, "{bold}--- {old}{bold:#}\n{bold}+++ {new}{bold:#}")?;
        unified(out, &diff, arguments.unified)
    })
}

/// Returns the two versions to compare; the first is `None` for the first version of a memory.
fn compared(
    data: &Data,
    arguments: &DiffArguments,
) -> Result<(StoreId, Option<VersionId>, VersionId), Failure> {
    if let Ok(first) = arguments.old.parse::<VersionId>() {
        let first = data.version(first)?;
        if let Some(second) = arguments.new {
            return Ok((first.store, Some(first.id), second));
        }
        let before = data.engine.previous_version(&first, View::Basic)?;
        return Ok((first.store, before.map(|before| before.id), first.id));
    }
    if arguments.new.is_some() {
        return Err(Failure::usage("give either one path, or one or two versions"));
    }
    let store = data.store()?;
    let newest = data.engine.history(store.id, &path(&arguments.old)?, 2)?;
    let mut ids = newest.iter().map(|version| version.id);
    let new = ids.next().ok_or_else(|| Failure::other("the memory has no versions"))?;
    Ok((store.id, ids.next(), new))
}

fn unified(out: &mut dyn Write, diff: &Diff, context: usize) -> io::Result<()> {
    let (cyan, green, red) =
        (style(AnsiColor::Cyan), style(AnsiColor::Green), style(AnsiColor::Red));
    for hunk in diff.hunks(context) {
        writeln!(out, "{cyan}{}{cyan:#}", hunk.header())?;
        for line in &hunk.lines {
            match line {
                Line::Kept(_) => writeln!(out, "{line}")?,
                Line::Removed(_) => writeln!(out, "{red}{line}{red:#}")?,
                Line::Added(_) => writeln!(out, "{green}{line}{green:#}")?,
            }
        }
    }
    Ok(())
}

pub(super) fn restore(context: &Context, arguments: &RestoreArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let to = arguments.to.as_deref().map(path).transpose()?;
    let written = match arguments.target.parse() {
        Ok(id) => {
            let version = data.version(id)?;
            data.engine.restore(&data.actor, version.store, version.id, to.as_ref())?
        }
        Err(_) => {
            let store = data.store()?;
            let memory = memory(&data, &store, Some(&arguments.target))?;
            let memory = memory.ok_or_else(|| Failure::usage("name a version or a path"))?;
            data.engine.undo(&data.actor, store.id, memory, to.as_ref())?.1
        }
    };
    report(context, &written)
}
