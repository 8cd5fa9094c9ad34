//! The three-way merge beside git's, on texts whose lines are all different, where there is only
//! one right way to compare them.

use std::fs;
use std::path::Path;
use std::process::Command;

use quipu_core::merge::{Merged, merge};

const CASES_COUNT: u64 = 150;

/// A small generator of numbers, so that every run tests the same texts.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn merges_agree_with_git() {
    let directory = std::env::temp_dir().join(format!("quipu-merge-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let mut clean_count = 0;
    for case in 0..CASES_COUNT {
        let mut numbers = Numbers(case);
        let base: Vec<String> = (0..numbers.below(20)).map(|n| format!("line {n}\n")).collect();
        let ours = edited(&base, "ours", &mut numbers);
        let theirs = edited(&base, "theirs", &mut numbers);
        let base = base.concat();
        let expected = merged_by_git(&directory, [&ours, &base, &theirs]);
        clean_count += u64::from(expected.is_some());
        let merged = match merge(&base, &ours, &theirs) {
            Merged::Clean(text) => Some(text),
            Merged::Conflicted(_) => None,
        };
        assert_eq!(merged, expected, "case {case}: {base:?} {ours:?} {theirs:?}");
    }
    fs::remove_dir_all(&directory).unwrap();
    assert!((20..CASES_COUNT - 20).contains(&clean_count), "{clean_count} clean merges");
}

fn edited(base: &[String], who: &str, numbers: &mut Numbers) -> String {
    let mut lines = Vec::new();
    for line in base {
        match numbers.below(12) {
            0 => {}
            1 => lines.push(format!("{who} instead of {line}")),
            2 => lines.extend([line.clone(), format!("{who} after {line}")]),
            // Sometimes both sides do the same.
            3 => lines.push(format!("instead of {line}")),
            _ => lines.push(line.clone()),
        }
    }
    let text = lines.concat();
    match numbers.below(5) {
        0 => text.trim_end().to_owned(),
        _ => text,
    }
}

fn merged_by_git(directory: &Path, texts: [&str; 3]) -> Option<String> {
    let names = ["ours", "base", "theirs"];
    for (name, text) in names.iter().zip(texts) {
        fs::write(directory.join(name), text).unwrap();
    }
    let output = Command::new("git")
        .args(["merge-file", "-p", "-q"])
        .args(names)
        .current_dir(directory)
        .output()
        .unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}
