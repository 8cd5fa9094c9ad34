//! What was read before and cannot have changed since.
//!
//! The [`gate`](crate::gate) counts the turns of all writers of all processes. While the count
//! stands still, an answer that was read from the database is still the answer. So a read first
//! tries to do with such answers alone; if one is missing, it is run again on a snapshot, and what
//! it asks for is kept for the next one. All answers of one run are of one count, so they belong
//! together as those of a snapshot do.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use quipu_core::backend::{ReadWork, Sequence};
use quipu_core::model::{
    Key, KeyId, Memory, MemoryId, MemoryPath, Session, Store, StoreId, Timestamp, View,
};
use quipu_core::{Error, ErrorKind};
use rusqlite::Connection;

use crate::error::StorageResult as _;
use crate::files::Files;
use crate::gate::Turns;
use crate::kept::Kept;
use crate::rows::Rows;

/// When answers take more memory than this, all are forgotten.
const SIZE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// About how much memory an answer takes beside its text.
const ANSWER_SIZE_BYTES: usize = 256;

/// The answers that hold as long as the count of turns stands still.
pub(crate) struct Recall {
    /// `None` if nobody counts turns, and nothing can be recalled.
    turns: Option<Turns>,
    files: Arc<Files>,
    answers: Kept<Answers>,
}

#[derive(Default)]
struct Answers {
    known: HashMap<Question, Answer>,
    size_bytes: usize,
}

/// What is asked again and again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    Key(KeyId),
    KeyWithSecret([u8; 32]),
    SessionWithToken([u8; 32]),
    Store(StoreId),
    Memory(StoreId, MemoryId, View),
    MemoryAt(StoreId, MemoryPath, View),
    NotedUse(StoreId, MemoryId),
    NewestChange,
    ChangedAt(StoreId),
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Key(Option<Key>),
    Session(Option<Session>),
    Store(Option<Store>),
    Memory(Option<Memory>),
    Moment(Option<Timestamp>),
    Newest(Sequence, Timestamp),
}

/// What can be an answer.
pub(crate) trait Recallable: Clone {
    fn to_answer(&self) -> Answer;
    fn from_answer(answer: &Answer) -> Option<Self>;
}

macro_rules! recallable {
    ($($noun:ty => $variant:ident,)*) => {$(
        impl Recallable for Option<$noun> {
            fn to_answer(&self) -> Answer {
                Answer::$variant(self.clone())
            }

            fn from_answer(answer: &Answer) -> Option<Self> {
                if let Answer::$variant(thing) = answer { Some(thing.clone()) } else { None }
            }
        }
    )*};
}

recallable! {
    Key => Key,
    Session => Session,
    Store => Store,
    Memory => Memory,
    Timestamp => Moment,
}

impl Recallable for (Sequence, Timestamp) {
    fn to_answer(&self) -> Answer {
        Answer::Newest(self.0, self.1)
    }

    fn from_answer(answer: &Answer) -> Option<Self> {
        if let Answer::Newest(sequence, at) = answer { Some((*sequence, *at)) } else { None }
    }
}

/// Where a read gets its answers from.
pub(crate) enum Source<'a> {
    /// The database, inside a transaction that also writes.
    Database(&'a Connection),
    /// A snapshot of the database; what is asked is kept.
    Snapshot(&'a Connection, &'a RefCell<Vec<(Question, Answer)>>),
    /// What is known already.
    Known(&'a Known<'a>),
}

/// The answers of one count of turns.
pub(crate) struct Known<'a> {
    answers: &'a Answers,
    is_missing: Cell<bool>,
}

impl Known<'_> {
    /// Fails the run, which is then repeated on a snapshot.
    pub(crate) fn missing(&self) -> Error {
        self.is_missing.set(true);
        Error::new(ErrorKind::StorageUnavailable, "not known without the database")
    }

    pub(crate) fn answer<T: Recallable>(&self, question: &Question) -> Result<T, Error> {
        let known = self.answers.known.get(question).and_then(T::from_answer);
        known.ok_or_else(|| self.missing())
    }
}

impl Recall {
    pub(crate) fn new(turns: Option<Turns>, files: Arc<Files>) -> Self {
        Self { turns, files, answers: Kept::default() }
    }

    /// Returns the number of turns, if it can be relied on.
    fn count(&self) -> Option<u64> {
        // The counter of a lock file that was removed stands still for good.
        self.files.require_same_lately().ok()?;
        self.turns.as_ref()?.count()
    }

    /// Runs `work` with what is known, if that is enough.
    pub(crate) fn try_without_database(
        &self,
        work: &mut ReadWork<'_>,
    ) -> Option<Result<(), Error>> {
        let worked = self.answers.with(
            || self.count(),
            |answers| {
                let known = Known { answers, is_missing: Cell::new(false) };
                let worked = work(&Rows::new(Source::Known(&known)));
                (!known.is_missing.get()).then_some(worked)
            },
        );
        worked.flatten()
    }

    /// Runs `work` on a snapshot and keeps what it asked for.
    pub(crate) fn run_on(
        &self,
        connection: &Connection,
        work: &mut ReadWork<'_>,
    ) -> Result<(), Error> {
        let asked = RefCell::default();
        let turn = self.count();
        // Statements that are prepared once cost a quarter of a `Transaction`.
        let run = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
        run("BEGIN").or_storage_error()?;
        let worked = work(&Rows::new(Source::Snapshot(connection, &asked)));
        let ended = run("COMMIT").or_storage_error();
        if let Some(turn) = turn.filter(|_| turn == self.count()) {
            self.keep(turn, asked.into_inner());
        }
        worked.and(ended)
    }

    fn keep(&self, turn: u64, asked: Vec<(Question, Answer)>) {
        let asked = worth_keeping(asked);
        if asked.is_empty() {
            return;
        }
        self.answers.add(turn, |answers| {
            if answers.size_bytes > SIZE_BYTES_MAX {
                *answers = Answers::default();
            }
            for (question, answer) in asked {
                answers.size_bytes += size_bytes(&answer);
                answers.known.insert(question, answer);
            }
        });
    }
}

/// Leaves out that there is no such key, session or store: anybody can ask for any number of these,
/// and the answers would crowd out those of callers that are known.
fn worth_keeping(mut asked: Vec<(Question, Answer)>) -> Vec<(Question, Answer)> {
    // A token is looked for among the keys first, so this absence is needed to recall the session.
    let tokens: Vec<_> = asked
        .iter()
        .filter_map(|(question, answer)| match (question, answer) {
            (Question::SessionWithToken(hash), Answer::Session(Some(_))) => Some(*hash),
            _ => None,
        })
        .collect();
    asked.retain(|(question, answer)| match (question, answer) {
        (Question::KeyWithSecret(hash), Answer::Key(None)) => tokens.contains(hash),
        (_, Answer::Session(None) | Answer::Store(None)) => false,
        _ => true,
    });
    asked
}

fn size_bytes(answer: &Answer) -> usize {
    let text = match answer {
        Answer::Memory(Some(memory)) => {
            memory.content.as_ref().map_or(0, |text| text.as_str().len())
        }
        Answer::Memory(None)
        | Answer::Key(_)
        | Answer::Session(_)
        | Answer::Store(_)
        | Answer::Moment(_)
        | Answer::Newest(..) => 0,
    };
    text + ANSWER_SIZE_BYTES
}
