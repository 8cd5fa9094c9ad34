//! Random changes on both sides: after each sync they are equal and nothing is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use quipu_core::engine::Precondition;
use quipu_core::model::Content;
use quipu_mount::sync::MassDeletion;

use crate::support::{Fixture, ada, fixture, path};

const PATHS: [&str; 9] =
    ["/a.md", "/b.md", "/c.md", "/d/e.md", "/d/f.md", "/d/g/h.md", "/i", "/i/j.md", "/k/l/m/n.md"];

const LINES_COUNT: usize = 7;

/// A seeded random number generator, so that failures can be reproduced.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn path(&mut self) -> &'static str {
        PATHS[self.below(PATHS.len())]
    }
}

struct Case {
    fixture: Fixture,
    numbers: Numbers,
    lines_count: usize,
}

impl Case {
    fn new_line(&mut self) -> String {
        self.lines_count += 1;
        format!("line {}\n", self.lines_count)
    }

    /// Returns a text that changes one line of the old one, or a new one. Every line is unique.
    fn edited(&mut self, old: Option<&String>) -> String {
        let mut lines: Vec<String> = match old {
            Some(old) if self.numbers.below(5) > 0 => {
                old.split_inclusive('\n').map(str::to_owned).collect()
            }
            _ => (0..LINES_COUNT).map(|_| self.new_line()).collect(),
        };
        let place = self.numbers.below(lines.len().max(1));
        let line = self.new_line();
        match (self.numbers.below(3), lines.get_mut(place)) {
            (0, Some(old)) => *old = line,
            (1, Some(_)) => drop(lines.remove(place)),
            (_, _) => lines.insert(place, line),
        }
        lines.concat()
    }

    fn change_folder(&mut self) {
        let files = self.fixture.files();
        let at = self.numbers.path();
        let file = self.fixture.file(at);
        match self.numbers.below(6) {
            0 => drop(fs::remove_file(&file)),
            1 => {
                let to = self.fixture.file(self.numbers.path());
                let is_free = !to.exists() && file.is_file();
                if is_free && fs::create_dir_all(to.parent().unwrap()).is_ok() {
                    fs::rename(&file, to).unwrap();
                }
            }
            2 => drop(fs::remove_dir_all(file.parent().unwrap().join("g"))),
            _ => {
                let text = self.edited(files.get(at));
                if fs::create_dir_all(file.parent().unwrap()).is_ok() {
                    // Fails if a directory is there.
                    fs::write(&file, text).unwrap_or_default();
                }
            }
        }
    }

    fn change_store(&mut self) {
        let memories = self.fixture.memories();
        let at = self.numbers.path();
        let (engine, store) = (self.fixture.engine.clone(), self.fixture.store);
        // Impossible changes are refused, which is fine.
        match self.numbers.below(6) {
            0 => drop(engine.delete_at(&ada(), store, &path(at))),
            1 | 2 => {
                drop(engine.rename(&ada(), store, &path(at), &path(self.numbers.path())));
            }
            _ => {
                let text = self.edited(memories.get(at));
                let target = (&path(at), &Content::new(text).unwrap());
                drop(engine.put(&ada(), store, target, Precondition::None));
            }
        }
    }

    fn sync(&mut self) {
        let lines_of = |texts: BTreeMap<String, String>| {
            texts.into_values().flat_map(|text| lines(&text)).collect::<BTreeSet<_>>()
        };
        let mut lines_before = lines_of(self.fixture.files());
        lines_before.extend(lines_of(self.fixture.memories()));
        let report = self.fixture.sync_with(MassDeletion::Allow).unwrap();

        let versions = self.fixture.versions();
        let texts = versions.iter().filter_map(|version| version.content.as_ref());
        let mut lines_after: BTreeSet<_> =
            texts.flat_map(|content| lines(content.as_str())).collect();
        if report.failed.is_empty() {
            self.fixture.assert_equal();
        } else {
            // A file and a directory of the same name both stay until somebody decides.
            lines_after.extend(lines_of(self.fixture.files()));
            for failed in &report.failed {
                drop(fs::remove_file(self.fixture.file(&failed.path)));
            }
        }
        let lost: Vec<_> = lines_before.difference(&lines_after).collect();
        assert!(lost.is_empty(), "lost {lost:?}");
        if !report.failed.is_empty() {
            let report = self.fixture.sync_with(MassDeletion::Allow).unwrap();
            assert_eq!(report.failed, []);
            self.fixture.assert_equal();
        }
        assert_eq!(self.fixture.sync(), [""; 0], "a second sync has nothing to do");
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn random_changes_on_both_sides_end_equal_and_lose_nothing() {
    let cases_count =
        std::env::var("QUIPU_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(30_u64);
    for seed in 0..cases_count {
        let mut case = Case { fixture: fixture(), numbers: Numbers(seed), lines_count: 0 };
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..12 {
                for _ in 0..case.numbers.below(5) {
                    case.change_folder();
                }
                for _ in 0..case.numbers.below(5) {
                    case.change_store();
                }
                case.sync();
            }
        }));
        assert!(ran.is_ok(), "case {seed} failed");
    }
}
