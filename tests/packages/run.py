"""Follows the README files of the clients in an empty project: runs their commands, then their code.

Python packages go into a fresh virtual environment. A scripted model stands in for the real one.

    python3 tests/packages/run.py target/packages
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "clients/python/tests"))

from scripted_model import ScriptedModel  # noqa: E402

TEXT = "Tea: green.\n"


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, check in [("python", python), ("typescript", typescript)]:
        place = folder / name
        place.mkdir(parents=True)
        check(place)
        print(f"{name}: the README's commands and code work")


def python(place: Path) -> None:
    client = checkout(place, "python")
    run(place, sys.executable, "-m", "venv", "venv")
    (place / "constraints.txt").write_text(pinned())
    environment = {
        **os.environ,
        "PATH": f"{place / 'venv/bin'}:{os.environ['PATH']}",
        # The README names no version of the SDK; the tests do.
        "PIP_CONSTRAINT": str(place / "constraints.txt"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    run(place, "bash", "-ec", block(client, "sh"), environment=environment)
    (place / "main.py").write_text(block(client, "python"))
    with_model(place, "venv/bin/python", "main.py")


def typescript(place: Path) -> None:
    client = checkout(place, "typescript")
    (place / "package.json").write_text('{"name": "an-app", "private": true, "type": "module"}\n')
    run(place, "bash", "-ec", block(client, "sh"))
    tools = ["@anthropic-ai/sdk@1.8.0", "typescript@5.9.3", "@types/node@20.19.25"]
    run(place, "npm", "install", "--silent", "--no-audit", "--no-fund", *tools)
    run(place, "node", "--eval", "import('quipu-memory').then(it => { if (!it.quipuMemory) throw it; })")
    (place / "main.ts").write_text(block(client, "ts"))
    run(place, "npx", "tsc", "--target", "es2022", "--lib", "es2023,esnext.disposable", "--module", "nodenext",
        "--skipLibCheck", "main.ts")
    with_model(place, "node", "main.js")


def checkout(place: Path, language: str) -> Path:
    """Returns a client in a copy of the checkout, which the README's commands call `quipu`."""
    client = place / "quipu/clients" / language
    leftovers = shutil.ignore_patterns("node_modules", "dist", "build", "*.egg-info", "*.tgz")
    shutil.copytree(ROOT / "clients" / language, client, ignore=leftovers)
    return client


def pinned() -> str:
    """Returns the version of the SDK that the tests of the client use."""
    lines = (ROOT / "tests/python-requirements.txt").read_text().splitlines()
    return "\n".join(line for line in lines if line.startswith("anthropic"))


def block(client: Path, language: str) -> str:
    """Returns the first block of a README in a language."""
    readme = (client / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", readme, re.DOTALL)
    assert found, f"{client} shows no {language}"
    return found[1]


def with_model(place: Path, *command: str) -> None:
    """Runs a program whose model writes one memory, and checks that it was stored."""
    create = {"command": "create", "path": "/memories/tea.md", "file_text": TEXT}
    model = ScriptedModel([
        [{"type": "tool_use", "id": "toolu_1", "name": "memory", "input": create}],
        [{"type": "text", "text": "Noted."}],
    ])
    binary = Path(os.environ["QUIPU_BINARY"])
    environment = {
        **os.environ,
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
        "QUIPU_DATA": str(place / "data"),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-invalid",
    }
    run(place, *command, environment=environment)
    stored = subprocess.run(
        [binary, "--store", "memories", "cat", "tea.md"], capture_output=True, encoding="utf-8", env=environment
    )
    assert stored.stdout == TEXT, stored


def run(place: Path, *command: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed in {place}:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
