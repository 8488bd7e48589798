"""tcplab paper: repeats published studies, with their own stack and with today's."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from tcplab import _core
from tcplab._papers import _format, _measured, _page, _runs, _study, _validation
from tcplab._store.atomic_write import put
from tcplab._text import markup, plain_tables
from tcplab._text.blocks import Block, Picture
from tcplab._text.cells import LEFT, Column
from tcplab.cli import _arguments
from tcplab.cli._output import say
from tcplab.plot._export import drawn

OUT = Path("results") / "papers"

ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the actions and their arguments."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    one = actions.add_parser("list", help="list the studies")
    one.set_defaults(act=_list)
    one = actions.add_parser("show", help="print the question, findings and claims of a study")
    one.add_argument("name", metavar="NAME", help="a study, as listed by `tcplab paper list`")
    one.set_defaults(act=_show)
    one = actions.add_parser("run", help="run the experiments of a study")
    one.add_argument("name", metavar="NAME", help=f"a study, or {ALL}")
    one.add_argument(
        "--figure",
        metavar="ID",
        action="append",
        help="run only this experiment or figure, D2-E1 or 'Fig. 2'; may be given several times",
    )
    one.add_argument(
        "--quick",
        action="store_true",
        help="few repetitions: takes minutes, and gives wide intervals",
    )
    one.add_argument(
        "--on", default="sim", metavar="BACKEND", help="the backend: sim (the default) or linux"
    )
    _add_kernel(one, "the kernel for the backend `linux` (default: the default kernel)")
    _add_out(one, "folder for the results")
    _arguments.add_workers(one)
    one.set_defaults(act=_run)
    one = actions.add_parser(
        "report", help="compare published numbers and claims with ours, with verdicts"
    )
    one.add_argument("name", metavar="NAME", help=f"a study, or {ALL}")
    one.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="file for the page: .html or .md (default: Markdown on standard output)",
    )
    one.add_argument(
        "--quick", action="store_true", help="report the measurements of `run --quick`"
    )
    one.add_argument(
        "--on", default="sim", metavar="BACKEND", help="report the measurements of this backend"
    )
    _add_kernel(one, "report the measurements of this kernel")
    _add_out(one, "folder of the results; missing ones are taken from those shipped with tcplab")
    one.set_defaults(act=_report)


def run(args: argparse.Namespace) -> None:
    """Carries out the action."""
    args.act(args)


def _add_kernel(parser: argparse.ArgumentParser, about: str) -> None:
    parser.add_argument("--kernel", metavar="NAME", help=about)


def _add_out(parser: argparse.ArgumentParser, about: str) -> None:
    parser.add_argument(
        "--out", type=Path, default=OUT, metavar="DIR", help=f"{about} (default: {OUT})"
    )


def _named(name: str) -> list[_study.Study]:
    studies = [_study.load(one) for one in (_study.names() if name == ALL else [name])]
    for one in studies:
        _validation.check(one)
    return studies


def _list(args: argparse.Namespace) -> None:
    rows = []
    for study in _named(ALL):
        ran = sum(one.path is not None for one in study.experiments.values())
        experiments = f"{ran} of {len(study.experiments)}"
        rows.append(
            (study.name, str(study.year), study.authors, experiments, str(len(study.claims)))
        )
    columns = [
        Column("study", align=LEFT),
        Column("year"),
        Column("authors", align=LEFT),
        Column("can be run"),
        Column("claims"),
    ]
    say(plain_tables.table(columns, rows))


def _show(args: argparse.Namespace) -> None:
    study = _study.load(args.name)
    _validation.check(study)
    say(f"{study.title}\n{study.authors}, {study.year}. {study.published}\n")
    say(f"Asked  {study.question}\nFound  {study.found}\nThen   {study.then}\n")
    columns = [
        Column("experiment", align=LEFT),
        Column("what", align=LEFT),
        Column("file", align=LEFT),
    ]
    rows = [
        (one.id, one.title, str(one.path) if one.path else f"not run: {one.reason}")
        for one in study.experiments.values()
    ]
    say(plain_tables.table(columns, rows) + "\n")
    brought = _measured.read(study, study.folder / _measured.COMMITTED)
    columns = [Column(name, align=LEFT) for name in ("claim", "verdict", "now", "what")]
    of = _page.decided(study, brought)
    say(
        plain_tables.table(
            columns, [(one.claim.id, one.verdict, one.now, one.claim.words) for one in of]
        )
    )


def _run(args: argparse.Namespace) -> None:
    studies = _named(args.name)
    known = {id_: id_ for study in studies for id_ in study.experiments}
    drawn_from = {one.id: one.experiment for study in studies for one in study.figures}
    for id_ in args.figure or ():
        if id_ not in known | drawn_from:
            there = ", ".join([*known, *drawn_from])
            raise _core.ConfigError(f"--figure: {id_} is none of {there}")
    asked = {(known | drawn_from)[id_] for id_ in args.figure or known}
    way = _way(args)
    for study in studies:
        _runs.run_study(study, [id_ for id_ in study.experiments if id_ in asked], way)
    for study in studies:
        _say_verdicts(study, way, asked)


def _way(args: argparse.Namespace) -> _runs.Way:
    workers = getattr(args, "workers", None)
    if args.on not in (_runs.SIM, _runs.LINUX):
        raise _core.ConfigError(f"--on: {args.on} is none of {_runs.SIM}, {_runs.LINUX}")
    if args.kernel is not None and args.on != _runs.LINUX:
        raise _core.ConfigError("--kernel: only the backend `linux` boots a kernel: --on linux")
    return _runs.Way(
        args.out, is_quick=args.quick, backend=args.on, workers=workers, kernel=args.kernel
    )


def _measured_of(study: _study.Study, way: _runs.Way) -> _measured.Measured:
    """The values measured here, completed with those that ship with the study."""
    own = _measured.read(study, way.place(study))
    if way.is_quick or way.backend != _runs.SIM:
        return own
    brought = _measured.read(study, study.folder / _measured.COMMITTED)
    linux = _measured.read(study, replace(way, backend=_runs.LINUX).place(study))
    return _measured.Measured(
        {**brought.tables, **own.tables},
        {**brought.series, **own.series},
        {**brought.linux, **linux.tables},
    )


def _say_verdicts(study: _study.Study, way: _runs.Way, asked: set[str]) -> None:
    """Prints the verdicts on the claims that these experiments decide."""
    of = [
        one
        for one in _page.decided(study, _measured_of(study, way))
        if _runs.experiments_of(one.claim) & asked
    ]
    rows = [(one.claim.id, one.then, one.now, _format.verdict(one)) for one in of]
    columns = [Column(name, align=LEFT) for name in ("claim", "then", "now", "verdict")]
    if rows:
        say(f"{study.name}\n" + plain_tables.table(columns, rows), flush=True)
    say(f"tables  {way.place(study)}", file=sys.stderr)
    options = " --quick" * way.is_quick + f" --on {way.backend}" * (way.backend != _runs.SIM)
    if way.kernel is not None:
        options += f" --kernel {way.kernel}"
    say(f"numbers tcplab paper report {study.name}{options}", file=sys.stderr)


def _report(args: argparse.Namespace) -> None:
    studies = _named(args.name)
    path: Path | None = args.output
    if path is not None and path.suffix not in (".html", ".md"):
        raise _core.ConfigError(f"-o: {path}: a page ends with .html or .md")
    measured = {study.name: _measured_of(study, _way(args)) for study in studies}
    of = {study.name: _page.decided(study, measured[study.name]) for study in studies}
    pages: list[Block] = []
    if args.name == ALL:
        pages += _page.overview({study.name: (study, of[study.name]) for study in studies})
    for study in studies:
        pages += _page.blocks(study, measured[study.name], of[study.name])
    if path is None:
        say(markup.markdown(pages).rstrip("\n"), flush=True)
        return
    _arguments.ensure_writable(path, "the page")
    if path.suffix == ".html":
        put(markup.html(pages).encode(), path)
    else:
        put(markup.markdown(pages, partial(_beside, path)).encode(), path)
    say(f"report  {path}", file=sys.stderr)


def _beside(page: Path, picture: Picture) -> str:
    """Saves a picture in a folder beside the page, and returns its relative path."""
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    file = folder / f"{picture.name}.svg"
    put(drawn(picture.chart(), ".svg"), file)
    return f"{folder.name}/{file.name}"
