"""Runs a notebook from start to end: ``python notebook.py NOTEBOOK OUT [FOLDER]``.

Any error of a cell ends it. OUT gets the notebook with its outputs, FOLDER its figures as PNG.
"""

from __future__ import annotations

import base64
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main(source: str, out: str, folder: str | None = None) -> None:
    notebook = nbformat.read(source, as_version=4)
    start = time.monotonic()
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    figures = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert figures and all(cell.execution_count for cell in code), "a cell was not run"
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, out)
    for number, figure in enumerate(figures if folder else []):
        (Path(folder or ".") / f"figure-{number}.png").write_bytes(base64.b64decode(figure))
    seconds = time.monotonic() - start
    print(f"notebook: {len(code)} cells, {len(figures)} figures in {seconds:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
