//! A site with an engine in memory, and visitors with all kinds of keys.

use std::sync::{Arc, Mutex};

use http::{Method, Uri};
use quipu_core::engine::{NewKey, NewStore, Precondition, Principal};
use quipu_core::model::{
    Actor, Content, Forwarding, Memory, MemoryPath, Name, PrincipalName, Role, StoreId, Timestamp,
    WorkspaceId,
};
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error};
use quipu_inspector::{Backup, Form, Host, Reply, Settings, Trouble, Visit, Webhook, pages};
use quipu_knowledge::Knowledge;
use quipu_service::caller::Caller;
use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_with};

/// A text that must never reach a page as markup.
pub(crate) const HOSTILE: &str = "<script>alert('x')</script>\"><img src=x onerror=y>";

/// An inspector without an HTTP server.
pub(crate) struct Site {
    pub(crate) engine: Knowledge,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) host: FakeHost,
}

/// A server that only remembers what it was asked for.
#[derive(Debug, Default)]
pub(crate) struct FakeHost {
    pub(crate) tested: Mutex<Vec<usize>>,
    pub(crate) backups: Mutex<Vec<Backup>>,
}

impl Host for FakeHost {
    fn webhooks(&self, _: &Engine) -> Result<Vec<Webhook>, Error> {
        Ok(vec![Webhook {
            url: "https://example.com/hook".to_owned(),
            accepted_count: 3,
            failed_count: 1,
            waiting_count: 2,
            last_error: Some((Timestamp::MIN, format!("the answer was {HOSTILE}"))),
            tested: None,
        }])
    }

    fn test_webhook(&self, _: &Engine, place: usize) {
        self.tested.lock().unwrap().push(place);
    }

    fn backups(&self) -> Result<Option<Vec<Backup>>, Error> {
        Ok(Some(self.backups.lock().unwrap().clone()))
    }

    fn back_up(&self, _: &Engine, _: WorkspaceId) -> Result<(), Error> {
        let backup = Backup { name: "quipu-1.backup".to_owned(), size_bytes: 2_000 };
        self.backups.lock().unwrap().push(backup);
        Ok(())
    }
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let clock = Arc::new(ManualClock::default());
        let backend = Arc::new(InMemoryBackend::default());
        let engine = knowledge_with(backend, Arc::clone(&clock) as _, limits);
        let workspace = engine.default_workspace().unwrap().id;
        Self { engine, clock, workspace, host: FakeHost::default() }
    }

    pub(crate) fn store(&self, name: &str) -> StoreId {
        let new = NewStore::named(Name::new(name).unwrap());
        self.engine.create_store(self.workspace, &new).unwrap().id
    }

    pub(crate) fn put(&self, store: StoreId, path: &str, text: &str) -> Memory {
        let actor = Actor::User(PrincipalName::parse("ada").unwrap());
        let (path, content) = (MemoryPath::parse(path).unwrap(), Content::new(text).unwrap());
        let put = self.engine.put(&actor, store, (&path, &content), Precondition::None);
        put.unwrap().memory
    }

    /// Returns a visitor with a new key that opens some stores, or all.
    pub(crate) fn visitor(&self, role: Role, stores: Option<&[StoreId]>) -> Caller {
        self.visitor_of(self.workspace, role, stores)
    }

    pub(crate) fn visitor_of(
        &self,
        workspace: WorkspaceId,
        role: Role,
        stores: Option<&[StoreId]>,
    ) -> Caller {
        let new = NewKey {
            name: Name::new(format!("{role} key")).unwrap(),
            role,
            stores: stores.map(<[StoreId]>::to_vec),
            expires_at: None,
            secret: None,
            forwarding: Forwarding::Denied,
        };
        let (key, _) = self.engine.create_key(workspace, &new).unwrap();
        Caller::new(Principal::Key(key))
    }

    pub(crate) fn admin(&self) -> Caller {
        self.visitor(Role::Admin, None)
    }

    /// Returns a page as text.
    pub(crate) fn get(&self, caller: &Caller, address: &str) -> Result<String, Trouble> {
        let mut reply = self.visit(caller, &Method::GET, address, "")?;
        if let Reply::SeeOther(to) = &reply {
            reply = self.visit(caller, &Method::GET, to, "")?;
        }
        let Reply::Page(page) = reply else { panic!("{address} is no page: {reply:?}") };
        let page = page.into_string();
        assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "{page}");
        assert!(!page.contains(" style=") && !page.contains(" onclick="), "{page}");
        assert_eq!(page.matches("<h1").count(), 1, "{page}");
        Ok(page)
    }

    /// Submits a form.
    pub(crate) fn post(
        &self,
        caller: &Caller,
        address: &str,
        fields: &[(&str, &str)],
    ) -> Result<Reply, Trouble> {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        self.visit(caller, &Method::POST, address, &body.finish())
    }

    /// Returns what an address answers with.
    pub(crate) fn follow(&self, caller: &Caller, address: &str) -> Result<Reply, Trouble> {
        self.visit(caller, &Method::GET, address, "")
    }

    /// Returns what a request is answered with.
    pub(crate) fn visit(
        &self,
        caller: &Caller,
        method: &Method,
        address: &str,
        body: &str,
    ) -> Result<Reply, Trouble> {
        let uri: Uri = address.parse().unwrap();
        let matching = pages().into_iter().filter(|page| page.method == *method);
        let found = matching.filter_map(|page| Some((parameters(page.path, uri.path())?, page)));
        // An address without variable parts comes first, as in the router.
        let (parameters, page) =
            found.min_by_key(|(parameters, _)| parameters.len()).expect("there is such a page");
        let settings = Settings { mount_root: "/mnt/memory".to_owned(), version: "1.2.3" };
        (page.work)(&Visit {
            base: "http://memory.test",
            engine: &self.engine,
            caller,
            settings: &settings,
            host: &self.host,
            uri: &uri,
            parameters: &parameters,
            query: Form::parse(uri.query().unwrap_or_default().as_bytes()),
            form: Form::parse(body.as_bytes()),
            form_token: "token".to_owned(),
        })
    }
}

/// Returns the variable parts of a path, if it has this pattern.
fn parameters(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
    let (mut expected, mut given) = (pattern.split('/'), path.split('/'));
    let mut parameters = Vec::new();
    loop {
        match (expected.next(), given.next()) {
            (None, None) => return Some(parameters),
            (Some(expected), Some(given)) => {
                match expected.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                    Some(name) => parameters.push((name.to_owned(), given.to_owned())),
                    None if expected == given => {}
                    None => return None,
                }
            }
            (Some(_), None) | (None, Some(_)) => return None,
        }
    }
}

/// Returns where a change leads to.
pub(crate) fn led_to(reply: Result<Reply, Trouble>) -> String {
    let Ok(Reply::SeeOther(to)) = reply else { panic!("no redirection: {reply:?}") };
    to
}

/// Checks that the visitor may not do that.
pub(crate) fn assert_denied<T: std::fmt::Debug>(reply: &Result<T, Trouble>) {
    assert!(matches!(reply, Err(Trouble::Denied(_))), "{reply:?}");
}
