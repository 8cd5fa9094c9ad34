//! Random calls on the tree, compared with a naive tree of files after each.

use std::collections::BTreeMap;

use quipu_mount::TreeError;

use crate::support::{EMPTY, Fixture, ME, READ, fixture};

/// A generator that needs no crate: the same numbers for the same seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// Files with their texts; directories have none.
type Model = BTreeMap<String, Option<String>>;

/// Few names, so that calls meet. Some are special.
const NAMES: [&str; 7] = ["a", "b", "d", "e", "a~", "a.tmp", "a.bak"];

fn some_path(dice: &mut Dice) -> String {
    let mut path = format!("/{}", NAMES[dice.roll(NAMES.len())]);
    if dice.roll(2) == 0 {
        path += &format!("/{}", NAMES[dice.roll(NAMES.len())]);
    }
    path
}

fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
}

fn has_parent(model: &Model, path: &str) -> bool {
    parent(path).is_none_or(|parent| model.get(parent) == Some(&None))
}

fn has_children(model: &Model, path: &str) -> bool {
    model.keys().any(|other| parent(other) == Some(path))
}

fn write(fixture: &Fixture, model: &mut Model, path: &str, text: &str) {
    let is_allowed = has_parent(model, path) && model.get(path) != Some(&None);
    let written = fixture.write(path, text.as_bytes());
    assert_eq!(written.is_ok(), is_allowed, "write {path}: {written:?}");
    if is_allowed {
        model.insert(path.to_owned(), Some(text.to_owned()));
    }
}

fn rename(fixture: &Fixture, model: &mut Model, from: &str, to: &str) {
    let fits = match (model.get(from), model.get(to)) {
        (Some(_), _) if from == to => true,
        (Some(None), Some(None)) => !has_children(model, to),
        (Some(None), None) | (Some(Some(_)), None | Some(Some(_))) => has_parent(model, to),
        (None, _) | (Some(None), Some(Some(_))) | (Some(Some(_)), Some(None)) => false,
    };
    let allowed = fits && !to.starts_with(&format!("{from}/"));
    let renamed = fixture.rename(from, to);
    assert_eq!(renamed.is_ok(), allowed, "rename {from} {to}: {renamed:?}");
    if !allowed || from == to {
        return;
    }
    let moved: Vec<_> = model
        .keys()
        .filter(|path| *path == from || path.starts_with(&format!("{from}/")))
        .cloned()
        .collect();
    for path in moved {
        let value = model.remove(&path).unwrap();
        model.insert(path.replacen(from, to, 1), value);
    }
}

fn remove(fixture: &Fixture, model: &mut Model, path: &str) {
    let done = match model.get(path) {
        Some(None) => (fixture.remove_directory(path), !has_children(model, path)),
        Some(Some(_)) => (fixture.remove(path), true),
        None => (fixture.remove(path), false),
    };
    assert_eq!(done.0.is_ok(), done.1, "remove {path}: {:?}", done.0);
    if done.1 {
        model.remove(path);
    }
}

fn assert_equal(fixture: &Fixture, model: &Model, when: &str) {
    let names = |directory: &str| {
        let here = |path: &&String| parent(path).unwrap_or_default() == directory;
        let name = |path: &String| path.rsplit('/').next().unwrap().to_owned();
        model.keys().filter(here).map(name).collect::<Vec<_>>()
    };
    assert_eq!(fixture.list("/"), names(""), "{when}");
    for (path, value) in model {
        match value {
            None => assert_eq!(fixture.list(path), names(path), "{path} {when}"),
            Some(text) => {
                assert_eq!(fixture.text(path).as_deref(), Some(text.as_str()), "{path} {when}");
            }
        }
    }
}

fn run(seed: u64, steps_count: usize) {
    let (fixture, mut model, mut dice) = (fixture(), Model::new(), Dice(seed));
    for step in 0..steps_count {
        let (path, other) = (some_path(&mut dice), some_path(&mut dice));
        let call = dice.roll(8);
        match call {
            0..=2 => write(&fixture, &mut model, &path, &format!("text {step}")),
            3 => {
                let is_allowed = has_parent(&model, &path) && !model.contains_key(&path);
                let made = fixture.make_directory(&path);
                assert_eq!(made.is_ok(), is_allowed, "mkdir {path}: {made:?}");
                if is_allowed {
                    model.insert(path, None);
                }
            }
            4 | 5 => rename(&fixture, &mut model, &path, &other),
            6 => remove(&fixture, &mut model, &path),
            _ => {
                fixture.clock.advance(std::time::Duration::from_millis(700));
                fixture.tree.settle_due();
                fixture.follow();
            }
        }
        assert_equal(&fixture, &model, &format!("seed {seed}, step {step}"));
    }
    fixture.tree.close();
    assert_equal(&fixture, &model, &format!("seed {seed}, at the end"));
    assert_stored(&fixture, &model);
}

/// What has an ordinary name is stored as it is shown, and nothing else is.
fn assert_stored(fixture: &Fixture, model: &Model) {
    let is_scratch = |path: &str| ["/a~", "/a.tmp"].iter().any(|name| path.ends_with(name));
    let expected: BTreeMap<_, _> = model
        .iter()
        .filter(|(path, _)| !is_scratch(path))
        .filter_map(|(path, text)| Some((path.clone(), text.clone()?)))
        .collect();
    let mut stored = BTreeMap::new();
    for version in fixture.versions() {
        stored.retain(|_, (memory, _)| *memory != version.memory);
        if let (Some(path), Some(content)) = (version.path, version.content) {
            stored.insert(path.to_string(), (version.memory, content.as_str().to_owned()));
        }
    }
    let stored: BTreeMap<_, _> = stored.into_iter().map(|(path, (_, text))| (path, text)).collect();
    assert_eq!(stored, expected);
}

/// Returns how many lists of calls to try; `QUIPU_CASES` asks for more.
#[expect(clippy::disallowed_methods, reason = "settings of tests are not settings of Quipu")]
pub(crate) fn cases_count() -> u64 {
    std::env::var("QUIPU_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(12)
}

#[test]
fn random_calls_match_plain_files() {
    for seed in 0..cases_count() {
        run(seed, 200);
    }
}

#[test]
fn an_unknown_handle_is_refused() {
    let fixture = fixture();
    assert_eq!(fixture.tree.write(99, 0, b"x", ME), Err(TreeError::BadHandle));
    assert_eq!(fixture.tree.flush(99, ME), Err(TreeError::BadHandle));
    let handle = fixture.open("/a", EMPTY).unwrap();
    fixture.close(handle).unwrap();
    let reader = fixture.open("/a", READ).unwrap();
    assert_eq!(fixture.tree.write(reader, 0, b"x", ME), Err(TreeError::BadHandle));
}
