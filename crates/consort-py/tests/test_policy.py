"""Policies that are written in Python."""

from __future__ import annotations

import random

import pytest

import consort
from conftest import MACHINE, WORKLOAD
from twin import Spread


@pytest.mark.parametrize(
    ("machine", "workload"),
    [
        (MACHINE, "3*hmmer+2*mcf"),
        ("power7:smt=2", "mix:spec2006/20?seed=7"),
        ("power8:smt=4", "streamcluster@4+6*milc"),
        ("core2-q9550", "4*mcf+3*io-heavy"),
    ],
)
def test_decides_like_its_twin_in_rust(machine: str, workload: str) -> None:
    def run(policy: str | type[consort.Policy]) -> consort.Run:
        options = {"seed": 3, "alone_s": 4.0}
        return consort.simulate(machine, workload, policy, decisions=True, quantum_ms=50, **options)  # type: ignore[arg-type]

    ours, theirs = run(Spread), run("spread")
    assert len(ours.decisions) > 40
    assert ours.decisions == theirs.decisions
    ours_csv, theirs_csv = (r.table("runs").to_csv().split(",", 9)[-1] for r in (ours, theirs))
    assert ours_csv.split("\n")[1].split(",")[1:] == theirs_csv.split("\n")[1].split(",")[1:]
    assert ours.table("programs")["slowdown"] == theirs.table("programs")["slowdown"]


class Dice(consort.Policy):
    """Deals threads to CPUs by lot."""

    needs = ("cpu-time", "instructions")
    quantum_ms = 20

    def __init__(self, note: str = "") -> None:
        self.note = note
        self.seen = 0

    def decide(self, view: consort.View) -> consort.Decision:
        self.seen += 1
        decision = consort.Decision()
        decision.note(f"{self.note} {self.seen}")
        deck = view.topology.pus
        random.Random(view.seed).shuffle(deck)
        for thread, pu in zip(view.threads, deck):
            assert thread.managed and thread.id and thread.name
            assert thread.cpu_share <= 1.0001 and thread.get("instructions") is not None
            decision.place(thread.id, pu, "by lot")
        return decision


def test_the_seed_decides_and_instances_are_copied() -> None:
    dice = Dice("n")

    def run(seed: int) -> str:
        result = consort.compare(
            MACHINE, WORKLOAD, [dice, "linux"], runs=2, seed=seed, alone_s=1.0
        )
        assert result.policies == ["Dice", "linux"]
        return result.table("long").to_csv()

    assert run(1) == run(1) != run(2)
    assert dice.seen == 0


class Refusing(consort.Policy):
    name = "mine"
    returned: object = None

    def decide(self, view: consort.View) -> object:  # type: ignore[override]
        if isinstance(self.returned, Exception):
            raise self.returned
        return self.returned


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (KeyError("no"), KeyError, "no"),
        (3, consort.InputError, "policy mine: decide returned a int; expected a Decision, None, or a dict"),
        ({1000: "x"}, consort.InputError, "policy mine: decide returned a dict"),
        ({7: 0}, consort.InputError, "policy mine: there is no thread 7"),
        ({1000: 99}, consort.InputError, "policy mine: thread 1000 cannot be on CPU 99; expected some of CPU 0-7"),
        ({1000: []}, consort.InputError, "policy mine: thread 1000 cannot be on CPU"),
    ],
)
def test_what_cannot_be_is_raised(
    returned: object, error: type[Exception], message: str
) -> None:
    policy = type("Mine", (Refusing,), {"returned": returned})
    with pytest.raises(error, match=message):
        consort.simulate(MACHINE, WORKLOAD, policy, alone_s=1.0)


def test_none_is_no_restriction() -> None:
    ours = consort.simulate(MACHINE, WORKLOAD, Refusing, alone_s=1.0)
    theirs = consort.simulate(MACHINE, WORKLOAD, "linux", alone_s=1.0, quantum_ms=100)
    assert ours.stp == theirs.stp


def test_needs_are_checked_before_anything_runs() -> None:
    policy = type("Needy", (consort.Policy,), {"needs": ("code-footprint",)})
    with pytest.raises(consort.InputError, match="policy Needy needs code-footprint, but this machine offers"):
        consort.simulate(MACHINE, WORKLOAD, policy)
    policy = type("Unknown", (consort.Policy,), {"needs": ("cycels",)})
    with pytest.raises(consort.InputError, match="unknown signal 'cycels'; did you mean 'cycles'"):
        consort.simulate(MACHINE, WORKLOAD, policy)
    with pytest.raises(consort.InputError, match="expected a name, a class derived from consort.Policy"):
        consort.simulate(MACHINE, WORKLOAD, 3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        consort.simulate(MACHINE, WORKLOAD, consort.Policy)


def test_cost_of_the_boundary() -> None:
    """States what a decision costs through Python, beside the same in Rust (docs/research/python.md)."""
    workload = "mix:spec2006/20?seed=7"

    def micros(policy: str | type[consort.Policy]) -> float:
        runs = [
            consort.simulate("power8:smt=2", workload, policy, quantum_ms=50, alone_s=10.0)
            for _ in range(3)
        ]
        return min(run.decision_us for run in runs)

    nothing, empty = micros("none"), micros(Refusing)
    rust, python = micros("spread"), micros(Spread)
    print(f"20 threads: none {nothing:.2f} us, a Python policy that decides nothing {empty:.1f} us,")
    print(f"spread in Rust {rust:.1f} us, in Python {python:.1f} us")
    assert nothing < empty < python < 50_000
