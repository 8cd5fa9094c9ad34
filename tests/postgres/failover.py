"""Servers over a primary with a synchronous standby, under load: the primary is killed, then a server.

Nothing that was acknowledged may be missing afterwards, nothing may be there twice, and `/readyz` must say what
is true. `QUIPU_TEST_FAILOVER_WRITERS` and `QUIPU_TEST_FAILOVER_SECONDS` make it larger.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from cluster import Cluster, Directory, until
from live import Quipu, Server, request

WRITERS = int(os.environ.get("QUIPU_TEST_FAILOVER_WRITERS", "4"))
SECONDS = float(os.environ.get("QUIPU_TEST_FAILOVER_SECONDS", "3"))


class Load:
    """Writers that create memories under names of their own through all servers, one after the other."""

    def __init__(self, servers: list[Server], store: str) -> None:
        self.servers, self.path = servers, f"/v1/memory_stores/{store}/memories"
        self.acknowledged: dict[str, str] = {}
        self.unknown: set[str] = set()
        self.lock, self.over = threading.Lock(), threading.Event()
        self.last_success = time.monotonic()
        self.longest_gap = 0.0
        self.threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def _write(self, writer: int) -> None:
        number = 0
        while not self.over.is_set():
            number += 1
            path = f"/w{writer}/{number}.md"
            host = self.servers[number % len(self.servers)].host
            status, answer = request(host, "POST", self.path, {"path": path, "content": path}, timeout=30)
            now = time.monotonic()
            with self.lock:
                if status == 200:
                    self.acknowledged[path] = answer["id"]
                    self.longest_gap = max(self.longest_gap, now - self.last_success)
                    self.last_success = now
                else:
                    self.unknown.add(path)

    def count(self) -> int:
        with self.lock:
            return len(self.acknowledged)

    def stop(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(timeout=120)


def listed(server: Server, path: str) -> list[tuple[str, str]]:
    found, page = [], ""
    while True:
        status, answer = server.request("GET", f"{path}?limit=100{page}")
        assert status == 200, answer
        found += [(memory["path"], memory["id"]) for memory in answer["data"] if memory["type"] == "memory"]
        if not answer.get("next_page"):
            return found
        page = f"&page={answer['next_page']}"


def check(homes: Path) -> str:
    directory = Directory()
    try:
        return run(directory, homes)
    finally:
        directory.close()


def run(directory: Directory, homes: Path) -> str:
    primary = Cluster(directory, "primary", "synchronous_standby_names=*", "synchronous_commit=local").create()
    primary.sql("CREATE DATABASE failover")
    standby = primary.standby("standby", "synchronous_standby_names=", "hot_standby=on")
    until("the standby is synchronous",
          lambda: primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1")
    primary.sql("ALTER DATABASE failover SET synchronous_commit = on")
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    url = f"postgres://quipu@{hosts}/failover?target_session_attrs=read-write&sslmode=disable"
    one, two = Quipu(url, homes / "failover-one"), Quipu(url, homes / "failover-two")
    one.run("store", "create", "notes")
    servers = [one.serve(), two.serve()]
    store = servers[0].request("GET", "/v1/memory_stores")[1]["data"][0]["id"]
    load = Load(servers, store)
    try:
        until("writes succeed", lambda: load.count() > 20)
        time.sleep(SECONDS / 3)
        before = load.count()
        primary.kill()
        until("the servers say that they are not ready",
              lambda: all(server.request("GET", "/readyz", timeout=5)[0] != 200 for server in servers))
        standby.promote()
        promoted = time.monotonic()
        until("writes succeed again", lambda: load.count() > before + WRITERS * 2)
        back_after = time.monotonic() - promoted
        until("the servers say that they are ready",
              lambda: all(server.request("GET", "/readyz", timeout=5)[0] == 200 for server in servers))
        time.sleep(SECONDS / 3)
        servers[1].kill()
        load.servers = servers[:1]
        alone = load.count()
        until("one server goes on", lambda: load.count() > alone + WRITERS)
    finally:
        load.stop()
    servers.append(two.serve())
    verify(load, servers[0], servers[-1])
    for server in (servers[0], servers[-1]):
        server.close()
    assert one.json("check")["problems"] == []
    standby.stop()
    text = (f"failover: {len(load.acknowledged)} acknowledged, all found once; {len(load.unknown)} not acknowledged; "
            f"writes again {back_after:.1f} s after the promotion; longest gap {load.longest_gap:.1f} s")
    print(text)
    return text


def verify(load: Load, *servers: Server) -> None:
    for server in servers:
        found = listed(server, load.path)
        paths = [path for path, _ in found]
        assert len(set(paths)) == len(paths), "a memory is there twice"
        missing = {path: it for path, it in load.acknowledged.items() if (path, it) not in set(found)}
        assert not missing, f"acknowledged and lost: {missing}"
        extra = set(paths) - set(load.acknowledged) - load.unknown
        assert not extra, f"nobody wrote {extra}"
        versions = listed_versions(server, load.path.replace("/memories", "/memory_versions"))
        assert len(set(versions)) == len(versions) == len(paths), "a version is there twice"


def listed_versions(server: Server, path: str) -> list[str]:
    found, page = [], ""
    while True:
        status, answer = server.request("GET", f"{path}?limit=100{page}")
        assert status == 200, answer
        found += [version["id"] for version in answer["data"]]
        if not answer.get("next_page"):
            return found
        page = f"&page={answer['next_page']}"
