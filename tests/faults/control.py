"""Injects failures into running processes, through the control file of `shim.c`."""

from __future__ import annotations

import errno
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

# In the order of the enumeration in `shim.c`.
KINDS = ("open", "read", "write", "sync", "truncate", "map", "rename", "unlink", "flock", "fcntl", "stat")

SETTINGS = struct.Struct("<IIII")
LEFT = struct.Struct("<q")
COUNTS = struct.Struct(f"<{1 + len(KINDS)}Q")
LEFT_AT = SETTINGS.size
COUNTS_AT = LEFT_AT + LEFT.size


@dataclass(frozen=True)
class Fault:
    """Makes the n-th call of a kind fail, alone or with all that follow."""

    kind: str
    nth: int
    error: str = "EIO"
    is_sticky: bool = False

    def __str__(self) -> str:
        return f"{self.error} at {self.kind} {self.nth}{' and all later ones' if self.is_sticky else ''}"


class Control:
    """A control file, which every process with the shim has mapped."""

    def __init__(self, file: Path) -> None:
        file.write_bytes(bytes(mmap.PAGESIZE))
        self.file = file
        with open(file, "r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), mmap.PAGESIZE)
        self.disarm()

    def arm(self, fault: Fault) -> None:
        self.disarm()
        mask = 1 << KINDS.index(fault.kind)
        SETTINGS.pack_into(self._memory, 0, mask, getattr(errno, fault.error), fault.is_sticky, 0)
        COUNTS.pack_into(self._memory, COUNTS_AT, *bytes(1 + len(KINDS)))
        LEFT.pack_into(self._memory, LEFT_AT, fault.nth)

    def disarm(self) -> None:
        LEFT.pack_into(self._memory, LEFT_AT, -1)

    def failures_count(self) -> int:
        return COUNTS.unpack_from(self._memory, COUNTS_AT)[0]

    def counts(self) -> dict[str, int]:
        """Returns the number of calls of each kind since a fault was last armed."""
        return dict(zip(KINDS, COUNTS.unpack_from(self._memory, COUNTS_AT)[1:]))

    def variables(self, shim: Path, root: Path) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(shim), "QUIPU_FAULT_SHIM_ROOTS": str(root), "QUIPU_FAULT_SHIM_CONTROL": str(self.file),
        }
