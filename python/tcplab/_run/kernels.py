"""Kernels for the backend `linux`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import PathLike, fspath

from tcplab import _core
from tcplab._core import Kernel
from tcplab._run.progress import Stages

DEFAULT_KERNEL = "6.12"
"""The kernel that experiments run on if they name none."""

Path = str | PathLike[str]


def build_kernel(
    version: str = DEFAULT_KERNEL,
    *,
    source: Path | None = None,
    hz: int = 1000,
    congestion_controls: Sequence[Path] = (),
    name: str | None = None,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Kernel:
    """Builds a kernel and keeps it; one that is there already is not built again.

    Args:
        version: The version of Debian's source to build from: "6.12" or "6.1".
        source: A source tree, or a tarball of one, to build from instead. It is not written to.
        hz: How often the kernel's timer ticks in a second, from 100 to 1000. TCP's timers count
            these ticks.
        congestion_controls: C files with congestion controls to compile in. One with the name of a
            file in net/ipv4 takes its place.
        name: What the kernel is called; by default its version and what differs from the default.
            Another kernel of this name is replaced.
        jobs: How many files are compiled at once; by default as many as there are processors.
        progress: Whether progress is shown on standard error: by default as a bar on a terminal,
            and as a line now and then elsewhere.

    Raises:
        KernelError: It cannot be built.
        KeyboardInterrupt: Ctrl-C. Nothing is left of the build.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs: {jobs} is less than 1")
    wish = {
        "version": version,
        "source": None if source is None else fspath(source),
        "hz": hz,
        "congestion_controls": [fspath(file) for file in congestion_controls],
        "name": name,
        "jobs": jobs,
    }
    with Stages(show=progress) as stages:
        try:
            return _core.build_kernel(wish, stages.tick)
        except KeyboardInterrupt:
            message = "interrupted; nothing is left of the build"
            raise KeyboardInterrupt(message) from None


def build_missing(plans: Sequence[_core.Plan], progress: bool | None) -> bool:
    """Builds the default kernel where a plan is for it and it is not there. Says whether it did."""
    if all(plan.kernel != DEFAULT_KERNEL for plan in plans):
        return False
    found = [known for known in _core.kernels() if known.name == DEFAULT_KERNEL]
    if found and not found[0].is_outdated:
        return False
    if progress is not False:
        why = "is of another version of tcplab" if found else "is not there yet"
        said = f"the kernel {DEFAULT_KERNEL} {why}; building it, which takes some minutes"
        sys.stderr.write(_core.printable(said) + "\n")
        sys.stderr.flush()
    build_kernel(progress=progress)
    return True


def kernels() -> list[Kernel]:
    """The kernels there are, in the order of their names.

    Each has a `name`, a `release`, the `hz` of its timer, its `congestion_controls`, the `source`
    and `compiler` it was built from and with, its `folder`, and `is_outdated`: whether another
    version of tcplab has built it, so that it must be built again. A `key` stands for all that
    decides what it does.
    """
    return _core.kernels()


def remove_kernel(name: str) -> None:
    """Removes a kernel. Runs that are using it are not disturbed.

    Raises:
        KernelError: There is none of this name.
    """
    _core.remove_kernel(name)
