//! Notifications about changes, whatever door and process they came through.
//!
//! Every client has a [`Tail`] of the feed of this process and selects the changes that it is
//! subscribed to and may see. A client that missed some is notified of everything.

use std::collections::HashMap;
use std::future;
use std::sync::{Arc, Mutex, PoisonError};

use quipu_core::backend::Event;
use quipu_core::engine::FeedEntry;
use quipu_core::model::{MemoryPath, Operation, StoreId, View, WorkspaceId};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Knowledge;
use quipu_service::Service;
use quipu_service::credential::Credential;
use quipu_service::feed::{Received, Tail};
use quipu_service::pool::{Pool, PoolError};
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionSink};

use super::access::{Client, Identity};
use super::place;

/// Where a memory is or was.
type Place = (StoreId, MemoryPath);

/// The memories that a client is subscribed to, by the URL that it used.
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

/// What a change means for clients.
#[derive(Debug)]
struct Touch<'n> {
    store: StoreId,
    /// Set for deleted stores too; `None` if it is no longer known.
    workspace: Option<WorkspaceId>,
    is_list_changed: bool,
    /// Where the memory is, and where it was.
    paths: [Option<&'n MemoryPath>; 2],
}

impl<'n> From<&'n FeedEntry> for Touch<'n> {
    fn from(news: &'n FeedEntry) -> Self {
        let is_list_changed = match news.change.event {
            Event::StoreDeleted => true,
            Event::StoreCreated | Event::StoreUpdated | Event::StoreArchived => {
                news.workspace.is_some()
            }
            Event::Version(_) => news.version.as_ref().is_some_and(|version| {
                news.moved_from.is_some() || version.operation != Operation::Modified
            }),
            Event::Redacted(_) | Event::Restarted => false,
        };
        let path = news.version.as_ref().and_then(|version| version.path.as_ref());
        Self {
            store: news.change.store,
            workspace: news.workspace,
            is_list_changed,
            paths: [path, news.moved_from.as_ref()],
        }
    }
}

impl Touch<'_> {
    fn is_of(&self, store: StoreId, path: &MemoryPath) -> bool {
        self.store == store && self.paths.contains(&Some(path))
    }
}

/// What a client is subscribed to.
#[derive(Debug)]
struct Interest<'w> {
    watched: &'w Watched,
    lists: bool,
}

/// The notifications that some changes cause.
#[derive(Debug, Default)]
struct Notifications {
    is_list_changed: bool,
    urls: Vec<String>,
}

/// Why notifications have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client is gone, or the feed has ended.
    Over,
    /// The client's credential is no longer valid.
    Refused,
}

/// Follows the change feed on behalf of one client.
#[derive(Debug)]
pub(super) struct Follower {
    pool: Pool,
    client: Identity,
    /// The client's credential; `None` over stdio.
    credential: Option<Credential>,
    tail: Tail,
}

impl Follower {
    /// Follows all changes from now on.
    pub(super) async fn new(
        service: &Service,
        client: Identity,
        credential: Option<Credential>,
    ) -> Self {
        let (pool, mut tail) = (service.pool(), service.feed().tail());
        match pool.read(|knowledge| knowledge.newest_sequence()).await {
            Ok(Ok(newest)) => tail.resume_after(newest),
            // The client may then be notified of changes that it has seen already.
            Ok(Err(error)) => tracing::warn!(%error, "the change feed cannot be read"),
            Err(error) => tracing::warn!(%error, "the change feed cannot be read"),
        }
        Self { pool: pool.clone(), client, credential, tail }
    }

    /// Notifies a client of one of the older revisions until it is gone.
    pub(super) async fn notify_peer(mut self, peer: &Peer<RoleServer>, watched: &Watched) -> End {
        let interest = Interest { watched, lists: true };
        loop {
            let due = match self.next(&interest).await {
                Ok(due) => due,
                Err(end) => return end,
            };
            if due.is_list_changed && peer.notify_resource_list_changed().await.is_err() {
                return End::Over;
            }
            for url in due.urls {
                let param = ResourceUpdatedNotificationParam::new(url);
                if peer.notify_resource_updated(param).await.is_err() {
                    return End::Over;
                }
            }
        }
    }

    /// Notifies a client that listens to one subscription until that ends.
    pub(super) async fn notify_listener(mut self, sink: &SubscriptionSink) -> Result<(), Error> {
        let urls = sink.accepted().resource_subscriptions.clone().unwrap_or_default();
        let identity = self.client.clone();
        let watch = move |engine: &Knowledge| {
            let client = Client { engine: engine.clone(), identity: identity.clone() };
            let watched = Watched::default();
            urls.iter().try_for_each(|url| watched.add(&client, url))?;
            Ok::<_, Error>(watched)
        };
        let watched = self.pool.read(watch).await.map_err(unavailable)??;
        let lists = sink.accepted().resources_list_changed == Some(true);
        let interest = Interest { watched: &watched, lists };
        while let Ok(due) = self.next(&interest).await {
            if due.is_list_changed && sink.notify_resource_list_changed().await.is_err() {
                return Ok(());
            }
            for url in due.urls {
                if sink.notify_resource_updated(url).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Waits for changes that the client is subscribed to and may see.
    async fn next(&mut self, interest: &Interest<'_>) -> Result<Notifications, End> {
        loop {
            let received = tokio::select! {
                // A change that follows a revocation must not be delivered.
                biased;
                () = in_doubt(&mut self.credential) => {
                    self.check_credential().await?;
                    continue;
                }
                received = self.tail.next() => received.ok_or(End::Over)?,
            };
            let due = match received {
                Received::Changes(changes) => {
                    let touches = changes.items().map(|item| Touch::from(&item.news));
                    self.allowed(&touches.collect::<Vec<_>>(), interest)
                }
                Received::Missed => {
                    self.tail.skip_missed();
                    self.everything(interest)
                }
            };
            if due.is_list_changed || !due.urls.is_empty() {
                return Ok(due);
            }
        }
    }

    /// Checks that the client's credential is still valid, and updates what it grants.
    async fn check_credential(&mut self) -> Result<(), End> {
        if let Some(credential) = &mut self.credential {
            let principal = credential.principal().await.ok_or(End::Refused)?;
            credential.expires_with(&principal);
            self.client.grant = principal.into();
        }
        Ok(())
    }

    /// Returns the notifications for some changes.
    fn allowed(&self, touches: &[Touch<'_>], interest: &Interest<'_>) -> Notifications {
        let is_known = |touch: &&Touch<'_>| match touch.workspace {
            Some(workspace) => workspace == self.client.workspace && self.knows(touch.store),
            None => false,
        };
        let known: Vec<_> = touches.iter().filter(is_known).collect();
        let is_listed = known.iter().any(|touch| touch.is_list_changed);
        let is_touched = |(store, path): &Place| known.iter().any(|it| it.is_of(*store, path));
        Notifications {
            is_list_changed: interest.lists && is_listed,
            urls: self.known_urls(interest, is_touched),
        }
    }

    /// Returns all notifications, for a client that missed some changes.
    fn everything(&self, interest: &Interest<'_>) -> Notifications {
        Notifications { is_list_changed: interest.lists, urls: self.known_urls(interest, |_| true) }
    }

    fn known_urls(
        &self,
        interest: &Interest<'_>,
        is_wanted: impl Fn(&Place) -> bool,
    ) -> Vec<String> {
        let urls = interest.watched.urls(is_wanted).into_iter();
        urls.filter(|(store, _)| self.knows(*store)).map(|(_, url)| url).collect()
    }

    fn knows(&self, store: StoreId) -> bool {
        self.client.access(store).is_some()
    }
}

/// Waits until the credential has to be checked again; forever over stdio, which has none.
async fn in_doubt(credential: &mut Option<Credential>) {
    match credential {
        Some(credential) => credential.in_doubt().await,
        None => future::pending().await,
    }
}

fn unavailable(error: PoolError) -> Error {
    Error::new(ErrorKind::StorageBusy, error.to_string())
}
