"""What all tests of the Python adapter need: the binary, and a data directory of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest


class Quipu:
    """The built binary on a data directory."""

    def __init__(self, binary: str, data: Path) -> None:
        self.binary = binary
        self.data = str(data)

    def run(self, *arguments: str) -> str:
        command = [self.binary, "--data", self.data, *arguments]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run("--json", *arguments))


@pytest.fixture
def quipu(tmp_path: Path) -> Quipu:
    return Quipu(os.environ["QUIPU_BINARY"], tmp_path / "data")
