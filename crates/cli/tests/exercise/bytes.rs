//! Reads and writes at random places of one file, as `fsx` does, with data that stays text.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::process::Command;

use quipu_core::model::Content;

use crate::support::{Mount, Numbers, can_mount, can_mount_with_python, eventually, setting};

const SIZE_MAX: usize = 100_000;

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap()
}

struct Exerciser {
    mount: Mount,
    numbers: Numbers,
    handles: Vec<File>,
    /// What the file must hold.
    text: Vec<u8>,
    closes_count: usize,
}

impl Exerciser {
    fn open(&self) -> File {
        File::options().read(true).write(true).open(self.mount.at("file")).unwrap()
    }

    fn handle(&mut self) -> &File {
        let index = self.numbers.below(self.handles.len());
        &self.handles[index]
    }

    fn data(&mut self, length: usize) -> Vec<u8> {
        let first = self.numbers.below(26);
        let letter = |index: usize| b'a' + u8::try_from((first + index) % 26).unwrap();
        (0..length).map(letter).collect()
    }

    fn step(&mut self) {
        match self.numbers.below(20) {
            0..=6 => self.write(),
            7..=12 => self.read(),
            13 | 14 => self.truncate(),
            15 => {
                let length = self.text.len();
                assert_eq!(self.handle().metadata().unwrap().len(), size(length));
            }
            16 => self.handle().sync_all().unwrap(),
            17 => {
                // Another handle, or one less.
                if self.handles.len() < 4 {
                    self.handles.push(self.open());
                } else {
                    self.close_one();
                }
            }
            18 => self.close_one(),
            _ => self.close_all(),
        }
    }

    fn write(&mut self) {
        let offset = self.numbers.below(self.text.len() + 1);
        let length = self.numbers.below(9_000).min(SIZE_MAX - offset);
        let data = self.data(length);
        self.handle().write_all_at(&data, size(offset)).unwrap();
        let end = offset + length;
        self.text.resize(self.text.len().max(end), 0);
        self.text[offset..end].copy_from_slice(&data);
    }

    fn read(&mut self) {
        let offset = self.numbers.below(self.text.len() + 1);
        let length = self.numbers.below(20_000).min(self.text.len() - offset);
        let mut data = vec![0; length];
        self.handle().read_exact_at(&mut data, size(offset)).unwrap();
        assert_eq!(data, self.text[offset..offset + length], "{length} bytes at {offset}");
    }

    fn truncate(&mut self) {
        let length = self.numbers.below(self.text.len() + 1);
        self.handle().set_len(size(length)).unwrap();
        self.text.truncate(length);
        if self.numbers.below(3) == 0 {
            // Longer again: what lies between is NUL until it is written.
            let longer = (length + self.numbers.below(5_000)).min(SIZE_MAX);
            self.handle().set_len(size(longer)).unwrap();
            let mut gap = vec![1; longer - length];
            self.handle().read_exact_at(&mut gap, size(length)).unwrap();
            assert!(gap.iter().all(|byte| *byte == 0));
            let data = self.data(longer - length);
            self.handle().write_all_at(&data, size(length)).unwrap();
            self.text.extend(data);
        }
    }

    fn close_one(&mut self) {
        let index = self.numbers.below(self.handles.len());
        drop(self.handles.swap_remove(index));
        self.closes_count += 1;
        self.check_stored();
        if self.handles.is_empty() {
            self.handles.push(self.open());
        }
    }

    fn close_all(&mut self) {
        self.closes_count += self.handles.len();
        self.handles.clear();
        self.check_stored();
        assert_eq!(fs::read(self.mount.at("file")).unwrap(), self.text);
        self.handles.push(self.open());
    }

    /// After a close that may write, the store holds what was written by any handle.
    fn check_stored(&self) {
        let stored = self.mount.stored();
        let stored = stored.get("/file").map_or(&b""[..], String::as_bytes);
        assert!(stored == self.text, "{} bytes instead of {}", stored.len(), self.text.len());
    }
}

#[test]
fn random_reads_and_writes_see_what_was_written() {
    if !can_mount() {
        return;
    }
    let steps_count = setting("QUIPU_MOUNT_STEPS", 2_000);
    let mount = Mount::new("notes");
    fs::write(mount.at("file"), "").unwrap();
    let numbers = Numbers(u64::try_from(setting("QUIPU_MOUNT_SEED", 1)).unwrap());
    let mut exerciser =
        Exerciser { mount, numbers, handles: Vec::new(), text: Vec::new(), closes_count: 0 };
    exerciser.handles.push(exerciser.open());
    for _ in 0..steps_count {
        exerciser.step();
    }
    exerciser.close_all();
    let versions_count = exerciser.mount.versions().len();
    eprintln!("{steps_count} steps, {} closes, {versions_count} versions", exerciser.closes_count);
}

/// Reads and writes a file through mappings and calls in turn, checks every read, and prints the
/// SHA-256 of what the file must hold in the end. Rust has no safe way to write to a mapping.
const MAPPER: &str = r#"
import hashlib, mmap, os, random, sys
path, steps = sys.argv[1], int(sys.argv[2])
random.seed(5)
text = bytearray(b"begin")
with open(path, "wb") as file:
    file.write(text)
descriptor = os.open(path, os.O_RDWR)
def data(length):
    return bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz\n", k=length))
for step in range(steps):
    start = random.randrange(len(text) + 1)
    length = min(random.randrange(5000), 90000 - start)
    inside = min(length, len(text) - start)
    action = random.randrange(8)
    if action < 2 and length > 0:
        new = data(length)
        assert os.pwrite(descriptor, new, start) == length
        text[start:start + length] = new
    elif action < 4 and len(text) > 0:
        with mmap.mmap(descriptor, len(text), mmap.MAP_SHARED) as mapping:
            mapping[start:start + inside] = new = data(inside)
            text[start:start + inside] = new
            if action == 3:
                mapping.flush()
            assert os.pread(descriptor, 100000, 0) == text, step
    elif action == 4 and len(text) > 0:
        with mmap.mmap(descriptor, len(text), mmap.MAP_SHARED, mmap.PROT_READ) as mapping:
            assert mapping[:] == text, step
    elif action == 5:
        keep = random.randrange(len(text) // 2, len(text) + 1)
        os.ftruncate(descriptor, keep)
        del text[keep:]
    elif action == 6:
        os.fsync(descriptor)
    else:
        os.close(descriptor)
        with open(path, "rb") as file:
            assert file.read() == text, step
        descriptor = os.open(path, os.O_RDWR)
os.close(descriptor)
print(hashlib.sha256(text).hexdigest())
"#;

#[test]
fn random_mappings_see_what_was_written_and_are_stored() {
    if !can_mount_with_python() {
        return;
    }
    let steps_count = setting("QUIPU_MOUNT_STEPS", 2_000);
    let mount = Mount::new("notes");
    let python = Command::new("python3")
        .args(["-c", MAPPER])
        .arg(mount.at("file"))
        .arg(steps_count.to_string())
        .output()
        .unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let expected = String::from_utf8(python.stdout).unwrap();
    eventually("everything is stored", || {
        let hash = Content::new(mount.stored()["/file"].as_str()).unwrap().hash();
        hash.to_string() == expected.trim()
    });
    eprintln!("{steps_count} steps with mappings");
}
