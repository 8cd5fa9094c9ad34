//! Gauges and counters of the storage and the server for `/metrics`.
//!
//! No label is taken from a request: each distinct value would be kept forever.

use std::fmt::{Display, Write as _};

use quipu_core::Error;
use quipu_core::backend::{Condition, Sequence};
use quipu_knowledge::Knowledge;

use super::App;
use super::upstream::Upstream;

/// The figures that are read from the engine.
#[derive(Debug)]
pub(super) struct Figures {
    newest: Sequence,
    indexed: Sequence,
    index_size_bytes: u64,
    /// `None` if it cannot be read; the other figures are shown nevertheless.
    condition: Option<Condition>,
}

impl Figures {
    pub(super) fn read(engine: &Knowledge) -> Result<Self, Error> {
        Ok(Self {
            newest: engine.newest_sequence()?,
            indexed: engine.followed(),
            index_size_bytes: engine.index_size_bytes(),
            condition: engine.condition().ok(),
        })
    }
}

/// Renders all metrics in the text format of Prometheus.
pub(super) fn render(app: &App, figures: &Figures) -> String {
    let mut page = Page(app.0.metrics.render());
    page.counter("quipu_sequence", "The newest change of the data directory", figures.newest.0);
    let index_lag = figures.newest.0.saturating_sub(figures.indexed.0);
    page.gauge("quipu_index_lag", "Changes that are not in the index yet", index_lag);
    let feed_lag = app.feed().published().map_or(0, |at| figures.newest.0.saturating_sub(at.0));
    page.gauge("quipu_feed_lag", "Changes that were not delivered to streams yet", feed_lag);
    let help = "Size of the search index and its write-ahead log";
    page.gauge("quipu_index_bytes", help, figures.index_size_bytes);
    if let Some(condition) = &figures.condition {
        storage(&mut page, condition);
    }
    let wrong = app.admission().wrong_count();
    let help = "Requests with a credential that is not valid";
    page.counter("quipu_authentication_failures_total", help, wrong);
    let (accepted, failed) = app.0.deliveries.counts();
    let name = "quipu_webhook_deliveries_total";
    page.family(name, "Webhook deliveries by result", "counter");
    page.line(name, "result=\"accepted\"", accepted);
    page.line(name, "result=\"failed\"", failed);
    let mcp = app.0.mcp.connections_count();
    page.gauge("quipu_mcp_connections", "Open MCP sessions over HTTP", mcp);
    if let Some(upstream) = app.upstream() {
        forwarded(&mut page, upstream);
    }
    let dropped = quipu_service::log::lines_dropped();
    page.counter("quipu_log_lines_dropped_total", "Log lines that could not be written", dropped);
    page.0
}

fn forwarded(page: &mut Page, upstream: &Upstream) {
    let open = upstream.streams_count();
    page.gauge("quipu_upstream_streams", "Requests that are being forwarded", open);
    let name = "quipu_upstream_requests_total";
    page.family(name, "Requests to the upstream by outcome", "counter");
    for (outcome, count) in upstream.tally().outcomes() {
        page.line(name, &format!("outcome=\"{outcome}\""), count);
    }
    let name = "quipu_upstream_memory_calls_total";
    page.family(name, "Calls of the memory tool that were answered for a model", "counter");
    let [answered, failed] = upstream.tally().memory_calls();
    page.line(name, "result=\"answered\"", answered);
    page.line(name, "result=\"failed\"", failed);
}

fn storage(page: &mut Page, condition: &Condition) {
    page.gauge("quipu_stores", "Stores, archived ones included", condition.stores_count);
    page.gauge("quipu_memories", "Memories in all stores", condition.memories_count);
    let help = "Versions in all stores";
    page.gauge("quipu_versions", help, condition.versions_count);
    let bytes = condition.database_size_bytes;
    page.gauge("quipu_database_bytes", "Size of the database file", bytes);
    page.gauge("quipu_log_bytes", "Size of the write-ahead log", condition.log_size_bytes);
    if let Some(free) = condition.disk_free_bytes {
        page.gauge("quipu_disk_free_bytes", "Room on the disk of the data directory", free);
    }
    let waiting = condition.writers_waiting_count;
    page.gauge("quipu_writers_waiting", "Writes of this server that wait for their turn", waiting);
    let name = "quipu_group_size";
    page.family(name, "Writes per transaction of this server", "summary");
    page.line("quipu_group_size_sum", "", condition.writes_count);
    page.line("quipu_group_size_count", "", condition.groups_count);
}

struct Page(String);

impl Page {
    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help, "gauge");
        self.line(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help, "counter");
        self.line(name, "", value);
    }

    fn family(&mut self, name: &str, help: &str, kind: &str) {
        let written = write!(self.0, "# HELP {name} {help}.\n# TYPE {name} {kind}\n");
        written.expect("a string can be written to");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        writeln!(self.0, "{name}{labels} {value}").expect("a string can be written to");
    }
}
