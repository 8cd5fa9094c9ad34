"""Everything over PostgreSQL that needs real processes; `./test postgres` runs it."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import doors
import erasing
import failover
import moving
import passwords
import topology
from cluster import Cluster, Directory


def main() -> None:
    directory = Directory()
    cluster = Cluster(directory, "main").create()
    try:
        with tempfile.TemporaryDirectory(prefix="quipu-homes-") as homes:
            for name, check in (
                ("doors", lambda: doors.check(cluster, Path(homes))),
                ("moving", lambda: moving.check(cluster, Path(homes))),
                ("erasing", lambda: erasing.check(cluster, Path(homes))),
                ("passwords", lambda: passwords.check(cluster, Path(homes))),
                ("topology", lambda: topology.check(cluster, Path(homes))),
                ("failover", lambda: failover.check(Path(homes))),
            ):
                if sys.argv[1:] and name not in sys.argv[1:]:
                    continue
                began = time.monotonic()
                check()
                print(f"{name}: passed in {time.monotonic() - began:.1f} s")
    finally:
        cluster.stop()
        directory.close()


main()
