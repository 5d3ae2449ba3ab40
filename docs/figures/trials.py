#!/usr/bin/env python3
"""Measure trials on this host: their cost, and what they find.

    docs/figures/trials.py cost      a loop under `run`, with and without --trial, and alone
    docs/figures/trials.py same      20 trials of `none` against `none`, which must find no difference
    docs/figures/trials.py harm      eight processes on one CPU, which must be found slower
    docs/figures/trials.py redis     redis under `attach`, with and without --trial, and alone; then the
                                     effect of a policy on its requests

Commands run `consort` and `consort-demo` from PATH; CONSORT=FILE and CONSORT_DEMO=FILE name others.
redis needs redis-server, redis-benchmark and redis-cli. Each result is the geometric mean of ratios
within rounds, with its 95 percent interval; the order within each round is random.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONSORT = os.environ.get("CONSORT", "consort")
DEMO = os.environ.get("CONSORT_DEMO", "consort-demo")
# Pairs of stretches as long as the settling of a fast program permits, so that short runs have many.
TRIAL = ["--trial", "--stretch", "250ms"]
WATCH = ["--no-daemon", "--quiet", "--policy", "none"]
# 97.5 percent points of Student's t by degrees of freedom (R 4.2, qt).
T_975 = {5: 2.571, 7: 2.365, 9: 2.262, 11: 2.201, 15: 2.131, 19: 2.093, 23: 2.069, 29: 2.045, 39: 2.023}


def interval(ratios):
    """Mean change and half of its 95 percent interval, both in percent."""
    logs = [math.log(ratio) for ratio in ratios]
    freedom = len(logs) - 1
    t = T_975[max(known for known in T_975 if known <= freedom)]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return 100 * (math.exp(statistics.mean(logs)) - 1), 100 * half


def print_change(what, ratios):
    change, half = interval(ratios)
    print(f"{what:58} {change:+6.1f} % ± {half:.1f} ({len(ratios)} pairs)")


def run_rounds(arms, rounds, measure):
    """One result per arm and round, in random order; the first round does not count."""
    results = []
    for _ in range(rounds + 1):
        order = list(arms)
        random.shuffle(order)
        results.append({arm: measure(arms[arm]) for arm in order})
    return results[1:]


def print_changes(results, compared, names):
    for with_it, without in compared:
        for part, name in enumerate(names):
            ratios = [result[with_it][part] / result[without][part] for result in results]
            print_change(f"{name}, {with_it} over {without}", ratios)


def cpu_s():
    """CPU time of the children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_cost(options):
    """CPU time per unit of work, with Consort's own, and work per second."""
    load = [DEMO, "--format", "json", "int", "--threads", "2", "--seconds", str(options.seconds)]

    def measure(arguments):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.json")
            managed = [CONSORT, "run", *WATCH, "--report", report, *(arguments or []), "--"]
            before = cpu_s()
            command = load if arguments is None else managed + load
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            used = cpu_s() - before
            if arguments is not None:
                # Without the start and the end of Consort, which a longer run would not have either.
                times = json.loads(report.read_text())["command"]
                used = times["cpu_s"] + times["own_cpu_s"]
        work = count_units(json.loads(output))
        return used / work, work / options.seconds

    arms = {"no Consort": None, "no trial": [], "a trial": TRIAL}
    compared = [("a trial", "no trial"), ("a trial", "no Consort")]
    results = run_rounds(arms, options.rounds, measure)
    print_changes(results, compared, ["CPU time per work", "work per second"])


def count_units(report):
    return sum(thread["units"] for thread in report["threads"])


# A program of processes that count their steps in a file, a line each. The first one only waits,
# because Consort does not leave a mask to a process that forks.
COUNTING = """
import os, sys, time
path, processes, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
file = os.open(path, os.O_WRONLY)
end = time.monotonic() + seconds
for place in range(processes):
    if os.fork() == 0:
        steps = 0
        while time.monotonic() < end:
            for _ in range(5_000):
                pass
            steps += 1
            os.pwrite(file, b"%12d\\n" % steps, 13 * place)
        os._exit(0)
for _ in range(processes):
    os.wait()
"""


def try_policy(policy, options, processes, seed, enact="auto"):
    """The verdict of a trial on a program that counts its steps."""
    with tempfile.TemporaryDirectory() as folder:
        steps = pathlib.Path(folder, "steps")
        steps.write_text(f"{0:12}\n" * processes)
        trial = ["--trial", "--stretch", "250ms", "-i", "25ms"]
        if options.measure == "metric":
            total = "{sum += $1} END {printf \"%.0f\", sum}"
            trial = ["--trial", "--stretch", "1s", "-i", "50ms", "--metric", f"cmd:awk '{total}' {steps}"]
        command = [CONSORT, "run", "--no-daemon", *trial, "--policy", policy, "--seed", str(seed)]
        command += ["--enact", enact]
        program = [sys.executable, "-c", COUNTING, str(steps), str(processes), str(options.seconds)]
        output = subprocess.run(
            [*command, "--format", "json", "--", *program],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ).stdout
    return json.loads(output)["verdict"]


PROCESSES = 8


def find_harm(options):
    """More processes than CPUs and other programs, so that these cannot make room for all of them.

    They are pinned, because the kernel takes threads that are only nudged to an idle CPU at once.
    """
    policy = "mapping:map=" + "/".join("0" * (PROCESSES + 1))
    verdict = try_policy(policy, options, PROCESSES, options.seed, enact="pin")
    print(verdict["text"])
    sys.exit(not verdict["text"].endswith("policy switched off"))


def find_no_difference(options):
    """Trials of `none` against `none`: at most 1 in 20 may find a difference."""
    found, halves = 0, []
    for seed in range(1, options.trials + 1):
        verdict = try_policy("none", options, 1, seed)
        print(verdict["text"], flush=True)
        low, high = verdict["low"], verdict["high"]
        found += low > 1 or high < 1
        halves.append(50 * (high - low))
    half = statistics.median(halves)
    print(f"{found} of {options.trials} trials find a difference; median of the intervals ± {half:.1f} %")
    sys.exit(found > options.trials // 20)


class Redis:
    """A server that lives as long as the block, on a port that was free a moment ago."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])

    def __enter__(self):
        words = ["redis-server", "--port", self.port, "--save", "", "--daemonize", "no"]
        self.server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while self.ask("ping").strip() != "PONG":
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()

    def ask(self, *words):
        command = ["redis-cli", "-p", self.port, *words]
        answer = subprocess.run(command, text=True, capture_output=True, check=False)
        return answer.stdout

    def benchmark(self, requests):
        """Requests per second of 20 clients that read."""
        command = ["redis-benchmark", "-p", self.port, "-t", "get", "-c", "20", "-n", str(requests), "--csv"]
        output = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout
        return float(output.splitlines()[-1].split(",")[1].strip('"'))

    def cpu_s(self):
        """CPU time of the server, which taking samples prolongs."""
        lines = dict(line.split(":") for line in self.ask("info", "cpu").splitlines() if ":" in line)
        return float(lines["used_cpu_user"]) + float(lines["used_cpu_sys"])

    def metric(self):
        """Source of a trial's progress: the commands that the server has processed."""
        query = f"redis-cli -p {self.port} info stats | grep total_commands_processed: | tr -d '\\r'"
        return ["--metric", f"cmd:{query} | cut -d: -f2"]

    @contextlib.contextmanager
    def attach(self, arguments):
        """Consort manages the server within the block; the report is read at its end."""
        if arguments is None:
            yield {}
            return
        command = [CONSORT, "attach", "--foreground", *arguments, "--format", "json", str(self.server.pid)]
        consort = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(0.4)
        report = {}
        try:
            yield report
        finally:
            consort.send_signal(signal.SIGINT)
            report.update(json.loads(consort.communicate()[0]))


def measure_redis(options):
    if not all(map(shutil.which, ["redis-server", "redis-benchmark", "redis-cli"])):
        sys.exit("redis is not installed: apt-get install redis-server redis-tools")
    with Redis() as redis:
        requests = max(1_000, int(redis.benchmark(20_000) * options.seconds))

        def measure(arguments):
            with redis.attach(arguments):
                before = redis.cpu_s()
                rate = redis.benchmark(requests)
                return rate, redis.cpu_s() - before

        none = ["--policy", "none"]
        trial = ["--trial", "--stretch", "1s", *redis.metric()]
        arms = {"no Consort": None, "no trial": none, "a trial": [*none, *trial]}
        compared = [("a trial", "no trial"), ("a trial", "no Consort")]
        results = run_rounds(arms, options.rounds, measure)
        print_changes(results, compared, ["requests per second", "CPU time of the server"])
        for policy in options.policies.split(","):
            with redis.attach(["--policy", policy, *trial]) as report:
                end = time.monotonic() + options.trial_seconds
                while time.monotonic() < end:
                    redis.benchmark(requests)
            print(f"effect of {policy} on redis: {report['verdict']['text']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="seed of the orders")
    verbs = parser.add_subparsers(required=True)
    cost = verbs.add_parser("cost")
    cost.set_defaults(run=measure_cost)
    same = verbs.add_parser("same")
    same.add_argument("--trials", type=int, default=20)
    same.set_defaults(run=find_no_difference)
    harm = verbs.add_parser("harm")
    harm.set_defaults(run=find_harm)
    for verb in (same, harm):
        verb.add_argument("--measure", choices=["metric", "waiting"], default="metric")
        verb.add_argument("--seconds", type=float, default=20, help="length of a run")
    redis = verbs.add_parser("redis")
    redis.add_argument("--policies", default="none,spread", help="policies whose effect is measured")
    redis.add_argument("--trial-seconds", type=float, default=60)
    redis.set_defaults(run=measure_redis)
    for verb in (cost, redis):
        verb.add_argument("--rounds", type=int, default=16, help="pairs that count")
        verb.add_argument("--seconds", type=float, default=3, help="length of a run")
    options = parser.parse_args()
    random.seed(options.seed)
    options.run(options)


if __name__ == "__main__":
    main()
