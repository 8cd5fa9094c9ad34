"""The table of routes in docs/rest.md is complete for the installed SDK, and says what the server does."""

from __future__ import annotations

import inspect
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from anthropic import Anthropic
from anthropic._resource import SyncAPIResource

from conftest import IS_CURRENT
from quipu_live import Server

pytestmark = pytest.mark.skipif(not IS_CURRENT, reason="the table is about the current SDK")

DOCUMENT = Path(__file__).parents[3] / "docs" / "rest.md"

#: What the SDK calls a request, and its method.
METHODS = {"get_api_list": "GET", "get": "GET", "post": "POST", "put": "PUT", "patch": "PATCH", "delete": "DELETE"}


class Row(NamedTuple):
    method: str
    route: str
    state: str


def section() -> list[list[str]]:
    """Returns the cells of the rows of the table."""
    text = DOCUMENT.read_text(encoding="utf-8")
    section = text.split("## Coverage of the SDK\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def documented() -> list[Row]:
    """Returns the rows that are about one method."""
    cells = [cells for cells in section() if re.fullmatch(r"`[a-z_.]+`", cells[0])]
    return [Row(name.strip("`"), route.strip("`"), re.split("[:;]", state)[0]) for name, route, state in cells]


def methods(prefix: str, resource: Any) -> Iterator[tuple[str, Any]]:
    """Yields all methods below a resource of the SDK, with their names."""
    for name in dir(type(resource)):
        if name.startswith(("_", "with_")):
            continue
        member = inspect.getattr_static(type(resource), name)
        if isinstance(member, (cached_property, property)):
            below = getattr(resource, name)
            if isinstance(below, SyncAPIResource):
                yield from methods(f"{prefix}{name}.", below)
        elif inspect.isfunction(member) and isinstance(resource, SyncAPIResource):
            yield prefix + name, member


def of_sdk() -> dict[str, Any]:
    client = Anthropic(api_key="none")
    stable = {name: it for name, it in methods("", client) if not name.startswith("beta.")}
    return {**stable, **dict(methods("", client.beta))}


def route(method: Any) -> str:
    source = inspect.getsource(method)
    verb = re.findall(r"self\._(get_api_list|get|post|put|patch|delete)\(", source)
    path = re.findall(r"\"(/v1/[^\"?]*)", source)
    assert len(set(verb)) == 1 and len(set(path)) == 1, source
    return f"{METHODS[verb[0]]} {path[0]}"


def unnamed(route: str) -> str:
    return re.sub(r"\{[a-z_]+\}", "{}", route)


def test_every_method_about_memory_and_sessions_has_a_row_with_its_route() -> None:
    groups = ("memory_stores.", "agents.", "environments.", "sessions.")
    expected = {name: unnamed(route(it)) for name, it in of_sdk().items() if name.startswith(groups)}
    rows = documented()
    assert {row.method: unnamed(row.route) for row in rows} == expected
    assert len(rows) == len(expected)


def test_every_other_resource_is_named() -> None:
    own = {row.method.split(".")[0] for row in documented()}
    others = {name.split(".")[0] for name in of_sdk()} - own
    cells = [cells[0] for cells in section() if cells[0].startswith("all ")]
    assert set(re.findall(r"`([a-z_]+)`", " ".join(cells))) == others


@pytest.mark.parametrize("row", documented(), ids=lambda row: row.method)
def test_the_server_does_what_the_row_says(server: Server, row: Row) -> None:
    assert row.state in ("served", "recorded", "passed on")
    method, path = row.route.split(" ")
    ids = {"store": "memstore_01", "session": "sesn_01", "memory": "mem_01", "version": "memver_01"}
    path = re.sub(r"\{([a-z]+)\}", lambda it: ids.get(it[1], f"{it[1]}_01"), path)
    request = urllib.request.Request(server.url + path, method=method, headers={"x-api-key": server.key})
    request.data = b"{}" if method == "POST" else None
    try:
        with urllib.request.urlopen(request) as answer:
            body = answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            body = error.read().decode()
            assert error.code in (400, 404), body
    assert ("[upstream] base_url" in body) == (row.state == "passed on"), body
