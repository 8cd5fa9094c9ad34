"""The quick start of the documentation runs against a fresh server and says what it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from quipu_live import Quipu

SCRIPT = Path(__file__).parents[3] / "docs" / "examples" / "quickstart.py"

TRANSCRIPT = """\
store     memstore_…
listed    /black.md
listed    /green.md
listed    /house/
conflict  memory_precondition_failed_error
updated   /green.md: 75 C, 90 s
version   modified by api_actor: 75 C, 90 s
version   modified by api_actor: 75 C, 2 min
version   created by api_actor: 80 C, 2 min
redacted  created, path None, text None
archived  Tea notes: 2 memories stay readable
"""


def test_the_quick_start(tmp_path: Path) -> None:
    with Quipu(tmp_path).serve() as server:
        ran = subprocess.run(
            [sys.executable, str(SCRIPT)],
            env={**os.environ, "QUIPU_URL": server.url, "QUIPU_API_KEY": server.key},
            capture_output=True, encoding="utf-8", timeout=120,
        )
    assert ran.returncode == 0, ran.stderr
    assert re.sub(r"memstore_\w+", "memstore_…", ran.stdout) == TRANSCRIPT
