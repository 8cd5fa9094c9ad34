//! Listings, which are read in parts.

use std::collections::{BTreeMap, BTreeSet};

use quipu_mount::ROOT;

use crate::random::Dice;
use crate::support::{Fixture, fixture};

/// Reads lines behind a position, perhaps fewer than there are, as a kernel with a small buffer.
fn part(fixture: &Fixture, handle: u64, from: u64, count: usize) -> Vec<(String, u64)> {
    let entries = fixture.tree.read_directory(handle, from).unwrap();
    entries.into_iter().take(count).map(|entry| (entry.name, entry.next)).collect()
}

#[test]
fn a_listing_in_parts_omits_deleted_names() {
    let fixture = fixture();
    for number in 0..600 {
        fixture.put(&format!("/{number:03}"), "1");
    }
    let handle = fixture.tree.open_directory(ROOT).unwrap();
    let first = part(&fixture, handle, 0, 256);
    let is_first = |name: &str| first.iter().any(|(other, _)| other == name);
    let mut later = (0..600).map(|number| format!("{number:03}")).filter(|name| !is_first(name));
    let (one, other) = (later.next().unwrap(), later.next().unwrap());
    fixture.delete(&format!("/{one}"));
    fixture.remove(&format!("/{other}")).unwrap();
    fixture.follow();
    let mut names = first.clone();
    loop {
        let entries = part(&fixture, handle, names.last().unwrap().1, 256);
        if entries.is_empty() {
            break;
        }
        names.extend(entries);
    }
    assert_eq!(names.len(), 598);
    assert!(names.iter().all(|(name, _)| *name != one && *name != other));
}

#[test]
fn a_listing_continues_on_another_handle() {
    let fixture = fixture();
    for number in 0..600 {
        fixture.put(&format!("/{number:03}"), "1");
    }
    let handle = fixture.tree.open_directory(ROOT).unwrap();
    let first = part(&fixture, handle, 0, 100);
    let other = fixture.tree.open_directory(ROOT).unwrap();
    let rest = part(&fixture, other, first.last().unwrap().1, 256);
    assert_eq!(rest.len(), 256);
    assert!(rest.iter().all(|line| !first.contains(line)));
}

/// Reads a directory in parts of random length while others add, remove, rename and look at names
/// in it, and handles come and go.
fn run(seed: u64) {
    let (fixture, mut dice) = (fixture(), Dice(seed));
    let names_count = 1 + dice.roll(700);
    let mut stable: BTreeSet<String> = (0..names_count).map(|n| format!("n{n}")).collect();
    for name in &stable {
        fixture.put(&format!("/d/{name}"), "1");
    }
    let directory = fixture.lookup("/d").unwrap().ino;
    let mut handle = fixture.tree.open_directory(directory).unwrap();
    let (mut from, mut seen) = (0, BTreeMap::<String, usize>::new());
    loop {
        let lines = part(&fixture, handle, from, 1 + dice.roll(80));
        let Some((_, next)) = lines.last() else { break };
        from = *next;
        for (name, _) in lines {
            *seen.entry(name).or_default() += 1;
        }
        for _ in 0..dice.roll(4) {
            let name = format!("n{}", dice.roll(names_count * 2));
            let (path, other) = (format!("/d/{name}"), format!("/d/x{}", dice.roll(9)));
            // What fails would have changed nothing.
            match dice.roll(7) {
                0 => drop(fixture.put(&path, "2")),
                1 if fixture.stored(&path).is_some() => fixture.delete(&path),
                2 => drop(fixture.write(&path, b"3")),
                3 => drop(fixture.remove(&path)),
                4 => drop(fixture.rename(&path, &other)),
                5 => fixture.follow(),
                _ => {
                    fixture.tree.release_directory(handle);
                    handle = fixture.tree.open_directory(directory).unwrap();
                    continue;
                }
            }
            stable.remove(&name);
        }
    }
    for name in stable {
        assert_eq!(seen.get(&name), Some(&1), "{name} with seed {seed}");
    }
}

#[test]
fn a_name_that_exists_throughout_is_listed_exactly_once() {
    for seed in 0..crate::random::cases_count() {
        run(seed);
    }
}
