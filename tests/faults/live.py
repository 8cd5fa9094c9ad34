"""Running the real binary: commands, the server, and the two programs that speak lines of JSON.

A call has one of three ends. It returns: the change is acknowledged. `Refused`: the program answered with an
error. `Down`: the program died or hung up, so that the change may have been made or not.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Optional


ADMIN_KEY = "sk-quipu-of-the-tests-0123456789"
# Longer than any wait that Quipu documents; whoever takes longer hangs.
PATIENCE_SECONDS = 100.0


class Refused(Exception):
    """The program answered with an error; `code` is the exit code or the HTTP status, if it has one."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class Down(Exception):
    """The program ended before it answered."""


class Hung(AssertionError):
    """The program neither answered nor ended."""


class Running:
    """The processes that are alive now, by kind, so that somebody can choose one to kill."""

    everywhere: list[Running] = []

    def __init__(self) -> None:
        Running.everywhere.append(self)
        self._lock = threading.Lock()
        self._alive: dict[str, list[subprocess.Popen[Any]]] = {}
        self._begun: dict[int, float] = {}
        self._killed: set[subprocess.Popen[Any]] = set()

    def add(self, kind: str, process: subprocess.Popen[Any]) -> None:
        with self._lock:
            self._alive.setdefault(kind, []).append(process)
            self._begun[process.pid] = time.monotonic()

    def remove(self, kind: str, process: subprocess.Popen[Any]) -> None:
        with self._lock:
            self._alive[kind].remove(process)

    def __str__(self) -> str:
        with self._lock:
            now = time.monotonic()
            processes = [(kind, process.pid) for kind, alive in self._alive.items() for process in alive]
            return ", ".join(f"{kind} for {now - self._begun[pid]:.1f} s" for kind, pid in processes)

    def kill_one(self, kind: str) -> bool:
        """Kills the newest process of a kind, unless there is none."""
        with self._lock:
            for process in reversed(self._alive.get(kind, [])):
                if process.poll() is None:
                    process.kill()
                    self._killed.add(process)
                    return True
        return False

    def kill_all(self) -> None:
        for kind in list(self._alive):
            while self.kill_one(kind):
                time.sleep(0.01)

    @staticmethod
    def kill_leftovers() -> None:
        """Stops what a failure has left running."""
        for running in Running.everywhere:
            running.kill_all()
        Running.everywhere.clear()

    def was_killed(self, process: subprocess.Popen[Any]) -> bool:
        with self._lock:
            return process in self._killed


class Quipu:
    """The binary on a data directory. `variables` reach every process, such as those of the shim."""

    def __init__(
        self, data: Path, variables: Optional[dict[str, str]] = None, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self.binary = os.environ["QUIPU_BINARY"]
        self.patience_seconds = patience_seconds
        self.data = data
        self.running = Running()
        self.variables = variables or {}

    def start(self, kind: str, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
        environment = {**os.environ, "QUIPU_ADMIN_KEY": ADMIN_KEY, "RUST_BACKTRACE": "1", **self.variables}
        environment.update(options.pop("variables", {}))
        command = [self.binary, "--data", str(self.data), *arguments]
        process = subprocess.Popen(command, env=environment, **options)
        self.running.add(kind, process)
        return process

    def run(self, *arguments: str, text: str = "", kind: str = "", **variables: str) -> str:
        """Runs a command to its end and returns what it printed."""
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        kind = kind or arguments[0]
        process = self.start(kind, *arguments, variables=variables, encoding="utf-8", **pipes)
        try:
            printed, complaint = process.communicate(text, timeout=self.patience_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Hung(f"`quipu {' '.join(arguments)}` did not end") from None
        finally:
            self.running.remove(kind, process)
        if process.returncode == 0:
            return printed
        if process.returncode < 0 and self.running.was_killed(process):
            raise Down(f"`quipu {' '.join(arguments)}` was killed")
        if process.returncode < 0 or process.returncode == 101 or "panicked" in complaint:
            raise AssertionError(f"`quipu {' '.join(arguments)}` crashed ({process.returncode}): {complaint}")
        raise Refused(f"`quipu {' '.join(arguments)}`: {complaint.strip()}", process.returncode)

    def json(self, *arguments: str, text: str = "", kind: str = "", **variables: str) -> Any:
        return json.loads(self.run("--json", *arguments, text=text, kind=kind or arguments[0], **variables))


class Server:
    """A running `quipu serve`, spoken to with one connection for each thread."""

    def __init__(self, quipu: Quipu, **variables: str) -> None:
        self.quipu = quipu
        self.process = quipu.start(
            "serve", "serve", "--listen", "127.0.0.1:0", "--log-level", "error",
            variables=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        )
        self._complaints: list[str] = []
        threading.Thread(target=self._gather, daemon=True).start()
        self._local = threading.local()
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            self.ended()
            if quipu.running.was_killed(self.process):
                raise Down("the server was killed while it started")
            raise Refused(f"the server did not start: {self.complaints}", self.process.returncode)
        self.address = line.strip().removeprefix("listening on http://")

    def _gather(self) -> None:
        for line in self.process.stderr:
            self._complaints.append(line)

    @property
    def complaints(self) -> str:
        return "".join(self._complaints[-20:])

    def call(self, method: str, path: str, body: Any = None, key: str = ADMIN_KEY) -> Any:
        status, answer = self.answer(method, path, body, key)
        if status >= 400:
            raise Refused(f"{method} {path}: {status} {answer}", status)
        return answer

    def answer(self, method: str, path: str, body: Any = None, key: str = ADMIN_KEY) -> tuple[int, Any]:
        headers = {"x-api-key": key, "content-type": "application/json"}
        try:
            connection = self._connection()
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            answer = response.read().decode()
        except TimeoutError:
            raise Hung(f"{method} {path} got no answer") from None
        except (OSError, http.client.HTTPException) as error:
            self._local.connection = None
            raise Down(f"{method} {path}: {error!r}") from None
        is_json = response.headers.get("content-type", "").startswith("application/json")
        return response.status, json.loads(answer) if is_json else answer

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(self._local, "connection", None) is None:
            self._local.connection = http.client.HTTPConnection(self.address, timeout=self.quipu.patience_seconds)
        return self._local.connection

    def ended(self) -> int:
        """Waits for the end of the process and forgets it."""
        try:
            code = self.process.wait(timeout=self.quipu.patience_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Hung(f"the server did not end: {self.complaints}") from None
        finally:
            self.quipu.running.remove("serve", self.process)
        return code

    def stop(self) -> None:
        self.process.terminate()
        code = self.ended()
        assert code == 0, f"it ended with {code}: {self.complaints}"

    def kill(self) -> None:
        self.process.kill()
        self.ended()


class Lines:
    """A program that answers each line of JSON with one: `quipu mcp` and `quipu tool`."""

    def __init__(self, quipu: Quipu, kind: str, *arguments: str) -> None:
        self.quipu, self.kind = quipu, kind
        self.process = quipu.start(
            kind, kind, *arguments,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        )
        self._complaints: list[str] = []
        threading.Thread(target=self._gather, daemon=True).start()
        self._next_id = 0

    def _gather(self) -> None:
        for line in self.process.stderr:
            self._complaints.append(line)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        watch = threading.Timer(self.quipu.patience_seconds, self.process.kill)
        watch.start()
        begun = time.monotonic()
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            answer = self._answer(question.get("id"))
        except (BrokenPipeError, ValueError):
            answer = None
        finally:
            watch.cancel()
        if answer is None:
            self.process.wait()
            if time.monotonic() - begun >= self.quipu.patience_seconds:
                raise Hung(f"`quipu {self.kind}` did not answer {question}")
            complaints = "".join(self._complaints[-20:])
            assert self.quipu.running.was_killed(self.process), f"`quipu {self.kind}` crashed: {complaints}"
            raise Down(f"`quipu {self.kind}` was killed")
        return answer

    def _answer(self, wanted: Optional[int]) -> Optional[dict[str, Any]]:
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            # Between the answers come notifications.
            if wanted is None or answer.get("id") == wanted:
                return answer
        return None

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Calls a tool of the MCP server; the first call introduces the client."""
        if self._next_id == 0:
            client = {"name": "faults", "version": "1"}
            self._call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
            self.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        answer = self._call("tools/call", name=name, arguments=arguments)
        if answer["isError"]:
            raise Refused(f"{name}: {answer['content'][0]['text']}")
        return answer["structuredContent"]

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._next_id += 1
        answer = self.ask({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": parameters})
        if "error" in answer:
            raise Refused(f"{method}: {answer['error']}")
        return answer["result"]

    def end(self) -> None:
        """Ends the program in the ordinary way, by ending its input, or forgets one that is dead."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=self.quipu.patience_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Hung(f"`quipu {self.kind}` did not end with its input") from None
        finally:
            self.quipu.running.remove(self.kind, self.process)
