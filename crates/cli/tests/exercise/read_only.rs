//! Every way to change a file, tried by the superuser on a read-only mount.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::process::Command;

use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, MemoryPath, PrincipalName};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Gid, IFlags, Mode, OFlags, RenameFlags, Timespec,
    Timestamps, Uid, XattrFlags, chmodat, chownat, copy_file_range, fallocate, fchmod, ftruncate,
    ioctl_ficlone, ioctl_setflags, linkat, mkdirat, mknodat, openat, removexattr, renameat_with,
    rmdir, setxattr, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_remount};

use crate::support::{Mount, Numbers, can_mount_with_python, setting};

const NAMES: [&str; 8] = ["a.md", "b.md", "d", "d/c.md", "d/e/f.md", "new", "d/new.md", "x.tmp"];

/// Cuts every file by its name, maps it and writes to the mapping, as often as it is told; prints
/// how often it tried.
const MAPPER: &str = r#"
import mmap, os, sys
root, count = sys.argv[1], int(sys.argv[2])
tried = 0
for number in range(count):
    name = ["a.md", "b.md", "d/c.md", "d/e/f.md"][number % 4]
    for flags in (os.O_RDWR, os.O_RDONLY):
        tried += 2
        try:
            os.truncate(f"{root}/{name}", 1)
        except OSError:
            pass
        try:
            descriptor = os.open(f"{root}/{name}", flags)
        except OSError:
            continue
        try:
            with mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as m:
                m[0:1] = b"!"
                m.flush()
        except (OSError, ValueError):
            pass
        finally:
            try:
                os.close(descriptor)
            except OSError:
                pass
print(tried)
"#;

struct Attacker<'a> {
    mount: &'a Mount,
    numbers: Numbers,
    /// How often a call was answered with success.
    succeeded_count: usize,
}

impl Attacker<'_> {
    fn path(&mut self) -> PathBuf {
        let name = *self.numbers.pick(&NAMES);
        self.mount.at(name)
    }

    fn open(&mut self) -> Result<File, Errno> {
        let path = self.path();
        let flags = [
            OFlags::WRONLY,
            OFlags::RDWR,
            OFlags::WRONLY | OFlags::TRUNC,
            OFlags::RDWR | OFlags::APPEND,
            OFlags::WRONLY | OFlags::CREATE,
            OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
            OFlags::RDONLY | OFlags::TRUNC,
            OFlags::RDONLY | OFlags::CREATE,
            OFlags::RDONLY,
        ];
        let flags = *self.numbers.pick(&flags);
        openat(CWD, path, flags, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    /// Tries one call, and what follows if it succeeds.
    fn attack(&mut self) {
        let result = match self.numbers.below(22) {
            0..=3 => self.open().map(|file| {
                // Whatever could be opened is written to in every way.
                drop(file.write_all_at(b"changed", 0));
                ftruncate(&file, 1).unwrap_or_default();
                drop(file.sync_all());
            }),
            4 => self.open().and_then(|file| ftruncate(&file, 3)),
            5 => {
                let (from, to) = (self.path(), self.path());
                let flags = [RenameFlags::empty(), RenameFlags::NOREPLACE, RenameFlags::EXCHANGE];
                renameat_with(CWD, from, CWD, to, *self.numbers.pick(&flags))
            }
            6 => linkat(CWD, self.path(), CWD, self.path(), AtFlags::empty()),
            7 => symlinkat("/etc/passwd", CWD, self.path()),
            8 => unlinkat(CWD, self.path(), AtFlags::empty()),
            9 => mkdirat(CWD, self.path(), Mode::RWXU),
            10 => rmdir(self.path()),
            11 => chmodat(CWD, self.path(), Mode::RWXO, AtFlags::empty()),
            12 => chownat(CWD, self.path(), Some(Uid::ROOT), Some(Gid::ROOT), AtFlags::empty()),
            13 => utimensat(CWD, self.path(), &times(), AtFlags::empty()),
            14 => setxattr(self.path(), c"user.x", b"y", XattrFlags::empty()),
            15 => removexattr(self.path(), c"user.x"),
            16 => self.open().and_then(|file| fallocate(&file, FallocateFlags::empty(), 0, 9)),
            17 => self.nameless(),
            18 => {
                let kinds = [FileType::RegularFile, FileType::Fifo, FileType::CharacterDevice];
                let kind = *self.numbers.pick(&kinds);
                mknodat(CWD, self.path(), kind, Mode::RWXU, 0)
            }
            19 => self.copy(),
            20 => self.open().and_then(|file| ioctl_setflags(&file, IFlags::APPEND)),
            _ => self.open().and_then(|file| fchmod(&file, Mode::RWXU)),
        };
        self.succeeded_count += usize::from(result.is_ok());
    }

    fn nameless(&mut self) -> Result<(), Errno> {
        let name = *self.numbers.pick(&["", "d", "d/e"]);
        let directory = self.mount.at(name);
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags(i32::try_from(OFlags::TMPFILE.bits()).unwrap())
            .open(directory);
        let file = opened.map_err(|error| Errno::from_io_error(&error).unwrap())?;
        let name: &CStr = c"";
        linkat(&file, name, CWD, self.path(), AtFlags::EMPTY_PATH)
    }

    fn copy(&mut self) -> Result<(), Errno> {
        let source = File::open(self.mount.at("a.md")).unwrap();
        let target = self.open()?;
        ioctl_ficlone(&target, &source).unwrap_or_default();
        copy_file_range(&source, None, &target, None, 100).map(drop)
    }
}

fn times() -> Timestamps {
    let moment = Timespec { tv_sec: 1, tv_nsec: 0 };
    Timestamps { last_access: moment, last_modification: moment }
}

#[test]
fn nothing_changes_a_read_only_store() {
    if !can_mount_with_python() {
        return;
    }
    let calls_count = setting("QUIPU_MOUNT_CALLS", 20_000);
    let mount = Mount::new("notes:ro");
    let ada = Actor::User(PrincipalName::from_host("ada"));
    for name in ["/a.md", "/b.md", "/d/c.md", "/d/e/f.md"] {
        let target =
            (&MemoryPath::parse(name).unwrap(), &Content::new(format!("of {name}")).unwrap());
        mount.engine.put(&ada, mount.store, target, Precondition::None).unwrap();
    }
    let before = (mount.versions(), mount.stored(), mount.shown());
    let mut attacker = Attacker { mount: &mount, numbers: Numbers(3), succeeded_count: 0 };
    let mut mapped_count = 0;
    for is_remounted in [false, true] {
        if is_remounted {
            // The superuser may tell the kernel that it is writable; Quipu knows better.
            mount_remount(mount.at(""), MountFlags::empty(), c"").unwrap();
        }
        for _ in 0..calls_count / 2 {
            attacker.attack();
        }
        let python = Command::new("python3")
            .args(["-c", MAPPER])
            .arg(mount.at(""))
            .arg((calls_count / 100).to_string())
            .output()
            .unwrap();
        assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
        mapped_count += String::from_utf8_lossy(&python.stdout).trim().parse::<usize>().unwrap();
        assert_eq!(mount.versions(), before.0);
    }
    let succeeded_count = attacker.succeeded_count;
    assert_eq!((mount.versions(), mount.stored()), (before.0, before.1));
    assert_eq!(mount.shown(), before.2);
    eprintln!(
        "{calls_count} mutating calls and {mapped_count} cuts and mappings on a read-only mount: \
         nothing changed ({succeeded_count} were answered with success and had no effect)"
    );
}
