"""The same seed gives the same numbers as the command line, bit for bit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import consort
from conftest import MACHINE, WORKLOAD

POLICIES = ["aggregate", "linux", "workover:margin=0.1"]
#: Columns of the command line's CSV with their decimals.
DIGITS = {
    "STP": ("stp", 3),
    "speedup": ("speedup", 3),
    "ANTT": ("antt", 3),
    "unfairness": ("unfairness", 3),
    "makespan_s": ("makespan_s", 2),
    "energy_J": ("energy_j", 0),
    "ED_J_s": ("ed", 0),
    "moves": ("moves", 1),
}


def compared(jobs: int | None = None) -> consort.Comparison:
    return consort.compare(MACHINE, WORKLOAD, POLICIES, runs=3, seed=5, alone_s=2.0, jobs=jobs)


def arguments(*more: str | Path) -> list[str | Path]:
    policies = [text for policy in POLICIES for text in ("--policies", policy)]
    run = ["--runs", "3", "--seed", "5", "--alone", "2s"]
    return ["compare", "-m", MACHINE, "-w", WORKLOAD, *policies, *run, *more]


def test_csv_of_the_command_line(command_line: Callable[..., str]) -> None:
    table = compared().table()
    rows = list(csv.DictReader(io.StringIO(command_line(*arguments("--format", "csv")))))
    assert [row["policy"] for row in rows] == table["policy"]
    for heading, (name, digits) in DIGITS.items():
        halves = table[f"{name}_ci95"]
        for row, mean, half in zip(rows, table[name], halves):
            assert row[heading] == f"{mean:.{digits}f} ±{half:.{digits}f}"


def test_json_of_the_command_line(command_line: Callable[..., str]) -> None:
    theirs = command_line(*arguments("--format", "json"))
    assert theirs == compared().to_json() + "\n"
    first = json.loads(theirs)["results"][0]["stp"]
    table = compared().table()
    assert (first["mean"], first["ci95"]) == (table["stp"][0], table["stp_ci95"][0])


def test_files_of_the_command_line(command_line: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    command_line(*arguments("--out", path))
    assert path.read_text() == compared().table("long").to_csv()


def test_simulate_like_the_command_line(command_line: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    options = ["--policy", "workover", "--seed", "7", "--alone", "2s", "--out", path]
    command_line("simulate", "-m", MACHINE, "-w", WORKLOAD, *options)
    run = consort.simulate(MACHINE, WORKLOAD, "workover", seed=7, alone_s=2.0)
    assert path.read_text() == run.table("long").to_csv()


def test_reproduce_like_the_command_line(command_line: Callable[..., str], tmp_path: Path) -> None:
    theirs = json.loads(command_line("reproduce", "M1", "--quick", "--format", "json", "--out", tmp_path))
    ours = json.loads(consort.reproduce("M1", quick=True).to_json())
    for document in (theirs, ours):
        del document["seconds"]
    assert {key: theirs[key] for key in ours} == ours


def test_train_like_the_command_line(
    command_line: Callable[..., str], tmp_path: Path, monkeypatch: object
) -> None:
    assert hasattr(monkeypatch, "setenv")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    programs = ["mcf", "hmmer", "povray", "gcc", "lbm", "milc", "astar", "bzip2"]
    path = tmp_path / "power8.toml"
    options = ["--programs", ",".join(programs), "--ways", "2", "--folds", "2", "--quick"]
    command_line("train", "-m", "power8", *options, "--out", path)
    model = consort.train("power8", programs, ways=[2], folds=2, quick=True)
    assert path.read_text() == model.to_toml()
    assert model.table()["ways"] == [2]


def test_workers_do_not_matter() -> None:
    assert compared(jobs=1).table("long").to_csv() == compared(jobs=3).table("long").to_csv()


def test_measures_follow_from_the_programs() -> None:
    run = consort.simulate(MACHINE, WORKLOAD, alone_s=2.0)
    programs = run.table("programs")
    assert abs(run.stp - sum(1 / slowdown for slowdown in programs["slowdown"])) < 1e-12
    assert run.makespan_s == max(programs["together_s"])
    assert programs.units["together_s"] == "s" and programs.units["slowdown"] is None
