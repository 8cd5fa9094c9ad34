//! Reading through any door keeps a memory from expiring, and is recorded by the time the door closes.

use quipu_core::engine::NewStore;
use quipu_core::model::{Actor, Content, MemoryPath, Name, StorePolicy};
use rustix::process::Signal;
use serde_json::json;

use crate::mcp::Host;
use crate::server::{KEY, Server};
use crate::support::Quipu;

/// Returns a home with the memories `/read.md` and `/unused.md`, six days old, in a store that deletes
/// memories not used for seven.
pub(crate) fn aged() -> Quipu {
    let quipu = Quipu::empty();
    let engine = quipu.engine(-6);
    let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
    let name = Name::new("memories").expect("a name");
    let new = NewStore { policy, ..NewStore::named(name) };
    let workspace = engine.default_workspace().expect("a workspace").id;
    let store = engine.create_store(workspace, &new).expect("a store").id;
    for path in ["/read.md", "/unused.md"] {
        let (path, content) = (MemoryPath::parse(path), Content::new("green"));
        let (path, content) = (path.expect("a path"), content.expect("a text"));
        engine.create(&Actor::expiry(), store, &path, &content).expect("it is written");
    }
    quipu
}

/// Prunes two days from now.
#[track_caller]
fn assert_kept(quipu: &Quipu) {
    quipu.engine(2).prune().expect("it prunes");
    assert_eq!(quipu.ok(&["ls"]), "/read.md\n");
}

#[test]
fn a_memory_that_is_printed_does_not_expire() {
    let quipu = aged();
    assert_eq!(quipu.ok(&["cat", "/read.md"]), "green");
    assert_kept(&quipu);
}

#[test]
fn a_memory_that_the_memory_tool_views_does_not_expire() {
    let quipu = aged();
    let view = json!({"command": "view", "path": "/memories/read.md"}).to_string();
    assert_eq!(quipu.run_with(&["tool"], view.as_bytes()).code, 0);
    assert_kept(&quipu);
}

#[test]
fn a_note_that_an_mcp_host_reads_does_not_expire() {
    let quipu = aged();
    let mut host = Host::new(&quipu, &["--store", "memories"]);
    host.ok("read_note", json!({"identifier": "read"}));
    assert_eq!(host.close(), 0);
    assert_kept(&quipu);
}

#[test]
fn a_memory_that_a_rest_client_reads_does_not_expire() {
    let quipu = aged();
    let mut server = Server::start(&quipu);
    let (_, stores) = server.get(KEY, "/v1/memory_stores");
    let store = stores["data"][0]["id"].as_str().expect("an id");
    let memories = format!("/v1/memory_stores/{store}/memories");
    let (_, list) = server.get(KEY, &memories);
    let memory = list["data"][0]["id"].as_str().expect("an id");
    assert_eq!(server.get(KEY, &format!("{memories}/{memory}")).1["content"], "green");
    server.signal(Signal::TERM);
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    assert_kept(&quipu);
}
