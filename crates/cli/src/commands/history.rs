//! `quipu log`, `show`, `diff` and `restore`.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use quipu_core::Error;
use quipu_core::backend::{Archived, Span, VersionFilter, VersionQuery};
use quipu_core::diff::{Diff, Line};
use quipu_core::model::{
    Actor, Content, Directory, MemoryId, MemoryPath, Operation, Refusal, Store, StoreId, Timestamp,
    Version, View,
};
use quipu_core::timeframe;
use quipu_service::wire::{ListBody, VersionBody};
use serde::Serialize;

use super::memories::{print_text, report};
use super::revert;
use crate::args::{LogArguments, PlanArguments, RestoreArguments, ShowArguments};
use crate::authors::{Authors, Wanted};
use crate::context::{Context, Data, path};
use crate::failure::Failure;
use crate::pager::Pager;
use crate::print::{Form, answer, local, note, size, style};

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
    /// Only versions in it.
    directory: Option<Directory>,
    buffer: VecDeque<Version>,
    is_exhausted: bool,
}

impl<'a> Versions<'a> {
    fn new(data: &'a Data, stores: &[Store], arguments: &LogArguments) -> Result<Self, Failure> {
        let wanted = [
            arguments.actor.as_deref().map(Wanted::Actor),
            arguments.session.as_deref().map(Wanted::Session),
            arguments.key.as_deref().map(Wanted::Key),
            arguments.user.as_deref().map(Wanted::User),
            arguments.host.as_deref().map(Wanted::Host),
        ];
        let actors = match wanted.into_iter().flatten().next() {
            Some(wanted) => data.authors().matching(wanted)?,
            None => Vec::new(),
        };
        let pattern = arguments.grep.as_ref().map(|pattern| pattern.to_lowercase());
        let view = if pattern.is_some() { View::Full } else { View::Basic };
        let created = span(data, arguments.since.as_deref(), arguments.until.as_deref())?;
        let mut sources = Vec::new();
        for store in stores {
            let Some(place) = place(data, store, arguments)? else { continue };
            let (memory, directory) = match place {
                Place::Store => (None, None),
                Place::Memory(memory) => (Some(memory), None),
                Place::Directory(directory) => (None, Some(directory)),
            };
            let operation = arguments.operation;
            let mut filter =
                VersionFilter { memory, path: None, operation, actors: Vec::new(), created };
            if let [only] = actors.as_slice() {
                filter.actors = vec![only.clone()];
            }
            sources.push(Source {
                store: store.id,
                query: VersionQuery { filter, before: None, limit: PAGE, view },
                directory,
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
        while !self.is_exhausted && self.buffer.is_empty() {
            let page = data.engine.versions(self.store, &self.query)?;
            self.query.before = page.next;
            self.is_exhausted = page.next.is_none();
            let directory = self.directory.as_ref();
            let is_wanted = |version: &Version| directory.is_none_or(|it| is_in(version, it));
            self.buffer.extend(page.items.into_iter().filter(is_wanted));
        }
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

/// What the log of a store is about.
enum Place {
    Store,
    Memory(MemoryId),
    /// A directory, also one that no memory lies in anymore.
    Directory(Directory),
}

/// Returns what the log of a store is about, or `None` if it was never in it.
fn place(data: &Data, store: &Store, arguments: &LogArguments) -> Result<Option<Place>, Failure> {
    let Some(text) = arguments.memory.as_deref() else { return Ok(Some(Place::Store)) };
    let trimmed = text.trim_end_matches('/');
    if trimmed.is_empty() {
        return Ok(Some(Place::Store));
    }
    let failure = match memory(data, store, Some(trimmed)) {
        Ok(memory) => return Ok(memory.map(Place::Memory)),
        Err(failure) if failure.is_not_found() => failure,
        Err(failure) => return Err(failure),
    };
    if let Ok(directory) = path(trimmed).map(|path| path.as_directory()) {
        let (filter, view) = (VersionFilter::default(), View::Basic);
        let query = VersionQuery { filter, before: None, limit: usize::MAX, view };
        let versions = data.engine.versions(store.id, &query)?.items;
        if versions.iter().any(|version| is_in(version, &directory)) {
            return Ok(Some(Place::Directory(directory)));
        }
    }
    // It may be in another store.
    if arguments.all { Ok(None) } else { Err(failure) }
}

fn is_in(version: &Version, directory: &Directory) -> bool {
    version.path.as_ref().is_some_and(|path| directory.contains(path))
}

/// Returns the span of time between two moments as people write them.
pub(super) fn span(data: &Data, since: Option<&str>, until: Option<&str>) -> Result<Span, Failure> {
    let moment = |text: Option<&str>| match text {
        None => Ok(None),
        Some(text) => timeframe::since(text, data.engine.now()).map(Some).ok_or_else(|| {
            Failure::usage(format!("`{text}` is not a time such as `7d` or `2026-11-15`"))
        }),
    };
    let all = Span::default();
    Ok(Span {
        first: moment(since)?.unwrap_or(all.first),
        last: moment(until)?.unwrap_or(all.last),
    })
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
        if let Some(reason) = &version.reason {
            writeln!(out, "Reason: {reason}")?;
        }
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

pub(super) fn unified(out: &mut dyn Write, diff: &Diff, context: usize) -> io::Result<()> {
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
    if let Some(moment) = &arguments.at {
        return revert::restore_tree(context, arguments, moment);
    }
    let PlanArguments { dry_run, expect, reason } = &arguments.plan;
    if *dry_run || expect.is_some() || reason.is_some() {
        return Err(Failure::usage("`--dry-run`, `--expect` and `--reason` need `--at`"));
    }
    let data = context.open()?;
    let to = arguments.to.as_deref().map(path).transpose()?;
    let target = arguments.target.as_deref().unwrap_or_default();
    let written = match target.parse() {
        Ok(id) => {
            let version = data.version(id)?;
            let store = data.engine.store(version.store)?;
            let author = data.author(&store, &arguments.writer)?;
            data.engine.restore(&author, version.store, version.id, to.as_ref())?
        }
        Err(_) => {
            let store = data.store()?;
            let author = data.author(&store, &arguments.writer)?;
            let memory = memory(&data, &store, Some(target))?;
            let memory = memory.ok_or_else(|| Failure::usage("name a version or a path"))?;
            data.engine.undo(&author, store.id, memory, to.as_ref())?.1
        }
    };
    report(context, &written)
}
