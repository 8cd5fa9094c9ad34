//! Directory listings, two levels deep, in the order and with the sizes of the SDK's tool.

use std::collections::BTreeMap;

use quipu_core::model::Listing;

use super::strings::{Strings, size};

/// The size of a directory. Directories are implied by their memories; this is what an empty one
/// takes on a disk.
pub(super) const DIRECTORY_SIZE_BYTES: u64 = 4096;

/// An entry of a directory.
enum Entry<'a> {
    File(u64),
    Directory(BTreeMap<&'a str, Entry<'a>>),
}

/// Returns a line `size<TAB>relative path` for everything that is shown, each level sorted by name.
///
/// `skipped_segments` is how deep the viewed directory itself lies.
pub(super) fn lines(items: &[Listing], skipped_segments: usize, strings: Strings) -> Vec<String> {
    let mut tree = BTreeMap::new();
    for item in items {
        let (path, size_bytes) = match item {
            Listing::Memory(memory) => (memory.path.as_str(), Some(memory.size_bytes)),
            Listing::Directory(directory) => (directory.as_str(), None),
        };
        let names: Vec<_> =
            path.split('/').filter(|name| !name.is_empty()).skip(skipped_segments).collect();
        add(&mut tree, &names, size_bytes);
    }
    let mut lines = Vec::new();
    write(&tree, "", strings, &mut lines);
    lines
}

fn add<'a>(level: &mut BTreeMap<&'a str, Entry<'a>>, names: &[&'a str], size_bytes: Option<u64>) {
    let [name, deeper @ ..] = names else { return };
    if deeper.is_empty()
        && let Some(size_bytes) = size_bytes
    {
        level.insert(name, Entry::File(size_bytes));
        return;
    }
    let entry = level.entry(name).or_insert_with(|| Entry::Directory(BTreeMap::new()));
    if let Entry::Directory(below) = entry {
        add(below, deeper, size_bytes);
    }
}

fn write(
    level: &BTreeMap<&str, Entry<'_>>,
    above: &str,
    strings: Strings,
    lines: &mut Vec<String>,
) {
    for (name, entry) in level {
        if is_left_out(name, strings) {
            continue;
        }
        match entry {
            Entry::File(size_bytes) => {
                lines.push(format!("{}\t{above}{name}", size(*size_bytes, strings)));
            }
            Entry::Directory(below) => {
                let path = format!("{above}{name}/");
                lines.push(format!("{}\t{path}", size(DIRECTORY_SIZE_BYTES, strings)));
                write(below, &path, strings, lines);
            }
        }
    }
}

fn is_left_out(name: &str, strings: Strings) -> bool {
    name.starts_with('.') || (strings == Strings::Doc && name == "node_modules")
}
