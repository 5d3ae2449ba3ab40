#!/usr/bin/env python3
"""Compares exact mixes with the mixes that Consort estimated.

    tests/truth/compare.py truth.json povray=report.json xz=other.json

`truth.json` is written by run.py, each report by `consort run --report FILE`. A program's estimate
is the mean of its threads' mixes weighted by their CPU time. Prints one line per program, the
mean absolute error of the fp share, and which class the truth and the estimate put first.

Exit status 1 where the mean absolute error of the fp share is above 0.10, or where a program is
confused: clearly more is fp than int (or the reverse) and the estimate has it the other way round,
or one of the two is Consort's class for the exact mix and the other for what it saw. Programs that
run.py only has an expectation of take part in the second alone. 2 for bad input.
"""

import argparse
import collections
import json
import sys

CLASSES = ("fp", "vector", "int", "load", "store", "branch", "other")
MEAN_ERROR_LIMIT = 0.10
# Where fp and int are closer than the error that is allowed, neither of them dominates.
CLEAR_LEAD = 0.10

# Consort's classes by the fp share of the mix (crates/consort-core/src/class.rs).
FP_FROM = 0.15
INT_BELOW = 0.05

# `truth` is None for a program of which only `expect` is known.
Row = collections.namedtuple("Row", "name truth expect estimate thread_class")


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
    known = {p["name"]: p for p in load(truth_path).get("programs", [])}
    rows = []
    for pair in reports:
        name, mark, path = pair.partition("=")
        if not mark:
            raise BadInput(f"'{pair}' is not PROGRAM=REPORT")
        if name not in known:
            raise BadInput(f"{truth_path} has no program '{name}'; it has {', '.join(known)}")
        threads = load(path).get("threads", [])
        truth = known[name].get("total", {}).get(against)
        expect = known[name].get("expect") or class_of(truth)
        rows.append(Row(name, truth, expect, estimate(threads, path), main_class(threads)))
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


def class_of(mix):
    """The class that Consort's rule gives a busy thread of this mix that waits for no memory."""
    if mix["fp"] >= FP_FROM:
        return "fp"
    return "int" if mix["fp"] < INT_BELOW else "mixed"


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
    """Whether fp was taken for int or the reverse, by the mix or by the class."""
    return is_turned_round(row) or {row.expect, row.thread_class} == {"fp", "int"}


def is_turned_round(row):
    """Whether truth clearly leans one way and the estimate goes the other, however little."""
    lean = leaning(row.truth) if row.truth else None
    other = {"fp": "int", "int": "fp"}.get(lean)
    return lean is not None and row.estimate[other] > row.estimate[lean]


def first(mix):
    """The class with the largest share."""
    return max(CLASSES, key=lambda c: mix[c])


def print_table(rows):
    """One line per program, the classes as truth/estimate in percent."""
    titles = "".join(f"{kind:>9}" for kind in CLASSES)
    print(f"{'program':16}{titles} {'error':>7} {'L1':>6}  class")
    for row in rows:
        shares = "".join(f"{pair(row, kind):>9}" for kind in CLASSES)
        print(
            f"{row.name:16}{shares} {errors(row)}  {row.expect} -> {row.thread_class}"
            f"{'  CONFUSED' if is_confused(row) else ''}"
        )


def pair(row, kind):
    """A class's share in truth and estimate, percent."""
    truth = f"{100 * row.truth[kind]:.0f}" if row.truth else "-"
    return f"{truth}/{100 * row.estimate[kind]:.0f}"


def errors(row):
    """The error of the fp share and the summed difference of all shares."""
    if row.truth is None:
        return f"{'-':>7} {'-':>6}"
    distance = sum(abs(row.truth[c] - row.estimate[c]) for c in CLASSES)
    return f"{fp_error(row):+7.3f} {distance:6.3f}"


def print_verdict(rows):
    """The summary; the exit status."""
    measured = [row for row in rows if row.truth]
    mean = print_errors(measured) if measured else 0.0
    confused = [row.name for row in rows if is_confused(row)]
    if confused:
        print(f"fp and int confused: {', '.join(confused)}")
    return 1 if confused or mean > MEAN_ERROR_LIMIT else 0


def print_errors(rows):
    """The errors over all programs; the mean one."""
    worst = max(rows, key=lambda row: abs(fp_error(row)))
    mean = sum(abs(fp_error(row)) for row in rows) / len(rows)
    print(f"\nmean absolute fp error {mean:.3f} over {len(rows)} programs (limit {MEAN_ERROR_LIMIT})")
    print(f"largest {fp_error(worst):+.3f} ({worst.name})")
    print_confusion(rows)
    return mean


def print_confusion(rows):
    """How often each true first class was estimated as which."""
    counts = collections.Counter((first(r.truth), first(r.estimate)) for r in rows)
    for (truth, guess), count in sorted(counts.items()):
        print(f"  {truth:6} seen as {guess:6} {count}")


if __name__ == "__main__":
    sys.exit(main())
