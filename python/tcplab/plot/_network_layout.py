"""Places the nodes of a network in a drawing, so that packets travel from left to right where
possible.

The path of the first flow is a row. Nodes of further flows are placed before, behind or between
known ones. Nodes in the same column are stacked, near their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Path = Sequence[int]
"""The nodes that the packets of a flow pass, in order."""

SWEEPS = 8
"""The number of passes that move nodes towards their neighbours."""


def positions(
    paths: Iterable[Path], links: Iterable[tuple[int, int]]
) -> dict[int, tuple[int, float]]:
    """The place of each node: its column, and its height above the middle."""
    links = list(links)
    columns = _columns(paths, links)
    heights = _heights(columns, links)
    return {node: (columns[node], heights[node]) for node in columns}


def _columns(paths: Iterable[Path], links: Sequence[tuple[int, int]]) -> dict[int, int]:
    columns: dict[int, int] = {}
    for path in paths:
        known = [place for place, node in enumerate(path) if node in columns]
        first, last = (known[0], known[-1]) if known else (0, 0)
        start = columns.get(path[first], 0)
        # A flow that meets others from the opposite side goes from right to left.
        step = -1 if known and columns[path[last]] < start else 1
        for place, node in enumerate(path):
            columns.setdefault(node, start + step * (place - first))
    # Nodes without traffic are placed behind a neighbour.
    for _ in links:
        for one, other in links:
            if (one in columns) != (other in columns):
                here, there = (one, other) if one in columns else (other, one)
                columns[there] = columns[here] + 1
    least = min(columns.values(), default=0)
    return {node: column - least for node, column in columns.items()}


def _heights(columns: dict[int, int], links: Sequence[tuple[int, int]]) -> dict[int, float]:
    neighbours: dict[int, list[int]] = {node: [] for node in columns}
    for one, other in links:
        neighbours[one].append(other)
        neighbours[other].append(one)
    rows: dict[int, list[int]] = {}
    for node, column in columns.items():
        rows.setdefault(column, []).append(node)
    heights = dict.fromkeys(columns, 0.0)
    for row in rows.values():
        _spread(row, heights)
    for _ in range(SWEEPS):
        for _, row in sorted(rows.items()):

            def middle(node: int) -> float:
                others = [heights[other] for other in neighbours[node]]
                return sum(others) / len(others) if others else heights[node]

            # Sorting is stable: nodes that compare equal keep their order.
            row.sort(key=middle, reverse=True)
            _spread(row, heights)
    return heights


def _spread(row: Sequence[int], heights: dict[int, float]) -> None:
    """Stacks the nodes of a column around the middle."""
    for place, node in enumerate(row):
        heights[node] = (len(row) - 1) / 2 - place
