"""mypy --strict and stubtest accept the stubs, and these tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_stubs_say_what_is_there() -> None:
    run("mypy.stubtest", "consort")


def test_strict() -> None:
    run("mypy", "--strict", "-p", "consort")


def test_uses_of_it_are_checked(tmp_path: Path) -> None:
    good = tmp_path / "good.py"
    good.write_text(
        "import consort\n"
        "class Mine(consort.Policy):\n"
        "    def decide(self, view: consort.View) -> dict[int, consort.Place]:\n"
        "        return {thread.id: thread.last_pu for thread in view.threads}\n"
        "stp: list[float] = consort.compare('power8', 'mcf', [Mine, 'linux']).table()['stp']\n"
    )
    run("mypy", "--strict", str(good))
    bad = tmp_path / "bad.py"
    bad.write_text("import consort\nconsort.compare('power8', 'mcf', 'linux', runs='many')\n")
    done = subprocess.run([sys.executable, "-m", "mypy", str(bad)], capture_output=True, text=True)
    assert done.returncode == 1 and 'argument "runs"' in done.stdout.lower(), done.stdout
