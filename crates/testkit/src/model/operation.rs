//! Random operations.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// One thing to do. Numbers choose among what there is at that moment, wrapping around.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Creates a memory.
    Create {
        /// Where.
        path: &'static str,
        /// With which text.
        text: &'static str,
    },
    /// Creates a memory or changes its text.
    Put {
        /// Where.
        path: &'static str,
        /// With which text.
        text: &'static str,
    },
    /// Changes a memory that exists or existed.
    Update {
        /// Which memory.
        memory: usize,
        /// The new text, if any.
        text: Option<&'static str>,
        /// The new path, if any.
        path: Option<&'static str>,
        /// The text that the memory must have before, if any.
        expected: Option<&'static str>,
    },
    /// Appends to a memory inside one transaction.
    Append {
        /// Where.
        path: &'static str,
        /// What.
        text: &'static str,
    },
    /// Moves a memory or a directory.
    Rename {
        /// From where.
        from: &'static str,
        /// To where.
        to: &'static str,
    },
    /// Deletes a memory that exists or existed.
    Delete {
        /// Which memory.
        memory: usize,
        /// The text that the memory must have before, if any.
        expected: Option<&'static str>,
    },
    /// Deletes a memory or a directory.
    DeleteAt {
        /// Where.
        path: &'static str,
    },
    /// Writes an old version again.
    Restore {
        /// Which version.
        version: usize,
        /// To another path, if any.
        to: Option<&'static str>,
    },
    /// Redacts a version.
    Redact {
        /// Which version.
        version: usize,
    },
    /// Gives up old versions.
    Prune,
    /// Moves the clock, also back.
    PassDays {
        /// How many days.
        days: i8,
    },
    /// Archives the store permanently.
    Archive,
    /// Opens the data again, as after a crash.
    Reopen,
}

const PATHS: [&str; 8] = ["/a", "/a/b", "/a/b/c", "/a/d", "/a.md", "/b", "/b/c", "/é"];
const TEXTS: [&str; 5] = ["", "one\n", "two", "three\nlines\nhere\n", "far too long for the limit"];

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&PATHS[..])
}

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&TEXTS[..])
}

/// Returns lists of up to `count_max` operations.
pub fn operations(count_max: usize) -> impl Strategy<Value = Vec<Operation>> {
    vec(operation(), 1..=count_max)
}

fn operation() -> impl Strategy<Value = Operation> {
    let any_memory = || any::<usize>();
    prop_oneof![
        8 => (path(), text()).prop_map(|(path, text)| Operation::Create { path, text }),
        8 => (path(), text()).prop_map(|(path, text)| Operation::Put { path, text }),
        8 => (any_memory(), option::of(text()), option::of(path()), option::of(text()))
            .prop_map(|(memory, text, path, expected)| {
                Operation::Update { memory, text, path, expected }
            }),
        4 => (path(), text()).prop_map(|(path, text)| Operation::Append { path, text }),
        6 => (path(), path()).prop_map(|(from, to)| Operation::Rename { from, to }),
        3 => (any_memory(), option::of(text()))
            .prop_map(|(memory, expected)| Operation::Delete { memory, expected }),
        3 => path().prop_map(|path| Operation::DeleteAt { path }),
        5 => (any::<usize>(), option::of(path()))
            .prop_map(|(version, to)| Operation::Restore { version, to }),
        3 => any::<usize>().prop_map(|version| Operation::Redact { version }),
        2 => Just(Operation::Prune),
        2 => (-5_i8..40).prop_map(|days| Operation::PassDays { days }),
        1 => prop::bool::weighted(0.1).prop_map(|archive| {
            if archive { Operation::Archive } else { Operation::Prune }
        }),
        1 => Just(Operation::Reopen),
    ]
}
