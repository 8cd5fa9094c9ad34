//! An archived store, whose files are opened without a request to the mount.

use std::path::Path;

use quipu_core::engine::{NewAttachment, NewSession, SessionToken};
use quipu_core::model::{Access, Instructions};

use super::Arguments;
use super::process::Mounted;
use crate::engine::{Opened, fill, open};

/// An archived store, mounted for a session that was opened before the store was archived.
pub(super) struct Archived {
    _mounted: Mounted,
    _opened: Opened,
}

/// Creates, fills, archives and mounts a store.
pub(super) fn archived(arguments: &Arguments, root: &Path) -> Archived {
    let opened = open();
    fill(&opened, 0, arguments.files.into());
    let attachment = NewAttachment {
        store: opened.store,
        access: Access::ReadOnly,
        instructions: Instructions::default(),
    };
    let new = NewSession::titled("bench", vec![attachment], SessionToken::None);
    let workspace = opened.engine.default_workspace().expect("a workspace").id;
    let session = opened.engine.create_session(workspace, &new).expect("a session").0.id;
    opened.engine.archive_store(opened.store).expect("it is archived");
    let data = opened.directory.path();
    let mounted = Mounted::session(&arguments.binary, data, root, &session.to_string());
    Archived { _mounted: mounted, _opened: opened }
}
