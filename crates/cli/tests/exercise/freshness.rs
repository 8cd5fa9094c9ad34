//! Freshness: an open after an acknowledged change reads that change, whichever door made it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use quipu_core::engine::{NewAttachment, NewSession, Precondition, SessionToken};
use quipu_core::model::{Access, Actor, Content, Instructions, MemoryPath, PrincipalName, View};
use quipu_core::settings::Limits;
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Mount, Numbers, can_mount, eventually, setting};

const KEY: &str = "a key that was chosen for tests";

/// A second and a read-only mount of the same store, and a server.
struct Doors<'m> {
    mount: &'m Mount,
    second: PathBuf,
    read_only: PathBuf,
    server: Child,
    url: String,
    agent: ureq::Agent,
}

impl<'m> Doors<'m> {
    fn open(mount: &'m Mount) -> Self {
        let [second, read_only] = ["second", "read-only"].map(|name| mount.home.path().join(name));
        for (root, store) in [(&second, "notes"), (&read_only, "notes:ro")] {
            let root = root.to_str().unwrap();
            let mut command = mount.quipu(&["mount", "--store", store, "--root", root, "--detach"]);
            assert!(command.stdout(Stdio::null()).status().unwrap().success());
        }
        let mut command = mount.quipu(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("QUIPU_ADMIN_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        let agent = ureq::Agent::new_with_defaults();
        Self { mount, second, read_only, server, url: url.unwrap(), agent }
    }

    fn at_second(&self, name: &str) -> PathBuf {
        self.second.join("notes").join(name)
    }

    fn at_read_only(&self, name: &str) -> PathBuf {
        self.read_only.join("notes").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = MemoryPath::parse(&format!("/{name}")).unwrap();
        let target = (&path, &Content::new(text).unwrap());
        let ada = Actor::User(PrincipalName::from_host("ada"));
        self.mount.engine.put(&ada, self.mount.store, target, Precondition::None).unwrap();
    }

    fn post(&self, name: &str, text: &str) {
        let path = MemoryPath::parse(&format!("/{name}")).unwrap();
        let found = self.mount.engine.memory_at(self.mount.store, &path, View::Basic);
        let (tail, body) = match found {
            Ok(memory) => (format!("/{}", memory.id), json!({ "content": text })),
            Err(_) => (String::new(), json!({ "path": path.as_str(), "content": text })),
        };
        let url = format!("{}/v1/memory_stores/{}/memories{tail}", self.url, self.mount.store);
        let request = self.agent.post(url).header("x-api-key", KEY);
        assert!(request.send(body.to_string()).unwrap().status().is_success());
    }

    fn run(&self, name: &str, text: &str) {
        let mut command = self.mount.quipu(&["-s", "notes", "put", &format!("/{name}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

impl Drop for Doors<'_> {
    fn drop(&mut self) {
        self.server.kill().unwrap_or_default();
        self.server.wait().unwrap();
        for root in [&self.second, &self.read_only] {
            let root = root.to_str().unwrap();
            let mut unmount = self.mount.quipu(&["unmount", "--root", root]);
            unmount.stdout(Stdio::null()).status().unwrap();
        }
    }
}

fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("tmp");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

#[test]
fn an_open_after_a_change_reads_it() {
    if !can_mount() {
        return;
    }
    let tries_count = setting("QUIPU_MOUNT_OPENS", 300);
    let mount = Mount::new("notes");
    let doors = Doors::open(&mount);
    let mut numbers = Numbers(11);
    let mut stale = Vec::new();
    for number in 0..tries_count {
        let name = format!("{}.md", numbers.below(12));
        let text = format!("{number} ").repeat(1 + numbers.below(40));
        let is_rare = numbers.below(10) == 0;
        let (door, reader) = match numbers.below(6) {
            0 => ("mount", fs::write(mount.at(&name), &text).map(|()| doors.at_second(&name))),
            1 => {
                ("other mount", fs::write(doors.at_second(&name), &text).map(|()| mount.at(&name)))
            }
            2 => {
                replace(&doors.at_second(&name), &text);
                ("renaming", Ok(mount.at(&name)))
            }
            3 if is_rare => {
                doors.run(&name, &text);
                ("command line", Ok(mount.at(&name)))
            }
            4 => {
                doors.post(&name, &text);
                ("REST", Ok(mount.at(&name)))
            }
            _ => {
                doors.put(&name, &text);
                ("engine", Ok(mount.at(&name)))
            }
        };
        for reader in [reader.unwrap(), doors.at_read_only(&name)] {
            if fs::read_to_string(reader).unwrap_or_default() != text {
                stale.push((number, door));
            }
        }
        if numbers.below(8) == 0 {
            fs::remove_file(doors.at_second(&name)).unwrap();
            for reader in [mount.at(&name), doors.at_read_only(&name)] {
                if fs::read(reader).is_ok() {
                    stale.push((number, "removing"));
                }
            }
        }
    }
    assert!(stale.is_empty(), "{} of {tries_count} were stale: {stale:?}", stale.len());
    eprintln!("{tries_count} changes, each read by the next open of two mounts");
}

#[test]
fn alternating_updates_through_two_mounts_are_not_lost() {
    if !can_mount() {
        return;
    }
    let rounds_count = setting("QUIPU_MOUNT_OPENS", 300);
    let mount = Mount::new("notes");
    let doors = Doors::open(&mount);
    fs::write(mount.at("count.md"), "0").unwrap();
    for round in 0..rounds_count {
        let place = if round % 2 == 0 { doors.at_second("count.md") } else { mount.at("count.md") };
        let count: usize = fs::read_to_string(&place).unwrap().parse().unwrap();
        replace(&place, &(count + 1).to_string());
    }
    let count: usize = fs::read_to_string(mount.at("count.md")).unwrap().parse().unwrap();
    assert_eq!(count, rounds_count, "updates were lost");
    eprintln!("{rounds_count} alternating updates through two mounts, none lost");
}

#[test]
fn opens_of_an_archived_store_need_no_message() {
    if !can_mount() {
        return;
    }
    let mut mount = Mount::unmounted(Limits::default());
    let ada = Actor::User(PrincipalName::from_host("ada"));
    for name in ["/kept.md", "/deleted.md"] {
        let target = (&MemoryPath::parse(name).unwrap(), &Content::new(name).unwrap());
        mount.engine.put(&ada, mount.store, target, Precondition::None).unwrap();
    }
    // A store that is archived already cannot be attached to a new session.
    let attachment = NewAttachment {
        store: mount.store,
        access: Access::ReadWrite,
        instructions: Instructions::default(),
    };
    let new = NewSession::titled("before", vec![attachment], SessionToken::None);
    let workspace = mount.engine.default_workspace().unwrap().id;
    let session = mount.engine.create_session(workspace, &new).unwrap().0.id;
    mount.engine.archive_store(mount.store).unwrap();
    mount.start_with(&["--session", &session.to_string()]);
    for name in ["kept.md", "deleted.md"] {
        assert_eq!(fs::read_to_string(mount.at(name)).unwrap(), format!("/{name}"));
    }
    mount.signal(Signal::STOP);
    let mut reader = Command::new("timeout");
    let read = reader.args(["10", "cat"]).arg(mount.at("kept.md")).output().unwrap();
    mount.signal(Signal::CONT);
    assert_eq!(
        String::from_utf8(read.stdout).unwrap(),
        "/kept.md",
        "an open was sent to the mount"
    );

    let deleted = MemoryPath::parse("/deleted.md").unwrap();
    mount.engine.delete_at(&ada, mount.store, &deleted).unwrap();
    eventually("a deletion shows", || fs::read(mount.at("deleted.md")).is_err());
    assert_eq!(fs::read_to_string(mount.at("kept.md")).unwrap(), "/kept.md");
    let refused = fs::write(mount.at("kept.md"), "changed").unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::ROFS));
}
