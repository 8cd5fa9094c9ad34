"""What was requested and what was acknowledged, and whether a data directory agrees with it.

Everything has two times: when it was begun, and when it was acknowledged, if it was. A data directory is
compared with the ledger as of two times, too: what was acknowledged until `sure` must be there, and only what
was begun until `maybe` can be. What lies between may be there or not, but never by half.

Times are numbers of any clock: seconds, or, for a power loss, the length of the recording.
"""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional

Texts = dict[str, Optional[str]]  # what is at each path; None: nothing
TOKEN = re.compile(r"[0-9a-f]{32}")
FOREVER = float("inf")


@dataclass
class Attempt:
    """A request. Until it is acknowledged or refused, its outcome is unknown."""

    begun: float
    clock: Callable[[], float]
    acknowledged: float = FOREVER
    is_refused: bool = False

    def acknowledge(self) -> None:
        self.acknowledged = self.clock()

    def refuse(self) -> None:
        """Nothing of it may ever be there."""
        self.is_refused = True


@dataclass
class Change(Attempt):
    """A change of some texts of a group, in one transaction."""

    effects: Texts = field(default_factory=dict)
    version: Optional[str] = None
    is_observation: bool = False


@dataclass
class Redaction(Attempt):
    store: str = ""
    token: str = ""
    versions: tuple[str, ...] = ()


@dataclass
class Key:
    id: str
    secret: str
    creation: Attempt
    revocation: Optional[Attempt] = None


@dataclass
class StoreLife:
    creation: Attempt
    deletion: Optional[Attempt] = None


class Group:
    """The paths below a prefix of a store. Only one writer changes them, one change after the other."""

    def __init__(self, ledger: Ledger, store: str, prefix: str) -> None:
        self.ledger, self.store, self.prefix = ledger, store, prefix
        self.changes: list[Change] = []

    def begin(self, effects: Texts) -> Change:
        change = Change(self.ledger.clock(), self.ledger.clock, effects=effects)
        self.changes.append(change)
        return change

    def states(self, sure: float = FOREVER, maybe: float = FOREVER) -> list[Texts]:
        """Returns every state in which the group may be."""
        states: list[Texts] = [{}]
        for change in self.changes:
            if change.begun >= maybe:
                break
            if change.is_refused:
                continue
            applied = [present({**state, **change.effects}) for state in states]
            is_certain = change.acknowledged <= sure and change.acknowledged != FOREVER
            states = unique(applied if is_certain else states + applied)
        return states

    def observe(self, actual: Texts) -> None:
        """Accepts what is there as the state of the group; fails if it is impossible."""
        states = self.states()
        assert present(actual) in states, explain(self, actual, states)
        gone: Texts = {path: None for state in states for path in state}
        change = self.begin({**gone, **actual})
        change.is_observation = True
        change.acknowledge()


class Ledger:
    """All requests of all writers."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.lock = threading.Lock()
        self.groups: list[Group] = []
        self.redactions: list[Redaction] = []
        self.stores: dict[str, StoreLife] = {}
        self.keys: list[Key] = []

    def attempt(self) -> Attempt:
        return Attempt(self.clock(), self.clock)

    def group(self, store: str, prefix: str) -> Group:
        group = Group(self, store, prefix)
        with self.lock:
            self.groups.append(group)
        return group

    def begin_redaction(self, store: str, token: str, versions: Iterable[str]) -> Redaction:
        redaction = Redaction(self.clock(), self.clock, store=store, token=token, versions=tuple(versions))
        with self.lock:
            self.redactions.append(redaction)
        return redaction

    def erased_tokens(self, sure: float = FOREVER) -> set[str]:
        """Returns what must be in no byte of any file."""
        with self.lock:
            redacted = {one.token for one in self.redactions if is_certain(one, sure)}
            return redacted | {
                token
                for group in self.groups
                if is_certain(self.deletion(group.store), sure)
                for change in group.changes
                for text in change.effects.values()
                for token in TOKEN.findall(text or "")
            }

    def deletion(self, store: str) -> Optional[Attempt]:
        return self.stores[store].deletion if store in self.stores else None


def is_certain(attempt: Optional[Attempt], sure: float) -> bool:
    return attempt is not None and attempt.acknowledged != FOREVER and attempt.acknowledged <= sure


def is_possible(attempt: Optional[Attempt], maybe: float) -> bool:
    return attempt is not None and not attempt.is_refused and attempt.begun < maybe


def present(texts: Texts) -> Texts:
    return {path: text for path, text in texts.items() if text is not None}


def unique(states: list[Texts]) -> list[Texts]:
    return list({tuple(sorted(state.items())): state for state in states}.values())


def short(state: Texts) -> dict[str, str]:
    return {path: f"{(text or '')[:44]!r} ({len(text or '')} bytes)" for path, text in sorted(state.items())}


def explain(group: Group, actual: Texts, states: list[Texts]) -> str:
    allowed = "\n    or ".join(str(short(state)) for state in states)
    return f"{group.store}{group.prefix} holds\n       {short(present(actual))}\n  not {allowed}"


@dataclass
class StoreContents:
    """A store as it is: its versions by id, and what is at each path now."""

    versions: dict[str, dict[str, Any]]
    texts: Texts


@dataclass
class Contents:
    """Everything in a data directory."""

    stores: dict[str, StoreContents]
    keys: dict[str, dict[str, Any]]


@dataclass
class Comparison:
    """What was found wrong, and how much was right."""

    problems: list[str] = field(default_factory=list)
    changes_count: int = 0
    redactions_count: int = 0
    revocations_count: int = 0


def compare(ledger: Ledger, contents: Contents, sure: float = FOREVER, maybe: float = FOREVER) -> Comparison:
    """Compares a data directory with what was acknowledged."""
    result = Comparison()
    compare_stores(ledger, contents, sure, maybe, result)
    compare_keys(ledger, contents, sure, maybe, result)
    redacted = {
        version: redaction
        for redaction in ledger.redactions
        for version in redaction.versions
        if is_possible(redaction, maybe)
    }
    for group in ledger.groups:
        if group.store not in contents.stores:
            continue
        store = contents.stores[group.store]
        actual: Texts = {path: text for path, text in store.texts.items() if path.startswith(group.prefix + "/")}
        states = group.states(sure, maybe)
        if actual not in states:
            result.problems.append(explain(group, actual, states))
        for change in group.changes:
            if is_certain(change, sure) and not change.is_observation:
                compare_history(group, change, store, redacted, result)
    for redaction in ledger.redactions:
        if is_certain(redaction, sure) and redaction.store in contents.stores:
            compare_redaction(redaction, contents.stores[redaction.store], result)
    return result


def compare_history(
    group: Group, change: Change, store: StoreContents, redacted: dict[str, Redaction], result: Comparison
) -> None:
    """The version of an acknowledged change is in the history."""
    for path, text in change.effects.items():
        if text is None:
            continue
        if change.version is not None:
            version = store.versions.get(change.version)
            is_there = version is not None and (version["content"] == text or change.version in redacted)
        else:
            tokens = {redaction.token for redaction in redacted.values()}
            is_there = bool(tokens & set(TOKEN.findall(text))) or any(
                version["path"] == path and version["content"] == text for version in store.versions.values()
            )
        if is_there:
            result.changes_count += 1
        else:
            result.problems.append(f"the history lacks {change.version} of {group.store}{path}: {text[:60]!r}")


def compare_redaction(redaction: Redaction, store: StoreContents, result: Comparison) -> None:
    for id in redaction.versions:
        version = store.versions.get(id)
        if version is None or version["content"] is not None or version["redacted_at"] is None:
            result.problems.append(f"the redacted version {id} is {version}")
        else:
            result.redactions_count += 1


def compare_stores(
    ledger: Ledger, contents: Contents, sure: float, maybe: float, result: Comparison
) -> None:
    for name, life in ledger.stores.items():
        if is_certain(life.deletion, sure) and name in contents.stores:
            result.problems.append(f"the deleted store {name} is back")
        if is_certain(life.creation, sure) and name not in contents.stores:
            if not is_possible(life.deletion, maybe):
                result.problems.append(f"the store {name} is gone")


def compare_keys(ledger: Ledger, contents: Contents, sure: float, maybe: float, result: Comparison) -> None:
    for key in ledger.keys:
        found = contents.keys.get(key.id)
        if is_certain(key.creation, sure) and found is None:
            result.problems.append(f"the key {key.id} is gone")
        if found is None:
            continue
        if is_certain(key.revocation, sure):
            result.revocations_count += 1
            if found["revoked_at"] is None:
                result.problems.append(f"the revoked key {key.id} is valid again")
        elif found["revoked_at"] is not None and not is_possible(key.revocation, maybe):
            result.problems.append(f"the key {key.id} is revoked, but nobody asked for that")


def prove_sensitive(ledger: Ledger, contents: Contents) -> None:
    """Shows that the comparison can fail: a lost text, a lost version and a redaction undone are noticed."""
    group = next(group for group in ledger.groups if any(group.states()))
    store = contents.stores[group.store]
    path, text = next(iter(group.states()[0].items()))
    version = next(change.version for group in ledger.groups for change in group.changes if change.version)
    redacted = next(redaction.versions[0] for redaction in ledger.redactions if is_certain(redaction, FOREVER))
    damages: list[tuple[dict, str, Any]] = [(store.texts, path, None), (store.texts, path, f"{text} and more")]
    for store in contents.stores.values():
        damages += [(store.versions, id, None) for id in (version, redacted) if id in store.versions]
        if redacted in store.versions:
            damages.append((store.versions[redacted], "content", "back again"))
    for place, key, wrong in damages:
        right = place.pop(key)
        if wrong is not None:
            place[key] = wrong
        assert compare(ledger, contents).problems, f"nobody noticed that {key} is {wrong} and not {right}"
        place[key] = right


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
