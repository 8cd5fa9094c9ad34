//! Request metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Method, StatusCode};

/// Counts and latencies of requests by route, method and status.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    routes: Mutex<BTreeMap<String, Vec<Series>>>,
    /// The number of failed requests by error type.
    failures: Mutex<BTreeMap<&'static str, u64>>,
}

/// The requests of one route that had the same method and status.
#[derive(Clone, Debug)]
struct Series {
    method: &'static str,
    status: StatusCode,
    figures: Figures,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    count: u64,
    seconds: f64,
    /// How many took at most as long as each of [`BUCKETS_SECONDS`].
    within: [u64; BUCKETS_SECONDS.len()],
}

const BUCKETS_SECONDS: [f64; 8] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0];

impl Series {
    fn labels(&self, route: &str) -> String {
        let (method, status) = (self.method, self.status.as_u16());
        format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"")
    }
}

impl Figures {
    fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.count += 1;
        self.seconds += seconds;
        for (within, limit) in self.within.iter_mut().zip(BUCKETS_SECONDS) {
            *within += u64::from(seconds <= limit);
        }
    }
}

impl Metrics {
    pub(super) fn observe(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let method = label(method);
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        if !routes.contains_key(route) {
            routes.insert(route.to_owned(), Vec::new());
        }
        let Some(all) = routes.get_mut(route) else { return };
        match all.iter_mut().find(|series| series.method == method && series.status == status) {
            Some(series) => series.figures.add(took),
            None => {
                let mut figures = Figures::default();
                figures.add(took);
                all.push(Series { method, status, figures });
            }
        }
    }

    /// Counts a failed request.
    pub(super) fn count_failure(&self, error_type: &'static str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        *failures.entry(error_type).or_default() += 1;
    }

    /// Renders all request metrics.
    pub(super) fn render(&self) -> String {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let labelled: Vec<_> = routes
            .iter()
            .flat_map(|(route, all)| {
                all.iter().map(move |series| (series.labels(route), series.figures))
            })
            .collect();
        let mut text = String::new();
        text.push_str("# HELP quipu_requests_total Requests that were answered.\n");
        text.push_str("# TYPE quipu_requests_total counter\n");
        for (labels, figures) in &labelled {
            line(&mut text, "quipu_requests_total", labels, figures.count);
        }
        text.push_str("# HELP quipu_request_seconds How long requests took.\n");
        text.push_str("# TYPE quipu_request_seconds histogram\n");
        for (labels, figures) in &labelled {
            for (within, limit) in figures.within.iter().zip(BUCKETS_SECONDS) {
                let labels = format!("{labels},le=\"{limit}\"");
                line(&mut text, "quipu_request_seconds_bucket", &labels, within);
            }
            let all = format!("{labels},le=\"+Inf\"");
            line(&mut text, "quipu_request_seconds_bucket", &all, figures.count);
            line(&mut text, "quipu_request_seconds_sum", labels, figures.seconds);
            line(&mut text, "quipu_request_seconds_count", labels, figures.count);
        }
        text.push_str("# HELP quipu_request_failures_total Refused and failed requests by type.\n");
        text.push_str("# TYPE quipu_request_failures_total counter\n");
        for (error_type, count) in &*self.failures.lock().unwrap_or_else(PoisonError::into_inner) {
            let labels = format!("type=\"{error_type}\"");
            line(&mut text, "quipu_request_failures_total", &labels, count);
        }
        text
    }
}

/// Returns the label of a method. Clients may invent methods, and each label would be kept forever.
fn label(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|known| method == known).unwrap_or("other")
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    writeln!(text, "{name}{{{labels}}} {value}").expect("a string can be written to");
}
