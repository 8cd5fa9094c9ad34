//! Checks at compile time that SQLite is built as Quipu needs it.
//!
//! `.cargo/config.toml` sets the flags, but Cargo reads it only when it runs inside the checkout. A
//! binary without them would commit more slowly, and could not prove that redacted text is gone.

const _: () = assert!(
    has("-DHAVE_FDATASYNC=1") && has("-DSQLITE_ENABLE_DBPAGE_VTAB=1"),
    "SQLite's build flags are missing: run cargo inside the checkout of Quipu, or set \
     LIBSQLITE3_FLAGS=\"-DHAVE_FDATASYNC=1 -DSQLITE_ENABLE_DBPAGE_VTAB=1\""
);

/// Returns whether SQLite was built with this flag.
const fn has(flag: &str) -> bool {
    let Some(flags) = option_env!("LIBSQLITE3_FLAGS") else { return false };
    let mut rest = flags.as_bytes();
    loop {
        if starts_with(rest, flag.as_bytes()) {
            return true;
        }
        rest = match rest {
            [_, rest @ ..] => rest,
            [] => return false,
        };
    }
}

const fn starts_with(mut text: &[u8], mut start: &[u8]) -> bool {
    while let [wanted, more @ ..] = start {
        match text {
            [byte, rest @ ..] if *byte == *wanted => (text, start) = (rest, more),
            _ => return false,
        }
    }
    true
}
