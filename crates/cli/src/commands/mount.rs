//! `quipu mount` and `quipu unmount`.

mod past;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quipu_core::engine::{NewAttachment, NewSession, SessionToken};
use quipu_core::model::{Access, Actor, Attachment, Instructions, Session};
use quipu_mount::{
    MountError, Mounts, NameRules, Sharing, StoreMount, Tree, TreeSettings, unmount_below,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getppid, pidfd_open, setsid};
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tracing::Level;

use self::past::{FixedStore, Selection, fixed_mount, selection};
use super::sessions::attachment;
use crate::args::{MountArguments, UnmountArguments};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::log::{self, LogForm};
use crate::print::{Form, answer};
use crate::uses;

/// The announcement that everything is mounted.
#[derive(Serialize)]
struct Ready {
    /// `None` if only the past or archived stores are mounted: nothing can be written in its name.
    session: Option<String>,
    root: String,
    stores: Vec<ReadyStore>,
}

#[derive(Serialize)]
struct ReadyStore {
    name: String,
    path: String,
    access: &'static str,
    /// The moment, of a store as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

/// How long the mounts stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    OfParent,
    Detached,
}

pub(super) fn run(context: &Context, arguments: &MountArguments) -> Result<(), Failure> {
    if arguments.detach {
        return detach();
    }
    let lifetime = if arguments.detached { Lifetime::Detached } else { Lifetime::OfParent };
    if lifetime == Lifetime::Detached {
        // Fails for a process that leads a session already, which is as good.
        setsid().map(drop).unwrap_or_default();
    }
    let _log = log::start(Level::WARN, LogForm::Plain);
    let data = context.open()?;
    let Selection { present, fixed } = selection(&data, &arguments.past)?;
    let is_fixed_only = present.is_empty() && !fixed.is_empty();
    let session = if is_fixed_only { None } else { Some(session(&data, arguments, &present)?) };
    let root = root(context, arguments.root.as_deref());
    let names = &context.settings.names;
    let mut stores = Vec::new();
    if let Some(session) = &session {
        for attachment in &session.attachments {
            stores.push(store_mount(&data, session, attachment, names.clone())?);
        }
    }
    for fixed in &fixed {
        stores.push(fixed_mount(&data, fixed, names.clone())?);
    }
    let sharing = if arguments.allow_other { Sharing::Everyone } else { Sharing::Owner };

    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Signal handlers are installed before anything is mounted, so that no signal leaves a mount
    // behind.
    let shutdown = {
        let _entered = runtime.enter();
        Shutdown::new(lifetime)?
    };
    let mut mounts = Mounts::new(&root, stores, sharing).map_err(|error| explain(&error))?;
    uses::flush_in_background(&data.engine);
    let announced = ready(&data, session.as_ref(), &fixed, &root)
        .and_then(|ready| announce(context.form, &ready));
    if announced.is_ok() {
        if lifetime == Lifetime::Detached {
            detach_stdio()?;
        }
        let gone = mounts.waiter();
        runtime.block_on(shutdown.wait(gone));
    }
    mounts.unmount();
    runtime.shutdown_background();
    announced
}

fn root(context: &Context, wanted: Option<&Path>) -> PathBuf {
    wanted.map_or_else(|| PathBuf::from(&context.settings.mount_root), Path::to_owned)
}

/// Returns the given session, or a new one with the given stores.
fn session(data: &Data, arguments: &MountArguments, named: &[String]) -> Result<Session, Failure> {
    if let Some(id) = arguments.session {
        let session = data.engine.session(id)?;
        if session.archived_at.is_some() {
            return Err(Failure::usage(format!("the session `{id}` is archived"))
                .with_hint("start another one with `quipu session create`"));
        }
        return Ok(session);
    }
    let acting = data.acting()?;
    let attachments = if named.is_empty() {
        if let Some(session) = acting {
            return Ok(session);
        }
        vec![NewAttachment {
            store: data.store()?.id,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        }]
    } else {
        named.iter().map(|text| attachment(data, text, "")).collect::<Result<Vec<_>, _>>()?
    };
    for attachment in &attachments {
        data.require_granted(&data.engine.store(attachment.store)?, attachment.access)?;
    }
    let new = NewSession::titled(&arguments.title, attachments, SessionToken::None);
    Ok(data.engine.create_session(data.workspace, &new)?.0)
}

fn store_mount(
    data: &Data,
    session: &Session,
    attachment: &Attachment,
    names: NameRules,
) -> Result<StoreMount, Failure> {
    let (tree, invalidations) = Tree::new(
        data.engine.engine().clone(),
        TreeSettings {
            store: attachment.store,
            actor: Actor::Session(session.id),
            access: access(data, attachment)?,
            names,
        },
    )?;
    Ok(StoreMount { name: attachment.slug.clone(), tree, invalidations })
}

fn access(data: &Data, attachment: &Attachment) -> Result<Access, Failure> {
    let is_archived = data.engine.store(attachment.store)?.archived_at.is_some();
    Ok(if is_archived { Access::ReadOnly } else { attachment.access })
}

/// Returns what is mounted where.
fn ready(
    data: &Data,
    session: Option<&Session>,
    fixed: &[FixedStore],
    root: &Path,
) -> Result<Ready, Failure> {
    let path = |directory: &str| root.join(directory).display().to_string();
    let mut stores = Vec::new();
    for attachment in session.iter().flat_map(|session| &session.attachments) {
        stores.push(ReadyStore {
            name: attachment.name.as_str().to_owned(),
            path: path(&attachment.slug),
            access: access(data, attachment)?.as_str(),
            at: None,
        });
    }
    stores.extend(fixed.iter().map(|fixed| ReadyStore {
        name: fixed.store.name.as_str().to_owned(),
        path: path(&fixed.directory),
        access: Access::ReadOnly.as_str(),
        at: fixed.past.as_ref().map(|past| past.at.to_string()),
    }));
    let session = session.map(|session| session.id.to_string());
    Ok(Ready { session, root: root.display().to_string(), stores })
}

/// Prints one line when everything is mounted; supervisors wait for it.
fn announce(form: Form, ready: &Ready) -> Result<(), Failure> {
    if form == Form::Json {
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, ready)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    let place = |store: &ReadyStore| match &store.at {
        Some(at) => format!("{} ({}, as of {at})", store.path, store.access),
        None => format!("{} ({})", store.path, store.access),
    };
    let places: Vec<_> = ready.stores.iter().map(place).collect();
    let session = ready.session.as_ref().map(|id| format!(" as {id}")).unwrap_or_default();
    answer(form, ready, |out| writeln!(out, "mounted {}{session}", places.join(", ")))
}

/// Waits for whatever ends a mount.
struct Shutdown {
    interrupted: tokio::signal::unix::Signal,
    terminated: tokio::signal::unix::Signal,
    hung_up: tokio::signal::unix::Signal,
    parent: Option<OwnedFd>,
}

impl Shutdown {
    fn new(lifetime: Lifetime) -> Result<Self, Failure> {
        let parent = getppid().filter(|_| lifetime == Lifetime::OfParent);
        Ok(Self {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            parent: parent.and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok()),
        })
    }

    /// Waits for a signal, for the exit of the parent, or until `gone` returns.
    async fn wait(mut self, gone: impl FnOnce() + Send + 'static) {
        let parent_ended = async {
            match self.parent {
                Some(parent) => drop(spawn_blocking(move || ended(&parent)).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
            _ = self.hung_up.recv() => {}
            () = parent_ended => {}
            _ = spawn_blocking(gone) => {}
        }
    }
}

/// Waits until a process has exited.
fn ended(process: &OwnedFd) {
    while poll(&mut [PollFd::new(process, PollFlags::IN)], None) == Err(Errno::INTR) {}
}

/// Restarts this command in the background, and returns when it is ready.
fn detach() -> Result<(), Failure> {
    let arguments = std::env::args_os().skip(1);
    let arguments =
        arguments.map(|text| if text == "--detach" { "--detached".into() } else { text });
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line)?;
    }
    if line.ends_with('\n') {
        return crate::print::raw(&line);
    }
    let code = child.wait()?.code().and_then(|code| u8::try_from(code).ok());
    Err(Failure::reported(code.unwrap_or(1)))
}

/// Redirects standard output and error, so that the terminal can be closed.
fn detach_stdio() -> Result<(), Failure> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing).map_err(io::Error::from)?;
    rustix::stdio::dup2_stderr(&nothing).map_err(io::Error::from)?;
    Ok(())
}

fn explain(error: &MountError) -> Failure {
    const SYNC: &str = "`quipu sync` keeps a plain directory and a store in sync without mounting";
    match error {
        MountError::NoFuse => Failure::other(
            "this host has no /dev/fuse, so nothing can be mounted",
        )
        .with_hint(format!(
            "load the kernel's `fuse` module, or pass the device into the container; {SYNC}"
        )),
        MountError::DeviceRefused(error) => {
            Failure::other(format!("/dev/fuse cannot be opened: {}", plain(error))).with_hint(
                format!("run as root, or have an administrator run `chmod 666 /dev/fuse`; {SYNC}"),
            )
        }
        MountError::NoHelper => Failure::other("you may not mount file systems on this host")
            .with_hint(format!("run as root, or install `fusermount3` (package fuse3); {SYNC}")),
        MountError::HelperRefused(said) => {
            Failure::other(format!("you may not mount file systems on this host: {said}"))
                .with_hint(format!("run as root (in a container, with CAP_SYS_ADMIN); {SYNC}"))
        }
        MountError::InUse(point) => {
            Failure::other(format!("{} is already mounted", point.display()))
                .with_hint("unmount it with `quipu unmount`, or choose another `--root`")
        }
        MountError::NotEmpty(point) => {
            Failure::other(format!("{} contains files that a mount would hide", point.display()))
                .with_hint("move them elsewhere, or choose another `--root`")
        }
        MountError::Other(point, error) => {
            Failure::other(format!("{} cannot be mounted: {error}", point.display()))
                .with_hint(format!("choose another `--root`; {SYNC}"))
        }
    }
}

/// Returns the message of an error without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

pub(super) fn unmount(context: &Context, arguments: &UnmountArguments) -> Result<(), Failure> {
    let root = root(context, arguments.root.as_deref());
    let points = unmount_below(&root).map_err(|error| {
        Failure::other(format!("{} cannot be unmounted: {error}", root.display())).with_hint(
            "stop the programs that use it, including shells whose working directory is inside",
        )
    })?;
    let points: Vec<_> = points.iter().map(|point| point.display().to_string()).collect();
    answer(context.form, &serde_json::json!({ "unmounted": points }), |out| match points.len() {
        0 => writeln!(out, "nothing was mounted below {}", root.display()),
        _ => writeln!(out, "unmounted {}", points.join(", ")),
    })
}
