#!/usr/bin/env python3
"""Measures the exact instruction mix of programs of the catalogue.

    tests/truth/run.py --list
    tests/truth/run.py povray xz --json truth.json     exact mixes; all programs where none is named
    tests/truth/run.py --native povray                 prints the command to run under Consort

Needs valgrind and objdump (.ci/install-truth). A program that is not installed is skipped with
its reason. Exit status: 0 done, 1 a program failed, 2 bad usage.
"""

import argparse
import collections
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import callgrind
import catalogue
import disassembly
import mix

INPUTS = pathlib.Path(tempfile.gettempdir()) / "consort-truth-inputs"


def main():
    arguments = parse_arguments()
    if arguments.list:
        for name, program in arguments.known.items():
            print(f"{name:16} {program['about']}")
        return 0
    INPUTS.mkdir(exist_ok=True)
    if arguments.native:
        return print_native(arguments)
    if reason := missing_tools():
        print(f"skipped: {reason}")
        return 0
    return measure_all(arguments)


def parse_arguments():
    """Reads the command line; unknown programs end it with status 2."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--json", metavar="FILE", help="writes the result; - is standard output")
    parser.add_argument("--list", action="store_true", help="lists the catalogue")
    parser.add_argument("--native", action="store_true", help="prints the native command")
    arguments = parser.parse_args()
    arguments.known = catalogue.programs()
    for name in arguments.programs:
        if name not in arguments.known:
            parser.error(f"no program '{name}'; --list shows them")
    arguments.programs = arguments.programs or list(arguments.known)
    return arguments


def missing_tools():
    """Why nothing can be measured here, or None."""
    absent = [tool for tool in ("valgrind", "objdump") if shutil.which(tool) is None]
    return f"{' and '.join(absent)} not installed; .ci/install-truth does it" if absent else None


def print_native(arguments):
    """Prints one shell line per program."""
    for name in arguments.programs:
        try:
            print(shlex.join(catalogue.command(arguments.known[name], "native", INPUTS)))
        except catalogue.Missing as reason:
            print(f"skipped: {name}: {reason}", file=sys.stderr)
    return 0


def measure_all(arguments):
    """Measures the programs one after the other, shows them and writes the file."""
    results = []
    status = 0
    for name in arguments.programs:
        try:
            results.append(measure(arguments.known[name]))
            show(results[-1])
        except catalogue.Missing as reason:
            print(f"skipped: {name}: {reason}", file=sys.stderr)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}: {(error.stderr or b'').decode()[-500:]}", file=sys.stderr)
            status = 1
    write(arguments.json, {"programs": results})
    return status


def measure(program):
    """The exact mix of one program, in all and per thread, or what is expected of it."""
    if "expect" in program:
        return {key: program[key] for key in ("name", "ours", "expect")}
    words = catalogue.command(program, "truth", INPUTS)
    begin, begin_cpu = time.monotonic(), cpu_seconds()
    threads = counted(words)
    if "startup" in program:
        start = counted(catalogue.command(program, "startup", INPUTS))
        threads = [callgrind.extrapolate(threads, start, growth(program))]
    text_of = texts_of(threads)
    return {
        "name": program["name"],
        "ours": program["ours"],
        "command": words,
        "caches": sorted({cache for thread in threads for cache in thread.caches}),
        "total": mix_of(threads, text_of),
        "threads": [
            {"pid": t.pid, "thread": t.number, "command": t.command, **mix_of([t], text_of)}
            for t in threads
        ],
        "seconds": round(time.monotonic() - begin, 1),
        "cpu_s": round(cpu_seconds() - begin_cpu, 1),
    }


def counted(words):
    """The threads of a command with their costs."""
    with tempfile.TemporaryDirectory() as folder:
        return callgrind.run(words, folder)


def growth(program):
    """By how much the native run's work, without the start, is larger than the measured one's."""
    begin = program["startup"]
    return (program["native"] - begin) / (program["truth"] - begin)


def cpu_seconds():
    """CPU time of this process and of all that it has run, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def texts_of(threads):
    """{object: {offset: text}} of everything that any thread executed."""
    offsets = collections.defaultdict(set)
    for thread in threads:
        for address in thread.costs:
            offsets[address.object].add(address.offset)
    return {path: disassembly.texts(path, wanted) for path, wanted in offsets.items()}


def mix_of(threads, text_of):
    """The report of the threads taken together."""
    total = mix.Mix()
    for thread in threads:
        objects = collections.defaultdict(dict)
        for address, cost in thread.costs.items():
            objects[address.object][address.offset] = cost
        for path, costs in objects.items():
            total.add_object(costs, text_of[path])
    return total.report()


def show(result):
    """One line per program: the shares in percent."""
    if "expect" in result:
        print(f"{result['name']:16} not measured, expected: {result['expect']}", file=sys.stderr)
        return
    total = result["total"]
    shares = "  ".join(f"{kind} {100 * s:4.1f}" for kind, s in total["time_by_block"].items())
    unknown = 100 * total["unknown_share"]
    print(
        f"{result['name']:16} {shares}  unknown {unknown:.1f}  "
        f"{total['instructions'] / 1e6:.0f}M instructions  {result['seconds']} s "
        f"({result['cpu_s']} s of CPU time)",
        file=sys.stderr,
        flush=True,
    )


def write(path, document):
    """Writes one JSON document to a file or to standard output."""
    if path == "-":
        json.dump(document, sys.stdout, indent=1)
        print()
    elif path:
        pathlib.Path(path).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
