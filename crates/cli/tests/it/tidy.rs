//! The rules about the code itself that no lint knows.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::root;

const LINES_MAX: usize = 500;

/// Returns the files below a directory that end so, without what is built.
pub(crate) fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("the directory can be listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | ".git" | "node_modules") {
                found.extend(files(&path, ending));
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_file_is_longer_than_500_lines_without_its_tests() {
    for file in files(root(), ".rs") {
        let text = fs::read_to_string(&file).expect("it can be read");
        let lines_count = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        assert!(is_test || lines_count <= LINES_MAX, "{}: {lines_count} lines", file.display());
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for file in files(root(), ".md") {
        let text = fs::read_to_string(&file).expect("it can be read");
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets {
            let path = target.split('#').next().unwrap_or_default();
            let is_local = !path.is_empty() && !path.contains("://") && !path.contains(' ');
            let directory = file.parent().expect("a file has a directory");
            assert!(
                !is_local || directory.join(path).exists(),
                "{}: `{target}` leads nowhere",
                file.display()
            );
        }
    }
}

#[test]
fn decisions_are_numbered_without_gaps_and_listed() {
    let directory = root().join("docs/decisions");
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut names: Vec<_> = files(&directory, ".md").iter().map(name).collect();
    names.retain(|name| name != "README.md");
    names.sort_unstable();
    let list = fs::read_to_string(directory.join("README.md")).expect("it can be read");
    for (number, name) in (1..).zip(&names) {
        assert!(name.starts_with(&format!("{number:04}-")), "{name} is number {number}");
        let page = fs::read_to_string(directory.join(name)).expect("it can be read");
        let title = page.lines().next().and_then(|line| line.strip_prefix("# "));
        let entry = format!("\n{number}. [{}]({name})\n", title.expect("a title"));
        assert!(list.contains(&entry), "the list lacks {entry}");
    }
}

#[test]
fn the_lock_file_stays_small() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("it can be read");
    let packages_count = lock.matches("\n[[package]]").count();
    assert!(packages_count <= 330, "{packages_count} packages");
}

#[test]
fn core_knows_nothing_of_the_outside() {
    let dependencies = dependencies("core");
    for forbidden in ["serde", "tokio", "rusqlite", "axum"] {
        assert!(
            !dependencies.iter().any(|it| it.starts_with(forbidden)),
            "core depends on `{forbidden}`"
        );
    }
    let ours: Vec<_> = dependencies.iter().filter(|it| it.starts_with("quipu-")).collect();
    assert_eq!(ours, ["quipu-screen"]);
}

#[test]
fn pure_crates_depend_on_none_of_ours() {
    for name in ["notes", "screen", "pages"] {
        let dependencies = dependencies(name);
        assert!(
            !dependencies.iter().any(|it| it.starts_with("quipu-")),
            "{name}: {dependencies:?}"
        );
    }
}

#[test]
fn http_and_mcp_do_not_depend_on_each_other() {
    for (name, other) in [("server", "quipu-mcp"), ("mcp", "quipu-server"), ("mcp", "axum")] {
        assert!(!dependencies(name).iter().any(|it| it == other), "{name} depends on `{other}`");
    }
    for (name, protocol) in [("server", "rmcp"), ("service", "axum"), ("service", "rmcp")] {
        assert!(!dependencies(name).iter().any(|it| it == protocol), "{name} knows `{protocol}`");
    }
}

/// Returns the names of what a crate depends on outside of its tests.
fn dependencies(name: &str) -> Vec<String> {
    let path = root().join("crates").join(name).join("Cargo.toml");
    let manifest = fs::read_to_string(path).expect("it can be read");
    let section = manifest.split("[dependencies]\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
