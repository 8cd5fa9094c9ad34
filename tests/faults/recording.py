"""A recording of everything that processes did to some directories, and the disk that a power loss leaves.

`shim.c` appends one record for each change, in the order of the changes. A moment is a number of records:
the power went after that many. What is on the disk then follows this model:

- **Bytes.** What was written to a file before its last `fsync` or `fdatasync` is there. Each later write is, by
  chance, there, lost, there by its first half, or torn: any of its 512-byte sectors may be missing. Each
  later truncation is there or lost. Writes are independent of each other, so a late one may be there while
  an early one is lost, as the kernel writes pages back in any order. (ext4 in ordered mode would not expose a few
  of these states. Nothing may depend on that.)
- **Names.** Creating, renaming and removing a file is certain after an `fsync` of its directory, and only then; of
  the later ones a prefix is there, as file systems with a journal keep the order of the changes of one
  directory. An `fsync` of a file does not save its name, which POSIX does not promise (ext4 does it).
- **A directory** that was made is there as soon as anything inside of it was synced: ext4, XFS and Btrfs all
  write the names above it to their journal.
- **Shared memory** (`-shm`, mapped by SQLite) is lost. Any other file that is mapped for writing makes
  the recording useless, since stores to memory cannot be seen, and fails the test.

`Disk(forget_syncs_after=…)` forgets every `fsync` from some place of the log on. It shows that the test can fail.
"""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path
from typing import Iterator, NamedTuple, Optional

HEADER = struct.Struct("<IB3xQqII")
SECTOR_BYTES = 512


class Record(NamedTuple):
    """One change. `rest` is the second path or the bytes that were written."""

    what: str
    inode: int
    offset: int
    path: str
    rest: bytes
    end: int  # where the record ends in the log: acknowledgements are placed by this


def read_log(log: Path) -> Iterator[Record]:
    with open(log, "rb") as file:
        while header := file.read(HEADER.size):
            size, what, inode, offset, path_size, _pid = HEADER.unpack(header)
            path = file.read(path_size).decode()
            rest = file.read(size - HEADER.size - path_size)
            yield Record(chr(what), inode, offset, path, rest, file.tell())


class File:
    """The bytes of a file: those that are certain, and what was done since."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.pending: list[tuple[str, int, bytes]] = []
        self.is_mapped = False

    def sync(self) -> None:
        for change in self.pending:
            apply(self.synced, change)
        self.pending.clear()

    def after_power_loss(self, chance: random.Random, keep: float) -> bytes:
        content = bytearray(self.synced)
        for change in self.pending if keep else []:
            for part in surviving_parts(change, chance, keep):
                apply(content, part)
        return bytes(content)

    def as_written(self) -> bytes:
        content = bytearray(self.synced)
        for change in self.pending:
            apply(content, change)
        return bytes(content)


def apply(content: bytearray, change: tuple[str, int, bytes]) -> None:
    what, offset, data = change
    if what == "t":
        del content[offset:]
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset:offset + len(data)] = data


def surviving_parts(
    change: tuple[str, int, bytes], chance: random.Random, keep: float
) -> list[tuple[str, int, bytes]]:
    if chance.random() < keep:
        return [change]
    what, offset, data = change
    fate = chance.choice(["lost", "half", "torn"])
    if fate == "lost" or what == "t":
        return []
    if fate == "half":
        return [(what, offset, data[: len(data) // 2])]
    return [part for part in sectors(change) if chance.random() < 0.5]


def sectors(change: tuple[str, int, bytes]) -> list[tuple[str, int, bytes]]:
    """Splits a write at multiples of 512 bytes of the file."""
    what, offset, data = change
    first = SECTOR_BYTES - offset % SECTOR_BYTES
    cuts = [0, *range(first, len(data), SECTOR_BYTES), len(data)]
    return [(what, offset + start, data[start:end]) for start, end in zip(cuts, cuts[1:])]


class Naming(NamedTuple):
    """A change of names that is not certain yet: what each path means afterwards."""

    directories: frozenset[str]
    changes: dict[str, Optional[File]]


class Disk:
    """The directories as of a record, and what would be left of them if the power went now."""

    def __init__(self, roots: list[Path], forget_syncs_after: float = float("inf")) -> None:
        self.forget_syncs_after = forget_syncs_after
        self.directories = {os.stat(root).st_ino: str(root) for root in roots}
        self.by_inode: dict[int, File] = {}
        self.names: dict[str, File] = {}
        self.certain: dict[str, File] = {}
        self.pending: list[Naming] = []

    def play(self, record: Record) -> None:
        if record.what in "sd" and record.end > self.forget_syncs_after:
            return
        match record.what:
            case "c":
                if record.path not in self.names:
                    self.by_inode[record.inode] = File()
                    self._name({record.path: self.by_inode[record.inode]})
            case "w" | "t":
                self._file(record).pending.append((record.what, record.offset, record.rest))
            case "s":
                self._file(record).sync()
            case "d":
                self._sync_directory(self.directories[record.inode])
            case "m":
                self._file(record).is_mapped = True
            case "r":
                self._name({record.path: None, record.rest.decode(): self.names[record.path]})
            case "l":
                self._name({record.rest.decode(): self.names[record.path]})
            case "u":
                self._name({record.path: None})
            case "n":
                self.directories[record.inode] = record.path
            case other:
                raise AssertionError(f"the model knows no record {other!r} of {record.path}")

    def _file(self, record: Record) -> File:
        # A file without a name, which is gone after a power loss in any case, is not known.
        return self.by_inode.setdefault(record.inode, File())

    def _name(self, changes: dict[str, Optional[File]]) -> None:
        set_names(self.names, changes)
        self.pending.append(Naming(frozenset(os.path.dirname(path) for path in changes), changes))

    def _sync_directory(self, directory: str) -> None:
        for naming in self.pending:
            if directory in naming.directories:
                set_names(self.certain, naming.changes)
        self.pending = [naming for naming in self.pending if directory not in naming.directories]

    def write_after_power_loss(self, root: Path, target: Path, chance: random.Random, keep: float) -> None:
        """Writes what is left of a root to a target; `keep` is the share of unsynced changes that are there in full."""
        names = dict(self.certain)
        left = {
            directory: chance.randint(0, len(self.pending)) if keep else 0 for directory in self.directories.values()
        }
        for index, naming in enumerate(self.pending):
            if all(index < left.get(directory, 0) for directory in naming.directories):
                set_names(names, naming.changes)
        for path, file in sorted(names.items()):
            if not path.endswith("-shm"):
                rebuilt = target / Path(path).relative_to(root)
                rebuilt.parent.mkdir(parents=True, exist_ok=True)
                rebuilt.write_bytes(file.after_power_loss(chance, keep))

    def differences_from_disk(self, root: Path) -> list[str]:
        """Returns how the recording differs from the real files. Nothing may write meanwhile."""
        there = {str(path) for path in root.rglob("*") if path.is_file()}
        wrong = [f"{path}: only in one of them" for path in sorted(there ^ set(self.names))]
        for path in sorted(there & set(self.names)):
            if path.endswith("-shm"):
                continue
            if self.names[path].is_mapped:
                wrong.append(f"{path}: mapped for writing, so not all of its changes were seen")
            if Path(path).read_bytes() != self.names[path].as_written():
                wrong.append(f"{path}: other bytes than were recorded")
        return wrong


def set_names(names: dict[str, File], changes: dict[str, Optional[File]]) -> None:
    for path, file in changes.items():
        if file is None:
            names.pop(path, None)
        else:
            names[path] = file
