//! Pass-through against the upstream itself.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::load::{Load, Request, load};
use crate::rest::Server;
use crate::table::{median, number, print, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The binary to measure
    #[arg(long, default_value = "target/release/quipu")]
    binary: PathBuf,
    /// How long each measurement takes, in seconds
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How often each measurement is repeated; the median is shown
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// The size of an answer, as of a short message.
const ANSWER_SIZE_BYTES: usize = 2048;

pub(crate) fn run(arguments: &Arguments) {
    println!("Servers in processes of their own, the load in this one, answers of 2 KB.");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let upstream = Server::bare(&"x".repeat(ANSWER_SIZE_BYTES));
    let create = ["key", "create", "--role", "read_only", "--forward", "--json", "--data"];
    let created = Command::new(&arguments.binary).args(create).arg(directory.path()).output();
    let created: Value =
        serde_json::from_slice(&created.expect("the binary runs").stdout).expect("JSON");
    let key = created.get("secret").and_then(Value::as_str).expect("a secret").to_owned();
    let mut command = Command::new(&arguments.binary);
    command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data"]);
    command.arg(directory.path()).env("QUIPU_ADMIN_KEY", "a key that nobody uses");
    command.env("QUIPU_UPSTREAM_BASE_URL", format!("http://{}", upstream.address));
    let quipu = Server::spawn(command, "");
    let span = Duration::from_secs(arguments.seconds);
    let mut rows = vec![row(&[
        &"connections",
        &"direct p50",
        &"forwarded p50",
        &"added p50",
        &"added p99",
        &"rate, of direct",
    ])];
    for connections in [1, 8, 32, 200] {
        let measure = |server: &Server| {
            let request = |_, _| Request {
                line: "GET /v1/models".to_owned(),
                key: key.clone(),
                body: String::new(),
            };
            load(&server.address, connections, span, request)
        };
        let (mut direct, mut forwarded) = (Vec::new(), Vec::new());
        for _ in 0..arguments.rounds {
            direct.push(measure(&upstream));
            forwarded.push(measure(&quipu));
        }
        let middle =
            |loads: &[Load], value: fn(&Load) -> f64| median(loads.iter().map(value).collect());
        let p50 = |loads: &[Load]| middle(loads, |load| load.median.as_secs_f64() * 1e3);
        let p99 = |loads: &[Load]| middle(loads, |load| load.p99.as_secs_f64() * 1e3);
        let rate = |loads: &[Load]| middle(loads, |load| load.rate);
        let milliseconds = |value: f64| format!("{value:.3} ms");
        rows.push(row(&[
            &connections,
            &milliseconds(p50(&direct)),
            &milliseconds(p50(&forwarded)),
            &milliseconds(p50(&forwarded) - p50(&direct)),
            &milliseconds(p99(&forwarded) - p99(&direct)),
            &number(rate(&forwarded) / rate(&direct)),
        ]));
    }
    print("Forwarded requests", &rows);
}
