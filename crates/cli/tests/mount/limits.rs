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
fn a_text_that_is_not_utf_8_is_refused_at_the_write() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    for bytes in [&b"\xff\xfe"[..], b"nul \0 inside"] {
        let mut file = File::create(mount.at("tea.md")).unwrap();
        assert_eq!(errno(file.write_all(bytes)), Errno::ILSEQ);
        assert_eq!(close(file), Err(Errno::ILSEQ));
        eventually("the stored text is back", || shows(&mount, "green"));
    }
    // The rest of a character may come with the next write; only the close knows that it did not.
    let mut file = File::create(mount.at("tea.md")).unwrap();
    file.write_all(b"cut \xc3").unwrap();
    assert_eq!(close(file), Err(Errno::ILSEQ));
    eventually("the stored text is back", || shows(&mount, "green"));
    let mut file = File::create(mount.at("tea.md")).unwrap();
    file.write_all(b"gr\xc3").unwrap();
    file.write_all(b"\xbcn").unwrap();
    assert_eq!(close(file), Ok(()));
    assert_eq!(mount.stored("tea.md"), "grün");
    let copied = mount.bash("cp /bin/true program");
    assert_ne!(copied.code, 0, "{copied:?}");
    eventually("nothing is left of it", || !mount.at("program").exists());
    assert_eq!(mount.history(), ["created /tea.md", "modified /tea.md"]);
}

fn shows(mount: &Mount, text: &str) -> bool {
    fs::read(mount.at("tea.md")).is_ok_and(|read| read == text.as_bytes())
}

#[test]
fn what_was_not_stored_is_listed_in_a_report() {
    let mount = mounted!();
    let report = mount.at(".quipu/problems.md");
    assert!(!report.exists() && mount.ok("ls -A").is_empty());
    fs::write(mount.at("tea.md"), "green\n").unwrap();
    // A shell does not say what its close was told.
    mount.bash("printf 'caf\\xc3' > cafe.md");
    mount.quipu(&["store", "update", "notes", "--secrets", "reject"]);
    let secret = format!("{}_{}", "ghp", "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6");
    mount.bash(&format!("echo 'token = {secret}' > keys.md"));
    let mut file = OpenOptions::new().write(true).open(mount.at("tea.md")).unwrap();
    file.write_all(b"black\n").unwrap();
    mount.put("/tea.md", "white\n");
    assert_eq!(close(file), Ok(()));
    let text = fs::read_to_string(&report).unwrap();
    for part in ["`/cafe.md` was not stored", "EILSEQ", "`/keys.md` was not stored", "EACCES"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(&secret), "{text}");
    // The text that was overridden can be had by its version.
    let version = text.split('`').find(|word| word.starts_with("memver_")).unwrap();
    let shown = mount.quipu(&["-s", "notes", "show", version]);
    assert!(shown.contains("white"), "{shown}");
    // It is no memory, nobody can write it, and whoever has read it can remove it.
    assert_eq!(mount.history().len(), 3);
    assert_eq!(errno(fs::write(&report, "x")), Errno::PERM);
    assert_eq!(errno(fs::rename(&report, mount.at("x.md"))), Errno::PERM);
    fs::remove_file(&report).unwrap();
    assert!(!report.exists());
    mount.bash("printf 'caf\\xc3' > other.md");
    let text = fs::read_to_string(&report).unwrap();
    assert!(text.contains("/other.md") && !text.contains("/keys.md"), "{text}");

    // The history has all of it, also after the mount has ended.
    let refused = || mount.quipu(&["-s", "notes", "log", "--refused"]);
    eventually("all problems are recorded", || refused().lines().count() == 4);
    let log = refused();
    assert!(log.contains("/keys.md was not stored") && !log.contains(&secret), "{log}");
}

#[test]
fn programs_that_need_more_leave_nothing_behind() {
    let mount = mounted!();
    needs!("python3");
    let ran = mount.bash(
        "python3 -c 'import sqlite3; sqlite3.connect(\"notes.db\").execute(\"CREATE TABLE t (x)\")'",
    );
    assert_ne!(ran.code, 0, "{ran:?}");
    eventually("nothing is left of it", || {
        let names = fs::read_dir(mount.at("")).unwrap().map(|entry| entry.unwrap().file_name());
        names.into_iter().all(|name| name == ".quipu")
    });
    assert_eq!(mount.history(), Vec::<String>::new());
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
    assert_eq!(errno(file.write_all(&[b'a'; 1000])), Errno::DQUOT);
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
    assert_eq!(errno(file.write_all(secret.as_bytes())), Errno::ACCESS);
    assert_eq!(close(file), Err(Errno::ACCESS));
    assert!(mount.history().is_empty());
}
