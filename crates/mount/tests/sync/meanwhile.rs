//! Edits on both sides while syncs run.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use quipu_mount::sync::MassDeletion;

use crate::support::{Fixture, fixture};

const FILES_COUNT: usize = 5;
const EDITS_COUNT: usize = 300;

fn name(number: usize) -> String {
    format!("/f{}.md", number % FILES_COUNT)
}

/// Saves a file the way some editor does, and returns its text.
fn save(fixture: &Fixture, number: usize) -> String {
    let text = format!("folder {number}\n");
    let file = fixture.file(&name(number));
    if number.is_multiple_of(2) {
        fs::write(file, &text).unwrap();
    } else {
        let scratch = fixture.file(&format!("/.scratch{number}"));
        fs::write(&scratch, &text).unwrap();
        fs::rename(scratch, file).unwrap();
    }
    text
}

#[test]
fn edits_during_syncs_are_never_lost() {
    let fixture = fixture();
    let is_over = AtomicBool::new(false);
    let last_saved = thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let saved: Vec<_> = (0..EDITS_COUNT).map(|number| save(&fixture, number)).collect();
            // Each file is saved many times; only its last text must exist for certain.
            saved[EDITS_COUNT - FILES_COUNT..].to_vec()
        });
        let writer = scope.spawn(|| {
            for number in 0..EDITS_COUNT {
                fixture.put(&name(number), &format!("store {number}\n"));
            }
        });
        let syncer = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                // A file that keeps changing is reported as failed and retried by the next sync.
                fixture.sync_with(MassDeletion::Refuse).unwrap();
            }
        });
        let last_saved = editor.join().unwrap();
        writer.join().unwrap();
        is_over.store(true, Ordering::SeqCst);
        syncer.join().unwrap();
        last_saved
    });
    fixture.sync();
    fixture.assert_equal();
    assert_eq!(fixture.sync(), [""; 0]);
    let versions = fixture.versions();
    let kept: BTreeSet<_> = versions
        .iter()
        .filter_map(|version| version.content.as_ref())
        .map(|content| content.as_str().to_owned())
        .collect();
    for text in last_saved {
        assert!(kept.contains(&text), "{text:?} is lost");
    }
    for number in 0..EDITS_COUNT {
        assert!(kept.contains(&format!("store {number}\n")));
    }
}
