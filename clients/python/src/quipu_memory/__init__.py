"""Quipu as the memory tool of the Anthropic Python SDK.

A tool talks to a child process (`quipu tool`) or, given a URL, to a Quipu server. Commands are
forwarded as the model sent them, and answers are returned byte for byte.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Optional, Protocol
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import anyio.to_thread
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

__all__ = ["QuipuAsyncMemoryTool", "QuipuMemoryTool", "QuipuUnavailable"]


class QuipuUnavailable(Exception):
    """Quipu could not be started or reached, or has exited."""


class _Connection(Protocol):
    def send(self, command: object) -> Mapping[str, Any]: ...

    def close(self) -> None: ...


class _Child:
    """A `quipu tool` process: one command per line, one answer per line."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
            )
        except OSError as error:
            raise QuipuUnavailable(
                f"cannot start `{arguments[0]}` ({error}); install quipu or pass `binary=`"
            ) from error

    def send(self, command: object) -> Mapping[str, Any]:
        # A lone surrogate cannot be encoded as UTF-8, so everything is escaped.
        line = json.dumps(command, ensure_ascii=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
                answer = self._process.stdout.readline()
            except (OSError, ValueError) as error:
                raise QuipuUnavailable(f"`quipu tool` has exited: {error}") from error
        if not answer:
            raise QuipuUnavailable("`quipu tool` has exited; see its standard error")
        return json.loads(answer)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class _Server:
    """The memory tool of a Quipu server. Its writes belong to a session of its own."""

    def __init__(
        self, url: str, store: str, api_key: Optional[str], read_only: bool, title: Optional[str]
    ) -> None:
        self._url = url.rstrip("/")
        self._tool = f"/quipu/stores/{quote(store, safe='')}/tool"
        self._key = api_key
        self._title = title
        # Reading leaves no trace in the history, so it needs no session.
        self._is_reader = read_only
        self._session: Optional[Mapping[str, Any]] = None
        self._lock = threading.Lock()

    def send(self, command: object) -> Mapping[str, Any]:
        if self._is_reader:
            return self._post(f"{self._tool}?access=read_only", command, self._key)
        with self._lock:
            if self._session is None:
                options = {} if self._title is None else {"title": self._title}
                self._session = self._post(f"{self._tool}/session", options, self._key)
        return self._post(self._tool, command, self._session["token"] or self._key)

    def close(self) -> None:
        """Archives the session, if one was created, which revokes its token."""
        if self._session is None or self._session["token"] is None:
            return
        path = f"/v1/sessions/{self._session['session_id']}/archive"
        self._session = None
        try:
            self._post(path, {}, self._key)
        except QuipuUnavailable:
            # Everything is saved already, and without the server the token is useless anyway.
            pass

    def _post(self, path: str, body: object, key: Optional[str]) -> Mapping[str, Any]:
        headers = {"content-type": "application/json"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        # A lone surrogate cannot be encoded as UTF-8, so everything is escaped.
        request = Request(self._url + path, json.dumps(body, ensure_ascii=True).encode(), headers)
        try:
            with urlopen(request, timeout=60) as response:
                return json.load(response)
        except HTTPError as error:
            reason = error.read().decode(errors="replace")
            raise QuipuUnavailable(f"the Quipu server rejected the request: {error.code} {reason}") from error
        except OSError as error:
            raise QuipuUnavailable(f"the Quipu server did not answer: {error}") from error


def _connect(
    store: str,
    binary: str,
    data: Optional[str],
    read_only: bool,
    title: Optional[str],
    url: Optional[str],
    api_key: Optional[str],
) -> _Connection:
    if url is not None:
        return _Server(url, store, api_key, read_only, title)
    arguments = [binary, "tool", "--store", store]
    if data is not None:
        arguments += ["--data", data]
    if read_only:
        arguments.append("--read-only")
    if title is not None:
        arguments += ["--title", title]
    return _Child(arguments)


def _content(answer: Mapping[str, Any]) -> str:
    """Returns the content of an answer, or raises the error that the tool runner expects."""
    if answer["is_error"]:
        raise ToolError(answer["content"])
    return answer["content"]


class QuipuMemoryTool(BetaAbstractMemoryTool):
    """The memory tool on a Quipu store.

    `store` is created if missing. By default, `binary` runs as a child process on the data directory
    `data`. With `url`, and usually `api_key`, a Quipu server is used instead.
    """

    def __init__(
        self,
        *,
        store: str = "memories",
        binary: str = "quipu",
        data: Optional[str] = None,
        read_only: bool = False,
        title: Optional[str] = None,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._connection = _connect(store, binary, data, read_only, title, url, api_key)

    def call(self, input: object) -> str:
        return _content(self._connection.send(input))

    def execute(self, command: Any) -> str:
        return self.call(command.to_dict(mode="json"))

    # The runner uses `call`; these are the abstract methods of the base class.
    view = create = str_replace = insert = delete = rename = execute

    def close(self) -> None:
        """Stops the child process, or archives the session on the server."""
        self._connection.close()

    def __enter__(self) -> QuipuMemoryTool:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class QuipuAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same as :class:`QuipuMemoryTool`, for `AsyncAnthropic`."""

    def __init__(self, *, cache_control: Any = None, **options: Any) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = QuipuMemoryTool(**options)

    async def call(self, input: object) -> str:
        return await anyio.to_thread.run_sync(self._tool.call, input)

    async def execute(self, command: Any) -> str:
        return await self.call(command.to_dict(mode="json"))

    view = create = str_replace = insert = delete = rename = execute

    async def aclose(self) -> None:
        """Stops the child process, or archives the session on the server."""
        await anyio.to_thread.run_sync(self._tool.close)

    async def __aenter__(self) -> QuipuAsyncMemoryTool:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.aclose()
