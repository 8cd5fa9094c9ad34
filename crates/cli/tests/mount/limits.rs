//! What is refused, and how.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, XattrFlags, fallocate, linkat, mknodat,
    open, setxattr,
};
use rustix::io::Errno;

use crate::support::{Mount, can_mount, errno, eventually, home, mounted, needs, run};

/// Closes a file and returns what the close says, which a `File` keeps to itself.
fn close(file: File) -> Result<(), Errno> {
    // The descriptor that is dropped last is not the one that reports.
    let twin = rustix::io::dup(&file).unwrap();
    drop(file);
    rustix::fs::fsync(&twin)
}

#[test]
fn a_text_that_is_too_long_is_refused_at_the_write() {
    let mount = mounted!();
    fs::write(mount.at("most.md"), vec![b'a'; 102_400]).unwrap();
    assert_eq!(mount.stored("most.md").len(), 102_400);
    assert_eq!(errno(fs::write(mount.at("more.md"), vec![b'a'; 102_401])), Errno::FBIG);
    let mut file = OpenOptions::new().append(true).open(mount.at("most.md")).unwrap();
    assert_eq!(errno(file.write_all(b"b")), Errno::FBIG);
    drop(file);
    assert_eq!(errno(File::open(mount.at("more.md"))), Errno::NOENT);
    assert_eq!(mount.stored("most.md").len(), 102_400);
    assert_eq!(mount.history(), ["created /most.md"]);
}

#[test]
fn a_text_that_is_not_utf_8_is_refused_at_the_close() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    for bytes in [&b"\xff\xfe"[..], b"nul \0 inside", b"cut \xc3"] {
        let mut file = File::create(mount.at("tea.md")).unwrap();
        file.write_all(bytes).unwrap();
        assert_eq!(close(file), Err(Errno::ILSEQ));
        eventually("the stored text is back", || mount.read("tea.md") == "green");
    }
    let closed = mount.python(
        "import os\n\
         fd = os.open('tea.md', os.O_WRONLY)\n\
         os.write(fd, b'\\xff')\n\
         try: os.close(fd)\n\
         except OSError as error: print(error.errno)",
    );
    assert_eq!(closed.trim(), Errno::ILSEQ.raw_os_error().to_string());
    let copied = mount.bash("cp /bin/true program");
    assert_ne!(copied.code, 0, "{copied:?}");
    eventually("nothing is left of it", || !mount.at("program").exists());
    assert_eq!(mount.history(), ["created /tea.md"]);
}

#[test]
fn names_that_break_the_rules_are_refused() {
    let mount = mounted!();
    let make = |name: &[u8]| errno(File::create(mount.at("").join(OsStr::from_bytes(name))));
    assert_eq!(make(b"caf\xe9"), Errno::ILSEQ);
    assert_eq!(make("cafe\u{301}".as_bytes()), Errno::INVAL);
    assert_eq!(make(b"line\nbreak"), Errno::INVAL);
    assert_eq!(make(&[b'a'; 1100]), Errno::NAMETOOLONG);
    let deep = vec!["d"; 20].join("/");
    mount.ok(&format!("mkdir -p {deep}"));
    assert_eq!(errno(File::create(mount.at(&deep).join("file"))), Errno::INVAL);
    assert!(mount.history().is_empty());
}

#[test]
fn a_full_store_is_refused_at_once() {
    if !can_mount() {
        return;
    }
    let home = home();
    let settings = "[limits]\nmemories_per_store_max = 2\nstore_size_bytes_max = 1000\n";
    fs::write(home.path().join("data/quipu.toml"), settings).unwrap();
    let mount = Mount::start(home, &["--store", "notes"]);
    fs::write(mount.at("one.md"), "1").unwrap();
    let mut file = File::create(mount.at("two.md")).unwrap();
    file.write_all(&[b'a'; 1000]).unwrap();
    assert_eq!(close(file), Err(Errno::DQUOT));
    fs::write(mount.at("two.md"), "2").unwrap();
    assert_eq!(errno(File::create(mount.at("three.md"))), Errno::DQUOT);
    assert_eq!(mount.history(), ["created /one.md", "created /two.md"]);
}

#[test]
fn a_full_disk_loses_nothing() {
    needs!("mount", "umount");
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    let mut tmpfs = std::process::Command::new("mount");
    tmpfs.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(&data);
    assert!(tmpfs.status().unwrap().success());
    let created = run(crate::support::quipu(home.path(), &["store", "create", "notes"]), b"");
    assert_eq!(created.code, 0, "{created:?}");
    let mount = Mount::start(home, &["--store", "notes"]);
    let text = "x".repeat(60_000);
    let mut stored = Vec::new();
    let refused = loop {
        let name = format!("{}.md", stored.len());
        let mut file = File::create(mount.at(&name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        match close(file) {
            Ok(()) => stored.push(name),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Errno::NOSPC);
    assert!(!stored.is_empty());
    for name in &stored {
        assert_eq!(mount.read(name), text);
    }
    drop(mount);
    std::process::Command::new("umount").arg("-l").arg(data).status().unwrap();
}

#[test]
fn what_memories_cannot_be_is_refused() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let (tea, new) = (mount.at("tea.md"), mount.at("new"));
    assert_eq!(errno(symlink("tea.md", &new)), Errno::PERM);
    assert_eq!(linkat(CWD, &tea, CWD, &new, AtFlags::empty()), Err(Errno::PERM));
    for kind in [FileType::Fifo, FileType::Socket, FileType::CharacterDevice] {
        assert_eq!(mknodat(CWD, &new, kind, Mode::RUSR, 0), Err(Errno::PERM));
    }
    let set = setxattr(&tea, "user.color", b"green", XattrFlags::empty());
    assert_eq!(set, Err(Errno::OPNOTSUPP));
    let file = OpenOptions::new().write(true).open(&tea).unwrap();
    let reserved = fallocate(&file, FallocateFlags::empty(), 0, 100);
    assert_eq!(reserved, Err(Errno::OPNOTSUPP));
    let unnamed = open(mount.at(""), OFlags::TMPFILE | OFlags::WRONLY, Mode::RUSR);
    assert_eq!(unnamed.unwrap_err(), Errno::OPNOTSUPP);
    drop(file);
    assert_eq!(mount.history(), ["created /tea.md"]);
}

#[test]
fn modes_owners_and_times_are_accepted_without_effect() {
    let mount = mounted!();
    mount.ok("echo green > tea.md; chmod 600 tea.md; chown 1:1 tea.md; touch -d 2001-01-01 tea.md");
    assert_eq!(mount.ok("stat -c '%a %u %g' tea.md"), "644 0 0\n");
    assert_eq!(mount.history(), ["created /tea.md"]);
}

#[test]
fn a_credential_is_refused_where_the_store_says_so() {
    let mount = mounted!();
    mount.quipu(&["store", "update", "notes", "--secrets", "reject"]);
    let secret = format!("token = {}_{}\n", "ghp", "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6");
    let mut file = File::create(mount.at("keys.md")).unwrap();
    file.write_all(secret.as_bytes()).unwrap();
    assert_eq!(close(file), Err(Errno::ACCESS));
    assert!(mount.history().is_empty());
}
