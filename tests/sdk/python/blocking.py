"""The asynchronous client behind the interface of the synchronous one, so that one test runs on both."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from anyio.from_thread import BlockingPortal


class Blocking:
    """An `AsyncAnthropic` or one of its resources; calls wait for their results."""

    def __init__(self, portal: BlockingPortal, target: Any) -> None:
        self._portal = portal
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            is_resource = type(value).__module__.startswith("anthropic.resources")
            return Blocking(self._portal, value) if is_resource else value

        def call(*arguments: Any, **options: Any) -> Any:
            result = value(*arguments, **options)
            if hasattr(result, "__aiter__"):
                return _Pages(self._portal, result)
            if inspect.isawaitable(result):
                result = _wait(self._portal, result)
            if hasattr(result, "__aiter__"):
                return _Stream(self._portal, result)
            # The current SDK's raw responses are parsed asynchronously.
            is_raw = inspect.iscoroutinefunction(getattr(result, "parse", None))
            return Blocking(self._portal, result) if is_raw else result

        return call


class _Pages:
    """What a call of `list` returns: the first page, and all items when it is iterated over."""

    def __init__(self, portal: BlockingPortal, pages: Any) -> None:
        self._portal = portal
        self._pages = pages

    def __getattr__(self, name: str) -> Any:
        return getattr(_wait(self._portal, self._pages), name)

    def __iter__(self) -> Iterator[Any]:
        async def collect() -> list[Any]:
            return [item async for item in self._pages]

        return iter(self._portal.call(collect))


class _Stream:
    """A stream, one event at a time."""

    def __init__(self, portal: BlockingPortal, stream: Any) -> None:
        self._portal = portal
        self._events = aiter(stream)

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        try:
            return self._portal.call(self._events.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None


def _wait(portal: BlockingPortal, awaitable: Any) -> Any:
    async def run() -> Any:
        return await awaitable

    return portal.call(run)
