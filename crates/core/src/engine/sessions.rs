//! Sessions: an agent's run and the stores attached to it.

use std::collections::{BTreeMap, HashSet};

use crate::backend::{Reader, SessionQuery};
use crate::model::{
    Access, Actor, Attachment, Id as _, Instructions, Key, KeyId, KeySecret, Metadata, Session,
    SessionId, StoreId, Timestamp, WorkspaceId, slug,
};
use crate::{Error, ErrorKind};

use super::{Engine, NewSessionEvent, Page, no_store};

/// How long the title of a session may be.
pub const SESSION_TITLE_CHARS_MAX: usize = 500;

/// How long the [details](NewSession::details) of a session may be.
pub const SESSION_DETAILS_SIZE_BYTES_MAX: usize = 64 * 1024;

/// The properties of a new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// What people call it.
    pub title: String,
    /// The owner's own labels.
    pub metadata: Metadata,
    /// Data of the door that creates it, which the engine does not read.
    pub details: String,
    /// The stores to attach.
    pub attachments: Vec<NewAttachment>,
    /// Whether it gets a token, so that another process can act as the session.
    pub token: SessionToken,
    /// The key that creates it, if one does.
    pub key: Option<KeyId>,
}

impl NewSession {
    /// Returns a new session with a title, stores and defaults.
    pub fn titled(title: &str, attachments: Vec<NewAttachment>, token: SessionToken) -> Self {
        Self {
            title: title.to_owned(),
            metadata: Metadata::default(),
            details: String::new(),
            attachments,
            token,
            key: None,
        }
    }

    fn session(
        &self,
        id: SessionId,
        workspace: WorkspaceId,
        attachments: Vec<Attachment>,
        created_at: Timestamp,
    ) -> Session {
        Session {
            id,
            workspace,
            title: self.title.clone(),
            metadata: self.metadata.clone(),
            details: self.details.clone(),
            attachments,
            token: None,
            token_expires_at: None,
            key: self.key,
            created_at,
            updated_at: created_at,
            archived_at: None,
        }
    }
}

/// A change of a session; what is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct SessionUpdate {
    /// The new title.
    pub title: Option<String>,
    /// Labels to set or, with `None`, to remove.
    pub metadata: BTreeMap<String, Option<String>>,
}

/// A store to attach.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    /// The store.
    pub store: StoreId,
    /// What the session may do in it.
    pub access: Access,
    /// What the agent should do with it.
    pub instructions: Instructions,
}

/// Whether a session gets a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionToken {
    /// A token is issued.
    Issue,
    /// None is needed: the session runs inside this process.
    None,
}

impl Engine {
    /// Starts a session. Its token, if it gets one, is returned here and never again.
    pub fn create_session(
        &self,
        workspace: WorkspaceId,
        new: &NewSession,
    ) -> Result<(Session, Option<KeySecret>), Error> {
        // Without events nobody has recorded any.
        let nobody = Actor::expiry();
        self.create_session_with_events(workspace, new, (&nobody, &[]))
    }

    /// Starts a session with events that were sent to it beforehand.
    pub fn create_session_with_events(
        &self,
        workspace: WorkspaceId,
        new: &NewSession,
        (actor, events): (&Actor, &[NewSessionEvent]),
    ) -> Result<(Session, Option<KeySecret>), Error> {
        self.require_valid(new)?;
        self.require_event_sizes(events)?;
        self.write(|ledger| {
            self.require_room(ledger.reader(), workspace)?;
            let attachments = attached(ledger.reader(), workspace, &new.attachments)?;
            let token = match new.token {
                SessionToken::Issue => Some(KeySecret::from_random(ledger.random_bytes())),
                SessionToken::None => None,
            };
            let created_at = ledger.moment()?;
            let id = SessionId::new(created_at, ledger.random());
            let mut session = new.session(id, workspace, attachments, created_at);
            if let Some(token) = &token {
                session.token = Some(token.hash());
                session.token_expires_at =
                    Some(self.token_expiry(ledger.reader(), new.key, created_at)?);
            }
            ledger.writer.put_session(&session)?;
            self.record_in(ledger, actor, &session, events)?;
            Ok((session, token))
        })
    }

    /// Returns a session that is not stored yet, so that an agent that only reads causes no write. It has
    /// no token. [`record_session`](Self::record_session) must be called before its first change.
    pub fn draft_session(
        &self,
        workspace: WorkspaceId,
        new: &NewSession,
    ) -> Result<Session, Error> {
        self.require_valid(new)?;
        let now = self.clock.now();
        let id = SessionId::new(now, self.random());
        self.read(|reader| {
            let attachments = attached(reader, workspace, &new.attachments)?;
            Ok(new.session(id, workspace, attachments, now))
        })
    }

    /// Stores a session that was drafted. This is idempotent.
    pub fn record_session(&self, session: &Session) -> Result<(), Error> {
        self.write(|ledger| match ledger.reader().session(session.id)? {
            Some(_) => Ok(()),
            None => {
                self.require_room(ledger.reader(), session.workspace)?;
                ledger.writer.put_session(session)
            }
        })
    }

    fn require_room(&self, reader: &dyn Reader, workspace: WorkspaceId) -> Result<(), Error> {
        let sessions_max = self.limits.sessions_per_workspace_max;
        if reader.sessions_count(workspace)? < sessions_max {
            return Ok(());
        }
        let message = format!("the workspace holds {sessions_max} sessions, which is its limit");
        Err(Error::new(ErrorKind::LimitReached, message).with_hint(
            "delete sessions that are over, or raise `sessions_per_workspace_max` in `[limits]`",
        ))
    }

    /// Returns when a token that is issued now expires. It never outlives the key that it depends on.
    fn token_expiry(
        &self,
        reader: &dyn Reader,
        key: Option<KeyId>,
        now: Timestamp,
    ) -> Result<Timestamp, Error> {
        let own = now.plus(self.limits.session_token_valid_for);
        let key = key.map(|id| reader.key(id)).transpose()?.flatten();
        Ok(key.and_then(|key| key.expires_at).map_or(own, |expires_at| own.min(expires_at)))
    }

    fn require_valid(&self, new: &NewSession) -> Result<(), Error> {
        require_short_title(&new.title)?;
        require_short_details(&new.details)?;
        let stores_max = self.limits.stores_per_session_max;
        if new.attachments.len() > stores_max {
            return Err(Error::invalid(format!(
                "a session has at most {stores_max} stores, not {}",
                new.attachments.len()
            )));
        }
        Ok(())
    }

    /// Returns a session.
    pub fn session(&self, id: SessionId) -> Result<Session, Error> {
        self.read(|reader| reader.session(id)?.ok_or_else(|| no_session(id)))
    }

    /// Lists sessions, the newest first.
    pub fn sessions(&self, query: &SessionQuery) -> Result<Page<Session, SessionId>, Error> {
        self.read(|reader| {
            let more = SessionQuery { limit: query.limit.saturating_add(1), ..query.clone() };
            Ok(Page::cut(reader.sessions(&more)?, query.limit, |session| session.id))
        })
    }

    /// Returns the authors that a key stands for: itself, the keys that were derived from it and the people
    /// who signed in with it, and the sessions that any of them owns or has ever owned, also if they were
    /// deleted or taken over since.
    pub fn actors_of_key(&self, id: KeyId) -> Result<Vec<Actor>, Error> {
        self.read(|reader| {
            let mut actors = vec![Actor::ApiKey(id)];
            if let Some(key) = reader.key(id)? {
                let derived = reader.derived_keys(key.workspace, Some(id))?;
                let of_derived = derived.iter().map(Key::actor);
                // Without a parent it is the owner of the data, who has changed things without the key.
                let own = key.parent.map(|_| key.actor());
                actors.extend(of_derived.chain(own));
            }
            actors.extend(reader.sessions_of_key(id)?.into_iter().map(Actor::Session));
            let mut seen = HashSet::new();
            actors.retain(|actor| seen.insert(actor.clone()));
            Ok(actors)
        })
    }

    /// Changes the title and the labels of a session.
    pub fn update_session(&self, id: SessionId, update: &SessionUpdate) -> Result<Session, Error> {
        self.change_session(id, |session| {
            if let Some(title) = &update.title {
                require_short_title(title)?;
                title.clone_into(&mut session.title);
            }
            session.metadata = session.metadata.patched(&update.metadata)?;
            Ok(())
        })
    }

    /// Changes the [details](NewSession::details) of a session.
    pub fn change_session_details(
        &self,
        id: SessionId,
        change: impl Fn(&Session) -> Result<String, Error>,
    ) -> Result<Session, Error> {
        self.change_session(id, |session| {
            session.details = change(session)?;
            require_short_details(&session.details)
        })
    }

    /// Archives a session: its token stops working. This is idempotent.
    pub fn archive_session(&self, id: SessionId) -> Result<Session, Error> {
        let now = self.clock.now();
        self.change_session(id, |session| {
            session.archived_at.get_or_insert(now);
            Ok(())
        })
    }

    /// Gives a session a new token, which is returned here and never again; the old one stops working.
    /// The session then depends on `key`, if one is given.
    pub fn renew_token(
        &self,
        id: SessionId,
        key: Option<KeyId>,
    ) -> Result<(Session, KeySecret), Error> {
        self.write(|ledger| {
            let before = ledger.reader().session(id)?.ok_or_else(|| no_session(id))?;
            if before.archived_at.is_some() {
                return Err(Error::invalid(format!("the session `{id}` is archived"))
                    .with_hint("start a new session"));
            }
            let token = KeySecret::from_random(ledger.random_bytes());
            let expires_at = self.token_expiry(ledger.reader(), key, self.clock.now())?;
            let after = Session {
                token: Some(token.hash()),
                token_expires_at: Some(expires_at),
                key,
                ..before
            };
            ledger.writer.put_session(&after)?;
            ledger.count_revocation()?;
            Ok((after, token))
        })
    }

    /// Deletes a session with its events. The versions that it made stay and keep naming it.
    ///
    /// What is left of the events in free parts of files leaves with the next redaction or pruning.
    pub fn delete_session(&self, id: SessionId) -> Result<(), Error> {
        self.remove(|ledger| {
            ledger.reader().session(id)?.ok_or_else(|| no_session(id))?;
            // Whoever follows the session learns that it has ended, also if nothing was recorded in it.
            ledger.count_events()?;
            if ledger.reader().event_usage(id)?.newest > 0 {
                ledger.writer.require_erasure(StoreId::from_bits(0))?;
            }
            ledger.writer.remove_session(id)?;
            ledger.count_revocation()
        })
    }

    fn change_session(
        &self,
        id: SessionId,
        change: impl Fn(&mut Session) -> Result<(), Error>,
    ) -> Result<Session, Error> {
        self.write(|ledger| {
            let before = ledger.reader().session(id)?.ok_or_else(|| no_session(id))?;
            let mut after = before.clone();
            change(&mut after)?;
            if after != before {
                after.updated_at = self.clock.now().max(before.updated_at);
                ledger.writer.put_session(&after)?;
            }
            if after.archived_at != before.archived_at {
                ledger.count_revocation()?;
                ledger.count_events()?;
            }
            Ok(after)
        })
    }
}

fn attached(
    reader: &dyn Reader,
    workspace: WorkspaceId,
    wanted: &[NewAttachment],
) -> Result<Vec<Attachment>, Error> {
    let mut attachments: Vec<Attachment> = Vec::new();
    for NewAttachment { store: id, access, instructions } in wanted {
        let store = reader.store(*id)?.filter(|store| store.workspace == workspace);
        let store = store.ok_or_else(|| no_store(*id))?;
        if store.archived_at.is_some() {
            return Err(Error::new(
                ErrorKind::StoreArchived,
                format!("the store `{}` is archived and cannot be attached", store.name),
            ));
        }
        if attachments.iter().any(|attachment| attachment.store == *id) {
            return Err(Error::invalid(format!("the store `{id}` is attached twice")));
        }
        attachments.push(Attachment {
            store: *id,
            access: *access,
            instructions: instructions.clone(),
            slug: free_slug(&slug(&store.name), &attachments),
            name: store.name,
            description: store.description,
        });
    }
    Ok(attachments)
}

/// Returns the slug itself or, if it is taken, with `-2`, `-3` and so on.
fn free_slug(slug: &str, taken: &[Attachment]) -> String {
    let is_free = |slug: &String| taken.iter().all(|attachment| attachment.slug != *slug);
    let numbered = (2..).map(|number: u32| format!("{slug}-{number}"));
    std::iter::once(slug.to_owned())
        .chain(numbered)
        .find(is_free)
        .expect("there are more numbers than attachments")
}

fn require_short_details(details: &str) -> Result<(), Error> {
    let details_max = SESSION_DETAILS_SIZE_BYTES_MAX;
    if details.len() <= details_max {
        return Ok(());
    }
    Err(Error::invalid(format!("the details of a session must have at most {details_max} bytes")))
}

fn require_short_title(title: &str) -> Result<(), Error> {
    if title.chars().nth(SESSION_TITLE_CHARS_MAX).is_none() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the title of a session must have at most {SESSION_TITLE_CHARS_MAX} characters"
    )))
}

pub(super) fn no_session(id: SessionId) -> Error {
    Error::not_found(format!("no session has the id `{id}`"))
}
