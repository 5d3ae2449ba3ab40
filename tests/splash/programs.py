"""The programs of Splash-3: where they are, and their inputs.

Inputs are those of Markovic's thesis, table 3.3, which the program files name. The scene `car` of
raytrace is not part of what is distributed; balls4 is the nearest that is.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One program: folder below `codes`, binary, arguments, and what it reads from stdin."""

    folder: str
    binary: str
    arguments: str = ""
    stdin: str = ""
    below: str = ""

    def command(self, threads: int) -> list[str]:
        """The words of the command, apart from the binary."""
        return self.arguments.format(p=threads).split()

    def input(self, threads: int) -> str:
        """What it reads from stdin."""
        return self.stdin.format(p=threads)


BARNES = "\n65536\n123\n\n0.025\n0.05\n1.0\n2.0\n5.0\n0.075\n0.25\n{p}\n"
FMM = "two cluster\nplummer\n65536\n1e-6\n{p}\n5\n.025\n0.0\ncost zones\n"
WATER = "  1.5e-16  4096  3   6\n -1      3000     3  0\n{p} 6.212752\n"

PROGRAMS = {
    "barnes": Program("apps/barnes", "BARNES", stdin=BARNES),
    "cholesky": Program("kernels/cholesky", "CHOLESKY", "-p{p} inputs/tk29.O"),
    "fmm": Program("apps/fmm", "FMM", stdin=FMM),
    "lu.cont": Program("kernels/lu/contiguous_blocks", "LU", "-n1024 -b64 -p{p}"),
    "lu.ncont": Program("kernels/lu/non_contiguous_blocks", "LU", "-n1024 -b64 -p{p}"),
    "ocean.cont": Program("apps/ocean/contiguous_partitions", "OCEAN", "-n514 -p{p}"),
    "ocean.ncont": Program("apps/ocean/non_contiguous_partitions", "OCEAN", "-n514 -p{p}"),
    "radiosity": Program("apps/radiosity", "RADIOSITY", "-p {p} -batch -largeroom -ae 5000 -en 0.05 -bf 0.1"),
    "radix": Program("kernels/radix", "RADIX", "-n8388608 -p{p}"),
    "raytrace": Program("apps/raytrace", "RAYTRACE", "-p{p} -m128 balls4.env", below="inputs"),
    "splash-fft": Program("kernels/fft", "FFT", "-m22 -p{p}"),
    "water.nsq": Program("apps/water-nsquared", "WATER-NSQUARED", stdin=WATER),
    "water.sp": Program("apps/water-spatial", "WATER-SPATIAL", stdin=WATER),
}
