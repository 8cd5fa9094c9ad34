//! Agents and environments: kept, never run.

use crate::backend::{Archived, DefinitionQuery, Reader, Span};
use crate::model::Id as _;
use crate::model::{
    Content, Definition, DefinitionId, DefinitionKind, Metadata, Name, StoreId, Timestamp,
    WorkspaceId,
};
use crate::{Error, ErrorKind};

use super::transaction::Ledger;
use super::{Engine, Page};

/// What is said about a definition when it is created or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionContent {
    /// What people call it.
    pub name: Name,
    /// The owner's own labels.
    pub metadata: Metadata,
    /// Everything else, which the engine does not read.
    pub body: Content,
}

impl DefinitionContent {
    /// Returns what a definition says.
    pub fn of(definition: &Definition) -> Self {
        Self {
            name: definition.name.clone(),
            metadata: definition.metadata.clone(),
            body: definition.body.clone(),
        }
    }
}

impl Engine {
    /// Creates an agent or an environment.
    pub fn create_definition(
        &self,
        workspace: WorkspaceId,
        kind: DefinitionKind,
        new: &DefinitionContent,
    ) -> Result<Definition, Error> {
        self.require_definition_size(new)?;
        self.write(|ledger| {
            self.make_room_for_definition(ledger, (workspace, kind), new)?;
            let created_at = ledger.moment()?;
            let definition = Definition {
                id: DefinitionId::new(kind, created_at, ledger.random()),
                version: 1,
                workspace,
                name: new.name.clone(),
                metadata: new.metadata.clone(),
                body: new.body.clone(),
                created_at,
                updated_at: created_at,
                archived_at: None,
            };
            ledger.writer.put_definition(&definition)?;
            Ok(definition)
        })
    }

    /// Returns a definition as it is now.
    pub fn definition(&self, id: DefinitionId) -> Result<Definition, Error> {
        self.read(|reader| existing_definition(reader, id))
    }

    /// Returns a version of a definition.
    pub fn definition_version(&self, id: DefinitionId, version: u64) -> Result<Definition, Error> {
        let found =
            self.read(|reader| reader.definition_versions(id, Some(version.saturating_add(1)), 1))?;
        let found = found.into_iter().find(|definition| definition.version == version);
        found.ok_or_else(|| Error::not_found(format!("no version {version} of `{id}` exists")))
    }

    /// Lists definitions, the newest first.
    pub fn definitions(
        &self,
        query: &DefinitionQuery,
    ) -> Result<Page<Definition, DefinitionId>, Error> {
        self.read(|reader| {
            let more = DefinitionQuery { limit: query.limit.saturating_add(1), ..query.clone() };
            Ok(Page::cut(reader.definitions(&more)?, query.limit, |definition| definition.id))
        })
    }

    /// Lists the versions of a definition, the newest first.
    pub fn definition_versions(
        &self,
        id: DefinitionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<Definition, u64>, Error> {
        self.read(|reader| {
            existing_definition(reader, id)?;
            let versions = reader.definition_versions(id, before, limit.saturating_add(1))?;
            Ok(Page::cut(versions, limit, |definition| definition.version))
        })
    }

    /// Changes a definition. An agent gets a new version; its earlier ones stay. If `change` returns what
    /// is there already, nothing happens.
    pub fn change_definition(
        &self,
        id: DefinitionId,
        change: impl Fn(&Definition) -> Result<DefinitionContent, Error>,
    ) -> Result<Definition, Error> {
        self.write(|ledger| {
            let before = existing_definition(ledger.reader(), id)?;
            if before.archived_at.is_some() {
                return Err(Error::invalid(format!("the {} `{id}` is archived", id.kind()))
                    .with_hint("create another one"));
            }
            let after = change(&before)?;
            if after == DefinitionContent::of(&before) {
                return Ok(before);
            }
            self.require_definition_size(&after)?;
            let version = match id.kind() {
                DefinitionKind::Agent => before.version + 1,
                DefinitionKind::Environment => before.version,
            };
            let versions_max = self.limits.versions_per_agent_max;
            if version > versions_max {
                let message = format!("`{id}` has {versions_max} versions, which is the limit");
                return Err(Error::new(ErrorKind::LimitReached, message).with_hint(
                    "create another agent, or raise `versions_per_agent_max` in `[limits]`",
                ));
            }
            self.make_room(ledger, before.workspace, after.body.size_bytes())?;
            let DefinitionContent { name, metadata, body } = after;
            let updated_at = ledger.moment()?.max(before.updated_at);
            let after = Definition { version, name, metadata, body, updated_at, ..before };
            ledger.writer.put_definition(&after)?;
            Ok(after)
        })
    }

    /// Makes room for a new definition, by number and by size.
    fn make_room_for_definition(
        &self,
        ledger: &mut Ledger<'_>,
        (workspace, kind): (WorkspaceId, DefinitionKind),
        new: &DefinitionContent,
    ) -> Result<(), Error> {
        let definitions_max = self.limits.definitions_per_workspace_max;
        while ledger.reader().definitions_count(workspace, kind)? >= definitions_max {
            if !remove_oldest_archived(ledger, workspace, &[kind])? {
                let message =
                    format!("the workspace holds {definitions_max} {kind}s, which is its limit");
                return Err(Error::new(ErrorKind::LimitReached, message).with_hint(format!(
                    "archive {kind}s that are not used, which makes room for new ones, or raise \
                     `definitions_per_workspace_max` in `[limits]`"
                )));
            }
        }
        self.make_room(ledger, workspace, new.body.size_bytes())
    }

    /// Makes room for this much more. What is archived is of the past: sessions that have run with it keep
    /// naming it.
    fn make_room(
        &self,
        ledger: &mut Ledger<'_>,
        workspace: WorkspaceId,
        more_bytes: u64,
    ) -> Result<(), Error> {
        let size_bytes_max = self.limits.workspace_definitions_size_bytes_max;
        let kinds = [DefinitionKind::Agent, DefinitionKind::Environment];
        while ledger.reader().definitions_size_bytes(workspace)? + more_bytes > size_bytes_max {
            if !remove_oldest_archived(ledger, workspace, &kinds)? {
                let message = format!(
                    "the agents and environments of the workspace, with all versions, must have at \
                     most {size_bytes_max} bytes"
                );
                return Err(Error::new(ErrorKind::LimitReached, message).with_hint(
                    "archive those that are not used, which makes room for new ones, or raise \
                     `workspace_definitions_size_bytes_max` in `[limits]`",
                ));
            }
        }
        Ok(())
    }

    /// Archives a definition: it cannot be changed any more. This is idempotent.
    pub fn archive_definition(&self, id: DefinitionId) -> Result<Definition, Error> {
        self.write(|ledger| {
            let before = existing_definition(ledger.reader(), id)?;
            if before.archived_at.is_some() {
                return Ok(before);
            }
            let at = ledger.moment()?.max(before.updated_at);
            let after = Definition { archived_at: Some(at), updated_at: at, ..before };
            ledger.writer.put_definition(&after)?;
            Ok(after)
        })
    }

    /// Deletes a definition with all of its versions. Sessions keep naming it.
    pub fn delete_definition(&self, id: DefinitionId) -> Result<(), Error> {
        self.remove(|ledger| {
            existing_definition(ledger.reader(), id)?;
            ledger.writer.remove_definition(id)?;
            ledger.writer.require_erasure(StoreId::from_bits(0))
        })
    }

    fn require_definition_size(&self, content: &DefinitionContent) -> Result<(), Error> {
        let size_bytes_max = self.limits.definition_size_bytes_max;
        if content.body.size_bytes() <= size_bytes_max {
            return Ok(());
        }
        let message =
            format!("an agent or an environment must have at most {size_bytes_max} bytes");
        Err(Error::new(ErrorKind::LimitReached, message))
    }
}

/// How many definitions are read at a time.
const PAGE: usize = 100;

/// Removes the definition of these kinds that was archived first; returns whether there was one.
fn remove_oldest_archived(
    ledger: &mut Ledger<'_>,
    workspace: WorkspaceId,
    kinds: &[DefinitionKind],
) -> Result<bool, Error> {
    let mut oldest: Option<(Timestamp, DefinitionId)> = None;
    for kind in kinds {
        let mut query = DefinitionQuery {
            workspace,
            kind: *kind,
            archived: Archived::Show,
            created: Span::default(),
            before: None,
            limit: PAGE,
        };
        loop {
            let page = ledger.reader().definitions(&query)?;
            let archived = page.iter().filter_map(|it| Some((it.archived_at?, it.id)));
            oldest = oldest.into_iter().chain(archived).min();
            match page.last() {
                Some(last) => query.before = Some(last.id),
                None => break,
            }
        }
    }
    let Some((_, id)) = oldest else { return Ok(false) };
    ledger.writer.remove_definition(id)?;
    ledger.writer.require_erasure(StoreId::from_bits(0))?;
    Ok(true)
}

fn existing_definition(reader: &dyn Reader, id: DefinitionId) -> Result<Definition, Error> {
    let found = reader.definition(id)?;
    found.ok_or_else(|| Error::not_found(format!("no {} has the id `{id}`", id.kind())))
}
