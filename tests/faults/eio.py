"""Calls to the file system fail: with EIO, or for lack of space, once or from then on.

A fault is the n-th call of a kind on a file of the data directory. While it is armed, somebody works through one
door; each answer must be right or an error of the storage. What was acknowledged must be there, what was not may be
there or not, but not by half, and a read that is answered is answered correctly. No process may crash or hang, and a
server must answer `/healthz` meanwhile. When the fault is gone, everything works again: first for another process,
which shows that no lock was kept, then for the same one. `quipu check` finds nothing.

The subjects are a server, `quipu mcp` and `quipu tool`, which live on through all faults, and commands and the start of
a server, which have the fault from their first call on.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Callable, Iterator, Optional

from control import KINDS, Control, Fault
from doors import Commands, Door, Mcp, Rest, Tool
from ledger import Ledger, compare
from live import Down, Hung, Quipu, Refused, Server
from writer import check_problems, contents_of, files_with

# The exit code and the status of errors of the storage.
STORAGE_EXIT_CODE = 7
STORAGE_STATUS_MIN = 500
CHECK_EXIT_CODE = 8
PATIENCE_SECONDS = 30.0
# Nobody holds a lock when the fault is gone, so another process need not wait for one.
LOCK_PATIENCE_SECONDS = 4.0


class Wrong(Exception):
    """An answer that no fault excuses."""


WRONG = (Wrong, Hung, AssertionError)


class Round:
    """One fault and everything that is done while it is armed."""

    def __init__(self, subject: Subject, fault: Optional[Fault], name: str) -> None:
        self.subject, self.fault = subject, fault
        self.group = subject.trial.ledger.group(subject.store, f"/{name}")
        self.errors_count = 0

    def text(self) -> str:
        chance = self.subject.trial.chance
        words = " ".join(f"{chance.getrandbits(20):05x}" for _ in range(chance.choice([3, 3, 700])))
        return f"{chance.getrandbits(128):032x} {words}\n"

    def change(self, effects: dict[str, Optional[str]], operation: str, *arguments: str) -> Optional[str]:
        """Tries one change; returns its version, or an empty one if the door returns none, if it was acknowledged."""
        change = self.group.begin(effects)
        try:
            change.version = getattr(self.subject.door, operation)(*arguments)
        except Refused as refused:
            self.failed(refused)
            return None
        finally:
            self.subject.between()
        change.acknowledge()
        return change.version or ""

    def failed(self, refused: Refused) -> None:
        self.errors_count += 1
        if not self.subject.is_storage_error(refused):
            raise Wrong(f"not an error of the storage ({refused.code}): {refused}")

    def work(self) -> Callable[[], None]:
        """Does one thing of each sort, and returns what must work when the fault is gone."""
        prefix = self.group.prefix
        a, b, c = f"{prefix}/a.md", f"{prefix}/b.md", f"{prefix}/c.md"
        first, second, third = self.text(), self.text(), self.text()
        leak = self.change({a: first}, "create", a, first)
        is_clean = leak is not None and self.change({a: second}, "update", a, first, second) is not None
        if self.change({b: third}, "create", b, third) is not None:
            if self.change({b: None, c: third}, "move", b, c) is not None:
                self.change({c: None}, "delete", c)
        if not (leak and is_clean and "redact" in self.subject.door.operations):
            return lambda: None
        return self.redaction(first.split()[0], leak)

    def redaction(self, token: str, version: str) -> Callable[[], None]:
        redaction = self.group.ledger.begin_redaction(self.group.store, token, [version])

        def again() -> None:
            if redaction.acknowledged == float("inf"):
                self.subject.door.redact((version,))
                redaction.acknowledge()

        try:
            again()
        except Refused as refused:
            self.failed(refused)
        self.subject.between()
        return again


class Subject:
    """A client that works while calls fail."""

    store = "notes"
    door: Door

    def __init__(self, trial: Trial) -> None:
        self.trial = trial

    def is_storage_error(self, refused: Refused) -> bool:
        raise NotImplementedError

    def between(self) -> None:
        """Is called between the changes, while the fault is armed."""

    def close(self) -> None:
        self.door.close()


class OneServer:
    """A server that is never restarted: its death is a failure."""

    def __init__(self, quipu: Quipu) -> None:
        self.server = Server(quipu)

    def call(self, method: str, path: str, body: Optional[dict] = None) -> dict:
        try:
            return self.server.call(method, path, body)
        except Down as down:
            raise Wrong(f"the server hung up: {down}; {self.server.complaints}") from None


class Serving(Subject):
    """A server, which is also read from, and asked for its health."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self.one = OneServer(trial.quipu)
        stores = self.one.call("GET", "/v1/memory_stores")["data"]
        self.id = next(store["id"] for store in stores if store["name"] == self.store)
        self.door = Rest(self.one, self.id)
        self.known = f"known {trial.chance.getrandbits(64):016x}"
        self.base = f"/v1/memory_stores/{self.id}/memories"
        self.known_id = self.one.call("POST", self.base, {"path": "/known.md", "content": self.known})["id"]

    def is_storage_error(self, refused: Refused) -> bool:
        return refused.code >= STORAGE_STATUS_MIN

    def between(self) -> None:
        status, answer = self.one.server.answer("GET", "/healthz")
        if status != 200:
            raise Wrong(f"/healthz: {status} {answer}")
        self.read(f"{self.base}/{self.known_id}?view=full", lambda answer: answer["content"] == self.known)
        self.read(f"{self.base}?path_prefix=/&depth=1", lambda answer: names_known(answer["data"]))
        word = self.known.split()[1]
        self.read(f"/quipu/search?query={word}", lambda answer: names_known(answer["results"]))

    def read(self, path: str, is_right: Callable[[dict], bool]) -> None:
        try:
            answer = self.one.call("GET", path)
        except Refused as refused:
            if not self.is_storage_error(refused):
                raise Wrong(f"a read lies: {refused}") from None
        else:
            if not is_right(answer):
                raise Wrong(f"GET {path} answers {answer}")

    def close(self) -> None:
        self.one.server.stop()
        assert "panicked" not in self.one.server.complaints, self.one.server.complaints


def names_known(listed: list[dict]) -> bool:
    return "/known.md" in [one.get("path") for one in listed]


class Speaking(Subject):
    """`quipu mcp`, or `quipu tool`."""

    def __init__(self, trial: Trial, door: Door) -> None:
        super().__init__(trial)
        self.door, self.store = door, door.store
        door.create("/warm.md", "so that the program runs before the first fault\n")
        door.delete("/warm.md")

    def is_storage_error(self, refused: Refused) -> bool:
        # These doors tell no code. What they say of a memory that is there must not be that it is not.
        return not any(lie in str(refused) for lie in ("no memory", "does not exist", "already"))


class Commanding(Subject):
    """Commands, each a process that begins with the fault."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self.door = Commands(trial.quipu, self.store, trial.work)

    def is_storage_error(self, refused: Refused) -> bool:
        return is_honest(refused)


def is_honest(refused: Refused) -> bool:
    """Returns whether a command has reported that the disk failed."""
    return refused.code == STORAGE_EXIT_CODE or "the settings file" in str(refused)


class Trial:
    """One data directory with one subject, and the faults that it goes through."""

    def __init__(self, work: Path, shim: Path, chance: random.Random) -> None:
        self.work, self.chance = work, chance
        self.data = work / "data"
        self.control = Control(work / "control")
        self.plain = Quipu(self.data, patience_seconds=PATIENCE_SECONDS)
        self.another = Quipu(self.data, patience_seconds=LOCK_PATIENCE_SECONDS)
        self.quipu = Quipu(self.data, self.control.variables(shim, self.data), PATIENCE_SECONDS)
        self.ledger = Ledger(iter(range(1_000_000_000)).__next__)
        self.plain.run("store", "create", "notes")
        self.plain.run("store", "create", "memories")
        self.outcomes: Counter[str] = Counter()

    def calls(self, subject: Subject) -> dict[str, int]:
        """Returns how many calls of each kind a round makes without a fault."""
        self.control.arm(Fault("open", 0))
        self.control.disarm()
        Round(subject, None, "counting").work()
        return self.control.counts()

    def go_through(self, subject: Subject, fault: Fault, name: str) -> list[str]:
        """Returns what was wrong."""
        round = Round(subject, fault, name)
        self.control.arm(fault)
        again: Callable[[], None] = lambda: None
        found = []
        try:
            again = round.work()
        except WRONG as wrong:
            found.append(str(wrong))
        hits = self.control.failures_count()
        self.control.disarm()
        self.outcomes["missed" if hits == 0 else "refused" if round.errors_count else "survived"] += 1
        try:
            self.another.run("put", f"/{name}/other.md", "--store", subject.store, text="from another process\n")
            self.another.run("rm", f"/{name}/other.md", "--store", subject.store)
            again()
            text = round.text()
            if round.change({f"/{name}/d.md": text}, "create", f"/{name}/d.md", text) is None:
                found.append("after the fault was gone it goes on failing")
            found += self.problems()
        except (*WRONG, Refused) as wrong:
            found.append(f"after the fault was gone: {wrong}")
        return [f"{type(subject).__name__} with {fault}: {problem}" for problem in found]

    def problems(self) -> list[str]:
        found = check_problems(self.plain)
        found += compare(self.ledger, contents_of(self.plain, self.work)).problems
        return found + files_with(self.ledger.erased_tokens(), self.data)


def faults(calls: dict[str, int], count: Optional[int], chance: random.Random) -> Iterator[Fault]:
    """Returns `count` faults of each kind and error, spread over all calls of a round; without it, all of them."""
    for kind in (kind for kind in KINDS if calls[kind] > 0):
        # SQLite takes a lock that cannot be had for one that somebody else holds, and waits, for up to a minute.
        durations = (False,) if kind == "fcntl" else (False, True)
        for error in ("EIO", "ENOSPC") if kind in ("write", "truncate", "open") else ("EIO",):
            if count is None:
                yield from (Fault(kind, nth + 1, error, one) for nth in range(calls[kind]) for one in durations)
                continue
            part = calls[kind] / count
            for nth in sorted({int(chance.uniform(index * part, (index + 1) * part)) for index in range(count)}):
                yield Fault(kind, min(nth + 1, calls[kind]), error, chance.choice(durations))


# Commands beside those that change memories, and what they must print if they end well.
OTHERS: list[tuple[list[str], str]] = [
    (["search", "--all", "steady"], "/steady.md"),
    (["cat", "/steady.md", "--store", "notes"], "steady text"),
    (["ls", "--store", "notes"], "/steady.md"),
    (["log", "/steady.md", "--store", "notes"], "memver_"),
    (["check"], ""),
    (["prune"], ""),
    (["backup", "BACKUP"], ""),
    (["key", "create", "--role", "read_only"], "sk-quipu-"),
    (["store", "create", "STORE"], "memstore_"),
    (["serve"], ""),
]


class Others:
    """Other commands and the start of a server, each with a fault from its first call on."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        trial.plain.run("put", "/steady.md", "--store", "notes", text="steady text\n")
        self._next = iter(range(1_000_000)).__next__

    def run(self, command: list[str], expected: str) -> None:
        """Runs one; fails if what it prints is wrong."""
        if command == ["serve"]:
            server = Server(self.trial.quipu)
            if server.answer("GET", "/healthz")[0] != 200:
                raise Wrong("the server is not healthy")
            server.stop()
            return
        number = self._next()
        names = {"BACKUP": str(self.trial.work / f"backup-{number}.db"), "STORE": f"store {number}"}
        printed = self.trial.quipu.run(*[names.get(word, word) for word in command])
        if expected not in printed:
            raise Wrong(f"`quipu {' '.join(command)}` printed {printed!r}")

    def calls(self, command: list[str], expected: str) -> dict[str, int]:
        self.trial.control.arm(Fault("open", 0))
        self.trial.control.disarm()
        self.run(command, expected)
        return self.trial.control.counts()

    def go_through(self, command: list[str], expected: str, fault: Fault) -> list[str]:
        """Returns what was wrong."""
        trial = self.trial
        trial.control.arm(fault)
        found, outcome = [], "survived"
        try:
            self.run(command, expected)
        except Refused as refused:
            outcome = "refused"
            # What cannot be read is a problem that `check` has found.
            is_right = is_honest(refused) or (command == ["check"] and refused.code == CHECK_EXIT_CODE)
            found += [] if is_right else [f"exit code {refused.code}: {refused}"]
        except WRONG as wrong:
            found.append(str(wrong))
        hits = trial.control.failures_count()
        trial.control.disarm()
        trial.outcomes["missed" if hits == 0 else outcome] += 1
        found += trial.problems()
        return [f"`quipu {command[0]}` with {fault}: {problem}" for problem in found]


class Sweep:
    """All subjects and all faults. After a failure the subject starts over, with other data."""

    subjects: dict[str, Callable[[Trial], Subject]] = {
        "server": Serving,
        "mcp": lambda trial: Speaking(trial, Mcp(trial.quipu, "notes")),
        "tool": lambda trial: Speaking(trial, Tool(trial.quipu, "memories")),
        "commands": Commanding,
    }

    def __init__(self, seed: str, count: Optional[int], work: Path, shim: Path) -> None:
        self.chance = random.Random(f"{seed} eio")
        self.count, self.work, self.shim = count, work, shim
        self.outcomes: Counter[str] = Counter()
        self.failures: list[str] = []
        self._trials_count = 0

    def trial(self) -> Trial:
        self._trials_count += 1
        folder = self.work / f"trial-{self._trials_count}"
        folder.mkdir()
        trial = Trial(folder, self.shim, self.chance)
        trial.outcomes = self.outcomes
        return trial

    def note(self, trial: Trial, problems: list[str]) -> bool:
        """Records what is wrong; returns whether anything was wrong."""
        self.failures += [f"{problem} (in {trial.data})" for problem in problems]
        return bool(problems)

    def go_through_subjects(self) -> None:
        for name, subject_of in self.subjects.items():
            trial = self.trial()
            subject = subject_of(trial)
            for index, fault in enumerate(faults(trial.calls(subject), self.count, self.chance)):
                if self.note(trial, trial.go_through(subject, fault, f"round-{index}")):
                    trial.quipu.running.kill_all()
                    trial = self.trial()
                    subject = subject_of(trial)
            subject.close()

    def go_through_others(self) -> None:
        others = Others(self.trial())
        for command, expected in OTHERS:
            for fault in faults(others.calls(command, expected), self.count, self.chance):
                if self.note(others.trial, others.go_through(command, expected, fault)):
                    others.trial.quipu.running.kill_all()
                    others = Others(self.trial())


def run(seed: str, count: Optional[int], work: Path, shim: Path) -> str:
    """Lets `count` calls of each kind fail for each subject, or all of them, and returns a summary line."""
    sweep = Sweep(seed, count, work, shim)
    sweep.go_through_subjects()
    sweep.go_through_others()
    assert not sweep.failures, "\n".join(sweep.failures)
    # Faults that hit nothing would prove nothing.
    assert sweep.outcomes["refused"] > sweep.outcomes["missed"], sweep.outcomes
    figures = ", ".join(f"{count} {outcome}" for outcome, count in sorted(sweep.outcomes.items()))
    total = sum(sweep.outcomes.values())
    return f"eio: {total} faults ({figures}): nothing acknowledged is lost, nobody crashed or hung"
