"""Quantities of one kind: as numbers to count with, and as an experiment has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcplab._core import ConfigError
from tcplab._experiment.quantities import numbers

UNITS = {
    "mbit_s": "Mbit/s", "ms": "ms", "bytes": "B", "packets": "packets", "bdp": "BDP",
}  # fmt: skip


class Quantities:
    """Values by name, like the ends of a range."""

    def __init__(self, place: str, given: Mapping[str, Any]) -> None:
        """Reads the values.

        Raises:
            ConfigError: The values are not quantities of one kind.
        """
        texts = [str(value) for value in given.values()]
        read = numbers(texts)
        if read is None or read[0] == "boolean":
            several = " and ".join(texts)
            raise ConfigError(f"{place}: {several} are not {_count(len(texts))} of one kind")
        self.kind = read[0]
        self.numbers = {name: float(one) for name, one in zip(given, read[1], strict=True)}
        self._is_whole = self.kind in ("packets", "bytes") or (
            self.kind == "number" and all(isinstance(one, int) for one in given.values())
        )

    def text(self, number: float) -> Any:
        """A number as an experiment has it: with four digits that count, or whole."""
        value = round(number) if self._is_whole else float(f"{number:.4g}")
        unit = UNITS.get(self.kind)
        if unit is None:
            return value
        return f"{value} {unit}" if self._is_whole else f"{value:g} {unit}"


def _count(number: int) -> str:
    return {1: "a quantity", 2: "two quantities"}.get(number, "quantities")
