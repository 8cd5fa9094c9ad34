"""The doors that are folders: a mount, and a folder that is synced with a store."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Optional

from doors import Files
from live import PATIENCE_SECONDS, Down, Hung, Quipu, Refused


class Mount(Files):
    """A mounted store. A change is acknowledged when the system call returns, a text when `close` does."""

    def __init__(self, quipu: Quipu, store: str, root: Path) -> None:
        super().__init__(root / store)
        self.quipu, self.store, self.mount_root = quipu, store, root
        self._process: Optional[subprocess.Popen[str]] = None

    @staticmethod
    def is_possible() -> bool:
        return os.geteuid() == 0 and os.path.exists("/dev/fuse")

    def _ready(self) -> None:
        while self._process is None:
            process = self.quipu.start(
                "mount", "mount", "--store", self.store, "--root", str(self.mount_root), "--json",
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
            )
            self._process = process
            # Before this line nothing is mounted, after it everything is.
            if not process.stdout.readline():
                complaint = process.stderr.read()
                self._forget()
                if not self.quipu.running.was_killed(process):
                    raise AssertionError(f"`quipu mount` failed: {complaint}")

    def _forget(self) -> None:
        process, self._process = self._process, None
        try:
            process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Hung("`quipu mount` did not end") from None
        finally:
            self.quipu.running.remove("mount", process)

    def _do(self, operation: str, *arguments: str) -> None:
        self._ready()
        try:
            getattr(super(), operation)(*arguments)
        except OSError as error:
            if not self.quipu.running.was_killed(self._process):
                raise Refused(f"{operation} in the mount: {error!r}") from None
            self._forget()
            raise Down(f"the mount was killed: {error!r}") from None

    def create(self, path: str, text: str) -> None:
        self._do("create", path, text)

    def update(self, path: str, old: str, text: str) -> None:
        self._do("update", path, old, text)

    def move(self, path: str, target: str) -> None:
        self._do("move", path, target)

    def delete(self, path: str) -> None:
        self._do("delete", path)

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._forget()
        # A killed one has left its directories behind; this clears them.
        self.quipu.run("unmount", "--root", str(self.mount_root))


class Sync(Files):
    """A folder. A change is made in it and acknowledged by the next sync that ends well.

    A sync that is killed is finished by the next one, so after a kill there is no doubt: the sync is
    repeated until one ends.
    """

    def __init__(self, quipu: Quipu, store: str, root: Path) -> None:
        super().__init__(root)
        self.quipu, self.store = quipu, store
        root.mkdir(exist_ok=True)
        # Without it the last deletion would look like a lost disk, which is refused.
        (root / "keep.md").write_text("always here\n")

    def sync(self) -> None:
        while True:
            try:
                report = json.loads(self.quipu.run("sync", str(self.root), "--store", self.store, "--json"))
                assert not report["failed"], report
                return
            except Down:
                continue

    def _do(self, operation: str, *arguments: str) -> None:
        getattr(super(), operation)(*arguments)
        self.sync()

    def create(self, path: str, text: str) -> None:
        self._do("create", path, text)

    def update(self, path: str, old: str, text: str) -> None:
        self._do("update", path, old, text)

    def move(self, path: str, target: str) -> None:
        self._do("move", path, target)

    def delete(self, path: str) -> None:
        self._do("delete", path)

    def texts(self) -> dict[str, str]:
        """Returns the files that take part in the sync, as a store would hold them."""
        files = (file for file in self.root.rglob("*") if file.is_file())
        return {
            f"/{relative}": file.read_text()
            for file in files
            if not (relative := str(file.relative_to(self.root))).startswith(".")
        }
