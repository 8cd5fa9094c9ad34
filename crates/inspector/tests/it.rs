//! The pages of the inspector as a visitor gets them, over an engine in memory.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod it {
    mod edit;
    mod memory;
    mod store;
    mod support;
}
