"""A writer that does random things through one door, and the data directory as the binary shows it."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Optional

from doors import Door
from ledger import TOKEN, Change, Contents, Group, StoreContents, Texts, digest
from live import Down, Quipu, Refused

SLOTS_COUNT = 5
SIZES_BYTES = (40,) * 6 + (300, 3_000) * 2 + (20_000,)


class Writer:
    """Creates, changes, moves, deletes and redacts the memories of one group."""

    def __init__(self, door: Door, group: Group, chance: random.Random) -> None:
        self.door, self.group, self.chance = door, group, chance
        self.slots = [f"{group.prefix}/{slot}.md" for slot in range(SLOTS_COUNT)]
        self.versions: dict[str, list[str]] = {}
        self.unredactable: set[str] = set()
        self.changes_count = 0

    def text(self) -> str:
        """Returns a text with one word that no other text has."""
        token = f"{self.chance.getrandbits(128):032x}"
        size = self.chance.choice(SIZES_BYTES)
        words = (f"{self.chance.getrandbits(20):05x}" for _ in range(size // 6))
        return f"{token} {' '.join(words)}\n"

    def step(self) -> None:
        """Makes one change; `Down` means that nobody knows whether it was made."""
        (state,) = self.group.states()
        choices = self._choices(state)
        operation, arguments, effects = self.chance.choice(choices)
        if operation == "redact":
            self._redact(*arguments)
            return
        change = self.group.begin(effects)
        try:
            change.version = getattr(self.door, operation)(*arguments)
        except Refused:
            change.refuse()
            raise
        except Down:
            # There may be a version with this text whose id was never returned.
            self.unredactable.update(self._tokens(effects))
            raise
        self._acknowledge(change)

    def _acknowledge(self, change: Change) -> None:
        change.acknowledge()
        self.changes_count += 1
        for token in self._tokens(change.effects):
            if change.version is None:
                self.unredactable.add(token)
            else:
                self.versions.setdefault(token, []).append(change.version)

    def _tokens(self, effects: Texts) -> list[str]:
        return [token for text in effects.values() if text for token in TOKEN.findall(text)]

    def _choices(self, state: Texts) -> list[tuple[str, tuple, Texts]]:
        """Returns one example of everything that can be done now."""
        free = [path for path in self.slots if path not in state]
        taken = sorted(state)
        choices: list[tuple[str, tuple, Texts]] = []
        text = self.text()
        if free:
            path = self.chance.choice(free)
            choices += [("create", (path, text), {path: text})] * 2
        if taken:
            path = self.chance.choice(taken)
            old = state[path]
            for operation in {"update", "edit"} & set(self.door.operations):
                choices += [(operation, (path, old, text), {path: text})] * 3
            choices.append(("delete", (path,), {path: None}))
        if free and taken:
            path, target = self.chance.choice(taken), self.chance.choice(free)
            choices.append(("move", (path, target), {path: None, target: state[path]}))
        if "redact" in self.door.operations and (token := self._redactable(state)):
            choices += [("redact", (token,), {})] * 2
        return sorted(choices, key=lambda choice: choice[0])

    def _redactable(self, state: Texts) -> Optional[str]:
        current = set(self._tokens(state))
        tokens = [token for token in self.versions if token not in current | self.unredactable]
        return self.chance.choice(tokens) if tokens else None

    def _redact(self, token: str) -> None:
        versions = tuple(self.versions[token])
        redaction = self.group.ledger.begin_redaction(self.group.store, token, versions)
        # If it is interrupted, another attempt may come.
        self.door.redact(versions)
        redaction.acknowledge()
        del self.versions[token]

    def settle(self, quipu: Quipu) -> None:
        """After an interruption: looks at what is there, which must be one of the possible states."""
        known = {digest(text): text for change in self.group.changes for text in change.effects.values() if text}
        try:
            listed = quipu.json("ls", "-R", self.group.prefix, "--store", self.group.store)["data"]
        except Refused as refused:
            assert refused.code == 3, refused
            listed = []
        memories = [memory for memory in listed if memory["type"] == "memory"]
        self.group.observe({
            memory["path"]: known.get(memory["content_sha256"], f"unknown text {memory}") for memory in memories
        })


class Creator(Writer):
    """Only makes new memories, and not too many."""

    def step(self) -> None:
        super().step()
        time.sleep(0.3)

    def _choices(self, state: Texts) -> list[tuple[str, tuple, Texts]]:
        path, text = f"{self.group.prefix}/{len(self.group.changes)}.md", self.text()
        return [("create", (path, text), {path: text})]


def contents_of(quipu: Quipu, work: Path) -> Contents:
    """Reads everything in a data directory with the binary."""
    stores = {}
    for store in quipu.json("store", "list")["data"]:
        archive = work / "archive.jsonl"
        archive.unlink(missing_ok=True)
        quipu.run("export", str(archive), "--store", store["id"])
        with open(archive, encoding="utf-8") as lines:
            next(lines)
            versions = [json.loads(line) for line in lines]
        heads = {version["memory_id"]: version for version in versions}
        texts = {head["path"]: head["content"] for head in heads.values() if head["operation"] != "deleted"}
        stores[store["name"]] = StoreContents({version["id"]: version for version in versions}, texts)
    keys = {key["id"]: key for key in quipu.json("key", "list")["data"]}
    return Contents(stores, keys)


def check_problems(quipu: Quipu) -> list[str]:
    """Returns what `quipu check` finds."""
    try:
        quipu.run("check")
        return []
    except Refused as refused:
        return [f"`quipu check` ended with {refused.code}: {refused}"]


def files_with(tokens: set[str], directory: Path) -> list[str]:
    """Returns which files hold one of the tokens, or most of it.

    An index keeps only what a word does not share with the one before it, so up to eight signs may be missing
    at the beginning.
    """
    found = []
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            continue
        for token in tokens:
            if token[8:].encode() in content:
                part = "the erased" if token.encode() in content else "the end of the erased"
                found.append(f"{file.name} holds {part} {token}")
    return found
