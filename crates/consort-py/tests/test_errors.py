"""Bad input raises exceptions with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

import consort
from conftest import MACHINE, WORKLOAD


def test_changed_values_are_refused_as_in_a_file(tmp_path: Path) -> None:
    machine = consort.Machine.load("power8")
    path = tmp_path / "mine.toml"
    path.write_text(machine.to_toml().replace("latency_ns = ", "latency_ns = -", 1))
    with pytest.raises(consort.InputError) as of_file:
        consort.Machine.load(str(path))
    assert of_file.value.file == str(path) and of_file.value.line and of_file.value.key
    key = of_file.value.key
    value = machine.get(key)
    with pytest.raises(consort.InputError) as of_change:
        machine.with_(**{key: -value})
    assert of_change.value.key == key and of_change.value.line == of_file.value.line
    assert str(of_change.value).split(": ", 1)[1] == str(of_file.value).split(": ", 1)[1]
    assert isinstance(of_change.value, ValueError)


def test_nested_values_by_dotted_name() -> None:
    machine = consort.Machine.load("power8:smt=2")
    changed = machine.with_(**{"llc.size_kib": 65536, "core_type.core.l2.size_kib": 1024})
    assert machine.get("llc.size_kib") == 8192 and changed.get("llc.size_kib") == 65536
    assert changed.get("core_type.core.l2.size_kib") == 1024
    assert changed.get("core_type.core.smt[1].ways") == 2 and changed.get("no.such") is None
    assert changed.topology.smt == 2 and len(changed.topology.cores) == 10
    again = changed.with_(**{"llc.size_kib": 8192})
    assert again.get("llc.size_kib") == 8192 and again.get("core_type.core.l2.size_kib") == 1024
    big = consort.simulate(changed, "4*mcf", alone_s=1.0).stp
    assert big != consort.simulate(machine, "4*mcf", alone_s=1.0).stp


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("lcc.size_kib", 1, "lcc: is not a known key; did you mean 'llc'?"),
        ("llc.size_kib", "big", 'llc.size_kib: is string "big"; expected a number'),
        ("llc.ways", 2.5, "llc.ways: is floating point '2.5'; expected a whole number"),
        ("core_type.core.smt[9].ways", 1, "leads to element \\[9\\] of 4"),
        ("llc.size_kib", {}, "llc.size_kib: is a dict; expected a number, a text, a bool or a list"),
    ],
)
def test_changes_that_cannot_be(key: str, value: object, message: str) -> None:
    with pytest.raises(consort.InputError, match=message):
        consort.Machine.load("power8").with_(**{key: value})  # type: ignore[arg-type]


def test_unknown_names_get_the_nearest() -> None:
    for call, message in [
        (lambda: consort.Machine.load("power9"), "unknown machine 'power9'; did you mean 'power"),
        (lambda: consort.Program.load("hmmr"), "unknown program 'hmmr'; did you mean 'hmmer'"),
        (lambda: consort.compare(MACHINE, WORKLOAD, ["linx"]), "unknown policy 'linx'"),
        (lambda: consort.compare(MACHINE, "3**mcf", ["linux"]), "workload '3\\*\\*mcf': position 3"),
        (lambda: consort.compare(MACHINE, WORKLOAD, []), "policies: there are none"),
        (lambda: consort.compare(MACHINE, WORKLOAD, ["linux"], baseline="linx"), "did you mean 'linux'"),
        (lambda: consort.compare(MACHINE, WORKLOAD, ["linux"], runs=0), "runs: is 0; expected 1"),
        (lambda: consort.compare(MACHINE, WORKLOAD, ["linux"], alone_s=-1), "alone_s: is -1; expected"),
        (lambda: consort.reproduce("W99"), "unknown study 'W99'"),
        (lambda: consort.validate(["speeed"]), "unknown group 'speeed'|speed"),
        (lambda: consort.programs("spec"), "unknown suite 'spec'"),
        (lambda: consort.map("core2-q9550", "mcf", ["isso"]), "unknown mapping 'isso'; did you mean 'iso'"),
        (lambda: consort.profile(["/no/such/program"]), "no/such/program"),
    ]:
        with pytest.raises(consort.InputError, match=message):
            call()  # type: ignore[no-untyped-call]


def test_program_files(tmp_path: Path) -> None:
    program = consort.Program.load("mcf")
    path = tmp_path / "mine.toml"
    program.save(path)
    mine = consort.Program.load(str(path))
    assert (mine.name, mine.suite, mine.threads) == (program.name, program.suite, 1)
    ours = consort.simulate(MACHINE, [mine, (consort.Program.load("hmmer"), 1, 2)], alone_s=1.0)
    assert ours.stp == consort.simulate(MACHINE, "mcf+2*hmmer", alone_s=1.0).stp
    path.write_text(path.read_text().replace("name = ", "nme = ", 1))
    with pytest.raises(consort.InputError) as error:
        consort.Program.load(str(path))
    assert error.value.file == str(path) and error.value.line
    workload = consort.Workload.of([(consort.Program.load("streamcluster"), 4)])
    assert workload.programs == ["streamcluster"] and workload.threads == [4]
