"""Fixtures of the Python adapter's tests: a real Quipu on a data directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from quipu_live import Quipu


@pytest.fixture
def quipu(tmp_path: Path) -> Quipu:
    return Quipu(tmp_path / "data")


@pytest.fixture
def server(quipu: Quipu):
    with quipu.serve() as server:
        yield server
