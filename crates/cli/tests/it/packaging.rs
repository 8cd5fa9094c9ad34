//! What a plain `cargo` command builds, installs and tests in a clone.

use std::fs;
use std::process::Command;

use crate::support::root;

fn manifest() -> toml::Table {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("it can be read");
    text.parse().expect("the manifest is TOML")
}

/// `cargo build` and `cargo run` build every default member, needed or not.
#[test]
fn only_what_users_run_is_built_by_default() {
    let manifest = manifest();
    let members = manifest["workspace"]["default-members"].as_array().expect("a list");
    let members: Vec<_> = members.iter().filter_map(toml::Value::as_str).collect();
    assert!(members.contains(&"crates/cli"), "{members:?}");
    for left_out in ["crates/testkit", "bench"] {
        assert!(!members.contains(&left_out), "{members:?}");
    }
}

/// Symbols make the binary that `cargo install --path crates/cli` leaves six times as large.
#[test]
fn releases_are_stripped_and_profiles_keep_line_numbers() {
    let manifest = manifest();
    let profile = |name: &str, key: &str| manifest["profile"][name][key].as_str().unwrap_or("");
    assert_eq!(profile("release", "strip"), "symbols");
    assert_eq!(profile("profiling", "inherits"), "release");
    assert_eq!(profile("profiling", "strip"), "none");
    assert_eq!(profile("profiling", "debug"), "line-tables-only");
}

/// Cargo cannot list the tests of another target as ignored, so this one stands for them: a plain
/// `cargo test` then says that they exist and how to run them.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs root, /dev/fuse and many tools; run `./test mount exercise`"]
fn the_tests_on_a_real_mount_pass() {
    let status = Command::new(root().join("test")).args(["mount", "exercise"]).status();
    assert!(status.expect("`./test` starts").success());
}

/// The same for the tests over PostgreSQL.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs an installed PostgreSQL; run `./test postgres`"]
fn the_tests_over_postgresql_pass() {
    let status = Command::new(root().join("test")).arg("postgres").status();
    assert!(status.expect("`./test` starts").success());
}
