"""Types of the Rust part of the package. Units are in names and docstrings."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, final

from typing_extensions import CapsuleType

from ._policy import Policy

__all__ = [
    "Comparison",
    "Core",
    "Decision",
    "Machine",
    "Model",
    "Program",
    "Run",
    "Study",
    "Table",
    "Thread",
    "Topology",
    "Validation",
    "View",
    "Workload",
    "__version__",
    "compare",
    "machines",
    "map",
    "policies",
    "profile",
    "programs",
    "reproduce",
    "simulate",
    "studies",
    "train",
    "validate",
]
__version__: str

@final
class Table:
    """A table of results, for data frames through the Arrow C stream interface."""

    @property
    def columns(self) -> list[str]: ...
    @property
    def units(self) -> dict[str, str | None]:
        """Unit of each column, None for texts, counts and plain ratios."""

    def keys(self) -> list[str]: ...
    def __getitem__(self, key: str, /) -> list[Any]: ...
    def __len__(self, /) -> int: ...
    def to_pandas(self) -> Any:
        """A pandas.DataFrame; needs pandas, and nothing else."""

    def to_csv(self) -> str: ...
    def write(self, path: str | PathLike[str]) -> None:
        """Writes FILE.csv, FILE.arrow or FILE.parquet."""

    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...

@final
class Core:
    """The CPUs that share execution units."""

    @property
    def pus(self) -> list[int]: ...
    @property
    def package(self) -> int: ...
    @property
    def node(self) -> int: ...
    @property
    def llc(self) -> int: ...
    @property
    def core_type(self) -> str: ...
    @property
    def capacity(self) -> int:
        """Relative to the largest type, which has 1024."""

@final
class Topology:
    """A machine's CPUs and how they share hardware."""

    @property
    def pus(self) -> list[int]: ...
    @property
    def cores(self) -> list[Core]: ...
    @property
    def packages(self) -> list[list[int]]: ...
    @property
    def nodes(self) -> list[list[int]]: ...
    @property
    def llcs(self) -> list[list[int]]: ...
    @property
    def smt(self) -> int: ...

@final
class Machine:
    """A described machine."""

    @staticmethod
    def load(name: str) -> Machine: ...
    def with_(self, **values: float | str | bool | Sequence[float | str | bool]) -> Machine:
        """The machine with values changed, by the dotted names of their keys; units are in these."""

    def get(self, key: str) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def topology(self) -> Topology: ...
    def to_toml(self) -> str: ...

@final
class Program:
    """A described program."""

    @staticmethod
    def load(name: str) -> Program: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def suite(self) -> str: ...
    @property
    def threads(self) -> int: ...
    def to_toml(self) -> str: ...
    def save(self, path: str | PathLike[str]) -> None: ...

@final
class Workload:
    """Programs that run together."""

    @staticmethod
    def load(text: str) -> Workload: ...
    @staticmethod
    def of(members: Sequence[Program | tuple[Program, int] | tuple[Program, int, int]]) -> Workload:
        """A workload of programs: each alone, or with threads, or with threads and copies."""

    @property
    def text(self) -> str: ...
    @property
    def programs(self) -> list[str]: ...
    @property
    def threads(self) -> list[int]: ...

@final
class View:
    """A machine and the activity of its threads in the last quantum."""

    @property
    def topology(self) -> Topology: ...
    @property
    def threads(self) -> list[Thread]: ...
    @property
    def time_s(self) -> float: ...
    @property
    def interval_s(self) -> float: ...
    @property
    def seed(self) -> int:
        """64 bits drawn for this decision, the only randomness that a policy may use."""

@final
class Thread:
    """Activity of a software thread in the last quantum."""

    @property
    def id(self) -> int: ...
    @property
    def program(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def managed(self) -> bool: ...
    @property
    def original(self) -> list[int]: ...
    @property
    def last_pu(self) -> int | None: ...
    @property
    def cpu_time_ns(self) -> float: ...
    @property
    def cpu_share(self) -> float: ...
    @property
    def wanted_share(self) -> float: ...
    def get(self, signal: str) -> float | None:
        """Value of a signal over the quantum, in the signal's unit; None where nothing tells."""

    @property
    def mix(self) -> dict[str, float] | None: ...
    @property
    def stack(self) -> dict[str, float] | None: ...

@final
class Decision:
    """Places of threads in the next quantum, paused programs, numbers of threads of programs."""

    quantum_ms: float | None
    def __new__(cls) -> Decision: ...
    def place(self, thread: int, pus: int | Sequence[int] | None, reason: str = ...) -> None: ...
    def pause(self, program: int) -> None: ...
    def team(self, program: int, threads: int) -> None: ...
    def note(self, text: str) -> None: ...
    @property
    def placements(self) -> dict[int, list[int] | None]: ...

@final
class Comparison:
    """A workload under several policies, many times."""

    def table(self, name: str = "policies") -> Table:
        """One of "policies", "runs", "programs", "long"."""

    @property
    def machine(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def runs(self) -> int: ...
    @property
    def baseline(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def policies(self) -> list[str]: ...
    @property
    def decision_us(self) -> list[tuple[str, float]]:
        """Mean host time of a decision by policy, µs."""

    def to_json(self) -> str: ...

@final
class Run:
    """One run of a workload under a policy."""

    def table(self, name: str = "programs") -> Table:
        """One of "programs", "runs", "long"."""

    @property
    def policy(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def stp(self) -> float: ...
    @property
    def antt(self) -> float: ...
    @property
    def unfairness(self) -> float: ...
    @property
    def makespan_s(self) -> float: ...
    @property
    def energy_j(self) -> float: ...
    @property
    def moves(self) -> int: ...
    @property
    def decision_us(self) -> float: ...
    @property
    def decisions(self) -> list[dict[int, list[int] | None]]: ...
    def to_json(self) -> str: ...

@final
class Study:
    """A finished study."""

    def table(self, name: str = "headline") -> Table:
        """One of ``tables``, or "long"."""

    @property
    def tables(self) -> list[str]: ...
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def seed(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    def write(self, folder: str | PathLike[str]) -> list[str]: ...
    def to_json(self) -> str: ...

@final
class Validation:
    """Figures of the simulation beside published and measured ones."""

    def table(self, name: str = "checks") -> Table: ...
    @property
    def laws_hold(self) -> bool: ...
    def to_json(self) -> str: ...

@final
class Model:
    """An interference model."""

    @property
    def machine(self) -> str: ...
    @property
    def components(self) -> list[str]: ...
    def table(self, name: str = "accuracy") -> Table: ...
    def to_toml(self) -> str: ...
    def save(self, path: str | PathLike[str]) -> None: ...

type _Machine = Machine | str
type _Workload = (
    Workload | str | Sequence[Program | tuple[Program, int] | tuple[Program, int, int]]
)
type _Policy = str | Policy | type[Policy]

def machines() -> list[str]: ...
def programs(suite: str | None = None) -> list[str]: ...
def policies() -> list[str]: ...
def studies() -> list[str]: ...
def compare(
    machine: _Machine,
    workload: _Workload,
    policies: Sequence[_Policy],
    *,
    runs: int = 10,
    seed: int = 1,
    baseline: str | None = None,
    alone_s: float = 30.0,
    quantum_ms: float | None = None,
    os: str = "linux",
    jobs: int | None = None,
) -> Comparison:
    """Runs a workload under several policies, many times, with successive seeds."""

def simulate(
    machine: _Machine,
    workload: _Workload,
    policy: _Policy | None = None,
    *,
    seed: int = 1,
    alone_s: float = 30.0,
    quantum_ms: float | None = None,
    os: str = "linux",
    decisions: bool = False,
) -> Run:
    """Runs a workload on a simulated machine under a policy, once."""

def reproduce(
    study: str,
    *,
    quick: bool = False,
    seed: int | None = None,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
) -> Study:
    """Runs a published experiment again."""

def validate(
    groups: Sequence[str] | None = None,
    *,
    quick: bool = False,
    seed: int = 1,
    jobs: int | None = None,
) -> Validation:
    """Checks the simulation against published figures, laws and a real kernel."""

def train(
    machine: _Machine,
    programs: Sequence[str] | None = None,
    *,
    ways: Sequence[int] | None = None,
    folds: int = 5,
    seed: int = 1,
    quick: bool = False,
    jobs: int | None = None,
) -> Model:
    """Trains an interference model from simulated runs."""

def map(
    machine: _Machine,
    workload: _Workload,
    mappings: Sequence[str] | None = None,
    *,
    runs: int = 1,
    times: int = 3,
    alone_s: float = 1.0,
    os: str = "linux",
    seed: int = 1,
    jobs: int | None = None,
) -> Study:
    """Runs a workload under thread mappings and tells which resource decides between them."""

def profile(
    command: Sequence[str],
    *,
    skip: int = 0,
    instructions: int | None = None,
    name: str | None = None,
) -> Program:
    """Runs a command under an emulator and returns its demands on a processor, as a program."""
