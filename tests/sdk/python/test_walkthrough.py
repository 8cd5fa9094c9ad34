"""The walkthrough of the documentation runs against a fresh server and says what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import IS_CURRENT
from quipu_live import Quipu

SCRIPT = Path(__file__).parents[3] / "docs" / "examples" / "walkthrough.py"

TRANSCRIPT = """\
agent     Tea brewer, version 1
attached  Tea notes (read_write) at /mnt/memory/tea-notes
attached  House rules (read_only) at /mnt/memory/house-rules
event     user.message Green tea, please.
event     agent.message 80 C, two minutes.
event     session.status_idle
recorded  Green tea, please.
version   created /green.md by session_actor
changed   version 2; the session keeps 1: You brew tea.
archived  terminated
"""


@pytest.mark.skipif(not IS_CURRENT, reason="older SDKs cannot filter events by type")
def test_the_walkthrough(tmp_path: Path) -> None:
    with Quipu(tmp_path).serve() as server:
        ran = subprocess.run(
            [sys.executable, str(SCRIPT)],
            env={**os.environ, "QUIPU_URL": server.url, "QUIPU_API_KEY": server.key},
            capture_output=True, encoding="utf-8", timeout=120,
        )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == TRANSCRIPT
