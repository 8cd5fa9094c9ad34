"""A real Quipu for tests: the built binary on a data directory, as a command or as a server."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Optional

ADMIN_KEY = "sk-quipu-of-the-tests-0123456789"


class Quipu:
    """The built binary on a data directory."""

    def __init__(self, data: Path) -> None:
        self.binary = os.environ["QUIPU_BINARY"]
        self.data = str(data)

    def run(self, *arguments: str) -> str:
        command = [self.binary, "--data", self.data, *arguments]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run("--json", *arguments))

    def new_key(self, role: str, *options: str) -> dict[str, Any]:
        return self.json("key", "create", "--role", role, *options)

    def serve(self, **settings: str) -> Server:
        return Server(self, settings)


class Server:
    """A running `quipu serve`. Settings are given by the names of their variables."""

    def __init__(self, quipu: Quipu, settings: dict[str, str]) -> None:
        self.quipu = quipu
        self.key = ADMIN_KEY
        variables = {f"QUIPU_{name.upper()}": value for name, value in settings.items()}
        self._process = subprocess.Popen(
            [quipu.binary, "--data", quipu.data, "serve", "--listen", "127.0.0.1:0", "--log-level", "error"],
            env={**os.environ, "QUIPU_ADMIN_KEY": self.key, **variables},
            stdout=subprocess.PIPE, encoding="utf-8",
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("listening on "), line
        self.url = line.removeprefix("listening on ").strip()

    def close(self) -> None:
        self._process.terminate()
        assert self._process.stdout is not None
        self._process.stdout.close()
        assert self._process.wait(timeout=60) == 0, "the server did not end in order"

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class Seen(NamedTuple):
    """A request that went through a proxy, and the status of its answer."""

    method: str
    path: str
    status: int
    headers: dict[str, str]


class Proxy:
    """A reverse proxy that counts, and that can answer in place of the server.

    `answers` are given, one per request, before anything is passed on: a status and its headers.
    `replaced_headers` take the place of the server's, where it sent one of that name. As many of the
    server's next answers as `lose_answers` says are lost: the connection ends instead.
    """

    def __init__(self, url: str) -> None:
        self.seen: list[Seen] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.replaced_headers: dict[str, str] = {}
        self.lose_answers = 0
        host = url.removeprefix("http://")
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                status, headers, answer = self.answer(body)
                sent = {name.lower(): value for name, value in self.headers.items()}
                proxy.seen.append(Seen(self.command, self.path, status, sent))
                if proxy.lose_answers > 0:
                    proxy.lose_answers -= 1
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers.items():
                    if name not in ("content-length", "connection", "transfer-encoding", "date"):
                        self.send_header(name, proxy.replaced_headers.get(name, value))
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_DELETE = do_PATCH = pass_on

            def answer(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
                if proxy.answers:
                    status, headers = proxy.answers.pop(0)
                    error = {"type": "error", "error": {"type": "api_error", "message": "a faulty peer"}}
                    return status, {"content-type": "application/json", **headers}, json.dumps(error).encode()
                connection = http.client.HTTPConnection(host, timeout=60)
                try:
                    connection.request(self.command, self.path, body, dict(self.headers.items()))
                    response = connection.getresponse()
                    headers = {name.lower(): value for name, value in response.getheaders()}
                    return response.status, headers, response.read()
                finally:
                    connection.close()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def statuses(self) -> list[int]:
        return [request.status for request in self.seen]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
