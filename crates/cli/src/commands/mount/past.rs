//! `quipu mount --store STORE@MOMENT`: stores as they were.

use quipu_core::Moment;
use quipu_core::engine::Past;
use quipu_core::model::{Access, Store, slug};
use quipu_mount::{NameRules, StoreMount, Tree, TreeSettings};

use crate::args::PastArguments;
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

/// Returns what the command line names. `--at` is for all stores that are named without a moment.
pub(super) fn selection(data: &Data, arguments: &PastArguments) -> Result<Selection, Failure> {
    let at = arguments.at.as_ref();
    let mut selection = Selection::default();
    for text in &data.named {
        let name = text.strip_suffix(":ro").unwrap_or(text);
        let past = match (data.store_and_moment(name)?, at) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage("give the moment once: `--at`, or after `@`"));
            }
            (Some(_), None) | (None, Some(_)) if text.ends_with(":rw") => {
                return Err(Failure::usage("the past of a store is read-only").with_hint(
                    "mount it without `:rw`; `quipu restore` brings old versions back",
                ));
            }
            (Some(named), None) => Some(named),
            (None, Some(at)) => Some((data.find_store(name)?, at.clone())),
            (None, None) => None,
        };
        match past {
            Some((store, moment)) => selection.past.push(past_store(data, store, &moment)?),
            None => selection.present.push(text.clone()),
        }
    }
    if let (Some(at), true) = (at, data.named.is_empty()) {
        selection.past.push(past_store(data, data.store()?, at)?);
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

fn past_store(data: &Data, store: Store, moment: &str) -> Result<PastStore, Failure> {
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
        note(&format!("something is missing from `{name}`: see `{name}/.quipu/notice.md`"));
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
