//! The sessions in the documentation are recorded runs.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::fs;

use serde_json::Value;

use crate::hook::{Home, context};
use crate::support::root;

const HOST: &str = "claude-code";

const PROGRESS: &str = "\
# Progress

## Timer counts down

- Done: `timer.rs` counts down and beeps.
- Learned: the beeper needs 3 V; with less it is silent and reports no error.
- Next: stop the beep when the kettle is lifted.
";

const ENTRY: &str = "\
## The beep stops

- Done: lifting the kettle stops the beep.
- Learned: people write migrations; the change of the schema is described here.
";

/// Claude Code as it uses its hooks, with what they have answered.
struct Host {
    home: Home,
}

impl Host {
    fn new() -> Self {
        let home = Home::new();
        home.quipu.ok(&["init-project", "kettle"]);
        home.quipu.ok(&["store", "default", "kettle"]);
        home.quipu.put("/progress.md", PROGRESS);
        let beeper = "# Beeper\n\nThe beeper of the kettle timer is on pin 7 and needs 3 V.\n";
        home.quipu.put("/beeper.md", beeper);
        Self { home }
    }

    /// Starts a session and returns what is put in front of the model.
    fn start(&self, session: &str) -> String {
        let mut input = self.home.fixture(HOST, "session-start");
        input["session_id"] = session.into();
        self.shown(context(&self.home.answer("run", HOST, &input)))
    }

    /// Returns the input of a call that edits a file of the project.
    fn edit(&self, file: &str) -> Value {
        let mut input = self.home.fixture(HOST, "pre-tool-use-edit");
        let path = self.home.path().join("app").join(file);
        input["tool_input"]["file_path"] = path.display().to_string().into();
        input
    }

    /// Returns a text as the documentation shows it: with other ids, dates and directories.
    fn shown(&self, text: &str) -> String {
        let text = text.replace(&self.home.path().display().to_string(), "/home/ada");
        let words = text.split_inclusive([' ', '\n', ',', '"', ')']);
        words.map(word_shown).collect()
    }
}

fn word_shown(word: &str) -> String {
    let end = [' ', '\n', ',', '"', ')', '('];
    let bare = word.trim_matches(end);
    let is_date = |text: &str| text.split('-').map(str::len).eq([4, 2, 2]);
    let shown = if bare.starts_with("memver_") {
        "memver_011ng7kErtmxh4yEZG1jHEHM"
    } else if is_date(bare) {
        "2026-11-18"
    } else if bare.get(..10).is_some_and(is_date) && bare.ends_with('Z') {
        "2026-11-18T21:10:18.697908Z"
    } else {
        return word.to_owned();
    };
    word.replace(bare, shown)
}

/// Returns the blocks of a section of the documentation.
fn blocks(section: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/hooks.md")).expect("it is there");
    let (_, rest) = text.split_once(&format!("\n## {section}\n")).expect("the section");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let parts = section.split("\n```").skip(1).step_by(2);
    parts.map(|part| part.split_once('\n').map_or("", |(_, text)| text).to_owned()).collect()
}

/// Compares a text with what the documentation shows of it; `[…]` stands for any lines.
fn assert_shows(documented: &str, text: &str) {
    let mut rest = text.trim_end();
    let parts = documented.trim_end().split("[…]").map(|part| part.trim_matches('\n'));
    for (number, part) in parts.enumerate() {
        let (before, after) = rest.split_once(part).unwrap_or((rest, ""));
        let is_shown = rest.contains(part) && (number > 0 || before.is_empty());
        assert!(is_shown, "the documentation shows\n{part}\n---- but it is\n{text}");
        rest = after;
    }
    let is_open = documented.trim_end().ends_with("[…]");
    assert!(is_open || rest.is_empty(), "the documentation leaves out\n{rest}");
}

#[test]
fn the_session_in_the_documentation_is_a_recorded_run() {
    let host = Host::new();
    let mut run = vec![host.start("abc123")];

    let call = host.edit("migrations/0001.sql");
    let denied = host.home.answer("decide", HOST, &call);
    let log = host.home.quipu.ok(&["hook", "log"]);
    run.push(host.shown(&format!(
        "$ quipu hook decide --host claude-code < pre-tool-use-edit.json\n{denied}\n\
         $ quipu hook log\n{log}"
    )));

    assert_eq!(host.home.answer("decide", HOST, &host.edit("timer.rs")), Value::Null);
    run.push(host.shown(&host.home.run(HOST, "stop").to_string()));
    let log = PROGRESS.replace("## Timer", &format!("{ENTRY}\n## Timer"));
    host.home.quipu.put("/progress.md", &log);
    let mut stop = host.home.fixture(HOST, "stop");
    stop["stop_hook_active"] = true.into();
    assert_eq!(host.home.answer("run", HOST, &stop), Value::Null);
    assert_eq!(host.home.run(HOST, "session-end"), Value::Null);

    run.push(host.start("def456"));
    let documented = blocks("A session");
    assert_eq!(documented.len(), run.len(), "{}", run.join("\n====\n"));
    for (documented, text) in documented.iter().zip(&run) {
        assert_shows(documented, text);
    }
}
