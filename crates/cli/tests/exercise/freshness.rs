//! Whoever opens a file after a change was acknowledged reads that change, whichever door made it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, MemoryPath, PrincipalName, View};
use serde_json::json;

use crate::support::{Mount, Numbers, can_mount, setting};

const KEY: &str = "a key that was chosen for tests";

/// A second mount of the same store, and a server.
struct Doors<'m> {
    mount: &'m Mount,
    second: PathBuf,
    server: Child,
    url: String,
    agent: ureq::Agent,
}

impl<'m> Doors<'m> {
    fn open(mount: &'m Mount) -> Self {
        let second = mount.home.path().join("second");
        let root = second.to_str().unwrap();
        let mut command = mount.quipu(&["mount", "--store", "notes", "--root", root, "--detach"]);
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
        let mut command = mount.quipu(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("QUIPU_ADMIN_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        Self { mount, second, server, url: url.unwrap(), agent: ureq::Agent::new_with_defaults() }
    }

    fn at_second(&self, name: &str) -> PathBuf {
        self.second.join("notes").join(name)
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
        let root = self.second.to_str().unwrap();
        let mut unmount = self.mount.quipu(&["unmount", "--root", root]);
        unmount.stdout(Stdio::null()).status().unwrap();
    }
}

fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("tmp");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

#[test]
fn whoever_opens_a_file_after_a_change_reads_it() {
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
        let read = fs::read_to_string(reader.unwrap()).unwrap_or_default();
        if read != text {
            stale.push((number, door));
        }
        if numbers.below(8) == 0 {
            fs::remove_file(doors.at_second(&name)).unwrap();
            if fs::read(mount.at(&name)).is_ok() {
                stale.push((number, "removing"));
            }
        }
    }
    assert!(stale.is_empty(), "{} of {tries_count} were stale: {stale:?}", stale.len());
    eprintln!("{tries_count} changes were read at once by whoever opened the file after them");
}

#[test]
fn no_update_is_lost_between_two_mounts_that_take_turns() {
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
    eprintln!("{rounds_count} updates by turns at two mounts, none lost");
}
