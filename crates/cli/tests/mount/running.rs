//! Mounting and unmounting.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::support::{
    Background, Mount, can_mount, errno, eventually, home, is_mounted, mounted, needs,
    others_can_mount, quipu, run,
};

#[test]
fn each_store_is_a_directory_below_the_root() {
    let mount = mounted!("--store", "notes", "--store", "team:ro");
    mount.put("/tea.md", "green");
    assert_eq!(mount.read("tea.md"), "green");
    let names = fs::read_dir(mount.root()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["notes", "team"]);
}

#[test]
fn nothing_can_be_put_in_the_root() {
    let mount = mounted!();
    assert_eq!(errno(fs::write(mount.root().join("x"), "x")), Errno::ROFS);
    assert_eq!(errno(fs::create_dir(mount.root().join("x"))), Errno::ROFS);
    assert!(errno(fs::remove_dir(mount.root().join("notes"))) != Errno::NOENT);
    // Whoever may remount it as writable gets the same answer, from Quipu instead of the kernel.
    let ran = mount.bash("cd ..; mount -i -o remount,rw \"$PWD\"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(errno(fs::write(mount.root().join("x"), "x")), Errno::ROFS);
    assert_eq!(errno(fs::create_dir(mount.root().join("x"))), Errno::ROFS);
    assert_eq!(errno(std::os::unix::fs::symlink("x", mount.root().join("y"))), Errno::ROFS);
    let mode = fs::Permissions::from_mode(0o777);
    assert_eq!(errno(fs::set_permissions(mount.root(), mode)), Errno::ROFS);
}

#[test]
fn every_user_can_mount() {
    needs!("fusermount3", "setpriv");
    if !can_mount() || !others_can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    // Where the binary was built may be closed to others.
    let binary = home.path().join("quipu");
    fs::copy(env!("CARGO_BIN_EXE_quipu"), binary).unwrap();
    let nobody = Some(65534);
    chown(home.path(), nobody, nobody).unwrap();
    let script = "set -e
        ./quipu store create notes >/dev/null
        ./quipu mount --store notes --detach >/dev/null
        cd memory/notes
        echo green > tea.md
        sed -i s/green/black/ tea.md
        cat tea.md
        stat --format %U:%a tea.md
        if touch ../x 2>/dev/null; then echo the root can be written; fi
        echo mounted
        read -r
        cd ../..
        ./quipu unmount >/dev/null
        until [ ! -e memory ]; do sleep 0.01; done
        ./quipu -s notes log --json";
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", script]);
    command.current_dir(home.path()).env("HOME", home.path());
    command.env("QUIPU_DATA", home.path().join("data"));
    command.env("QUIPU_MOUNT_ROOT", home.path().join("memory"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let shown: Vec<_> = lines.by_ref().take_while(|line| line != "mounted").collect();
    assert_eq!(shown, ["black", "nobody:644"]);
    // The mount is the user's own.
    assert_eq!(errno(fs::read_dir(home.path().join("memory/notes"))), Errno::ACCESS);
    process.stdin.take().unwrap().write_all(b"\n").unwrap();
    let log: Value = serde_json::from_str(&lines.collect::<String>()).unwrap();
    assert_eq!(log["data"].as_array().unwrap().len(), 2, "{log}");
    assert!(process.wait().unwrap().success());
}

#[test]
fn one_line_says_that_everything_is_mounted() {
    if !can_mount() {
        return;
    }
    let home = home();
    let mut command = quipu(home.path(), &["mount", "-s", "notes", "-s", "team:ro", "--detach"]);
    command.stdin(Stdio::null());
    let ran = run(command, b"");
    let place = |name| home.path().join("memory").join(name).display().to_string();
    let expected =
        format!("mounted {} (read_write), {} (read_only) as sesn_", place("notes"), place("team"));
    assert!(ran.out.starts_with(&expected), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 1, "{ran:?}");
    assert_eq!(run(quipu(home.path(), &["unmount"]), b"").code, 0);
}

#[test]
fn a_signal_unmounts_everything() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut mount = mounted!("--store", "notes", "--store", "team");
        kill_process(mount.pid(), signal).unwrap();
        assert_eq!(mount.ended(), Some(0));
        assert!(!is_mounted(&mount.root().join("notes")));
        assert!(!is_mounted(&mount.root()));
    }
    let mut mount = mounted!();
    let mut open = fs::File::create(mount.at("tea.md")).unwrap();
    open.write_all(b"not closed").unwrap();
    kill_process(mount.pid(), Signal::TERM).unwrap();
    assert_eq!(mount.ended(), Some(0));
    assert!(!is_mounted(&mount.root()));
    assert_eq!(mount.stored("tea.md"), "not closed");
}

#[test]
fn a_mount_ends_with_its_parent() {
    if !can_mount() {
        return;
    }
    let home = home();
    let root = home.path().join("memory");
    let mut shell = Command::new("bash");
    let binary = quipu(home.path(), &[]);
    shell.env("HOME", home.path()).env("QUIPU_MOUNT_ROOT", &root);
    shell.env("QUIPU_DATA", home.path().join("data"));
    let script = "\"$0\" mount --store notes & read -r";
    shell.args(["-c", script]).arg(binary.get_program()).stdin(Stdio::piped());
    let mut shell = shell.stdout(Stdio::null()).spawn().unwrap();
    eventually("it is mounted", || is_mounted(&root.join("notes")));
    drop(shell.stdin.take());
    shell.wait().unwrap();
    eventually("it is unmounted", || !is_mounted(&root));
}

#[test]
fn a_detached_mount_outlives_its_parent() {
    if !can_mount() {
        return;
    }
    let home = home();
    let arguments = ["--json", "mount", "--store", "notes", "--detach"];
    let ran = run(quipu(home.path(), &arguments), b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    let ready: Value = serde_json::from_str(&ran.out).unwrap();
    let place = ready["stores"][0]["path"].as_str().unwrap();
    fs::write(format!("{place}/tea.md"), "green").unwrap();
    let stored = run(quipu(home.path(), &["-s", "notes", "cat", "tea.md"]), b"");
    assert_eq!(stored.out, "green");
    let ran = run(quipu(home.path(), &["unmount"]), b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!is_mounted(&home.path().join("memory")));
}

#[test]
fn unmounting_ends_the_process() {
    let mut mount = mounted!("--store", "notes", "--store", "team");
    mount.quipu(&["unmount"]);
    assert_eq!(mount.ended(), Some(0));
    assert!(!is_mounted(&mount.root()));
}

#[test]
fn what_is_in_use_is_not_unmounted() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let open = fs::File::open(mount.at("tea.md")).unwrap();
    let ran = run(quipu(mount.home.path(), &["unmount"]), b"");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("stop the programs that use it"), "{ran:?}");
    assert_eq!(mount.read("tea.md"), "green");
    drop(open);
}

#[test]
fn what_a_crash_left_behind_is_cleared() {
    let mut mount = mounted!("--store", "notes", "--store", "team");
    fs::write(mount.at("tea.md"), "green").unwrap();
    let _shell = Background::sleep_in(&mount.at(""));
    // The kernel answers this from its cache from now on, whatever becomes of the process.
    assert!(fs::metadata(mount.at("")).is_ok() && fs::metadata(mount.root()).is_ok());
    kill_process(mount.pid(), Signal::KILL).unwrap();
    mount.ended();
    assert_eq!(errno(fs::read(mount.at("other.md"))), Errno::NOTCONN);
    assert!(fs::metadata(mount.at("")).is_ok() && fs::metadata(mount.root()).is_ok());
    let home = std::mem::replace(&mut mount.home, tempfile::tempdir().unwrap());
    mount.process = None;
    let again = Mount::start(home, &["--store", "notes"]);
    assert_eq!(again.read("tea.md"), "green");
    assert!(!again.root().join("team").exists());
}

#[test]
fn a_mount_that_fails_names_the_cause_and_leaves_nothing_behind() {
    const NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    needs!("setpriv", "unshare", "mount", "mknod");
    if !can_mount() {
        return;
    }
    let home = home();
    let root = home.path().join("memory/deep");
    let mount = |setup: &str, user: &str| {
        let mut hidden = Command::new("unshare");
        let script = format!("mount -t tmpfs none /dev && {setup} && exec {user} \"$0\" \"$@\"");
        hidden.args(["--mount", "bash", "-c", &script]).arg(home.path().join("quipu"));
        hidden.arg("--data").arg(home.path().join("data"));
        hidden.args(["mount", "--store", "notes", "--root"]).arg(&root);
        hidden.env("HOME", home.path());
        run(hidden, b"")
    };
    fs::copy(env!("CARGO_BIN_EXE_quipu"), home.path().join("quipu")).unwrap();
    run_in(home.path(), "chown -R 65534:65534 .");
    let device = "mknod -m 600 /dev/fuse c 10 229 && mknod -m 666 /dev/null c 1 3";
    let refused = mount(device, NOBODY);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("/dev/fuse cannot be opened: Permission denied"), "{refused:?}");
    assert!(!refused.err.contains("fusermount3"), "{refused:?}");
    assert!(!home.path().join("memory").exists());
    // What was there before stays, as it was.
    fs::create_dir(home.path().join("memory")).unwrap();
    run_in(home.path(), "chmod 700 memory && chown 65534:65534 memory");
    assert_eq!(mount(device, NOBODY).code, 1);
    let left = fs::metadata(home.path().join("memory")).unwrap();
    assert_eq!(left.permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(home.path().join("memory")).unwrap().count(), 0);
}

/// Runs a bash script that must succeed in a directory.
fn run_in(directory: &std::path::Path, script: &str) {
    let status = Command::new("bash").args(["-ec", script]).current_dir(directory).status();
    assert!(status.unwrap().success(), "{script}");
}

#[test]
fn a_root_that_is_in_use_is_refused() {
    let mount = mounted!();
    let ran = run(quipu(mount.home.path(), &["mount", "--store", "team"]), b"");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("is already mounted"), "{ran:?}");
    fs::write(mount.at("tea.md"), "green").unwrap();
}

#[test]
fn a_directory_that_holds_files_is_not_covered() {
    if !can_mount() {
        return;
    }
    let home = home();
    let root = home.path().join("memory");
    fs::create_dir_all(root.join("notes")).unwrap();
    fs::write(root.join("mine.txt"), "mine").unwrap();
    let ran = run(quipu(home.path(), &["mount", "--store", "notes"]), b"");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("contains files that a mount would hide"), "{ran:?}");
    fs::remove_file(root.join("mine.txt")).unwrap();
    let mount = Mount::start(home, &["--store", "notes"]);
    fs::write(mount.at("tea.md"), "green").unwrap();
}

#[test]
fn eight_stores_fit_in_one_process() {
    if !can_mount() {
        return;
    }
    let home = home();
    let names: Vec<_> = (1..=8).map(|number| format!("s{number}")).collect();
    let mut arguments = Vec::new();
    for name in &names {
        assert_eq!(run(quipu(home.path(), &["store", "create", name]), b"").code, 0);
        arguments.extend(["--store", name]);
    }
    let mount = Mount::start(home, &arguments);
    for name in &names {
        fs::write(mount.root().join(name).join("tea.md"), name).unwrap();
        assert_eq!(mount.quipu(&["-s", name, "cat", "tea.md"]), *name);
    }
}

#[test]
fn without_fuse_another_way_is_named() {
    needs!("unshare", "mount");
    if !can_mount() {
        return;
    }
    let home = home();
    let binary = quipu(home.path(), &[]);
    let mut hidden = Command::new("unshare");
    let script = "mount -t tmpfs none /dev && exec \"$0\" \"$@\"";
    hidden.args(["--mount", "bash", "-c", script]).arg(binary.get_program());
    hidden.arg("--data").arg(home.path().join("data")).args(["mount", "--store", "notes"]);
    let ran = run(hidden, b"");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("no /dev/fuse"), "{ran:?}");
    assert!(ran.err.contains("quipu sync"), "{ran:?}");
}

#[test]
fn programs_cannot_be_run_from_a_mount() {
    let mount = mounted!();
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = table
        .lines()
        .find(|line| line.contains(mount.at("").to_str().unwrap().trim_end_matches('/')));
    for option in ["nosuid", "nodev", "noexec"] {
        assert!(line.unwrap().contains(option), "{line:?}");
    }
    fs::write(mount.at("run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    assert_eq!(mount.bash("chmod +x run.sh; ./run.sh").code, 126);
}

#[test]
fn only_its_user_may_use_a_mount() {
    const AS_NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    needs!("setpriv");
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    mount.ok("chmod a+x ../.. ../../..");
    let other = mount.bash(&format!("{AS_NOBODY} cat tea.md"));
    assert_ne!(other.code, 0, "{other:?}");
    let open = mounted!("--store", "notes", "--allow-other");
    open.ok("chmod a+x ../.. ../../..");
    open.ok(&format!("{AS_NOBODY} bash -c 'echo black > tea.md; cat tea.md'"));
    assert_eq!(open.stored("tea.md"), "black\n");
}

#[test]
fn every_version_names_the_session() {
    let mount = mounted!("--store", "notes", "--title", "the gardener");
    fs::write(mount.at("tea.md"), "green").unwrap();
    fs::rename(mount.at("tea.md"), mount.at("cha.md")).unwrap();
    fs::remove_file(mount.at("cha.md")).unwrap();
    let session = mount.ready["session"].as_str().unwrap();
    let actors = mount.actors();
    assert_eq!(actors.len(), 3);
    assert!(actors.iter().all(|actor| actor.contains("session_actor") && actor.contains(session)));
    let log = mount.quipu(&["-s", "notes", "log"]);
    assert!(log.contains("the gardener"), "{log}");
}

#[test]
fn the_stores_of_a_session_can_be_mounted() {
    if !can_mount() {
        return;
    }
    let home = home();
    let arguments =
        ["--json", "session", "create", "-s", "notes", "-s", "team:ro", "--title", "gardener"];
    let ran = run(quipu(home.path(), &arguments), b"");
    let session: Value = serde_json::from_str(&ran.out).unwrap();
    let id = session["id"].as_str().unwrap().to_owned();
    let mount = Mount::start(home, &["--session", &id]);
    assert_eq!(mount.ready["session"].as_str(), Some(id.as_str()));
    fs::write(mount.at("tea.md"), "green").unwrap();
    assert!(mount.actors()[0].contains(&id));
    assert_eq!(errno(fs::write(mount.root().join("team/x"), "x")), Errno::ROFS);
}

#[test]
fn the_prompt_names_the_mounts() {
    let home = home();
    let ok = |arguments: &[&str]| {
        let ran = run(quipu(home.path(), arguments), b"");
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out
    };
    ok(&["store", "update", "notes", "--description", "What the team drinks."]);
    let arguments = ["--json", "session", "create", "-s", "notes", "-s", "team:ro"];
    let session = ok(&[&arguments[..], &["--instructions", "Read it first."]].concat());
    let session: Value = serde_json::from_str(&session).unwrap();
    let id = session["id"].as_str().unwrap();
    let place = home.path().join("memory").display().to_string();
    for (prompt, root) in [
        (ok(&["prompt", "--session", id]), place.as_str()),
        (ok(&["prompt", "--session", id, "--root", "/elsewhere"]), "/elsewhere"),
    ] {
        let notes = format!(
            "`{root}/notes`: notes (you may read and write). What the team drinks. Read it first."
        );
        let team = format!("`{root}/team`: team (read only, writes are refused). Read it first.");
        assert!(prompt.contains(&notes) && prompt.contains(&team), "{prompt}");
    }
}
