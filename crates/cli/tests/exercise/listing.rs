//! Long listings that others interrupt.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, MemoryPath, PrincipalName};
use quipu_core::settings::Limits;

use crate::support::{Mount, Numbers, can_mount, eventually, setting};

fn path(number: usize) -> MemoryPath {
    MemoryPath::parse(&format!("/many/{number:06}.md")).unwrap()
}

fn ada() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

/// Stores memories with several threads, which commit together.
fn fill(mount: &Mount, count: usize) {
    thread::scope(|scope| {
        for first in 0..8 {
            scope.spawn(move || {
                for number in (first..count).step_by(8) {
                    put(mount, number);
                }
            });
        }
    });
}

fn put(mount: &Mount, number: usize) {
    let target = (&path(number), &Content::new("text").unwrap());
    mount.engine.put(&ada(), mount.store, target, Precondition::None).unwrap();
}

/// What another door, the mount itself or the kernel does while somebody reads the directory.
fn interrupt(mount: &Mount, numbers: &mut Numbers, changed: &mut Vec<usize>, count: usize) {
    match numbers.below(5) {
        // Another door adds, changes or removes; the kernel is told that what it keeps is wrong.
        0 => changed.push(count + numbers.below(1_000)),
        1 | 2 => changed.push(numbers.below(count)),
        // Memory gets scarce: the kernel forgets listings, names and files.
        3 => return drop_caches(),
        // Somebody else reads the directory from the beginning.
        _ => return assert!(fs::read_dir(mount.at("many")).unwrap().count() > 0),
    }
    let number = *changed.last().unwrap();
    if number < count && numbers.below(2) == 0 {
        // It may be gone already.
        drop(mount.engine.delete_at(&ada(), mount.store, &path(number)));
    } else {
        put(mount, number);
    }
}

fn drop_caches() {
    if let Err(error) = fs::write("/proc/sys/vm/drop_caches", "3") {
        eprintln!("SKIPPED: dropping the kernel's caches: {error}");
    }
}

#[test]
fn a_listing_shows_every_name_exactly_once() {
    if !can_mount() {
        return;
    }
    let count = setting("QUIPU_MOUNT_NAMES", 20_000);
    let mut mount =
        Mount::unmounted(Limits { memories_per_store_max: u64::MAX, ..Limits::default() });
    fill(&mount, count);
    mount.start("notes");
    let mut numbers = Numbers(5);
    for round in 0..4 {
        // What the kernel keeps of a listing, it would keep of this one, if nothing changes anymore.
        let list = || fs::read_dir(mount.at("many")).unwrap().count() == count;
        eventually("all are there", || list() && list());
        let mut changed = Vec::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let pause = 1 + numbers.below(count / 20);
        for (place, entry) in fs::read_dir(mount.at("many")).unwrap().enumerate() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            *seen.entry(name).or_default() += 1;
            if place % pause == pause - 1 {
                interrupt(&mount, &mut numbers, &mut changed, count);
            }
        }
        for number in (0..count).filter(|number| !changed.contains(number)) {
            let name = format!("{number:06}.md");
            assert_eq!(seen.get(&name), Some(&1), "{name} in round {round}, of {}", seen.len());
        }
        assert!(seen.values().all(|times| *times == 1), "round {round}");
        for &number in &changed {
            if number < count {
                put(&mount, number);
            } else {
                drop(mount.engine.delete_at(&ada(), mount.store, &path(number)));
            }
        }
    }
    eprintln!("{count} names were listed while others changed some of them");
}
