//! The change feed, read once per process for all followers.
//!
//! One thread waits for commits of any process ([`Feed::follow`]) and broadcasts the changes to all
//! [`Tail`]s. If every follower queried the feed itself, 300 followers would read each change 300
//! times: that made durable creates 30 times slower. A tail that falls behind, or that resumes from
//! an older position, is notified that it missed changes and reads those from the engine,
//! so the memory kept for slow followers is bounded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use quipu_core::Error;
use quipu_core::backend::Sequence;
use quipu_core::engine::{FeedEntry, Position, SessionState};
use quipu_core::model::SessionId;
use quipu_knowledge::Knowledge;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

pub use crate::followed::FOLLOWERS_PER_SESSION_MAX;
use crate::followed::FollowedSessions;

/// How many changes are read in one query. With 300 followers, and so a pause of 15 ms, this allows
/// 16,000 changes per second, more than can be committed.
pub const BATCH: usize = 250;

/// How many batches are buffered for slow followers.
const BATCHES_BUFFERED: usize = 64;

/// How long one wait for commits lasts; `stop` is polled in between.
const WAIT: Duration = Duration::from_secs(10);

/// The pause before the feed is read again after an error.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The pause after a broadcast, per follower. A single change is broadcast immediately; changes in
/// quick succession are coalesced. Without the pause, waking 300 followers for every group commit
/// takes more processor time than the commits.
const PAUSE_PER_FOLLOWER: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// The change feed of this process.
#[derive(Clone, Debug)]
pub struct Feed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    batches: broadcast::Sender<Arc<Batch>>,
    credentials_lost: watch::Sender<Sequence>,
    /// The last sequence that [`Feed::follow`] has published; zero before it runs.
    published: AtomicU64,
    sessions: FollowedSessions,
}

/// Consecutive changes that were read together.
#[derive(Debug)]
struct Batch {
    /// The sequence before the first change.
    after: Sequence,
    /// The sequence of the last change.
    reached: Sequence,
    items: Vec<Item>,
    /// The concatenated texts of all items.
    text: OnceLock<Bytes>,
    /// Whether what was broadcast before may not be in the feed any more.
    is_restart: bool,
}

impl Batch {
    fn empty(reached: Sequence) -> Self {
        Self {
            after: reached,
            reached,
            items: Vec::new(),
            text: OnceLock::new(),
            is_restart: false,
        }
    }
}

/// One change with its serialized form.
#[derive(Debug)]
pub struct Item {
    /// The change and what it concerns.
    pub news: FeedEntry,
    text: OnceLock<String>,
}

impl From<FeedEntry> for Item {
    fn from(news: FeedEntry) -> Self {
        Self { news, text: OnceLock::new() }
    }
}

impl Item {
    fn sequence(&self) -> Sequence {
        self.news.change.sequence
    }

    /// Returns the change as `write` serializes it, which happens once for all followers.
    fn text(&self, write: fn(&FeedEntry) -> String) -> &str {
        self.text.get_or_init(|| write(&self.news))
    }
}

impl Feed {
    /// Creates a feed that is silent until [`Feed::follow`] runs.
    #[expect(clippy::new_without_default, reason = "a feed is shared, never made in passing")]
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            batches: broadcast::Sender::new(BATCHES_BUFFERED),
            credentials_lost: watch::Sender::new(Sequence(0)),
            published: AtomicU64::new(0),
            sessions: FollowedSessions::default(),
        }))
    }

    /// Subscribes to all changes that are broadcast from now on.
    ///
    /// The position of a new tail is unknown until [`Tail::resume_after`] sets it. Subscribe first
    /// and query the engine second: then no change can fall in between.
    pub fn tail(&self) -> Tail {
        Tail { batches: self.0.batches.subscribe(), seen: None }
    }

    /// Returns a counter that changes whenever a credential is revoked.
    pub fn credentials_lost(&self) -> watch::Receiver<Sequence> {
        self.0.credentials_lost.subscribe()
    }

    /// Follows a session: the receiver changes when the session has new events, ends or is deleted.
    /// `None` if it has as many followers as are allowed. Read the session afterwards: then nothing can
    /// fall in between.
    pub fn follow_session(&self, session: SessionId) -> Option<watch::Receiver<SessionState>> {
        self.0.sessions.follow(session)
    }

    /// Returns how far the changes are broadcast, if they are.
    pub fn published(&self) -> Option<Sequence> {
        let published = self.0.published.load(Ordering::Relaxed);
        (published > 0).then_some(Sequence(published))
    }

    /// Broadcasts changes until `stop` returns `true`. Blocks the calling thread.
    pub fn follow(&self, engine: &Knowledge, stop: impl Fn() -> bool) {
        let mut published = None;
        while !stop() {
            match self.step(engine, published) {
                Ok(position) => {
                    self.0.published.store(position.newest.0, Ordering::Relaxed);
                    published = Some(position);
                }
                Err(_) if stop() => return,
                Err(error) => {
                    tracing::error!(%error, "the change feed cannot be read");
                    thread::sleep(RETRY_PAUSE);
                }
            }
        }
    }

    /// Waits for a new position, publishes it and returns it.
    fn step(&self, engine: &Knowledge, published: Option<Position>) -> Result<Position, Error> {
        let Some(published) = published else {
            let now = engine.wait_beyond(Position::default(), Duration::ZERO)?;
            self.0.credentials_lost.send_replace(now.credentials_lost);
            // Tails that subscribed before this thread started learn where it starts, and catch up.
            self.send(now.newest, now.newest, Vec::new());
            return Ok(now);
        };
        let now = engine.wait_beyond(published, WAIT)?;
        // Revocations first: a change that follows one must not reach a stream that it ends.
        if now.credentials_lost != published.credentials_lost {
            self.0.credentials_lost.send_replace(now.credentials_lost);
        }
        if now.events_recorded != published.events_recorded {
            let followers_count = self.0.sessions.notify(engine)?;
            pause_for(followers_count);
        }
        let newest = self.publish(engine, published.newest, now.newest)?;
        Ok(Position { newest, ..now })
    }

    /// Broadcasts the next batch after `published` and returns the sequence it reached.
    fn publish(
        &self,
        engine: &Knowledge,
        published: Sequence,
        newest: Sequence,
    ) -> Result<Sequence, Error> {
        if newest < published {
            // The storage was replaced by an older copy. Each follower finds out what it has missed.
            self.send_batch(Batch { is_restart: true, ..Batch::empty(newest) });
            return Ok(newest);
        }
        if newest == published || self.0.batches.receiver_count() == 0 {
            // A later subscriber starts at a later position.
            return Ok(newest);
        }
        let news = engine.feed_entries(published, BATCH)?.items;
        let (Some(first), Some(last)) = (news.first(), news.last()) else {
            // Retention has removed them already.
            self.send(newest, newest, Vec::new());
            return Ok(newest);
        };
        let (after, reached) = (Sequence(first.change.sequence.0 - 1), last.change.sequence);
        self.send(after, reached, news.into_iter().map(Item::from).collect());
        pause_for(self.0.batches.receiver_count());
        Ok(reached)
    }

    fn send(&self, after: Sequence, reached: Sequence, items: Vec<Item>) {
        self.send_batch(Batch { after, items, ..Batch::empty(reached) });
    }

    fn send_batch(&self, batch: Batch) {
        // The last follower may just have left.
        let _receivers_count = self.0.batches.send(Arc::new(batch));
    }

    /// Returns how many followers there are.
    pub fn followers_count(&self) -> usize {
        self.0.batches.receiver_count()
    }
}

/// Lets followers work before the next broadcast.
fn pause_for(followers_count: usize) {
    let followers_count = u32::try_from(followers_count).unwrap_or(u32::MAX);
    thread::sleep(PAUSE_PER_FOLLOWER.saturating_mul(followers_count).min(PAUSE_MAX));
}

/// A position in the feed that advances with every broadcast.
#[derive(Debug)]
pub struct Tail {
    batches: broadcast::Receiver<Arc<Batch>>,
    /// The last sequence that was received; `None` accepts any batch as the next one.
    seen: Option<Sequence>,
}

/// What a [`Tail`] receives next.
#[derive(Debug)]
pub enum Received {
    /// Changes that directly follow the last ones.
    Changes(Changes),
    /// The buffer has overflowed, or the tail resumed before its beginning: changes are missing.
    Missed,
}

/// Changes that a tail has not received before.
#[derive(Debug)]
pub struct Changes {
    batch: Arc<Batch>,
    after: Sequence,
}

impl Changes {
    /// Returns the sequence of the last change.
    pub fn reached(&self) -> Sequence {
        self.batch.reached
    }

    /// Returns the changes.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.batch.items.iter().filter(|item| item.sequence() > self.after)
    }

    /// Returns the concatenated texts of the changes that are wanted. Followers that want all of
    /// them share one buffer.
    pub fn texts(
        &self,
        wants: impl Fn(&FeedEntry) -> bool,
        write: fn(&FeedEntry) -> String,
    ) -> Bytes {
        let is_wanted = |item: &&Item| wants(&item.news);
        let wanted: Vec<_> = self.items().filter(is_wanted).map(|item| item.text(write)).collect();
        if wanted.len() < self.batch.items.len() {
            return wanted.concat().into();
        }
        self.batch.text.get_or_init(|| wanted.concat().into()).clone()
    }
}

impl Tail {
    /// Continues after this sequence.
    pub fn resume_after(&mut self, seen: Sequence) {
        self.seen = Some(seen);
    }

    /// Skips what was missed and continues with the next batch.
    pub fn skip_missed(&mut self) {
        self.seen = None;
    }

    /// Returns the next changes, or `None` when the feed has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Received> {
        loop {
            let batch = match self.batches.recv().await {
                Ok(batch) => batch,
                Err(RecvError::Lagged(_)) => return Some(Received::Missed),
                Err(RecvError::Closed) => return None,
            };
            let seen = self.seen.unwrap_or(batch.after);
            if seen < batch.after || batch.is_restart {
                return Some(Received::Missed);
            }
            if seen < batch.reached {
                self.seen = Some(batch.reached);
                return Some(Received::Changes(Changes { batch, after: seen }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(feed: &Feed, after: u64, reached: u64) {
        feed.send(Sequence(after), Sequence(reached), Vec::new());
    }

    /// Returns the sequence that was reached; zero if changes were missed.
    async fn next(tail: &mut Tail) -> u64 {
        match tail.next().await.unwrap() {
            Received::Changes(changes) => changes.reached().0,
            Received::Missed => 0,
        }
    }

    #[tokio::test]
    async fn a_tail_ignores_what_it_has_seen_and_notices_a_gap() {
        let feed = Feed::new();
        let mut tail = feed.tail();
        tail.resume_after(Sequence(5));
        send(&feed, 2, 4);
        send(&feed, 4, 7);
        send(&feed, 9, 12);
        send(&feed, 12, 13);
        assert_eq!(next(&mut tail).await, 7);
        assert_eq!(next(&mut tail).await, 0);
        tail.resume_after(Sequence(12));
        assert_eq!(next(&mut tail).await, 13);
    }

    #[tokio::test]
    async fn a_tail_that_lags_is_notified_once() {
        let feed = Feed::new();
        let mut tail = feed.tail();
        tail.resume_after(Sequence(0));
        let sent = 2 * u64::try_from(BATCHES_BUFFERED).unwrap();
        for sequence in 0..sent {
            send(&feed, sequence, sequence + 1);
        }
        assert_eq!(next(&mut tail).await, 0);
        tail.skip_missed();
        let oldest = next(&mut tail).await;
        assert_eq!(oldest, sent - u64::try_from(BATCHES_BUFFERED).unwrap() + 1);
        assert_eq!(next(&mut tail).await, oldest + 1);
    }
}
