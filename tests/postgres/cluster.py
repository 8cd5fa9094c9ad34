"""Clusters of PostgreSQL for tests: in a temporary directory, owned by an ordinary user, gone at the end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PATIENCE_SECONDS = 60
#: The server refuses to run as an administrator.
OWNER = "nobody"


def programs() -> Path | None:
    """Returns the directory of the newest installed server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda it: int(it.parent.parent.name))
    if found:
        return found[-1].parent
    installed = shutil.which("postgres")
    return Path(installed).resolve().parent if installed else None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def as_owner(command: list[str]) -> list[str]:
    if os.getuid() != 0:
        return command
    return ["setpriv", "--reuid", OWNER, "--regid", "nogroup", "--clear-groups", *command]


def until(what: str, check, seconds: float = PATIENCE_SECONDS):
    """Polls until `check` returns something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


class Directory:
    """A directory that the owner of a cluster can use."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="quipu-postgres-"))
        if os.getuid() == 0:
            shutil.chown(self.path, OWNER, "nogroup")

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class Cluster:
    """A server with its data, which a standby can be made of."""

    def __init__(self, directory: Directory, name: str, *options: str) -> None:
        self.directory, self.name = directory, name
        self.data = directory.path / name
        self.port = free_port()
        self.options = options
        self.bin = programs()
        self.process: subprocess.Popen[bytes] | None = None

    def create(self) -> Cluster:
        self._run("initdb", "-D", str(self.data), "-U", "quipu", "-A", "trust", "--no-sync", "-E", "UTF8")
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write("host replication all 127.0.0.1/32 trust\n")
        return self.start()

    def standby(self, name: str, *options: str) -> Cluster:
        """Returns a standby that replays what this server writes."""
        other = Cluster(self.directory, name, *options)
        self._run(
            "pg_basebackup", "-D", str(other.data), "-R", "-X", "stream", "-c", "fast", "--no-sync",
            "-d", f"host=127.0.0.1 port={self.port} user=quipu application_name={name}",
        )
        return other.start()

    def start(self) -> Cluster:
        settings = [
            f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self.directory.path}",
            "max_connections=200", "shared_buffers=64MB", "log_min_messages=warning", *self.options,
        ]
        command = [str(self.bin / "postgres"), "-D", str(self.data)]
        for setting in settings:
            command += ["-c", setting]
        log = (self.directory.path / f"{self.name}.log").open("ab")
        self.process = subprocess.Popen(
            as_owner(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory.path,
            start_new_session=True,
        )
        log.close()
        until(f"{self.name} starts", self.is_ready)
        return self

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.directory.path / f"{self.name}.log").read_text()
        ready = [str(self.bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, check=False).returncode == 0

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Runs a statement as an administrator and returns what it prints."""
        psql = [
            str(self.bin / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
            "-p", str(self.port), "-U", "quipu", "-d", database, "-c", statement,
        ]
        return subprocess.run(psql, capture_output=True, encoding="utf-8", check=True).stdout.strip()

    def url(self, database: str) -> str:
        return f"postgres://quipu@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def kill(self) -> None:
        """Ends every process of the server at once, as a crash of the host would."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-w", "-D", str(self.data))

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=PATIENCE_SECONDS)
            self.process = None

    def _run(self, program: str, *arguments: str) -> None:
        command = as_owner([str(self.bin / program), *arguments])
        subprocess.run(command, check=True, capture_output=True, cwd=self.directory.path)
