//! Redaction leaves no trace in the index, wherever in a note the text was and whatever the index
//! was doing.

use std::fs;
use std::sync::Arc;

use quipu_core::Engine;
use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, MemoryPath, PrincipalName, VersionId};
use quipu_knowledge::{Knowledge, SearchRequest};
use quipu_testkit::InMemoryBackend;
use quipu_testkit::knowledge::Library;

/// A word for each part of a note. None is a part or a variant of another.
const CANARIES: [&str; 10] = [
    "zqbody",
    "zqtitle",
    "zqpath",
    "zqtag",
    "zqlink",
    "zqfact",
    "zqcontext",
    "zqalias",
    "zqfield",
    "zqheading",
];

const PATH: &str = "/secret/zqpath.md";

fn leaking() -> String {
    "---\ntitle: zqtitle plan\ntags: [zqtag/inner]\naliases: [zqalias]\nowner: zqfield\n---\n\
     # zqheading\n\nthe zqbody of it\n- [zqfact] hot zqfact #zqtag (zqcontext)\n\
     - part_of [[zqlink]] (zqcontext)\n"
        .to_owned()
}

fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

/// A store with this many other notes, and a leak that was then moved and overwritten.
struct Leak {
    library: Library,
    versions: Vec<VersionId>,
}

impl Leak {
    fn new(notes: usize) -> Self {
        let library = Library::new(Arc::new(InMemoryBackend::default()));
        for number in 0..notes {
            library.put(&format!("/{number}.md"), &format!("# Note {number}\n\ntea {number}"));
        }
        Self { library, versions: Vec::new() }
    }

    fn engine(&self) -> &Engine {
        &self.library.engine
    }

    fn write(mut self) -> Self {
        self.versions.push(self.library.put(PATH, &leaking()).version);
        self
    }

    fn index(self) -> Self {
        assert_eq!(self.library.find("zqbody").len(), 1);
        self
    }

    /// Overwrites and moves the note, so that it can be redacted.
    fn clean(mut self) -> Self {
        self.versions.push(self.library.put(PATH, "clean").version);
        let path = |text| MemoryPath::parse(text).expect("a path");
        let moved =
            self.engine().rename(&actor(), self.library.store, &path(PATH), &path("/moved.md"));
        moved.expect("it moves");
        self
    }

    fn redact(self) -> Self {
        let redacted = self.engine().redact(&actor(), self.library.store, &self.versions);
        redacted.expect("it redacts");
        self
    }

    fn assert_gone(&self) {
        for entry in fs::read_dir(self.library.directory.path()).expect("a directory") {
            let path = entry.expect("an entry").path();
            let bytes = fs::read(&path).expect("a file");
            for canary in CANARIES {
                let is_there = bytes.windows(canary.len()).any(|it| it == canary.as_bytes());
                assert!(!is_there, "`{canary}` is in {}", path.display());
            }
        }
        for canary in CANARIES {
            assert_eq!(self.library.find(canary), Vec::<String>::new(), "{canary}");
        }
        assert_eq!(self.library.find("clean"), ["/moved.md"]);
        assert_eq!(self.library.engine.check().expect("it checks").problems, []);
    }
}

#[test]
fn redaction_leaves_no_trace_in_the_index() {
    for notes in [0, 10, 400] {
        Leak::new(notes).write().index().clean().redact().assert_gone();
    }
}

#[test]
fn an_index_of_the_newer_text_keeps_nothing_of_the_older() {
    for notes in [10, 400] {
        let leak = Leak::new(notes).write().index().clean();
        assert_eq!(leak.library.find("clean").len(), 1);
        leak.redact().assert_gone();
    }
}

#[test]
fn a_merged_segment_keeps_nothing() {
    let leak = Leak::new(400).write().index();
    for number in 0..64 {
        leak.library.put(&format!("/later/{number}.md"), "tea later");
        leak.library.find("later");
    }
    leak.library.engine.follow(None).expect("it merges");
    leak.clean().redact().assert_gone();
}

/// Other handles have the file open, have read the redacted text, and have cached parts of it.
#[test]
fn text_cached_by_other_processes_does_not_come_back() {
    let leak = Leak::new(60).write().index();
    let store = leak.library.store;
    let others: Vec<_> = (0..3)
        .map(|_| Knowledge::new(leak.engine().clone(), leak.library.directory.path()))
        .collect();
    let found = |other: &Knowledge, word: &str| {
        let request = SearchRequest::new(vec![store], word);
        other.search(&request).expect("it searches").hits.len()
    };
    for other in &others {
        assert_eq!(found(other, "zqtitle"), 1);
    }
    let leak = leak.clean().redact();
    leak.assert_gone();
    for (number, other) in others.iter().enumerate() {
        assert_eq!(found(other, "zqtitle"), 0);
        let path = MemoryPath::parse(&format!("/other/{number}.md")).expect("a path");
        let content = Content::new("written afterwards").expect("a text");
        let put = other.put(&actor(), store, (&path, &content), Precondition::None);
        put.expect("it is written");
        assert_eq!(found(other, "afterwards"), number + 1);
        other.follow(None).expect("it merges");
        leak.assert_gone();
    }
}

/// The write-ahead log must be erased as well as the index.
#[test]
fn repeated_redactions_leave_nothing_in_the_log() {
    let mut leak = Leak::new(300);
    for round in 0..12 {
        leak = leak.write();
        if round % 3 > 0 {
            leak = leak.index();
        }
        leak.library.delete(PATH);
        leak = leak.redact();
        leak.versions.clear();
        for canary in CANARIES {
            assert_eq!(leak.library.find(canary), Vec::<String>::new(), "{canary}");
        }
    }
    leak.library.put("/moved.md", "clean");
    leak.assert_gone();
}

#[test]
fn a_file_that_is_not_an_index_is_not_kept() {
    let leak = Leak::new(20).write().index().clean();
    let file = leak.library.directory.path().join(quipu_knowledge::INDEX_FILE);
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.clone().into_os_string();
        name.push(suffix);
        fs::remove_file(name).unwrap_or_default();
    }
    fs::write(&file, format!("no database, but {}", CANARIES.join(" "))).expect("it is written");
    leak.redact().assert_gone();
}
