//! Downloads files, within limits.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ureq::http::{Response, StatusCode, Uri};
use ureq::{Agent, Body};

use crate::failure::Failure;
use crate::print::size;

/// Downloads over HTTP.
pub(super) struct Download {
    agent: Agent,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long nothing may arrive. The whole may take as long as it takes.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
const REDIRECTS_MAX: usize = 5;

impl Download {
    pub(super) fn new() -> Self {
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(STALL_TIMEOUT))
            .timeout_per_read(Some(STALL_TIMEOUT))
            // A connection that the server is about to close must not fail the next file.
            .max_idle_connections(0)
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        Self { agent: config.into() }
    }

    /// Downloads a file and returns whether it exists.
    pub(super) fn file(
        &self,
        url: &str,
        target: &Path,
        size_bytes_max: u64,
    ) -> Result<bool, Failure> {
        let failed =
            |why: &dyn std::fmt::Display| Failure::other(format!("cannot download {url}: {why}"));
        let mut response = self.response(url).map_err(|why| failed(&why))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(false),
            status => return Err(failed(&format!("the server answered {}", status.as_u16()))),
        }
        let length = response.body().content_length();
        let too_large = || failed(&format!("it is larger than {}", size(size_bytes_max)));
        if length.is_some_and(|length| length > size_bytes_max) {
            return Err(too_large());
        }
        let bar = bar(length, target);
        // One byte more than allowed tells a file of that size from a larger one.
        let mut reader = response.body_mut().as_reader().take(size_bytes_max + 1);
        let mut file = File::create(target)?;
        let mut buffer = vec![0; 128 * 1024];
        let mut received_bytes = 0;
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(&error)),
            };
            file.write_all(buffer.get(..count).unwrap_or_default())?;
            received_bytes += count as u64;
            bar.set_position(received_bytes);
        }
        bar.finish_and_clear();
        if received_bytes > size_bytes_max {
            return Err(too_large());
        }
        if length.is_some_and(|length| length != received_bytes) {
            return Err(failed(&"the connection ended too early"));
        }
        file.sync_all()?;
        Ok(true)
    }

    /// Follows redirects. The client could do it, but it must neither leave HTTPS nor HTTP.
    fn response(&self, url: &str) -> Result<Response<Body>, String> {
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS_MAX {
            let response = self.agent.get(&url).call().map_err(|error| error.to_string())?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let location = response.headers().get("location").and_then(|value| value.to_str().ok());
            url = redirected(&url, location.unwrap_or_default())
                .ok_or("the server redirects to an address that is not followed")?;
        }
        Err("the server redirects too often".to_owned())
    }
}

/// Returns the address that a redirect leads to, unless it leaves HTTP, or HTTPS if the first address has it.
fn redirected(from: &str, location: &str) -> Option<String> {
    let from: Uri = from.parse().ok()?;
    let (scheme, authority) = (from.scheme_str()?, from.authority()?);
    if location.starts_with('/') && !location.starts_with("//") {
        return Some(format!("{scheme}://{authority}{location}"));
    }
    let is_http = location.starts_with("http://") && scheme == "http";
    (is_http || location.starts_with("https://")).then(|| location.to_owned())
}

fn bar(length: Option<u64>, target: &Path) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes} {eta}")
        .expect("the template is valid");
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned());
    // Nothing is drawn unless standard error is a terminal.
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.with_style(style).with_message(name.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_within_http_and_never_leave_https() {
        let cases = [
            ("https://a.example/x", "https://b.example/y", Some("https://b.example/y")),
            ("https://a.example/x", "/y", Some("https://a.example/y")),
            ("http://a.example:1/x", "http://b.example/y", Some("http://b.example/y")),
            ("http://a.example/x", "https://b.example/y", Some("https://b.example/y")),
            ("https://a.example/x", "http://a.example/y", None),
            ("http://a.example/x", "file:///etc/passwd", None),
            ("http://a.example/x", "//b.example/y", None),
            ("http://a.example/x", "", None),
        ];
        for (from, location, expected) in cases {
            assert_eq!(redirected(from, location).as_deref(), expected, "{from} {location}");
        }
    }
}
