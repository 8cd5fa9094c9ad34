"""What is left of a redaction in PostgreSQL, and that `quipu check --erased` says so until it is gone."""

from __future__ import annotations

from pathlib import Path

from cluster import Cluster
from live import Quipu

CANARY = "thylacine-73915"
UNSOUND = 8


def holders(cluster: Cluster) -> list[str]:
    """Returns the files of the cluster that hold the canary."""
    found = []
    for file in sorted(cluster.data.rglob("*")):
        if file.is_file() and CANARY.encode() in file.read_bytes():
            found.append(str(file.relative_to(cluster.data)))
    return found


def check(_: Cluster, homes: Path) -> None:
    from cluster import Directory

    # A cluster of its own: others would write to the same log.
    directory = Directory()
    cluster = Cluster(directory, "erasing", "wal_recycle=off", "wal_level=replica").create()
    try:
        cluster.sql("CREATE DATABASE erasing")
        erase(cluster, homes)
    finally:
        cluster.stop()
        directory.close()


def erase(cluster: Cluster, homes: Path) -> None:
    quipu = Quipu(cluster.url("erasing"), homes / "erasing")
    quipu.run("store", "create", "notes")
    quipu.run("put", "/leak.md", text=f"the code is {CANARY}, keep it")
    quipu.run("put", "/leak.md", text="nothing here")
    assert quipu.json("search", "nothing")["results"]
    cluster.sql("SELECT pg_create_physical_replication_slot('stopped', true)")
    cluster.sql("CHECKPOINT")
    assert any(file.startswith("base/") for file in holders(cluster)), "the canary is in a table"
    quipu.run("redact", "--matching", CANARY, "--yes")
    cluster.sql("CHECKPOINT")
    assert [file for file in holders(cluster) if not file.startswith("pg_wal/")] == [], holders(cluster)
    assert holders(cluster), "measured: the log keeps it"
    receipt = quipu.json("receipts")["data"][0]["id"]
    finish(cluster, quipu, receipt)


def finish(cluster: Cluster, quipu: Quipu, receipt: str) -> None:
    """Does what the answers say until nothing is left."""
    told = quipu.run("check", "--erased", receipt, code=UNSOUND)
    assert "found" in told, told
    cluster.sql("SELECT pg_switch_wal()")
    cluster.sql("CHECKPOINT")
    quipu.run("check", "--erased", receipt, code=UNSOUND)
    assert holders(cluster), "the slot of a stopped replica keeps the log"
    cluster.sql("SELECT pg_drop_replication_slot('stopped')")
    for _ in range(2):
        cluster.sql("SELECT pg_switch_wal()")
        cluster.sql("CHECKPOINT")
    answer = quipu.json("check", "--erased", receipt)
    assert answer["is_complete"] and answer["unseen"], answer
    assert holders(cluster) == []
