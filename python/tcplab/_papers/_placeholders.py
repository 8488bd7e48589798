"""Numbers in the text of a study. They are not typed in, but refer to measurements.

`{D1-E4 goodput variant=then cc=vegas}` is a mean with its interval, `{D1-E4 goodput variant=then
cc=westwood+ / cc=newreno}` is the difference between two cells in runs with the same seeds, and
`{D1-C24}` is the verdict on a claim.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from tcplab import statistics
from tcplab._core import ConfigError
from tcplab._papers._format import shown
from tcplab._papers._measured import Measured, values
from tcplab._papers._study import Side, Study
from tcplab._papers._verdicts import NOT_RUN, Decided, Finding

PLACE = re.compile(r"\{([^{}]+)\}")

NOT_MEASURED = "(not measured)"


def filled(text: str, study: Study, measured: Measured, of: Mapping[str, Decided]) -> str:
    """A text with its references replaced by numbers.

    Raises:
        ConfigError: A reference names something that the study does not have.
    """
    return PLACE.sub(lambda found: _told(found[1], study, measured, of), text)


def _told(place: str, study: Study, measured: Measured, of: Mapping[str, Decided]) -> str:
    if place in of:
        return NOT_MEASURED if of[place].verdict == NOT_RUN else of[place].verdict
    side, other = _sides(place, study)
    ours = values(measured.tables, side, {})
    if ours is None:
        return NOT_MEASURED
    if other is None:
        found = statistics.interval(list(ours.values()))
        unit = study.experiments[side.experiment].quantities[side.quantity].unit
        finding = Finding("", found.estimate, found.low, found.high)
        if unit == "%":
            return f"{shown(finding)} %"
        return f"{shown(finding)} {unit}".rstrip()
    theirs = values(measured.tables, other, {})
    if theirs is None:
        return NOT_MEASURED
    pairs = [one for one in ours if one in theirs]
    apart = statistics.difference([ours[one] for one in pairs], [theirs[one] for one in pairs])
    mean = sum(theirs[one] for one in pairs) / len(pairs) if pairs else 0.0
    if not mean or apart.estimate is None:
        return NOT_MEASURED
    low, high = (None if one is None else one / abs(mean) for one in (apart.low, apart.high))
    return shown(Finding("", apart.estimate / abs(mean), low, high, is_share=True))


def sides_in(text: str, study: Study) -> Iterator[Side]:
    """The measurements that the references of a text name.

    Raises:
        ConfigError: A reference names something that the study does not have, or is not closed.
    """
    if "{" in (rest := PLACE.sub("", text)):
        end = rest[rest.index("{") :].split("\n", maxsplit=1)[0]
        raise ConfigError(f"{study.name}: {end[:40]!r} has no end, }}")
    claims = {claim.id for claim in study.claims}
    for found in PLACE.finditer(text):
        if found[1] not in claims:
            yield from (side for side in _sides(found[1], study) if side is not None)


def _sides(place: str, study: Study) -> tuple[Side, Side | None]:
    """The measurement that a reference names, and the one it is compared with."""
    about = f"{study.name}: {{{place}}}"
    before, slash, after = place.partition(" / ")
    try:
        experiment, quantity, *words = shlex.split(before)
    except ValueError:
        raise ConfigError(
            f"{about}: no claim is called so; else an experiment, a quantity and keys with values "
            "are needed"
        ) from None
    known = study.experiments.get(experiment)
    if known is None or quantity not in known.quantities:
        raise ConfigError(f"{about}: there is no such claim, or experiment with such a quantity")
    cell = _cell(words, about)
    side = Side(experiment, quantity, cell, known.lost)
    if not slash:
        return side, None
    return side, Side(
        experiment, quantity, {**cell, **_cell(shlex.split(after), about)}, known.lost
    )


def _cell(words: list[str], about: str) -> dict[str, tuple[str, ...]]:
    cell = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            raise ConfigError(f"{about}: {word} is no key with a value")
        cell[key] = tuple(value.split("|"))
    return cell
