//! `quipu log`, `show`, `diff`, `restore` and `redact`.

use std::collections::HashMap;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use quipu_core::backend::{Span, VersionFilter, VersionQuery};
use quipu_core::diff::{Diff, Line};
use quipu_core::model::{
    Actor, Content, MemoryId, MemoryPath, Operation, SessionId, Store, Version, VersionId, View,
};
use quipu_core::timeframe;
use quipu_core::{Error, ErrorKind};
use quipu_server::wire::{DiffBody, ListBody, VersionBody};

use super::memories::{print_text, report};
use crate::args::{DiffArguments, LogArguments, RedactArguments, RestoreArguments, ShowArguments};
use crate::context::{Context, Data, path};
use crate::failure::Failure;
use crate::print::{Form, answer, confirm, count, local, size, style};

/// How many versions are read before they are printed, so that a long log begins at once.
const PAGE: usize = 256;

pub(super) fn log(context: &Context, arguments: &LogArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.store()?;
    let filter = filter(&data, &store, arguments)?;
    let mut left_count = arguments.limit.unwrap_or(usize::MAX);
    let mut query = VersionQuery { filter, before: None, limit: left_count, view: View::Basic };
    if context.form == Form::Json {
        let versions = data.engine.versions(store.id, &query)?.items;
        let body = ListBody::complete(versions.iter().map(VersionBody::from).collect());
        return answer(context.form, &body, |_| Ok(()));
    }
    loop {
        query.limit = left_count.min(PAGE);
        let page = data.engine.versions(store.id, &query)?;
        print_page(&data, &page.items, arguments)?;
        left_count -= page.items.len();
        query.before = page.next;
        if query.before.is_none() || left_count == 0 {
            return Ok(());
        }
    }
}

fn print_page(data: &Data, versions: &[Version], arguments: &LogArguments) -> Result<(), Failure> {
    // The size change of a version is the difference to the one before it.
    let before = versions
        .iter()
        .map(|version| data.engine.previous_version(version, View::Basic))
        .collect::<Result<Vec<_>, _>>()?;
    let names = Names::of(data, versions)?;
    answer(Form::Text, &(), |out| {
        for (version, before) in versions.iter().zip(&before) {
            let shown = Shown { version, before: before.as_ref(), names: &names };
            if arguments.oneline {
                shown.one_line(out)?;
            } else {
                shown.header(out)?;
                writeln!(out)?;
            }
        }
        Ok(())
    })
}

/// What people call the sessions among the authors.
struct Names(HashMap<SessionId, String>);

impl Names {
    fn of(data: &Data, versions: &[Version]) -> Result<Self, Failure> {
        let mut names = HashMap::new();
        for version in versions {
            let Actor::Session(id) = version.actor else { continue };
            if names.contains_key(&id) {
                continue;
            }
            let title = match data.engine.session(id) {
                Ok(session) => session.title,
                Err(error) if *error.kind() == ErrorKind::NotFound => String::new(),
                Err(error) => return Err(error.into()),
            };
            names.insert(id, title);
        }
        Ok(Self(names))
    }

    fn shown(&self, actor: &Actor) -> String {
        let title = match actor {
            Actor::Session(id) => self.0.get(id).filter(|title| !title.is_empty()),
            Actor::ApiKey(_) | Actor::User(_) | Actor::ServiceAccount(_) => None,
        };
        title.map_or_else(|| actor.to_string(), |title| format!("{actor} ({title})"))
    }
}

/// A version as the log shows it.
struct Shown<'a> {
    version: &'a Version,
    before: Option<&'a Version>,
    names: &'a Names,
}

fn filter(data: &Data, store: &Store, arguments: &LogArguments) -> Result<VersionFilter, Failure> {
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
    let actor = arguments.actor.as_deref().map(str::parse).transpose();
    let actors = actor
        .map_err(|error: quipu_core::model::ParseActorError| Failure::usage(error.to_string()))?;
    Ok(VersionFilter {
        memory: memory(data, store, arguments.memory.as_deref())?,
        path: None,
        operation: arguments.operation,
        actors: actors.into_iter().collect(),
        created,
    })
}

/// Returns the memory that is named by id or by a path where it lives or lived.
fn memory(data: &Data, store: &Store, text: Option<&str>) -> Result<Option<MemoryId>, Failure> {
    let Some(text) = text else { return Ok(None) };
    if let Ok(id) = text.parse() {
        let filter = VersionFilter { memory: Some(id), ..VersionFilter::default() };
        let query = VersionQuery { filter, before: None, limit: 1, view: View::Basic };
        if data.engine.versions(store.id, &query)?.items.is_empty() {
            let message = format!("no version of the store belongs to the memory `{id}`");
            let hint = "`quipu ls -R -l` shows the ids of the memories";
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
    fn header(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let Self { version, before, names } = *self;
        let color = color(version.operation);
        writeln!(out, "{color}version {}{color:#} ({})", version.id, version.operation)?;
        writeln!(out, "Path:   {}{}", path_text(version), moved_from(version, before))?;
        writeln!(out, "Actor:  {}", names.shown(&version.actor))?;
        writeln!(out, "Date:   {}", local(version.created_at))?;
        writeln!(out, "Size:   {}", size_change(version, before))?;
        if let Some(redaction) = &version.redaction {
            writeln!(out, "Redacted by {} on {}", redaction.by, local(redaction.at))?;
        }
        Ok(())
    }

    fn one_line(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let Self { version, before, names } = *self;
        let color = color(version.operation);
        writeln!(
            out,
            "{color}{}{color:#} {:8} {} {} {}{} ({})",
            version.id,
            version.operation,
            local(version.created_at),
            names.shown(&version.actor),
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

/// Returns the size, and by how much it has changed.
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
    let names = Names::of(&data, std::slice::from_ref(&version))?;
    answer(context.form, &VersionBody::from(&version), |out| {
        Shown { version: &version, before: before.as_ref(), names: &names }.header(out)?;
        if version.redaction.is_some() {
            return Ok(());
        }
        if before.as_ref().is_some_and(|before| before.redaction.is_some()) {
            writeln!(out, "The text before it was redacted, so all of this one is shown.")?;
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

/// Returns the two versions to compare; the first is missing if there is none before.
fn compared(
    data: &Data,
    arguments: &DiffArguments,
) -> Result<(quipu_core::model::StoreId, Option<VersionId>, VersionId), Failure> {
    if let Ok(first) = arguments.old.parse::<VersionId>() {
        let first = data.version(first)?;
        if let Some(second) = arguments.new {
            return Ok((first.store, Some(first.id), second));
        }
        let before = data.engine.previous_version(&first, View::Basic)?;
        return Ok((first.store, before.map(|before| before.id), first.id));
    }
    if arguments.new.is_some() {
        return Err(Failure::usage("compare either two versions or the last change of a path"));
    }
    let store = data.store()?;
    let newest = data.engine.history(store.id, &path(&arguments.old)?, 2)?;
    let mut ids = newest.iter().map(|version| version.id);
    let new = ids.next().ok_or_else(|| Failure::other("the memory has no versions"))?;
    Ok((store.id, ids.next(), new))
}

fn unified(out: &mut dyn Write, diff: &Diff, context: usize) -> std::io::Result<()> {
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
            let undone = path(&arguments.target)?;
            data.engine.undo(&data.actor, data.store()?.id, &undone, to.as_ref())?
        }
    };
    report(context, &written)
}

pub(super) fn redact(context: &Context, arguments: &RedactArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let first = arguments.versions.first().ok_or_else(|| Failure::usage("name a version"))?;
    let store = data.version(*first)?.store;
    if !arguments.yes {
        let versions = count(arguments.versions.len(), "version", "versions");
        confirm(&format!("The text of {versions} will be erased."))?;
    }
    let versions = data.engine.redact(&data.actor, store, &arguments.versions)?;
    let body = ListBody::complete(versions.iter().map(VersionBody::from).collect());
    answer(context.form, &body, |out| {
        versions.iter().try_for_each(|version| writeln!(out, "redacted {}", version.id))
    })
}
