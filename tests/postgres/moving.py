"""`quipu move` from a directory to PostgreSQL and back, with writers, kills and a target that is not empty."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from cluster import Cluster
from live import Quipu

KILLS = int(os.environ.get("QUIPU_TEST_MOVE_KILLS", "3"))


class Embedded(Quipu):
    """The binary with a data directory."""

    def __init__(self, home: Path) -> None:
        super().__init__("", home)
        del self.environment["QUIPU_DATABASE"]


def check(cluster: Cluster, homes: Path) -> None:
    cluster.sql("CREATE DATABASE moved")
    source = Embedded(homes / "embedded")
    source.run("store", "create", "notes")
    server = source.serve()
    store = server.request("GET", "/v1/memory_stores")[1]["data"][0]["id"]
    memories = f"/v1/memory_stores/{store}/memories"
    for number in range(300):
        body = {"path": f"/n/{number}.md", "content": f"note {number} " * 20}
        assert server.request("POST", memories, body)[0] == 200
    url = cluster.url("moved")
    plan = source.json("move", "--to", url, "--dry-run")
    assert plan["digest"] is None and cluster.sql("SELECT count(*) FROM quipu.versions", "moved") == "0"
    killed(source, url, server, memories)
    first = source.json("move", "--to", url)
    assert server.request("POST", memories, {"path": "/late.md", "content": "written since"})[0] == 200
    assert source.json("check")["problems"] == []
    server.close()
    last = source.json("move", "--to", url)
    assert last["digest"] != first["digest"]
    put = {table["name"]: table["put"] for table in last["tables"]}
    assert (put["versions"], put["memories"]) == (1, 1), put
    switched(source, url, homes, store)
    back(url, homes, last["digest"])


def killed(source: Quipu, url: str, server, memories: str) -> None:
    """Kills moves at random moments while a server writes; what is there is never taken for the whole."""
    draw = random.Random(7)
    for number in range(KILLS):
        process = source.popen("move", "--to", url, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.communicate(timeout=draw.uniform(0.05, 0.6))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        body = {"path": f"/during/{number}.md", "content": "while rows move"}
        assert server.request("POST", memories, body)[0] == 200


def switched(source: Quipu, url: str, homes: Path, store: str) -> None:
    """The database answers as the directory did: same ids, keys and sequence."""
    target = Quipu(url, homes / "switched")
    log = ("log", "--limit", "1000")
    assert target.json(*log) == source.json(*log)
    assert target.json("check")["problems"] == []
    server = target.serve()
    # The key of the directory opens the database.
    status, listed = server.request("GET", f"/v1/memory_stores/{store}/memories?limit=20&path_prefix=/n/")
    assert status == 200 and len(listed["data"]) == 20, listed
    assert server.request("GET", "/readyz")[0] == 200
    server.close()
    # Written on the new side: a run from the old side would undo it.
    target.run("put", "/new.md", text="after the switch")
    assert "written to the target since" in source.run("move", "--to", url, code=4)
    assert target.run("cat", "/new.md") == "after the switch"
    target.run("rm", "/new.md")


def back(url: str, homes: Path, digest: str) -> None:
    target = Quipu(url, homes / "back")
    directory = homes / "returned"
    there = target.json("move", "--to", str(directory))
    assert there["digest"] != digest, "something was written since"
    returned = Embedded(directory)
    returned.environment["QUIPU_DATA"] = str(directory)
    assert returned.json("check")["problems"] == []
    log = ("log", "--limit", "1000")
    assert returned.json(*log) == target.json(*log)
    # Another way round, everything is there already.
    again = target.json("move", "--to", str(directory))
    assert (again["digest"], sum(table["put"] for table in again["tables"])) == (there["digest"], 0)
