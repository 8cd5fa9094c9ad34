"""`kill -9` of every kind of process on one data directory, under mixed load.

At the same time work: a server with two REST clients, `quipu mcp`, `quipu tool`, a mount, a folder sync, and
commands (`put`, `edit`, `mv`, `rm`, `redact`, `backup`, `prune`). Each writer owns some memories, so it knows in which
state they must be; some also append lines to one shared memory, of which none may get lost. Again and
again one process is killed, whatever it is doing, and whoever needs it starts it again.

After each interruption the writer looks at its memories: they are as they were acknowledged, or as the interrupted
change would have made them. From time to time, and at the end, everything rests and is compared: every acknowledged
version is in the history, nothing that was acknowledged as redacted is in a byte of any file, and
`quipu check` finds nothing. Nobody who was not killed may fail.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

from doors import Commands, Door, Mcp, Rest, SharedServer, Tool
from folders import Mount, Sync
from ledger import TOKEN, Ledger, compare, prove_sensitive
from live import PATIENCE_SECONDS, Down, Quipu, Refused
from writer import Creator, Writer, check_problems, contents_of, files_with

KINDS = ["serve", "mcp", "tool", "mount", "sync", "put", "edit", "mv", "rm", "redact", "backup", "prune"]
KILLS_BETWEEN_CHECKS = 40
# A command takes about ten milliseconds, so a kill within these hits it at any point of its life.
DELAY_SECONDS_MAX = {"serve": 0.06, "mcp": 0.06, "tool": 0.06, "mount": 0.06, "sync": 0.03}


class Floor:
    """A lock for many workers at once, or for one alone."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._working, self._is_closed = 0, False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._is_closed)
            self._working += 1
        try:
            yield
        finally:
            with self._condition:
                self._working -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._condition:
            self._is_closed = True
            self._condition.wait_for(lambda: self._working == 0)
        try:
            yield
        finally:
            with self._condition:
                self._is_closed = False
                self._condition.notify_all()


class SharedMemory:
    """One memory to which several doors append lines."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._lock = threading.Lock()
        self.path = ""
        self.begun: set[str] = set()
        self.acknowledged: set[str] = set()

    def renew(self, quipu: Quipu) -> None:
        self.path = f"/shared/{self._chance.getrandbits(64):016x}.md"
        self.begun, self.acknowledged = set(), set()
        quipu.run("put", self.path, "--new", "--store", "notes", text="begin\n", kind="renew")

    def append(self, door: Door) -> None:
        """Appends one line; a conflict with another writer is not a failure."""
        with self._lock:
            token = f"{self._chance.getrandbits(128):032x}"
            self.begun.add(token)
        try:
            door.append(self.path, token)
        except Refused as refused:
            if refused.code not in (4, 409):
                raise
        else:
            self.acknowledged.add(token)

    def problems(self, text: str) -> list[str]:
        lines = TOKEN.findall(text)
        lost, unknown = self.acknowledged - set(lines), set(lines) - self.begun
        found = [f"{self.path} lacks the acknowledged line {line}" for line in sorted(lost)]
        found += [f"{self.path} has a line of nobody: {line}" for line in sorted(unknown)]
        return found + [f"{self.path} has a line twice"] * (len(lines) != len(set(lines)))


class Run:
    """The data directory, its workers, and the killer."""

    def __init__(self, seed: str, work: Path) -> None:
        self.chance = random.Random(f"{seed} kills")
        self.work = work
        self.quipu = Quipu(work / "data")
        self.ledger = Ledger(time.monotonic)
        self.floor = Floor()
        self.is_over = threading.Event()
        self.failures: list[BaseException] = []
        self.kills: Counter[str] = Counter()
        self.shared = SharedMemory(self._new_chance())
        self.backups_count = 0
        self.slowest_seconds = 0.0
        stores = {
            name: self.quipu.json("store", "create", name, kind="setup")["id"]
            for name in ("notes", "memories", "mounted", "synced")
        }
        self.shared.renew(self.quipu)
        self.server = SharedServer(self.quipu)
        self.sync = Sync(self.quipu, "synced", work / "folder")
        self.mount = Mount(self.quipu, "mounted", work / "mount") if Mount.is_possible() else None
        self.writers = self._writers(stores)

    def _new_chance(self) -> random.Random:
        return random.Random(self.chance.getrandbits(64))

    def _writers(self, stores: dict[str, str]) -> list[Writer]:
        doors = [
            (Rest(self.server, stores["notes"]), "notes", "/rest-1"),
            (Rest(self.server, stores["notes"]), "notes", "/rest-2"),
            (Mcp(self.quipu, "notes"), "notes", "/mcp"),
            (Tool(self.quipu, "memories"), "memories", "/tool"),
            (Commands(self.quipu, "notes", self.work), "notes", "/commands"),
            (self.sync, "synced", "/files"),
        ]
        if self.mount is not None:
            doors.append((self.mount, "mounted", "/files"))
        writers = [Writer(door, self.ledger.group(store, prefix), self._new_chance()) for door, store, prefix in doors]
        # A sync that was killed before it noted what it did takes a later change of the store for one of two
        # that contradict each other. So what reaches the folder from the store is never changed again.
        commands = Commands(self.quipu, "synced", self.work)
        return [*writers, Creator(commands, self.ledger.group("synced", "/commands"), self._new_chance())]

    # What the threads do.

    def work_on(self, step: Callable[[], None]) -> None:
        """Repeats a step until the run is over; the first failure ends it."""
        try:
            while not self.is_over.is_set():
                with self.floor.shared():
                    step()
        except BaseException as failure:  # noqa: BLE001, every failure is reported by `result`
            self.failures.append(failure)
            self.is_over.set()

    def step_of(self, writer: Writer) -> Callable[[], None]:
        appends = writer.door.can_append and writer.group.store == "notes"

        def step() -> None:
            begun = time.monotonic()
            try:
                if appends and writer.chance.random() < 0.15:
                    self.shared.append(writer.door)
                else:
                    writer.step()
            except Down:
                writer.settle(self.quipu)
            self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - begun)

        return step

    def upkeep(self) -> None:
        """Backs up, prunes and searches. A backup is there as a whole or not at all."""
        target = self.work / f"backup-{self.backups_count}.db"
        self.backups_count += 1
        try:
            self.quipu.run("backup", str(target))
            self.quipu.run("prune")
            self.quipu.run("search", "--all", "0*")
        except Down:
            pass
        if target.exists():
            with_backup = self.work / "restored"
            with_backup.mkdir()
            target.rename(with_backup / "quipu.db")
            problems = check_problems(Quipu(with_backup))
            assert not problems, f"a backup is damaged: {problems}"
            for file in with_backup.iterdir():
                file.unlink()
            with_backup.rmdir()

    # Killing and comparing.

    def kill_one(self, kind: str) -> None:
        """Kills a process of this kind at a random moment; waits for one if there is none."""
        patience = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < patience and not self.is_over.is_set():
            time.sleep(self.chance.uniform(0, DELAY_SECONDS_MAX.get(kind, 0.012)))
            if self.quipu.running.kill_one(kind):
                self.kills[kind] += 1
                return
        assert self.is_over.is_set(), f"nobody could run `quipu {kind}`; alive: {self.quipu.running}"

    def compare(self) -> None:
        """Compares everything while nobody works; the programs stay open."""
        with self.floor.alone():
            problems = check_problems(self.quipu)
            contents = contents_of(self.quipu, self.work)
            result = compare(self.ledger, contents)
            problems += result.problems + files_with(self.ledger.erased_tokens(), self.quipu.data)
            problems += self.shared.problems(contents.stores["notes"].texts[self.shared.path])
            assert not problems, "\n".join(problems)
            prove_sensitive(self.ledger, contents)
            self.result = result
            self.shared.renew(self.quipu)

    def close(self) -> None:
        for writer in self.writers:
            writer.door.close()
        self.server.close()

    def compare_folder(self) -> None:
        self.sync.sync()
        there = self.sync.texts()
        stored = contents_of(self.quipu, self.work).stores["synced"].texts
        assert there == stored, f"the folder differs from its store at {sorted(there.items() ^ stored.items())[:4]}"


def run(seed: str, kills_count: int, work: Path) -> str:
    """Kills `kills_count` processes and returns a summary line."""
    everything = Run(seed, work)
    steps = [everything.step_of(writer) for writer in everything.writers] + [everything.upkeep]
    threads = [threading.Thread(target=everything.work_on, args=(step,)) for step in steps]
    kinds = [kind for kind in KINDS if kind != "mount" or everything.mount is not None]
    try:
        for thread in threads:
            thread.start()
        for index in range(kills_count):
            if index % len(kinds) == 0:
                everything.chance.shuffle(kinds)
            everything.kill_one(kinds[index % len(kinds)])
            if everything.is_over.is_set():
                break
            if index % KILLS_BETWEEN_CHECKS == KILLS_BETWEEN_CHECKS - 1:
                everything.compare()
    finally:
        everything.is_over.set()
        for thread in threads:
            thread.join()
        everything.close()
    if everything.failures:
        raise everything.failures[0]
    everything.compare()
    everything.compare_folder()
    killed = ", ".join(f"{kind} {count}" for kind, count in sorted(everything.kills.items()))
    result = everything.result
    return (
        f"kills: {sum(everything.kills.values())} kills ({killed}): {result.changes_count} acknowledged changes are "
        f"there, {len(everything.ledger.erased_tokens())} redacted texts are in no file, "
        f"the slowest change took {everything.slowest_seconds:.1f} s"
    )
