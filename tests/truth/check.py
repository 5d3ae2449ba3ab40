#!/usr/bin/env python3
"""Holds Consort's estimates against exact mixes, from measurement to verdict.

    tests/truth/check.py                                   the whole catalogue: half an hour
    tests/truth/check.py --consort target/debug/consort --folder out povray xz

For each program: the exact mix by run.py, a native run under `consort run --policy none`, and
in the end the comparison by compare.py, whose exit status it has. A program that is not
installed is skipped with its reason; without valgrind, objdump or the right to sample all are.
Everything is kept in --folder. Several programs are measured at a time: neither instruction
counts nor shares of CPU time depend on what else runs.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import catalogue
import compare
import run

SECONDS_LIMIT = 600


class Failed(Exception):
    """A program could not be measured though it is installed."""


def main():
    arguments = parse_arguments()
    if reason := run.missing_tools() or cannot_sample(arguments.consort):
        print(f"skipped: {reason}", file=sys.stderr)
        return 0
    arguments.folder.mkdir(parents=True, exist_ok=True)
    run.INPUTS.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        measured = pool.map(lambda program: measure(arguments, program), arguments.programs)
        try:
            done = [pair for pair in measured if pair]
        except Failed as error:
            print(f"check.py: {error}", file=sys.stderr)
            return 1
    return verdict(arguments.folder, done) if done else 0


def parse_arguments():
    """Reads the command line; unknown programs end it with status 2."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    built = catalogue.REPOSITORY / "target" / "release" / "consort"
    parser.add_argument("--consort", metavar="FILE", default=str(built))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("truth"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    known = catalogue.programs()
    for name in arguments.programs:
        if name not in known:
            parser.error(f"no program '{name}'; run.py --list shows them")
    arguments.programs = [known[name] for name in arguments.programs or known]
    return arguments


def cannot_sample(consort):
    """Why this host tells Consort no instruction addresses, or None."""
    machine = subprocess.run([consort, "machine", "--format", "json"], stdout=subprocess.PIPE, check=True)
    tiers = {tier["name"]: tier for tier in json.loads(machine.stdout)["tiers"]}
    sampling = tiers["sampling"]
    return None if sampling["available"] else f"no sampling here: {sampling['reason']}"


def measure(arguments, program):
    """Truth and estimate of one program: (what run.py measured, report's path); None where missing."""
    name = program["name"]
    report = arguments.folder / f"{name}.report.json"
    try:
        truth = run.measure(program)
        estimate(arguments.consort, program, report)
    except catalogue.Missing as reason:
        print(f"skipped: {name}: {reason}", file=sys.stderr)
        return None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{name}: {error}: {(error.stderr or b'').decode()[-500:]}") from error
    run.show(truth)
    return truth, report


def estimate(consort, program, report):
    """Runs a program natively, only watched."""
    words = catalogue.command(program, "native", run.INPUTS)
    watch = [consort, "run", "--policy", "none", "--interval", "500ms", "--report", str(report)]
    subprocess.run(
        [*watch, "--", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=SECONDS_LIMIT,
        check=True,
    )


def verdict(folder, measured):
    """Compares all; the exit status."""
    truths = folder / "truth.json"
    truths.write_text(json.dumps({"programs": [truth for truth, _ in measured]}, indent=1) + "\n")
    pairs = [f"{truth['name']}={report}" for truth, report in measured]
    try:
        rows = compare.read_rows(truths, pairs, "time_by_block")
    except compare.BadInput as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 1
    compare.print_table(rows)
    return compare.print_verdict(rows)


if __name__ == "__main__":
    sys.exit(main())
