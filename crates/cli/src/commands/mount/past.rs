//! `quipu mount --store STORE@MOMENT`: stores as they were.

use quipu_core::engine::Past;
use quipu_core::model::{Access, Store, slug};
use quipu_core::{Moment, moment};
use quipu_mount::{NameRules, StoreMount, Tree, TreeSettings};

use crate::context::Data;
use crate::failure::Failure;
use crate::print::note;

/// What the command line names: stores as they are, and stores as they were.
#[derive(Default)]
pub(super) struct Selection {
    /// As written, such as `notes:ro`.
    pub(super) present: Vec<String>,
    pub(super) past: Vec<PastStore>,
}

/// A store as it was.
pub(super) struct PastStore {
    pub(super) store: Store,
    pub(super) past: Past,
    /// The name of its directory.
    pub(super) directory: String,
}

/// Returns what the command line names.
pub(super) fn selection(data: &Data) -> Result<Selection, Failure> {
    let mut selection = Selection::default();
    for text in &data.named {
        let name = text.strip_suffix(":ro").unwrap_or(text);
        // A store may have an `@` in its name.
        match moment::split(name) {
            (store, Some(moment)) if data.find_store(name).is_err() => {
                selection.past.push(past_store(data, store, moment)?);
            }
            (_, Some(_) | None) => selection.present.push(text.clone()),
        }
    }
    let max = data.engine.limits().stores_per_session_max;
    if selection.past.len() > max {
        return Err(Failure::usage(format!("at most {max} past states can be mounted at once")));
    }
    let mut names: Vec<_> = selection.past.iter().map(|past| past.directory.as_str()).collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.array_windows().find(|[one, other]| one == other) {
        return Err(Failure::usage(format!("two stores would be mounted as `{twice}`"))
            .with_hint("mount each under a `--root` of its own"));
    }
    Ok(selection)
}

fn past_store(data: &Data, store: &str, moment: &str) -> Result<PastStore, Failure> {
    if let Some(moment) = moment.strip_suffix(":rw") {
        return Err(Failure::usage("the past of a store is read-only").with_hint(format!(
            "mount `{store}@{moment}` to read it; `quipu restore` brings old versions back"
        )));
    }
    let store = data.find_store(store)?;
    let parsed = Moment::parse(moment, data.engine.now())?;
    let past = data.engine.moment(store.id, &parsed)?;
    let directory = format!("{}@{}", slug(&store.name), file_name(moment));
    Ok(PastStore { store, past, directory })
}

/// Returns a moment as part of a file name that needs no quotes in a shell.
fn file_name(moment: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '#' | '+');
    moment.trim().chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// Returns the tree of a store as it was, and points out what is missing from it.
pub(super) fn past_mount(
    data: &Data,
    past: &PastStore,
    names: NameRules,
) -> Result<StoreMount, Failure> {
    let settings = TreeSettings {
        store: past.store.id,
        actor: data.actor.clone(),
        access: Access::ReadOnly,
        names,
    };
    let (tree, invalidations) = Tree::at(data.engine.engine(), &past.past, settings)?;
    if tree.notice()?.is_some() {
        let name = &past.directory;
        note(&format!("`{name}` is not complete; see `{name}/.quipu/notice.md`"));
    }
    Ok(StoreMount { name: past.directory.clone(), tree, invalidations })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_plain_file_names() {
        assert_eq!(file_name("2026-11-01"), "2026-11-01");
        assert_eq!(file_name(" yesterday 14:00 "), "yesterday-14:00");
        assert_eq!(file_name("#12"), "#12");
        assert_eq!(file_name("2026-11-01T12:00:00+01:00"), "2026-11-01T12:00:00+01:00");
        assert_eq!(file_name("a/../b"), "a-..-b");
    }
}
