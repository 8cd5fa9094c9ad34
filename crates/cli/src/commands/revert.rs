//! `quipu revert` and `quipu restore --at`: plans, shown or carried out.

use std::io::{self, Write};

use anstyle::AnsiColor;
use quipu_core::backend::{Archived, Span};
use quipu_core::engine::{
    Action, Approval, CarriedOut, ChangeSelection, Completeness, Goal, Plan, Restoration, State,
    Step,
};
use quipu_core::model::{Actor, Digest, MemoryPath, Reason, Store};
use quipu_core::{Error, ErrorKind, Moment};
use quipu_service::wire::{PlanBody, step_diff};
use serde::Serialize;

use super::history::{span, unified};
use crate::args::{PlanArguments, RestoreArguments, RevertArguments, WriterArguments};
use crate::authors::Wanted;
use crate::context::{Context, Data, path};
use crate::failure::Failure;
use crate::print::{answer, count, local, note, style};

/// How many unchanged lines are shown around a change.
const CONTEXT_LINES: usize = 3;

/// What is to be done in one store.
struct Task {
    store: Store,
    goal: Goal,
}

/// The command line that carries out a plan or takes it back.
struct Line(String);

impl Line {
    fn new(context: &Context, command: &str) -> Self {
        let line = Self(format!("quipu {command}"));
        match &context.settings.chosen_data {
            Some(data) => line.with("--data", &data.display().to_string()),
            None => line,
        }
    }

    fn with(self, flag: &str, value: &str) -> Self {
        // Otherwise the value would be taken for a flag.
        let separator = if value.starts_with('-') { '=' } else { ' ' };
        Self(format!("{} {flag}{separator}{}", self.0, quoted(value)))
    }

    fn with_span(self, span: Span) -> Self {
        let Span { first, last } = Span::default();
        let mut line = self;
        if span.first != first {
            line = line.with("--since", &span.first.to_string());
        }
        if span.last != last {
            line = line.with("--until", &span.last.to_string());
        }
        line
    }

    fn with_path(self, path: Option<&MemoryPath>) -> Self {
        match path {
            Some(path) => self.with("--path", path.as_str()),
            None => self,
        }
    }
}

/// Quotes a word for a shell, if it needs to be.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@,+=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

pub(super) fn run(context: &Context, arguments: &RevertArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let mut stores =
        if arguments.all { data.stores(Archived::Hide)? } else { data.stores_named()? };
    stores.sort_by_key(|store| store.id);
    let author = &arguments.author;
    let wanted = [
        author.session.as_deref().map(Wanted::Session),
        author.actor.as_deref().map(Wanted::Actor),
        author.key.as_deref().map(Wanted::Key),
    ];
    let wanted = wanted.into_iter().flatten().next();
    let wanted = wanted.ok_or_else(|| Failure::usage("name a session, an actor or a key"))?;
    let actors = data.authors().only(wanted, &stores)?;
    let created = span(&data, arguments.since.as_deref(), arguments.until.as_deref())?;
    let path = arguments.path.as_deref().map(tree_path).transpose()?.flatten();
    let mut line = Line::new(context, "revert")
        .with(wanted.flag(), wanted.text())
        .with_span(created)
        .with_path(path.as_ref());
    line = if arguments.all { Line(line.0 + " --all") } else { with_stores(&data, line, &stores) };
    let reason = match &arguments.plan.reason {
        Some(reason) => reason.clone(),
        None => shortened(&format!("revert of {}", authors_text(&data, wanted, &actors))),
    };
    let goal = Goal::Revert(ChangeSelection { actors, created, path });
    let tasks = stores.into_iter().map(|store| Task { store, goal: goal.clone() }).collect();
    let writer = &WriterArguments::default();
    finish(context, &data, tasks, Order { plan: &arguments.plan, writer, reason, line })
}

/// Restores a folder or a store as it was at a moment.
pub(super) fn restore_tree(
    context: &Context,
    arguments: &RestoreArguments,
    moment: &str,
) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.store()?;
    let moment = Moment::parse(moment, data.engine.now())?;
    let past = data.engine.moment(store.id, &moment)?;
    if let (Some(horizon), false, false) = (past.horizon, past.is_complete(), arguments.incomplete)
    {
        let message = format!(
            "not all of that state is known: the history of `{}` is complete from {} on",
            store.name,
            local(horizon)
        );
        return Err(Failure::from(Error::invalid(message)).with_hint(
            "name a later moment, or `--incomplete` to leave what is not known as it is",
        ));
    }
    let at = data.engine.time_of(store.id, &moment)?;
    let path = arguments.target.as_deref().map(tree_path).transpose()?.flatten();
    let completeness =
        if arguments.incomplete { Completeness::Partial } else { Completeness::Required };
    let command = match &path {
        Some(path) => format!("restore {}", quoted(path.as_str())),
        None => "restore".to_owned(),
    };
    // Not the time that it was resolved to: that could mean the state before its transaction.
    let mut line = Line::new(context, &command).with("--at", &moment.to_string());
    if arguments.incomplete {
        line = Line(line.0 + " --incomplete");
    }
    if let Some(session) = arguments.writer.session {
        line = line.with("--session", &session.to_string());
    }
    line = with_stores(&data, line, std::slice::from_ref(&store));
    let reason =
        arguments.plan.reason.clone().unwrap_or_else(|| format!("restore as of {}", past.at));
    let goal = Goal::Restore(Restoration { at, path, completeness });
    let RestoreArguments { plan, writer, .. } = arguments;
    finish(context, &data, vec![Task { store, goal }], Order { plan, writer, reason, line })
}

fn with_stores(data: &Data, line: Line, stores: &[Store]) -> Line {
    stores.iter().fold(line, |line, store| line.with("--store", &store_text(data, store)))
}

/// Returns the name of a store, or its id if others have the same name.
fn store_text(data: &Data, store: &Store) -> String {
    match data.find_store(store.name.as_str()) {
        Ok(found) if found.id == store.id => store.name.to_string(),
        Ok(_) | Err(_) => store.id.to_string(),
    }
}

/// Reads the path of a memory or a directory; `None` is the whole store.
fn tree_path(text: &str) -> Result<Option<MemoryPath>, Failure> {
    match text.trim_end_matches('/') {
        "" => Ok(None),
        text => path(text).map(Some),
    }
}

fn authors_text(data: &Data, wanted: Wanted<'_>, actors: &[Actor]) -> String {
    match (wanted, actors) {
        (Wanted::Key(text), _) => format!("key {text}"),
        (_, [only]) => data.authors().full(only),
        _ => wanted.text().to_owned(),
    }
}

/// The maximum length of a reason.
const REASON_CHARS_MAX: usize = 500;

fn shortened(reason: &str) -> String {
    let printable = reason.chars().filter(|character| !character.is_control());
    printable.take(REASON_CHARS_MAX).collect()
}

/// How the plans are carried out, and how they are called.
struct Order<'a> {
    plan: &'a PlanArguments,
    writer: &'a WriterArguments,
    reason: String,
    line: Line,
}

/// Makes the plans, carries them out unless this is a dry run, and reports.
fn finish(
    context: &Context,
    data: &Data,
    tasks: Vec<Task>,
    order: Order<'_>,
) -> Result<(), Failure> {
    let reason = Reason::new(order.reason).map_err(Error::from)?;
    let arguments = order.plan;
    let plans = tasks.iter().map(|task| data.engine.plan(task.store.id, &task.goal));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let digests: Vec<_> = plans.iter().map(|plan| plan.digest).collect();
    let digest = Digest::combined(&digests);
    if arguments.expect.as_ref().is_some_and(|expected| !expected.accepts(digest)) {
        let message =
            format!("the plan has changed since it was made: its digest is now `{digest}`");
        return Err(Failure::from(Error::new(ErrorKind::PreconditionFailed, message))
            .with_hint("nothing was changed; look at the new plan with `--dry-run`"));
    }
    // All stores are checked before the first one is changed.
    for (task, plan) in tasks.iter().zip(&plans) {
        if plan.changed_count() > 0 {
            data.author(&task.store, order.writer)?;
        }
    }
    let mut outcomes = Vec::new();
    for (task, plan) in tasks.into_iter().zip(plans) {
        if arguments.dry_run || plan.changed_count() == 0 {
            outcomes.push(Outcome { store: task.store, plan, undo: None, body: None });
            continue;
        }
        // What was expected is the plan for all stores; each transaction checks its own part of it.
        let expect = arguments.expect.is_some().then(|| plan.digest.into());
        let approval = Approval { expect, reason: reason.clone() };
        let author = data.author(&task.store, order.writer)?;
        match data.engine.carry_out(&author, task.store.id, &task.goal, &approval) {
            Ok(done) => {
                let undo = undo_line(context, data, (&task.store, &author), &done);
                let body = Some(PlanBody::from(&done));
                outcomes.push(Outcome { store: task.store, plan: done.plan, undo, body });
            }
            Err(error) => return Err(after(&outcomes, error)),
        }
    }
    report(context, &outcomes, digest, (arguments, &order.line))
}

/// A plan for one store, and what was done of it.
struct Outcome {
    store: Store,
    plan: Plan,
    /// The command that takes it back, if anything was done.
    undo: Option<Line>,
    body: Option<PlanBody>,
}

/// Returns the command that takes back what was done in a store.
fn undo_line(
    context: &Context,
    data: &Data,
    (store, author): (&Store, &Actor),
    done: &CarriedOut,
) -> Option<Line> {
    let line = Line::new(context, "revert").with("--actor", &author.to_string());
    Some(line.with_span(done.span()?).with("--store", &store_text(data, store)))
}

/// Returns the failure of one store, after others may have been changed.
fn after(outcomes: &[Outcome], error: Error) -> Failure {
    let failure = Failure::from(error);
    let mut names = Vec::new();
    for outcome in outcomes {
        let Some(undo) = &outcome.undo else { continue };
        note(&format!("`{}` is done; this takes it back: {}", outcome.store.name, undo.0));
        names.push(format!("`{}`", outcome.store.name));
    }
    if names.is_empty() { failure } else { failure.after(&format!("done in {}", names.join(", "))) }
}

/// The outcomes as JSON.
#[derive(Serialize)]
struct ReportBody {
    digest: String,
    dry_run: bool,
    stores: Vec<PlanBody>,
}

fn report(
    context: &Context,
    outcomes: &[Outcome],
    digest: Digest,
    (arguments, line): (&PlanArguments, &Line),
) -> Result<(), Failure> {
    let body = |outcome: &Outcome| match &outcome.body {
        Some(body) => body.clone(),
        None => PlanBody::from(&outcome.plan),
    };
    let body = ReportBody {
        digest: digest.to_string(),
        dry_run: arguments.dry_run,
        stores: outcomes.iter().map(body).collect(),
    };
    let changed_count: usize = outcomes.iter().map(|it| it.plan.changed_count()).sum();
    let left_count: usize = outcomes.iter().map(|it| it.plan.left_count()).sum();
    answer(context.form, &body, |out| {
        for outcome in outcomes {
            let store = (outcomes.len() > 1).then_some(&outcome.store);
            for step in &outcome.plan.steps {
                show_step(out, store, step)?;
                if arguments.dry_run {
                    unified(out, &step_diff(step), CONTEXT_LINES)?;
                }
            }
        }
        if changed_count == 0 && left_count == 0 {
            return writeln!(out, "nothing to do");
        }
        let verb = if arguments.dry_run { "would change" } else { "changed" };
        let changed = count(changed_count, "memory", "memories");
        writeln!(out, "{changed} {verb}, {left_count} left as they are")?;
        if arguments.dry_run {
            writeln!(out, "digest {digest}")?;
            writeln!(out, "to carry out this plan:\n  {} --expect {digest}", line.0)?;
        }
        let undos = outcomes.iter().filter_map(|outcome| outcome.undo.as_ref());
        for undo in undos {
            writeln!(out, "to take it back:\n  {}", undo.0)?;
        }
        Ok(())
    })
}

/// Prints what becomes of a memory, and why.
fn show_step(out: &mut dyn Write, store: Option<&Store>, step: &Step) -> io::Result<()> {
    let store = store.map_or_else(String::new, |store| format!("{} ", store.name));
    let now = step.before.as_ref().map_or("(deleted)", |before| before.path.as_str());
    let (color, action, path) = match &step.action {
        Action::Delete => (AnsiColor::Red, "delete", now.to_owned()),
        Action::Create(State { path, .. }) => (AnsiColor::Green, "create", path.to_string()),
        Action::Change(State { path, .. }) if path.as_str() == now => {
            (AnsiColor::Yellow, "change", now.to_owned())
        }
        Action::Change(State { path, .. }) => {
            (AnsiColor::Yellow, "change", format!("{now} -> {path}"))
        }
        Action::Leave => (AnsiColor::Magenta, "leave ", now.to_owned()),
    };
    let color = style(color);
    writeln!(out, "{color}{action}{color:#}  {store}{path}  ({})", step.why)
}
