//! One run of the work of a write.

use std::cell::{Cell, OnceCell};
use std::time::Instant;

use quipu_core::backend::Subject;
use quipu_core::model::StoreId;
use quipu_core::{Error, ErrorKind};

use crate::PostgresBackend;
use crate::ahead::Announcement;
use crate::error::{self, Consequence};
use crate::group::{Outcome, Retry, Turn};
use crate::transaction::{Scope, Transaction};

/// How a write runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// In a group, if it announces a store.
    Grouped(Retry),
    /// In a transaction of its own with this scope.
    Own(Scope),
}

/// A run of the work. Its first call decides about the transaction.
pub(crate) struct Write<'b> {
    backend: &'b PostgresBackend,
    route: Route,
    deadline: Instant,
    held: OnceCell<Held<'b>>,
    /// What becomes of the write if it has got no transaction.
    outcome_without_transaction: Cell<Option<Outcome>>,
}

enum Held<'b> {
    Turn(Turn<'b, PostgresBackend>),
    Own(Box<Transaction>),
}

/// How a run ended.
pub(crate) enum Ended {
    /// The answer is final.
    Done(Result<(), Error>),
    /// Another run is needed, perhaps after a pause.
    /// The error is for whoever has no time left for that.
    Again(Route, Pause, Error),
}

/// Whether to wait before the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    None,
    Backoff,
}

impl<'b> Write<'b> {
    pub(crate) fn new(backend: &'b PostgresBackend, route: Route, deadline: Instant) -> Self {
        let (held, outcome_without_transaction) = (OnceCell::new(), Cell::new(None));
        Self { backend, route, deadline, held, outcome_without_transaction }
    }

    /// Announces a store, which waits for a turn in a group.
    pub(crate) fn announce(&self, store: StoreId, subject: Subject<'_>) -> Result<(), Error> {
        let Route::Grouped(retry) = self.route else {
            return self.transaction()?.announce(store);
        };
        if self.held.get().is_some() {
            return self.transaction()?.announce(store);
        }
        let announcement = Announcement { store, subject: subject.into(), partition: None };
        let groups = &self.backend.groups;
        match groups.join(self.backend, announcement, (retry, self.deadline)) {
            Ok(turn) => {
                self.held.get_or_init(|| Held::Turn(turn));
                Ok(())
            }
            Err(outcome) => Err(self.remember(outcome)),
        }
    }

    /// Returns the transaction; begins one of its own if nothing was announced.
    pub(crate) fn transaction(&self) -> Result<&Transaction, Error> {
        if self.held.get().is_none() {
            let scope = match self.route {
                Route::Own(scope) => scope,
                // It locks what it announces, or else administration.
                Route::Grouped(_) => Scope::Store,
            };
            let begun = self.backend.begin(scope, self.deadline);
            let transaction = begun.map_err(|(error, consequence)| {
                self.remember(match consequence {
                    Some(Consequence::Repeat | Consequence::Reconnect) => {
                        Outcome::Again(Retry::Grouped, error)
                    }
                    Some(_) | None => Outcome::Failed(error),
                })
            })?;
            self.held.get_or_init(|| Held::Own(Box::new(transaction)));
        }
        match self.held.get() {
            Some(Held::Own(transaction)) => Ok(transaction),
            Some(Held::Turn(turn)) => turn.transaction().ok_or_else(error::connection_lost),
            None => Err(error::connection_lost()),
        }
    }

    /// Fails the run. The reason is kept apart from the error, because the work may swallow the error.
    fn remember(&self, outcome: Outcome) -> Error {
        let error = match &outcome {
            Outcome::Failed(error) | Outcome::Again(_, error) => error.clone(),
            Outcome::Committed => {
                Error::new(ErrorKind::StorageBusy, "the transaction has to be repeated")
            }
        };
        self.outcome_without_transaction.set(Some(outcome));
        error
    }

    /// Ends the run.
    pub(crate) fn end(self, worked: Result<(), Error>) -> Ended {
        if let Some(outcome) = self.outcome_without_transaction.take() {
            return ended(outcome, worked);
        }
        match self.held.into_inner() {
            // It has not called anything.
            None => Ended::Done(worked),
            Some(Held::Turn(turn)) => {
                let larger = turn.transaction().and_then(Transaction::larger_scope);
                let outcome = turn.end(&worked);
                match larger {
                    Some(scope) => Ended::Again(Route::Own(scope), Pause::None, error::busy()),
                    None => ended(outcome, worked),
                }
            }
            Some(Held::Own(transaction)) => end_own(self.backend, self.route, *transaction, worked),
        }
    }
}

fn ended(outcome: Outcome, worked: Result<(), Error>) -> Ended {
    match outcome {
        Outcome::Committed => Ended::Done(worked),
        Outcome::Again(retry, error) => {
            let pause = match retry {
                Retry::Grouped => Pause::Backoff,
                Retry::OfStore | Retry::Alone => Pause::None,
            };
            Ended::Again(Route::Grouped(retry), pause, error)
        }
        Outcome::Failed(error) => Ended::Done(Err(error)),
    }
}

fn end_own(
    backend: &PostgresBackend,
    route: Route,
    transaction: Transaction,
    worked: Result<(), Error>,
) -> Ended {
    use crate::group::{Database as _, Refused};

    if let Some(larger) = transaction.larger_scope() {
        return Ended::Again(Route::Own(larger), Pause::None, error::busy());
    }
    let refused = match (transaction.failure(), worked) {
        (Some(consequence), worked) => {
            let error = worked.err().unwrap_or_else(error::connection_lost);
            Refused { consequence, error }
        }
        (None, Err(error)) => return Ended::Done(Err(error)),
        (None, Ok(())) => {
            let has_changed = transaction.has_changed();
            match backend.commit(transaction) {
                Ok(Ok(())) => {
                    if has_changed {
                        backend.groups.count(1);
                    }
                    return Ended::Done(Ok(()));
                }
                Ok(Err(refused)) => refused,
                Err(error) => return Ended::Done(Err(error)),
            }
        }
    };
    match refused.consequence {
        Consequence::Repeat | Consequence::Reconnect | Consequence::Rewritten => {
            Ended::Again(route, Pause::Backoff, refused.error)
        }
        Consequence::Locked | Consequence::Fail => Ended::Done(Err(refused.error)),
    }
}
