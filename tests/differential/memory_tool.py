"""Random memory-tool commands on the Python SDK's own local tool and on `quipu tool --strings python`.

After each command both answers must be equal, and from time to time so must everything that is stored.
The differences that Quipu makes on purpose (docs/memory-tool.md lists them) are worked out here from the
command and the state, so that nothing else can hide behind them.

    python memory_tool.py --binary target/release/quipu --commands 100000 [--seed N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Optional

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

# The SDK's tool syncs every write. That does not change what it answers, only how long it takes.
os.fsync = lambda fd: None

Answer = tuple[str, bool]


class Sdk:
    """The SDK's tool on a directory, with empty directories pruned after each command."""

    def __init__(self, base: Path) -> None:
        self.tool = BetaLocalFilesystemMemoryTool(str(base))
        self.root = base / "memories"

    def call(self, command: dict[str, Any]) -> tuple[Optional[str], bool]:
        """Returns the answer; a text of `None` means that the tool died with an exception."""
        before = self.files()
        try:
            text, is_error = self.tool.call(command), False
        except ToolError as error:
            text, is_error = str(error), True
        except Exception:
            # It may leave an empty file or directories behind; Quipu leaves no trace.
            self.reset(before)
            text, is_error = None, True
        self.prune()
        return text and self.plain_sizes(text), is_error

    def plain_sizes(self, text: str) -> str:
        """Gives directories the size that they have on ext4, whatever the disk is."""
        if not text.startswith("Here're the files"):
            return text
        header, own, *lines = text.split("\n")
        def plain(line: str) -> str:
            size, _, path = line.partition("\t")
            return f"4K\t{path}" if path.endswith("/") else line
        return "\n".join([header, f"4K\t{own.partition(chr(9))[2]}", *map(plain, lines)])

    def files(self) -> dict[str, str]:
        found = {}
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                found[f"/{path.relative_to(self.root)}"] = path.read_bytes().decode()
        return found

    def text(self, path: str) -> Optional[str]:
        try:
            return (self.root / path.lstrip("/")).read_bytes().decode()
        except OSError:
            return None

    def write(self, path: str, text: str) -> None:
        (self.root / path.lstrip("/")).write_bytes(text.encode())

    def reset(self, files: dict[str, str]) -> None:
        shutil.rmtree(self.root)
        self.root.mkdir()
        for path, text in files.items():
            file = self.root / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())

    def prune(self) -> None:
        for directory, _, _ in os.walk(self.root, topdown=False):
            if directory != str(self.root) and not os.listdir(directory):
                os.rmdir(directory)


class Quipu:
    """`quipu tool` as a child process."""

    def __init__(self, binary: str, data: Path) -> None:
        self.command = [binary, "--data", str(data)]
        self.child = subprocess.Popen(
            [*self.command, "tool", "--strings", "python"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
        )

    def call(self, command: dict[str, Any]) -> Answer:
        self.child.stdin.write(json.dumps(command) + "\n")
        self.child.stdin.flush()
        answer = json.loads(self.child.stdout.readline())
        return answer["content"], answer["is_error"]

    def files(self) -> dict[str, str]:
        listed = self.json("ls", "-R")["data"]
        if not listed:
            return {}
        memories = self.json("cat", *(memory["path"] for memory in listed))
        memories = memories["data"] if "data" in memories else [memories]
        return {memory["path"]: memory["content"] for memory in memories}

    def json(self, *arguments: str) -> Any:
        command = [*self.command, "--json", "-s", "memories", *arguments]
        ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
        return json.loads(ran.stdout)

    def close(self) -> None:
        self.child.stdin.close()
        self.child.wait()


def resolved(path: Any) -> Optional[str]:
    """Returns the store's path for a path that both sides take alike, `/` for the root."""
    if not isinstance(path, str) or not (path == "/memories" or path.startswith("/memories/")):
        return None
    parts = [part for part in path[len("/memories"):].split("/") if part not in ("", ".")]
    return "/" + "/".join(parts)


def is_path_deviation(path: Any) -> bool:
    """Tells whether Quipu refuses a path that the SDK's tool may take."""
    if not isinstance(path, str) or not path.startswith("/memories"):
        return False
    rest = path[len("/memories"):]
    lower = rest.lower()
    return (
        ".." in rest.split("/")
        or (rest != "" and not rest.startswith("/"))
        or "\\" in rest
        or any(code in lower for code in ("%2e", "%2f", "%5c"))
        or any(ord(character) < 32 or ord(character) == 127 for character in rest)
        or "e\u0301" in rest
        or "\u200b" in rest
        or any(len(part.encode()) > 255 for part in rest.split("/"))
    )


def overlapping_count(text: str, piece: str) -> int:
    count, start = 0, text.find(piece)
    while start != -1:
        count, start = count + 1, text.find(piece, start + 1)
    return count


def inserted(text: str, line: int, addition: str) -> str:
    """Returns what Quipu makes of an insert: the SDK's way, but always with a final line break."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    lines.insert(line, addition.rstrip("\n"))
    return "\n".join(lines) + "\n"


class Run:
    def __init__(self, binary: str, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.sdk = Sdk(folder / "sdk")
        self.quipu = Quipu(binary, folder / "data")
        self.counts = {"equal": 0, "exception": 0, "deviation": 0}

    # What commands are made of. Few names, so that they meet.
    NAMES = ["a", "b.md", "c", ".hidden", "node_modules", "é", "日本", "a b", "\U0001f600", "\uff5e"]
    LINES = ["", "a", "aa", "b", "key: value", "  x", "é", "\r", "tab\t", "aaa", "b\r"]

    def path(self) -> Any:
        choice = self.random.random()
        if choice < 0.03:
            return self.random.choice([
                "/memories/../x", "/memories/a/../b.md", "/memoriesx", "/memories..", "/etc/passwd", "",
                "/", "memories/a", "/memories/a\\b", "/memories/%2e%2e/a", "/memories/a\nb", "/memories/e\u0301",
                "/Memories/a", None, 5, ["/memories"], "/memories/" + "n" * 256, "/memories/\u200b",
            ])
        depth = self.random.choice([0, 1, 1, 1, 2, 2, 3])
        names = [self.random.choice(self.NAMES) for _ in range(depth)]
        slash = "//" if self.random.random() < 0.05 else "/"
        path = slash.join(["/memories", *names])
        if self.random.random() < 0.05:
            path += self.random.choice(["/", "/.", "//"])
        return path

    def text(self) -> str:
        lines = [self.random.choice(self.LINES) for _ in range(self.random.choice([0, 1, 1, 2, 3, 6]))]
        return "\n".join(lines) + ("\n" if self.random.random() < 0.5 else "")

    def piece(self, path: Any) -> Any:
        text = self.sdk.text(resolved(path) or "/") or ""
        choice = self.random.random()
        if choice < 0.6 and text:
            start = self.random.randrange(len(text))
            return text[start : start + self.random.choice([1, 1, 2, 3, 5, 20])]
        if choice < 0.65:
            return self.random.choice([None, 3, ""])
        return self.random.choice(["a", "aa", "b", "\n", "absent", "é"])

    def line(self) -> Any:
        choice = self.random.random()
        if choice < 0.85:
            return self.random.randrange(-1, 8)
        return self.random.choice(["1", 1.0, True, 1.5, None, "x", 99, -3, 10**9, [1], False])

    def view_range(self) -> Any:
        number = lambda: self.random.randrange(-3, 9)
        return self.random.choice([
            None, [], [2], [1, 2, 3], [number(), number()], [number(), number()], [number(), -1],
            ["2", "3"], [2.0, 3.0], [2, None], "2-3", "12", 0, 5, True, False, {}, [1.5, 2], ["x", 2],
        ])

    def command(self) -> dict[str, Any]:
        kind = self.random.choices(
            ["view", "create", "str_replace", "insert", "delete", "rename", "odd"],
            [25, 25, 20, 15, 5, 9, 1],
        )[0]
        path = self.path()
        if kind == "view":
            command = {"command": "view", "path": path}
            if self.random.random() < 0.4:
                command["view_range"] = self.view_range()
            return command
        if kind == "create":
            text = self.text() if self.random.random() < 0.97 else self.random.choice([None, 12])
            return {"command": "create", "path": path, "file_text": text}
        if kind == "str_replace":
            new = self.random.choice(["", "a", "z\nz", "é", "\n", "$&", "\\1"])
            if self.random.random() < 0.02:
                new = self.random.choice([None, 7])
            return {"command": kind, "path": path, "old_str": self.piece(path), "new_str": new}
        if kind == "insert":
            text = self.text() if self.random.random() < 0.97 else self.random.choice([None, 12])
            return {"command": kind, "path": path, "insert_line": self.line(), "insert_text": text}
        if kind == "delete":
            return {"command": kind, "path": path}
        if kind == "rename":
            return {"command": kind, "old_path": path, "new_path": self.path()}
        return self.random.choice([{"command": "append"}, {}, {"command": None}, {"path": path}])

    def step(self) -> None:
        command = self.command()
        paths = [command.get(name) for name in ("path", "old_path", "new_path")]
        if any(is_path_deviation(path) for path in paths):
            return self.expect_refusal(command)
        if self.is_overlap(command):
            return self.expect_refusal(command)
        before = self.sdk.text(resolved(command.get("path")) or "/")
        source_first = self.is_source_first(command)
        theirs, is_error = self.sdk.call(command)
        ours = self.quipu.call(command)
        if source_first:
            self.counts["deviation"] += 1
            assert ours == (f"The path {command['old_path']} does not exist", True), (command, ours)
            return
        if theirs is None:
            self.counts["exception"] += 1
            assert ours[1], f"{command}: the SDK's tool dies, but Quipu answers {ours}"
            return
        assert ours == (theirs, is_error), f"{command}\n  SDK:   {(theirs, is_error)}\n  Quipu: {ours}"
        self.counts["equal"] += 1
        if command.get("command") == "insert" and not is_error:
            self.follow_tail(command, before)

    def expect_refusal(self, command: dict[str, Any]) -> None:
        ours = self.quipu.call(command)
        assert ours[1], f"{command}: Quipu should refuse, but answers {ours}"
        self.counts["deviation"] += 1

    def is_overlap(self, command: dict[str, Any]) -> bool:
        text = self.sdk.text(resolved(command.get("path")) or "/")
        old = command.get("old_str")
        if command.get("command") != "str_replace" or text is None or not isinstance(old, str) or not old:
            return False
        return text.count(old) == 1 and overlapping_count(text, old) > 1

    def is_source_first(self, command: dict[str, Any]) -> bool:
        if command.get("command") != "rename":
            return False
        old, new = resolved(command["old_path"]), resolved(command["new_path"])
        if old in (None, "/") or new is None:
            return False
        exists = lambda path: (self.sdk.root / path.lstrip("/")).exists()
        try:
            return not exists(old) and exists(new)
        except OSError:
            return False

    def follow_tail(self, command: dict[str, Any], before: str) -> None:
        """The SDK's tool loses a final blank line; Quipu does not. Go on from Quipu's text."""
        path = resolved(command["path"])
        wanted = inserted(before, int(command["insert_line"]), command["insert_text"])
        if self.sdk.text(path) != wanted:
            self.counts["deviation"] += 1
            self.sdk.write(path, wanted)

    def compare_all(self) -> None:
        theirs, ours = self.sdk.files(), self.quipu.files()
        assert theirs == ours, f"\n  SDK:   {theirs}\n  Quipu: {ours}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--commands", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--folder", default=None, help="where to work; on a disk, not in memory")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    run = Run(arguments.binary, arguments.seed, folder)
    try:
        for number in range(1, arguments.commands + 1):
            run.step()
            if number % 1000 == 0 or number == arguments.commands:
                run.compare_all()
    except AssertionError as error:
        print(f"seed {arguments.seed}, command {number}: {error}", file=sys.stderr)
        sys.exit(1)
    finally:
        run.quipu.close()
        shutil.rmtree(folder)
    counts = ", ".join(f"{count} {name}" for name, count in run.counts.items())
    print(f"{arguments.commands} commands, seed {arguments.seed}: no difference ({counts})")


if __name__ == "__main__":
    main()
