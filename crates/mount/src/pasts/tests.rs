use std::collections::HashSet;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use quipu_core::Engine;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryPath, Name, StoreId, VersionId};
use quipu_core::settings::Limits;
use quipu_testkit::{InMemoryBackend, ManualClock};

use super::*;
use crate::names::NameRules;
use crate::nodes::ProcessId;
use crate::tree::{Invalidation, OpenMode, TreeSettings};

struct Fixture {
    engine: Engine,
    clock: Arc<ManualClock>,
    store: StoreId,
    pasts: Pasts,
    invalidations: Receiver<Invalidation>,
}

fn fixture() -> Fixture {
    let clock = Arc::new(ManualClock::default());
    let limits = Limits { versions_kept_min: 1, ..Limits::default() };
    let engine = Engine::new(Arc::new(InMemoryBackend::default()), Arc::clone(&clock) as _, limits);
    let workspace = engine.default_workspace().unwrap().id;
    let new = NewStore::named(Name::new("tests").unwrap());
    let store = engine.create_store(workspace, &new).unwrap().id;
    let settings = TreeSettings {
        store,
        actor: Actor::expiry(),
        access: Access::ReadWrite,
        names: NameRules::default(),
    };
    let (tree, invalidations) = Tree::new(engine.clone(), settings).unwrap();
    let pasts = Pasts::new(Arc::new(tree));
    Fixture { engine, clock, store, pasts, invalidations }
}

impl Fixture {
    /// Writes a memory and returns the name of the moment after it.
    fn put(&self, at: &str, text: &str) -> String {
        self.version(at, text).to_string()
    }

    fn version(&self, at: &str, text: &str) -> VersionId {
        self.clock.advance(Duration::from_mins(1));
        let (path, content) = (MemoryPath::parse(at).unwrap(), Content::new(text).unwrap());
        let target = (&path, &content);
        let put = self.engine.put(&Actor::expiry(), self.store, target, Precondition::None);
        put.unwrap().memory.version
    }

    fn moment(&self, name: &str) -> Result<Branch, TreeError> {
        self.pasts.branch(self.pasts.moment(name.as_ref())?.ino)
    }

    fn read(&self, name: &str, file: &str) -> Result<String, TreeError> {
        let branch = self.moment(name)?;
        let ino = branch.tree.lookup(branch.ino, file.as_ref())?.ino;
        Ok(String::from_utf8(branch.tree.read_unopened(ino, 0, usize::MAX)?).unwrap())
    }
}

#[test]
fn a_moment_is_a_directory_of_what_there_was() {
    let fixture = fixture();
    let (first, second) = (fixture.put("/tea.md", "green"), fixture.put("/tea.md", "black"));
    assert_eq!(fixture.read(&first, "tea.md").unwrap(), "green");
    assert_eq!(fixture.read(&second, "tea.md").unwrap(), "black");
    assert_eq!(fixture.read("0s ago", "tea.md").unwrap(), "black");
    for name in ["soon", "", "#99", "2020-01-01", "9999-01-01", ".gitignore", "memver_x"] {
        assert_eq!(fixture.read(name, "tea.md"), Err(TreeError::NotFound), "{name}");
    }
}

#[test]
fn names_of_one_state_share_its_tree() {
    let fixture = fixture();
    fixture.put("/tea.md", "green");
    let inos: HashSet<_> = (0..100)
        .map(|_| {
            fixture.clock.advance(Duration::from_millis(7));
            fixture.pasts.moment("0s ago".as_ref()).unwrap().ino
        })
        .collect();
    assert_eq!((inos.len(), fixture.pasts.trees_count()), (1, 1));
    // A relative moment moves on.
    fixture.put("/tea.md", "black");
    assert_eq!(fixture.read("0s ago", "tea.md").unwrap(), "black");
    assert_eq!(fixture.read("30s ago", "tea.md").unwrap(), "green");
    assert_eq!(fixture.pasts.trees_count(), 2);
}

#[test]
fn the_least_recently_used_tree_is_forgotten() {
    let fixture = fixture();
    let names: Vec<_> = (0..40).map(|n| fixture.put("/tea.md", &format!("{n}"))).collect();
    let first = fixture.moment(&names[0]).unwrap();
    let kept = fixture.pasts.moment(names[0].as_ref()).unwrap().ino;
    let known = fixture.moment(&names[1]).unwrap();
    let tea = known.tree.lookup(known.ino, "tea.md".as_ref()).unwrap();
    let forgotten = known.outside(known.tree.attributes(ROOT).unwrap()).ino;
    for name in &names {
        fixture.moment(name).unwrap();
        fixture.pasts.branch(kept).unwrap();
        assert!(fixture.pasts.trees_count() <= PASTS_MAX);
    }
    assert_eq!(fixture.pasts.trees_count(), PASTS_MAX);
    assert_eq!(fixture.pasts.branch(kept).unwrap().ino, first.ino);
    // The kernel looks the moment up again, after it has dropped all that it had of it.
    assert_eq!(fixture.pasts.branch(forgotten).unwrap_err(), TreeError::Stale);
    let dropped = Invalidation::Content(known.outside(tea).ino);
    assert!(fixture.invalidations.try_iter().any(|invalidation| invalidation == dropped));
    assert_eq!(fixture.read(&names[1], "tea.md").unwrap(), "1");
}

#[test]
fn what_is_open_is_not_forgotten() {
    let fixture = fixture();
    let names: Vec<_> = (0..=PASTS_MAX).map(|n| fixture.put("/tea.md", &format!("{n}"))).collect();
    let mut open = Vec::new();
    for name in &names[..PASTS_MAX] {
        let branch = fixture.moment(name).unwrap();
        let ino = branch.tree.lookup(branch.ino, "tea.md".as_ref()).unwrap().ino;
        let opened = branch.tree.open(ino, OpenMode::Read, ProcessId(1)).unwrap();
        open.push((branch, opened.handle));
    }
    assert_eq!(fixture.moment(&names[PASTS_MAX]).unwrap_err(), TreeError::Busy);
    let (branch, handle) = &open[3];
    assert_eq!(branch.tree.read_open(*handle, 0, 9).unwrap(), b"3");
    branch.tree.release(*handle);
    fixture.moment(&names[PASTS_MAX]).unwrap();
    assert_eq!(fixture.pasts.trees_count(), PASTS_MAX);
}

#[test]
fn many_names_keep_no_more_than_a_few_trees() {
    let fixture = fixture();
    for n in 0..100 {
        fixture.put("/tea.md", &format!("{n}"));
    }
    let now = fixture.engine.now();
    for n in 0..1_000 {
        let name = now.minus(Duration::from_secs(5 * n)).to_string();
        fixture.pasts.moment(name.as_ref()).unwrap();
        assert!(fixture.pasts.trees_count() <= PASTS_MAX);
    }
}

#[test]
fn a_redaction_reaches_every_kept_tree() {
    let fixture = fixture();
    let secret = fixture.version("/tea.md", "secret");
    let name = secret.to_string();
    fixture.put("/tea.md", "black");
    let branch = fixture.moment(&name).unwrap();
    let tea = branch.tree.lookup(branch.ino, "tea.md".as_ref()).unwrap();
    fixture.engine.redact(&Actor::expiry(), fixture.store, &[secret]).unwrap();
    fixture.pasts.follow().unwrap();
    let dropped = Invalidation::Content(branch.outside(tea).ino);
    assert!(fixture.invalidations.try_iter().any(|invalidation| invalidation == dropped));
    assert_eq!(branch.tree.read_unopened(tea.ino, 0, 9), Err(TreeError::Stale));
    assert_eq!(fixture.read(&name, "tea.md"), Err(TreeError::NotFound));
}
