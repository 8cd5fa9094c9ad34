"""Passwords: where they come from, and that they are shown nowhere. What is wrong is said clearly."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cluster import Cluster
from live import Quipu

PASSWORD = "correct-horse-battery"


def check(cluster: Cluster, homes: Path) -> None:
    cluster.sql(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
    cluster.sql("CREATE DATABASE guarded OWNER guarded")
    rules = cluster.data / "pg_hba.conf"
    rules.write_text("host guarded guarded 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    cluster.sql("SELECT pg_reload_conf()")
    place = f"127.0.0.1:{cluster.port}/guarded?sslmode=disable"
    plain, full = f"postgres://guarded@{place}", f"postgres://guarded:{PASSWORD}@{place}"
    from_file(plain, cluster, homes)
    quipu = Quipu(full, homes / "guarded")
    quipu.run("store", "create", "notes")
    shown_nowhere(quipu, full)
    wrong(cluster, homes, place)


def from_file(plain: str, cluster: Cluster, homes: Path) -> None:
    quipu = Quipu(plain, homes / "from-file")
    quipu.run("migrate", code=7)
    file = quipu.home / ".pgpass"
    file.write_text(f"127.0.0.1:{cluster.port}:guarded:guarded:{PASSWORD}\n")
    file.chmod(0o600)
    assert "schema" in quipu.run("migrate")
    other = quipu.home / "elsewhere"
    file.rename(other)
    quipu.environment["PGPASSFILE"] = str(other)
    assert "has schema" in quipu.run("migrate")
    del quipu.environment["PGPASSFILE"]
    (quipu.home / "quipu.toml").write_text(f"[database]\npassword_file = '{other}'\n")
    assert "has schema" in quipu.run("migrate")


def shown_nowhere(quipu: Quipu, full: str) -> None:
    server = quipu.popen("serve", "--listen", "127.0.0.1:0", "--log-level", "debug",
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert server.stdout.readline().startswith("listening on ")
    title = Path(f"/proc/{server.pid}/cmdline").read_bytes()
    server.terminate()
    out, errors = server.communicate(timeout=60)
    assert PASSWORD.encode() not in title and PASSWORD not in out + errors
    told = quipu.run("--store", "none", "ls", code=3)
    assert PASSWORD not in told, told
    # On the command line others can see it, and that is said; the answer still does not show it.
    del quipu.environment["QUIPU_DATABASE"]
    told = quipu.run("--database", full, "--store", "none", "ls", code=3)
    assert "others on this host can see" in told and PASSWORD not in told, told
    (quipu.home / "quipu.toml").write_text(f"database = '{full}'\nunknown = 3\n")
    assert PASSWORD not in quipu.run("ls", code=2)


def wrong(cluster: Cluster, homes: Path, place: str) -> None:
    """Bad input gets a clear error and writes nothing."""
    home = homes / "wrong"
    for url, words in (
        (f"postgres://guarded:wrong-{PASSWORD}@{place}", "password"),
        ("postgres://guarded@127.0.0.1:1/guarded?sslmode=disable", "reached"),
    ):
        told = Quipu(url, home).run("store", "list", code=7)
        assert words in told and PASSWORD not in told, told
    cluster.sql("CREATE DATABASE foreign_tables")
    cluster.sql("CREATE SCHEMA quipu; CREATE TABLE quipu.stores (id int)", "foreign_tables")
    told = Quipu(cluster.url("foreign_tables"), home).run("store", "create", "notes", code=7)
    assert "error" in told, told
    assert cluster.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'quipu'", "foreign_tables") == "1"
