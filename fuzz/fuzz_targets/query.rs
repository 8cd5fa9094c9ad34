//! Any text is a query.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_notes::query::{Query, TERMS_MAX};

fuzz_target!(|text: &str| {
    let query = Query::parse(text);
    assert!(query.terms().len() <= TERMS_MAX);
});
