"""Tables are read by data frames, through the Arrow C stream interface and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

import consort
from conftest import MACHINE, WORKLOAD


@pytest.fixture(scope="module")
def table() -> consort.Table:
    result = consort.compare(MACHINE, WORKLOAD, ["linux", "workover"], runs=2, alone_s=1.0)
    return result.table("long")


def test_pandas_alone(table: consort.Table) -> None:
    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert list(frame.columns) == table.columns and len(frame) == len(table) == 4 * (8 + 4 * 6)
    assert frame["value"].tolist() == table["value"]
    assert pandas.DataFrame(dict(table)).equals(frame)
    stp = frame[frame.measure == "stp"].groupby("policy")["value"].mean()
    assert set(stp.index) == {"linux", "workover"}


def test_polars(table: consort.Table) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table)
    assert frame.columns == table.columns
    assert frame["value"].to_list() == table["value"]
    assert frame["program"].to_list() == table["program"]
    assert frame.schema["seed"] == polars.UInt64 and frame.schema["value"] == polars.Float64


def test_duckdb(table: consort.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql("select value from table where measure = 'stp'".replace("table", '"table"'))
    stp = [v for m, v in zip(table["measure"], table["value"]) if m == "stp"]
    assert [row[0] for row in rows.fetchall()] == stp


def test_files_are_read_back(table: consort.Table, tmp_path: Path) -> None:
    for end in ("csv", "arrow", "parquet"):
        table.write(tmp_path / f"t.{end}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.arrow", "t.csv", "t.parquet"]
    values, programs = table["value"], table["program"]
    polars = pytest.importorskip("polars")
    for frame in (
        polars.read_csv(tmp_path / "t.csv"),
        polars.read_ipc(tmp_path / "t.arrow"),
        polars.read_parquet(tmp_path / "t.parquet"),
    ):
        assert frame["value"].to_list() == values
        assert frame["program"].to_list() == programs
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"select value, program from '{tmp_path / 't.parquet'}'").fetchall()
    assert rows == list(zip(values, programs))
    rows = duckdb.sql(f"select value from '{tmp_path / 't.csv'}'").fetchall()
    assert [row[0] for row in rows] == values
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(tmp_path / "t.csv")
    assert frame["value"].tolist() == values


def test_other_names_are_refused(table: consort.Table, tmp_path: Path) -> None:
    with pytest.raises(consort.InputError, match="expected one that ends in .csv, .arrow or .parquet"):
        table.write(tmp_path / "t.xlsx")
    with pytest.raises(KeyError, match="did you mean 'value'"):
        table["valeu"]
    assert list(tmp_path.iterdir()) == []
