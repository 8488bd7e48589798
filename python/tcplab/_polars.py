"""polars, loaded when it is first used: loading it takes as long as hundreds of short runs, and
goes on in a thread beside the first of them.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import polars  # noqa: PLC0415 (that is the point)

    return getattr(polars, name)
