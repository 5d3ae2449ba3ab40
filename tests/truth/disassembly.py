"""The text of each executed instruction, by objdump.

Pitfalls: objdump sweeps a section from its start, so data between functions may put it out of
step until the next symbol; addresses that it steps over have no text and count as unknown, as
does code that a program wrote at run time.
"""

import os
import subprocess


def texts(path, offsets):
    """{offset: text} of those of the offsets that objdump shows an instruction at."""
    if not os.path.isfile(path):
        return {}
    wanted = set(offsets)
    found = {}
    command = ["objdump", "-d", "-w", "-M", "intel", "--no-show-raw-insn"]
    bounds = [f"--start-address={min(wanted):#x}", f"--stop-address={max(wanted) + 16:#x}"]
    with subprocess.Popen([*command, *bounds, path], stdout=subprocess.PIPE, text=True) as objdump:
        for line in objdump.stdout:
            address, mark, text = line.partition(":\t")
            if mark and (offset := int(address, 16)) in wanted:
                found[offset] = text.strip()
    return found
