//! Backends to test, and rows to put into them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use quipu_core::Error;
use quipu_core::backend::{
    Archived, Backend, Change, Commit, Event, Order, PruneRule, Purpose, Reader, Sequence,
    SessionQuery, Span, StoreQuery, VersionFilter, VersionQuery, Writer,
};
use quipu_core::model::{
    Access, Actor, Attachment, Content, Description, Forwarding, Id as _, Instructions, Key, KeyId,
    KeyKind, Memory, MemoryId, MemoryPath, Metadata, Name, Operation, PrincipalName, Reason, Role,
    SecretHash, Session, SessionId, Store, StoreId, StorePolicy, Timestamp, Version, VersionId,
    View, Workspace, WorkspaceId,
};

/// An empty backend, and a way to open its data a second time, as another process would.
pub struct Fixture {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    again: Box<dyn Fn() -> Arc<dyn Backend> + Send + Sync>,
    _kept: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    /// Makes a fixture; `kept` lives as long as it does, such as a temporary directory.
    pub fn new(
        backend: Arc<dyn Backend>,
        again: impl Fn() -> Arc<dyn Backend> + Send + Sync + 'static,
        kept: impl Any + Send + Sync,
    ) -> Self {
        Self { backend, again: Box::new(again), _kept: Box::new(kept) }
    }

    /// Opens the same data once more.
    pub fn again(&self) -> Arc<dyn Backend> {
        (self.again)()
    }

    /// Writes and expects success.
    pub fn write(&self, mut work: impl FnMut(&mut dyn Writer) -> Result<(), Error>) {
        self.backend.write(Purpose::Change, &mut work).expect("the write succeeds");
    }

    /// Returns all versions that a rule gives up, which are asked for in pages.
    pub fn prunable(&self, rule: &PruneRule, limit: usize) -> Vec<(StoreId, VersionId)> {
        let (mut all, mut place) = (Vec::new(), None);
        loop {
            let page = self.read(|reader| reader.prunable(rule, place, limit));
            assert!(page.versions.len() <= limit, "at most {limit}");
            all.extend(page.versions);
            place = page.next;
            if place.is_none() {
                return all;
            }
        }
    }

    /// Removes all versions that a rule gives up, and the changes from before the same moment; returns how many
    /// versions there were.
    pub fn prune(&self, rule: &PruneRule, limit: usize) -> usize {
        let mut pruned_count = 0;
        for (store, version) in self.prunable(rule, limit) {
            self.write(|writer| {
                pruned_count += writer.prune(rule, store, &[version])?;
                Ok(())
            });
        }
        self.write(|writer| writer.trim_changes(rule.before, usize::MAX).map(drop));
        pruned_count
    }

    /// Reads and expects success.
    pub fn read<T>(&self, mut work: impl FnMut(&dyn Reader) -> Result<T, Error>) -> T {
        let mut answer = None;
        self.backend
            .read(&mut |reader| {
                answer = Some(work(reader)?);
                Ok(())
            })
            .expect("the read succeeds");
        answer.expect("the work has run")
    }
}

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("backend", &self.backend).finish_non_exhaustive()
    }
}

/// Makes rows whose ids and moments follow from small numbers.
#[derive(Debug)]
pub struct Rows;

impl Rows {
    /// Returns a moment.
    pub fn at(number: i64) -> Timestamp {
        Timestamp::from_micros(1_000_000 + number)
    }

    /// Returns a workspace.
    pub fn workspace(number: i64) -> Workspace {
        Workspace {
            id: WorkspaceId::new(Self::at(number), 1),
            name: Name::new(format!("workspace {number}")).expect("a valid name"),
            created_at: Self::at(number),
            default_store: None,
        }
    }

    /// Returns a store of workspace 1.
    pub fn store(number: i64) -> Store {
        Store {
            id: StoreId::new(Self::at(number), 2),
            workspace: Self::workspace(1).id,
            name: Name::new(format!("store {number}")).expect("a valid name"),
            description: Description::default(),
            metadata: Metadata::default(),
            policy: StorePolicy::default(),
            created_at: Self::at(number),
            updated_at: Self::at(number),
            archived_at: None,
        }
    }

    /// Returns an actor.
    pub fn actor(name: &str) -> Actor {
        Actor::User(PrincipalName::from_host(name))
    }

    /// Returns a path.
    pub fn path(text: &str) -> MemoryPath {
        MemoryPath::parse(text).expect("a valid path")
    }

    /// Returns a memory made by the change with this number.
    pub fn memory(store: &Store, number: u64, path: &str, text: &str) -> Memory {
        let content = Content::new(text).expect("valid content");
        let at = Self::moment(number);
        Memory {
            id: MemoryId::new(at, 3),
            store: store.id,
            path: Self::path(path),
            hash: content.hash(),
            size_bytes: content.size_bytes(),
            content: Some(content),
            version: VersionId::new(at, 4),
            created_at: at,
            updated_at: at,
        }
    }

    /// Returns the moment of the change with this number.
    pub fn moment(number: u64) -> Timestamp {
        Self::at(i64::try_from(number).expect("a small number"))
    }

    /// Returns the memory after the change with this number.
    pub fn changed(memory: &Memory, number: u64, path: &str, text: &str) -> Memory {
        let store = Store { id: memory.store, ..Self::store(0) };
        let new = Self::memory(&store, number, path, text);
        Memory { id: memory.id, created_at: memory.created_at, ..new }
    }

    /// Returns the commit with this number.
    pub fn commit(number: u64, before: Option<&Memory>, after: Option<&Memory>) -> Commit {
        let memory = after.or(before).expect("a commit has a memory");
        let at = Self::moment(number);
        let operation = match (before, after) {
            (None, _) => Operation::Created,
            (Some(_), Some(_)) => Operation::Modified,
            (Some(_), None) => Operation::Deleted,
        };
        let version = Version {
            id: VersionId::new(at, 4),
            store: memory.store,
            memory: memory.id,
            operation,
            path: Some(memory.path.clone()),
            content: after.and_then(|after| after.content.clone()),
            hash: after.map(|after| after.hash),
            size_bytes: after.map(|after| after.size_bytes),
            actor: Self::actor("ada"),
            created_at: at,
            undone_to: before.map(|before| before.version),
            reason: before.map(|_| Reason::new(format!("change {number}")).expect("short")),
            redaction: None,
        };
        let sequence = Sequence(number);
        let (before, after) = (before.cloned(), after.cloned());
        Commit { sequence, transaction: sequence, version, before, after }
    }

    /// Returns a change that is not a version.
    pub fn change(number: u64, store: &Store, event: Event) -> Change {
        let (sequence, at) = (Sequence(number), Self::moment(number));
        Change { sequence, transaction: sequence, at, store: store.id, event }
    }

    /// Returns a session of workspace 1.
    pub fn session(number: i64, stores: &[&Store]) -> Session {
        let attachment = |store: &&Store| Attachment {
            store: store.id,
            access: Access::ReadOnly,
            instructions: Instructions::new("read first").expect("short"),
            name: store.name.clone(),
            description: store.description.clone(),
            slug: "a-slug".to_owned(),
        };
        Session {
            id: SessionId::new(Self::at(number), 5),
            workspace: Self::workspace(1).id,
            title: format!("session {number}"),
            metadata: Metadata::new([("agent".to_owned(), "a".to_owned())].into())
                .expect("a short pair"),
            details: format!("{{\"number\": {number}}}"),
            attachments: stores.iter().map(attachment).collect(),
            token: Some(SecretHash::of(&format!("token {number}"))),
            token_expires_at: Some(Self::at(number + 500)),
            key: Some(Self::key(9, None).id),
            created_at: Self::at(number),
            updated_at: Self::at(number),
            archived_at: None,
        }
    }

    /// Returns a key of workspace 1.
    pub fn key(number: i64, stores: Option<Vec<StoreId>>) -> Key {
        Key {
            id: KeyId::new(Self::at(number), 6),
            workspace: Self::workspace(1).id,
            kind: KeyKind::Key,
            parent: None,
            family: None,
            name: Name::new(format!("key {number}")).expect("a valid name"),
            role: Role::ReadWrite,
            stores,
            secret: SecretHash::of(&format!("secret {number}")),
            created_at: Self::at(number),
            expires_at: Some(Self::at(number + 1000)),
            revoked_at: None,
            used_at: None,
            payload: None,
            forwarding: Forwarding::Denied,
        }
    }

    /// Selects everything of workspace 1.
    pub fn all_stores() -> StoreQuery {
        StoreQuery {
            workspace: Self::workspace(1).id,
            archived: Archived::Show,
            created: Span::default(),
            before: None,
            limit: 100,
        }
    }

    /// Selects every version, with its text.
    pub fn all_versions() -> VersionQuery {
        VersionQuery {
            filter: VersionFilter::default(),
            before: None,
            limit: 100,
            view: View::Full,
        }
    }

    /// Selects all sessions of workspace 1.
    pub fn all_sessions() -> SessionQuery {
        SessionQuery {
            workspace: Self::workspace(1).id,
            store: None,
            archived: Archived::Show,
            created: Span::default(),
            viewer: None,
            order: Order::NewestFirst,
            after: None,
            limit: 100,
        }
    }
}

impl Fixture {
    /// Puts workspace 1 and these stores.
    pub fn with_stores(&self, stores: &[&Store]) {
        self.write(|writer| {
            writer.put_workspace(&Rows::workspace(1))?;
            stores.iter().try_for_each(|store| writer.put_store(store))
        });
    }

    /// Commits the creation of these memories, as the changes from `first` on.
    pub fn with_memories(&self, first: u64, memories: &[&Memory]) {
        self.write(|writer| {
            (first..).zip(memories).try_for_each(|(number, memory)| {
                writer.commit(&Rows::commit(number, None, Some(memory)))
            })
        });
    }
}
