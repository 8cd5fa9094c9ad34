"""A Messages API that answers from a script, for tests of what is forwarded to it.

As a program it prints its address and serves until its standard input ends. Faults are ordered with
`POST /faults`, a list of `[status, headers]` that are answered first; `GET /seen` lists the requests.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What the server expects as its key.
KEY = "sk-upstream-of-the-tests"

USAGE = {"input_tokens": 10, "output_tokens": 5}


def message(content: list[dict[str, Any]], stop_reason: str = "end_turn") -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted-1",
        "content": content, "stop_reason": stop_reason, "stop_sequence": None, "usage": USAGE,
    }


def turn(request: dict[str, Any]) -> dict[str, Any]:
    """Remembers once if there is a memory, and says then what the memory said."""
    last = request["messages"][-1]["content"]
    if isinstance(last, list) and last[0].get("type") == "tool_result":
        return message([{"type": "text", "text": f"I have noted it: {last[0]['content']}"}])
    if any(tool.get("name") == "memory" for tool in request.get("tools", [])):
        note = {"command": "create", "path": "/memories/hello.md", "file_text": "Ada said hello"}
        call = {"type": "tool_use", "id": "toolu_1", "name": "memory", "input": note}
        return message([{"type": "text", "text": "Let me note that."}, call], "tool_use")
    return message([{"type": "text", "text": "Hello, Ada."}])


def events(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a message as the events of a stream."""
    begun = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, pieces, kind, field = {**block, "text": ""}, block["text"], "text_delta", "text"
        else:
            empty, pieces = {**block, "input": {}}, json.dumps(block["input"])
            kind, field = "input_json_delta", "partial_json"
        sent.append({"type": "content_block_start", "index": index, "content_block": empty})
        for start in range(0, len(pieces), 7):
            delta = {"type": kind, field: pieces[start : start + 7]}
            sent.append({"type": "content_block_delta", "index": index, "delta": delta})
        sent.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
    return [*sent, {"type": "message_stop"}]


def batch(url: str, **fields: Any) -> dict[str, Any]:
    counts = {"processing": 0, "succeeded": 1, "errored": 0, "canceled": 0, "expired": 0}
    return {
        "id": "msgbatch_1", "type": "message_batch", "processing_status": "ended",
        "request_counts": counts, "created_at": "2026-01-01T00:00:00Z", "ended_at": None,
        "expires_at": "2026-01-02T00:00:00Z", "archived_at": None, "cancel_initiated_at": None,
        "results_url": f"{url}/v1/messages/batches/msgbatch_1/results", **fields,
    }


MODEL = {
    "id": "scripted-1", "type": "model", "display_name": "Scripted", "created_at": "2026-01-01T00:00:00Z",
}
FILE = {
    "id": "file_1", "type": "file", "filename": "tea.txt", "mime_type": "text/plain", "size_bytes": 5,
    "created_at": "2026-01-01T00:00:00Z", "downloadable": True,
}


class Listener(ThreadingHTTPServer):
    """Clients that go away are part of the tests."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class ScriptedMessages:
    """The running server."""

    def __init__(self) -> None:
        #: What is answered first: a status and headers for each request.
        self.faults: list[tuple[int, dict[str, str]]] = []
        self.seen: list[dict[str, Any]] = []
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                if "chunked" in self.headers.get("transfer-encoding", ""):
                    body = self.chunks()
                if self.path == "/faults":
                    scripted.faults = [tuple(fault) for fault in json.loads(body)]
                    return self.json({})
                if self.path == "/seen":
                    return self.json(scripted.seen)
                headers = {name.lower(): value for name, value in self.headers.items()}
                scripted.seen.append({
                    "method": self.command, "path": self.path, "headers": headers,
                    "body": body.decode(errors="replace"),
                })
                if scripted.faults:
                    status, more = scripted.faults.pop(0)
                    error = {"type": "error", "error": {"type": "api_error", "message": "a fault"}}
                    return self.json(error, status, more)
                # SDKs send it in either of two headers.
                if KEY not in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer ")):
                    error = {"type": "error", "error": {"type": "authentication_error", "message": "no"}}
                    return self.json(error, 401)
                self.route(self.command, self.path.split("?")[0], body)

            do_GET = do_POST = do_DELETE = serve

            def chunks(self) -> bytes:
                whole = b""
                while size := int(self.rfile.readline(), 16):
                    whole += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return whole

            def route(self, method: str, path: str, body: bytes) -> None:
                match method, path.removeprefix("/v1/"):
                    case "POST", "messages":
                        request = json.loads(body)
                        if request.get("stream"):
                            return self.stream(events(turn(request)))
                        return self.json(turn(request))
                    case "POST", "messages/count_tokens":
                        return self.json({"input_tokens": 42})
                    case ("POST", "messages/batches") | ("GET", "messages/batches/msgbatch_1"):
                        return self.json(batch(scripted.url))
                    case "GET", "messages/batches":
                        page = {"data": [batch(scripted.url)], "has_more": False}
                        return self.json({**page, "first_id": "msgbatch_1", "last_id": "msgbatch_1"})
                    case "POST", "messages/batches/msgbatch_1/cancel":
                        return self.json(batch(scripted.url, processing_status="canceling"))
                    case "DELETE", "messages/batches/msgbatch_1":
                        return self.json({"id": "msgbatch_1", "type": "message_batch_deleted"})
                    case "GET", "messages/batches/msgbatch_1/results":
                        said = message([{"type": "text", "text": "Hello, Ada."}])
                        result = {"custom_id": "a", "result": {"type": "succeeded", "message": said}}
                        return self.answer(json.dumps(result).encode() + b"\n", "application/x-jsonl")
                    case "GET", "models":
                        page = {"data": [MODEL], "has_more": False}
                        return self.json({**page, "first_id": MODEL["id"], "last_id": MODEL["id"]})
                    case "GET", "models/scripted-1":
                        return self.json(MODEL)
                    case ("POST", "files") | ("GET", "files/file_1"):
                        return self.json(FILE)
                    case "GET", "files":
                        page = {"data": [FILE], "has_more": False}
                        return self.json({**page, "first_id": "file_1", "last_id": "file_1"})
                    case "GET", "files/file_1/content":
                        return self.answer(b"green", "application/octet-stream")
                    case "DELETE", "files/file_1":
                        return self.json({"id": "file_1", "type": "file_deleted"})
                error = {"type": "error", "error": {"type": "not_found_error", "message": path}}
                self.json(error, 404)

            def json(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
                self.answer(json.dumps(body).encode(), "application/json", status, headers)

            def answer(
                self, body: bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None
            ) -> None:
                self.send_response(status)
                for name, value in {
                    "content-type": kind, "content-length": str(len(body)),
                    "request-id": f"req_upstream_{len(scripted.seen)}",
                    "anthropic-ratelimit-requests-limit": "50", **(headers or {}),
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def stream(self, sent: list[dict[str, Any]]) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream; charset=utf-8")
                self.send_header("transfer-encoding", "chunked")
                self.send_header("request-id", f"req_upstream_{len(scripted.seen)}")
                self.end_headers()
                for event in sent:
                    text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


if __name__ == "__main__":
    scripted = ScriptedMessages()
    print(scripted.url, flush=True)
    sys.stdin.read()
    scripted.close()
