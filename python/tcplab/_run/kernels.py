"""Kernels for the backend `linux`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import PathLike, fspath

from tcplab import _core
from tcplab._core import Kernel
from tcplab._run.progress import Stages

DEFAULT_KERNEL = "6.12"
"""The kernel for experiments that name none."""

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
    """Builds a kernel and keeps it. A kernel that exists already is not built again.

    Args:
        version: The version of Debian's source to build from: "6.12" or "6.1".
        source: A source tree, or a tarball of one, to build from instead. It is not written to.
        hz: How often the kernel's timer ticks in a second, from 100 to 1000. TCP's timers count
            these ticks.
        congestion_controls: C files with congestion controls to compile in. A file with the name of
            one in net/ipv4 replaces that one.
        name: The name of the kernel; by default its version and whatever differs from the default
            build. An existing kernel of this name is replaced.
        jobs: The number of files compiled at once; by default the number of processors.
        progress: Whether progress is shown on standard error: by default as a bar on a terminal,
            and as a line now and then elsewhere.

    Raises:
        KernelError: The kernel cannot be built.
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
    """Builds the default kernel if a plan needs it and it is missing. Returns whether it did."""
    if all(plan.kernel != DEFAULT_KERNEL for plan in plans):
        return False
    found = [known for known in _core.kernels() if known.name == DEFAULT_KERNEL]
    if found and not found[0].is_outdated:
        return False
    if progress is not False:
        why = "was built by another version of tcplab" if found else "is not there yet"
        said = f"the kernel {DEFAULT_KERNEL} {why}; building it, which takes a few minutes"
        sys.stderr.write(_core.printable(said) + "\n")
        sys.stderr.flush()
    build_kernel(progress=progress)
    return True


def kernels() -> list[Kernel]:
    """Returns the kernels that have been built, sorted by name.

    Each has a `name`, a `release`, the `hz` of its timer, its `congestion_controls`, its `source`
    and `compiler`, and its `folder`. `is_outdated` says whether another version of tcplab built it,
    so that it must be built again. The `key` identifies everything that decides how the kernel
    behaves.
    """
    return _core.kernels()


def remove_kernel(name: str) -> None:
    """Removes a kernel. Runs that are using it are not disturbed.

    Raises:
        KernelError: No kernel has this name.
    """
    _core.remove_kernel(name)
