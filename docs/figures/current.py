#!/usr/bin/env python3
"""Print the current figures of Consort, or measure one again on this host.

    docs/figures/current.py                  print the table
    docs/figures/current.py --page           print docs/figures.md
    docs/figures/current.py --repeat smt-error
                                             run the command of a figure

Commands run `consort` from PATH; CONSORT=FILE names another binary.
"""

import argparse
import csv
import os
import pathlib
import shlex
import subprocess
import sys

FIGURES = pathlib.Path(__file__).with_name("current.csv")

MACHINES = {
    "any": "any host; the figure depends on the seed only",
    "epyc-2": "KVM guest, 2 CPUs of an AMD EPYC, no hardware counters, Linux 6.18",
    "epyc-2-firecracker": "Firecracker guest, 2 CPUs of an AMD EPYC that share nothing, Linux 6.18, idle",
    "epyc-2-busy": "the same guest as epyc-2-firecracker next to other work (load average 6 to 9)",
    "kvm-2": "KVM guest, 2 CPUs, no hardware counters",
    "xeon-2": "KVM guest, 2 CPUs of an Intel Xeon (model 207, nominal 2.1 GHz), no hardware counters",
    "xeon-16": "Firecracker guest, 16 CPUs of an Intel Xeon, each shown as a core of its own, no hardware"
    " counters, Linux 6.18, idle",
}

HEAD = """# Current figures

The measured figures of Consort that these pages use, for anyone who asks how much it costs, how fast it is
or how far it is off. Each has its machine, commit and command. For example, `docs/figures/current.py
--repeat smt-error` measures one again. Signs are relative to the run without Consort: for example, +2.5 %
of CPU time is a cost. The spread is the range of the runs, or their quartiles if they are pairs. The commit
is the one that recorded the figure.

The table is `docs/figures/current.csv`; a test keeps this page equal to it.
"""


def read():
    with FIGURES.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def value(row):
    unit = row["unit"]
    return f"{row['value']} {unit}".strip()


def page(rows):
    parts = [HEAD]
    for group in dict.fromkeys(row["group"] for row in rows):
        lines = [f"\n## {group}\n"]
        lines.append("| name | figure | value (spread) | runs, machine | commit, date |")
        lines.append("|---|---|---|---|---|")
        for row in (row for row in rows if row["group"] == group):
            spread = f" ({row['spread']})" if row["spread"] else ""
            cells = [
                f"`{row['name']}`",
                row["figure"],
                value(row) + spread,
                f"{row['runs']}, {row['machine']}",
                f"{row['commit']}, {row['date']}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
        parts.append("\n".join(lines) + "\n")
    parts.append("\n## Machines\n\n| machine | description |\n|---|---|\n")
    used = sorted({row["machine"] for row in rows})
    parts += [f"| {name} | {MACHINES[name]} |\n" for name in used]
    parts.append("\n## Commands\n\n| name | command |\n|---|---|\n")
    parts += [f"| `{row['name']}` | `{row['command']}` |\n" for row in rows if row["command"]]
    return "".join(parts)


def repeat(rows, name):
    row = next((row for row in rows if row["name"] == name), None)
    if row is None:
        sys.exit(f"unknown figure {name}; known: {', '.join(row['name'] for row in rows)}")
    if not row["command"]:
        sys.exit(f"{name}: no command repeats it; it needs the machine {row['machine']} and its loads")
    words = shlex.split(row["command"])
    if {"FILE", "DIR"} & set(words):
        sys.exit(f"{name}: name the file or folder yourself: {row['command']}")
    if words[0] == "consort":
        words[0] = os.environ.get("CONSORT", "consort")
    print(f"recorded: {value(row)} ({row['runs']}, {row['machine']}, {row['commit']})", flush=True)
    sys.exit(subprocess.run(words, check=False).returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="print docs/figures.md")
    parser.add_argument("--repeat", metavar="NAME", help="run the command of a figure")
    arguments = parser.parse_args()
    rows = read()
    if arguments.repeat:
        repeat(rows, arguments.repeat)
    elif arguments.page:
        print(page(rows), end="")
    else:
        for row in rows:
            print(f"{row['name']:22} {value(row):>16}  {row['spread']:22} {row['figure']}")


if __name__ == "__main__":
    main()
