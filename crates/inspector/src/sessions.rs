//! Sessions and other authors: who they are, and everything that they changed.

mod actors;
mod authors;
mod changes;

use maud::{Markup, html};
use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::Principal;
use quipu_core::model::{Actor, Session, SessionId, Store};
use quipu_service::caller::Need;
use quipu_service::prompt::{Prompt, PromptStore};
use quipu_service::wire::SessionDetails;

use crate::form::address;
use crate::layout::{Room, page};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;
use crate::{Page, changes as changing, shows};

pub(crate) use actors::require_known;
use actors::{Recent, change_section};
pub(crate) use authors::Authors;
pub(crate) use changes::{Wanted, time, tree_path};

/// The pages of this module.
pub(crate) static PAGES: [Page; 5] = [
    shows("/ui/sessions", list),
    shows("/ui/sessions/{session}", show),
    changing("/ui/sessions/{session}/end", end),
    shows("/ui/actors", actors::list),
    shows("/ui/actors/{actor}", actors::show),
];

/// How many sessions a page lists.
const SESSIONS_MAX: usize = 25;

/// How many sessions are searched for one page.
const SCANNED_MAX: usize = 2_000;

/// How many sessions are read at a time.
const CHUNK: usize = 200;

/// Lists the sessions that the visitor may know of.
fn list(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let wanted = visit.query.get("q").unwrap_or_default();
    let authors = Authors::new(visit);
    let (sessions, next) = found(visit, &authors, wanted)?;
    let recent = Recent::new(visit)?;
    let content = html! {
        h1 { "Sessions" }
        (tabs("sessions"))
        form.row role="search" aria-label="Sessions" action="/ui/sessions" data-live-search="sessions" {
            label { "Title, host, key, store or id" input type="search" name="q" value=(wanted); }
            button { "Search" }
        }
        div #sessions {
            @if sessions.is_empty() {
                p { @if wanted.is_empty() { "No agent has had a session yet." }
                    @else if next.is_some() { "None of the newest ones matches." }
                    @else { "No session matches." } }
            } @else {
                div.wide tabindex="0" role="region" aria-label="Sessions" { table {
                    thead { tr {
                        th scope="col" { "Session" } th scope="col" { "Host" } th scope="col" { "Key" }
                        th scope="col" { "Stores" } th scope="col" { "Created" }
                        th scope="col" { "Last change" }
                    } }
                    tbody {
                        @for session in &sessions { (row(visit, &authors, session, &recent)) }
                    }
                } }
            }
            @if let Some(next) = next {
                @let next = next.to_string();
                p { a rel="next" href=(address("/ui/sessions", &[("q", wanted), ("after", &next)])) {
                    "Older sessions"
                } }
            }
        }
    };
    Ok(Reply::Page(page(visit, Room::Sessions, "Sessions", &content)))
}

/// Returns the links between the two lists of authors.
fn tabs(here: &str) -> Markup {
    let link = |name: &str, to: &str, words: &str| {
        html! { a href=(to) aria-current=[(name == here).then_some("page")] { (words) } }
    };
    html! {
        nav.tabs aria-label="Authors" {
            (link("sessions", "/ui/sessions", "Sessions"))
            (link("actors", "/ui/actors", "All authors"))
        }
    }
}

/// Returns a page of the sessions that match, the newest first, and where the next page begins.
fn found(
    visit: &Visit<'_>,
    authors: &Authors<'_>,
    wanted: &str,
) -> Result<(Vec<Session>, Option<SessionId>), Trouble> {
    let key = match &visit.caller.principal {
        Principal::Key(key) => key,
        // A session knows of itself alone.
        Principal::Session(own) => return Ok((vec![own.clone()], None)),
    };
    let mut query = SessionQuery {
        workspace: visit.caller.workspace,
        store: None,
        archived: Archived::Show,
        created: Span::default(),
        viewer: Some(key.clone()),
        order: Order::NewestFirst,
        after: visit.query.get("after").and_then(|id| id.parse().ok()),
        limit: CHUNK,
    };
    let wanted = wanted.to_lowercase();
    let (mut found, mut scanned_count) = (Vec::new(), 0);
    loop {
        let chunk = visit.engine.sessions(&query)?;
        for session in chunk.items {
            if found.len() == SESSIONS_MAX || scanned_count == SCANNED_MAX {
                return Ok((found, query.after));
            }
            scanned_count += 1;
            query.after = Some(session.id);
            if matches(visit, authors, &session, &wanted) {
                found.push(session);
            }
        }
        if chunk.next.is_none() {
            return Ok((found, None));
        }
    }
}

/// Returns whether a session holds a text in lower case where a visitor sees it.
fn matches(visit: &Visit<'_>, authors: &Authors<'_>, session: &Session, wanted: &str) -> bool {
    if wanted.is_empty() {
        return true;
    }
    let is_in = |text: &str| text.to_lowercase().contains(wanted);
    is_in(&session.title)
        || is_in(&session.id.to_string())
        || is_in(&host(session))
        || session.key.is_some_and(|key| is_in(&authors.name(&Actor::ApiKey(key))))
        || readable(visit, session).any(|attachment| is_in(attachment.name.as_str()))
}

/// Returns the program that a session belongs to, as far as it has said.
fn host(session: &Session) -> String {
    let details = SessionDetails::of(session);
    let parts = [details.agent_id, details.model_id, details.environment_id];
    let known = parts
        .into_iter()
        .filter(|part| !part.is_empty() && part != "unknown" && *part != session.title);
    known.collect::<Vec<_>>().join(", ")
}

/// Returns the stores of a session that the visitor may read. A key sees the sessions that it created,
/// also if it was limited to fewer stores since.
fn readable<'s>(
    visit: &Visit<'_>,
    session: &'s Session,
) -> impl Iterator<Item = &'s quipu_core::model::Attachment> {
    let caller = visit.caller;
    session.attachments.iter().filter(move |it| caller.may_in(it.store, Need::Read))
}

fn title(session: &Session) -> String {
    if session.title.is_empty() { session.id.to_string() } else { session.title.clone() }
}

fn row(visit: &Visit<'_>, authors: &Authors<'_>, session: &Session, recent: &Recent) -> Markup {
    let now = visit.engine.now();
    html! {
        tr {
            th scope="row" {
                a href={ "/ui/sessions/" (session.id) } { (visible::short(&title(session))) }
                @if session.archived_at.is_some() { " " span.badge { "archived" } }
            }
            td { (visible::short(&host(session))) }
            td { @if let Some(key) = session.key { (authors.link(&Actor::ApiKey(key))) } }
            td { @for (place, it) in readable(visit, session).enumerate() {
                @if place > 0 { ", " }
                a href={ "/ui/stores/" (it.store) } { (visible::short(it.name.as_str())) } " " small { (it.access.as_str()) }
            } }
            td { (text::time(session.created_at, now)) }
            td { @match recent.last_change(&Actor::Session(session.id)) {
                Some(at) => (text::time(at, now)),
                None => "–",
            } }
        }
    }
}

/// Returns the session in the path, if the visitor has this permission on it. One that the visitor may not
/// know of does not exist for it.
fn session(visit: &Visit<'_>, need: Need) -> Result<Session, Trouble> {
    let id = visit.parameter("session");
    let missing = || {
        Trouble::NotFound(format!("No session has the id `{id}`. The list of sessions shows all."))
    };
    let parsed: SessionId = id.parse().map_err(|_malformed| missing())?;
    let session = visit.engine.session(parsed).map_err(|_gone| missing())?;
    if !visit.caller.sees(&session) {
        return Err(missing());
    }
    if visit.caller.may_with(need) { Ok(session) } else { Err(visit.caller.denied(need).into()) }
}

/// Shows a session.
fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let session = session(visit, Need::Read)?;
    let stores = readable(visit, &session).map(|it| visit.engine.store(it.store));
    // A store that was deleted since is left out.
    let stores: Vec<Store> = stores.filter_map(Result::ok).collect();
    let wanted = Wanted::new(visit, Actor::Session(session.id), &visit.query)?;
    let here = format!("/ui/sessions/{}", session.id);
    let changed = change_section(visit, &wanted, &stores, &here)?;
    let title = title(&session);
    let content = html! {
        h1 { (visible::short(&title)) }
        (about(visit, &session))
        @if visit.caller.may_with(Need::Write) && session.archived_at.is_none() {
            (end_form(visit, &session))
        }
        (prompt(visit, &session))
        (changed)
    };
    Ok(Reply::Page(page(visit, Room::Sessions, &format!("{title} · session"), &content)))
}

fn about(visit: &Visit<'_>, session: &Session) -> Markup {
    let now = visit.engine.now();
    let authors = Authors::new(visit);
    let host = host(session);
    html! {
        dl {
            dt { "Session" } dd { code { (session.id) } }
            @if !host.is_empty() { dt { "Host" } dd { (visible::short(&host)) } }
            @if let Some(key) = session.key { dt { "Key" } dd { (authors.link(&Actor::ApiKey(key))) } }
            dt { "Created" } dd { (text::time(session.created_at, now)) }
            @if let Some(at) = session.archived_at { dt { "Archived" } dd { (text::time(at, now)) } }
            @if session.archived_at.is_none() && session.token.is_some() {
                dt { "Token" }
                dd { @match session.token_expires_at {
                    Some(at) if at <= now => { "expired " (text::time(at, now)) },
                    Some(at) => { "valid until " (text::exact(at)) },
                    None => "valid until the session is archived",
                } }
            }
            @for it in readable(visit, session) {
                dt { "Store" }
                dd {
                    a href={ "/ui/stores/" (it.store) } { (visible::short(it.name.as_str())) } " (" (it.access.as_str()) ") at "
                    code { (it.mount_path(&visit.settings.mount_root)) }
                }
            }
        }
    }
}

fn end_form(visit: &Visit<'_>, session: &Session) -> Markup {
    html! {
        details {
            summary { "End this session" }
            form method="post" action={ "/ui/sessions/" (session.id) "/end" } {
                (visit.token_field())
                p { "The session is archived: its token stops working at once, and it cannot be resumed. \
                     What it wrote stays." }
                button.danger { "End the session" }
            }
        }
    }
}

/// Archives a session, which revokes its token.
fn end(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let session = session(visit, Need::Write)?;
    visit.engine.archive_session(session.id)?;
    Ok(Reply::SeeOther(format!("/ui/sessions/{}", session.id)))
}

fn prompt(visit: &Visit<'_>, session: &Session) -> Markup {
    let root = &visit.settings.mount_root;
    let stores = readable(visit, session).map(|it| PromptStore::mounted(it, root)).collect();
    let text = Prompt { stores, topic: None }.text();
    html! {
        details {
            summary { "Its prompt" }
            label { "What goes into the agent's system prompt"
                textarea.prompt #prompt readonly rows="12" data-copy { (text) } }
        }
    }
}
