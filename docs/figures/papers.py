#!/usr/bin/env python3
"""Writes the tables of published figures next to ours into the pages of docs/research.

    papers.py DIR      take results from DIR, where `consort reproduce ID... --out DIR` put them
    papers.py          write the tables anew from published-ours.csv and the study files
    papers.py --check  exit with 1 if a page differs from what would be written

Results of studies that DIR does not have stay as they are. Published figures are those of
crates/consort-lab/data/published.csv; reasons are those of the study files.
"""

import csv
import fnmatch
import math
import pathlib
import re
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STUDIES = ROOT / "crates/consort-lab/studies"
PUBLISHED = ROOT / "crates/consort-lab/data/published.csv"
OURS = HERE / "published-ours.csv"
PAGES = HERE.parent / "research"
COLUMNS = "study,row,column,published,unit,section,ours,half_width,runs,verdict".split(",")
# A longer table is folded.
LONG = 20


def read_csv(path):
    with path.open(newline="") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def short(number):
    """A number of a result with six digits, so that the file does not depend on the last bits."""
    try:
        return f"{float(number):.6g}"
    except ValueError:
        return number


def verdict(result):
    direction, size = result["direction"], result["within_third"]
    if size == "yes":
        return "size only" if direction == "no" else "agrees"
    return "direction only" if direction == "yes" else "differs"


def with_results(folder):
    """All published figures, with results of `folder` or else with those that are known."""
    known = {(row["study"], row["row"]): row for row in (read_csv(OURS) if OURS.exists() else [])}
    rows = []
    for figure in read_csv(PUBLISHED):
        study, name = figure["study"], figure["row"]
        row = dict.fromkeys(COLUMNS, "")
        row.update(study=study, row=name, published=figure["value"], unit=figure["unit"])
        row.update(section=figure["section"], verdict="not run")
        old = known.get((study, name), {})
        for key in ("column", "ours", "half_width", "runs", "verdict"):
            row[key] = old.get(key) or row[key]
        path = folder / f"{study}-reference.csv" if folder else None
        if path and path.exists():
            found = [result for result in read_csv(path) if result["published"] == name]
            row.update(column="", ours="", half_width="", runs="", verdict="no figure of ours")
            for result in filter(lambda result: result["ours"], found):
                row["column"] = f"{result['table']}.{result['column']}"
                row["ours"] = short(result["ours"])
                row["half_width"] = short(result.get("ours_ci95", ""))
                row["runs"] = result.get("ours_n", "")
                row["verdict"] = verdict(result)
        rows.append(row)
    return rows


def write_csv(rows):
    with OURS.open("w", newline="") as out:
        out.write("# Figures that the sources print, and ours of full runs: docs/figures/papers.py\n")
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def places(number, digits):
    """Decimals that show so many digits of a number."""
    return min(4, max(0, digits - 1 - math.floor(math.log10(abs(number))))) if number else 0


def printed(row):
    """Ours with no more digits than its interval supports, and four at most."""
    try:
        value = float(row["ours"])
    except ValueError:
        return row["ours"]
    half = float(row["half_width"] or 0)
    value = 0.0 if abs(value) < 0.5e-4 else value
    if half == 0:
        return f"{value:,.{places(value, 3)}f}"
    digits = min(places(half, 2), places(value or half, 4))
    least = 10.0**-digits
    return f"{value:,.{digits}f} ± " + (f"<{least:g}" if half < least / 2 else f"{half:,.{digits}f}")


def cell(text):
    text = re.sub(r"(?<=\d)\.\.(?=-?\d)", " to ", text)
    text = re.sub(r"^\d{5,}$", lambda match: f"{int(match[0]):,}", text)
    return text.replace("|", "\\|")


def score(rows):
    direction = [row for row in rows if row["verdict"] in ("agrees", "direction only", "differs", "size only")]
    agree = sum(row["verdict"] == "agrees" for row in direction)
    partly = sum(row["verdict"] == "direction only" for row in direction)
    if not rows:
        return "none in the data"
    if not direction:
        return f"{len(rows)} published figures, not run"
    return f"{agree} of {len(rows)} agree, {partly} in direction only"


def reasons(study, rows):
    """One entry per reason, with the figures that it is about."""
    patterns = [(entry["row"], entry.get("reason", "").strip()) for entry in study.get("published", [])]
    about = {}
    for row in rows:
        if row["verdict"] in ("agrees", "not run"):
            continue
        found = [reason for pattern, reason in patterns if fnmatch.fnmatchcase(row["row"], pattern)]
        reason = " ".join((found[0] if found else "").split())
        about.setdefault(reason or "Open question: no reason is known.", []).append(row["row"])
    lines = []
    for reason, names in about.items():
        more = f"; {len(names) - 3} more" if len(names) > 3 else ""
        lines.append(f"- *{'; '.join(names[:3])}{more}*: {reason}")
    return lines


def figures(study, rows):
    """The table of one study's figures, and the reasons below it."""
    lines = ["| figure | unit | published | ours | verdict | section |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = [row["row"], row["unit"], row["published"], printed(row), row["verdict"], row["section"]]
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
    if len(rows) > LONG:
        summary = f"<summary>{len(rows)} figures: {score(rows)}</summary>"
        lines = ["<details>", summary, "", *lines, "", "</details>"]
    why = reasons(study, rows)
    return lines + ([""] + why if why else [])


def overview(studies, rows):
    """The table of all studies of a source."""
    lines = ["| study | in the source | command | full run | figures |", "|---|---|---|---|---|"]
    for study in studies:
        name = study["id"]
        own = [row for row in rows if row["study"] == name]
        run = f"`consort reproduce {name}` | {study['full_seconds']} s"
        lines.append(f"| {study['title']} | {study['section']} | {run} | {score(own)} |")
    return lines


def fill(text, studies, rows):
    """The page's text with every table between its marks written anew."""

    def table(match):
        name = match[2]
        if match[1] == "table":
            own = [row for row in rows if row["study"] == name]
            body = figures(studies[name], own)
        else:
            of = [key for key in studies if re.fullmatch(rf"{name}\d+", key)]
            of.sort(key=lambda key: int(key[1:]))
            body = overview([studies[key] for key in of], rows)
        return "\n".join([f"<!-- {match[1]} {name} -->", "", *body, "", "<!-- end -->"])

    return re.sub(r"<!-- (table|studies) (\w+) -->\n.*?<!-- end -->", table, text, flags=re.DOTALL)


def main(arguments):
    check = arguments == ["--check"]
    folder = pathlib.Path(arguments[0]) if arguments and not check else None
    studies = [tomllib.loads(path.read_text()) for path in sorted(STUDIES.glob("*.toml"))]
    studies = {study["id"]: study for study in studies}
    rows = with_results(folder)
    stale = check and read_csv(OURS) != rows
    if stale:
        print("published-ours.csv differs from published.csv; run docs/figures/papers.py")
    if not check:
        write_csv(rows)
    for page in sorted(PAGES.rglob("*.md")):
        old = page.read_text()
        new = fill(old, studies, rows)
        if old != new and check:
            print(f"{page.name}: tables differ from published-ours.csv; run docs/figures/papers.py")
            stale = True
        elif old != new:
            page.write_text(new)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
