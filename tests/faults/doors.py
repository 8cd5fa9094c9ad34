"""The doors of Quipu behind one interface: each makes one change of one memory and returns when it is acknowledged.

A door returns the id of the version, where it tells one. It raises `Refused` and `Down` as `live.py` says.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Optional

from ledger import digest
from live import Down, Lines, Quipu, Refused, Server


class Door:
    """What a door can do; each operation is a method of the same name."""

    operations: tuple[str, ...] = ("create", "update", "move", "delete")
    can_append = False

    def create(self, path: str, text: str) -> Optional[str]:
        raise NotImplementedError

    def update(self, path: str, old: str, text: str) -> Optional[str]:
        raise NotImplementedError

    def move(self, path: str, target: str) -> Optional[str]:
        raise NotImplementedError

    def delete(self, path: str) -> Optional[str]:
        raise NotImplementedError

    def redact(self, versions: tuple[str, ...]) -> None:
        raise NotImplementedError

    def append(self, path: str, line: str) -> None:
        """Adds a line to a memory that others change too; `Refused` with 4 or 409 means that they did."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the program of this door, if it has one."""


class Rest(Door):
    """The REST API of a server that others may use, and kill, too."""

    operations = ("create", "update", "move", "delete", "redact")
    can_append = True

    def __init__(self, server: SharedServer, store: str) -> None:
        self.server, self.store = server, store
        self._ids: dict[str, str] = {}

    def _base(self) -> str:
        return f"/v1/memory_stores/{self.store}"

    def _id(self, path: str) -> str:
        # Another door may have made it, or a server that was killed before it returned the id.
        if path not in self._ids:
            query = f"{self._base()}/memories?path_prefix={path.rsplit('/', 1)[0]}/&limit=100"
            listed = self.server.call("GET", query)["data"]
            self._ids.update({memory["path"]: memory["id"] for memory in listed if memory["type"] == "memory"})
        return self._ids[path]

    def create(self, path: str, text: str) -> Optional[str]:
        self._ids.pop(path, None)
        made = self.server.call("POST", f"{self._base()}/memories", {"path": path, "content": text})
        self._ids[path] = made["id"]
        return made["memory_version_id"]

    def update(self, path: str, old: str, text: str) -> Optional[str]:
        condition = {"type": "content_sha256", "content_sha256": digest(old)}
        body = {"content": text, "precondition": condition}
        return self.server.call("POST", f"{self._base()}/memories/{self._id(path)}", body)["memory_version_id"]

    def move(self, path: str, target: str) -> Optional[str]:
        id = self._ids.pop(path, None) or self._id(path)
        self._ids.pop(path, None)
        self._ids.pop(target, None)
        return self.server.call("POST", f"{self._base()}/memories/{id}", {"path": target})["memory_version_id"]

    def delete(self, path: str) -> None:
        id = self._id(path)
        self._ids.pop(path)
        self.server.call("DELETE", f"{self._base()}/memories/{id}")

    def redact(self, versions: tuple[str, ...]) -> None:
        for version in versions:
            self.server.call("POST", f"{self._base()}/memory_versions/{version}/redact", {})

    def append(self, path: str, line: str) -> None:
        memory = self.server.call("GET", f"{self._base()}/memories/{self._id(path)}?view=full")
        self.update(path, memory["content"], f"{memory['content']}{line}\n")


class SharedServer:
    """A server for many threads. A thread that finds it dead restarts it."""

    def __init__(self, quipu: Quipu) -> None:
        self.quipu = quipu
        self._lock = threading.Lock()
        self._server: Optional[Server] = None

    def call(self, method: str, path: str, body: Optional[dict] = None) -> dict:
        server = self._running()
        try:
            return server.call(method, path, body)
        except Down:
            self._give_up(server)
            raise

    def _running(self) -> Server:
        with self._lock:
            while self._server is None:
                try:
                    self._server = Server(self.quipu)
                except Down:
                    continue
            return self._server

    def _give_up(self, server: Server) -> None:
        with self._lock:
            if self._server is not server:
                return
            self._server = None
            if not self.quipu.running.was_killed(server.process):
                server.kill()
                raise AssertionError(f"the server hung up although nobody killed it: {server.complaints}")
            server.ended()

    def close(self) -> None:
        with self._lock:
            if self._server is not None:
                self._server.stop()
                self._server = None


class Commands(Door):
    """The command line: a process for each change."""

    operations = ("create", "update", "edit", "move", "delete", "redact")
    can_append = True

    def __init__(self, quipu: Quipu, store: str, work: Path) -> None:
        self.quipu, self.store, self.work = quipu, store, work

    def _json(self, *arguments: str, text: str = "", **variables: str) -> dict:
        return self.quipu.json(*arguments, "--store", self.store, text=text, **variables)

    def create(self, path: str, text: str) -> str:
        return self._json("put", path, "--new", text=text)["memory_version_id"]

    def update(self, path: str, old: str, text: str) -> str:
        return self._json("put", path, "--if-hash", digest(old), text=text)["memory_version_id"]

    def edit(self, path: str, old: str, text: str) -> str:
        draft = self.work / f"draft-{threading.get_ident()}"
        draft.write_text(text)
        variables = {"EDITOR": f"cp {draft}", "VISUAL": "", "TMPDIR": str(self.work)}
        return self._json("edit", path, **variables)["memory_version_id"]

    def move(self, path: str, target: str) -> str:
        return self._json("mv", path, target)["data"][0]["memory_version_id"]

    def delete(self, path: str) -> None:
        self._json("rm", path)

    def redact(self, versions: tuple[str, ...]) -> None:
        self._json("redact", "--yes", *versions)

    def append(self, path: str, line: str) -> None:
        script = self.work / "append.sh"
        script.write_text('echo "$1" >> "$2"\n')
        self._json("edit", path, EDITOR=f"sh {script} {line}", VISUAL="", TMPDIR=str(self.work))


class Mcp(Door):
    """`quipu mcp` over standard input and output."""

    can_append = True

    def __init__(self, quipu: Quipu, store: str) -> None:
        self.quipu, self.store = quipu, store
        self._program: Optional[Lines] = None

    def _tool(self, name: str, **arguments: object) -> dict:
        if self._program is None:
            self._program = Lines(self.quipu, "mcp")
        try:
            return self._program.tool(name, project=self.store, **arguments)
        except Down:
            self.close()
            raise

    def create(self, path: str, text: str) -> str:
        directory, name = path.rsplit("/", 1)
        title = name.removesuffix(".md")
        return self._tool("write_note", title=title, directory=directory, content=text)["version_id"]

    def update(self, path: str, old: str, text: str) -> str:
        arguments = {"operation": "find_replace", "find_text": old, "content": text}
        return self._tool("edit_note", identifier=path, **arguments)["version_id"]

    def move(self, path: str, target: str) -> str:
        return self._tool("move_note", identifier=path, destination_path=target)["notes"][0]["version_id"]

    def delete(self, path: str) -> None:
        self._tool("delete_note", identifier=path)

    def append(self, path: str, line: str) -> None:
        self._tool("edit_note", identifier=path, operation="append", content=f"{line}\n")

    def close(self) -> None:
        program, self._program = self._program, None
        if program is not None:
            program.end()


class Tool(Door):
    """`quipu tool`, the memory tool over standard input and output."""

    def __init__(self, quipu: Quipu, store: str) -> None:
        self.quipu, self.store = quipu, store
        self._program: Optional[Lines] = None

    def _command(self, command: str, **fields: str) -> None:
        if self._program is None:
            self._program = Lines(self.quipu, "tool", "--store", self.store)
        try:
            answer = self._program.ask({"command": command, **fields})
        except Down:
            self.close()
            raise
        if answer["is_error"]:
            raise Refused(f"{command}: {answer['content']}")

    def create(self, path: str, text: str) -> None:
        self._command("create", path=f"/memories{path}", file_text=text)

    def update(self, path: str, old: str, text: str) -> None:
        self._command("str_replace", path=f"/memories{path}", old_str=old, new_str=text)

    def move(self, path: str, target: str) -> None:
        self._command("rename", old_path=f"/memories{path}", new_path=f"/memories{target}")

    def delete(self, path: str) -> None:
        self._command("delete", path=f"/memories{path}")

    def close(self) -> None:
        program, self._program = self._program, None
        if program is not None:
            program.end()


class Files(Door):
    """Plain files in a folder, as a mount and a folder sync see them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _file(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def create(self, path: str, text: str) -> None:
        file = self._file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._write(file, text)

    def update(self, path: str, old: str, text: str) -> None:
        self._write(self._file(path), text)

    def _write(self, file: Path, text: str) -> None:
        # The error of `close` counts, and Python's file objects report it.
        with open(file, "w", encoding="utf-8") as opened:
            opened.write(text)

    def move(self, path: str, target: str) -> None:
        os.rename(self._file(path), self._file(target))

    def delete(self, path: str) -> None:
        self._file(path).unlink()
