//! Reverts of random histories against a reference that replays what the others did, line by line.
//!
//! Every line that is written is unique and names its author, so lines can be followed through a history.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;
use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::engine::{Action, Approval, CarriedOut, ChangeSelection, Goal, ListQuery};
use quipu_core::model::{
    Actor, Directory, Listing, MemoryId, MemoryPath, Operation, PrincipalName, Reason, Version,
    View,
};
use quipu_core::{Error, ErrorKind};

use crate::support::{Fixture, content, fixture, path};

const AUTHORS: [&str; 3] = ["ada", "bob", "rogue"];
/// They overlap, so that paths are often taken.
const PATHS: [&str; 6] = ["/a", "/b", "/c", "/d", "/d/x", "/d/y"];

#[derive(Clone, Debug)]
enum Deed {
    Create(usize),
    Replace(usize, usize),
    Insert(usize, usize),
    Remove(usize, usize),
    Move(usize, usize),
    Delete(usize),
    /// The number of a version, counted from the first.
    Restore(usize),
}

fn deed() -> impl Strategy<Value = (usize, Deed)> {
    let place = 0..PATHS.len();
    let line = 0..12_usize;
    let deed = prop_oneof![
        3 => place.clone().prop_map(Deed::Create),
        4 => (place.clone(), line.clone()).prop_map(|(at, line)| Deed::Replace(at, line)),
        4 => (place.clone(), line.clone()).prop_map(|(at, line)| Deed::Insert(at, line)),
        2 => (place.clone(), line).prop_map(|(at, line)| Deed::Remove(at, line)),
        3 => (place.clone(), place.clone()).prop_map(|(from, to)| Deed::Move(from, to)),
        2 => place.prop_map(Deed::Delete),
        2 => (0..40_usize).prop_map(Deed::Restore),
    ];
    (0..AUTHORS.len(), deed)
}

fn place(number: usize) -> MemoryPath {
    path(PATHS.get(number).unwrap())
}

fn by(name: &str) -> Actor {
    Actor::User(PrincipalName::from_host(name))
}

fn is_rogue(version: &Version) -> bool {
    version.actor == by("rogue")
}

fn goal() -> Goal {
    Goal::Revert(ChangeSelection { actors: vec![by("rogue")], ..ChangeSelection::default() })
}

/// What a store holds: path and text by id.
type Tree = BTreeMap<MemoryId, (String, String)>;

impl Fixture {
    fn do_deed(&self, author: usize, deed: &Deed, number: usize) -> Result<(), Error> {
        let author = AUTHORS.get(author).unwrap();
        let (engine, store, actor) = (&self.engine, self.store, &by(author));
        let line = format!("{author} {number}\n");
        let edit = |at: usize, change: &dyn Fn(&mut Vec<String>)| {
            engine.edit(actor, store, &place(at), |_, text| {
                let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
                change(&mut lines);
                Ok::<_, Error>(lines.concat())
            })
        };
        match *deed {
            Deed::Create(at) => {
                let lines: Vec<_> = (0..10).map(|n| format!("{author} {number}.{n}\n")).collect();
                engine.create(actor, store, &place(at), &content(&lines.concat())).map(drop)
            }
            Deed::Replace(at, place) => edit(at, &|lines| {
                if let Some(old) = lines.get_mut(place) {
                    old.clone_from(&line);
                }
            })
            .map(drop),
            Deed::Insert(at, place) => {
                edit(at, &|lines| lines.insert(place.min(lines.len()), line.clone())).map(drop)
            }
            Deed::Remove(at, place) => edit(at, &|lines| {
                if place < lines.len() {
                    lines.remove(place);
                }
            })
            .map(drop),
            Deed::Move(from, to) => engine.rename(actor, store, &place(from), &place(to)).map(drop),
            Deed::Delete(at) => engine.delete_at(actor, store, &place(at)).map(drop),
            Deed::Restore(number) => match self.all_versions().get(number) {
                Some(version) => engine.restore(actor, store, version.id, None).map(drop),
                None => Ok(()),
            },
        }
    }

    fn all_versions(&self) -> Vec<Version> {
        let filter = VersionFilter::default();
        let query = VersionQuery { filter, before: None, limit: usize::MAX, view: View::Full };
        let mut versions = self.engine.versions(self.store, &query).unwrap().items;
        versions.reverse();
        versions
    }

    fn tree(&self) -> Tree {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after: None,
            limit: usize::MAX,
            view: View::Full,
        };
        let items = self.engine.list(self.store, &query).unwrap().items;
        let entry = |item| match item {
            Listing::Memory(memory) => {
                let text = memory.content.unwrap().as_str().to_owned();
                Some((memory.id, (memory.path.to_string(), text)))
            }
            Listing::Directory(_) => None,
        };
        items.into_iter().filter_map(entry).collect()
    }

    fn carry_out(&self, author: &str, goal: &Goal) -> CarriedOut {
        let approval = Approval { expect: None, reason: Reason::new("test").unwrap() };
        self.engine.carry_out(&by(author), self.store, goal, &approval).unwrap()
    }
}

fn lines(text: &str) -> BTreeSet<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// What a memory would be if the rogue had done nothing, as far as that can be told line by line.
#[derive(Default)]
struct Reference {
    /// Its lines; `None` if it does not exist.
    lines: Option<BTreeSet<String>>,
    path: Option<MemoryPath>,
    /// Lines that the rogue added or removed.
    touched: BTreeSet<String>,
    /// Lines that others added or removed after the rogue had, also by deleting the memory or bringing it
    /// back: a merge sees only the end of this.
    contested: BTreeSet<String>,
    /// Lines that anybody but the rogue ever added.
    of_others: BTreeSet<String>,
    is_moved_by_rogue: bool,
    has_contested_path: bool,
}

impl Reference {
    fn replay<'a>(versions: impl Iterator<Item = &'a Version>) -> Self {
        let mut reference = Self::default();
        let mut before: Option<(&MemoryPath, BTreeSet<String>)> = None;
        for version in versions {
            let content = version.content.as_ref();
            let after = content.map(|it| (version.path.as_ref().unwrap(), lines(it.as_str())));
            reference.step(version, before.as_ref(), after.as_ref());
            before = after;
        }
        reference
    }

    fn step(
        &mut self,
        version: &Version,
        before: Option<&(&MemoryPath, BTreeSet<String>)>,
        after: Option<&(&MemoryPath, BTreeSet<String>)>,
    ) {
        let none = BTreeSet::new();
        let old = before.map_or(&none, |(_, lines)| lines);
        let new = after.map_or(&none, |(_, lines)| lines);
        let changed: BTreeSet<_> = old.symmetric_difference(new).cloned().collect();
        let is_moved = before.map(|it| it.0) != after.map(|it| it.0);
        if is_rogue(version) {
            self.touched.extend(changed);
            self.is_moved_by_rogue |= is_moved;
            return;
        }
        self.contested.extend(changed.intersection(&self.touched).cloned());
        if before.is_none() || after.is_none() {
            self.contested.extend(self.touched.iter().cloned());
        }
        self.of_others.extend(new.difference(old).cloned());
        self.has_contested_path |= is_moved && self.is_moved_by_rogue;
        match after {
            None => (self.lines, self.path) = (None, None),
            Some((path, _)) => {
                if before.is_none() {
                    self.lines = Some(BTreeSet::new());
                }
                // Others edited what only the rogue had created: it cannot be merged.
                if let Some(lines) = &mut self.lines {
                    lines.extend(new.difference(old).cloned());
                    lines.retain(|line| new.contains(line) || !old.contains(line));
                }
                if is_moved {
                    self.path = Some((*path).clone());
                }
            }
        }
    }

    /// Checks what has become of the memory in a tree.
    fn check(&self, memory: MemoryId, tree: &Tree) -> Result<(), TestCaseError> {
        let after = tree.get(&memory);
        let Some((path, text)) = after else {
            // Nothing of others is deleted.
            prop_assert!(self.lines.as_ref().is_none_or(|lines| lines.is_subset(&self.contested)));
            return Ok(());
        };
        let now = lines(text);
        let of_rogue =
            |line: &&String| line.starts_with("rogue") && !self.of_others.contains(*line);
        prop_assert_eq!(now.iter().find(of_rogue), None, "a line of the rogue is left");
        if let Some(expected) = &self.lines {
            let plain = |lines: &BTreeSet<String>| -> BTreeSet<String> {
                lines.difference(&self.contested).cloned().collect()
            };
            prop_assert_eq!(plain(&now), plain(expected));
        }
        if let (false, Some(expected)) = (self.has_contested_path, &self.path) {
            // A path that is taken is the only reason to be elsewhere.
            let is_taken = tree.iter().any(|(other, (at, _))| {
                *other != memory && MemoryPath::parse(at).unwrap().overlaps(expected)
            });
            prop_assert!(path == expected.as_str() || is_taken, "{path}, not {expected}");
        }
        Ok(())
    }
}

fn check_revert(deeds: &[(usize, Deed)]) -> Result<(), TestCaseError> {
    let fixture = fixture();
    for (number, (author, deed)) in deeds.iter().enumerate() {
        // What is not possible, such as a move to a path that is taken, does not happen.
        fixture.do_deed(*author, deed, number).unwrap_or_default();
    }
    let (before, versions) = (fixture.tree(), fixture.all_versions());
    let plan = fixture.engine.plan(fixture.store, &goal()).unwrap();
    let done = fixture.carry_out("ada", &goal());
    prop_assert_eq!(done.plan.digest, plan.digest);
    prop_assert_eq!(fixture.all_versions().len(), versions.len() + plan.changed_count());
    prop_assert_eq!(done.versions.len(), plan.changed_count());
    let after = fixture.tree();

    let mut histories: HashMap<MemoryId, Vec<&Version>> = HashMap::new();
    for version in &versions {
        histories.entry(version.memory).or_default().push(version);
    }
    let actions: HashMap<_, _> = plan.steps.iter().map(|it| (it.memory, &it.action)).collect();
    for (memory, history) in &histories {
        let action = actions.get(memory);
        if action.is_none() || action == Some(&&Action::Leave) {
            prop_assert_eq!(before.get(memory), after.get(memory));
        }
        if action != Some(&&Action::Leave) && history.iter().any(|version| is_rogue(version)) {
            let is_deleted_by_others = history
                .last()
                .is_some_and(|last| last.operation == Operation::Deleted && !is_rogue(last));
            if is_deleted_by_others {
                prop_assert_eq!(after.get(memory), None);
            } else {
                Reference::replay(history.iter().copied()).check(*memory, &after)?;
            }
        }
    }
    prop_assert_eq!(fixture.engine.check().unwrap().problems, []);

    // A second time there is nothing to do, and the revert can itself be taken back.
    prop_assert_eq!(fixture.engine.plan(fixture.store, &goal()).unwrap().changed_count(), 0);
    if let Some(created) = done.span() {
        let back = ChangeSelection { actors: vec![by("ada")], created, path: None };
        fixture.carry_out("ada", &Goal::Revert(back));
    }
    prop_assert_eq!(fixture.tree(), before);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_revert_takes_out_what_one_author_did(deeds in prop::collection::vec(deed(), 1..40)) {
        check_revert(&deeds)?;
    }

    #[test]
    fn a_writer_between_plan_and_revert_is_noticed(
        deeds in prop::collection::vec(deed(), 1..25),
        others in prop::collection::vec(deed(), 1..4),
    ) {
        let fixture = fixture();
        for (number, (author, deed)) in deeds.iter().enumerate() {
            fixture.do_deed(*author, deed, number).unwrap_or_default();
        }
        let plan = fixture.engine.plan(fixture.store, &goal()).unwrap();
        for (number, (author, deed)) in others.iter().enumerate() {
            fixture.do_deed(*author, deed, 100 + number).unwrap_or_default();
        }
        let (before, versions) = (fixture.tree(), fixture.all_versions().len());
        let approval = Approval {
            expect: Some(plan.digest.into()),
            reason: Reason::new("test").unwrap(),
        };
        let now = fixture.engine.plan(fixture.store, &goal()).unwrap();
        match fixture.engine.carry_out(&by("ada"), fixture.store, &goal(), &approval) {
            Ok(done) => prop_assert_eq!(done.plan.digest, plan.digest),
            Err(error) => {
                prop_assert_eq!(error.kind(), &ErrorKind::PreconditionFailed);
                prop_assert_ne!(now.digest, plan.digest);
                prop_assert_eq!(fixture.tree(), before);
                prop_assert_eq!(fixture.all_versions().len(), versions);
            }
        }
    }
}
