//! Writers at several doors: the history holds what each of them did, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;

use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, MemoryId, MemoryPath, Operation, PrincipalName, Version};
use serde_json::{Value, json};

use crate::support::{Mount, Numbers, can_mount, eventually, setting, try_tree};

const NAMES: [&str; 8] = ["/a", "/b.md", "/c", "/d/e", "/d/f.md", "/d/g/h", "/i/j", "/k"];

/// A running memory tool.
struct Tool {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Tool {
    fn start(mount: &Mount) -> Self {
        let mut command = mount.quipu(&["--store", "notes", "tool", "--title", "tool"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    /// Runs a command and tells whether it succeeded.
    fn run(&mut self, command: &Value) -> bool {
        writeln!(self.input, "{command}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answer["is_error"] == json!(false)
    }

    /// Creates a file or, if there is one, replaces its text.
    fn write(&mut self, path: &str, old: Option<&String>, text: &str) -> bool {
        let path = format!("/memories{path}");
        self.run(&match old {
            None => json!({"command": "create", "path": path, "file_text": text}),
            Some(old) => {
                json!({"command": "str_replace", "path": path, "old_str": old, "new_str": text})
            }
        })
    }

    fn delete(&mut self, path: &str) -> bool {
        self.run(&json!({"command": "delete", "path": format!("/memories{path}")}))
    }

    fn rename(&mut self, from: &str, to: &str) -> bool {
        let (from, to) = (format!("/memories{from}"), format!("/memories{to}"));
        self.run(&json!({"command": "rename", "old_path": from, "new_path": to}))
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).unwrap()
}

fn ada() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

/// Does to a tree what the versions say, the oldest first.
fn replayed(versions: &[Version]) -> BTreeMap<String, String> {
    let mut live: BTreeMap<MemoryId, (String, String)> = BTreeMap::new();
    for version in versions {
        let is_there = live.contains_key(&version.memory);
        match version.operation {
            Operation::Created => assert!(!is_there, "{version:?} was there already"),
            Operation::Modified | Operation::Deleted => {
                assert!(is_there, "{version:?} was not there");
            }
        }
        match &version.content {
            Some(content) => {
                let path = version.path.as_ref().unwrap().to_string();
                live.insert(version.memory, (path, content.as_str().to_owned()));
            }
            None => drop(live.remove(&version.memory)),
        }
    }
    live.into_values().collect()
}

/// Tells whether the mount shows these files; it may just be taking something away.
fn shows(mount: &Mount, files: &BTreeMap<String, String>) -> bool {
    let shown = try_tree(&mount.at("")).unwrap_or_default();
    let shown = shown.into_iter().filter_map(|(path, text)| Some((path, text?)));
    shown.collect::<BTreeMap<_, _>>() == *files
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Mount,
    Tool,
    Engine,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Write,
    Delete,
    Rename(&'static str),
}

/// Does something through one door and tells whether it succeeded.
fn act(mount: &Mount, tool: &mut Tool, door: Door, act: (Action, &str, &str)) -> bool {
    let (deed, at, text) = act;
    match (door, deed) {
        (Door::Mount, Action::Write) => {
            let file = mount.at(at);
            fs::create_dir_all(file.parent().unwrap()).is_ok() && fs::write(file, text).is_ok()
        }
        (Door::Mount, Action::Delete) => fs::remove_file(mount.at(at)).is_ok(),
        (Door::Mount, Action::Rename(to)) => {
            let to = mount.at(to);
            fs::create_dir_all(to.parent().unwrap()).is_ok() && fs::rename(mount.at(at), to).is_ok()
        }
        (Door::Tool, Action::Write) => tool.write(at, mount.stored().get(at), text),
        (Door::Tool, Action::Delete) => tool.delete(at),
        (Door::Tool, Action::Rename(to)) => tool.rename(at, to),
        (Door::Engine, Action::Write) => {
            let target = (&path(at), &Content::new(text).unwrap());
            mount.engine.put(&ada(), mount.store, target, Precondition::None).is_ok()
        }
        (Door::Engine, Action::Delete) => {
            mount.engine.delete_at(&ada(), mount.store, &path(at)).is_ok()
        }
        (Door::Engine, Action::Rename(to)) => {
            mount.engine.rename(&ada(), mount.store, &path(at), &path(to)).is_ok()
        }
    }
}

#[test]
fn the_history_holds_what_each_door_did_in_order() {
    if !can_mount() {
        return;
    }
    let steps_count = setting("QUIPU_MOUNT_DOORS", 500);
    let mount = Mount::new("notes");
    let mut tool = Tool::start(&mount);
    let mut numbers = Numbers(11);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut expected: Vec<(Operation, String, Door)> = Vec::new();
    for step in 0..steps_count {
        let door = *numbers.pick(&[Door::Mount, Door::Tool, Door::Engine]);
        let (at, to) = (*numbers.pick(&NAMES), *numbers.pick(&NAMES));
        let is_there = files.contains_key(at);
        let text = match numbers.below(4) {
            // The same text again is no change.
            0 if is_there => files[at].clone(),
            _ => format!("step {step}\n"),
        };
        let deed = match numbers.below(5) {
            0 if is_there => Action::Delete,
            1 if is_there && !files.contains_key(to) => Action::Rename(to),
            _ => Action::Write,
        };
        assert!(act(&mount, &mut tool, door, (deed, at, &text)), "step {step}: {door:?} {deed:?}");
        match deed {
            Action::Write => {
                let operation = if is_there { Operation::Modified } else { Operation::Created };
                if files.insert(at.to_owned(), text.clone()) != Some(text) {
                    expected.push((operation, at.to_owned(), door));
                }
            }
            Action::Delete => {
                files.remove(at);
                expected.push((Operation::Deleted, at.to_owned(), door));
            }
            Action::Rename(to) => {
                let text = files.remove(at).unwrap();
                files.insert(to.to_owned(), text);
                expected.push((Operation::Modified, to.to_owned(), door));
            }
        }
        assert_eq!(mount.stored(), files, "step {step}: {door:?} {deed:?} {at}");
        eventually("the mount shows it", || shows(&mount, &files));
    }
    let versions = mount.versions();
    let door_of = |actor: &Actor| match actor {
        Actor::Session(id) => match mount.engine.session(*id).unwrap().title.as_str() {
            "tool" => Door::Tool,
            _ => Door::Mount,
        },
        Actor::ApiKey(_) | Actor::User(_) | Actor::ServiceAccount(_) => Door::Engine,
    };
    let line = |version: &Version| {
        let path = version.path.as_ref().unwrap().to_string();
        (version.operation, path, door_of(&version.actor))
    };
    assert_eq!(versions.iter().map(line).collect::<Vec<_>>(), expected);
    assert_eq!(replayed(&versions), files);
    eprintln!("{steps_count} steps at three doors, {} versions, each as expected", versions.len());
}

#[test]
fn the_history_of_writers_at_the_same_time_leads_to_what_is_there() {
    if !can_mount() {
        return;
    }
    let steps_count = setting("QUIPU_MOUNT_DOORS", 500);
    let mount = Mount::new("notes");
    thread::scope(|scope| {
        for (number, door) in [(1, Door::Mount), (2, Door::Tool), (3, Door::Engine)] {
            let mount = &mount;
            scope.spawn(move || {
                let mut tool = Tool::start(mount);
                let mut numbers = Numbers(number);
                for step in 0..steps_count {
                    let (at, to) = (*numbers.pick(&NAMES), *numbers.pick(&NAMES));
                    let deed = match numbers.below(6) {
                        0 => Action::Delete,
                        1 => Action::Rename(to),
                        _ => Action::Write,
                    };
                    // What another door has just changed may be refused.
                    act(mount, &mut tool, door, (deed, at, &format!("{door:?} {step}\n")));
                }
            });
        }
    });
    let stored = mount.stored();
    eventually("the mount shows what is stored", || shows(&mount, &stored));
    let versions = mount.versions();
    assert_eq!(replayed(&versions), stored);
    let problems = mount.engine.check().unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
    eprintln!("{} versions by three doors at the same time, replayed", versions.len());
}
