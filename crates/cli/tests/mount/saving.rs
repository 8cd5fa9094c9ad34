//! How editors and tools save.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Signal, kill_process};

use crate::support::{Mount, can_mount, eventually, home, mounted, needs};

/// Returns a mount with one memory that others have seen.
fn with_tea(mount: Mount) -> Mount {
    mount.put("/tea.md", "green\n");
    assert_eq!(mount.read("tea.md"), "green\n");
    mount
}

/// Asserts that saving was one version of the memory that was there, and nothing else.
#[track_caller]
fn assert_saved(mount: &Mount, text: &str) {
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md"]);
    assert_eq!(mount.stored("tea.md"), text);
    assert_eq!(mount.read("tea.md"), text);
}

#[test]
fn sed_in_place_continues_the_memory() {
    let mount = with_tea(mounted!());
    mount.ok("sed -i s/green/black/ tea.md");
    assert_saved(&mount, "black\n");
}

#[test]
fn sed_with_a_backup_continues_the_memory_and_stores_the_backup() {
    let mount = with_tea(mounted!());
    mount.ok("sed -i.bak s/green/black/ tea.md");
    assert_eq!(mount.history(), ["created /tea.md", "modified /tea.md", "created /tea.md.bak"]);
    let ids = mount.changed_memories();
    assert_eq!(ids[0], ids[1]);
    assert_eq!(mount.stored("tea.md"), "black\n");
    assert_eq!(mount.stored("tea.md.bak"), "green\n");
}

#[test]
fn vim_continues_the_memory() {
    needs!("vim");
    let ways = [
        "set nobackup nowritebackup",
        "set nobackup writebackup backupcopy=no",
        "set backup backupcopy=no",
        "set backup backupcopy=yes",
        "set backup backupcopy=auto",
    ];
    for way in ways {
        let mount = with_tea(mounted!());
        let edit = "-c '%s/green/black/' -c wq tea.md";
        mount.ok(&format!("vim -es -u NONE -c 'set backupskip= backupdir=.' -c '{way}' {edit}"));
        assert_saved(&mount, "black\n");
        let backup = mount.at("tea.md~");
        assert_eq!(backup.exists(), way.starts_with("set backup"), "{way}");
    }
}

#[test]
fn nano_continues_the_memory() {
    needs!("nano", "script");
    let mount = with_tea(mounted!());
    // ^K cuts the line; ^O and Enter write; ^X leaves.
    let keys = r"sleep 1; printf 'black '; sleep 0.5; printf '\017'; sleep 0.5; printf '\r'; sleep 0.5; printf '\030'";
    mount.ok(&format!(
        "( {keys} ) | TERM=xterm script -qec 'nano --ignorercfiles tea.md' /dev/null >/dev/null"
    ));
    assert_saved(&mount, "black green\n");
}

#[test]
fn saving_as_emacs_does_continues_the_memory() {
    let mount = with_tea(mounted!());
    mount.ok("ln -s me@host.1:2 '.#tea.md' || true; echo lock > '.#tea.md'");
    mount.ok("mv tea.md tea.md~; echo black > tea.md; rm '.#tea.md'");
    assert_saved(&mount, "black\n");
    assert_eq!(mount.read("tea.md~"), "green\n");
}

#[test]
fn saving_as_vs_code_does_continues_the_memory() {
    let mount = with_tea(mounted!());
    needs!("python3");
    mount.python(
        "import os\n\
         fd = os.open('tea.md', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)\n\
         os.write(fd, b'black\\n')\n\
         os.fdatasync(fd)\n\
         os.close(fd)",
    );
    assert_saved(&mount, "black\n");
}

#[test]
fn replacing_from_python_continues_the_memory() {
    needs!("python3");
    let mount = with_tea(mounted!());
    mount.python(
        "import os\n\
         with open('tea.md.tmp', 'w') as f: f.write('black\\n')\n\
         os.replace('tea.md.tmp', 'tea.md')",
    );
    assert_saved(&mount, "black\n");
    mount.python(
        "import os, tempfile\n\
         with tempfile.NamedTemporaryFile('w', dir='.', delete=False) as f: f.write('white\\n')\n\
         os.replace(f.name, 'tea.md')",
    );
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md", "modified /tea.md"]);
    assert_eq!(mount.stored("tea.md"), "white\n");
}

#[test]
fn a_new_file_moved_over_a_memory_hands_over_its_text() {
    let mount = with_tea(mounted!());
    mount.ok("echo black > other.md; mv other.md tea.md");
    let history = ["created /tea.md", "created /other.md", "deleted /other.md", "modified /tea.md"];
    assert_eq!(mount.history(), history);
    let ids = mount.changed_memories();
    assert_eq!(ids[0], ids[3]);
    assert_eq!(mount.stored("tea.md"), "black\n");
}

#[test]
fn a_memory_moved_to_a_backup_name_follows_if_nothing_takes_its_place() {
    let mount = with_tea(mounted!());
    mount.ok("mv tea.md tea.md.bak");
    assert!(!mount.at("tea.md").exists());
    assert_eq!(mount.read("tea.md.bak"), "green\n");
    mount.wait_for_versions(2);
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md.bak"]);
    mount.ok("mv tea.md.bak tea.md~");
    mount.wait_for_versions(3);
    assert_eq!(mount.history()[2], "deleted /tea.md.bak");
    assert_eq!(mount.read("tea.md~"), "green\n");
    mount.ok("mv tea.md~ tea.md");
    assert_eq!(mount.stored("tea.md"), "green\n");
}

#[test]
fn a_memory_that_comes_back_from_a_scratch_name_keeps_its_id() {
    let mount = mounted!();
    mount.ok("echo green > tea.md; mv tea.md tea.md.tmp");
    mount.wait_for_versions(2);
    mount.ok("mv tea.md.tmp tea.md");
    mount.assert_one_memory(&["created /tea.md", "deleted /tea.md", "created /tea.md"]);
    assert_eq!(mount.stored("tea.md"), "green\n");
}

#[test]
fn syncing_a_directory_makes_its_renames_durable() {
    let mut mount = mounted!();
    mount.ok("echo green > tea.md");
    fs::rename(mount.at("tea.md"), mount.at("tea.md.bak")).unwrap();
    fs::File::open(mount.at("")).unwrap().sync_all().unwrap();
    kill_process(mount.pid(), Signal::KILL).unwrap();
    mount.ended();
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md.bak"]);
}

/// Returns which of these names become memories through a mount, and which through a sync, with a
/// setting.
fn memories_of(names: &[&str], setting: &str) -> [BTreeSet<String>; 2] {
    let home = home();
    fs::write(home.path().join("data/quipu.toml"), setting).unwrap();
    let mount = Mount::start(home, &["--store", "notes"]);
    let folder = mount.home.path().join("folder");
    fs::create_dir(&folder).unwrap();
    for name in names {
        fs::write(mount.at(name), name).unwrap();
        fs::write(folder.join(name), name).unwrap();
    }
    mount.quipu(&["sync", folder.to_str().unwrap(), "--store", "team"]);
    ["notes", "team"].map(|store| {
        let listed = mount.quipu(&["ls", "--store", store]);
        let is_listed =
            |name: &&str| listed.lines().any(|line| line.trim_start_matches('/') == *name);
        names.iter().copied().filter(is_listed).map(str::to_owned).collect()
    })
}

#[test]
fn mounts_and_sync_have_the_same_scratch_names() {
    if !can_mount() {
        return;
    }
    let names = [
        "4913",
        "tea.md~",
        "#tea.md#",
        "tea.tmp",
        "tea.tmp.42",
        "index.lock",
        "Cargo.lock",
        "tmp_obj_X1",
        "tea.md",
        "tea.draft",
        "kept.draft",
        "tea.bak",
        "sed123456",
    ];
    let kept = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let by_default =
        kept(&["Cargo.lock", "tea.md", "tea.draft", "kept.draft", "tea.bak", "sed123456"]);
    assert_eq!(memories_of(&names, ""), [by_default.clone(), by_default]);
    let setting = "[names]\nscratch = [\"*.draft\", \"!kept.draft\", \"tea.b?k\"]\n";
    let changed: BTreeSet<_> =
        kept(&names).difference(&kept(&["tea.draft", "tea.bak"])).cloned().collect();
    assert_eq!(memories_of(&names, setting), [changed.clone(), changed]);
}

#[test]
fn scratch_files_never_become_memories() {
    let mount = mounted!();
    let names = [
        "4913",
        "tea.md~",
        ".#tea.md",
        "#tea.md#",
        ".tea.md.swp",
        ".goutputstream-X1",
        ".nfs01",
        ".fuse_hidden01",
        "tea.tmp",
        "tea.tmp.42",
        "index.lock",
        "tmp_obj_X1",
    ];
    for name in names {
        fs::write(mount.at(name), name).unwrap();
        assert_eq!(mount.read(name), name);
    }
    fs::write(mount.at("big.tmp"), vec![0; 300_000]).unwrap();
    assert!(mount.history().is_empty());
    fs::rename(mount.at("tea.tmp"), mount.at("tea.md")).unwrap();
    assert_eq!(mount.history(), ["created /tea.md"]);
    for name in names.iter().filter(|&&name| name != "tea.tmp") {
        fs::remove_file(mount.at(name)).unwrap();
    }
    eventually("they are gone", || fs::read_dir(mount.at("")).unwrap().count() == 2);
    // A file is temporary because of what its maker asks for, not because of the umask.
    mount.ok("umask 077; cp tea.md .env.sample; cp tea.md Cargo.lock");
    assert_eq!(mount.history()[1..], ["created /.env.sample", "created /Cargo.lock"]);
    needs!("python3");
    mount.python(
        "import os\n\
         os.close(os.open('.env.backup', os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))",
    );
    assert_eq!(mount.history().len(), 3);
}
