//! Reads and writes at random places of one file, as `fsx` does, with data that stays text.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use crate::support::{Mount, Numbers, can_mount, setting};

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
