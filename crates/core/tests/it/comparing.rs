//! Comparing two trees.

use quipu_core::Moment;
use quipu_core::engine::{Difference, compare};
use quipu_core::model::{Memory, StorePolicy};

use crate::support::{actor, content, fixture, path};

fn lines(differences: &[Difference]) -> Vec<String> {
    let path = |memory: &Memory| memory.path.to_string();
    let line = |difference: &Difference| match difference {
        Difference::Added(new) => format!("added {}", path(new)),
        Difference::Removed(old) => format!("removed {}", path(old)),
        Difference::Changed { new, .. } => format!("changed {}", path(new)),
        Difference::Moved { old, new } if old.hash == new.hash => {
            format!("moved {} to {}", path(old), path(new))
        }
        Difference::Moved { old, new } => {
            format!("moved {} to {} and changed", path(old), path(new))
        }
    };
    differences.iter().map(line).collect()
}

#[test]
fn two_moments_of_a_store() {
    let fixture = fixture();
    for name in ["/same", "/edited", "/moved", "/both", "/gone", "/again"] {
        fixture.put(name, name);
    }
    let then = Moment::Sequence(fixture.engine.newest_sequence().unwrap());
    let past = fixture.engine.moment(fixture.store, &then).unwrap();
    let (engine, store) = (&fixture.engine, fixture.store);
    fixture.put("/edited", "new");
    engine.rename(&actor(), store, &path("/moved"), &path("/d/moved")).unwrap();
    engine.rename(&actor(), store, &path("/both"), &path("/d/both")).unwrap();
    fixture.put("/d/both", "new");
    engine.delete_at(&actor(), store, &path("/gone")).unwrap();
    // Another memory at the same path is a change of what is there.
    engine.delete_at(&actor(), store, &path("/again")).unwrap();
    fixture.put("/again", "other");
    fixture.put("/new", "new");
    let old = engine.at(&past).unwrap().tree(store).unwrap();
    let new = engine.tree(store).unwrap();
    let expected = [
        "changed /again",
        "moved /both to /d/both and changed",
        "moved /moved to /d/moved",
        "changed /edited",
        "removed /gone",
        "added /new",
    ];
    assert_eq!(lines(&compare(&old, &new)), expected);
    assert_eq!(compare(&new, &new), []);
    assert_eq!(compare(&[], &new).len(), new.len());
}

#[test]
fn two_stores_are_compared_by_path_then_by_text() {
    let fixture = fixture();
    let other = fixture.new_store("other", StorePolicy::default()).id;
    fixture.put("/same", "1");
    fixture.put("/edited", "1");
    fixture.put("/here", "elsewhere in the other one");
    fixture.put("/gone", "1");
    for (at, text) in [("/same", "1"), ("/edited", "2"), ("/there", "elsewhere in the other one")] {
        fixture.engine.create(&actor(), other, &path(at), &content(text)).unwrap();
    }
    let tree = |store| fixture.engine.tree(store).unwrap();
    let expected = ["changed /edited", "removed /gone", "moved /here to /there"];
    assert_eq!(lines(&compare(&tree(fixture.store), &tree(other))), expected);
}
