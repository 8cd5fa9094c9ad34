#!/usr/bin/env python3
"""Kills, power losses and failing calls: what was acknowledged must survive all of them.

    run.py [PART…]        the parts are `kills`, `power` and `eio`; without any, all of them

QUIPU_BINARY names the binary. Longer runs:

    QUIPU_FAULT_KILLS=1500    how often a process is killed (25)
    QUIPU_FAULT_MOMENTS=200   at how many moments the power is cut (20)
    QUIPU_FAULT_SWEEP=8       how many calls of each kind fail for each subject (1); `all` for all of them
    QUIPU_FAULT_SEED=…        repeats the choices of a run, which prints its seed. How processes and threads
                              take turns is up to the system, so the same seed makes a similar run, not the same one.

What failed is kept below `target/faults`, with the data as it was.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Callable, Optional

import eio
import kills
import power
from folders import Mount
from live import Running

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent.parent / "target" / "faults"
Part = Callable[[Path], str]


def number(name: str, default: int) -> int:
    return int(os.environ.get(f"QUIPU_FAULT_{name}", default))


def sweep() -> Optional[int]:
    return None if os.environ.get("QUIPU_FAULT_SWEEP") == "all" else number("SWEEP", 1)


def warn(text: str) -> None:
    print(f"##########  {text}", file=sys.stderr, flush=True)


def built_shim() -> Optional[Path]:
    """Compiles the shim; returns nothing, and says so, where that cannot be done."""
    compiler = shutil.which("cc")
    if not sys.platform.startswith("linux") or compiler is None:
        warn("SKIPPED: power loss and failing calls were NOT tested. That needs Linux and a C compiler (`cc`).")
        return None
    shim = TARGET / "shim.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", str(shim), str(HERE / "shim.c"), "-ldl", "-lpthread"], check=True)
    return shim


def parts(seed: str) -> dict[str, Part]:
    shim = built_shim()
    found: dict[str, Part] = {"kills": lambda work: kills.run(seed, number("KILLS", 25), work)}
    if shim is not None:
        found["power"] = lambda work: power.run(seed, number("MOMENTS", 20), work, shim)
        found["eio"] = lambda work: eio.run(seed, sweep(), work, shim)
    return found


def run(name: str, part: Part, seed: str) -> bool:
    """Runs a part in a folder of its own; returns whether it passed."""
    work = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=TARGET))
    begun = time.monotonic()
    try:
        line = part(work)
    except Exception as failure:  # noqa: BLE001, the other parts run in any case
        print(f"{name} FAILED with QUIPU_FAULT_SEED={seed}; everything is kept in {work}", file=sys.stderr)
        traceback.print_exception(failure)
        return False
    finally:
        Running.kill_leftovers()
    print(f"{line} ({time.monotonic() - begun:.0f} s)", flush=True)
    shutil.rmtree(work)
    return True


def main(wanted: list[str]) -> int:
    seed = os.environ.get("QUIPU_FAULT_SEED") or secrets.token_hex(4)
    print(f"QUIPU_FAULT_SEED={seed}", flush=True)
    TARGET.mkdir(parents=True, exist_ok=True)
    possible = parts(seed)
    if not Mount.is_possible():
        warn("SKIPPED: no mount was killed. That needs root and /dev/fuse.")
    passed = [run(name, part, seed) for name, part in possible.items() if name in wanted or not wanted]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
