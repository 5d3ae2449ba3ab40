#!/usr/bin/env python3
"""Builds Splash-3 and measures how its programs synchronise. README.md is the tour.

    measure.py build ARCHIVE FOLDER            unpack, adapt the macros, build
    measure.py count FOLDER THREADS [NAME..]   instructions between events, under QEMU
    measure.py time FOLDER THREADS RUNS [NAME..]   calls and processor time, natively
"""

import os
import subprocess
import sys
from pathlib import Path

from programs import PROGRAMS

HERE = Path(__file__).resolve().parent
PLUGIN_API = HERE.parent.parent / "crates/consort-profile/plugin"
MARK = "`{{ extern long syscall(long, ...); syscall(0x5350, {}); }}')"


def macro(text: str, name: str) -> str:
    """The definition of one m4 macro, whole."""
    start = text.index(f"define({name},")
    return text[start : text.index("')", start) + 2]


def adapt(folder: Path) -> None:
    """Barriers of the C library, and markers of the region of interest that are heard."""
    macros = folder / "codes/pthread_macros"
    main = macros / "pthread.m4.stougie"
    text, other = main.read_text(), (macros / "pthread.m4.POSIX_BARRIER").read_text()
    for name in ("BARRIER", "BARDEC", "BARINIT"):
        text = text.replace(macro(text, name), macro(other, name))
    for name, event in (("SPLASH3_ROI_BEGIN", 1), ("SPLASH3_ROI_END", 2)):
        text = text.replace(f"define({name}, `')", f"define({name}, " + MARK.format(event), 1)
    main.write_text(text)
    # Some sources are distributed as they came out of other macros.
    for template in (folder / "codes").rglob("*.in"):
        template.with_suffix("").unlink(missing_ok=True)


def compile_library(folder: Path, name: str, *flags: str) -> None:
    """One of the libraries beside this file."""
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-I", str(PLUGIN_API)]
    target = folder / f"{name}.so"
    subprocess.run([*command, "-o", target, HERE / f"{name}.c", *flags], check=True)


def build(archive: str, folder: Path) -> None:
    """Unpacks and builds everything."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "xf", archive, "-C", folder], check=True)
    adapt(folder)
    with open(folder / "make.log", "w", encoding="utf-8") as log:
        subprocess.run(["make", "-C", folder / "codes"], check=True, stdout=log, stderr=log)
    compile_library(folder, "meter", "-DCONSORT_API=1", "-lpthread")
    compile_library(folder, "tell", "-ldl")
    compile_library(folder, "region", "-ldl")
    subprocess.run(["gcc", "-O2", "-o", folder / "pair", HERE / "pair.c", "-lpthread"], check=True)


def run(folder: Path, name: str, threads: int, before: list[str], env: dict[str, str]) -> None:
    """Runs one program with its input."""
    program = PROGRAMS[name]
    place = folder / "codes" / program.folder
    command = [*before, str(place / program.binary), *program.command(threads)]
    subprocess.run(
        command,
        check=True,
        cwd=place / program.below,
        input=program.input(threads),
        text=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **env},
    )


def emulate(folder: Path, out: Path) -> tuple[list[str], dict[str, str]]:
    """What stands before a command that is counted, and its environment."""
    command = ["qemu-x86_64", "-plugin", f"{folder}/meter.so,out={out}"]
    return command, {"QEMU_SET_ENV": f"LD_PRELOAD={folder}/tell.so,LD_BIND_NOW=1"}


def count(folder: Path, threads: int, names: list[str]) -> None:
    """Writes count-NAME-THREADS.txt for each program, and count-pair.txt for locks of nothing."""
    pair, env = emulate(folder, folder / "count-pair.txt")
    subprocess.run([*pair, str(folder / "pair")], check=True, env={**os.environ, **env})
    for name in names:
        out = folder / f"count-{name}-{threads}.txt"
        command, env = emulate(folder, out.with_suffix(".part"))
        run(folder, name, threads, command, env)
        out.with_suffix(".part").rename(out)
        print(out, flush=True)


def time(folder: Path, threads: int, runs: int, names: list[str]) -> None:
    """Appends a line per run to time-NAME-THREADS.txt."""
    for _ in range(runs):
        for name in names:
            out = folder / f"time-{name}-{threads}.txt"
            env = {"LD_PRELOAD": f"{folder}/region.so", "REGION_OUT": str(out)}
            run(folder, name, threads, [], env)
    print(f"{runs} runs at {threads} threads")


def main(words: list[str]) -> None:
    """Does what the first word says."""
    if words[:1] == ["build"] and len(words) == 3:
        build(words[1], Path(words[2]).resolve())
    elif words[:1] == ["count"] and len(words) >= 3:
        count(Path(words[1]).resolve(), int(words[2]), words[3:] or list(PROGRAMS))
    elif words[:1] == ["time"] and len(words) >= 4:
        time(Path(words[1]).resolve(), int(words[2]), int(words[3]), words[4:] or list(PROGRAMS))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
