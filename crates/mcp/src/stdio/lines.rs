//! Newline-delimited JSON-RPC: one message or one batch per line.
//!
//! Malformed input is answered with an error, which carries the id of the request if that can be
//! read. The SDK's own transport ignores a line that is not JSON, so its host would wait forever, and
//! knows no batches. Those exist in revision 2025-03-26 only, but are accepted from every client.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, GetMeta as _, JsonRpcMessage, JsonRpcRequest,
    ProtocolVersion, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::batch::{self, Refusal};
use super::super::malformed;

/// Longer lines are rejected unread.
const LINE_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

type Incoming = RxJsonRpcMessage<RoleServer>;
type Outgoing = TxJsonRpcMessage<RoleServer>;

/// A host at the other end of two pipes.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    /// The part of the current line that has been read.
    line: Vec<u8>,
    is_too_long: bool,
    queued: VecDeque<Incoming>,
    /// Whether the host has opened the conversation in the way of its revision.
    is_begun: bool,
    /// An answer that is being written past the SDK.
    answering: Option<JoinHandle<io::Result<()>>>,
    output: Arc<Output<W>>,
    /// Cancelled at the end of the input; subscriptions would otherwise never end.
    ended: CancellationToken,
}

struct Output<W> {
    writer: tokio::sync::Mutex<Option<W>>,
    waiting: Mutex<Waiting>,
}

/// The requests that have no answer yet.
#[derive(Default)]
struct Waiting {
    alone: HashSet<RequestId>,
    batches: Vec<Batch>,
}

/// A list of messages that is answered with a list.
#[derive(Default)]
struct Batch {
    waiting: Vec<RequestId>,
    answers: Vec<Value>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W, ended: CancellationToken) -> Self {
        let writer = tokio::sync::Mutex::new(Some(output));
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_too_long: false,
            queued: VecDeque::new(),
            is_begun: false,
            answering: None,
            output: Arc::new(Output { writer, waiting: Mutex::default() }),
            ended,
        }
    }

    /// Reads the next line; the last one needs no newline. Cancel safe.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let read = match self.input.fill_buf().await {
                Ok(read) => read,
                Err(error) => {
                    tracing::error!(%error, "the input cannot be read");
                    return None;
                }
            };
            if read.is_empty() {
                if mem::take(&mut self.is_too_long) {
                    self.answer(&too_long());
                }
                let last = mem::take(&mut self.line);
                return (!last.is_empty()).then_some(last);
            }
            let mut parts = read.splitn(2, |byte| *byte == b'\n');
            let part = parts.next().unwrap_or_default();
            let is_complete = parts.next().is_some();
            let used = part.len() + usize::from(is_complete);
            if self.line.len() + part.len() > LINE_SIZE_BYTES_MAX {
                self.is_too_long = true;
                self.line.clear();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            self.input.consume(used);
            if is_complete && mem::take(&mut self.is_too_long) {
                self.answer(&too_long());
            } else if is_complete {
                return Some(mem::take(&mut self.line));
            }
        }
    }

    /// Queues the messages of a line, or answers it.
    fn take(&mut self, line: &[u8]) {
        let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
        if text.is_empty() {
            return;
        }
        if text.first() == Some(&b'[') {
            return match batch::messages(text) {
                Ok(messages) => self.take_batch(&messages),
                Err(refusal) => self.answer(&failure(None, &refused(&refusal))),
            };
        }
        if let Ok(message) = serde_json::from_slice(text) {
            return self.take_one(message);
        }
        match serde_json::from_slice(text) {
            Ok(message) => match understood(&message) {
                Ok(message) => message.into_iter().for_each(|message| self.take_one(message)),
                Err(failure) => self.answer(&failure),
            },
            Err(error) => {
                let reason = format!("the line is not JSON: {error}");
                self.answer(&failure(None, &ErrorData::parse_error(reason, None)));
            }
        }
    }

    fn take_one(&mut self, message: Incoming) {
        if let JsonRpcMessage::Request(JsonRpcRequest { id, .. }) = &message
            && !self.output.waiting().begin(id)
        {
            return self.answer(&taken(id));
        }
        self.queued.push_back(message);
    }

    fn take_batch(&mut self, messages: &[Value]) {
        let mut batch = Batch::default();
        for message in messages {
            let message = match understood(message) {
                Ok(message) => message,
                Err(failure) => {
                    batch.answers.push(failure);
                    continue;
                }
            };
            if let Some(JsonRpcMessage::Request(JsonRpcRequest { id, .. })) = &message {
                if batch.waiting.contains(id) || self.output.waiting().has(id) {
                    batch.answers.push(taken(id));
                    continue;
                }
                batch.waiting.push(id.clone());
            }
            self.queued.extend(message);
        }
        if !batch.waiting.is_empty() {
            self.output.waiting().batches.push(batch);
        } else if !batch.answers.is_empty() {
            self.answer(&Value::Array(batch.answers));
        }
    }

    /// Returns the next message of the queue.
    ///
    /// Notifications before the handshake are dropped, because the SDK would stop serving. A
    /// cancelled request is forgotten only when its cancellation is dequeued: until then the SDK may
    /// still answer it.
    fn dequeue(&mut self) -> Option<Incoming> {
        let is_begun = self.is_begun;
        let is_due = |it: &Incoming| is_begun || matches!(it, JsonRpcMessage::Request(_));
        while self.queued.pop_front_if(|message| !is_due(message)).is_some() {}
        let message = self.queued.pop_front()?;
        if let JsonRpcMessage::Request(request) = &message {
            self.is_begun |= is_beginning(&request.request);
        }
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            let rest = self.output.waiting().end(id);
            if let Some(rest) = rest {
                self.answer(&rest);
            }
        }
        Some(message)
    }

    /// Answers past the SDK, after the earlier answers of this kind.
    fn answer(&mut self, answer: &Value) {
        let (output, before) = (Arc::clone(&self.output), self.answering.take());
        let line = answer.to_string().into_bytes();
        self.answering = Some(tokio::spawn(async move {
            if let Some(before) = before {
                before.await??;
            }
            output.write(line).await
        }));
    }
}

/// Returns whether a request opens the conversation: a handshake, or a request whose metadata has
/// everything that a handshake would.
fn is_beginning(request: &ClientRequest) -> bool {
    let meta = request.get_meta();
    let is_known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
    let says_all = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        && meta.protocol_version().is_some_and(is_known);
    let is_probe =
        matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_));
    matches!(request, ClientRequest::InitializeRequest(_)) || (says_all && !is_probe)
}

/// Parses one message. `None` is a malformed notification, which gets no answer; an error is the
/// answer to send.
fn understood(message: &Value) -> Result<Option<Incoming>, Value> {
    let error = match Incoming::deserialize(message) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let method = message.get("method").and_then(Value::as_str);
    if method.is_some() && message.get("id").is_none() {
        tracing::debug!(%error, "malformed notification");
        return Ok(None);
    }
    let reason = method.and_then(|method| malformed::reason(method, message.get("params")));
    let reason = reason
        .unwrap_or_else(|| ErrorData::invalid_request("not a JSON-RPC 2.0 message of MCP", None));
    let id = message.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    Err(failure(id, &reason))
}

fn refused(list: &Refusal) -> ErrorData {
    let reason = list.to_string();
    match list {
        Refusal::NotJson(_) => ErrorData::parse_error(reason, None),
        Refusal::Empty | Refusal::TooMany => ErrorData::invalid_request(reason, None),
    }
}

fn too_long() -> Value {
    let limit = format!("a message has at most {LINE_SIZE_BYTES_MAX} bytes");
    failure(None, &ErrorData::invalid_request(limit, None))
}

fn taken(id: &RequestId) -> Value {
    let reason = "a request with this id is not answered yet; give each request an id of its own";
    failure(Some(&json!(id)), &ErrorData::invalid_request(reason, None))
}

fn failure(id: Option<&Value>, error: &ErrorData) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn write(&self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        let mut writer = self.writer.lock().await;
        let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        writer.write_all(&line).await?;
        writer.flush().await
    }

    /// Returns the line to write for a message; `None` if the rest of its batch is pending, or its
    /// request was cancelled.
    fn line(&self, message: &Outgoing) -> Result<Option<Vec<u8>>, serde_json::Error> {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let Some(id) = id else { return serde_json::to_vec(message).map(Some) };
        let mut waiting = self.waiting();
        if let Some(batch) = waiting.batch(id) {
            batch.answers.push(serde_json::to_value(message)?);
            return Ok(waiting.end(id).map(|answers| answers.to_string().into_bytes()));
        }
        if waiting.alone.remove(id) {
            return serde_json::to_vec(message).map(Some);
        }
        Ok(None)
    }
}

impl<W> Output<W> {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn has(&mut self, id: &RequestId) -> bool {
        self.alone.contains(id) || self.batch(id).is_some()
    }

    /// Registers a request outside of a batch; `false` if its id is in use.
    fn begin(&mut self, id: &RequestId) -> bool {
        !self.has(id) && self.alone.insert(id.clone())
    }

    fn batch(&mut self, id: &RequestId) -> Option<&mut Batch> {
        self.batches.iter_mut().find(|batch| batch.waiting.contains(id))
    }

    /// Unregisters a request; returns the answers of its batch if it was the last one.
    fn end(&mut self, id: &RequestId) -> Option<Value> {
        self.alone.remove(id);
        let index = self.batches.iter().position(|batch| batch.waiting.contains(id))?;
        let batch = self.batches.get_mut(index)?;
        batch.waiting.retain(|waiting| waiting != id);
        if !batch.waiting.is_empty() {
            return None;
        }
        let answers = self.batches.swap_remove(index).answers;
        (!answers.is_empty()).then_some(Value::Array(answers))
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: Outgoing) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move {
            match output.line(&message)? {
                Some(line) => output.write(line).await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            if let Some(answering) = &mut self.answering {
                let answered = answering.await;
                self.answering = None;
                if !matches!(answered, Ok(Ok(()))) {
                    return None;
                }
            }
            if let Some(message) = self.dequeue() {
                return Some(message);
            }
            let Some(line) = self.next_line().await else {
                if self.answering.is_some() {
                    continue;
                }
                self.ended.cancel();
                return None;
            };
            self.take(&line);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.writer.lock().await.take());
        Ok(())
    }
}
