use std::fs;

use tempfile::TempDir;

use super::*;
use crate::fixture;

fn installed(write: impl FnOnce(&Path)) -> (TempDir, LocalEncoder) {
    let directory = TempDir::new().unwrap();
    write(directory.path());
    let manifest = Manifest::of(directory.path(), "a test").unwrap();
    manifest.write(directory.path()).unwrap();
    let encoder = LocalEncoder::open(directory.path()).unwrap();
    assert_eq!(*encoder.manifest(), manifest);
    (directory, encoder)
}

fn write_bert(directory: &Path) {
    fixture::write_bert(directory);
}

fn similarity(encoder: &LocalEncoder, left: &str, right: &str) -> f32 {
    let vectors = encoder.encode(Purpose::Question, &[left, right]).unwrap();
    vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum()
}

#[test]
fn what_means_the_same_is_near() {
    let (_kept, encoder) = installed(fixture::write_table);
    assert_eq!((encoder.dimensions(), encoder.manifest().kind), (4, Kind::Model2Vec));
    assert!(similarity(&encoder, "tea", "cups") > similarity(&encoder, "tea", "car"));
    assert!((similarity(&encoder, "wheel", "car") - 1.0).abs() < 1e-6);
}

#[test]
fn vectors_have_length_one_unless_nothing_is_known() {
    for (_kept, encoder) in [installed(fixture::write_table), installed(write_bert)] {
        assert!((similarity(&encoder, "green tea", "green tea") - 1.0).abs() < 1e-6);
        assert!(similarity(&encoder, "", "").abs() < 1e-6);
        assert!(encoder.encode(Purpose::Memory, &[]).unwrap().is_empty());
    }
    let (_kept, encoder) = installed(fixture::write_table);
    assert!(similarity(&encoder, "xyz", "xyz").abs() < 1e-6);
}

#[test]
fn the_identity_is_that_of_the_files() {
    let (_first, first) = installed(fixture::write_table);
    let (_second, second) = installed(fixture::write_table);
    let (_other, other) = installed(write_bert);
    assert_eq!(first.identity(), second.identity());
    assert_ne!(first.identity(), other.identity());
    assert!(first.identity().starts_with("model2vec:"));
}

#[test]
fn opening_reads_no_weights() {
    let (directory, encoder) = installed(write_bert);
    let path = directory.path().join(WEIGHTS);
    let size_bytes = fs::metadata(&path).unwrap().len();
    fs::write(&path, vec![0xff; usize::try_from(size_bytes).unwrap()]).unwrap();
    let reopened = LocalEncoder::open(directory.path()).unwrap();
    assert_eq!(reopened.identity(), encoder.identity());
    let first = reopened.encode(Purpose::Question, &["tea"]).unwrap_err();
    assert!(first.to_string().contains("broken"), "{first}");
    // The failure stays, without another look at the file.
    fs::remove_file(&path).unwrap();
    assert_eq!(reopened.encode(Purpose::Question, &["tea"]).unwrap_err(), first);
}

#[test]
fn changed_files_are_named() {
    let (directory, encoder) = installed(fixture::write_table);
    assert!(encoder.manifest().changed_files(directory.path()).unwrap().is_empty());
    let path = directory.path().join(WEIGHTS);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(encoder.manifest().changed_files(directory.path()).unwrap(), [WEIGHTS]);
    bytes.pop();
    fs::write(&path, &bytes).unwrap();
    let error = LocalEncoder::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("has changed"), "{error}");
}

/// Asserts that a model is refused after a change, with these words.
fn check_refused(change: impl Fn(&Path), expected: &str) {
    for write in [fixture::write_table as fn(&Path), write_bert] {
        let directory = TempDir::new().unwrap();
        write(directory.path());
        change(directory.path());
        let error = Manifest::of(directory.path(), "a test").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn weights_cut_off_anywhere_are_refused() {
    let directory = TempDir::new().unwrap();
    fixture::write_table(directory.path());
    let path = directory.path().join(WEIGHTS);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let error = Manifest::of(directory.path(), "a test").unwrap_err().to_string();
        assert!(error.contains("the file of weights is broken"), "{length}: {error}");
    }
}

#[test]
fn weights_with_nan_are_refused() {
    let change = |directory: &Path| {
        let path = directory.join(WEIGHTS);
        let mut bytes = fs::read(&path).unwrap();
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
        fs::write(&path, bytes).unwrap();
    };
    check_refused(change, "NaN");
}

#[test]
fn broken_parts_are_refused_by_name() {
    let write = |name: &'static str, bytes: &'static [u8]| {
        move |directory: &Path| fs::write(directory.join(name), bytes).unwrap()
    };
    check_refused(write(WEIGHTS, b""), "weights");
    check_refused(write(WEIGHTS, &[0xff; 64]), "header is too large");
    check_refused(write(WEIGHTS, b"\x02\0\0\0\0\0\0\0[]"), "weights");
    check_refused(write(WEIGHTS, b"\x02\0\0\0\0\0\0\0{}"), "no supported kind");
    check_refused(write(TOKENIZER, b"{"), "tokenizer");
    let remove = |directory: &Path| fs::remove_file(directory.join(TOKENIZER)).unwrap();
    check_refused(remove, "tokenizer");
}

#[test]
fn headers_that_lie_are_refused() {
    let entries = [
        (r#"{"dtype":"F32","shape":[10,4],"data_offsets":[0,16]}"#, "shape"),
        (r#"{"dtype":"F32","shape":[1,4],"data_offsets":[16,0]}"#, "begins"),
        (r#"{"dtype":"F32","shape":[1,4],"data_offsets":[16,32]}"#, "beyond the end"),
        (
            r#"{"dtype":"F32","shape":[1,4],"data_offsets":[18446744073709551599,18446744073709551615]}"#,
            "beyond",
        ),
        (r#"{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,16]}"#, "shape"),
        (r#"{"dtype":"F32","shape":[4],"data_offsets":[0,16]}"#, "wrong shape"),
        (r#"{"dtype":"U3","shape":[1,4],"data_offsets":[0,16]}"#, "number type"),
        (r#"{"dtype":"F32","shape":[1,4],"data_offsets":[0,16]}"#, "more tokens"),
    ];
    for (entry, expected) in entries {
        let directory = TempDir::new().unwrap();
        fixture::write_table(directory.path());
        let header = format!("{{\"embeddings\":{entry}}}");
        let mut bytes = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend([0; 16]);
        fs::write(directory.path().join(WEIGHTS), bytes).unwrap();
        let error = Manifest::of(directory.path(), "a test").unwrap_err().to_string();
        assert!(error.contains(expected), "{entry}: {error}");
    }
}

#[test]
fn tokens_can_share_rows_and_count_differently() {
    let directory = TempDir::new().unwrap();
    fixture::write_table(directory.path());
    let count = fixture::VOCABULARY.len();
    // All tokens but `tea` share the first row.
    let mapping = fixture::VOCABULARY.iter().map(|word| f32::from(u8::from(*word == "tea")));
    let importance = fixture::VOCABULARY.iter().map(|word| if *word == "tea" { 3.0 } else { 1.0 });
    let mut tensors = vec![
        ("embeddings".to_owned(), vec![2, 2], vec![1.0, 0.0, 0.0, 1.0]),
        ("mapping".to_owned(), vec![count], mapping.collect()),
        ("weights".to_owned(), vec![count], importance.collect()),
    ];
    fixture::write_weights(directory.path(), &tensors);
    let loaded = Loaded::open(directory.path(), Kind::Model2Vec).unwrap();
    let Loaded::Table(table) = loaded else { panic!("it is a table") };
    assert_eq!(table.encode("green tea").unwrap(), [1.0, 3.0]);

    tensors[1].2[0] = 2.0;
    fixture::write_weights(directory.path(), &tensors);
    let error = Loaded::open(directory.path(), Kind::Model2Vec).unwrap_err().to_string();
    assert!(error.contains("row that the table lacks"), "{error}");
}
