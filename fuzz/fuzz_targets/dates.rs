#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| quipu_fuzz::dates(text));
