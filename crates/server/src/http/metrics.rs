//! Figures about requests, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Method, StatusCode};

/// Counts requests by route and status, and how long they took.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    routes: Mutex<BTreeMap<(String, String, u16), Figures>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    count: u64,
    seconds: f64,
    /// How many took at most so long, for each of [`BUCKETS_SECONDS`].
    within: [u64; BUCKETS_SECONDS.len()],
}

const BUCKETS_SECONDS: [f64; 8] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0];

impl Metrics {
    pub(super) fn observe(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let key = (method.to_string(), route.to_owned(), status.as_u16());
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = routes.entry(key).or_default();
        let seconds = took.as_secs_f64();
        figures.count += 1;
        figures.seconds += seconds;
        for (within, limit) in figures.within.iter_mut().zip(BUCKETS_SECONDS) {
            *within += u64::from(seconds <= limit);
        }
    }

    /// Writes everything that was counted.
    pub(super) fn render(&self) -> String {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = String::new();
        text.push_str("# HELP quipu_requests_total Requests that were answered.\n");
        text.push_str("# TYPE quipu_requests_total counter\n");
        for ((method, route, status), figures) in &routes {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            line(&mut text, "quipu_requests_total", &labels, figures.count);
        }
        text.push_str("# HELP quipu_request_seconds How long requests took.\n");
        text.push_str("# TYPE quipu_request_seconds histogram\n");
        for ((method, route, status), figures) in &routes {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            for (within, limit) in figures.within.iter().zip(BUCKETS_SECONDS) {
                let labels = format!("{labels},le=\"{limit}\"");
                line(&mut text, "quipu_request_seconds_bucket", &labels, within);
            }
            let all = format!("{labels},le=\"+Inf\"");
            line(&mut text, "quipu_request_seconds_bucket", &all, figures.count);
            line(&mut text, "quipu_request_seconds_sum", &labels, figures.seconds);
            line(&mut text, "quipu_request_seconds_count", &labels, figures.count);
        }
        text
    }
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    writeln!(text, "{name}{{{labels}}} {value}").expect("a string can be written to");
}
