//! A site with one store, and visitors.

use std::ops::Deref;
use std::time::Duration;

use http::Method;
use quipu_core::ErrorKind;
use quipu_core::engine::{NewAttachment, NewSession, Precondition, SessionToken};
use quipu_core::model::{
    Access, Actor, Content, Instructions, Memory, MemoryPath, PrincipalName, Session, StoreId,
};
use quipu_core::settings::Limits;
use quipu_inspector::{Reply, Trouble};
use quipu_service::caller::Caller;

use crate::support;

/// What an attacker would have somebody look at.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";

/// A site with one store, whose answers are looked at as a browser sees them.
pub(crate) struct Site {
    site: support::Site,
    pub(crate) store: StoreId,
}

impl Deref for Site {
    type Target = support::Site;

    fn deref(&self) -> &support::Site {
        &self.site
    }
}

/// What a page answered, as a browser sees it.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status, of those that the pages themselves decide.
    pub(crate) status: u16,
    /// The document, the address to go to, the file, or the message.
    pub(crate) text: String,
}

impl Answer {
    /// Returns the document; fails if there is none.
    pub(crate) fn page(self) -> String {
        assert_eq!(self.status, 200, "{}", self.text);
        self.text
    }

    /// Returns where the browser goes; fails if it stays.
    pub(crate) fn moved(self) -> String {
        assert_eq!(self.status, 303, "{}", self.text);
        self.text
    }
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let site = support::Site::with_limits(limits);
        let store = site.store("notes");
        Self { site, store }
    }

    pub(crate) fn session(&self, title: &str, stores: &[StoreId]) -> Session {
        let attach = |store: &StoreId| NewAttachment {
            store: *store,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        };
        let attachments = stores.iter().map(attach).collect();
        let new = NewSession::titled(title, attachments, SessionToken::Issue);
        self.engine.create_session(self.workspace, &new).unwrap().0
    }

    /// Writes a memory in the store, a second later than what was written before.
    pub(crate) fn put(&self, actor: &Actor, path: &str, text: &str) -> Memory {
        self.clock.advance(Duration::from_secs(1));
        let (path, text) = (MemoryPath::parse(path).unwrap(), Content::new(text).unwrap());
        let written = self.engine.put(actor, self.store, (&path, &text), Precondition::None);
        written.unwrap().memory
    }

    /// Returns the text at a path, if there is one.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let path = MemoryPath::parse(path).unwrap();
        let memory =
            self.engine.memory_at(self.store, &path, quipu_core::model::View::Full).ok()?;
        memory.content.map(|content| content.as_str().to_owned())
    }

    /// Returns the address of a page about the store.
    pub(crate) fn at(&self, page: &str) -> String {
        format!("/ui/stores/{}{page}", self.store)
    }

    /// Returns what an address leads to.
    pub(crate) fn get(&self, caller: &Caller, address: &str) -> Answer {
        let answer = self.visit(caller, &Method::GET, address, "");
        if answer.status == 303 {
            return self.visit(caller, &Method::GET, &answer.text, "");
        }
        answer
    }

    pub(crate) fn post(&self, caller: &Caller, address: &str, fields: &[(&str, &str)]) -> Answer {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        self.visit(caller, &Method::POST, address, &form.finish())
    }

    /// Submits a form of a page, with all of its hidden fields and some more.
    pub(crate) fn submit(
        &self,
        caller: &Caller,
        (page, id): (&str, &str),
        typed: &[(&str, &str)],
    ) -> Answer {
        let start = page.find(&format!(" id=\"{id}\"")).unwrap_or_else(|| panic!("{id}: {page}"));
        let form = &page[page[..start].rfind('<').unwrap()..];
        let form = &form[..form.find("</form>").unwrap()];
        let action = attribute(&form[form.find("<form").unwrap_or(0)..], "action").unwrap();
        let mut fields: Vec<(String, String)> = Vec::new();
        for input in form.split("<input").skip(1).filter(|it| it.starts_with(" type=\"hidden\"")) {
            fields.push((attribute(input, "name").unwrap(), attribute(input, "value").unwrap()));
        }
        let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.post(caller, &action, &[fields.as_slice(), typed].concat())
    }

    fn visit(&self, caller: &Caller, method: &Method, address: &str, form: &str) -> Answer {
        match self.site.visit(caller, method, address, form) {
            Ok(Reply::Page(page)) => Answer { status: 200, text: page.into_string() },
            Ok(Reply::Conflict(page)) => Answer { status: 409, text: page.into_string() },
            Ok(Reply::SeeOther(to)) => Answer { status: 303, text: to },
            Ok(Reply::Download { bytes, .. }) => {
                Answer { status: 200, text: String::from_utf8(bytes).unwrap() }
            }
            Ok(other) => panic!("{address}: {other:?}"),
            Err(Trouble::Denied(denied)) => Answer { status: 403, text: denied.0 },
            Err(Trouble::NotFound(message)) => Answer { status: 404, text: message },
            Err(Trouble::Invalid(message)) => Answer { status: 400, text: message },
            Err(Trouble::Engine(error)) => {
                let status = if *error.kind() == ErrorKind::NotFound { 404 } else { 400 };
                let hint = error.hint().unwrap_or_default();
                Answer { status, text: format!("{}; {hint}", error.message()) }
            }
        }
    }
}

/// Returns an attribute of the first element of some markup.
fn attribute(markup: &str, name: &str) -> Option<String> {
    let (_, rest) = markup.split_once(&format!(" {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let plain = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Some(plain.replace("&amp;", "&"))
}

pub(crate) fn user(name: &str) -> Actor {
    Actor::User(PrincipalName::from_host(name))
}
