//! `quipu redact` and `quipu receipts`.

use std::io::{self, Read as _, Write};
use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::{Archived, Span};
use quipu_core::engine::{Heads, Pattern, RedactionPlan, Scope, Selection, StorePlan, Terms};
use quipu_core::model::{Proof, Reason, Receipt, Store, StoreId, Timestamp};
use quipu_core::timeframe;
use quipu_service::pattern::RegexMatcher;
use quipu_service::wire::{Audience, ListBody, ReceiptBody, RedactionPlanBody, VersionBody};

use crate::args::{ReceiptsArguments, RedactArguments, RedactSelection};
use crate::authors::Wanted;
use crate::context::{Context, Data, path};
use crate::failure::Failure;
use crate::print::{Form, answer, answer_reached, confirm, count, local, note, size};

/// How long a regular expression may search. Somebody who waits can interrupt it.
const REGEX_TIME_MAX: Duration = Duration::from_hours(24);

/// How many versions of a store a plan lists before the rest is only counted.
const LISTED_MAX: usize = 50;

pub(super) fn redact(context: &Context, arguments: &RedactArguments) -> Result<(), Failure> {
    let wants_plan = arguments.dry_run || arguments.expect.is_some() || arguments.and_heads;
    if arguments.selection.is_empty() && !wants_plan && arguments.reason.is_none() {
        return redact_versions(context, arguments);
    }
    let data = context.open()?;
    let typed = typed_text(&arguments.selection)?;
    let regex = arguments.selection.regex.as_deref();
    let regex = regex.map(|regex| RegexMatcher::new(regex, REGEX_TIME_MAX)).transpose()?;
    let pattern = match (&typed, &regex) {
        (Some(text), _) => Some(Pattern::text(text)?),
        (None, Some(regex)) => Some(Pattern::matcher(regex, "a regular expression")?),
        (None, None) => None,
    };
    let selection = selection(&data, arguments, pattern)?;
    let scope = scope(&data, arguments)?;
    let reason = arguments.reason.clone().map(Reason::new).transpose().map_err(Error::from)?;
    let heads = if arguments.and_heads { Heads::TakeOut } else { Heads::Refuse };
    let mut terms = Terms { heads, expect: arguments.expect.clone(), reason };
    if arguments.dry_run {
        let plan = data.engine.plan_redaction(&scope, &selection, heads)?;
        let body = RedactionPlanBody::new(&plan, Audience::Owner);
        return answer(context.form, &body, |out| show_plan(out, &plan));
    }
    if !arguments.yes {
        let plan = data.engine.plan_redaction(&scope, &selection, heads)?;
        show_plan(&mut anstream::stderr(), &plan)?;
        confirm("All of this will be erased. This cannot be undone.")?;
        // What was agreed to is what is done.
        terms.expect.get_or_insert(plan.digest);
    }
    let receipt = data.engine.redact_selected(&data.actor, &scope, &selection, &terms)?;
    let body = ReceiptBody::new(&receipt, Audience::Owner);
    answer(context.form, &body, |out| show_receipt(out, &data, &receipt))?;
    match receipt.proof.as_ref().and_then(|proof| proof.hits_left) {
        None | Some(0) => Ok(()),
        Some(left) => Err(Failure::other(format!(
            "{} still found by the selection",
            count(usize::try_from(left).unwrap_or(usize::MAX), "row is", "rows are")
        ))
        .with_hint(
            "change the names that are listed above, or run it again: somebody has written it again",
        )),
    }
}

/// Redacts versions by their ids.
fn redact_versions(context: &Context, arguments: &RedactArguments) -> Result<(), Failure> {
    let first = arguments.versions.first().ok_or_else(|| {
        Failure::usage("name a version, or say what to redact")
            .with_hint("`--matching TEXT` selects by content; `quipu help redact` shows the others")
    })?;
    let data = context.open()?;
    let store = data.version(*first)?.store;
    if !arguments.yes {
        let versions = count(arguments.versions.len(), "version", "versions");
        confirm(&format!("The text of {versions} will be erased. This cannot be undone."))?;
    }
    let versions = data.engine.redact(&data.actor, store, &arguments.versions)?;
    let unreachable = data.engine.backend().unreachable()?;
    let body = ListBody::complete(versions.iter().map(VersionBody::from).collect());
    answer_reached(context.form, &unreachable, &body, |out| {
        versions.iter().try_for_each(|version| writeln!(out, "redacted {}", version.id))
    })
}

/// Returns the text to look for; `-` keeps it out of the shell's history.
fn typed_text(selection: &RedactSelection) -> Result<Option<String>, Failure> {
    match selection.matching.as_deref() {
        Some("-") => {
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text)?;
            let line = text.strip_suffix('\n').unwrap_or(&text);
            Ok(Some(line.strip_suffix('\r').unwrap_or(line).to_owned()))
        }
        text => Ok(text.map(str::to_owned)),
    }
}

impl RedactSelection {
    fn is_empty(&self) -> bool {
        let Self { matching, regex, path, memory, session, actor, since, until, all: _ } = self;
        [matching, regex, path, session, actor, since, until].iter().all(|it| it.is_none())
            && memory.is_none()
    }
}

fn selection<'a>(
    data: &Data,
    arguments: &RedactArguments,
    pattern: Option<Pattern<'a>>,
) -> Result<Selection<'a>, Failure> {
    let wanted = &arguments.selection;
    let moment = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => timeframe::since(text, data.engine.now()).map(Some).ok_or_else(|| {
            Failure::usage(format!("`{text}` is not a time such as `7d` or `2026-11-15`"))
        }),
    };
    let author = match (&wanted.session, &wanted.actor) {
        (Some(name), _) => Some(Wanted::Session(name)),
        (None, Some(name)) => Some(Wanted::Actor(name)),
        (None, None) => None,
    };
    // What is erased does not come back, so a name that may mean several authors is refused.
    let actors = match author {
        Some(author) => data.authors().only(author, &data.stores(Archived::Show)?)?,
        None => Vec::new(),
    };
    Ok(Selection {
        pattern,
        path: wanted.path.as_deref().map(path).transpose()?,
        memory: wanted.memory,
        actors,
        versions: arguments.versions.clone(),
        created: Span {
            first: moment(&wanted.since)?.unwrap_or(Timestamp::MIN),
            last: moment(&wanted.until)?.unwrap_or(Timestamp::MAX),
        },
    })
}

fn scope(data: &Data, arguments: &RedactArguments) -> Result<Scope, Failure> {
    let all = Scope::all(data.workspace);
    if arguments.selection.all {
        if !data.named.is_empty() {
            return Err(Failure::usage("give either `--all` or `--store`"));
        }
        return Ok(all);
    }
    let stores: Vec<StoreId> = match (data.named.as_slice(), arguments.versions.first()) {
        ([], Some(version)) => vec![data.version(*version)?.store],
        ([], None) => vec![data.store()?.id],
        (named, _) => {
            let found = named.iter().map(|name| data.find_store(name).map(|store| store.id));
            found.collect::<Result<_, _>>()?
        }
    };
    Ok(Scope { stores: Some(stores), ..all })
}

fn show_plan(out: &mut dyn Write, plan: &RedactionPlan) -> io::Result<()> {
    writeln!(out, "Selected: {}", plan.selection)?;
    for store in &plan.stores {
        show_store(out, plan, store)?;
    }
    for hit in &plan.sessions {
        let events = (!hit.events.is_empty()).then(|| count(hit.events.len(), "event", "events"));
        let fields = hit.fields.iter().map(|field| (*field).to_owned()).chain(events);
        writeln!(out, "session {}: {}", hit.session, fields.collect::<Vec<_>>().join(", "))?;
    }
    for hit in &plan.definitions {
        writeln!(out, "{}, version {}", hit.definition, hit.version)?;
    }
    for receipt in &plan.receipts {
        writeln!(out, "receipt {receipt}")?;
    }
    if plan.traces_count > 0 {
        writeln!(out, "{} of hooks", count(plan.traces_count, "entry", "entries"))?;
    }
    for name in &plan.names {
        writeln!(out, "{name} holds it; change it by hand")?;
    }
    for other in &plan.others {
        let found = count(other.versions_count, "version", "versions");
        let origin = other.copied_from.as_ref().map(|origin| format!(", copied from `{origin}`"));
        let (name, origin) = (&other.name, origin.unwrap_or_default());
        writeln!(out, "not included: {found} of the store `{name}`{origin}")?;
    }
    for copy in &plan.copies_made {
        writeln!(out, "out of reach: {} of {} at {}", copy.kind, local(copy.at), copy.target)?;
    }
    for store in &plan.deleted_stores {
        writeln!(out, "not searched: the deleted store {store}")?;
    }
    for sentence in &plan.unreachable {
        writeln!(out, "out of reach: {sentence}")?;
    }
    let (versions, heads) = (plan.versions_count(), plan.heads_count());
    writeln!(
        out,
        "{}, {}, {}",
        count(versions, "version", "versions"),
        count(heads, "live memory", "live memories"),
        count(plan.sessions.len(), "session", "sessions")
    )?;
    if heads > 0 && plan.heads == Heads::Refuse {
        writeln!(out, "Live memories are in the way; `--and-heads` takes it out of them first.")?;
    }
    writeln!(out, "Digest: {}", plan.digest)
}

fn show_store(out: &mut dyn Write, plan: &RedactionPlan, store: &StorePlan) -> io::Result<()> {
    let is_hit =
        !store.versions.is_empty() || !store.refusals.is_empty() || !store.fields.is_empty();
    if !is_hit {
        return Ok(());
    }
    writeln!(out, "store {}:", store.name)?;
    for version in store.versions.iter().take(LISTED_MAX) {
        let path = version.path.as_ref().map_or("", |path| path.as_str());
        let carriers: Vec<_> = version.carriers.iter().map(|carrier| carrier.as_str()).collect();
        let carriers = match carriers.as_slice() {
            [] => String::new(),
            carriers => format!(" ({})", carriers.join(", ")),
        };
        writeln!(out, "  {} {} {path}{carriers}", version.id, local(version.created_at))?;
    }
    let more = store.versions.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        writeln!(out, "  and {more} more")?;
    }
    for head in &store.heads {
        let verb = match plan.heads {
            Heads::TakeOut => head.change.as_str().replace('_', " "),
            Heads::Refuse => "in the way".to_owned(),
        };
        writeln!(out, "  live: {} {verb}", head.path)?;
    }
    if !store.refusals.is_empty() {
        writeln!(out, "  {}", count(store.refusals.len(), "refusal", "refusals"))?;
    }
    if !store.fields.is_empty() {
        writeln!(out, "  its {}", store.fields.join(" and "))?;
    }
    Ok(())
}

pub(super) fn receipts(context: &Context, arguments: &ReceiptsArguments) -> Result<(), Failure> {
    let data = context.open()?;
    if let Some(id) = arguments.receipt {
        let receipt = data.engine.receipt(id)?;
        let body = ReceiptBody::new(&receipt, Audience::Owner);
        return answer(context.form, &body, |out| show_receipt(out, &data, &receipt));
    }
    let page = data.engine.receipts(data.workspace, None, arguments.limit)?;
    let bodies = page.items.iter().map(|receipt| ReceiptBody::new(receipt, Audience::Owner));
    let authors = data.authors();
    answer(context.form, &ListBody::complete(bodies.collect()), |out| {
        for receipt in &page.items {
            let versions = count(receipt.versions.len(), "version", "versions");
            let (at, by) = (local(receipt.at), authors.short(&receipt.by));
            writeln!(out, "{} {at}  {by}  {versions}  {}", receipt.id, receipt.selection)?;
        }
        Ok(())
    })?;
    if page.next.is_some() && context.form == Form::Text {
        note("there are more; `--limit` shows them");
    }
    Ok(())
}

fn show_receipt(out: &mut dyn Write, data: &Data, receipt: &Receipt) -> io::Result<()> {
    writeln!(out, "Receipt {}", receipt.id)?;
    writeln!(out, "At       {}", local(receipt.at))?;
    writeln!(out, "By       {}", data.authors().full(&receipt.by))?;
    if let Some(reason) = &receipt.reason {
        writeln!(out, "Reason   {reason}")?;
    }
    writeln!(out, "Selected {}", receipt.selection)?;
    let stores = data.stores(Archived::Show).unwrap_or_default();
    let name = |id: &StoreId| {
        let known = stores.iter().find(|store: &&Store| store.id == *id);
        known.map_or_else(|| id.to_string(), |store| store.name.to_string())
    };
    let stores: Vec<_> = receipt.stores.iter().map(name).collect();
    writeln!(out, "Stores   {}", stores.join(", "))?;
    writeln!(out, "Redacted {}", count(receipt.versions.len(), "version", "versions"))?;
    if receipt.events_count > 0 {
        writeln!(out, "Events   {} redacted", receipt.events_count)?;
    }
    if receipt.definitions_count > 0 {
        writeln!(out, "Agents   {} versions changed", receipt.definitions_count)?;
    }
    for head in &receipt.heads {
        let change = head.change.as_str().replace('_', " ");
        writeln!(out, "Memory   {} was {change}", head.memory)?;
    }
    for session in &receipt.sessions {
        writeln!(out, "Session  {session} was changed")?;
    }
    if receipt.tombstones_count > 0 {
        let texts = usize::try_from(receipt.tombstones_count).unwrap_or(usize::MAX);
        writeln!(out, "Watched  {}, should it come back", count(texts, "text", "texts"))?;
    }
    for remark in receipt.remarks.iter().chain(&receipt.unreachable) {
        writeln!(out, "Left     {remark}")?;
    }
    show_proof(out, receipt.proof.as_ref())
}

fn show_proof(out: &mut dyn Write, proof: Option<&Proof>) -> io::Result<()> {
    let Some(proof) = proof else {
        return writeln!(out, "Proof    none yet; `quipu prune` completes the erasing");
    };
    for file in &proof.scanned {
        writeln!(out, "Scanned  {} ({})", file.name, size(file.size_bytes))?;
    }
    match proof.hits_left {
        Some(hits) => writeln!(out, "Hits     {hits}"),
        None => writeln!(out, "Hits     not counted: the redaction was interrupted"),
    }
}
