//! `quipu mount --store STORE@MOMENT`: stores as they were, and archived stores, which stay as they are.

use quipu_core::Moment;
use quipu_core::engine::Past;
use quipu_core::model::{Access, Store, slug};
use quipu_mount::{NameRules, StoreMount, Tree, TreeSettings};

use crate::args::PastArguments;
use crate::context::Data;
use crate::failure::Failure;
use crate::print::note;

/// What the command line names: stores that a session can write, and stores that nobody can.
#[derive(Default)]
pub(super) struct Selection {
    /// As written, such as `notes:ro`.
    pub(super) present: Vec<String>,
    pub(super) fixed: Vec<FixedStore>,
}

/// A store as it was, or an archived one. No session can be attached to either.
pub(super) struct FixedStore {
    pub(super) store: Store,
    /// `None` for an archived store.
    pub(super) past: Option<Past>,
    /// The name of its directory.
    pub(super) directory: String,
}

/// Returns what the command line names. `--at` is for all stores that are named without a moment.
pub(super) fn selection(data: &Data, arguments: &PastArguments) -> Result<Selection, Failure> {
    let at = arguments.at.as_ref();
    let (mut selection, mut attached) = (Selection::default(), Vec::new());
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
        if let Some((store, moment)) = past {
            selection.fixed.push(past_store(data, store, &moment)?);
            continue;
        }
        let store = data.find_store(name)?;
        let directory = slug(&store.name);
        if store.archived_at.is_some() {
            selection.fixed.push(FixedStore { store, past: None, directory });
        } else {
            selection.present.push(text.clone());
            attached.push(directory);
        }
    }
    if let (Some(at), true) = (at, data.named.is_empty()) {
        selection.fixed.push(past_store(data, data.store()?, at)?);
    }
    let max = data.engine.limits().stores_per_session_max;
    if selection.fixed.len() > max {
        return Err(Failure::usage(format!(
            "at most {max} past states and archived stores can be mounted at once"
        )));
    }
    // Those of a session are numbered if they are alike.
    attached.sort_unstable();
    attached.dedup();
    let fixed = selection.fixed.iter().map(|fixed| fixed.directory.as_str());
    let mut names: Vec<_> = attached.iter().map(String::as_str).chain(fixed).collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.array_windows().find(|[one, other]| one == other) {
        return Err(Failure::usage(format!("two stores would be mounted as `{twice}`"))
            .with_hint("mount each under a `--root` of its own"));
    }
    Ok(selection)
}

fn past_store(data: &Data, store: Store, moment: &str) -> Result<FixedStore, Failure> {
    let parsed = Moment::parse(moment, data.engine.now())?;
    let past = data.engine.moment(store.id, &parsed)?;
    let directory = format!("{}@{}", slug(&store.name), file_name(moment));
    Ok(FixedStore { store, past: Some(past), directory })
}

/// Returns a moment as part of a file name that needs no quotes in a shell.
fn file_name(moment: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '#' | '+');
    moment.trim().chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// Returns the tree of a store that nobody can write, and points out what is missing from it.
pub(super) fn fixed_mount(
    data: &Data,
    fixed: &FixedStore,
    names: NameRules,
) -> Result<StoreMount, Failure> {
    let settings = TreeSettings {
        store: fixed.store.id,
        actor: data.actor.clone(),
        access: Access::ReadOnly,
        names,
    };
    let engine = data.engine.engine();
    let (tree, invalidations) = match &fixed.past {
        Some(past) => Tree::at(engine, past, settings)?,
        None => Tree::new(engine.clone(), settings)?,
    };
    if fixed.past.is_some() && tree.notice()?.is_some() {
        let name = &fixed.directory;
        note(&format!("something is missing from `{name}`: see `{name}/.quipu/notice.md`"));
    }
    Ok(StoreMount { name: fixed.directory.clone(), tree, invalidations })
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
