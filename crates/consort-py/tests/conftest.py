"""Fixtures of all tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

MACHINE = "bulldozer-6282se"
WORKLOAD = "2*hmmer+2*povray"


@pytest.fixture(scope="session")
def command_line() -> Callable[..., str]:
    """Runs the command line `consort` and gives what it prints."""
    found = os.environ.get("CONSORT") or shutil.which("consort")
    if not found:
        pytest.skip("no command line: set CONSORT to its path")

    def run(*arguments: str | Path) -> str:
        done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
