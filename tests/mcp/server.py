"""Starts `quipu serve` for a test, on a data directory of its own."""

import contextlib
import os
import subprocess
import tempfile

BINARY = os.environ["QUIPU_BINARY"]
KEY = "a-key-for-tests-only"


@contextlib.contextmanager
def data_directory():
    with tempfile.TemporaryDirectory() as directory:
        yield os.path.join(directory, "data")


@contextlib.contextmanager
def served(data):
    """Yields the address of a server that knows KEY."""
    command = [BINARY, "--data", data, "serve", "--listen", "127.0.0.1:0", "--log-level", "error"]
    environment = {**os.environ, "QUIPU_ADMIN_KEY": KEY}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        yield line.removeprefix("listening on ").strip()
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0
