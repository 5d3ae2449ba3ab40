"""Makes the larger inputs of the catalogue: the same bytes on every host."""

import array
import math
import pathlib
import wave

FOLDER = pathlib.Path(__file__).parent / "inputs"
WORDS = "core thread cache queue plan stack quantum sample node cluster share slow fast move".split()
RATE_HZ = 44_100


def numbers(seed):
    """An endless stream of 31-bit numbers (a linear congruential generator)."""
    while True:
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        yield seed >> 8


def text(path, kibibytes):
    """Lines of words and figures, about as compressible as a log."""
    draw = numbers(7)
    with open(path, "w", encoding="ascii") as file:
        while file.tell() < kibibytes * 1024:
            words = (WORDS[next(draw) % len(WORDS)] for _ in range(6))
            file.write(f"{next(draw) % 100000:05d} {' '.join(words)} {next(draw):x}\n")


def audio(path, seconds):
    """A chord with vibrato and some noise, 16 bits, two channels."""
    draw = numbers(11)
    samples = array.array("h")
    for i in range(int(seconds * RATE_HZ)):
        t = i / RATE_HZ
        tone = sum(math.sin(2 * math.pi * hz * t + math.sin(5 * t)) for hz in (220, 277, 330, 1760))
        level = int(5000 * tone) + next(draw) % 512
        samples.extend((level, level // 2))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(samples.tobytes())


def picture(path, width):
    """A portable pixmap with gradients and waves."""
    height = width * 3 // 4
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            wave_level = int(127 * math.sin(x * y / 900) + 128)
            pixels += bytes((x * 255 // width, y * 255 // height, wave_level))
    path.write_bytes(b"P6 %d %d 255\n" % (width, height) + pixels)


def query(path, rows):
    """The queries over a table of so many rows."""
    fill("orders.sql", path, rows)


def model(path, places):
    """The linear programme with so many places."""
    fill("transport.mod", path, places)


def fill(template, path, scale):
    """Writes a file of the folder of inputs with its {scale} filled in."""
    path.write_text((FOLDER / template).read_text().replace("{scale}", str(scale)))


MAKERS = {"text": text, "audio": audio, "picture": picture, "query": query, "model": model}


def make(kind, path, scale):
    """Makes the input of that kind at a path; `scale` is the size in the kind's own unit."""
    MAKERS[kind](path, scale)
