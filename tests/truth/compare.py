#!/usr/bin/env python3
"""Compares exact mixes with the mixes that Consort estimated.

    tests/truth/compare.py truth.json povray=report.json xz=other.json

`truth.json` is written by run.py, each report by `consort run --report FILE`. A program's estimate
is the mean of its threads' mixes weighted by their CPU time. Prints one line per program, the
mean absolute error of the fp share, and which class the truth and the estimate put first.

Exit status 1 where the mean absolute error of the fp share is above 0.10, or where a program in
which clearly more is fp than int (or the reverse) is estimated the other way round; 2 for bad
input.
"""

import argparse
import collections
import json
import sys

CLASSES = ("fp", "vector", "int", "load", "store", "branch", "other")
MEAN_ERROR_LIMIT = 0.10
# Where fp and int are closer than the error that is allowed, neither of them dominates.
CLEAR_LEAD = 0.10

Row = collections.namedtuple("Row", "name truth estimate thread_class")


class BadInput(Exception):
    """A file does not hold what it should."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("truth", help="what run.py --json wrote")
    parser.add_argument("reports", nargs="+", metavar="PROGRAM=REPORT")
    parser.add_argument(
        "--against",
        default="time_by_block",
        choices=("time_by_block", "time_by_instruction", "count"),
        help="which of the exact mixes (default: %(default)s)",
    )
    arguments = parser.parse_args()
    try:
        rows = read_rows(arguments.truth, arguments.reports, arguments.against)
    except BadInput as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 2
    print_table(rows)
    return print_verdict(rows)


def read_rows(truth_path, reports, against):
    """One row per PROGRAM=REPORT."""
    truths = {p["name"]: p["total"][against] for p in load(truth_path).get("programs", [])}
    rows = []
    for pair in reports:
        name, mark, path = pair.partition("=")
        if not mark:
            raise BadInput(f"'{pair}' is not PROGRAM=REPORT")
        if name not in truths:
            raise BadInput(f"{truth_path} has no program '{name}'; it has {', '.join(truths)}")
        threads = load(path).get("threads", [])
        rows.append(Row(name, truths[name], estimate(threads, path), main_class(threads)))
    return rows


def load(path):
    """Reads a JSON document."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from error


def estimate(threads, path):
    """The threads' mixes, weighted by CPU time; threads without a mix have no say."""
    seen = [t for t in threads if t.get("mix") and t.get("cpu_s", 0) > 0]
    cpu_s = sum(t["cpu_s"] for t in seen)
    if not cpu_s:
        raise BadInput(f"{path}: no thread with CPU time has a mix")
    return {c: sum(t["cpu_s"] * t["mix"].get(c, 0.0) for t in seen) / cpu_s for c in CLASSES}


def main_class(threads):
    """The class that Consort gave the busiest thread."""
    return max(threads, key=lambda t: t.get("cpu_s", 0)).get("class", "-")


def fp_error(row):
    """Estimate less truth of the fp share."""
    return row.estimate["fp"] - row.truth["fp"]


def leaning(mix):
    """`fp` or `int` where one of them clearly leads the other, else None."""
    lead = mix["fp"] - mix["int"]
    if abs(lead) <= CLEAR_LEAD:
        return None
    return "fp" if lead > 0 else "int"


def is_confused(row):
    """Whether truth clearly leans one way and the estimate goes the other, however little."""
    lean = leaning(row.truth)
    other = {"fp": "int", "int": "fp"}.get(lean)
    return lean is not None and row.estimate[other] > row.estimate[lean]


def first(mix):
    """The class with the largest share."""
    return max(CLASSES, key=lambda c: mix[c])


def print_table(rows):
    """One line per program."""
    print(f"{'program':16} {'fp truth':>8} {'estimate':>8} {'error':>7} {'L1':>6}  first (class)")
    for row in rows:
        distance = sum(abs(row.truth[c] - row.estimate[c]) for c in CLASSES)
        print(
            f"{row.name:16} {row.truth['fp']:8.3f} {row.estimate['fp']:8.3f} {fp_error(row):+7.3f} "
            f"{distance:6.3f}  {first(row.truth)} -> {first(row.estimate)} ({row.thread_class})"
            f"{'  CONFUSED' if is_confused(row) else ''}"
        )


def print_verdict(rows):
    """The summary; the exit status."""
    mean = sum(abs(fp_error(row)) for row in rows) / len(rows)
    confused = [row.name for row in rows if is_confused(row)]
    print(f"\nmean absolute fp error {mean:.3f} over {len(rows)} programs (limit {MEAN_ERROR_LIMIT})")
    print_confusion(rows)
    if confused:
        print(f"fp and int confused: {', '.join(confused)}")
    return 1 if confused or mean > MEAN_ERROR_LIMIT else 0


def print_confusion(rows):
    """How often each true first class was estimated as which."""
    counts = collections.Counter((first(r.truth), first(r.estimate)) for r in rows)
    for (truth, guess), count in sorted(counts.items()):
        print(f"  {truth:6} seen as {guess:6} {count}")


if __name__ == "__main__":
    sys.exit(main())
