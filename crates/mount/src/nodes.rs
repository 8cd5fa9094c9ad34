//! The inode table: files and directories that the kernel references or that exist in the mount only.
//!
//! A node stands for a place in the tree, not for a memory: when an editor renames a new file over
//! an old one, the new node takes over the memory. This table makes no decisions; it keeps parents
//! and children consistent.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

use quipu_core::model::{Content, Memory, MemoryId, MemoryPath, Timestamp, VersionId};

use crate::error::TreeError;

/// An inode number, never reused while mounted. Reuse would need generations, and a number that the
/// kernel still references would name another file.
pub type Ino = u64;

/// The root directory of the store.
pub const ROOT: Ino = 1;

#[derive(Debug)]
pub(crate) struct Node {
    /// Parent and name; `None` for the root and for files that were removed while open.
    pub(crate) place: Option<(Ino, String)>,
    /// The place that it had when it was replaced.
    pub(crate) left: Option<(Ino, String)>,
    pub(crate) kind: NodeKind,
    /// The kernel's reference count: lookups that it has not forgotten yet.
    pub(crate) lookups: u64,
    /// How many handles are open.
    pub(crate) handles: u64,
    /// How many durable writes in flight claim it.
    pub(crate) claims: u64,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Directory(DirectoryNode),
    File(FileNode),
}

#[derive(Debug)]
pub(crate) struct DirectoryNode {
    /// Whether it stays although it holds no memory.
    pub(crate) kept: bool,
    pub(crate) changed_at: Timestamp,
    pub(crate) children: BTreeMap<String, Ino>,
}

#[derive(Debug)]
pub(crate) struct FileNode {
    /// Its memory; `None` if the file exists in the mount only. Only [`Nodes::set_memory`] changes
    /// it, which keeps the index by memory in step.
    pub(crate) memory: Option<MemoryId>,
    /// The newest version of the memory that the tree knows.
    pub(crate) version: Option<VersionId>,
    /// The stored text, while somebody has the file open.
    pub(crate) text: Option<Content>,
    /// What was or may be written.
    pub(crate) buffer: Option<Buffer>,
    /// Whether its name keeps it from becoming a memory.
    pub(crate) is_scratch: bool,
    /// Whether it is the mount's own report, which nobody else may write.
    pub(crate) is_report: bool,
    /// The last version of the memory that this file was before it moved to a scratch name, which
    /// deleted it.
    pub(crate) former: Option<VersionId>,
    /// Which process created the memory, and until when that matters.
    pub(crate) creator: Option<(ProcessId, Timestamp)>,
    /// How many of the handles may write.
    pub(crate) writers: u64,
    /// Set while the kernel's cached text may differ from ours. The number distinguishes this from
    /// later invalidations, so that an old acknowledgement does not clear a newer one.
    pub(crate) outdated: Option<u64>,
}

/// A process or thread id as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// No process in particular: writeback of mapped pages, or the mount itself.
    pub const UNKNOWN: Self = Self(0);
}

/// The text of a file that is open for writing or lives in the mount only.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    /// The stored text that it began with.
    pub(crate) base: Option<Content>,
    pub(crate) state: BufferState,
    pub(crate) blank: Blank,
    pub(crate) extent: Extent,
    /// Why a write was refused. The text is incomplete without it and must not be stored.
    pub(crate) refused: Option<TreeError>,
    /// Whether an empty file does not become a memory, because its creator failed elsewhere.
    pub(crate) is_given_up: bool,
    pub(crate) changed_at: Timestamp,
    /// Which processes wrote to it since it was last stored.
    pub(crate) writers: Vec<ProcessId>,
    /// Whether the kernel may have cached attributes since the last write, which makes it drop them.
    pub(crate) is_shown: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferState {
    /// Equal to what is stored, or not to be stored.
    Clean,
    /// It must be stored.
    Dirty,
    /// Storing it failed, and nothing was written since.
    Failed(TreeError),
}

/// Whether a file was truncated by its open and nothing has been written since.
///
/// For `> file` a shell opens and truncates, duplicates the descriptor, closes the first one and only
/// then writes. If that close stored the empty text, each redirection would make two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blank {
    No,
    Yes,
    ClosedOnce,
}

/// How the text differs from its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Only appended to, by `O_APPEND` writers, if changed at all.
    Appended,
    /// In any way.
    Rewritten,
}

impl Buffer {
    pub(crate) fn stored(content: &Content, changed_at: Timestamp) -> Self {
        Self {
            bytes: content.as_str().as_bytes().to_vec(),
            base: Some(content.clone()),
            state: BufferState::Clean,
            blank: Blank::No,
            extent: Extent::Appended,
            refused: None,
            is_given_up: false,
            changed_at,
            writers: Vec::new(),
            is_shown: Cell::new(true),
        }
    }

    pub(crate) fn new(changed_at: Timestamp) -> Self {
        Self {
            bytes: Vec::new(),
            base: None,
            state: BufferState::Dirty,
            blank: Blank::Yes,
            extent: Extent::Rewritten,
            refused: None,
            is_given_up: false,
            changed_at,
            writers: Vec::new(),
            is_shown: Cell::new(true),
        }
    }
}

impl FileNode {
    pub(crate) fn of(memory: &Memory) -> Self {
        Self {
            memory: Some(memory.id),
            version: Some(memory.version),
            text: None,
            buffer: None,
            is_scratch: false,
            is_report: false,
            former: None,
            creator: None,
            writers: 0,
            outdated: None,
        }
    }

    pub(crate) fn new(buffer: Buffer) -> Self {
        Self {
            memory: None,
            version: None,
            text: None,
            buffer: Some(buffer),
            is_scratch: false,
            is_report: false,
            former: None,
            creator: None,
            writers: 0,
            outdated: None,
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.state != BufferState::Clean)
    }
}

#[derive(Debug)]
pub(crate) struct Nodes {
    all: HashMap<Ino, Node>,
    /// The files of each memory. Every change in the feed looks them up; scanning all nodes for each
    /// change made following the feed quadratic.
    of_memory: HashMap<MemoryId, Vec<Ino>>,
    next: Ino,
    /// Names that the store does not have, as of the position in the feed. A lookup precedes every
    /// creation, and the answer to the one is that to the other.
    absent: HashSet<(Ino, String)>,
}

/// How many absent names are remembered.
const ABSENT_MAX: usize = 1024;

impl Nodes {
    pub(crate) fn new(now: Timestamp) -> Self {
        let mut nodes = Self {
            all: HashMap::new(),
            of_memory: HashMap::new(),
            next: ROOT,
            absent: HashSet::new(),
        };
        let root = DirectoryNode { kept: true, changed_at: now, children: BTreeMap::new() };
        nodes.insert(None, NodeKind::Directory(root));
        nodes
    }

    fn insert(&mut self, place: Option<(Ino, String)>, kind: NodeKind) -> Ino {
        let ino = self.next;
        self.next += 1;
        if let NodeKind::File(FileNode { memory: Some(memory), .. }) = &kind {
            self.of_memory.entry(*memory).or_default().push(ino);
        }
        self.all.insert(ino, Node { place, left: None, kind, lookups: 0, handles: 0, claims: 0 });
        ino
    }

    pub(crate) fn get(&self, ino: Ino) -> Result<&Node, TreeError> {
        self.all.get(&ino).ok_or(TreeError::Stale)
    }

    pub(crate) fn get_mut(&mut self, ino: Ino) -> Result<&mut Node, TreeError> {
        self.all.get_mut(&ino).ok_or(TreeError::Stale)
    }

    pub(crate) fn directory(&self, ino: Ino) -> Result<&DirectoryNode, TreeError> {
        match &self.get(ino)?.kind {
            NodeKind::Directory(directory) => Ok(directory),
            NodeKind::File(_) => Err(TreeError::NotDirectory),
        }
    }

    pub(crate) fn directory_mut(&mut self, ino: Ino) -> Result<&mut DirectoryNode, TreeError> {
        match &mut self.get_mut(ino)?.kind {
            NodeKind::Directory(directory) => Ok(directory),
            NodeKind::File(_) => Err(TreeError::NotDirectory),
        }
    }

    pub(crate) fn file(&self, ino: Ino) -> Result<&FileNode, TreeError> {
        match &self.get(ino)?.kind {
            NodeKind::File(file) => Ok(file),
            NodeKind::Directory(_) => Err(TreeError::IsDirectory),
        }
    }

    pub(crate) fn file_mut(&mut self, ino: Ino) -> Result<&mut FileNode, TreeError> {
        match &mut self.get_mut(ino)?.kind {
            NodeKind::File(file) => Ok(file),
            NodeKind::Directory(_) => Err(TreeError::IsDirectory),
        }
    }

    /// Returns the buffer of a file that must have one.
    pub(crate) fn buffer_mut(&mut self, ino: Ino) -> Result<&mut Buffer, TreeError> {
        self.file_mut(ino)?.buffer.as_mut().ok_or(TreeError::Stale)
    }

    pub(crate) fn child(&self, parent: Ino, name: &str) -> Option<Ino> {
        self.directory(parent).ok()?.children.get(name).copied()
    }

    /// Remembers that the store has nothing at a name.
    pub(crate) fn note_absent(&mut self, parent: Ino, name: &str) {
        if self.absent.len() >= ABSENT_MAX {
            self.absent.clear();
        }
        self.absent.insert((parent, name.to_owned()));
    }

    /// Returns whether the store is known to have nothing at a name. The caller has caught up with the
    /// feed.
    pub(crate) fn is_absent(&self, parent: Ino, name: &str) -> bool {
        !self.absent.is_empty() && self.absent.contains(&(parent, name.to_owned()))
    }

    /// Forgets which names are absent, because something may have appeared anywhere.
    pub(crate) fn forget_absent(&mut self) {
        self.absent.clear();
    }

    /// Inserts a node at a place, replacing the one that may be there.
    pub(crate) fn put(
        &mut self,
        parent: Ino,
        name: &str,
        kind: NodeKind,
    ) -> Result<Ino, TreeError> {
        if let Some(old) = self.child(parent, name) {
            self.detach_replaced(old);
        }
        let place = (parent, name.to_owned());
        self.absent.remove(&place);
        let ino = self.insert(Some(place), kind);
        self.directory_mut(parent)?.children.insert(name.to_owned(), ino);
        Ok(ino)
    }

    /// Inserts a file that was replaced at a place before anybody could look it up.
    pub(crate) fn add_replaced(&mut self, left: Option<(Ino, String)>, file: FileNode) -> Ino {
        let ino = self.insert(None, NodeKind::File(file));
        if let Some(node) = self.all.get_mut(&ino) {
            node.left = left;
        }
        ino
    }

    /// Moves a node to another place, replacing the one that may be there.
    pub(crate) fn relocate(&mut self, ino: Ino, parent: Ino, name: &str) -> Result<(), TreeError> {
        if let Some(old) = self.child(parent, name).filter(|&old| old != ino) {
            self.detach_replaced(old);
        }
        // A directory brings the names below it along.
        self.forget_absent();
        self.unlink(ino);
        self.directory_mut(parent)?.children.insert(name.to_owned(), ino);
        self.get_mut(ino)?.place = Some((parent, name.to_owned()));
        Ok(())
    }

    /// Removes a node from the tree that another one replaces, or that another door has taken away. Opening
    /// it opens what is at its place then.
    pub(crate) fn detach_replaced(&mut self, ino: Ino) {
        if let Some(node) = self.all.get_mut(&ino)
            && node.place.is_some()
        {
            node.left.clone_from(&node.place);
        }
        self.detach(ino);
    }

    /// Removes a node from the tree. Open handles keep it in the table.
    pub(crate) fn detach(&mut self, ino: Ino) {
        let parent = self.unlink(ino);
        if let Ok(directory) = self.directory_mut(ino) {
            directory.kept = false;
            let children = std::mem::take(&mut directory.children);
            for child in children.into_values() {
                if let Ok(node) = self.get_mut(child) {
                    node.place = None;
                }
                self.detach(child);
            }
        }
        self.drop_unused(ino);
        if let Some(parent) = parent {
            self.drop_unused(parent);
        }
    }

    /// Takes a node out of its parent and returns that.
    fn unlink(&mut self, ino: Ino) -> Option<Ino> {
        let (parent, name) = self.all.get_mut(&ino)?.place.take()?;
        if let Ok(directory) = self.directory_mut(parent) {
            directory.children.remove(&name);
        }
        Some(parent)
    }

    /// Drops a node that nothing references and that has no state of its own, then its parents if they
    /// are unused as well.
    pub(crate) fn drop_unused(&mut self, ino: Ino) {
        let Some(node) = self.all.get(&ino) else { return };
        let is_needed = match &node.kind {
            NodeKind::Directory(directory) => directory.kept || !directory.children.is_empty(),
            NodeKind::File(file) => file.memory.is_none() && node.place.is_some(),
        };
        let is_known = node.lookups > 0 || node.handles > 0 || node.claims > 0;
        if ino == ROOT || is_needed || is_known {
            return;
        }
        let parent = self.unlink(ino);
        // The index of memories must not keep what is gone.
        self.set_memory(ino, None).unwrap_or_default();
        self.all.remove(&ino);
        if let Some(parent) = parent {
            self.drop_unused(parent);
        }
    }

    /// Returns the path of a node as the text before a child's `/`: empty for the root.
    fn prefix(&self, ino: Ino) -> Result<String, TreeError> {
        let mut names = Vec::new();
        let mut at = ino;
        while at != ROOT {
            let (parent, name) = self.get(at)?.place.as_ref().ok_or(TreeError::Stale)?;
            names.push(name.as_str());
            at = *parent;
        }
        let parts = names.iter().rev();
        Ok(parts.fold(String::new(), |path, name| path + "/" + name))
    }

    /// Returns the path of a node, `None` for the root.
    pub(crate) fn path(&self, ino: Ino) -> Result<Option<MemoryPath>, TreeError> {
        let prefix = self.prefix(ino)?;
        if prefix.is_empty() { Ok(None) } else { Ok(Some(MemoryPath::parse(&prefix)?)) }
    }

    /// Returns the path that a child of a directory has or would have.
    pub(crate) fn child_path(&self, parent: Ino, name: &str) -> Result<MemoryPath, TreeError> {
        Ok(MemoryPath::parse(&format!("{}/{name}", self.prefix(parent)?))?)
    }

    /// Assigns a memory to a file, or none.
    pub(crate) fn set_memory(
        &mut self,
        ino: Ino,
        memory: Option<MemoryId>,
    ) -> Result<(), TreeError> {
        let file = self.file_mut(ino)?;
        let before = std::mem::replace(&mut file.memory, memory);
        if before == memory {
            return Ok(());
        }
        file.version = None;
        if let Some(before) = before
            && let Some(files) = self.of_memory.get_mut(&before)
        {
            files.retain(|&file| file != ino);
            if files.is_empty() {
                self.of_memory.remove(&before);
            }
        }
        if let Some(memory) = memory {
            self.of_memory.entry(memory).or_default().push(ino);
        }
        Ok(())
    }

    /// Returns the files of a memory.
    pub(crate) fn files_of(&self, memory: MemoryId) -> Vec<Ino> {
        self.of_memory.get(&memory).cloned().unwrap_or_default()
    }

    pub(crate) fn inos(&self) -> Vec<Ino> {
        self.all.keys().copied().collect()
    }

    /// Returns the total size of files that exist in the mount only.
    pub(crate) fn scratch_size_bytes(&self) -> usize {
        let size = |node: &Node| match &node.kind {
            NodeKind::File(file) if file.memory.is_none() => {
                file.buffer.as_ref().map_or(0, |buffer| buffer.bytes.len())
            }
            NodeKind::File(_) | NodeKind::Directory(_) => 0,
        };
        self.all.values().map(size).sum()
    }
}
