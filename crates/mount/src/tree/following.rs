//! Changes by other doors, and what a kernel that caches must be told about them.

use quipu_core::backend::{Change, Event};
use quipu_core::model::{MemoryPath, Operation, Version, View};

use super::{Notice, Standing, Tree, Turn};
use crate::error::TreeError;
use crate::nodes::{BufferState, Ino, ROOT};

impl Tree {
    /// Takes note of a change of the feed.
    pub fn observe(&self, change: &Change) -> Result<(), TreeError> {
        if change.store != self.settings.store {
            return Ok(());
        }
        let mut turn = self.any_turn();
        match change.event {
            Event::Version(id) => {
                if turn.state.own.remove(&id) {
                    return Ok(());
                }
                turn.state.changes_count += 1;
                let version = turn.engine().version(turn.store(), id, View::Basic);
                match version.map_err(TreeError::from) {
                    Ok(version) => turn.follow(&version),
                    // It was given up already; a later change tells the rest.
                    Err(TreeError::NotFound) => turn.look_again(),
                    Err(error) => return Err(error),
                }
            }
            Event::StoreArchived => {
                turn.state.standing = Standing::Archived;
                // Only modes look different now.
                for ino in turn.state.nodes.inos() {
                    turn.tell(Notice::Attributes(ino));
                }
            }
            Event::StoreDeleted => {
                turn.state.standing = Standing::Deleted;
                turn.look_again();
            }
            Event::Redacted(_) | Event::StoreCreated | Event::StoreUpdated => {}
        }
        Ok(())
    }

    /// Takes note that changes may have been missed.
    pub fn observe_everything(&self) {
        self.any_turn().look_again();
    }
}

impl Turn<'_> {
    /// Distrusts everything that is known of the store.
    fn look_again(&mut self) {
        self.state.changes_count += 1;
        for ino in self.state.nodes.inos() {
            self.distrust(ino);
        }
    }

    /// Distrusts what is known of a node's text and place.
    fn distrust(&mut self, ino: Ino) {
        if let Ok(file) = self.state.nodes.file_mut(ino)
            && file.memory.is_some()
        {
            file.text = None;
            file.is_outdated = true;
            if file.buffer.as_ref().is_some_and(|buffer| buffer.state == BufferState::Clean) {
                file.buffer = None;
            }
        }
        // The place first: this waits for a lookup on its way, which may bring old attributes.
        self.tell_entry(ino);
        self.tell(Notice::Content(ino));
    }

    fn follow(&mut self, version: &Version) {
        let is_deleted = version.operation == Operation::Deleted;
        let path = version.path.as_ref().filter(|_| !is_deleted);
        self.state.parked.retain(|parked| !parked.is_of(version.memory) || !is_deleted);
        for ino in self.state.nodes.files_of(version.memory) {
            let here = self.state.nodes.path(ino).ok().flatten();
            if here.is_some() && here.as_ref() == path {
                self.distrust(ino);
            } else {
                self.moved_away(ino, version);
            }
        }
        if let Some(path) = path {
            self.appeared(path);
        }
    }

    /// Follows a memory that is no longer where a node shows it.
    fn moved_away(&mut self, ino: Ino, version: &Version) {
        let is_deleted = version.operation == Operation::Deleted;
        let parents = self.parents(ino);
        self.tell_entry(ino);
        let Ok(file) = self.state.nodes.file_mut(ino) else { return };
        if is_deleted && file.writers > 0 {
            // Whoever writes to it will make it anew by closing it.
            file.memory = None;
            return;
        }
        if is_deleted {
            file.memory = None;
        } else {
            file.memory = Some(version.memory);
        }
        self.state.nodes.detach(ino);
        self.tell(Notice::Attributes(ino));
        for directory in parents {
            self.vanish_if_empty(directory);
        }
    }

    /// Returns the directories above a node, the nearest first, without the root.
    fn parents(&self, ino: Ino) -> Vec<Ino> {
        let parent = |ino: Ino| self.state.nodes.get(ino).ok()?.place.as_ref().map(|place| place.0);
        std::iter::successors(parent(ino), |&above| parent(above))
            .filter(|&above| above != ROOT)
            .collect()
    }

    fn vanish_if_empty(&mut self, ino: Ino) {
        let Ok(Some(path)) = self.state.nodes.path(ino) else { return };
        let Ok(directory) = self.state.nodes.directory(ino) else { return };
        let holds = |child: &Ino| {
            self.lives_in_mount_only(*child)
                || self.state.nodes.directory(*child).is_ok_and(|directory| directory.kept)
        };
        if directory.kept || directory.children.values().any(holds) {
            return;
        }
        if let Ok(None) = self.stored(&path) {
            self.tell_entry(ino);
            self.state.nodes.detach(ino);
        }
    }

    /// Tells the kernel about the names that lead to a memory.
    fn appeared(&mut self, path: &MemoryPath) {
        let mut parent = ROOT;
        let mut names = path.as_str().split('/').skip(1).peekable();
        while let Some(name) = names.next() {
            let child = self.state.nodes.child(parent, name);
            let is_directory = child.is_some_and(|child| self.state.nodes.directory(child).is_ok());
            let should_be_directory = names.peek().is_some();
            if !(is_directory && should_be_directory) {
                self.tell(Notice::Entry { parent, name: name.to_owned() });
            }
            match child {
                Some(child) if is_directory && !should_be_directory => {
                    // A memory took the place of a directory that lived here only.
                    self.state.nodes.detach(child);
                    return;
                }
                Some(child) if is_directory => parent = child,
                Some(_) | None => return,
            }
        }
    }
}
