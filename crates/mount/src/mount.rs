//! Mounting and unmounting trees, and the threads behind a mount.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use fuser::{
    BackgroundSession, Config, Filesystem, INodeNo, MountOption, Notifier, Session, SessionACL,
};
use quipu_core::model::Access;
use rustix::process::{getgid, getuid};

use crate::blocking::BlockingPool;
use crate::fuse::{Adapter, WithPast};
use crate::mount_points::MountPoints;
use crate::mount_table;
use crate::ownership::{Ownership, Sharing};
use crate::pasts::Pasts;
use crate::root::RootDirectory;
use crate::tree::{Invalidation, Tree};

/// Mounted stores. They stay until [`Mounts::unmount`].
#[derive(Debug)]
pub struct Mounts {
    root: PathBuf,
    points: MountPoints,
    root_session: Option<BackgroundSession>,
    stores: Vec<MountedStore>,
    stop: Arc<AtomicBool>,
    ended: (Sender<()>, Option<Receiver<()>>),
}

/// A store to mount.
#[derive(Debug)]
pub struct StoreMount {
    /// The name of its directory.
    pub name: String,
    /// What the directory shows.
    pub tree: Tree,
    /// What the kernel has to drop from its caches.
    pub invalidations: Receiver<Invalidation>,
}

#[derive(Debug)]
struct MountedStore {
    place: PathBuf,
    tree: Arc<Tree>,
    session: BackgroundSession,
}

/// Why stores could not be mounted.
#[derive(Debug)]
pub enum MountError {
    /// The host has no FUSE.
    NoFuse,
    /// `/dev/fuse` is there but cannot be opened.
    DeviceRefused(io::Error),
    /// The user may not mount, and there is no `fusermount3` to help.
    NoHelper,
    /// `fusermount3`, which mounts for other users, refused; this is what it said.
    HelperRefused(String),
    /// Quipu has mounted something there already.
    InUse(PathBuf),
    /// The directory is not empty.
    NotEmpty(PathBuf),
    /// Anything else.
    Other(PathBuf, io::Error),
}

/// How many threads take the requests of one store. More of them wake each other for every message:
/// `rg` over 2,000 files took 37.7 ms with one, 43.5 ms with two and 43.1 ms with three. Calls that
/// wait for the disk run on a [`BlockingPool`] instead.
const WORKERS_COUNT: usize = 1;
/// How long one wait for the change feed lasts; it ends early with every change.
const PATIENCE: Duration = Duration::from_hours(1);
/// How long to wait before retrying a storage that failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Mounts {
    /// Mounts stores below a directory, which is created if it does not exist.
    ///
    /// Mounts of a crashed process are removed first.
    pub fn new(root: &Path, stores: Vec<StoreMount>, sharing: Sharing) -> Result<Self, MountError> {
        require_device()?;
        let other = |error| MountError::Other(root.to_owned(), error);
        mount_table::clear_stale(root).map_err(other)?;
        if let Some(point) = mount_table::mounted_below(root).map_err(other)?.pop() {
            return Err(MountError::InUse(point));
        }
        let (ended, unmounted) = channel();
        let mut mounts = Self {
            root: root.to_owned(),
            points: MountPoints::default(),
            root_session: None,
            stores: Vec::new(),
            stop: Arc::default(),
            ended: (ended, Some(unmounted)),
        };
        let mounted = mounts.mount(stores, sharing);
        if let Err(error) = mounted {
            mounts.unmount();
            return Err(error);
        }
        Ok(mounts)
    }

    fn mount(&mut self, stores: Vec<StoreMount>, sharing: Sharing) -> Result<(), MountError> {
        let ownership = Ownership { user: getuid().as_raw(), group: getgid().as_raw(), sharing };
        let names: Vec<_> = stores.iter().map(|store| store.name.clone()).collect();
        let other = |error| MountError::Other(self.root.clone(), error);
        self.points.make(&self.root).map_err(other)?;
        require_empty(&self.root)?;
        if getuid().is_root() {
            let directory = RootDirectory { names, ownership };
            let session = start(directory, &self.root, &config(Access::ReadOnly, sharing, 1))?;
            self.root_session = Some(session.spawned(&self.root)?);
        } else {
            self.points.make_below(&self.root, &names).map_err(other)?;
        }
        for store in stores {
            let place = self.root.join(&store.name);
            self.stores.push(self.mount_store(store, &place, ownership)?);
        }
        Ok(())
    }

    fn mount_store(
        &self,
        store: StoreMount,
        place: &Path,
        ownership: Ownership,
    ) -> Result<MountedStore, MountError> {
        let tree = Arc::new(store.tree);
        let notifier = Arc::new(OnceLock::new());
        let adapter = Adapter {
            tree: Arc::clone(&tree),
            ownership,
            ended: self.ended.0.clone(),
            notifier: Arc::clone(&notifier),
            blocking: BlockingPool::default(),
        };
        let config = config(tree.settings().access, ownership.sharing, WORKERS_COUNT);
        // A past has no past of its own: the moments of its store are below the store itself.
        let pasts = tree.moment().is_none().then(|| Arc::new(Pasts::new(Arc::clone(&tree))));
        let (session, notifier) = match &pasts {
            Some(pasts) => {
                let adapter = WithPast { present: adapter, pasts: Arc::clone(pasts) };
                start(adapter, place, &config)?.answering(place, &notifier)?
            }
            None => start(adapter, place, &config)?.answering(place, &notifier)?,
        };
        {
            let tree = Arc::clone(&tree);
            thread::spawn(move || deliver_all(&tree, &store.invalidations, &notifier));
        }
        {
            let (tree, stop) = (Arc::clone(&tree), Arc::clone(&self.stop));
            thread::spawn(move || follow_feed(&tree, pasts.as_deref(), &stop));
        }
        Ok(MountedStore { place: place.to_owned(), tree, session })
    }

    /// Returns where the stores are.
    pub fn places(&self) -> impl Iterator<Item = &Path> {
        self.stores.iter().map(|store| store.place.as_path())
    }

    /// Returns a call that blocks until all stores have been unmounted by others. Only the first
    /// waiter waits.
    pub fn waiter(&mut self) -> impl FnOnce() + Send + 'static {
        let (unmounted, stores_count) = (self.ended.1.take(), self.stores.len());
        move || {
            let unmounted = unmounted.iter().flat_map(Receiver::iter);
            unmounted.take(stores_count).for_each(drop);
        }
    }

    /// Unmounts everything. Open files are stored as far as they were written; mounts that are in
    /// use are detached lazily.
    pub fn unmount(self) {
        self.stop.store(true, Ordering::Relaxed);
        for store in self.stores.into_iter().rev() {
            if store.session.umount_and_join().is_err() {
                store.tree.close();
                mount_table::detach(&store.place).unwrap_or_default();
            } else {
                store.tree.close();
            }
        }
        if let Some(session) = self.root_session
            && session.umount_and_join().is_err()
        {
            mount_table::detach(&self.root).unwrap_or_default();
        }
        self.points.remove();
    }
}

/// A session that is mounted but does not answer yet.
struct Started<F: Filesystem>(Session<F>);

impl<F: Filesystem> Started<F> {
    /// Starts to answer, after passing on the way to send invalidations.
    fn answering(
        self,
        place: &Path,
        for_adapter: &OnceLock<Notifier>,
    ) -> Result<(BackgroundSession, Notifier), MountError> {
        let notifier = self.0.notifier();
        for_adapter.get_or_init(|| notifier.clone());
        Ok((self.spawned(place)?, notifier))
    }

    fn spawned(self, place: &Path) -> Result<BackgroundSession, MountError> {
        self.0.spawn().map_err(|error| MountError::Other(place.to_owned(), error))
    }
}

/// `fusermount3`, which mounts for unprivileged users, does not support concurrent mounts.
static MOUNTING: Mutex<()> = Mutex::new(());

fn start<F: Filesystem>(
    filesystem: F,
    place: &Path,
    config: &Config,
) -> Result<Started<F>, MountError> {
    let _mounting = MOUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    Session::new(filesystem, place, config).map(Started).map_err(|error| {
        // This is how a missing `fusermount3` is reported.
        if error.kind() == io::ErrorKind::NotFound && place.exists() {
            return MountError::NoHelper;
        }
        let said = error.to_string();
        if said.starts_with("fusermount") {
            return MountError::HelperRefused(said.trim().to_owned());
        }
        MountError::Other(place.to_owned(), error)
    })
}

/// Fails unless this process can open the FUSE device, before anything is created.
fn require_device() -> Result<(), MountError> {
    match File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(MountError::NoFuse),
        Err(error) => Err(MountError::DeviceRefused(error)),
    }
}

fn config(access: Access, sharing: Sharing, workers_count: usize) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("quipu".to_owned()),
        MountOption::Subtype("quipu".to_owned()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoExec,
        MountOption::NoAtime,
        match access {
            Access::ReadWrite => MountOption::RW,
            Access::ReadOnly => MountOption::RO,
        },
    ];
    config.acl = match sharing {
        Sharing::Owner => SessionACL::Owner,
        Sharing::Everyone => SessionACL::All,
    };
    config.n_threads = Some(workers_count);
    config
}

/// Fails if a mount would hide anything but empty directories.
fn require_empty(root: &Path) -> Result<(), MountError> {
    let is_empty = |entry: io::Result<fs::DirEntry>| -> io::Result<bool> {
        let entry = entry?;
        Ok(entry.file_type()?.is_dir() && fs::read_dir(entry.path())?.next().is_none())
    };
    let holds_nothing = || -> io::Result<bool> {
        fs::read_dir(root)?.try_fold(true, |all, entry| Ok(all && is_empty(entry)?))
    };
    match holds_nothing() {
        Ok(true) => Ok(()),
        Ok(false) => Err(MountError::NotEmpty(root.to_owned())),
        Err(error) => Err(MountError::Other(root.to_owned(), error)),
    }
}

/// Delivers invalidations to the kernel until the tree is gone, and settles parked memories.
///
/// This needs a thread of its own. The kernel may block an invalidation until a request on the same
/// inode has been answered, so delivering from a worker, or with the tree's lock held, deadlocks.
fn deliver_all(tree: &Tree, invalidations: &Receiver<Invalidation>, notifier: &Notifier) {
    loop {
        let pause = tree.settle_due().unwrap_or(PATIENCE);
        match invalidations.recv_timeout(pause) {
            // An error means that the kernel has nothing cached, or that the store is unmounted.
            Ok(Invalidation::Content(ino)) => {
                let outdated = tree.outdated(ino);
                notifier.inval_inode(INodeNo(ino), 0, 0).unwrap_or_default();
                tree.dropped(ino, outdated);
            }
            Ok(invalidation) => deliver(&invalidation, notifier).unwrap_or_default(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn deliver(invalidation: &Invalidation, notifier: &Notifier) -> io::Result<()> {
    match invalidation {
        Invalidation::Entry { parent, name } => {
            // The directory's own attributes change with its entries, also with unknown names.
            let known = notifier.inval_entry(INodeNo(*parent), name.as_ref());
            notifier.inval_inode(INodeNo(*parent), 0, 0).and(known)
        }
        Invalidation::Content(ino) | Invalidation::Attributes(ino) => {
            notifier.inval_inode(INodeNo(*ino), -1, 0)
        }
        Invalidation::Wake => Ok(()),
    }
}

/// Follows the change feed on behalf of the tree and its past.
fn follow_feed(tree: &Tree, pasts: Option<&Pasts>, stop: &AtomicBool) {
    let mut redactions_count = 0;
    while !stop.load(Ordering::Relaxed) {
        let followed = tree.follow().and_then(|seen| {
            // Nothing else changes the past, so its trees need not read every change again.
            let count = tree.redactions_count();
            if let Some(pasts) = pasts.filter(|_| count != redactions_count) {
                pasts.follow()?;
                redactions_count = count;
            }
            tree.wait(seen, PATIENCE)
        });
        if let Err(error) = followed
            && !stop.load(Ordering::Relaxed)
        {
            tracing::error!(%error, "the change feed cannot be followed, retrying");
            thread::sleep(RETRY_DELAY);
        }
    }
}
