//! The document and the tests name the same promises.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../docs/mount.md");

/// Returns a heading as the name of a test.
fn test_name(heading: &str) -> String {
    let lower = heading.trim().to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

#[test]
fn the_document_and_the_tests_agree() {
    let promised: BTreeSet<_> =
        DOCUMENT.lines().filter_map(|line| line.strip_prefix("### ")).map(test_name).collect();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mount");
    let mut tested = BTreeSet::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() == "promises.rs" {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let tests = text.split("#[test]\nfn ").skip(1);
        tested.extend(tests.filter_map(|test| Some(test.split_once('(')?.0.to_owned())));
    }
    let difference: Vec<_> = promised.symmetric_difference(&tested).collect();
    assert!(difference.is_empty(), "only in one of the two: {difference:#?}");
    assert!(promised.len() > 40);
}
