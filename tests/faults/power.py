"""Power loss: what was acknowledged is on the disk, and what was redacted is not.

A workload runs once while `shim.c` records every change of the files below one directory: a server with two REST
clients, `quipu mcp`, `quipu tool` and commands, which create, change, move, delete and redact, create and delete
stores, create and revoke keys, search, prune and back up. Then the disk is rebuilt as of many moments, half of them at
random, half right after an acknowledgement; `recording.py` has the model. Each disk is opened with the real binary,
and:

- everything that was acknowledged before the moment is there, whatever was begun is there or not, but not by half;
- no byte of any file holds a text that was acknowledged as redacted or whose store was deleted, before and after
  the disk is opened;
- revoked keys are refused by a server, valid ones are not;
- a backup that was acknowledged is there, complete, and holds nothing that was redacted before it;
- `quipu check` finds nothing, searches find what is there, and new writes work.

Two tests of the test: everything recorded must be exactly what is on the real disk, so that no call was missed; and
if the syncs of an acknowledged change are forgotten, the change must be missed, or its text found.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator

from doors import Commands, Mcp, Rest, SharedServer, Tool
from ledger import Attempt, Change, Comparison, Key, Ledger, StoreLife, compare, is_certain
from live import Quipu, Refused, Server
from recording import Disk, read_log
from writer import Writer, check_problems, contents_of, files_with

STEPS_COUNT = 30


@dataclass
class Backup:
    name: str
    attempt: Attempt


class Recorded:
    """The workload, the ledger of what it did, and the recording."""

    def __init__(self, seed: str, work: Path, shim: Path) -> None:
        self.chance = random.Random(f"{seed} power")
        self.work, self.root, self.log = work, work / "root", work / "recording.log"
        self.backups_directory = self.root / "backups"
        self.backups_directory.mkdir(parents=True)
        self.log.touch()
        variables = {"LD_PRELOAD": str(shim), "QUIPU_FAULT_SHIM_ROOTS": str(self.root), "QUIPU_FAULT_SHIM_LOG": str(self.log)}
        self.quipu = Quipu(self.root / "data", variables)
        self.ledger = Ledger(lambda: os.stat(self.log).st_size)
        self.backups: list[Backup] = []
        self.failures: list[BaseException] = []
        self.server = SharedServer(self.quipu)

    def run(self) -> None:
        store = self.create_store("notes")
        self.create_store("memories")
        server, quipu = self.server, self.quipu
        doors = [
            (Rest(server, store), "notes", "/rest-1"), (Rest(server, store), "notes", "/rest-2"),
            (Mcp(quipu, "notes"), "notes", "/mcp"), (Tool(quipu, "memories"), "memories", "/tool"),
            (Commands(quipu, "notes", self.work), "notes", "/commands"),
        ]
        chances = [random.Random(self.chance.getrandbits(64)) for _ in doors]
        writers = [Writer(door, self.ledger.group(store, prefix), chance)
                   for (door, store, prefix), chance in zip(doors, chances)]
        tasks: list[Callable[[], None]] = [lambda one=one: self.write(one) for one in writers]
        self.together([*tasks, self.administrate])
        for writer in writers:
            writer.door.close()
        server.close()
        # Now each command is the only process, so it is also the first and the last to have the data open.
        alone = Writer(Commands(quipu, "notes", self.work), self.ledger.group("notes", "/alone"), self.chance)
        self.write(alone)
        self.back_up()

    def together(self, tasks: list[Callable[[], None]]) -> None:
        threads = [threading.Thread(target=self.guarded, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as failure:  # noqa: BLE001, the first one is raised by `together`
            self.failures.append(failure)

    def write(self, writer: Writer) -> None:
        for _ in range(STEPS_COUNT):
            writer.step()

    def create_store(self, name: str) -> str:
        life = StoreLife(self.ledger.attempt())
        self.ledger.stores[name] = life
        made = self.quipu.json("store", "create", name)
        life.creation.acknowledge()
        return made["id"]

    def administrate(self) -> None:
        for round in range(STEPS_COUNT // 5):
            self.use_and_delete_store(f"short-lived {round}")
            self.use_keys()
            self.quipu.run("search", "--all", "0*")
            self.server.call("GET", "/quipu/search?query=1*")
            self.quipu.run("prune")
            self.back_up()

    def use_and_delete_store(self, name: str) -> None:
        store = self.create_store(name)
        chance = random.Random(self.chance.getrandbits(64))
        writer = Writer(Rest(self.server, store), self.ledger.group(name, "/notes"), chance)
        for _ in range(3):
            writer.step()
        deletion = self.ledger.attempt()
        self.ledger.stores[name].deletion = deletion
        self.server.call("DELETE", f"/v1/memory_stores/{store}")
        deletion.acknowledge()

    def use_keys(self) -> None:
        """Makes two keys and revokes one."""
        for is_revoked in (False, True):
            creation = self.ledger.attempt()
            made = self.quipu.json("key", "create", "--role", "read_only")
            creation.acknowledge()
            key = Key(made["id"], made["secret"], creation)
            self.ledger.keys.append(key)
            if is_revoked:
                key.revocation = self.ledger.attempt()
                self.quipu.run("key", "revoke", key.id)
                key.revocation.acknowledge()

    def back_up(self) -> None:
        backup = Backup(f"{len(self.backups)}.db", self.ledger.attempt())
        self.backups.append(backup)
        self.quipu.run("backup", str(self.backups_directory / backup.name))
        backup.attempt.acknowledge()

    def disk(self, **options: float) -> Disk:
        return Disk([self.root, self.backups_directory], **options)

    def acknowledged(self) -> list[Attempt]:
        ledger = self.ledger
        changes = [change for group in ledger.groups for change in group.changes]
        lives = [attempt for life in ledger.stores.values() for attempt in (life.creation, life.deletion)]
        keys = [attempt for key in ledger.keys for attempt in (key.creation, key.revocation)]
        everything = [*changes, *ledger.redactions, *lives, *keys, *(backup.attempt for backup in self.backups)]
        return [attempt for attempt in everything if is_certain(attempt, float("inf"))]


class Examiner:
    """Opens rebuilt disks and compares them with the ledger."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded, self.ledger = recorded, recorded.ledger
        self.total = Comparison()
        self.tokens_count = self.backups_count = 0
        self._sound_backups: set[tuple[str, bytes]] = set()

    def problems(self, disk: Path, opened: Path, moment: float) -> list[str]:
        """Examines a copy, so that the disk can be examined again."""
        shutil.copytree(disk, opened)
        data = opened / "data"
        tokens = self.ledger.erased_tokens(moment)
        found = files_with(tokens, data) if data.exists() else []
        quipu = Quipu(data)
        data.mkdir(exist_ok=True)
        if not any(is_certain(life.creation, moment) for life in self.ledger.stores.values()):
            # Perhaps there is no database yet, which is made now.
            quipu.run("store", "create", "first")
        found += check_problems(quipu)
        try:
            result = compare(self.ledger, contents_of(quipu, opened), moment, moment)
        except Refused as refused:
            return [*found, f"the data cannot be read: {refused}"]
        found += result.problems + self.search_problems(quipu, moment) + self.server_problems(quipu, moment)
        found += check_problems(quipu) + files_with(tokens, data)
        found += self.backup_problems(opened, moment)
        self.tokens_count += len(tokens)
        self.total.changes_count += result.changes_count
        self.total.revocations_count += result.revocations_count
        return found

    def search_problems(self, quipu: Quipu, moment: float) -> list[str]:
        """Every memory whose text is certain is found by it."""
        found = []
        for group in self.ledger.groups:
            states = group.states(moment, moment)
            is_settled = len(states) == 1 and self.ledger.deletion(group.store) is None
            for path, text in list(states[0].items())[:1] if is_settled else []:
                hits = quipu.json("search", text.split()[0], "--store", group.store)["results"]
                if path not in [hit["path"] for hit in hits]:
                    found.append(f"a search does not find {group.store}{path}")
        return found

    def server_problems(self, quipu: Quipu, moment: float) -> list[str]:
        """The keys work, or do not, and new memories can be written."""
        found = []
        server = Server(quipu)
        for key in self.ledger.keys:
            status, _ = server.answer("GET", "/v1/memory_stores", key=key.secret)
            if is_certain(key.revocation, moment) and status != 401:
                found.append(f"the revoked key {key.id} gets {status}")
            if is_certain(key.creation, moment) and key.revocation is None and status != 200:
                found.append(f"the valid key {key.id} gets {status}")
        store = server.call("POST", "/v1/memory_stores", {"name": "afterwards"})
        server.call("POST", f"/v1/memory_stores/{store['id']}/memories", {"path": "/new.md", "content": "new"})
        server.stop()
        return found

    def backup_problems(self, opened: Path, moment: float) -> list[str]:
        """A backup that was acknowledged is there, and whatever has its name is complete."""
        found = []
        for backup in self.recorded.backups:
            file = opened / "backups" / backup.name
            if not file.exists():
                if is_certain(backup.attempt, moment):
                    found.append(f"the backup {backup.name} is gone")
                continue
            self.backups_count += 1
            # Most moments have the same backups, byte for byte.
            identity = (backup.name, hashlib.sha256(file.read_bytes()).digest())
            if identity not in self._sound_backups:
                problems = self.backup_contents_problems(backup, file, opened / f"restored {backup.name}")
                found += [f"{problem} in the backup {backup.name}" for problem in problems]
                if not problems:
                    self._sound_backups.add(identity)
        return found

    def backup_contents_problems(self, backup: Backup, file: Path, restored: Path) -> list[str]:
        restored.mkdir()
        file.rename(restored / "quipu.db")
        found = files_with(self.ledger.erased_tokens(backup.attempt.begun), restored)
        quipu = Quipu(restored)
        found += check_problems(quipu)
        contents = contents_of(quipu, restored.parent)
        return found + compare(self.ledger, contents, backup.attempt.begun, backup.attempt.acknowledged).problems


def rebuilt(recorded: Recorded, moments: list[float], disk: Disk) -> Iterator[float]:
    """Plays the recording and stops at each moment."""
    waiting = sorted(moments)
    for record in read_log(recorded.log):
        while waiting and record.end > waiting[0]:
            yield waiting.pop(0)
        disk.play(record)
    yield from waiting


def chosen_moments(recorded: Recorded, count: int) -> list[float]:
    """Half of the moments follow an acknowledgement, half are anywhere."""
    ends = [record.end for record in read_log(recorded.log)]
    attempts = recorded.acknowledged()
    after = [recorded.chance.choice(attempts).acknowledged for _ in range(count // 2)]
    return after + [recorded.chance.choice(ends) for _ in range(count - len(after))]


def examine(recorded: Recorded, examiner: Examiner, moments: list[float], seed: str) -> None:
    disk = recorded.disk()
    for index, moment in enumerate(rebuilt(recorded, moments, disk)):
        chance = random.Random(f"{seed} {index}")
        place, opened = recorded.work / "disk", recorded.work / "opened"
        keep = chance.choice([0.0, 0.25, 0.5, 0.75])
        disk.write_after_power_loss(recorded.root, place, chance, keep)
        place.mkdir(exist_ok=True)
        problems = examiner.problems(place, opened, moment)
        assert not problems, (
            f"the power went at byte {moment} of {recorded.log} (kept {keep}); the disk is {place}, "
            f"and after it was opened {opened}:\n" + "\n".join(problems)
        )
        shutil.rmtree(place)
        shutil.rmtree(opened)


def prove_complete(recorded: Recorded) -> None:
    disk = recorded.disk()
    for record in read_log(recorded.log):
        disk.play(record)
    differences = disk.differences_from_disk(recorded.root)
    assert not differences, "the recording is not complete:\n" + "\n".join(differences)


def prove_sensitive(recorded: Recorded, count: int) -> int:
    """Forgets the syncs of some acknowledged changes and redactions, each of which must be noticed."""
    chance = recorded.chance
    changes = [change for group in recorded.ledger.groups for change in group.changes
               if isinstance(change, Change) and group.store in ("notes", "memories")]
    examples = chance.sample(changes, count) + chance.sample(recorded.ledger.redactions, count)
    for attempt in examples:
        disk = recorded.disk(forget_syncs_after=attempt.begun)
        for _ in rebuilt(recorded, [attempt.acknowledged], disk):
            break
        place, opened = recorded.work / "forgetful", recorded.work / "forgetful-opened"
        disk.write_after_power_loss(recorded.root, place, chance, 0.0)
        problems = Examiner(recorded).problems(place, opened, attempt.acknowledged)
        assert problems, f"nobody noticed that {attempt} was not synced; the disk is {place}"
        shutil.rmtree(place)
        shutil.rmtree(opened)
    return len(examples)


def run(seed: str, moments_count: int, work: Path, shim: Path) -> str:
    """Loses the power so often and returns a line of figures."""
    recorded = Recorded(seed, work, shim)
    recorded.run()
    prove_complete(recorded)
    noticed_count = prove_sensitive(recorded, 2)
    examiner = Examiner(recorded)
    examine(recorded, examiner, chosen_moments(recorded, moments_count), seed)
    return (
        f"power: {moments_count} moments of {os.stat(recorded.log).st_size // 2**20} MB: "
        f"{examiner.total.changes_count} acknowledged changes are there, {examiner.tokens_count} redacted or deleted "
        f"texts are in no file, {examiner.total.revocations_count} revoked keys are refused, {examiner.backups_count} "
        f"backups are complete; {noticed_count} forgotten syncs were noticed"
    )
