"""Ctrl-C during a long call returns within a second, and other threads go on meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import consort


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Shells have what they start in the background ignore SIGINT; Python then hears none."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def long_compare() -> object:
    return consort.compare("power8", "mix:spec2006/80?seed=1", ["random", "workover"], runs=200)


def long_study() -> object:
    return consort.reproduce("S1")


class Slow(consort.Policy):
    quantum_ms = 1

    def decide(self, view: consort.View) -> None:
        return None


def long_python() -> object:
    return consort.compare("power8", "mix:spec2006/20?seed=1", [Slow], runs=50, alone_s=600.0)


@pytest.mark.parametrize("call", [long_compare, long_study, long_python])
def test_ctrl_c_returns_within_a_second(call: Callable[[], object]) -> None:
    sent: list[float] = []

    def interrupt() -> None:
        time.sleep(1.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        call()
    assert time.monotonic() - sent[0] < 1.0


def test_the_interpreter_lock_is_released() -> None:
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    consort.compare("power8", "mix:spec2006/40?seed=1", ["random"], runs=2, alone_s=10.0, jobs=1)
    seconds = time.monotonic() - start
    done.set()
    thread.join()
    assert len(ticks) > 10 * seconds


def test_what_was_interrupted_can_be_called_again() -> None:
    before = consort.simulate("bulldozer-6282se", "2*mcf", alone_s=1.0).stp
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        long_compare()
    assert consort.simulate("bulldozer-6282se", "2*mcf", alone_s=1.0).stp == before
