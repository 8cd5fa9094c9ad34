//! The page on which a person decides what a host may do.

use std::time::Duration;

use maud::{Markup, html};
use quipu_core::backend::Archived;
use quipu_core::engine::{Derivation, NewDerivedKey, Principal};
use quipu_core::model::{Key, KeyKind, Name, Role, StoreId};
use quipu_service::caller::Need;

use super::client::{Client, origin};
use super::token::{Grant, client_mark};
use super::{AUTHORIZE, Code, Refusal, check_resource};
use crate::form::{Form, address};
use crate::layout::{Room, page};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visit::Visit;
use crate::{Page, changes, choice, shows, visible};

/// The pages of this module.
pub(crate) static PAGES: [Page; 2] = [shows(AUTHORIZE, ask), changes(AUTHORIZE, decide)];

/// How long a code is valid.
const CODE_VALID_FOR: Duration = Duration::from_mins(1);
/// For how many days a person can let a host in; the first is suggested.
const DAYS: [u64; 4] = [30, 1, 7, 90];
/// The longest `state`, which is echoed.
const STATE_SIZE_BYTES_MAX: usize = 2048;

/// What a host asks for, once it is clear that it may be answered.
struct Asked<'a> {
    client: Client,
    client_id: &'a str,
    redirect_uri: &'a str,
    state: &'a str,
    challenge: &'a str,
    scope: &'a str,
    resource: &'a str,
}

impl<'a> Asked<'a> {
    /// Reads a request. Until the address is known to be the host's, a failure is a page: sending it to
    /// an address that anybody can name would make us a way to lead people astray.
    fn read(form: &'a Form) -> Result<Self, Trouble> {
        let text = |name: &str| form.get(name).unwrap_or_default();
        let astray = |words: &str| {
            Trouble::Invalid(format!("The program that sent you here made a mistake: {words}"))
        };
        let client = Client::from_id(text("client_id")).map_err(|_unknown| {
            astray("its client_id was not issued by this server. Remove the connection there and add it again.")
        })?;
        let redirect_uri = text("redirect_uri");
        if !client.allows(redirect_uri) {
            return Err(astray("it wants the answer at an address that it did not register."));
        }
        let state = text("state");
        if state.len() > STATE_SIZE_BYTES_MAX {
            return Err(astray("its state is too long."));
        }
        Ok(Self {
            client,
            client_id: text("client_id"),
            redirect_uri,
            state,
            challenge: text("code_challenge"),
            scope: text("scope"),
            resource: text("resource"),
        })
    }

    /// Checks what the host can be told of at its own address.
    fn check(&self, form: &Form, base: &str) -> Result<(), Refusal> {
        if form.get("response_type") != Some("code") {
            return Err(Refusal::new(Code::UnsupportedResponseType, "response_type: must be code"));
        }
        let is_challenge = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if form.get("code_challenge_method") != Some("S256")
            || self.challenge.len() != 43
            || !self.challenge.bytes().all(is_challenge)
        {
            return Err(Refusal::new(
                Code::InvalidRequest,
                "code_challenge: PKCE with S256 is required",
            ));
        }
        check_resource(form.get("resource"), base)
    }

    /// Returns the host's address with an answer.
    fn answer(&self, pairs: &[(&str, &str)], base: &str) -> String {
        let mut all = pairs.to_vec();
        all.push(("state", self.state));
        all.push(("iss", base));
        let answer = address("", &all);
        let answer = answer.trim_start_matches('?');
        let separator = if self.redirect_uri.contains('?') { '&' } else { '?' };
        format!("{}{separator}{answer}", self.redirect_uri)
    }
}

fn ask(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let asked = Asked::read(&visit.query)?;
    if let Err(refusal) = asked.check(&visit.query, visit.base) {
        return refused(&asked, refusal, visit.base);
    }
    let key = key(visit)?;
    let stores = visit.stores(Archived::Hide)?;
    let opened: Vec<_> = key.stores.iter().flatten().map(ToString::to_string).collect();
    let content = html! {
        h1 { "Let " q { (visible::short(&asked.client.name)) } " use your memory?" }
        p { "It asks to read and write memories over MCP. The answer goes to "
            strong { (origin(asked.redirect_uri)) } ". "
            "The name is what the program calls itself; the address is where your decision is sent. Allow it only if you have just \
             asked that program to connect." }
        form.narrow method="post" action=(AUTHORIZE) {
            (visit.token_field())
            (hidden(&asked, &visit.query))
            (roles(key.role))
            fieldset {
                @if key.stores.is_none() {
                    legend { "Only these stores; none marked means all, also future ones" }
                } @else { legend { "These stores" } }
                (choice::boxes(&stores, &opened, ""))
            }
            label { "For"
                select name="days" { @for days in DAYS {
                    option value=(days) { (text::count(days, "day", "days")) }
                } }
            }
            p { small { "It appears in the list of keys and can be revoked there at any time." } }
            button.primary name="decision" value="allow" { "Allow" } " "
            button name="decision" value="deny" formnovalidate { "Deny" }
        }
    };
    let page = page(visit, Room::Admin, "Let a program use your memory?", &content);
    Ok(Reply::Form { page, target: origin(asked.redirect_uri) })
}

fn hidden(asked: &Asked<'_>, form: &Form) -> Markup {
    let fields = [
        ("client_id", asked.client_id),
        ("redirect_uri", asked.redirect_uri),
        ("state", asked.state),
        ("code_challenge", asked.challenge),
        ("code_challenge_method", form.get("code_challenge_method").unwrap_or_default()),
        ("response_type", form.get("response_type").unwrap_or_default()),
        ("scope", asked.scope),
        ("resource", asked.resource),
    ];
    html! { @for (name, value) in fields { input type="hidden" name=(name) value=(value); } }
}

fn roles(most: Role) -> Markup {
    let roles = [(Role::ReadWrite, "Read and write memories"), (Role::ReadOnly, "Only read")];
    html! {
        label { "It may"
            select name="role" { @for (role, words) in roles.into_iter().filter(|(role, _)| *role <= most) {
                option value=(role.as_str()) { (words) }
            } }
        }
    }
}

fn decide(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let form = &visit.form;
    let asked = Asked::read(form)?;
    if let Err(refusal) = asked.check(form, visit.base) {
        return refused(&asked, refusal, visit.base);
    }
    if form.get("decision") != Some("allow") {
        let answer = asked.answer(&[("error", "access_denied")], visit.base);
        return Ok(Reply::SeeOther(answer));
    }
    let key = key(visit)?;
    let role = match form.get("role") {
        Some("read_only") => Role::ReadOnly,
        _ => key.role.min(Role::ReadWrite),
    };
    let days =
        form.get("days").and_then(|days| days.parse().ok()).filter(|days| DAYS.contains(days));
    let days = days.ok_or_else(|| Trouble::Invalid("Choose for how many days.".to_owned()))?;
    let now = visit.engine.now();
    let grant = Grant {
        client: client_mark(asked.client_id),
        redirect_uri: asked.redirect_uri.to_owned(),
        challenge: asked.challenge.to_owned(),
        ends_at: now.plus(Duration::from_hours(24 * days)),
    };
    let new = NewDerivedKey {
        kind: KeyKind::Code,
        name: Name::new(&asked.client.name).map_err(|error| Trouble::Invalid(error.to_string()))?,
        role,
        stores: stores(visit, key)?,
        expires_at: now.plus(CODE_VALID_FOR),
        payload: Some(grant.payload()),
    };
    let (_, code) = visit.engine.derive_key(Derivation::Key(key.id), &new)?;
    Ok(Reply::SeeOther(asked.answer(&[("code", code.reveal())], visit.base)))
}

/// Returns the stores that the person chose.
fn stores(visit: &Visit<'_>, key: &Key) -> Result<Option<Vec<StoreId>>, Trouble> {
    let mut chosen = Vec::new();
    for id in visit.form.all("store") {
        let id =
            id.parse().map_err(|_malformed| Trouble::Invalid(format!("`{id}` is not a store.")))?;
        chosen.push(id);
    }
    let named = choice::named(visit, &visit.form, Need::Read)?;
    chosen.extend(named.into_iter().map(|store| store.id));
    if chosen.is_empty() && key.stores.is_none() {
        return Ok(None);
    }
    if chosen.is_empty() {
        return Err(Trouble::Invalid("Choose at least one store; go back and mark it.".to_owned()));
    }
    Ok(Some(chosen))
}

/// Returns the key that somebody signed in with.
fn key<'a>(visit: &Visit<'a>) -> Result<&'a Key, Trouble> {
    match &visit.caller.principal {
        Principal::Key(key) => Ok(key),
        Principal::Session(_) => {
            Err(Trouble::Invalid("A session cannot let others in; sign in with a key.".to_owned()))
        }
    }
}

fn refused(asked: &Asked<'_>, refusal: Refusal, base: &str) -> Result<Reply, Trouble> {
    match refusal {
        Refusal::Host(code, words) => {
            let pairs = [("error", code.as_str()), ("error_description", words.as_str())];
            Ok(Reply::SeeOther(asked.answer(&pairs, base)))
        }
        Refusal::Engine(error) => Err(error.into()),
    }
}
