//! A server as a process of its own, with real connections.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use ureq::tls::TlsConfig;

use crate::support::{Quipu, signal};

pub(crate) const KEY: &str = "a key that was chosen for tests";

/// A running server, killed on drop.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) out: BufReader<ChildStdout>,
    /// What it printed before it was ready.
    pub(crate) lines: Vec<String>,
    pub(crate) url: String,
    pub(crate) agent: ureq::Agent,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
    }
}

impl Server {
    pub(crate) fn start(quipu: &Quipu) -> Self {
        let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("QUIPU_ADMIN_KEY", KEY);
        Self::spawn(command)
    }

    pub(crate) fn spawn(command: Command) -> Self {
        Self::spawn_with(command, Stdio::piped())
    }

    /// Starts a server with this log.
    pub(crate) fn spawn_with(mut command: Command, log: Stdio) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("the output is piped"));
        let agent = agent(TlsConfig::default());
        let mut server = Self { child, out, lines: Vec::new(), url: String::new(), agent };
        while server.url.is_empty() {
            let mut line = String::new();
            assert_ne!(
                server.out.read_line(&mut line).expect("text"),
                0,
                "it ended: {:?}",
                server.lines
            );
            match line.trim_end().strip_prefix("listening on ") {
                Some(url) => url.clone_into(&mut server.url),
                None => server.lines.push(line.trim_end().to_owned()),
            }
        }
        server
    }

    /// Sets the timeout of requests.
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(timeout))
            .build()
            .into();
        self
    }

    pub(crate) fn address(&self) -> &str {
        self.url.split_once("://").expect("a scheme").1
    }

    pub(crate) fn get(&self, key: &str, path: &str) -> (u16, Value) {
        let request = self.agent.get(format!("{}{path}", self.url));
        answered(request.header("x-api-key", key).call().expect("an answer"))
    }

    pub(crate) fn post(&self, key: &str, path: &str, body: &Value) -> (u16, Value) {
        let request = self.agent.post(format!("{}{path}", self.url));
        answered(request.header("x-api-key", key).send(body.to_string()).expect("an answer"))
    }

    /// Creates a store and returns the URL path of its memories.
    pub(crate) fn store(&self) -> String {
        let (status, store) = self.post(KEY, "/v1/memory_stores", &json!({"name": "notes"}));
        assert_eq!(status, 200, "{store}");
        format!("/v1/memory_stores/{}/memories", id(&store))
    }

    pub(crate) fn signal(&self, number: Signal) {
        signal(&self.child, number);
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
        stream
    }
}

pub(crate) fn id(thing: &Value) -> String {
    thing.get("id").and_then(Value::as_str).expect("an id").to_owned()
}

pub(crate) fn agent(tls: TlsConfig) -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_mins(1)))
        .tls_config(tls)
        .build()
        .into()
}

fn answered(mut response: ureq::http::Response<ureq::Body>) -> (u16, Value) {
    let body = response.body_mut().read_to_string().expect("a text");
    (response.status().as_u16(), serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

/// An MCP client over HTTP.
pub(crate) struct Mcp<'s> {
    server: &'s Server,
    session: String,
}

impl<'s> Mcp<'s> {
    /// Performs the handshake.
    pub(crate) fn connected(server: &'s Server) -> Self {
        let mut client = Self { server, session: String::new() };
        let about = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "web", "version": "3"},
        });
        client.ask("initialize", &about);
        client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Sends a request that must succeed, and returns the result.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let text = self.post(&message);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let answer = messages.find(|message| message.get("id").is_some());
        let result = answer.as_ref().and_then(|answer| answer.get("result"));
        assert!(result.is_some(), "{method}: {text}");
        result.cloned().unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    #[track_caller]
    fn post(&mut self, message: &Value) -> String {
        let mut request = self
            .server
            .agent
            .post(format!("{}/mcp", self.server.url))
            .header("x-api-key", KEY)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        let mut response = request.send(message.to_string()).expect("an answer");
        if let Some(session) = response.headers().get("mcp-session-id") {
            session.to_str().expect("a text").clone_into(&mut self.session);
        }
        response.body_mut().read_to_string().expect("a text")
    }
}
