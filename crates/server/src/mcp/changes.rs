//! Telling clients what changed, whatever door and process it came through.
//!
//! The change feed is read once per process, whatever the number of clients; each of them picks
//! from it what it wants to hear and may know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use quipu_core::backend::{Change, Event, Sequence};
use quipu_core::model::{MemoryPath, Operation, StoreId, View, WorkspaceId};
use quipu_core::{Engine, Error, ErrorKind};
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionSink};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::access::{Client, Identity};
use super::http::Secret;
use super::place;
use crate::pool::{Pool, PoolError};

/// So many changes are read at once.
const BATCH: usize = 100;

/// A client that falls so many batches behind is told that everything may have changed.
const BATCHES_KEPT: usize = 64;

/// The feed is tried again after this time if it cannot be read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a memory is or was.
type Place = (StoreId, MemoryPath);

/// The memories that a client wants to hear of, by the URL that it used.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<HashMap<String, Place>>>);

impl Watched {
    /// Adds a memory, which must exist: the URL of one that does not is most likely a wrong one.
    pub(super) fn add(&self, client: &Client, url: &str) -> Result<(), Error> {
        let (store, path) = place::place(client, url)?;
        client
            .engine
            .memory_at(store.id, &path, View::Basic)
            .map_err(|error| error.with_hint("subscribe to a URL as resources/list shows it"))?;
        self.lock().insert(url.to_owned(), (store.id, path));
        Ok(())
    }

    pub(super) fn remove(&self, url: &str) {
        self.lock().remove(url);
    }

    /// Returns the URLs whose place is wanted, with their stores.
    fn urls(&self, is_wanted: impl Fn(&Place) -> bool) -> Vec<(StoreId, String)> {
        let watched = self.lock();
        let fitting = watched.iter().filter(|(_, place)| is_wanted(place));
        fitting.map(|(url, (store, _))| (*store, url.clone())).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The change feed of this process.
#[derive(Debug)]
pub(super) struct Feed {
    pool: Pool,
    newest: watch::Receiver<Sequence>,
    batches: broadcast::Sender<Arc<Batch>>,
    start: Once,
}

/// Changes that were read together.
#[derive(Debug)]
struct Batch {
    /// Whether changes before these are no longer there to be read.
    is_gap: bool,
    touches: Vec<Touch>,
}

/// What a change means for clients.
#[derive(Debug)]
struct Touch {
    sequence: Sequence,
    store: StoreId,
    /// `None` when the store is deleted: whose it was cannot be told any more, nor can anything of
    /// it be read.
    workspace: Option<WorkspaceId>,
    is_list_changed: bool,
    paths: Vec<MemoryPath>,
}

impl Feed {
    pub(super) fn new(pool: Pool, newest: watch::Receiver<Sequence>) -> Self {
        Self { pool, newest, batches: broadcast::Sender::new(BATCHES_KEPT), start: Once::new() }
    }

    /// Follows the feed on behalf of a client, from the changes that come after this moment. A
    /// client that has a secret is told nothing any more when that is no longer valid.
    pub(super) async fn follower(&self, client: Identity, secret: Option<Secret>) -> Follower {
        let batches = self.batches.subscribe();
        let seen = self.now().await;
        self.start.call_once(|| {
            let reader = Reader {
                pool: self.pool.clone(),
                newest: self.newest.clone(),
                batches: self.batches.clone(),
                seen,
            };
            tokio::spawn(reader.run());
        });
        Follower { pool: self.pool.clone(), client, secret, batches, seen }
    }

    async fn now(&self) -> Sequence {
        match self.pool.read(Engine::newest_sequence).await {
            Ok(Ok(now)) => now,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the change feed cannot be read");
                *self.newest.borrow()
            }
            Err(_) => *self.newest.borrow(),
        }
    }

    #[cfg(test)]
    pub(super) fn followers(&self) -> usize {
        self.batches.receiver_count()
    }
}

/// Reads the feed for all followers.
#[derive(Debug)]
struct Reader {
    pool: Pool,
    newest: watch::Receiver<Sequence>,
    batches: broadcast::Sender<Arc<Batch>>,
    seen: Sequence,
}

impl Reader {
    /// Reads until nobody follows the changes of this process any more.
    async fn run(mut self) {
        loop {
            let seen = self.seen;
            let Ok(newest) = self.newest.wait_for(|newest| *newest > seen).await.map(|it| *it)
            else {
                return;
            };
            if self.batches.receiver_count() == 0 {
                // Whoever comes later begins later.
                self.seen = newest;
                continue;
            }
            match self.pool.read(move |engine| read(engine, seen)).await {
                Ok(Ok((batch, reached))) => {
                    // Changes that are not there any more will not come later either.
                    self.seen = if reached == seen { newest } else { reached };
                    // It is no failure if the last follower has just gone.
                    let _followers = self.batches.send(Arc::new(batch));
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "the change feed cannot be read");
                    tokio::time::sleep(PATIENCE).await;
                }
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    }
}

fn read(engine: &Engine, seen: Sequence) -> Result<(Batch, Sequence), Error> {
    let changes = engine.changes(seen, BATCH)?;
    let is_gap = changes.first().is_none_or(|first| first.sequence.0 > seen.0 + 1);
    let touches: Result<_, Error> = changes.iter().map(|change| touch(engine, change)).collect();
    let reached = changes.last().map_or(seen, |change| change.sequence);
    Ok((Batch { is_gap, touches: touches? }, reached))
}

fn touch(engine: &Engine, change: &Change) -> Result<Touch, Error> {
    let workspace = engine.store(change.store).ok().map(|store| store.workspace);
    let mut touch = Touch {
        sequence: change.sequence,
        store: change.store,
        workspace,
        is_list_changed: match change.event {
            Event::StoreDeleted => true,
            Event::StoreCreated | Event::StoreUpdated | Event::StoreArchived => workspace.is_some(),
            Event::Version(_) | Event::Redacted(_) => false,
        },
        paths: Vec::new(),
    };
    let Event::Version(id) = change.event else { return Ok(touch) };
    // A version may be pruned or deleted with its store before its change is read.
    let Ok(version) = engine.version(change.store, id, View::Basic) else { return Ok(touch) };
    let before = match version.operation {
        Operation::Modified => engine.previous_version(&version, View::Basic)?,
        Operation::Created | Operation::Deleted => None,
    };
    let old_path = before.and_then(|before| before.path);
    let is_moved = old_path.is_some() && old_path != version.path;
    touch.is_list_changed = is_moved || version.operation != Operation::Modified;
    touch.paths = version.path.into_iter().chain(old_path).collect();
    Ok(touch)
}

/// What a client wants to hear of.
#[derive(Debug)]
struct Interest<'w> {
    watched: &'w Watched,
    lists: bool,
}

/// What a client is told.
#[derive(Debug, Default)]
struct News {
    is_list_changed: bool,
    urls: Vec<String>,
}

/// Why a client is told nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is gone, or there is nothing more to come.
    Over,
    /// Its credential is no longer valid.
    Refused,
}

/// Follows the change feed on behalf of one client.
#[derive(Debug)]
pub(super) struct Follower {
    pool: Pool,
    client: Identity,
    secret: Option<Secret>,
    batches: broadcast::Receiver<Arc<Batch>>,
    seen: Sequence,
}

impl Follower {
    /// Tells a client of the older revisions, until it is gone.
    pub(super) async fn tell_peer(mut self, peer: &Peer<RoleServer>, watched: &Watched) -> End {
        let interest = Interest { watched, lists: true };
        loop {
            let news = match self.news(&interest).await {
                Ok(news) => news,
                Err(end) => return end,
            };
            if news.is_list_changed && peer.notify_resource_list_changed().await.is_err() {
                return End::Over;
            }
            for url in news.urls {
                let param = ResourceUpdatedNotificationParam::new(url);
                if peer.notify_resource_updated(param).await.is_err() {
                    return End::Over;
                }
            }
        }
    }

    /// Tells a client that listens to one subscription, until that ends.
    pub(super) async fn tell_listener(mut self, sink: &SubscriptionSink) -> Result<(), Error> {
        let urls = sink.accepted().resource_subscriptions.clone().unwrap_or_default();
        let identity = self.client.clone();
        let watch = move |engine: &Engine| {
            let client = Client { engine: engine.clone(), identity: identity.clone() };
            let watched = Watched::default();
            urls.iter().try_for_each(|url| watched.add(&client, url))?;
            Ok::<_, Error>(watched)
        };
        let watched = self.pool.read(watch).await.map_err(unavailable)??;
        let lists = sink.accepted().resources_list_changed == Some(true);
        let interest = Interest { watched: &watched, lists };
        while let Ok(news) = self.news(&interest).await {
            if news.is_list_changed && sink.notify_resource_list_changed().await.is_err() {
                return Ok(());
            }
            for url in news.urls {
                if sink.notify_resource_updated(url).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Waits for changes that the client wants to hear of and may know.
    async fn news(&mut self, interest: &Interest<'_>) -> Result<News, End> {
        loop {
            let batch = match self.batches.recv().await {
                Ok(batch) => batch,
                Err(RecvError::Lagged(_)) => Arc::new(Batch { is_gap: true, touches: Vec::new() }),
                Err(RecvError::Closed) => return Err(End::Over),
            };
            if !self.concerns(&batch, interest) {
                continue;
            }
            self.ask_again().await?;
            let news = self.allowed(&batch, interest);
            if news.is_list_changed || !news.urls.is_empty() {
                return Ok(news);
            }
        }
    }

    /// Tells whether anything here is for this client, so far as can be told without asking who
    /// it is.
    fn concerns(&self, batch: &Batch, interest: &Interest<'_>) -> bool {
        batch.is_gap
            || self.unseen(batch).any(|touch| {
                let is_watched = |(store, path): &Place| touch.is_of(*store, path);
                (touch.is_list_changed && interest.lists)
                    || !interest.watched.urls(is_watched).is_empty()
            })
    }

    fn unseen<'b>(&self, batch: &'b Batch) -> impl Iterator<Item = &'b Touch> {
        let (seen, own) = (self.seen, self.client.workspace);
        let is_own = move |touch: &Touch| touch.workspace.is_none_or(|workspace| workspace == own);
        batch.touches.iter().filter(move |touch| touch.sequence > seen && is_own(touch))
    }

    /// Finds out whether the client's credential is still valid, and what it opens now; asks again
    /// after a while if that cannot be told.
    async fn ask_again(&mut self) -> Result<(), End> {
        let Some(secret) = &self.secret else { return Ok(()) };
        loop {
            let secret = secret.clone();
            match self.pool.read(move |engine| engine.principal(secret.reveal())).await {
                Ok(Ok(Some(principal))) => {
                    self.client.grant = principal.into();
                    return Ok(());
                }
                Ok(Ok(None)) => return Err(End::Refused),
                Ok(Err(error)) => {
                    tracing::error!(%error, "a credential cannot be checked");
                    tokio::time::sleep(PATIENCE).await;
                }
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    }

    /// Returns what the client wants to hear of and may know.
    fn allowed(&self, batch: &Batch, interest: &Interest<'_>) -> News {
        let knows = |store: StoreId| self.client.access(store).is_some();
        let known: Vec<_> = self
            .unseen(batch)
            .filter(|touch| match touch.workspace {
                Some(_) => knows(touch.store),
                None => touch.is_list_changed,
            })
            .collect();
        let is_listed = batch.is_gap || known.iter().any(|touch| touch.is_list_changed);
        let urls = interest.watched.urls(|(store, path)| {
            batch.is_gap || known.iter().any(|touch| touch.is_of(*store, path))
        });
        let urls = urls.into_iter().filter(|(store, _)| knows(*store)).map(|(_, url)| url);
        News { is_list_changed: interest.lists && is_listed, urls: urls.collect() }
    }
}

fn unavailable(error: PoolError) -> Error {
    Error::new(ErrorKind::StorageBusy, error.to_string())
}

impl Touch {
    fn is_of(&self, store: StoreId, path: &MemoryPath) -> bool {
        self.store == store && self.paths.contains(path)
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::engine::NewKey;
    use quipu_core::model::{Name, Role};
    use quipu_core::settings::Limits;
    use quipu_testkit::{FaultyBackend, InMemoryBackend, ManualClock};

    use super::super::McpSettings;
    use super::*;
    use crate::pool::PoolSettings;

    #[tokio::test(start_paused = true)]
    async fn a_client_goes_on_being_told_when_the_storage_has_failed_once() {
        let backend = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let clock = Arc::new(ManualClock::default());
        let engine = Engine::new(Arc::clone(&backend) as _, clock, Limits::default());
        let workspace = engine.default_workspace().unwrap().id;
        let (name, role) = (Name::new("test").unwrap(), Role::Admin);
        let new = NewKey { name, role, stores: None, expires_at: None, secret: None };
        let (key, secret) = engine.create_key(workspace, &new).unwrap();
        let grant = engine.principal(secret.reveal()).unwrap().unwrap().into();
        let settings = McpSettings::default();
        let client = Identity { workspace, grant, settings };
        let newest = watch::Sender::new(Sequence(0));
        let feed = Feed::new(Pool::new(engine.clone(), PoolSettings::SMALL), newest.subscribe());
        let mut follower = feed.follower(client, Some(Secret::new(secret.reveal()))).await;

        backend.fail_at(1);
        assert_eq!(follower.ask_again().await, Ok(()));
        assert!(!backend.disarm(), "the storage has failed");
        engine.revoke_key(key.id).unwrap();
        assert_eq!(follower.ask_again().await, Err(End::Refused));
    }
}
