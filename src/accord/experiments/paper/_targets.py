"""Every target that can be named: cells of tables, panels of figures, the theory."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from accord.errors import ChoiceError, suggest
from accord.experiments.paper._protocols import Cell, protocols, sources

Published = tuple[float, ...]  # a mean in percent and, mostly, its standard error
ABLATION: Final = ("cifar100", "sym", 40)  # the setting of table 6 and figure 10
OUR_ABLATION: Final = ("cifar10", "sym", 40)


@dataclass(frozen=True)
class Target:
    """Something to reproduce."""

    name: str  # such as "table1/cifar10/sym/40"
    says: str
    kind: str  # how it is measured
    cells: Mapping[str, Cell] = field(default_factory=dict)  # role -> what is trained
    published: Mapping[str, Published] = field(default_factory=dict)  # row -> the paper's number
    figure: int | None = None


@cache
def all_targets() -> dict[str, Target]:
    """Return every target, by name, in the order of the paper."""
    found = [*_table1(), *_table2(), *_table3(), *_table4(), *_table5(), *_table6()]
    found += [*_figures(), *_thoughts(), *_ours()]
    return {target.name: target for target in found}


def find_targets(names: Sequence[str]) -> list[Target]:
    """Return the targets of these names; the beginning of a name stands for all below it.

    >>> [target.name for target in find_targets(["figure6"])]
    ['figure6/cifar10/asym/20', 'figure6/cifar100/sym/40']
    >>> find_targets(["table1/cifar10/sym/50"])
    Traceback (most recent call last):
    accord.errors.ChoiceError: no target is called 'table1/cifar10/sym/50'. Did you mean \
'table1/cifar10/sym/60'?
    """
    targets = all_targets()
    chosen: dict[str, Target] = {}
    for name in names:
        below = [one for one in targets if one == name or one.startswith(f"{name.rstrip('/')}/")]
        if not below:
            raise ChoiceError(f"no target is called {name!r}. {_nearest(name)}")
        chosen |= {one: targets[one] for one in below}
    return list(chosen.values())


def _nearest(name: str) -> str:
    """Offer the nearest target or group of targets, or else name the largest groups."""
    groups = dict.fromkeys(
        "/".join(parts[:size])
        for parts in (one.split("/") for one in all_targets())
        for size in range(1, len(parts) + 1)
    )
    ends = [one for one in groups if one.endswith(f"/{name.strip('/')}")]
    near = ends[:1] or difflib.get_close_matches(name, groups, n=1)
    return suggest(name, near or [one for one in groups if "/" not in one])


@cache
def _published() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("published.toml").read_text("utf-8"))


def _cells_of(table: str) -> Iterator[tuple[str, tuple[str, str, int], dict[str, Any]]]:
    for data, noises in _published()[table].items():
        for noise, rates in noises.items():
            for rate, rows in rates.items():
                yield f"{table}/{data}/{noise}/{rate}", (data, noise, int(rate)), rows


def _table1() -> Iterator[Target]:
    for name, setting, rows in _cells_of("table1"):
        yield _plain(name, Cell(*setting), "rules", rows)


def _table2() -> Iterator[Target]:
    for name, setting, rows in _cells_of("table2"):
        yield _plain(name, Cell(*setting), "post-processing", rows)


def _table3() -> Iterator[Target]:
    for variant, noises in _published()["table3"].items():
        for noise, rates in noises.items():
            for rate, (original, agreed) in rates.items():
                cell = Cell("cifar100", noise, int(rate), variant)
                rows = {"original": [original], "max-agreement": [agreed]}
                yield _plain(f"table3/{variant}/{noise}/{rate}", cell, "ensemble", rows)


def _table4() -> Iterator[Target]:
    for name, setting, rows in _cells_of("table4"):
        yield _plain(name, Cell(*setting, "many-networks"), "sizes", _lists(rows))


def _table5() -> Iterator[Target]:
    for name, setting, rows in _cells_of("table5"):
        yield _plain(name, Cell(*setting, "elr"), "elr", _lists(rows))


def _table6() -> Iterator[Target]:
    for variant, rows in _published()["table6"].items():
        cell = Cell(*ABLATION, variant)
        yield _plain(f"table6/{variant}", cell, "ablation", _lists(rows))


def _plain(name: str, cell: Cell, kind: str, rows: Mapping[str, Sequence[float]]) -> Target:
    published = {row: tuple(numbers) for row, numbers in rows.items()}
    return Target(name, cell.says, kind, {"noisy": cell}, published)


def _lists(rows: Mapping[str, float]) -> dict[str, list[float]]:
    return {row: [number] for row, number in rows.items()}


def _figures() -> Iterator[Target]:
    for number, panels in protocols()["figures"].items():
        for panel in panels:
            yield _figure(int(number), panel)


def _figure(number: int, panel: str) -> Target:
    name = "figure1" if number == 1 else f"figure{number}/{panel}"
    if number == 8:
        cells = samples_per_class(panel)
        return Target(name, f"{sources()[panel].name}, clean labels", "figure", cells, figure=8)
    if number == 10:
        cell = Cell(*ABLATION, panel)
        return Target(name, cell.says, "figure", {"noisy": cell}, figure=10)
    data, noise, rate = panel.split("/")
    cell = Cell(data, noise, int(rate), "many-networks" if number == 6 else None)
    cells = {"noisy": cell}
    if number in (3, 5):
        cells["clean"] = Cell(data, noise, int(rate), "clean-subset")
    return Target(name, cell.says, "figure", cells, figure=number)


def samples_per_class(data: str) -> dict[str, Cell]:
    """Return the cells of figure 8 for one data set, by samples per class."""
    sizes = protocols()["figure8"][data]
    return {str(size): Cell(data, "clean", 0, per_class=size) for size in sizes}


def _thoughts() -> Iterator[Target]:
    yield Target("figure9", "three boundaries that fit one false label, and their vote", "toy")
    yield Target("theory", "disagreement and overfit in linear regression", "theory")


def _ours() -> Iterator[Target]:
    """What the paper names without a number, or does not have."""
    cell = Cell("webvision50", "native", 20)
    yield Target("setup/webvision50", cell.says, "rules", {"noisy": cell})
    for panel in protocols()["ours"]["cells"]:
        data, noise, rate = panel.split("/")
        cell = Cell(data, noise, int(rate))
        yield Target(f"ours/{panel}", cell.says, "rules", {"noisy": cell})
    for variant in protocols()["ours"]["ablations"]:
        cell = Cell(*OUR_ABLATION, variant)
        name = f"ours/{'/'.join(map(str, OUR_ABLATION))}/{variant}"
        yield Target(name, cell.says, "rules", {"noisy": cell})
    says = "CIFAR-10, clean labels"
    yield Target("ours/cifar10/few-samples", says, "figure", samples_per_class("cifar10"), figure=8)
