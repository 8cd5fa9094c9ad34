//! The same file operations on a mount and on an ordinary file system, compared after each step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::support::{Mount, Numbers, can_mount, setting, tree};

const NAMES: [&str; 12] =
    ["a", "b.md", "c", "d", "d/e", "d/f.md", "d/g", "d/g/h", "i/j", "i/k/l.md", "i", "m n"];

#[derive(Debug)]
enum Operation {
    Write(&'static str, String),
    CreateNew(&'static str, String),
    Append(&'static str, String),
    Patch(&'static str, usize, String),
    Truncate(&'static str, usize),
    MakeDirectory(&'static str),
    MakeDirectories(&'static str),
    RemoveFile(&'static str),
    RemoveDirectory(&'static str),
    RemoveTree(&'static str),
    Rename(&'static str, &'static str),
    Copy(&'static str, &'static str),
    WriteRemoved(&'static str, String),
    RenameOpen(&'static str, &'static str, String),
    /// Something with a handle that stays open over many steps.
    Handle(usize, HandleOperation),
}

#[derive(Debug)]
enum HandleOperation {
    Open(&'static str),
    Append(String),
    Cut,
    Read,
    Sync,
    Close,
}

const HANDLES_COUNT: usize = 3;

/// A directory and the files in it that are open.
struct World {
    root: PathBuf,
    handles: [Option<File>; HANDLES_COUNT],
    /// What was read last.
    read: Vec<u8>,
}

fn operation(numbers: &mut Numbers, step: usize) -> Operation {
    let name = *numbers.pick(&NAMES);
    let other = *numbers.pick(&NAMES);
    let length = numbers.below(4) * numbers.below(200);
    let text = format!("{step} {}", "grüße ".repeat(length));
    let handle = numbers.below(HANDLES_COUNT);
    match numbers.below(26) {
        0..=2 => Operation::Write(name, text),
        3 => Operation::CreateNew(name, text),
        4 | 5 => Operation::Append(name, text),
        6 => Operation::Patch(name, numbers.below(10), format!("{step}")),
        7 => Operation::Truncate(name, numbers.below(30)),
        8 => Operation::MakeDirectory(name),
        9 => Operation::MakeDirectories(name),
        10 => Operation::RemoveFile(name),
        11 => Operation::RemoveDirectory(name),
        12 => Operation::RemoveTree(name),
        13..=15 => Operation::Rename(name, other),
        16 if numbers.below(2) == 0 => Operation::WriteRemoved(name, text),
        16 => Operation::RenameOpen(name, other, text),
        17 => Operation::Copy(name, other),
        number => Operation::Handle(
            handle,
            match number {
                18 | 19 => HandleOperation::Open(name),
                20 | 21 => HandleOperation::Append(text),
                22 => HandleOperation::Cut,
                23 => HandleOperation::Read,
                24 => HandleOperation::Sync,
                _ => HandleOperation::Close,
            },
        ),
    }
}

/// Does the operation below a directory and returns the number of the error, if there is one.
fn apply(world: &mut World, operation: &Operation) -> Result<(), i32> {
    let root = world.root.clone();
    let at = |name: &str| root.join(name);
    let result = match operation {
        Operation::Write(name, text) => fs::write(at(name), text),
        Operation::CreateNew(name, text) => {
            let file = OpenOptions::new().write(true).create_new(true).open(at(name));
            file.and_then(|mut file| file.write_all(text.as_bytes()))
        }
        Operation::Append(name, text) => {
            let file = OpenOptions::new().append(true).open(at(name));
            file.and_then(|mut file| file.write_all(text.as_bytes()))
        }
        Operation::Patch(name, offset, text) => patch(&at(name), *offset, text),
        Operation::Truncate(name, length) => truncate(&at(name), *length),
        Operation::MakeDirectory(name) => fs::create_dir(at(name)),
        Operation::MakeDirectories(name) => fs::create_dir_all(at(name)),
        Operation::RemoveFile(name) => fs::remove_file(at(name)),
        Operation::RemoveDirectory(name) => fs::remove_dir(at(name)),
        Operation::RemoveTree(name) => fs::remove_dir_all(at(name)),
        Operation::Rename(from, to) => fs::rename(at(from), at(to)),
        Operation::Copy(from, to) => match fs::read(at(from)) {
            // Writing a file over itself empties it first.
            Ok(text) => fs::write(at(to), text),
            Err(error) => Err(error),
        },
        Operation::WriteRemoved(name, text) => File::options()
            .write(true)
            .open(at(name))
            .and_then(|file| fs::remove_file(at(name)).map(|()| file))
            .and_then(|mut file| file.write_all(text.as_bytes())),
        Operation::RenameOpen(from, to, text) => File::options()
            .append(true)
            .open(at(from))
            .and_then(|file| fs::rename(at(from), at(to)).map(|()| file))
            .and_then(|mut file| file.write_all(text.as_bytes())),
        Operation::Handle(handle, operation) => apply_to_handle(world, *handle, operation),
    };
    result.map_err(|error: io::Error| error.raw_os_error().unwrap_or(-1))
}

/// Does the operation to an open file; if it is not open, there is nothing to do.
fn apply_to_handle(
    world: &mut World,
    handle: usize,
    operation: &HandleOperation,
) -> io::Result<()> {
    let slot = &mut world.handles[handle];
    match (operation, slot) {
        (HandleOperation::Open(name), slot) => {
            *slot = None;
            *slot = Some(File::options().read(true).append(true).open(world.root.join(name))?);
        }
        (HandleOperation::Close, slot) => *slot = None,
        (_, None) => {}
        (HandleOperation::Append(text), Some(file)) => file.write_all(text.as_bytes())?,
        (HandleOperation::Cut, Some(file)) => file.set_len(0)?,
        (HandleOperation::Sync, Some(file)) => file.sync_all()?,
        (HandleOperation::Read, Some(file)) => {
            world.read.clear();
            file.seek(SeekFrom::Start(0))?;
            file.read_to_end(&mut world.read)?;
        }
    }
    Ok(())
}

/// Writes over a part of a file, between characters and not behind the end.
fn patch(file: &Path, offset: usize, text: &str) -> io::Result<()> {
    let old = fs::read(file)?;
    let is_safe = old.is_ascii() && offset <= old.len();
    let mut file = OpenOptions::new().write(true).open(file)?;
    if is_safe {
        file.seek(SeekFrom::Start(u64::try_from(offset).unwrap()))?;
        file.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Cuts a file between characters, never making it longer.
fn truncate(file: &Path, length: usize) -> io::Result<()> {
    let old = fs::read(file)?;
    let is_safe = length <= old.len() && str::from_utf8(&old[..length.min(old.len())]).is_ok();
    let file = OpenOptions::new().write(true).open(file)?;
    if is_safe { file.set_len(u64::try_from(length).unwrap()) } else { Ok(()) }
}

#[test]
fn a_mount_behaves_like_an_ordinary_file_system() {
    if !can_mount() {
        return;
    }
    let steps_count = setting("QUIPU_MOUNT_STEPS", 2_000);
    let mut mount = Mount::new("notes");
    let ordinary = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(u64::try_from(setting("QUIPU_MOUNT_SEED", 1)).unwrap());
    let world = |root: &Path| World {
        root: root.to_owned(),
        handles: std::array::from_fn(|_| None),
        read: Vec::new(),
    };
    let (mut ours, mut theirs) = (world(&mount.at("")), world(ordinary.path()));
    let mut succeeded_count = 0;
    for step in 0..steps_count {
        let operation = operation(&mut numbers, step);
        let expected = apply(&mut theirs, &operation);
        let done = apply(&mut ours, &operation);
        assert_eq!(done, expected, "step {step}: {operation:?}");
        assert_eq!(mount.shown(), tree(ordinary.path()), "step {step}: {operation:?}");
        assert_eq!(ours.read, theirs.read, "step {step}: {operation:?}");
        succeeded_count += usize::from(done.is_ok());
    }
    drop((ours, theirs));
    let mut files = tree(ordinary.path());
    files.retain(|_, text| text.is_some());
    mount.stop();
    mount.start("notes");
    let mut shown = mount.shown();
    shown.retain(|_, text| text.is_some());
    assert_eq!(shown, files, "after a new mount");
    eprintln!("{steps_count} operations, of which {succeeded_count} succeeded, compared");
}
