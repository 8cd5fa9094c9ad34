//! Telling clients what changed, whatever door and process it came through.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use quipu_core::backend::{Change, Event, Sequence};
use quipu_core::model::{MemoryPath, Operation, StoreId, View};
use quipu_core::{Engine, Error};
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionSink};
use tokio::sync::watch;

use super::access::Client;
use super::place;

const BATCH: usize = 100;

/// Where a memory is or was.
type Place = (StoreId, MemoryPath);

/// The memories that a client wants to hear of, by the URL that it used.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<HashMap<String, Place>>>);

impl Watched {
    /// Adds a memory, which need not exist yet.
    pub(super) fn add(&self, client: &Client, url: &str) -> Result<(), Error> {
        let (store, path) = place::place(client, url)?;
        self.lock().insert(url.to_owned(), (store.id, path));
        Ok(())
    }

    pub(super) fn remove(&self, url: &str) {
        self.lock().remove(url);
    }

    fn among(&self, touched: &BTreeSet<Place>) -> Vec<String> {
        let watched = self.lock();
        let fitting = watched.iter().filter(|(_, place)| touched.contains(place));
        fitting.map(|(url, _)| url.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened since the last look.
#[derive(Debug, Default)]
struct News {
    is_list_changed: bool,
    touched: BTreeSet<Place>,
}

/// Follows the change feed on behalf of one client.
#[derive(Debug)]
pub(super) struct Follower {
    client: Client,
    newest: watch::Receiver<Sequence>,
    seen: Sequence,
}

impl Follower {
    /// Begins with the changes that come after this moment.
    pub(super) fn new(client: Client, newest: watch::Receiver<Sequence>) -> Self {
        let seen = client.engine.newest_sequence().unwrap_or_else(|error| {
            tracing::warn!(%error, "the change feed cannot be read");
            *newest.borrow()
        });
        Self { client, newest, seen }
    }

    /// Tells a client of the older revisions, until it is gone.
    pub(super) async fn tell_peer(mut self, peer: &Peer<RoleServer>, watched: &Watched) {
        while let Some(news) = self.news().await {
            if news.is_list_changed && peer.notify_resource_list_changed().await.is_err() {
                return;
            }
            for url in watched.among(&news.touched) {
                let param = ResourceUpdatedNotificationParam::new(url);
                if peer.notify_resource_updated(param).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Tells a client that listens to one subscription, until that ends.
    pub(super) async fn tell_listener(mut self, sink: &SubscriptionSink) {
        let watched = Watched::default();
        for url in sink.accepted().resource_subscriptions.iter().flatten() {
            if let Err(error) = watched.add(&self.client, url) {
                tracing::debug!(%error, "a subscription names no memory");
            }
        }
        let hears_of_lists = sink.accepted().resources_list_changed == Some(true);
        while let Some(news) = self.news().await {
            let is_told = news.is_list_changed && hears_of_lists;
            if is_told && sink.notify_resource_list_changed().await.is_err() {
                return;
            }
            for url in watched.among(&news.touched) {
                if sink.notify_resource_updated(url).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Waits for changes that the client may know of; `None` when there will be no more.
    async fn news(&mut self) -> Option<News> {
        loop {
            drop(self.newest.wait_for(|newest| *newest > self.seen).await.ok()?);
            let (client, seen) = (self.client.clone(), self.seen);
            let read = tokio::task::spawn_blocking(move || read(&client, seen)).await.ok()?;
            let (news, reached) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::error!(%error, "the change feed cannot be read");
                    return None;
                }
            };
            self.seen = reached;
            if news.is_list_changed || !news.touched.is_empty() {
                return Some(news);
            }
        }
    }
}

fn read(client: &Client, seen: Sequence) -> Result<(News, Sequence), Error> {
    let changes = client.engine.changes(seen, BATCH)?;
    let mut news = News::default();
    let is_gap = changes.first().is_some_and(|first| first.sequence.0 > seen.0 + 1);
    news.is_list_changed = is_gap;
    for change in &changes {
        if is_known(client, change) {
            note(&client.engine, change, &mut news)?;
        }
    }
    let newest = changes.last().map_or(seen, |change| change.sequence);
    Ok((news, newest))
}

/// Tells whether the client may know of a change.
fn is_known(client: &Client, change: &Change) -> bool {
    match client.engine.store(change.store) {
        Ok(store) => store.workspace == client.workspace && client.access(change.store).is_some(),
        // It is deleted, so whose it was cannot be told any more, nor can anything of it be read.
        Err(_) => change.event == Event::StoreDeleted,
    }
}

fn note(engine: &Engine, change: &Change, news: &mut News) -> Result<(), Error> {
    let Event::Version(id) = change.event else {
        news.is_list_changed |= match change.event {
            Event::StoreCreated
            | Event::StoreUpdated
            | Event::StoreArchived
            | Event::StoreDeleted => true,
            Event::Version(_) | Event::Redacted(_) => false,
        };
        return Ok(());
    };
    // A version may be pruned or deleted with its store before its change is read.
    let Ok(version) = engine.version(change.store, id, View::Basic) else { return Ok(()) };
    let before = match version.operation {
        Operation::Modified => engine.previous_version(&version, View::Basic)?,
        Operation::Created | Operation::Deleted => None,
    };
    let old_path = before.and_then(|before| before.path);
    let is_moved = old_path.is_some() && old_path != version.path;
    news.is_list_changed |= is_moved || version.operation != Operation::Modified;
    let paths = version.path.into_iter().chain(old_path);
    news.touched.extend(paths.map(|path| (change.store, path)));
    Ok(())
}
