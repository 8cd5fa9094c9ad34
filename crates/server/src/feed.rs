//! The change feed, read once for everybody in this process who follows it.
//!
//! One thread waits for changes of any process ([`Feed::follow`]) and hands them to all that have a
//! [`Tail`]. If each follower read the feed by itself, three hundred of them would read three hundred
//! times what one writer writes. A tail that falls behind, or that begins elsewhere, is told that it
//! missed something and reads that from the engine by itself; so what is kept for the slow is bounded.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use axum::body::Bytes;
use quipu_core::backend::Sequence;
use quipu_core::engine::{News, Position};
use quipu_core::{Engine, Error};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// So many changes are read at once.
pub(crate) const BATCH: usize = 100;

/// So many batches are kept for followers that are slow.
const BATCHES_KEPT: usize = 64;

/// A stop is noticed at the latest after this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// The feed is tried again after this time if it cannot be read.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the thread rests after it has woken its followers, for each of them. A change that comes
/// alone is told at once; those that come close upon each other are told together, so that writers
/// keep the better part of the processors however many followers there are.
const REST_PER_FOLLOWER: Duration = Duration::from_micros(50);

/// And at most for so long.
const REST_MAX: Duration = Duration::from_millis(50);

/// The change feed of this process.
#[derive(Clone, Debug)]
pub(crate) struct Feed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    batches: broadcast::Sender<Arc<Batch>>,
    credentials_lost: watch::Sender<Sequence>,
}

/// Changes that were read together, without a gap between them.
#[derive(Debug)]
struct Batch {
    /// The change before the first of these.
    after: Sequence,
    reached: Sequence,
    items: Vec<Item>,
    /// All items as they are written, one after the other.
    text: OnceLock<Bytes>,
}

/// One change, and how it is written for those who want it written.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) news: News,
    text: OnceLock<String>,
}

impl From<News> for Item {
    fn from(news: News) -> Self {
        Self { news, text: OnceLock::new() }
    }
}

impl Item {
    pub(crate) fn sequence(&self) -> Sequence {
        self.news.change.sequence
    }

    /// Returns what `write` makes of it. That is the same for everybody, so it is made once.
    pub(crate) fn text(&self, write: fn(&News) -> String) -> &str {
        self.text.get_or_init(|| write(&self.news))
    }
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            batches: broadcast::Sender::new(BATCHES_KEPT),
            credentials_lost: watch::Sender::new(Sequence(0)),
        }))
    }

    /// Follows the feed from now on. Where in it that is, nobody knows before the engine has been
    /// asked, so the tail must be told with [`Tail::begin`].
    pub(crate) fn tail(&self) -> Tail {
        Tail { batches: self.0.batches.subscribe(), seen: None }
    }

    /// Returns what changes whenever a credential has stopped to work before its time.
    pub(crate) fn credentials_lost(&self) -> watch::Receiver<Sequence> {
        self.0.credentials_lost.subscribe()
    }

    /// Tells followers what happens, until `stop` says so. Blocks its thread.
    pub(crate) fn follow(&self, engine: &Engine, stop: impl Fn() -> bool) {
        let mut told = None;
        while !stop() {
            match self.step(engine, told) {
                Ok(position) => told = Some(position),
                Err(error) => {
                    tracing::error!(%error, "the change feed cannot be read");
                    thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Waits for something to tell, tells it, and returns what has been told then.
    fn step(&self, engine: &Engine, told: Option<Position>) -> Result<Position, Error> {
        let Some(told) = told else {
            let now = engine.wait_beyond(Position::default(), Duration::ZERO)?;
            self.0.credentials_lost.send_replace(now.credentials_lost);
            // Who began to follow before this thread did may have missed something.
            self.send(now.newest, now.newest, Vec::new());
            return Ok(now);
        };
        let now = engine.wait_beyond(told, PATIENCE)?;
        // Before any change that was made later, so that it is not told to who must not hear of it.
        if now.credentials_lost != told.credentials_lost {
            self.0.credentials_lost.send_replace(now.credentials_lost);
        }
        let newest = self.tell(engine, told.newest, now.newest)?;
        Ok(Position { newest, ..now })
    }

    /// Tells what came after `told`, and returns how far that is.
    fn tell(&self, engine: &Engine, told: Sequence, newest: Sequence) -> Result<Sequence, Error> {
        if newest <= told || self.0.batches.receiver_count() == 0 {
            // Whoever comes later begins later.
            return Ok(newest.max(told));
        }
        let news = engine.news(told, BATCH)?;
        let (Some(first), Some(last)) = (news.first(), news.last()) else {
            // They have left the feed already.
            self.send(newest, newest, Vec::new());
            return Ok(newest);
        };
        let (after, reached) = (Sequence(first.change.sequence.0 - 1), last.change.sequence);
        self.send(after, reached, news.into_iter().map(Item::from).collect());
        let followers_count = u32::try_from(self.0.batches.receiver_count()).unwrap_or(u32::MAX);
        thread::sleep(REST_PER_FOLLOWER.saturating_mul(followers_count).min(REST_MAX));
        Ok(reached)
    }

    fn send(&self, after: Sequence, reached: Sequence, items: Vec<Item>) {
        // It is no failure if the last follower has just gone.
        let batch = Batch { after, reached, items, text: OnceLock::new() };
        let _followers = self.0.batches.send(Arc::new(batch));
    }

    #[cfg(test)]
    pub(crate) fn followers_count(&self) -> usize {
        self.0.batches.receiver_count()
    }
}

/// Follows the feed from one place on.
#[derive(Debug)]
pub(crate) struct Tail {
    batches: broadcast::Receiver<Arc<Batch>>,
    /// `None` if whatever comes is new.
    seen: Option<Sequence>,
}

/// What a tail comes to.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Changes that follow upon what was seen, without a gap.
    Changes(Changes),
    /// There are changes that it was not given.
    Missed,
}

/// Changes that were not seen before.
#[derive(Debug)]
pub(crate) struct Changes {
    batch: Arc<Batch>,
    after: Sequence,
}

impl Changes {
    pub(crate) fn reached(&self) -> Sequence {
        self.batch.reached
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.batch.items.iter().filter(|item| item.sequence() > self.after)
    }

    /// Returns the texts of those that are wanted. Most followers want the same, and share it.
    pub(crate) fn texts(&self, wants: impl Fn(&News) -> bool, write: fn(&News) -> String) -> Bytes {
        let is_wanted = |item: &&Item| wants(&item.news);
        let wanted: Vec<_> = self.items().filter(is_wanted).map(|item| item.text(write)).collect();
        if wanted.len() < self.batch.items.len() {
            return wanted.concat().into();
        }
        self.batch.text.get_or_init(|| wanted.concat().into()).clone()
    }
}

impl Tail {
    /// Says that everything up to here has been seen, this included.
    pub(crate) fn begin(&mut self, seen: Sequence) {
        self.seen = Some(seen);
    }

    /// Gives up what was missed: whatever comes next is new.
    pub(crate) fn skip(&mut self) {
        self.seen = None;
    }

    /// Waits for the next changes; `None` if there will be no more. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        loop {
            let batch = match self.batches.recv().await {
                Ok(batch) => batch,
                Err(RecvError::Lagged(_)) => return Some(Heard::Missed),
                Err(RecvError::Closed) => return None,
            };
            let seen = self.seen.unwrap_or(batch.after);
            if seen < batch.after {
                return Some(Heard::Missed);
            }
            if seen < batch.reached {
                self.seen = Some(batch.reached);
                return Some(Heard::Changes(Changes { batch, after: seen }));
            }
        }
    }
}
