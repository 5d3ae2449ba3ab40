"""Exceptions of Consort."""

from __future__ import annotations


class ConsortError(Exception):
    """A call that Consort refuses, or a run that fails; the text is one line.

    Where the text is about a place in a file, ``file``, ``line`` (from 1) and ``key`` (for example
    ``core_type.big.smt[1].ways``) tell it; else they are None.
    """

    file: str | None
    line: int | None
    key: str | None

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.key = key


class InputError(ConsortError, ValueError):
    """A mistake of the caller: what was wrong, where, and what would be right."""


class RunError(ConsortError, RuntimeError):
    """A run that failed."""
