"""The memory that runs may use, and the number of runs that fit into it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tcplab import _core
from tcplab._store.run_groups import InMemory

UNITS = {
    **{"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12},
    **{"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
}

CGROUP = Path("/sys/fs/cgroup")
"""The control group of this process, as seen inside a container."""

UNKNOWN = 4 * 10**9
"""The amount that counts as free where the system reports none."""


def amount(text: str) -> int:
    """A size with its unit, such as "4 GB", in bytes.

    Raises:
        ValueError: The text is not a size.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?i?B)\s*", text)
    if found is None or found[2] not in UNITS or not (size := float(found[1]) * UNITS[found[2]]):
        raise ValueError(f'memory: {text} is not a size; write it like "4 GB"')
    return int(size)


def written(size: int) -> str:
    """Bytes as text, in the largest unit that gives at least 1: "1.5 GB"."""
    unit = next((unit for unit in ("TB", "GB", "MB", "kB") if size >= UNITS[unit]), "B")
    return f"{size / UNITS[unit]:.3g} {unit}"


def free() -> int:
    """The number of bytes that this process could still allocate."""
    sizes = []
    with suppress(OSError, ValueError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = dict(line.split(":", 1) for line in lines)["MemAvailable"].split()[0]
        sizes.append(int(kilobytes) * 1024)
    # Without a limit, `memory.max` holds a word.
    with suppress(OSError, ValueError):
        most, used = (
            int((CGROUP / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
        sizes.append(max(most - used, 0))
    return min(sizes, default=UNKNOWN)


@dataclass
class Budget:
    """The memory of all runs together."""

    size: int
    kept: int = 0
    """The bytes held by tables of finished runs that stay in memory."""

    @classmethod
    def of(cls, memory: str | None) -> Budget:
        """The amount asked for, or half of what is free."""
        if memory is not None and not isinstance(memory, str):
            raise TypeError(f'memory: text like "4 GB" is needed, not a {type(memory).__name__}')
        return cls(free() // 2 if memory is None else amount(memory))

    def threads(self, plans: Sequence[_core.Plan], wanted: int) -> int:
        """The number of these runs that may go on at once; at most `wanted`.

        Raises:
            ConfigError: Not even one run fits.
        """
        largest = max(plans, key=lambda plan: plan.memory)
        largest.fit(self.size)
        return max(min(wanted, len(plans), self.size // max(largest.memory, 1)), 1)

    def keep(self, tables: InMemory) -> InMemory:
        """Counts tables that stay in memory.

        Raises:
            ConfigError: The tables exceed the budget.
        """
        self.kept += sum(int(frame.estimated_size()) for frame in tables.frames.values())
        self.kept += sum(len(one) for files in tables.contents.values() for one in files.values())
        if self.kept > self.size:
            raise _core.ConfigError(
                f"the tables of all runs take more than {written(self.size)} of memory; store "
                "them in a folder (`out`), or raise `memory`"
            )
        return tables
