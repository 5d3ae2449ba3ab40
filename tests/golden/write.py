#!/usr/bin/env python3
"""Writes the golden outputs of a `consort` binary into a folder.

A change of structure alone leaves these files byte for byte the same, so run the script with the
binaries before and after the change, with the same recording, and compare the folders:

    tests/golden/write.py target/release/consort before --recording run.parquet
    tests/golden/write.py target/release/consort after --recording run.parquet
    diff -r before after

`numbers/` holds every simulated number, at one and at two jobs, `keys/` the key sets of JSON,
`contract/` schemas, journal and protocol, and `texts/` what people read. Without `--recording`, or
if the file is missing, the script records a run first. Fields of the clock are left out.
"""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Groups of checks whose results do not depend on the host's clock.
GROUPS = ["consistency", "independent", "conservation", "placement", "reference"]
MACHINE, WORKLOAD = "power8:smt=2", "5*hmmer+5*povray+5*mcf+5*lbm"
SHORT = ["--alone", "2s"]
HELP = re.compile(r"^  ([a-z][a-z-]*)  ", re.M)

# Lines that contain times of the host's clock.
CLOCK = re.compile(r"host-clock|decisions .* us mean|host second")

# Bad usage, one of each kind that a user meets.
MISTAKES = {
    "machine": ["machine", "--machine", "nosuch"],
    "workload": ["simulate", "-m", "power8", "-w", "nosuch"],
    "workload-count": ["simulate", "-m", "power8", "-w", "x*hmmer"],
    "policy": ["simulate", "-m", "power8", "-w", "hmmer", "-p", "nosuch"],
    "option": ["simulate", "-m", "power8", "-w", "hmmer", "-p", "workover:nosuch=1"],
    "option-value": ["run", "--policy", "spread:active=x", "--", "true"],
    "os": ["simulate", "-m", "power8", "-w", "hmmer", "--os", "nosuch"],
    "study": ["reproduce", "nosuch"],
    "group": ["validate", "-g", "nosuch"],
    "bench": ["bench", "nosuch"],
    "replay": ["replay", "/nosuch"],
    "attach": ["attach", "--foreground", "1"],
    "interval": ["run", "--interval", "0s", "--", "true"],
    "mappings": ["map", "-m", "power8", "-w", "hmmer", "--mappings", "nosuch"],
    "config": ["config", "check", "/nosuch"],
    "sweep": ["sweep", "plan", "/nosuch"],
    "status": ["status", "--socket", "/nosuch"],
}


class Writer:
    def __init__(self, binary: Path, out: Path, jobs: int):
        self.out, self.jobs = out, jobs
        self.work = tempfile.mkdtemp(prefix="golden-")
        # Usage lines name the binary's file.
        self.binary = os.path.join(self.work, "consort")
        os.symlink(binary.resolve(), self.binary)
        # A folder of its own: Consort makes one that is named as the binary here.
        self.runtime = os.path.join(self.work, "runtime")
        os.mkdir(self.runtime, 0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.runtime, COLUMNS="100", NO_COLOR="1")

    def run(self, *words: str) -> subprocess.CompletedProcess:
        command = [self.binary, *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, env=self.env, cwd=self.work, stdin=subprocess.DEVNULL, timeout=1200
        )

    def write(self, name: str, text: str):
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line for line in text.splitlines(True) if not CLOCK.search(line)))

    def number(self, name: str, *words: str):
        """Writes the CSV on stdout, and that of `--out`."""
        long = Path(self.work) / f"{name.replace('/', '-')}.csv"
        done = self.run(*words, "--format", "csv", "--out", str(long))
        self.write(f"numbers/{name}.csv", done.stdout or f"exit {done.returncode}: {done.stderr}")
        if long.exists():
            self.write(f"numbers/{name}-long.csv", long.read_text())

    def keys(self, name: str, *words: str):
        done = self.run(*words, "--format", "json")
        try:
            document = json.loads(done.stdout)
        except ValueError:
            return self.write(f"keys/{name}", f"exit {done.returncode}: {done.stderr}")
        self.write(f"keys/{name}", "".join(f"{key}\n" for key in sorted(key_set(document))))


def key_set(document, path: str = "") -> set:
    """Paths of all keys: `[]` for elements of lists, `*` for keys that are data."""
    if isinstance(document, dict):
        data = any(not re.fullmatch(r"[a-z][a-z0-9_]*", key) for key in document)
        parts = [(f"{path}.{'*' if data else key}", value) for key, value in document.items()]
    elif isinstance(document, list):
        parts = [(f"{path}[]", value) for value in document]
    else:
        return {path}
    return {path}.union(*(key_set(value, name) for name, value in parts)) if parts else {path}


def record(writer: Writer, path: Path):
    loop = "import threading\nf=lambda: sum(x*x for x in range(3000000))\n" \
           "t=[threading.Thread(target=f) for _ in range(4)]\n[x.start() for x in t];[x.join() for x in t]"
    done = writer.run("record", "--policy", "spread", "--interval", "100ms", "-o", str(path.resolve()),
                      "--", "python3", "-c", loop)
    if not path.exists():
        sys.exit(f"cannot record a run: {done.stderr}")


def numbers(writer: Writer, recording: Path):
    jobs = [] if writer.jobs == 0 else ["--jobs", str(writer.jobs)]
    tag = f"jobs{writer.jobs}"
    with tempfile.TemporaryDirectory() as pages:
        writer.number(f"{tag}/reproduce", "reproduce", "all", "--quick", "--out", pages, *jobs)
    groups = [word for group in GROUPS for word in ("--group", group)]
    writer.number(f"{tag}/validate", "validate", "--quick", *groups, *jobs)
    writer.number(f"{tag}/map", "map", "-m", "xeon-e5320", "-w", "streamcluster@4+facesim@4", *jobs)
    writer.number(f"{tag}/compare", "compare", "-m", MACHINE, "-w", WORKLOAD, "--policies",
                  "linux,symbiotic,workover,aggregate,random", "--runs", "3", *SHORT, *jobs)


def single_numbers(writer: Writer, recording: Path):
    """What takes no number of jobs."""
    for policy in ["linux", "workover", "spread"]:
        writer.number(f"simulate-{policy}", "simulate", "-m", MACHINE, "-w", WORKLOAD, "-p", policy, *SHORT)
    writer.number("simulate-acmp", "simulate", "-m", "acmp-2+6", "-w", WORKLOAD, "-p", "hrrs", *SHORT)
    writer.number("simulate-reference", "simulate", "-m", "core-i7-6700", "-w", "grep+sha256sum",
                  "--fidelity", "reference", "--instructions", "50000")
    for policy in ["spread", "workover"]:
        writer.number(f"replay-{policy}", "replay", recording, "--policy", policy)
    writer.number("what-if", "what-if", recording, "-m", "power8", "--policies", "linux,random", "--runs", "2")
    writer.number("train", "train", "-m", "power8", "--quick", "--programs", "hmmer,povray,mcf,lbm,bzip2,namd")


def keys(writer: Writer, recording: Path):
    writer.keys("machine", "machine")
    writer.keys("machine-simulated", "machine", "--machine", MACHINE)
    writer.keys("machine-list", "machine", "--list")
    writer.keys("policies", "policies")
    writer.keys("programs", "programs")
    writer.keys("program", "programs", "hmmer")
    writer.keys("simulate", "simulate", "-m", MACHINE, "-w", WORKLOAD, "-p", "workover", *SHORT)
    writer.keys("simulate-reference", "simulate", "-m", "core-i7-6700", "-w", "grep+sha256sum",
                "--fidelity", "reference", "--instructions", "20000")
    writer.keys("compare", "compare", "-m", MACHINE, "-w", WORKLOAD, "--policies", "linux,workover",
                "--runs", "2", *SHORT)
    writer.keys("map", "map", "-m", "xeon-e5320", "-w", "streamcluster@4+facesim@4")
    writer.keys("replay", "replay", recording)
    writer.keys("what-if", "what-if", recording, "-m", "power8", "--policies", "linux", "--runs", "2")
    writer.keys("reproduce", "reproduce", "W1", "--quick", "--out", writer.work)
    writer.keys("reproduce-list", "reproduce", "list")
    writer.keys("validate", "validate", "--quick", "--group", "conservation")
    writer.keys("bench-list", "bench", "--list")
    writer.keys("bench", "bench", "reuse", "--quick")
    writer.keys("train", "train", "-m", "power8", "--quick", "--programs", "hmmer,povray,mcf,lbm,bzip2,namd")
    report = Path(writer.work) / "report.json"
    writer.run("run", "--policy", "spread", "--report", report, "--", "sleep", "1")
    document = json.loads(report.read_text()) if report.exists() else {}
    writer.write("keys/run-report", "".join(f"{key}\n" for key in sorted(key_set(document))))


def contract(writer: Writer):
    for kind in ["machine", "program", "study", "sweep"]:
        writer.write(f"contract/schema-{kind}.json", writer.run("schema", kind).stdout)
    writer.write("contract/journal", journal(writer))
    writer.write("contract/protocol", protocol(writer))


def journal(writer: Writer) -> str:
    """Kinds of lines of a pinned run's journal, with every number as 0."""
    command = [writer.binary, "run", "-q", "--policy", "spread:active=0", "--enact", "pin",
               "--interval", "50ms", "--no-daemon", "--", "sh", "-c", "while :; do :; done"]
    run = subprocess.Popen(command, env=writer.env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shapes, end = set(), time.time() + 5
    while time.time() < end:
        for path in Path(writer.runtime).rglob("*journal*"):
            if path.is_file():
                lines = path.read_text(errors="replace").splitlines()
                shapes |= {re.sub(r"[0-9a-f]{8,}[-0-9a-f]*|\d+", "0", line) for line in lines}
        time.sleep(0.1)
    run.send_signal(signal.SIGTERM)
    run.wait()
    if not shapes:
        sys.exit("no journal was found; is the host so busy that nothing was placed within 5 s?")
    return "".join(f"{re.sub(r'0([,-]0)*', '0', shape)}\n" for shape in sorted(shapes))


def protocol(writer: Writer) -> str:
    """Requests to a daemon, right and wrong, each with the key set of its answer."""
    path, config = Path(writer.work) / "control.sock", Path(writer.work) / "config.toml"
    config.write_text("")
    daemon = subprocess.Popen([writer.binary, "daemon", "--policy", "none", "--socket", path, "--config", config],
                              env=writer.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    load = subprocess.Popen(["sleep", "600"])
    requests = [
        '{"version":1,"request":"status"}',
        '{"version":1,"request":{"attach":{"pids":[PID]}}}',
        '{"version":1,"request":{"explain":{"tid":PID}}}',
        '{"version":1,"request":"status"}',
        '{"version":1,"request":{"policy":{"policy":"spread"}}}',
        '{"version":1,"request":{"policy":{"policy":"nosuch"}}}',
        '{"version":1,"request":"reload"}',
        '{"version":1,"request":{"detach":{"pids":[PID]}}}',
        '{"version":1,"request":{"detach":{"pids":[PID]}}}',
        '{"version":1,"request":{"attach":{"pid":1}}}',
        '{"version":7,"request":"status"}',
        '{"version":1,"request":"dance"}',
        "not JSON",
    ]
    end, text = time.time() + 20, ""
    while not path.exists() and time.time() < end:
        time.sleep(0.1)
    for request in requests:
        time.sleep(1.2)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(path))
            connection.sendall(request.replace("PID", str(load.pid)).encode() + b"\n")
            answer = connection.makefile().readline()
        try:
            document = json.loads(answer)
        except ValueError:
            document = {"no answer": answer}
        error = document.get("answer", {}).get("error") if isinstance(document, dict) else None
        shown = [re.sub(r"\d+", "0", error)] if error else sorted(key_set(document))
        text += f"> {request}\n" + "".join(f"{line}\n" for line in shown)
    for process in (load, daemon):
        process.send_signal(signal.SIGTERM)
        process.wait()
    return text


def texts(writer: Writer):
    verbs = HELP.findall(writer.run("--help").stdout)
    paths = [[]] + [[verb] for verb in verbs if verb != "help"]
    while paths:
        path = paths.pop()
        text = writer.run(*path, "--help").stdout
        writer.write(f"texts/help/{'-'.join(path) or 'consort'}", text)
        section = text.partition("Commands:")[2].partition("\n\n")[0]
        if path and section:
            paths += [[*path, verb] for verb in HELP.findall(section) if verb != "help"]
    for name, words in MISTAKES.items():
        done = writer.run(*words)
        writer.write(f"texts/mistakes/{name}", f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    for name, words in {
        "policies": ["policies"],
        "programs": ["programs"],
        "studies": ["reproduce", "list"],
        "machines": ["machine", "--list"],
        "machine": ["machine", "--machine", MACHINE],
        "simulate": ["simulate", "-m", MACHINE, "-w", WORKLOAD, "-p", "workover", *SHORT],
        "compare": ["compare", "-m", MACHINE, "-w", WORKLOAD, "--policies", "linux,workover", "--runs", "2", *SHORT],
        "map": ["map", "-m", "xeon-e5320", "-w", "streamcluster@4+facesim@4"],
        "validate": ["validate", "--quick", "--group", "conservation"],
    }.items():
        writer.write(f"texts/tables/{name}", writer.run(*words).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recording", type=Path, help="recorded run to replay; made if missing")
    parser.add_argument("--only", choices=["numbers", "keys", "contract", "texts"], action="append")
    args = parser.parse_args()
    parts = args.only or ["numbers", "keys", "contract", "texts"]
    recording = (args.recording or args.out / "recording.parquet").resolve()
    recording.parent.mkdir(parents=True, exist_ok=True)
    writer = Writer(args.binary, args.out, 0)
    if not recording.exists():
        record(writer, recording)
    if "texts" in parts:
        texts(writer)
    if "keys" in parts:
        keys(writer, recording)
    if "contract" in parts:
        contract(writer)
    if "numbers" in parts:
        single_numbers(writer, recording)
        for jobs in (1, 2):
            numbers(Writer(args.binary, args.out, jobs), recording)


if __name__ == "__main__":
    main()
