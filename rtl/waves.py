"""Draws the lines of sim/wave.cpp as an SVG: a column for each cycle in which something changes."""

import csv
import sys

COLUMN, ROW, LEFT = 46, 30, 110


def level(row, column, high, before):
    """A bit's line over one column."""
    top = 30 + row * ROW + 6
    y = top if high else top + 16
    edge = "" if before is None or before == high else f"M{column} {top}V{top + 16}"
    return f'<path d="{edge}M{column} {y}H{column + COLUMN}" stroke="#1f5fa8" fill="none"/>'


def word(row, column, text):
    """A vector or number in its box."""
    top = 30 + row * ROW + 4
    return (
        f'<rect x="{column}" y="{top}" width="{COLUMN}" height="20" fill="none" stroke="#888"/>'
        f'<text x="{column + COLUMN / 2}" y="{top + 14}" text-anchor="middle">{text}</text>'
    )


def draw(rows, names):
    width, height = LEFT + COLUMN * len(rows) + 10, 40 + ROW * len(names)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/><text x="4" y="20">cycle</text>',
    ]
    for at, row in enumerate(rows):
        x = LEFT + at * COLUMN
        out.append(f'<text x="{x + COLUMN / 2}" y="20" text-anchor="middle">{row["cycle"]}</text>')
    for line, name in enumerate(names):
        out.append(f'<text x="4" y="{30 + line * ROW + 18}">{name}</text>')
        before = None
        for at, row in enumerate(rows):
            x, value = LEFT + at * COLUMN, row[name]
            if name in ("user", "idle") or name.endswith("_id"):
                out.append(word(line, x, value))
            else:
                out.append(level(line, x, value == "1", before))
                before = value == "1"
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    rows = list(csv.DictReader(sys.stdin))
    names = [name for name in rows[0] if name != "cycle"]
    if "--turns" in sys.argv:
        names = [name for name in names if name not in ("ready", "decided")]
    sys.stdout.write(draw(rows, names))


if __name__ == "__main__":
    main()
