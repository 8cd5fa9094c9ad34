//! Redaction takes vectors along, also those that are just being made.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_core::model::VersionId;
use quipu_knowledge::{Knowledge, SearchMode};
use quipu_testkit::encoders::ConceptEncoder;
use quipu_testkit::knowledge::Library;
use quipu_vectors::quantized::Quantized;

use crate::shelf::actor;
use crate::vectors::{embed, encoder, paths, search, with_encoder};

const SECRET: &str = "the surgeon has the money at the beach house with the puppy";

/// Returns the bytes of the vector of the secret, as they are stored.
fn bytes() -> Vec<u8> {
    // The title in front of the passage is the name of the file.
    let vector = ConceptEncoder::vector(&format!("secret\n{SECRET}"));
    let vector = Quantized::new(&vector).expect("a vector");
    vector.values.iter().map(|value| value.cast_unsigned()).collect()
}

/// Returns the files that have the vector of the secret.
fn files_with_vector(library: &Library) -> Vec<String> {
    let wanted = bytes();
    let mut names = Vec::new();
    for entry in fs::read_dir(library.directory.path()).expect("a directory") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).expect("a file");
        if bytes.windows(wanted.len()).any(|window| window == wanted) {
            names.push(path.file_name().expect("a name").to_string_lossy().into_owned());
        }
    }
    names
}

fn library(notes: usize, encoder: &ConceptEncoder) -> Library {
    let library = with_encoder(&[], encoder);
    for number in 0..notes {
        library.put(&format!("/{number}.md"), &format!("tea {number} at home"));
    }
    library
}

fn redact(library: &Library, versions: &[VersionId]) {
    library.engine.redact(&actor(), library.store, versions).expect("it redacts");
}

fn assert_gone(library: &Library) {
    assert_eq!(files_with_vector(library), Vec::<String>::new());
    assert_eq!(library.engine.check().expect("it checks").problems, []);
    embed(&library.engine);
    assert_eq!(files_with_vector(library), Vec::<String>::new());
    let found = search(library, SearchMode::Vector, SECRET);
    assert!(!paths(&found).contains(&"/secret.md"));
}

#[test]
fn redaction_takes_vectors_along() {
    for notes in [0, 5, 300] {
        let library = library(notes, &encoder());
        let secret = library.put("/secret.md", SECRET).version;
        embed(&library.engine);
        assert_ne!(files_with_vector(&library), Vec::<String>::new());
        assert!(paths(&search(&library, SearchMode::Vector, SECRET)).contains(&"/secret.md"));
        library.put("/secret.md", "clean");
        redact(&library, &[secret]);
        assert_eq!(files_with_vector(&library), Vec::<String>::new());
        library.delete("/secret.md");
        assert_gone(&library);
    }
}

#[test]
fn redaction_of_a_deleted_memory_takes_vectors_along() {
    for is_indexed in [false, true] {
        let library = library(20, &encoder());
        let secret = library.put("/secret.md", SECRET).version;
        embed(&library.engine);
        library.delete("/secret.md");
        if is_indexed {
            library.find("tea");
        }
        redact(&library, &[secret]);
        assert_gone(&library);
    }
}

/// Vectors that were replaced by those of another model are in the file until they are removed.
#[test]
fn redaction_takes_vectors_of_an_earlier_model_along() {
    let library = library(20, &encoder());
    let secret = library.put("/secret.md", SECRET).version;
    embed(&library.engine);
    let other = Knowledge::new(library.engine.engine().clone(), library.directory.path());
    let other = other.with_encoder(Some(Arc::new(ConceptEncoder::new("others"))));
    other.embed_step(Duration::ZERO).expect("it steps");
    library.put("/secret.md", "clean");
    redact(&library, &[secret]);
    assert_eq!(files_with_vector(&library), Vec::<String>::new());
}

/// The encoder has read the text, and returns its vector after the redaction.
#[test]
fn a_vector_that_is_being_made_does_not_bring_the_secret_back() {
    for is_deleted in [false, true] {
        let encoder = encoder();
        let library = library(5, &encoder);
        embed(&library.engine);
        let secret = library.put("/secret.md", SECRET).version;
        let engine = library.engine.clone();
        let (store, is_done) = (library.store, AtomicBool::new(false));
        encoder.in_the_middle(move |texts| {
            if !texts.iter().any(|text| text.contains(SECRET))
                || is_done.swap(true, Ordering::Relaxed)
            {
                return;
            }
            let path = crate::shelf::at("/secret.md");
            if is_deleted {
                engine.delete_at(&actor(), store, &path).expect("it is deleted");
            } else {
                let content = quipu_core::model::Content::new("clean").expect("a text");
                let none = quipu_core::engine::Precondition::None;
                engine.put(&actor(), store, (&path, &content), none).expect("it is written");
            }
            engine.redact(&actor(), store, &[secret]).expect("it redacts");
        });
        library.engine.embed_step(Duration::from_mins(1)).expect("it steps");
        assert_eq!(files_with_vector(&library), Vec::<String>::new());
        if !is_deleted {
            library.delete("/secret.md");
        }
        assert_gone(&library);
    }
}

#[test]
fn a_removed_store_leaves_no_vectors_in_the_file() {
    let library = library(20, &encoder());
    library.put("/secret.md", SECRET);
    embed(&library.engine);
    assert_ne!(files_with_vector(&library), Vec::<String>::new());
    library.engine.delete_store(library.store).expect("it is deleted");
    library.engine.erase_store(library.store).expect("it is erased");
    assert_eq!(files_with_vector(&library), Vec::<String>::new());
}
