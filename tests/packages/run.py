"""Installs the clients as users do and runs the code of their README files.

The wheel goes into a fresh virtual environment, what `npm pack` makes into a fresh project. A scripted
model stands in for the real one.

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
        print(f"{name}: installed, and the README's code runs")


def python(place: Path) -> None:
    client = ROOT / "clients/python"
    run(place, sys.executable, "-m", "venv", "venv")
    # The pip of the environment: not every system has one outside of it.
    run(place, "venv/bin/python", "-m", "pip", "wheel", *QUIET, "--no-deps", "--wheel-dir", ".", str(client))
    # Building leaves a folder beside the sources.
    shutil.rmtree(client / "build", ignore_errors=True)
    for leftover in client.glob("src/*.egg-info"):
        shutil.rmtree(leftover)
    (wheel,) = place.glob("*.whl")
    run(place, "venv/bin/python", "-m", "pip", "install", *QUIET, wheel.name, *pinned())
    (place / "main.py").write_text(code(client, "python"))
    with_model(place, "venv/bin/python", "main.py")


def typescript(place: Path) -> None:
    client = place / "client"
    shutil.copytree(ROOT / "clients/typescript", client, ignore=shutil.ignore_patterns("node_modules", "dist"))
    run(client, "npm", "install", *NPM)
    run(client, "npm", "pack", "--silent")
    (package,) = client.glob("*.tgz")
    project = place / "project"
    project.mkdir()
    (project / "package.json").write_text('{"name": "an-app", "private": true, "type": "module"}\n')
    tools = ["@anthropic-ai/sdk@1.8.0", "typescript@5.9.3", "@types/node@20.19.25"]
    run(project, "npm", "install", *NPM, str(package), *tools)
    run(project, "node", "--eval", "import('quipu-memory').then(it => { if (!it.quipuMemory) throw it; })")
    (project / "main.ts").write_text(code(ROOT / "clients/typescript", "ts"))
    run(project, "npx", "tsc", "--target", "es2022", "--lib", "es2023,esnext.disposable", "--module", "nodenext",
        "--skipLibCheck", "main.ts")
    with_model(project, "node", "main.js")


QUIET = ["--quiet", "--disable-pip-version-check"]
NPM = ["--silent", "--no-audit", "--no-fund"]


def pinned() -> list[str]:
    """Returns the SDK that the tests of the client use."""
    lines = (ROOT / "tests/python-requirements.txt").read_text().splitlines()
    return [line for line in lines if line.startswith("anthropic")]


def code(client: Path, language: str) -> str:
    """Returns the first block of a README in a language."""
    found = re.search(rf"```{language}\n(.*?)```", (client / "README.md").read_text(), re.DOTALL)
    assert found, f"{client} shows no {language}"
    return found[1]


def with_model(place: Path, *command: str) -> None:
    """Runs a program whose model writes one memory, and looks whether it is there."""
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
        "ANTHROPIC_API_KEY": "sk-of-nobody",
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
