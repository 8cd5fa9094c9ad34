//! Taking back what somebody did, and restoring a tree.

use quipu_core::ErrorKind;
use quipu_core::backend::Span;
use quipu_core::engine::{
    Action, Approval, CarriedOut, ChangeSelection, Completeness, Goal, Heads, Known, Pattern, Plan,
    Precondition, Restoration, Scope, Selection, StoreUpdate, Terms,
};
use quipu_core::model::{
    Actor, ForgottenPolicy, Memory, PrincipalName, Reason, SecretPolicy, StorePolicy, Timestamp,
    View,
};
use quipu_core::settings::Limits;

use crate::support::{Fixture, actor, content, fixture, fixture_with, kind, path};

fn by(name: &str) -> Actor {
    Actor::User(PrincipalName::from_host(name))
}

fn all_of(name: &str) -> Goal {
    Goal::Revert(ChangeSelection { actors: vec![by(name)], ..ChangeSelection::default() })
}

fn back_to(at: Timestamp) -> Goal {
    Goal::Restore(Restoration { at, path: None, completeness: Completeness::Required })
}

fn any_plan() -> Approval {
    Approval { expect: None, reason: Reason::new("a mistake").unwrap() }
}

impl Fixture {
    fn put_by(&self, name: &str, at: &str, text: &str) -> Memory {
        let target = (&path(at), &content(text));
        self.engine.put(&by(name), self.store, target, Precondition::None).unwrap().memory
    }

    fn move_by(&self, name: &str, from: &str, to: &str) {
        self.engine.rename(&by(name), self.store, &path(from), &path(to)).unwrap();
    }

    fn delete_by(&self, name: &str, at: &str) {
        self.engine.delete_at(&by(name), self.store, &path(at)).unwrap();
    }

    fn planned(&self, goal: &Goal) -> Plan {
        self.engine.plan(self.store, goal).unwrap()
    }

    fn done(&self, goal: &Goal) -> CarriedOut {
        self.engine.carry_out(&actor(), self.store, goal, &any_plan()).unwrap()
    }

    /// Carries a goal out and returns what was left, as path and reason.
    fn left(&self, goal: &Goal) -> Vec<(String, String)> {
        let done = self.done(goal);
        let left = done.plan.steps.into_iter().filter(|step| step.action == Action::Leave);
        left.map(|step| (step.before.map_or_else(String::new, |it| it.path.to_string()), step.why))
            .collect()
    }

    /// Redacts a text everywhere; where it comes back, it is recognized.
    fn forget(&self, text: &str) {
        let pattern = Some(Pattern::text(text).unwrap());
        let selection = Selection { pattern, ..Selection::default() };
        let terms = Terms { heads: Heads::TakeOut, ..Terms::default() };
        let scope = Scope::all(self.workspace);
        self.engine.redact_selected(&actor(), &scope, &selection, &terms).unwrap();
    }

    fn now_at(&self) -> Timestamp {
        self.engine.read(|reader| Ok(reader.newest_change()?.1)).unwrap()
    }
}

#[test]
fn what_nobody_else_touched_goes_back_to_what_it_was() {
    let fixture = fixture();
    fixture.put("/text", "one\n");
    fixture.put("/moved", "two\n");
    let deleted = fixture.put("/deleted", "three\n").id;
    fixture.put_by("rogue", "/text", "bad\n");
    fixture.put_by("rogue", "/text", "worse\n");
    fixture.move_by("rogue", "/moved", "/elsewhere");
    fixture.delete_by("rogue", "/deleted");
    fixture.put_by("rogue", "/new", "four\n");
    fixture.put("/untouched", "five\n");
    let done = fixture.done(&all_of("rogue"));
    assert_eq!(done.versions.len(), 4);
    assert_eq!((done.plan.changed_count(), done.plan.left_count()), (4, 0));
    assert!(done.plan.steps.iter().all(|step| step.why == "nobody else has changed it since"));
    let texts = ["/text", "/moved", "/deleted", "/new", "/untouched"].map(|at| fixture.text(at));
    let expected = [Some("one\n"), Some("two\n"), Some("three\n"), None, Some("five\n")];
    assert_eq!(texts, expected.map(|text| text.map(str::to_owned)));
    let restored = fixture.engine.memory_at(fixture.store, &path("/deleted"), View::Basic);
    assert_eq!(restored.unwrap().id, deleted);
    for id in done.versions {
        let version = fixture.engine.version(fixture.store, id, View::Basic).unwrap();
        assert_eq!(version.actor, actor());
        assert_eq!(version.reason.unwrap().as_str(), "a mistake");
    }
}

#[test]
fn later_edits_by_others_are_kept() {
    let fixture = fixture();
    fixture.put("/a", "one\ntwo\nthree\nfour\n");
    fixture.put_by("rogue", "/a", "BAD\ntwo\nthree\nfour\n");
    fixture.put("/a", "BAD\ntwo\nthree\nFOUR\n");
    fixture.put_by("rogue", "/b", "created\n");
    fixture.move_by("ada", "/a", "/c");
    let plan = fixture.planned(&all_of("rogue"));
    let step = plan.steps.iter().find(|step| matches!(step.action, Action::Change(_))).unwrap();
    assert_eq!(step.why, "others have changed it since, and their changes stay");
    fixture.done(&all_of("rogue"));
    assert_eq!(fixture.text("/c").unwrap(), "one\ntwo\nthree\nFOUR\n");
    assert_eq!(fixture.text("/b"), None);
}

#[test]
fn several_runs_are_taken_out_from_the_newest_on() {
    let fixture = fixture();
    fixture.put("/a", "1\n2\n3\n4\n5\n6\n7\n");
    fixture.put_by("rogue", "/a", "X\n2\n3\n4\n5\n6\n7\n");
    fixture.put("/a", "X\n2\n3\nmine\n5\n6\n7\n");
    fixture.put_by("rogue", "/a", "X\n2\n3\nmine\n5\n6\nY\n");
    fixture.done(&all_of("rogue"));
    assert_eq!(fixture.text("/a").unwrap(), "1\n2\n3\nmine\n5\n6\n7\n");
}

#[test]
fn what_cannot_be_merged_is_left_with_a_reason() {
    let fixture = fixture();
    fixture.put("/a", "one\ntwo\n");
    fixture.put_by("rogue", "/a", "one\nBAD\n");
    fixture.put("/a", "one\nBAD, corrected\n");
    let left = fixture.left(&all_of("rogue"));
    let reason = "others have changed the same lines since, from line 2 on".to_owned();
    assert_eq!(left, [("/a".to_owned(), reason)]);
    assert_eq!(fixture.text("/a").unwrap(), "one\nBAD, corrected\n");
}

#[test]
fn what_others_deleted_or_brought_back_since_stays_so() {
    let fixture = fixture();
    fixture.put("/deleted", "one\n");
    fixture.put_by("rogue", "/deleted", "bad\n");
    fixture.delete_by("ada", "/deleted");
    let back = fixture.put("/back", "two\n");
    fixture.delete_by("rogue", "/back");
    fixture.engine.restore(&actor(), fixture.store, back.version, None).unwrap();
    let done = fixture.done(&all_of("rogue"));
    assert_eq!((done.versions.len(), done.plan.steps.len(), done.plan.unchanged_count), (0, 0, 2));
    assert_eq!(fixture.text("/deleted"), None);
    assert_eq!(fixture.text("/back").unwrap(), "two\n");
}

#[test]
fn what_others_only_moved_or_emptied_is_deleted_for_a_true_reason() {
    let fixture = fixture();
    fixture.put_by("rogue", "/moved", "bad\n");
    fixture.move_by("ada", "/moved", "/elsewhere");
    fixture.put_by("rogue", "/emptied", "bad\n");
    fixture.put("/emptied", "");
    let done = fixture.done(&all_of("rogue"));
    assert_eq!(done.versions.len(), 2);
    let why = "others have changed it since, but its text holds nothing that they added";
    for step in done.plan.steps {
        assert_eq!((step.action, step.why.as_str()), (Action::Delete, why));
    }
}

#[test]
fn what_the_selection_and_then_others_deleted_is_left() {
    let fixture = fixture();
    let memory = fixture.put("/a", "one\n");
    fixture.delete_by("rogue", "/a");
    fixture.engine.restore(&actor(), fixture.store, memory.version, None).unwrap();
    fixture.delete_by("ada", "/a");
    let reason = "others have brought it back since, and deleted it again at `/a`".to_owned();
    assert_eq!(fixture.left(&all_of("rogue")), [(String::new(), reason)]);
    assert_eq!(fixture.text("/a"), None);

    // What comes back because of the selection alone goes, although others had deleted it.
    fixture.engine.restore(&by("rogue"), fixture.store, memory.version, None).unwrap();
    assert_eq!(fixture.left(&all_of("rogue")), []);
    assert_eq!(fixture.text("/a"), None);
}

#[test]
fn reverting_twice_changes_nothing_and_a_revert_can_be_reverted() {
    let fixture = fixture();
    fixture.put("/a", "one\n");
    fixture.put("/b", "two\n");
    fixture.put_by("rogue", "/a", "bad\n");
    fixture.move_by("rogue", "/b", "/c");
    fixture.put_by("rogue", "/d", "new\n");
    let done = fixture.done(&all_of("rogue"));
    assert_eq!(fixture.done(&all_of("rogue")).versions, []);
    let created = done.span().unwrap();
    let back = Goal::Revert(ChangeSelection { actors: vec![actor()], created, path: None });
    fixture.done(&back);
    let texts = ["/a", "/b", "/c", "/d"].map(|at| fixture.text(at));
    let expected = [Some("bad\n"), None, Some("two\n"), Some("new\n")];
    assert_eq!(texts, expected.map(|text| text.map(str::to_owned)));
}

#[test]
fn a_selection_goes_by_time_and_path() {
    let fixture = fixture();
    for at in ["/in/a", "/in/b", "/out/a"] {
        fixture.put(at, "one\n");
    }
    fixture.put_by("rogue", "/in/a", "early\n");
    let since = fixture.now_at().next();
    fixture.put_by("rogue", "/out/a", "late\n");
    fixture.move_by("rogue", "/in/b", "/out/b");
    let created = Span { first: since, ..Span::default() };
    let selection = ChangeSelection { actors: vec![by("rogue")], created, path: Some(path("/in")) };
    let done = fixture.done(&Goal::Revert(selection));
    assert_eq!(done.versions.len(), 1);
    assert_eq!(fixture.text("/in/a").unwrap(), "early\n");
    assert_eq!(fixture.text("/out/a").unwrap(), "late\n");
    assert_eq!(fixture.text("/in/b").unwrap(), "one\n");
}

#[test]
fn a_chain_of_moves_is_undone_in_the_order_that_frees_the_paths() {
    let fixture = fixture();
    for at in ["/a", "/b", "/c"] {
        fixture.put(at, at);
    }
    fixture.delete_by("rogue", "/c");
    fixture.move_by("rogue", "/b", "/c");
    fixture.move_by("rogue", "/a", "/b");
    fixture.put_by("rogue", "/a/below", "new");
    assert_eq!(fixture.left(&all_of("rogue")), []);
    let texts = ["/a", "/b", "/c"].map(|at| fixture.text(at).unwrap());
    assert_eq!(texts, ["/a", "/b", "/c"]);
}

#[test]
fn memories_that_only_exchanged_their_paths_are_left() {
    let fixture = fixture();
    fixture.put("/a", "a");
    fixture.put("/b", "b");
    fixture.put("/gone", "gone");
    fixture.move_by("rogue", "/a", "/t");
    fixture.move_by("rogue", "/b", "/a");
    fixture.move_by("rogue", "/t", "/b");
    fixture.put_by("rogue", "/new", "new");
    let left = fixture.left(&all_of("rogue"));
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|(_, why)| why.contains("exchanged their paths")), "{left:?}");
    assert_eq!(fixture.text("/a").unwrap(), "b");
    assert_eq!(fixture.text("/new"), None);
}

/// Returns a store in which the rogue has edited and exchanged `/a` and `/b`, and edited `/c` and moved it to
/// `/r`; and the moment before.
fn exchanged() -> (Fixture, Timestamp) {
    let fixture = fixture();
    for at in ["/a", "/b", "/c"] {
        fixture.put(at, &format!("{at}\n"));
    }
    let then = fixture.now_at();
    for at in ["/a", "/b", "/c"] {
        fixture.put_by("rogue", at, &format!("{at}\nEVIL\n"));
    }
    for (from, to) in [("/a", "/t"), ("/b", "/a"), ("/t", "/b"), ("/c", "/r")] {
        fixture.move_by("rogue", from, to);
    }
    (fixture, then)
}

#[test]
fn the_text_goes_back_where_only_the_path_cannot() {
    let (fixture, _) = exchanged();
    fixture.put("/c", "theirs\n");
    let done = fixture.done(&all_of("rogue"));
    assert_eq!((done.versions.len(), done.plan.left_count()), (3, 0));
    let why: Vec<_> = done.plan.steps.iter().map(|step| step.why.as_str()).collect();
    assert!(why.iter().all(|it| it.starts_with("its text goes back; its path stays, because")));
    assert!(why.iter().take(2).all(|it| it.contains("exchanged their paths")), "{why:?}");
    assert!(why[2].ends_with("another memory is at `/c`, where it should go"), "{why:?}");
    let texts = ["/a", "/b", "/c", "/r"].map(|at| fixture.text(at).unwrap());
    assert_eq!(texts, ["/b\n", "/a\n", "theirs\n", "/c\n"]);
    // A second time there is nothing but the paths, which are left.
    let left = fixture.left(&all_of("rogue"));
    assert_eq!(left.len(), 3);
    assert_eq!(left[2].1, "another memory is at `/c`, where it should go");
}

#[test]
fn the_texts_of_a_tree_go_back_where_the_paths_cannot() {
    let (fixture, then) = exchanged();
    let done = fixture.done(&back_to(then));
    assert_eq!((done.versions.len(), done.plan.left_count()), (3, 0));
    let texts = ["/a", "/b", "/c"].map(|at| fixture.text(at).unwrap());
    assert_eq!(texts, ["/b\n", "/a\n", "/c\n"]);
    let stay = done.plan.steps.iter().filter(|step| step.why.contains("its path stays"));
    assert_eq!(stay.count(), 2);
}

#[test]
fn a_path_that_others_took_is_left_to_them_and_so_is_what_depends_on_it() {
    let fixture = fixture();
    for at in ["/a", "/b", "/dir", "/deep"] {
        fixture.put(at, at);
    }
    fixture.move_by("rogue", "/a", "/a2");
    fixture.move_by("rogue", "/b", "/a");
    fixture.delete_by("rogue", "/dir");
    fixture.move_by("rogue", "/deep", "/deep2");
    fixture.put("/b/theirs", "theirs");
    fixture.put("/dir/theirs", "theirs");
    let left = fixture.left(&all_of("rogue"));
    let at = |place: usize| (left[place].0.as_str(), left[place].1.as_str());
    assert_eq!(left.len(), 3);
    assert_eq!(at(0), ("/a", "`/b/theirs` is in the way of `/b`, where it should go"));
    assert_eq!(at(1), ("/a2", "another memory is at `/a`, where it should go"));
    assert_eq!(at(2), ("", "`/dir/theirs` is in the way of `/dir`, where it should go"));
    assert_eq!(fixture.text("/deep").unwrap(), "/deep");
}

#[test]
fn redacted_and_pruned_texts_are_not_guessed() {
    let fixture = fixture_with(Limits { versions_kept_min: 1, ..Limits::default() });
    let first = fixture.put("/redacted", "secret\n").version;
    fixture.put_by("rogue", "/redacted", "bad\n");
    fixture.engine.redact(&actor(), fixture.store, &[first]).unwrap();
    let left = fixture.left(&all_of("rogue"));
    assert!(left[0].1.contains("was redacted"), "{left:?}");
    fixture.put("/pruned", "old\n");
    fixture.put_by("rogue", "/pruned", "bad\n");
    fixture.clock.advance(std::time::Duration::from_hours(24 * 40));
    fixture.engine.prune().unwrap();
    let left = fixture.left(&all_of("rogue"));
    assert!(left.iter().all(|(_, why)| why.contains("no longer kept")), "{left:?}");
    assert_eq!(left.len(), 2);
    assert_eq!(fixture.text("/pruned").unwrap(), "bad\n");
}

#[test]
fn a_credential_that_the_store_refuses_does_not_come_back() {
    let secret = "token: ghp_0123456789abcdefghijABCDEFGHIJ012345\n";
    for (secrets, expected) in [(SecretPolicy::Reject, "clean\n"), (SecretPolicy::Warn, secret)] {
        let fixture = fixture();
        fixture.put("/a", secret);
        fixture.put_by("rogue", "/a", "clean\n");
        let policy = StorePolicy { secrets, ..StorePolicy::default() };
        let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
        fixture.engine.update_store(fixture.store, &update).unwrap();
        let left = fixture.left(&all_of("rogue"));
        assert_eq!(left.len(), usize::from(secrets == SecretPolicy::Reject));
        assert_eq!(fixture.text("/a").unwrap(), expected);
    }
}

#[test]
fn what_was_redacted_does_not_come_back_where_the_store_refuses_it() {
    let secret = "correct-horse-battery";
    for forgotten in [ForgottenPolicy::Refuse, ForgottenPolicy::Warn] {
        let fixture = fixture();
        let at_secret = format!("/dir/{secret}");
        fixture.put("/redacted", secret);
        fixture.forget(secret);
        for at in ["/text", "/deleted"] {
            fixture.put(at, &format!("one\n{secret}\n"));
        }
        fixture.put(&at_secret, "good\n");
        fixture.put_by("rogue", "/text", "bad\n");
        fixture.delete_by("rogue", "/deleted");
        fixture.move_by("rogue", &at_secret, "/moved");
        fixture.put_by("rogue", "/moved", "bad\n");
        fixture.put_by("rogue", "/new", "bad\n");
        let policy = StorePolicy { forgotten, ..StorePolicy::default() };
        let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
        fixture.engine.update_store(fixture.store, &update).unwrap();

        let plan = fixture.planned(&all_of("rogue"));
        let done = fixture.done(&all_of("rogue"));
        assert_eq!(done.plan.digest, plan.digest);
        assert_eq!(fixture.text("/new"), None);
        if forgotten == ForgottenPolicy::Warn {
            assert_eq!(plan.left_count(), 0);
            assert_eq!(fixture.text(&at_secret).unwrap(), "good\n");
            continue;
        }
        let left = plan.steps.iter().filter(|step| step.action == Action::Leave);
        let left: Vec<_> = left.map(|step| step.why.as_str()).collect();
        let why = "line 2 of its text would bring back what was redacted from the store, which the \
                   store refuses";
        assert_eq!(left, [why; 2]);
        assert_eq!(fixture.text("/text").unwrap(), "bad\n");
        assert_eq!(fixture.text("/moved").unwrap(), "good\n");
        assert!(
            plan.steps.iter().any(|step| step.why.contains("its path stays, because its earlier"))
        );
    }
}

#[test]
fn a_policy_that_redacts_is_part_of_the_plan() {
    let fixture = fixture();
    fixture.put("/a", "token: ghp_0123456789abcdefghijABCDEFGHIJ012345\n");
    fixture.put_by("rogue", "/a", "clean\n");
    let policy = StorePolicy { secrets: SecretPolicy::Redact, ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    fixture.engine.update_store(fixture.store, &update).unwrap();
    let done = fixture.done(&all_of("rogue"));
    let Action::Change(then) = &done.plan.steps[0].action else { panic!("{done:?}") };
    assert_eq!(fixture.text("/a").unwrap(), then.content.as_str());
    assert!(!then.content.as_str().contains("ghp_"));
}

#[test]
fn a_plan_is_carried_out_only_as_it_was_expected() {
    let fixture = fixture();
    fixture.put("/a", "one\ntwo\nthree\n");
    fixture.put("/b", "one\n");
    fixture.put_by("rogue", "/a", "BAD\ntwo\nthree\n");
    fixture.move_by("rogue", "/b", "/c");
    let goal = all_of("rogue");
    let plan = fixture.planned(&goal);
    let expect = Approval { expect: Some(plan.digest.into()), ..any_plan() };
    let changes: [&dyn Fn(); 3] = [
        &|| drop(fixture.put("/a", "BAD\ntwo\nTHREE\n")),
        &|| drop(fixture.put("/b", "in the way\n")),
        &|| drop(fixture.put_by("rogue", "/another", "more\n")),
    ];
    for change in changes {
        change();
        let before = fixture.history();
        let refused = fixture.engine.carry_out(&actor(), fixture.store, &goal, &expect);
        let error = refused.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::PreconditionFailed);
        assert!(error.hint().unwrap().contains("make the plan again"));
        assert_eq!(fixture.history(), before);
    }
    let plan = fixture.planned(&goal);
    fixture.put("/unrelated", "text");
    let expect = Approval { expect: Some(plan.digest.into()), ..any_plan() };
    let done = fixture.engine.carry_out(&actor(), fixture.store, &goal, &expect).unwrap();
    assert_eq!(done.plan.digest, plan.digest);
}

#[test]
fn what_a_full_store_has_no_place_for_is_left() {
    let fixture = fixture_with(Limits { memories_per_store_max: 3, ..Limits::default() });
    fixture.put("/a", "a");
    fixture.put("/b", "b");
    fixture.put("/e", "e");
    fixture.delete_by("rogue", "/a");
    fixture.delete_by("rogue", "/e");
    fixture.put_by("rogue", "/b", "bad");
    fixture.put("/c", "c");
    fixture.put_by("rogue", "/new", "new");
    let plan = fixture.planned(&all_of("rogue"));
    let left = fixture.left(&all_of("rogue"));
    let why = "it would come back at `/e`, but the store would hold 4 memories, and its limit is 3";
    assert_eq!(left, [(String::new(), why.to_owned())]);
    assert_eq!((plan.changed_count(), plan.left_count()), (3, 1));
    let texts = ["/a", "/b", "/c"].map(|at| fixture.text(at).unwrap());
    assert_eq!(texts, ["a", "b", "c"]);
}

#[test]
fn what_is_too_long_for_a_full_store_stays_deleted() {
    let fixture = fixture_with(Limits { store_size_bytes_max: 10, ..Limits::default() });
    fixture.put("/a", "12345");
    fixture.put("/b", "12");
    fixture.delete_by("rogue", "/a");
    fixture.delete_by("rogue", "/b");
    fixture.put("/c", "123456");
    fixture.put_by("rogue", "/new", "1234");
    let why = "it would come back at `/a`, but the store would hold 11 bytes, and its limit is 10";
    assert_eq!(fixture.left(&all_of("rogue")), [(String::new(), why.to_owned())]);
    assert_eq!((fixture.text("/b").unwrap().as_str(), fixture.text("/new")), ("12", None));
}

#[test]
fn a_store_that_is_too_full_for_the_plan_is_left_as_it_is() {
    let fixture = fixture_with(Limits { store_size_bytes_max: 10, ..Limits::default() });
    fixture.put("/a", "12345");
    fixture.put("/b", "b");
    fixture.put_by("rogue", "/a", "1");
    fixture.put_by("rogue", "/b", "c");
    fixture.put("/d", "1234567");
    let before = fixture.history();
    let result = fixture.engine.carry_out(&actor(), fixture.store, &all_of("rogue"), &any_plan());
    assert_eq!(kind(result), ErrorKind::LimitReached);
    assert_eq!(fixture.history(), before);
}

#[test]
fn an_archived_store_and_impossible_times_are_refused() {
    let fixture = fixture();
    fixture.put("/a", "one");
    let now = fixture.now_at();
    let later = now.plus(std::time::Duration::from_secs(1));
    let plan = |first, last| {
        let created = Span { first, last };
        let selection = ChangeSelection { created, ..ChangeSelection::default() };
        fixture.engine.plan(fixture.store, &Goal::Revert(selection))
    };
    assert_eq!(kind(plan(later, Timestamp::MAX)), ErrorKind::InvalidInput);
    assert_eq!(kind(plan(now, Timestamp::MIN)), ErrorKind::InvalidInput);
    for at in [later, Timestamp::MIN] {
        assert_eq!(kind(fixture.engine.plan(fixture.store, &back_to(at))), ErrorKind::InvalidInput);
    }
    assert_eq!(fixture.planned(&all_of("nobody")).steps.len(), 0);
    fixture.engine.archive_store(fixture.store).unwrap();
    for goal in [all_of("ada"), back_to(now)] {
        assert_eq!(kind(fixture.engine.plan(fixture.store, &goal)), ErrorKind::StoreArchived);
        let result = fixture.engine.carry_out(&actor(), fixture.store, &goal, &any_plan());
        assert_eq!(kind(result), ErrorKind::StoreArchived);
    }
}

#[test]
fn a_tree_goes_back_to_a_moment() {
    let fixture = fixture();
    for at in ["/dir/text", "/dir/moved", "/dir/deleted", "/other"] {
        fixture.put(at, "then");
    }
    let then = fixture.now_at();
    fixture.put("/dir/text", "now");
    fixture.move_by("ada", "/dir/moved", "/moved");
    fixture.delete_by("ada", "/dir/deleted");
    fixture.put("/dir/new", "now");
    fixture.put("/other", "now");
    let part = |at: &str| {
        Goal::Restore(Restoration {
            at: then,
            path: Some(path(at)),
            completeness: Completeness::Required,
        })
    };
    assert_eq!(fixture.done(&part("/dir")).versions.len(), 4);
    let texts = ["/dir/text", "/dir/moved", "/dir/deleted", "/dir/new", "/moved", "/other"];
    let texts = texts.map(|at| fixture.text(at).unwrap_or_default());
    assert_eq!(texts, ["then", "then", "then", "", "", "now"]);
    assert_eq!(kind(fixture.engine.plan(fixture.store, &part("/typo"))), ErrorKind::NotFound);
    assert_eq!(fixture.done(&back_to(then)).versions.len(), 1);
    assert_eq!(fixture.text("/other").unwrap(), "then");
    assert_eq!(fixture.done(&back_to(then)).versions, []);
}

#[test]
fn below_the_horizon_a_tree_is_restored_only_as_far_as_it_is_known() {
    let fixture = fixture_with(Limits { versions_kept_min: 1, ..Limits::default() });
    fixture.put("/known", "then");
    fixture.put("/pruned", "then");
    let then = fixture.now_at();
    fixture.put("/pruned", "later");
    fixture.clock.advance(std::time::Duration::from_hours(24 * 40));
    fixture.engine.prune().unwrap();
    fixture.put("/new", "now");
    fixture.put("/known", "now");
    let refused = fixture.engine.plan(fixture.store, &back_to(then)).unwrap_err();
    assert!(refused.message().contains("complete from"), "{refused}");
    let partial = Restoration { at: then, path: None, completeness: Completeness::Partial };
    let left = fixture.left(&Goal::Restore(partial));
    let reason = "its versions of that time are no longer kept".to_owned();
    assert_eq!(left, [("/pruned".to_owned(), reason)]);
    let texts = ["/known", "/pruned", "/new"].map(|at| fixture.text(at).unwrap_or_default());
    assert_eq!(texts, ["then", "later", ""]);
}

#[test]
fn what_somebody_changed_is_one_difference_per_memory() {
    let fixture = fixture();
    fixture.put("/a", "one\n");
    fixture.put_by("rogue", "/a", "two\n");
    fixture.put("/a", "three\n");
    fixture.put_by("rogue", "/a", "four\n");
    fixture.move_by("rogue", "/a", "/b");
    fixture.put("/b", "five\n");
    fixture.put_by("rogue", "/new", "six\n");
    let selection = ChangeSelection { actors: vec![by("rogue")], ..ChangeSelection::default() };
    let changed = fixture.engine.changed(fixture.store, &selection).unwrap();
    let text = |known: &Known| {
        known.state().map(|state| format!("{} {}", state.path, state.content.as_str()))
    };
    let shown: Vec<_> = changed
        .iter()
        .map(|it| (text(&it.before).unwrap_or_default(), text(&it.after), it.versions_count))
        .collect();
    let expected = [("/a one\n", "/b four\n", 3), ("", "/new six\n", 1)];
    assert_eq!(shown, expected.map(|(old, new, count)| (old.into(), Some(new.into()), count)));
}

#[test]
fn a_selection_of_many_authors_is_the_same_as_of_each() {
    let fixture = fixture();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        fixture.put_by(name, &format!("/{name}"), name);
    }
    let actors = names.iter().take(5).map(|name| by(name)).collect();
    fixture.done(&Goal::Revert(ChangeSelection { actors, ..ChangeSelection::default() }));
    assert_eq!(fixture.engine.tree(fixture.store).unwrap().len(), 1);
    assert_eq!(fixture.text("/f").unwrap(), "f");
}
