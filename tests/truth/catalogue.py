"""The catalogue of programs and how to make each one's command."""

import os
import pathlib
import shutil
import tomllib

import inputs

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parent.parent
SUFFIXES = {"audio": ".wav", "model": ".mod", "picture": ".ppm", "query": ".sql", "text": ".txt"}


class Missing(Exception):
    """A program is not installed."""


def programs():
    """All programs of the catalogue, by name."""
    with open(HERE / "programs.toml", "rb") as file:
        return {program["name"]: program for program in tomllib.load(file)["program"]}


def command(program, scale_key, folder):
    """The command of a program at its `truth` or `native` scale; makes its input in a folder."""
    scale = program[scale_key]
    values = {"scale": str(scale), "inputs": str(HERE / "inputs"), "demo": demo(program)}
    if kind := program.get("input"):
        path = pathlib.Path(folder) / f"{kind}-{scale}{SUFFIXES[kind]}"
        if not path.exists():
            inputs.make(kind, path, scale)
        values["input"] = str(path)
    words = [fill(word, values) for word in program["command"]]
    tool = program.get("tool", words[0])
    if shutil.which(tool) is None:
        raise Missing(f"{tool} is not installed ({program.get('package', 'consort-demo')})")
    return words


def fill(word, values):
    """Replaces each {key} in a word."""
    for key, value in values.items():
        word = word.replace("{" + key + "}", value)
    return word


def demo(program):
    """Where consort-demo is; only our own programs need it."""
    if not program["ours"]:
        return ""
    built = REPOSITORY / "target" / "release" / "consort-demo"
    return os.environ.get("CONSORT_DEMO") or (str(built) if built.exists() else "consort-demo")
