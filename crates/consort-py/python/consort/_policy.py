"""Policies that are written in Python."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import ClassVar, Union

from ._consort import Decision, View

#: CPUs of a thread: one, several, or None for wherever it may run.
Place = Union[int, Sequence[int], None]


class Policy:
    """A policy: decides once per quantum where each thread may run.

    Derive from it and write ``decide``. Give the class to ``compare`` or ``simulate``: each run then
    has an instance of its own, made without arguments. Give an instance where it has options: each
    run then has a deep copy of it. What an instance remembers between decisions is its own; the only
    randomness that it may use is ``view.seed``.
    """

    #: Name in tables; that of the class where it is None.
    name: ClassVar[str | None] = None
    #: Signals without which it cannot decide, by name; a machine that lacks one refuses the policy.
    needs: ClassVar[Sequence[str]] = ("cpu-time",)
    #: Usual quantum, ms.
    quantum_ms: ClassVar[int] = 100

    def decide(self, view: View) -> Decision | Mapping[int, Place] | None:
        """Decides the next quantum: a Decision, or CPUs by thread id, or None for no restrictions."""
        raise NotImplementedError(f"{type(self).__name__}.decide(view) is not written")


def today() -> str:
    """The day, UTC; that of SOURCE_DATE_EPOCH where it is set."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    zone = datetime.timezone.utc
    now = datetime.datetime.fromtimestamp(int(epoch), zone) if epoch else datetime.datetime.now(zone)
    return now.date().isoformat()
