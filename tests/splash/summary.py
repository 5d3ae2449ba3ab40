#!/usr/bin/env python3
"""Makes of measure.py's files what a program file and the page of measurements need.

    summary.py FOLDER THREADS..    a line of tab-separated figures per program and thread count
"""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, median, stdev

from programs import PROGRAMS

# A stretch between two barriers is serial when one thread executes more than this share of it.
SERIAL = 0.9

COUNTED = ["region_minstr", "all_minstr", "barriers", "spacing_minstr", "imbalance"]
COUNTED += ["serial_percent", "locks_per_minstr", "hold_instr", "locks", "conditions"]
COUNTED += ["whole_serial_percent", "persistence"]
TIMED = ["runs", "cpu_ms", "kernel_percent", "calls_per_ms", "futexes_per_ms", "faults_per_ms"]


class Counted:
    """What one run under QEMU executed in its region of interest."""

    def __init__(self, path: Path) -> None:
        self.all = 0
        self.threads: dict[int, int] = {}
        self.stretches: dict[int, list[int]] = defaultdict(list)
        self.rest: dict[int, int] = {}
        self.locks: dict[str, int] = defaultdict(int)
        self.held = 0
        self.waits = 0
        for words in map(str.split, path.read_text().splitlines()):
            self.take(words)
        # Threads of a program that has none run nothing in the region.
        self.threads = {t: n for t, n in self.threads.items() if n > 0}

    def take(self, words: list[str]) -> None:
        """One line of the meter."""
        match words:
            case ["total", n]:
                self.all = int(n)
            case ["thread", t, n]:
                self.threads[int(t)] = int(n)
            case ["barrier", t, n]:
                self.stretches[int(t)].append(int(n))
            case ["rest", t, n]:
                self.rest[int(t)] = int(n)
            case ["lock", _, address, times, held]:
                self.locks[address] += int(times)
                self.held += int(held)
            case ["wait", _, conditions, semaphores, _]:
                self.waits += int(conditions) + int(semaphores)

    def rows(self) -> list[list[int]]:
        """Each stretch's instructions by thread, the last one up to the end of the region."""
        lists = [self.stretches[t] + [self.rest[t]] for t in sorted(self.threads)]
        if len({len(one) for one in lists}) != 1:
            raise ValueError("threads meet unlike numbers of barriers")
        return [list(row) for row in zip(*lists)]


def serial(row: list[int]) -> bool:
    """Whether one thread alone works in a stretch."""
    return max(row) > SERIAL * sum(row)


def persistence(rows: list[list[int]]) -> float:
    """Share of the variance of threads' work that is the same in all stretches, 0 to 1.

    With a share p, threads' sums over stretches of deviation s have the variance
    p·(Σ s)² + (1 − p)·Σ s².
    """
    deviations = [stdev(row) for row in rows]
    evened, kept = sum(s * s for s in deviations), sum(deviations) ** 2
    if kept <= evened:
        return 0.0
    sums = [sum(work) for work in zip(*rows)]
    return min(1.0, max(0.0, (stdev(sums) ** 2 - evened) / (kept - evened)))


def count(path: Path, telling: float) -> list[float]:
    """The figures of `COUNTED`; `telling` instructions are taken off every hold."""
    run = Counted(path)
    n, region, rows = len(run.threads), sum(run.threads.values()), run.rows()
    alone = sum(max(row) for row in rows if serial(row))
    together = [row for row in rows if not serial(row) and len(row) > 1]
    spread = sum(stdev(row) for row in together) / sum(mean(row) for row in together)
    barriers = len(rows) - 1
    taken = sum(run.locks.values())
    evenly = taken**2 / sum(times**2 for times in run.locks.values()) if taken else 0
    return [
        region / 1e6,
        run.all / 1e6,
        barriers,
        (region - alone) / n / len(rows) / 1e6 if barriers else 0,
        spread,
        100 * alone / region,
        taken / region * 1e6,
        max(0, run.held / taken - telling) if taken else 0,
        evenly,
        run.waits,
        100 * (run.all - region + alone) / run.all,
        persistence(together),
    ]


def time(path: Path) -> list[float]:
    """The figures of `TIMED`, medians over the runs."""
    if not path.exists():
        return [0] * len(TIMED)
    runs = [list(map(float, line.split())) for line in path.read_text().splitlines()]
    of = lambda figure: median(figure(*run) for run in runs)
    return [
        len(runs),
        of(lambda _, user, kernel, *rest: 1e3 * (user + kernel)),
        of(lambda _, user, kernel, *rest: 100 * kernel / (user + kernel)),
        of(lambda _, user, kernel, calls, *rest: calls / (1e3 * (user + kernel))),
        of(lambda _, user, kernel, calls, futexes, *rest: futexes / (1e3 * (user + kernel))),
        of(lambda _, user, kernel, *rest: rest[4] / (1e3 * (user + kernel))),
    ]


def main(words: list[str]) -> None:
    """Prints the table."""
    if len(words) < 2:
        sys.exit(__doc__)
    folder = Path(words[0])
    pair = Counted(folder / "count-pair.txt")
    telling = pair.held / sum(pair.locks.values())
    print("\t".join(["program", "threads", *COUNTED, *TIMED]), f"# telling {telling:.1f}")
    for name in PROGRAMS:
        for threads in words[1:]:
            path = folder / f"count-{name}-{threads}.txt"
            if not path.exists():
                continue
            figures = count(path, telling) + time(folder / f"time-{name}-{threads}.txt")
            print("\t".join([name, threads, *(f"{x:.4g}" for x in figures)]))


if __name__ == "__main__":
    main(sys.argv[1:])
