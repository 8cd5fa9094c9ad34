//! Authors as pages name them: a name that leads to what they changed.

use std::cell::RefCell;
use std::collections::HashMap;

use maud::{Markup, html};
use quipu_core::engine::Engine;
use quipu_core::model::{Actor, SessionId};
use quipu_service::authors::AuthorNames;
use quipu_service::caller::Caller;

use crate::visible;
use crate::visit::Visit;

/// Names the authors that a visitor meets.
///
/// The title of a session is shown to those who may know of the session; to others who read a store that
/// it has changed, the session is an id.
#[derive(Debug)]
pub(crate) struct Authors<'a> {
    names: AuthorNames<'a>,
    engine: &'a Engine,
    caller: &'a Caller,
    seen: RefCell<HashMap<SessionId, bool>>,
}

impl<'a> Authors<'a> {
    /// Names authors for a visitor.
    pub(crate) fn new(visit: &Visit<'a>) -> Self {
        Self {
            names: visit.authors(),
            engine: visit.engine.engine(),
            caller: visit.caller,
            seen: RefCell::default(),
        }
    }

    /// Returns the author's name, or its id if it has none or the visitor may not know it.
    pub(crate) fn name(&self, actor: &Actor) -> String {
        match actor {
            Actor::Session(id) if !self.sees(*id) => actor.to_string(),
            Actor::Session(_) | Actor::ApiKey(_) | Actor::User(_) | Actor::ServiceAccount(_) => {
                self.names.short(actor)
            }
        }
    }

    /// Returns the author's name as a link to the page about it.
    pub(crate) fn link(&self, actor: &Actor) -> Markup {
        html! { a href=(self.address(actor)) { (visible::short(&self.name(actor))) } }
    }

    /// Returns the address of the page about an author.
    pub(crate) fn address(&self, actor: &Actor) -> String {
        match actor {
            Actor::Session(id) if self.sees(*id) => format!("/ui/sessions/{id}"),
            Actor::Session(_) | Actor::ApiKey(_) | Actor::User(_) | Actor::ServiceAccount(_) => {
                format!("/ui/actors/{actor}")
            }
        }
    }

    fn sees(&self, id: SessionId) -> bool {
        *self.seen.borrow_mut().entry(id).or_insert_with(|| {
            self.engine.session(id).is_ok_and(|session| self.caller.sees(&session))
        })
    }
}
