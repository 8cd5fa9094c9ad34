"""Processes of Quipu on a database."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from pathlib import Path

ADMIN_KEY = "sk-quipu-of-the-tests-0123456789"


class Quipu:
    """The binary with a database, on a host of its own: it has its own directory."""

    def __init__(self, database: str, home: Path) -> None:
        self.binary, self.database, self.home = os.environ["QUIPU_BINARY"], database, home
        home.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
        self.environment = {**kept, "QUIPU_DATABASE": database, "QUIPU_DATA": str(home), "HOME": str(home),
                            "USER": "ada", "QUIPU_ADMIN_KEY": ADMIN_KEY}

    def popen(self, *arguments: str, **options) -> subprocess.Popen:
        return subprocess.Popen([self.binary, *arguments], env=self.environment, encoding="utf-8", **options)

    def run(self, *arguments: str, text: str = "", code: int = 0) -> str:
        done = subprocess.run([self.binary, *arguments], env=self.environment, input=text, encoding="utf-8",
                              capture_output=True, check=False, timeout=120)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def json(self, *arguments: str):
        return json.loads(self.run("--json", *arguments))

    def serve(self, listen: str = "127.0.0.1:0") -> Server:
        return Server(self, listen)


class Server:
    """A running `quipu serve`."""

    def __init__(self, quipu: Quipu, listen: str) -> None:
        self.log = (quipu.home / "server.log").open("ab")
        self.process = quipu.popen("serve", "--listen", listen, "--log-level", "warn",
                                   stdout=subprocess.PIPE, stderr=self.log)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), (line, (quipu.home / "server.log").read_text())
        self.host = line.removeprefix("listening on http://").strip()

    def request(self, method: str, path: str, body=None, timeout: float = 30) -> tuple[int, dict | str]:
        return request(self.host, method, path, body, timeout)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._close()

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        self._close()

    def _close(self) -> None:
        self.process.stdout.close()
        self.log.close()


def request(host: str, method: str, path: str, body=None, timeout: float = 30) -> tuple[int, dict | str]:
    """Returns the status and the answer; the status is 0 if there was none."""
    connection = http.client.HTTPConnection(host, timeout=timeout)
    headers = {"x-api-key": ADMIN_KEY, "content-type": "application/json", "anthropic-version": "2023-06-01"}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith(("{", "[")) else text
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        connection.close()
