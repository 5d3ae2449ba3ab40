#!/usr/bin/env python3
"""Profiles the programs of Splash-3 and writes what was measured into the simulator's program files.

    profile.py measure FOLDER CONSORT [NAME..]   FOLDER/profiles/NAME.toml, with `consort profile`
    profile.py merge FOLDER [NAME..]             from there into crates/consort-describe/programs

FOLDER is what `measure.py build` made. Phases come from the profile: mix, code, stretches,
parallelism, mispredictions, miss curves, overlap, prefetching and pages. Barriers, locks, the serial
share and spinning stay those of measure.py, which sees every event. The shares of data and code that
threads have in common stay, too, because windows contain too few of the lines. Lengths are of all
threads together; the profile's are those of its first thread, which executes the serial share alone.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from programs import PROGRAMS

HERE = Path(__file__).resolve().parent
SHIPPED = HERE.parent.parent / "crates/consort-describe/programs"
#: Threads of the files that are shipped.
THREADS = 4
#: Longest line of a program file, but for stretches.
LONGEST = 180


def measure(folder: Path, consort: Path, names: list[str]) -> None:
    """Profiles programs with the inputs of programs.py."""
    out = folder / "profiles"
    out.mkdir(exist_ok=True)
    for name in names:
        program = PROGRAMS[name]
        place = folder / "codes" / program.folder
        # Complete or not there, so that merge never takes half of the programs for all.
        part = out / f"{name}.part.toml"
        command = [consort, "profile", "--force", "-o", part, "--format", "json", "--"]
        command += [place / program.binary, *program.command(THREADS)]
        done = subprocess.run(
            command,
            check=True,
            cwd=place / program.below,
            input=program.input(THREADS),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        (out / f"{name}.json").write_text(done.stdout, encoding="utf-8")
        part.rename(out / f"{name}.toml")
        print(name, flush=True)


def how_measured(name: str, measured: dict) -> dict[str, str]:
    """The sources of a measured file: program, version, input and command; and the sampling."""
    program = PROGRAMS[name]
    binary = " ".join([program.binary, *program.command(THREADS)])
    given = ", input in tests/splash/programs.py" if program.stdin else ""
    sampling = measured["sources"]["profile"]
    windows = re.search(r"windows of (\d+)000 instructions every (\d+)000000", sampling)
    sampled = f"windows of {windows[1]}k every {windows[2]}M" if windows else "every instruction"
    how = f"{binary}{given}, {sampled} (tests/splash/profile.py)"
    return {"profile": f"consort profile of Splash-3, gcc 12.2 -O2, {how}"}


def number(value: float | int, digits: int) -> str:
    """A number as the files have it."""
    if isinstance(value, int):
        return str(value)
    text = f"{value:.{digits}f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def inline(value: object, digits: int = 4) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        pairs = (f"{key} = {inline(part, digits)}" for key, part in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(inline(part, digits) for part in value) + "]"
    return number(value, digits)


def rounded_mix(mix: dict) -> dict:
    """Shares of three digits that sum to 1 as before: integer operations are the rest."""
    shares = {key: round(share, 3) for key, share in mix.items()}
    shares["int"] = round(1.0 - sum(share for key, share in shares.items() if key != "int"), 3)
    return {**shares, "int": max(shares["int"], 0.0)}


def stretch_line(stretch: dict) -> str:
    """A stretch on one line; parts of a class are at most the class."""
    mix = rounded_mix(stretch["mix"])
    kept = {**stretch, "mix": mix}
    for key, whole in (("multiply", "int"), ("moves", "vector")):
        part = min(round(kept.pop(key, 0.0), 3), mix[whole])
        if part > 0.0:
            kept[key] = part
    return f"    {inline(kept, 3)}, # profile"


def stretch_lines(stretches: list[dict]) -> list[str]:
    """Stretches with a share of three digits, one per line; the shares sum to 1 as before."""
    kept = [{**stretch, "share": round(stretch["share"], 3)} for stretch in stretches]
    kept = [stretch for stretch in kept if stretch["share"] > 0.0]
    most = max(kept, key=lambda stretch: stretch["share"])
    most["share"] += 1.0 - sum(stretch["share"] for stretch in kept)
    return ["stretches = [", *map(stretch_line, kept), "]"]


def shares(chain: dict) -> dict:
    """A chain's operations per instruction without those that are 0 and may be left out."""
    kept = ("plain", "load", "fp")
    return {key: share for key, share in chain.items() if key in kept or share >= 0.00005}


def entry_lines(key: str, value: object) -> list[str]:
    """A key of a phase: on one line, or a line for each of its parts if that would be too long."""
    line = f"{key} = {inline(value)} # profile"
    if len(line) > LONGEST and isinstance(value, list) and isinstance(value[0], list):
        lines = [f"{key} = ["]
        for row in value:
            lines += ["    [", *(f"        {inline(shares(part))}, # profile" for part in row), "    ],"]
        return [*lines, "]"]
    if not isinstance(value, dict) or len(line) <= LONGEST:
        return [line]
    return [line for part, inner in value.items() for line in entry_lines(f"{key}.{part}", inner)]


def all_threads(lengths: list[float], executed: float, serial: float) -> list[float]:
    """Lengths of phases in instructions of all threads, from those of the first thread.

    The first thread executes the serial share of all by itself, at the beginning, and a part of the
    rest that is the same in all phases.
    """
    alone = serial * executed
    part = (executed - alone) / (sum(lengths) - alone)
    made, passed = [], 0.0
    for length in lengths:
        own = min(max(alone - passed, 0.0), length)
        made.append(own + (length - own) * part)
        passed += length
    return made


def phase_lines(phase: dict, length: float, size: str) -> list[str]:
    """A phase of a length, with a remark on the problem size."""
    lines = ["[[phase]]", f"length_ginstr = {length:.6f} # profile, all threads; {size}"]
    for key, value in phase.items():
        if key == "stretches":
            lines += stretch_lines(value)
        elif key != "length_ginstr":
            lines += entry_lines(key, value)
    return lines


def phases(name: str, measured: dict, executed: float, serial: float) -> str:
    """The measured phases, as long as all threads' instructions together."""
    own = [phase["length_ginstr"] for phase in measured["phase"]]
    lengths = all_threads(own, executed / 1e9, serial)
    size = "the scene of inputs is not distributed" if name == "raytrace" else "problem size of inputs"
    both = zip(measured["phase"], lengths)
    all_lines = ("\n".join(phase_lines(phase, length, size)) for phase, length in both)
    return "\n\n".join(all_lines) + "\n"


def merged(shipped: str, text: str, name: str, executed: float) -> str:
    """The shipped file with what was measured."""
    measured = tomllib.loads(text)
    head = shipped[: shipped.index("[[phase]]")]
    source = "".join(f'{key} = "{text}"\n' for key, text in how_measured(name, measured).items())
    head = re.sub(r"(?m)^(profile|windows) = .*\n", "", head)
    # Only the estimates of caches below 32 KiB came from there.
    head = re.sub(r"(?m)^hartstein = .*\n", "", head)
    head = re.sub(r'(?m)^(splash = .*\n)', lambda found: found[1] + source, head)
    serial = tomllib.loads(shipped)["threads"]["serial_share"]
    return head + phases(name, measured, executed, serial)


def merge(folder: Path, names: list[str]) -> None:
    """Writes measured phases into the shipped files."""
    for name in names:
        measured = folder / "profiles" / f"{name}.toml"
        if not measured.exists():
            print(f"{name}: not measured; the file stays as it is")
            continue
        executed = json.loads(measured.with_suffix(".json").read_text())["executed"]
        shipped = SHIPPED / f"{name}.toml"
        shipped.write_text(merged(shipped.read_text(), measured.read_text(), name, executed))


def main(words: list[str]) -> None:
    """Does what the first word says."""
    if words[:1] == ["measure"] and len(words) >= 3:
        measure(Path(words[1]).resolve(), Path(words[2]).resolve(), words[3:] or list(PROGRAMS))
    elif words[:1] == ["merge"] and len(words) >= 2:
        merge(Path(words[1]).resolve(), words[2:] or list(PROGRAMS))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
