"""The SDK's own worker, which mirrors the stores of a session as folders on its host."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic

from conftest import IS_CURRENT
from quipu_live import Quipu

if not IS_CURRENT:
    pytest.skip("this SDK has no worker sync", allow_module_level=True)

from anthropic.lib.tools._memories import SessionMemoryError, SessionMemoryStores


class Fixture:
    """A server whose mount root is a folder of the test, used directly and by a worker."""

    def __init__(self, folder: Path, server: Any) -> None:
        self.folder = folder
        self.server = server
        self.client = Anthropic(base_url=server.url, api_key=server.key, _strict_response_validation=True)
        self.stores = self.client.beta.memory_stores
        self.memories = self.stores.memories

    def store(self, name: str, **texts: str) -> str:
        store = self.stores.create(name=name).id
        for path, text in texts.items():
            self.memories.create(store, path=f"/{path}.md", content=text)
        return store

    def texts(self, store: str) -> dict[str, str]:
        return {each.path: each.content for each in self.memories.list(store, view="full")}

    def change(self, store: str, path: str, text: str) -> None:
        memory = next(each for each in self.memories.list(store) if each.path == path)
        self.memories.update(memory.id, memory_store_id=store, content=text)

    def forget(self, store: str, path: str) -> None:
        memory = next(each for each in self.memories.list(store) if each.path == path)
        self.memories.delete(memory.id, memory_store_id=store)

    def run(self, work: Callable[[Worker], Coroutine[Any, Any, None]], **access: str) -> None:
        """Runs a worker on a session with these stores: `run(work, memstore_…="read_write")`."""
        resources = [
            {"type": "memory_store", "memory_store_id": store, "access": mode} for store, mode in access.items()
        ]
        raw = self.client.beta.sessions.with_raw_response.create(
            agent="agent_tea", environment_id="env_tea", resources=resources
        )
        session, token = raw.parse(), raw.headers["quipu-session-token"]

        async def main() -> None:
            options = {"base_url": self.server.url, "auth_token": token, "_strict_response_validation": True}
            async with AsyncAnthropic(api_key=None, **options) as own:
                worker = Worker(own, self.folder, session.id)
                await worker.synced.download(await own.beta.sessions.retrieve(session.id))
                try:
                    await work(worker)
                finally:
                    await worker.synced.dispose()
                assert not any(root.exists() for root in worker.synced.roots)

        asyncio.run(main())


class Worker:
    """A worker in the middle of a session."""

    def __init__(self, client: AsyncAnthropic, folder: Path, session_id: str) -> None:
        self.session_id = session_id
        self.synced = SessionMemoryStores(client, workdir=folder, sync_interval=5)
        self.mnt = folder / "mnt"

    async def sync(self) -> None:
        """Syncs now, as if the interval had passed."""
        self.synced._last_sync -= 60
        await self.synced.sync_if_due()


@pytest.fixture
def fixture(tmp_path: Path):
    (tmp_path / "mnt").mkdir()
    with Quipu(tmp_path / "data").serve(mount_root=str(tmp_path / "mnt")) as server:
        fixture = Fixture(tmp_path, server)
        yield fixture
        fixture.client.close()


@pytest.fixture(autouse=True)
def warnings(caplog: pytest.LogCaptureFixture):
    """Returns the warnings of the worker."""
    return lambda: [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_download_many_files(fixture, warnings) -> None:
    store = fixture.store("Tea Notes")
    texts = {f"/{n % 5}/{n:02}.md": f"grün {n}\r\n" for n in range(45)} | {"/empty": ""}
    for path, text in texts.items():
        fixture.memories.create(store, path=path, content=text)

    async def work(worker: Worker) -> None:
        root = worker.mnt / "tea-notes"
        found = {f"/{file.relative_to(root)}": file.read_bytes() for file in root.rglob("*") if file.is_file()}
        marker = found.pop("/.anthropic-memory-store").decode()
        assert marker == f"version 1\n{store}"
        assert found == {path: text.encode() for path, text in texts.items()}
        await worker.sync()
        await worker.synced.finish()

    fixture.run(work, **{store: "read_write"})
    assert warnings() == []
    assert fixture.texts(store) == texts
    assert len(list(fixture.stores.memory_versions.list(store))) == len(texts), "nothing was written"


def test_edits_and_new_files_are_uploaded_as_the_session(fixture, warnings) -> None:
    store = fixture.store("tea", green="80 C")

    async def work(worker: Worker) -> None:
        root = worker.mnt / "tea"
        (root / "green.md").write_text("75 C")
        (root / "deep" / "er").mkdir(parents=True)
        (root / "deep" / "er" / "new.md").write_text("new")
        await worker.sync()
        assert fixture.texts(store) == {"/green.md": "75 C", "/deep/er/new.md": "new"}
        versions = list(fixture.stores.memory_versions.list(store, session_id=worker.session_id))
        assert sorted((each.operation, each.path) for each in versions) == [
            ("created", "/deep/er/new.md"), ("modified", "/green.md"),
        ]
        assert {each.created_by.type for each in versions} == {"session_actor"}
        await worker.sync()
        assert len(list(fixture.stores.memory_versions.list(store))) == 3, "an idle sync writes nothing"

    fixture.run(work, **{store: "read_write"})
    assert warnings() == []


def test_remote_changes_are_downloaded(fixture, warnings) -> None:
    store = fixture.store("tea", green="80 C", black="95 C")

    async def work(worker: Worker) -> None:
        root = worker.mnt / "tea"
        fixture.change(store, "/green.md", "75 C")
        fixture.forget(store, "/black.md")
        fixture.memories.create(store, path="/white.md", content="70 C")
        await worker.sync()
        assert (root / "green.md").read_text() == "75 C"
        assert not (root / "black.md").exists()
        assert (root / "white.md").read_text() == "70 C"

    fixture.run(work, **{store: "read_write"})
    assert warnings() == []


def test_the_store_wins_a_conflict(fixture, warnings) -> None:
    store = fixture.store("tea", green="80 C")

    async def work(worker: Worker) -> None:
        file = worker.mnt / "tea" / "green.md"
        file.write_text("mine")
        fixture.change(store, "/green.md", "theirs")
        await worker.sync()
        assert file.read_text() == "theirs"

    fixture.run(work, **{store: "read_write"})
    assert fixture.texts(store) == {"/green.md": "theirs"}
    assert len(warnings()) == 1 and "changed both locally and remotely" in warnings()[0]


def test_a_race_is_decided_by_the_precondition(fixture, warnings) -> None:
    """The store changes after the worker has listed it and before it uploads."""
    store = fixture.store("tea", green="80 C")

    async def work(worker: Worker) -> None:
        (worker.mnt / "tea" / "green.md").write_text("mine")
        settle = worker.synced._settle_sent

        def settle_late(*arguments: Any) -> None:
            settle(*arguments)
            fixture.change(store, "/green.md", "theirs")

        worker.synced._settle_sent = settle_late
        await worker.sync()
        worker.synced._settle_sent = settle
        assert fixture.texts(store) == {"/green.md": "theirs"}
        await worker.sync()
        assert (worker.mnt / "tea" / "green.md").read_text() == "theirs"

    fixture.run(work, **{store: "read_write"})
    assert "the upload was refused" in warnings()[0]


def test_a_deleted_file_is_deleted_at_the_end(fixture, warnings) -> None:
    store = fixture.store("tea", green="80 C", black="95 C")

    async def work(worker: Worker) -> None:
        (worker.mnt / "tea" / "green.md").unlink()
        await worker.sync()
        assert len(fixture.texts(store)) == 2, "the worker waits before it deletes"
        await worker.synced.finish()
        assert fixture.texts(store) == {"/black.md": "95 C"}
        deleted = list(fixture.stores.memory_versions.list(store, operation="deleted"))
        assert [(each.path, each.created_by.session_id) for each in deleted] == [("/green.md", worker.session_id)]

    fixture.run(work, **{store: "read_write"})
    assert warnings() == []


def test_deleting_a_file_that_changed_remotely_restores_it(fixture, warnings) -> None:
    store = fixture.store("tea", green="80 C", black="95 C")

    async def work(worker: Worker) -> None:
        file = worker.mnt / "tea" / "green.md"
        file.unlink()
        fixture.change(store, "/green.md", "theirs")
        await worker.synced.finish()
        assert file.read_text() == "theirs"

    fixture.run(work, **{store: "read_write"})
    assert fixture.texts(store)["/green.md"] == "theirs"
    assert "restoring the remote version" in warnings()[0]


def test_a_wiped_folder_is_downloaded_again(fixture) -> None:
    store = fixture.store("tea", green="80 C", black="95 C")

    async def work(worker: Worker) -> None:
        shutil.rmtree(worker.mnt / "tea")
        await worker.sync()
        assert (worker.mnt / "tea" / "green.md").read_text() == "80 C"

    fixture.run(work, **{store: "read_write"})
    assert len(fixture.texts(store)) == 2


def test_refused_files_stay_local_and_the_others_are_uploaded(fixture, warnings) -> None:
    store = fixture.store("tea", green="80 C")

    async def work(worker: Worker) -> None:
        root = worker.mnt / "tea"
        (root / "large.md").write_text("x" * 102_401)
        (root / "zero.md").write_bytes(b"a\0b")
        (root / "fine.md").write_text("fine")
        await worker.sync()
        assert fixture.texts(store) == {"/green.md": "80 C", "/fine.md": "fine"}
        assert len([each for each in warnings() if "rejected this memory file" in each]) == 2
        await worker.sync()
        assert len(warnings()) == 2, "it is not tried again"
        (root / "large.md").write_text("x" * 102_400)
        await worker.sync()
        assert len(fixture.texts(store)["/large.md"]) == 102_400

    fixture.run(work, **{store: "read_write"})


def test_a_flush_saves_what_an_aborted_session_has_written(fixture, warnings) -> None:
    store = fixture.store("tea", green="80 C")

    async def work(worker: Worker) -> None:
        for number in range(60):
            (worker.mnt / "tea" / f"{number}.md").write_text(f"{number}")
        (worker.mnt / "tea" / "green.md").unlink()
        await worker.synced.flush_writes()

    fixture.run(work, **{store: "read_write"})
    assert warnings() == []
    expected = {f"/{number}.md": f"{number}" for number in range(60)} | {"/green.md": "80 C"}
    assert fixture.texts(store) == expected, "a flush deletes nothing"


def test_a_read_only_store_is_downloaded_and_never_uploaded(fixture) -> None:
    writable, locked = fixture.store("own", a="1"), fixture.store("rules", law="obey", other="x")

    async def work(worker: Worker) -> None:
        root = worker.mnt / "rules"
        assert worker.synced.read_only_roots == [root]
        (root / "law.md").write_text("rebel")
        (root / "new.md").write_text("new")
        (root / "other.md").unlink()
        (worker.mnt / "own" / "b.md").write_text("2")
        await worker.sync()
        assert fixture.texts(writable) == {"/a.md": "1", "/b.md": "2"}
        fixture.change(locked, "/law.md", "obey more")
        await worker.sync()
        assert (root / "law.md").read_text() == "obey more"
        await worker.synced.flush_writes()
        await worker.synced.finish()
        # The server enforces it even if the worker does not.
        with pytest.raises(anthropic.PermissionDeniedError):
            client = worker.synced._client
            await client.beta.memory_stores.memories.create(locked, path="/new.md", content="new")

    fixture.run(work, **{writable: "read_write", locked: "read_only"})
    assert fixture.texts(locked) == {"/law.md": "obey more", "/other.md": "x"}
    assert not list(fixture.stores.memory_versions.list(locked, operation="deleted"))


def test_an_existing_folder_is_left_alone(fixture) -> None:
    store = fixture.store("tea", green="80 C")
    (fixture.folder / "mnt" / "tea").mkdir()

    async def work(worker: Worker) -> None:
        raise AssertionError("the download must fail")

    with pytest.raises(SessionMemoryError, match="already exists"):
        fixture.run(work, **{store: "read_write"})
