//! Taking back what somebody did: `revert`, `restore --at`, and writing as a session.

use std::process::Stdio;
use std::time::Duration;

use quipu_core::clock::{Clock as _, SystemClock};
use quipu_core::engine::{NewKey, NewSession, Precondition, SessionToken};
use quipu_core::model::{
    Actor, Content, Forwarding, MemoryPath, Name, PrincipalName, Role, StoreId, View,
};
use quipu_core::{Engine, Error};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Quipu, Ran, signal};

impl Quipu {
    /// Writes to a store as a session.
    #[track_caller]
    fn put_as(&self, session: &str, path: &str, text: &str) {
        let ran = self.run_with(&["put", path, "--session", session], text.as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
    }

    fn new_session(&self, title: &str, stores: &[&str]) -> String {
        let mut arguments = vec!["session", "create", "--title", title];
        for store in stores {
            arguments.extend(["--store", store]);
        }
        text(&self.json(&arguments), "id")
    }

    /// Returns the digest of a plan that is shown.
    fn digest(&self, arguments: &[&str]) -> String {
        text(&self.json(arguments), "digest")
    }
}

fn text(body: &Value, field: &str) -> String {
    body.get(field).and_then(Value::as_str).expect("a text").to_owned()
}

#[test]
fn a_session_is_taken_back_as_planned_and_brought_back_as_printed() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "one\ntwo\nthree\n");
    quipu.put("/b", "kept\n");
    let session = quipu.new_session("Nightly review", &["notes"]);
    quipu.put_as(&session, "/a", "BAD\ntwo\nthree\n");
    quipu.ok(&["mv", "/b", "/c", "--session", &session]);
    quipu.put("/a", "BAD\ntwo\nTHREE\n");

    let plan = quipu.ok(&["revert", "--session", "nightly", "--dry-run"]);
    assert!(plan.contains("change  /a  (others have changed it since"), "{plan}");
    assert!(plan.contains("-BAD\n+one\n") && plan.contains("/c -> /b"), "{plan}");
    assert_eq!(quipu.ok(&["ls"]), "/a\n/c\n");
    let digest = quipu.digest(&["revert", "--session", &session, "--dry-run"]);
    assert!(plan.contains(&format!("--session nightly --store notes --expect {digest}")), "{plan}");

    let reason = ["--reason", "it misread the calendar"];
    let expect = ["--expect", digest.get(..8).unwrap_or_default()];
    let revert = [&["revert", "--session", "nightly"][..], &expect, &reason].concat();
    let done = quipu.ok(&revert);
    assert_eq!(quipu.ok(&["cat", "/a"]), "one\ntwo\nTHREE\n");
    assert_eq!(quipu.ok(&["cat", "/b"]), "kept\n");
    assert!(quipu.ok(&["log", "/b"]).contains("Reason: it misread the calendar"));
    // Everything is as it should be, so the same plan does not exist anymore.
    assert_eq!(quipu.run(&revert).code, 4);

    let line = done.lines().last().expect("the command that takes it back");
    let words: Vec<_> = line.split_whitespace().skip(1).collect();
    quipu.ok(&words);
    assert_eq!(quipu.ok(&["cat", "/a"]), "BAD\ntwo\nTHREE\n");
    assert_eq!(quipu.ok(&["ls"]), "/a\n/c\n");
}

#[test]
fn a_text_goes_back_although_its_path_was_taken() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "one\n");
    let session = quipu.new_session("agent", &["notes"]);
    quipu.put_as(&session, "/a", "one\nEVIL\n");
    quipu.ok(&["mv", "/a", "/r", "--session", &session]);
    quipu.put("/a", "theirs\n");
    let plan = quipu.ok(&["revert", "--session", "agent", "--dry-run"]);
    let line = "change  /r  (its text goes back; its path stays, because another memory is at `/a`";
    assert!(plan.contains(line) && plan.contains("-EVIL\n"), "{plan}");
    quipu.ok(&["revert", "--session", "agent"]);
    assert_eq!(quipu.ok(&["cat", "/a", "/r"]), "theirs\none\n");
}

#[test]
fn what_changed_since_the_plan_is_refused() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "one\ntwo\nthree\n");
    let session = quipu.new_session("agent", &["notes"]);
    quipu.put_as(&session, "/a", "BAD\ntwo\nthree\n");
    let digest = quipu.digest(&["revert", "--session", &session, "--dry-run"]);
    quipu.put("/a", "BAD\ntwo\nTHREE\n");
    let refused = quipu.run(&["revert", "--session", &session, "--expect", &digest]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("nothing was changed"), "{refused:?}");
    assert_eq!(quipu.ok(&["cat", "/a"]), "BAD\ntwo\nTHREE\n");
}

#[test]
fn wrong_and_ambiguous_names_and_times_change_nothing() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "one\n");
    let sessions = ["agent one", "agent two"].map(|title| quipu.new_session(title, &["notes"]));
    quipu.put_as(&sessions[0], "/a", "two\n");
    let log = quipu.ok(&["log", "--oneline"]);
    let cases: [(&[&str], i32, &str); 9] = [
        (&["--session", "agent"], 3, "may mean 2 authors"),
        (&["--session", "nobody"], 3, "no session matches"),
        (&["--key", "nobody"], 3, "no key is named"),
        (&["--actor", "no one"], 3, "no author matches"),
        (&["--session", "agent one", "--since", "soon"], 2, "is not a time"),
        (&["--session", "agent one", "--since", "2999-01-01"], 2, "in the future"),
        (&["--session", "agent one", "--since", "1d", "--until", "2d"], 2, "is after"),
        (&["--session", "agent one", "--expect", "123"], 2, "hex digits"),
        (&["--session", "agent one", "--actor", "ada"], 2, "cannot be used with"),
    ];
    for (arguments, code, message) in cases {
        let ran = quipu.run(&[&["revert"], arguments].concat());
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.err.contains(message), "{arguments:?} {ran:?}");
    }
    for arguments in [["--actor", "nobody"], ["--session", "agent two"]] {
        let nothing = quipu.ok(&[&["revert"][..], &arguments].concat());
        assert_eq!(nothing, "nothing to do\n");
    }
    assert_eq!(quipu.ok(&["log", "--oneline"]), log);
    quipu.ok(&["store", "archive", "notes"]);
    let archived = quipu.run(&["revert", "--session", "agent one", "--store", "notes"]);
    assert_eq!(archived.code, 5, "{archived:?}");
}

#[test]
fn a_store_that_fails_after_another_one_is_done_is_reported_with_it() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "team"]);
    let session = quipu.new_session("agent", &["notes", "team"]);
    for store in ["notes", "team"] {
        let put = ["put", "/a", "--store", store];
        assert_eq!(quipu.run_with(&put, b"one").code, 0);
    }
    for (store, text) in [("notes", "two"), ("team", "2")] {
        let put = ["put", "/a", "--store", store, "--session", &session];
        assert_eq!(quipu.run_with(&put, text.as_bytes()).code, 0);
    }
    assert_eq!(quipu.run_with(&["put", "/b", "--store", "team"], b"full").code, 0);

    let mut command = quipu.command(&["revert", "--session", "agent", "--all"]);
    command.env("QUIPU_LIMITS_STORE_SIZE_BYTES_MAX", "6");
    let ran = crate::support::run(command, b"");
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("done in `notes`, then: the store would hold 7 bytes"), "{ran:?}");
    assert!(ran.err.contains("--actor user_ada --since"), "{ran:?}");
    assert_eq!(quipu.ok(&["cat", "/a", "--store", "notes"]), "one");
    assert_eq!(quipu.ok(&["cat", "/a", "--store", "team"]), "2");
}

/// What a plan says to carry it out names the same state, also within a transaction.
#[test]
fn a_plan_for_a_version_is_carried_out_for_that_version() {
    let quipu = Quipu::with_store();
    quipu.put("/old/1", "text");
    quipu.put("/old/2", "text");
    quipu.ok(&["mv", "/old", "/new"]);
    // The store, two memories, and the first half of the move.
    let plan = quipu.ok(&["restore", "--at", "#4", "--dry-run"]);
    assert!(plan.contains(" --at '#4' --store notes --expect "), "{plan}");
    let digest = quipu.digest(&["restore", "--at", "#4", "--dry-run"]);
    quipu.ok(&["restore", "--at", "#4", "--expect", &digest]);
    assert_eq!(quipu.ok(&["ls", "-R"]), "/new/1\n/old/2\n");
}

#[test]
fn a_folder_goes_back_to_a_moment() {
    let quipu = Quipu::with_store();
    quipu.put("/dir/a", "then\n");
    let moment = quipu.put("/other", "then\n");
    quipu.put("/dir/a", "now\n");
    quipu.put("/dir/b", "now\n");
    quipu.put("/other", "now\n");
    let plan = quipu.ok(&["restore", "dir", "--at", &moment, "--dry-run"]);
    assert!(plan.contains("delete  /dir/b  (it did not exist then)"), "{plan}");
    assert_eq!(quipu.ok(&["cat", "/dir/a"]), "now\n");
    let digest = quipu.digest(&["restore", "dir", "--at", &moment, "--dry-run"]);
    quipu.ok(&["restore", "dir/", "--at", &moment, "--expect", &digest]);
    assert_eq!(quipu.ok(&["ls", "-R"]), "/dir/a\n/other\n");
    assert_eq!(quipu.ok(&["cat", "/dir/a", "/other"]), "then\nnow\n");
    for (arguments, code) in [
        (&["restore", "--at", "2999-01-01"][..], 2),
        (&["restore", "--at", "1999-01-01"], 3),
        (&["restore", "typo", "--at", &moment], 3),
        (&["restore", "/other", "--dry-run"], 2),
        (&["restore"], 2),
    ] {
        let ran = quipu.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?} {ran:?}");
    }
}

#[test]
fn commands_write_as_a_session_that_may() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "other"]);
    let session = quipu.new_session("script", &["notes", "other:ro"]);
    let put = |store: &str, session: &str| {
        quipu.run_with(&["put", "/a", "--store", store, "--session", session], b"text")
    };
    assert_eq!(put("notes", &session).code, 0);
    let by_variable = |session: &str| -> Ran {
        let mut command = quipu.command(&["rm", "/a", "--store", "notes"]);
        command.env("QUIPU_SESSION", session);
        crate::support::run(command, b"")
    };
    assert_eq!(by_variable(&session).code, 0);
    let log = quipu.ok(&["log", "--session", "script", "--store", "notes", "--oneline"]);
    assert_eq!(log.lines().count(), 2, "{log}");
    for option in [["--host", "script"], ["--session", &session], ["--actor", "script"]] {
        let same = quipu.ok(&[&["log", "--store", "notes", "--oneline"][..], &option].concat());
        assert_eq!(same, log);
    }
    assert_eq!(quipu.ok(&["log", "--store", "notes", "--oneline", "--user", "ada"]), "");

    let read_only = put("other", &session);
    assert_eq!(read_only.code, 6, "{read_only:?}");
    assert!(read_only.err.contains("for reading only"), "{read_only:?}");
    let apart = quipu.new_session("elsewhere", &["other"]);
    assert!(put("notes", &apart).err.contains("is not attached"));
    quipu.ok(&["session", "archive", &session]);
    assert!(put("notes", &session).err.contains("is archived"));
    quipu.ok(&["session", "delete", &apart]);
    assert_eq!(put("notes", &apart).code, 3);
    assert_eq!(by_variable("nonsense").code, 2);
}

#[test]
fn the_log_of_a_directory_has_what_happened_in_it() {
    let quipu = Quipu::with_store();
    quipu.put("/dir/a", "one");
    quipu.put("/other", "two");
    quipu.ok(&["mv", "/dir/a", "/b"]);
    for name in ["dir", "/dir/"] {
        let log = quipu.ok(&["log", name, "--oneline"]);
        assert!(log.lines().count() == 1 && log.contains("created"), "{log}");
    }
    assert_eq!(quipu.ok(&["log", "/", "--oneline"]).lines().count(), 3);
    assert_eq!(quipu.run(&["log", "typo"]).code, 3);
}

#[test]
fn a_session_is_shown_with_all_that_it_changed_as_one_diff() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "one\n");
    let session = quipu.new_session("agent", &["notes"]);
    quipu.put_as(&session, "/a", "two\n");
    quipu.put_as(&session, "/a", "three\n");
    quipu.put_as(&session, "/b", "new\n");
    let shown = quipu.ok(&["session", "show", &session]);
    assert!(shown.contains("changed /a in notes (2 versions, +1 -1)\n"), "{shown}");
    assert!(shown.contains("-one\n+three\n") && !shown.contains("two"), "{shown}");
    let stat = quipu.ok(&["session", "show", &session, "--stat"]);
    assert!(stat.contains("created /b in notes (1 version, +1 -0)\n") && !stat.contains("+new"));
    let body = quipu.json(&["session", "show", &session]);
    assert_eq!(body["changes"][0]["diff"]["added_count"], 1);
}

fn rogue(engine: &Engine, stores: &[StoreId; 2]) -> Result<(), Error> {
    let workspace = engine.default_workspace()?.id;
    let new = NewKey {
        name: Name::new("ci")?,
        role: Role::ReadWrite,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let key = engine.create_key(workspace, &new)?.0.id;
    let titled = NewSession::titled("an MCP client", Vec::new(), SessionToken::None);
    let new = NewSession { key: Some(key), ..titled };
    let session = engine.create_session(workspace, &new)?.0.id;
    let [by_key, by_session] = [Actor::ApiKey(key), Actor::Session(session)];
    let path = |text: &str| MemoryPath::parse(text).map_err(Error::from);
    for number in 0..12 {
        let (actor, store) =
            if number % 2 == 0 { (&by_key, stores[0]) } else { (&by_session, stores[1]) };
        let text = Content::new(format!("title\n\nrogue {number}\n\nend\n"))?;
        let target = (&path(&format!("/note-{}", number % 4))?, &text);
        engine.put(actor, store, target, Precondition::None)?;
        let spam = path(&format!("/spam/{number}"))?;
        engine.create(actor, store, &spam, &text)?;
    }
    engine.rename(&by_key, stores[0], &path("/kept")?, &path("/hidden/kept")?)?;
    engine.delete_at(&by_session, stores[1], &path("/gone")?)?;
    let token = Content::new("title\n\nghp_0123456789abcdefghijABCDEFGHIJ012345\n\nend\n")?;
    let target = (&path("/leak")?, &token);
    engine.put(&by_key, stores[0], target, Precondition::None).map(drop)
}

/// The incident that this is for: 27 changes with one key in two stores, through REST and MCP.
#[test]
fn what_a_rogue_key_did_is_taken_back_with_one_command() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "team"]);
    let names = ["notes", "team"];
    for store in names {
        for path in ["/note-0", "/note-1", "/note-2", "/note-3", "/kept", "/gone", "/leak"] {
            let text = format!("title\n\n{path}\n\nend\n");
            let ran = quipu.run_with(&["put", path, "--store", store], text.as_bytes());
            assert_eq!(ran.code, 0, "{ran:?}");
        }
    }
    let before = names.map(|store| quipu.ok(&["ls", "-R", "--store", store]));
    let engine = quipu.engine(0);
    let workspace = engine.default_workspace().expect("a workspace").id;
    let stores = names.map(|name| engine.find_store(workspace, name).expect("a store").id);
    rogue(&engine, &stores).expect("it is done");
    let mine = quipu.ok(&["cat", "/note-1", "--store", "team"]).replace("end", "the end");
    let ran = quipu.run_with(&["put", "/note-1", "--store", "team"], mine.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");

    assert_eq!(quipu.ok(&["log", "--all", "--key", "ci", "--oneline"]).lines().count(), 27);
    let done = quipu.json(&["revert", "--key", "ci", "--all"]);
    let left: Vec<_> = done["stores"].as_array().expect("a list").iter().collect();
    assert!(left.iter().all(|plan| plan["left_count"] == 0), "{done}");
    assert_eq!(names.map(|store| quipu.ok(&["ls", "-R", "--store", store])), before);
    let merged = quipu.ok(&["cat", "/note-1", "--store", "team"]);
    assert_eq!(merged, "title\n\n/note-1\n\nthe end\n");
    quipu.ok(&["check"]);
}

/// A killed revert leaves each store as it was or finished, and the first store before the second.
#[test]
fn a_killed_revert_leaves_nothing_half_done() {
    const MEMORIES: usize = 150;
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "team"]);
    let engine = quipu.engine(0);
    let workspace = engine.default_workspace().expect("a workspace").id;
    let stores = ["notes", "team"].map(|name| engine.find_store(workspace, name).unwrap().id);
    let write = |author: &str, text: &str| {
        let actor = Actor::User(PrincipalName::from_host(author));
        for store in stores {
            for number in 0..MEMORIES {
                let path = MemoryPath::parse(&format!("/{number}")).unwrap();
                let target = (&path, &Content::new(text).unwrap());
                engine.put(&actor, store, target, Precondition::None).unwrap();
            }
        }
    };
    let count_good = |store: StoreId| {
        let is_good = |number: &usize| {
            let path = MemoryPath::parse(&format!("/{number}")).unwrap();
            let memory = engine.memory_at(store, &path, View::Full).unwrap();
            memory.content.is_some_and(|content| content.as_str() == "good\n")
        };
        (0..MEMORIES).filter(is_good).count()
    };
    write("bob", "good\n");
    for _ in 0..6 {
        write("rogue", "bad\n");
        let mut command = quipu.command(&["revert", "--actor", "rogue", "--all"]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let millis = u64::try_from(SystemClock.random() % 250).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        if child.try_wait().unwrap().is_none() {
            signal(&child, Signal::KILL);
        }
        child.wait().unwrap();
        let counts = stores.map(count_good);
        assert!(
            [[0, 0], [MEMORIES, 0], [MEMORIES, MEMORIES]].contains(&counts),
            "after {millis} ms: {counts:?}"
        );
        assert_eq!(engine.check().unwrap().problems, []);
    }
    quipu.ok(&["revert", "--actor", "rogue", "--all"]);
    assert_eq!(stores.map(count_good), [MEMORIES; 2]);
}
