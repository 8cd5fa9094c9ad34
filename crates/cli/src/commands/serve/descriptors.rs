//! File descriptors: raises the limit, and reserves enough for the database.

use quipu_server::HttpSettings;

/// Descriptors besides connections and request threads: standard streams, the runtime, the listener,
/// the write connection, lock files, background threads.
const SPARE: usize = 32;

/// Descriptors of a read connection to the database: the file and its write-ahead log.
const PER_THREAD: usize = 2;

/// Raises the limit of the process as far as needed and allowed, then lowers the settings to fit.
pub(super) fn fit(http: &mut HttpSettings) {
    let needed = needed(http);
    let limit = raised(needed);
    if limit < needed {
        let before = http.connections_max;
        lower(http, limit);
        tracing::warn!(
            limit,
            connections_max = http.connections_max,
            configured = before,
            "the limit on open files (`ulimit -n`) allows fewer connections than configured"
        );
    }
}

fn needed(http: &HttpSettings) -> usize {
    let threads = http.pool.readers_max + http.pool.writers_max;
    SPARE + PER_THREAD * threads + http.connections_max + streams_max(http)
}

/// Returns how many connections there may be to the upstream.
fn streams_max(http: &HttpSettings) -> usize {
    http.upstream.as_ref().map_or(0, |upstream| upstream.streams_max)
}

fn lower(http: &mut HttpSettings, limit: usize) {
    let share = limit.saturating_sub(SPARE);
    let threads_max = (share / 8).max(2);
    http.pool.readers_max = http.pool.readers_max.min(threads_max);
    http.pool.writers_max = http.pool.writers_max.min(threads_max);
    let threads = http.pool.readers_max + http.pool.writers_max;
    if let Some(upstream) = &mut http.upstream {
        upstream.streams_max = upstream.streams_max.min((share / 4).max(2));
    }
    let taken = PER_THREAD * threads + streams_max(http);
    let connections_max = share.saturating_sub(taken).max(4);
    http.connections_max = http.connections_max.min(connections_max);
}

/// Returns the limit after raising it.
#[cfg(target_os = "linux")]
fn raised(needed: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(u64::MAX).min(needed as u64);
    let limit = match current {
        Some(current) if current < wanted => {
            let raised = Rlimit { current: Some(wanted), maximum };
            if setrlimit(Resource::Nofile, raised).is_ok() { wanted } else { current }
        }
        Some(current) => current,
        None => u64::MAX,
    };
    usize::try_from(limit).unwrap_or(usize::MAX)
}

#[cfg(not(target_os = "linux"))]
fn raised(needed: usize) -> usize {
    needed
}

#[cfg(test)]
mod tests {
    use quipu_server::{BaseUrl, UpstreamSettings};

    use super::*;

    #[test]
    fn lowered_settings_fit_the_limit() {
        for limit in [64, 128, 256, 1024] {
            let mut http = HttpSettings::default();
            lower(&mut http, limit);
            assert!(needed(&http) <= limit, "{limit}: {http:?}");
            assert!(http.connections_max >= 4 && http.pool.readers_max >= 2, "{http:?}");
            let url = BaseUrl::parse("http://localhost").unwrap();
            http.upstream = Some(UpstreamSettings::new(url, None));
            lower(&mut http, limit);
            assert!(needed(&http) <= limit, "{limit}: {http:?}");
            assert!(http.connections_max >= 4 && streams_max(&http) >= 2, "{http:?}");
        }
    }
}
