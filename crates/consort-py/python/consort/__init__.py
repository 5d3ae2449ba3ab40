"""Consort decides which threads share which parts of a processor.

Simulate programs on described machines, compare policies, write one of your own::

    import consort

    r = consort.compare("power8:smt=2", "mix:spec2006/20?seed=7", ["linux", "workover"], runs=10)
    r.table().to_pandas()

The same seed gives the same numbers as the command line ``consort``, on every host.
"""

from __future__ import annotations

from ._consort import (
    Comparison,
    Core,
    Decision,
    Machine,
    Model,
    Program,
    Run,
    Study,
    Table,
    Thread,
    Topology,
    Validation,
    View,
    Workload,
    __version__,
    compare,
    machines,
    map,
    policies,
    profile,
    programs,
    reproduce,
    simulate,
    studies,
    train,
    validate,
)
from ._errors import ConsortError, InputError, RunError
from ._policy import Place, Policy

__all__ = [
    "Comparison",
    "ConsortError",
    "Core",
    "Decision",
    "InputError",
    "Machine",
    "Model",
    "Place",
    "Policy",
    "Program",
    "Run",
    "RunError",
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
