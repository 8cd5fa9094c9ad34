//! The MCP server over standard input and output, through the real binary.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "what is sent is written where it is sent")]

#[path = "mcp/choosing.rs"]
mod choosing;
#[path = "mcp/hosts.rs"]
mod hosts;
#[path = "mcp/lines.rs"]
mod lines;
#[path = "mcp/memory.rs"]
mod memory;
#[path = "mcp/notes.rs"]
mod notes;
#[path = "mcp/past.rs"]
mod past;
#[path = "mcp/protocol.rs"]
mod protocol;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::Quipu;

/// An MCP host connected to the server.
pub(crate) struct Host {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The notifications that no test has looked at yet.
    pub(crate) notifications: Vec<Value>,
    last_id: u64,
}

/// The result of a tool.
#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) text: String,
    pub(crate) data: Value,
    pub(crate) is_error: bool,
}

impl Host {
    /// Starts a server and performs the handshake.
    pub(crate) fn new(quipu: &Quipu, arguments: &[&str]) -> Self {
        let mut host = Self::silent(quipu, arguments);
        host.initialize("2025-11-25");
        host
    }

    /// Starts a server without a handshake.
    pub(crate) fn silent(quipu: &Quipu, arguments: &[&str]) -> Self {
        Self::with_log(quipu, arguments, Stdio::inherit())
    }

    /// Starts a server with this log, without a handshake.
    pub(crate) fn with_log(quipu: &Quipu, arguments: &[&str], log: Stdio) -> Self {
        let mut all = vec!["mcp"];
        all.extend(arguments);
        let mut command = quipu.command(&all);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the binary starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("the output is piped"));
        Self { child, input, output, notifications: Vec::new(), last_id: 0 }
    }

    /// Performs the handshake, and returns the result of `initialize`.
    pub(crate) fn initialize(&mut self, revision: &str) -> Value {
        let about = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "Test Host", "version": "1.2"},
        });
        let answer = self.ask("initialize", about);
        self.notify("notifications/initialized", json!({}));
        answer
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{message}").expect("the server reads");
    }

    /// Sends a request and returns the whole response.
    pub(crate) fn raw(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.answer(id)
    }

    /// Waits for the response to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().expect("the server answers");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Waits for a notification of this method.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        if let Some(index) =
            self.notifications.iter().position(|message| message["method"] == method)
        {
            return self.notifications.remove(index);
        }
        loop {
            let message = self.next().expect("the server goes on");
            if message["method"] == method {
                return message;
            }
            self.notifications.push(message);
        }
    }

    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).expect("the output is UTF-8");
        (length > 0).then(|| serde_json::from_str(&line).expect("each line is JSON"))
    }

    /// Sends a request that must succeed, and returns the result.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.raw(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> ToolResult {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        ToolResult {
            text: result["content"][0]["text"].as_str().expect("a text").to_owned(),
            is_error: result["isError"] == true,
            data: result["structuredContent"].clone(),
        }
    }

    /// Calls a tool that must succeed.
    #[track_caller]
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> ToolResult {
        let said = self.call(tool, arguments);
        assert!(!said.is_error, "{tool}: {}", said.text);
        said
    }

    /// Calls a tool that must fail, and returns the message.
    #[track_caller]
    pub(crate) fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let said = self.call(tool, arguments);
        assert!(said.is_error, "{tool}: {}", said.text);
        said.text
    }

    /// Returns the names of the tools that are offered.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let tools = self.ask("tools/list", json!({}));
        let tools = tools["tools"].as_array().expect("a list").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Closes the input, and returns the exit code of the server.
    pub(crate) fn close(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.wait().map(drop).unwrap_or_default();
    }
}
