#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| quipu_fuzz::model(bytes));
