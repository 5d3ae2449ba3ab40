"""Studies, checks, mappings and models."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import consort


def test_a_study_has_tables_and_a_page(tmp_path: Path) -> None:
    study = consort.reproduce("W3", quick=True, out=tmp_path / "kept")
    assert study.id == "W3" and study.tables[0] == "headline" and study.notes
    table = study.table()
    assert {"key", "value", "unit"} <= set(table.columns) and len(table) > 3
    long = study.table("long")
    at = long["case"].index(f"W3:headline:{table['key'][0]}")
    assert long["value"][at] == table["value"][0]
    paths = study.write(tmp_path / "page")
    assert str(paths[-1]).endswith("W3.html") and Path(paths[-1]).is_file()
    again = consort.reproduce("W3", quick=True, out=tmp_path / "kept")
    assert again.seconds == study.seconds, "it was kept"
    with pytest.raises(consort.InputError, match="unknown table 'headlin'; did you mean 'headline'"):
        study.table("headlin")
    assert "W3" in consort.studies()


def test_checks() -> None:
    validation = consort.validate(["conservation"], quick=True)
    table = validation.table()
    assert validation.laws_hold and len(table) > 5 and set(table["agrees"]) <= {"yes", "NO"}


def test_mappings() -> None:
    study = consort.map("core2-q9550", "streamcluster@2+facesim@2", ["os", "iso", "spr"], alone_s=0.2)
    assert study.tables and len(study.table(study.tables[0])) > 0


def test_names() -> None:
    assert "power8" in consort.machines() and "mcf" in consort.programs("spec2006")
    assert "workover" in consort.policies() and consort.__version__


def test_profile(tmp_path: Path) -> None:
    if not shutil.which("qemu-x86_64"):
        pytest.skip("no user-mode emulator: .ci/install-profile installs it")
    try:
        program = consort.profile(["/bin/true"], instructions=100_000)
    except consort.ConsortError as error:
        if "emulator" in str(error) or "plugin" in str(error):
            pytest.skip(str(error))
        raise
    assert program.name == "true"
    program.save(tmp_path / "true.toml")
    assert consort.simulate("power8", [program], alone_s=0.1).stp > 0.9
