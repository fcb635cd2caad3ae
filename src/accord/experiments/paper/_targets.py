"""Define the targets of the paper by name."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from accord.errors import ChoiceError, suggest
from accord.experiments.paper._protocols import Cell, protocols

Published = tuple[float, ...]  # a mean in percent and, for most rows, its standard error
ANALYTIC: Final = ("theory", "toy")  # kinds of targets that train no network
ABLATION: Final = ("cifar100", "sym", 40)  # the setting of table 6 and figure 10
OUR_ABLATION: Final = ("cifar10", "sym", 40)


@dataclass(frozen=True)
class Target:
    """Cell of a table, panel of a figure, or theory."""

    name: str  # such as "table1/cifar10/sym/40"
    description: str
    kind: str  # selects the measurement
    cells: Mapping[str, Cell] = field(default_factory=dict)  # role -> training setting
    published: Mapping[str, Published] = field(default_factory=dict)  # row -> the paper's number
    figure: int | None = None


@cache
def all_targets() -> dict[str, Target]:
    """Build all targets by name in the order of the paper."""
    found = [*_tables(), *_figures()]
    found.append(
        Target("figure9", "three boundaries that fit one wrong label, and their vote", "toy")
    )
    found.append(Target("theory", "disagreement and overfitting in linear regression", "theory"))
    found += _additional_targets()
    return {target.name: target for target in found}


def find_targets(names: Sequence[str]) -> list[Target]:
    """Find targets by name or prefix.

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
            raise ChoiceError(f"no target is called {name!r}. {_suggest_target(name)}")
        chosen |= {one: targets[one] for one in below}
    return list(chosen.values())


def _suggest_target(name: str) -> str:
    """Suggest the nearest target or list the top-level groups."""
    groups = dict.fromkeys(
        "/".join(parts[:size])
        for parts in (one.split("/") for one in all_targets())
        for size in range(1, len(parts) + 1)
    )
    ends = [one for one in groups if one.endswith(f"/{name.strip('/')}")]
    near = ends[:1] or difflib.get_close_matches(name, groups, n=1)
    return suggest(name, near or [one for one in groups if "/" not in one])


# How the rows of each table are measured, and the variant of training that it uses.
TABLES: Final = {
    "table1": ("rules", None),
    "table2": ("post-processing", None),
    "table4": ("sizes", "many-networks"),
    "table5": ("elr", "elr"),
}


def _tables() -> Iterator[Target]:
    tables = tomllib.loads(files(__package__).joinpath("published.toml").read_text("utf-8"))
    for table in sorted(tables):
        if table in TABLES:
            kind, variant = TABLES[table]
            for data, noise, rate, rows in _leaves(tables[table]):
                name = f"{table}/{data}/{noise}/{rate}"
                yield _table_target(name, Cell(data, noise, int(rate), variant), kind, rows)
        elif table == "table3":
            for variant, noise, rate, (original, agreed) in _leaves(tables[table]):
                cell = Cell("cifar100", noise, int(rate), variant)
                rows = {"original": original, "max-agreement": agreed}
                yield _table_target(f"{table}/{variant}/{noise}/{rate}", cell, "ensemble", rows)
        else:
            for variant, rows in tables[table].items():
                cell = Cell(*ABLATION, variant)
                yield _table_target(f"{table}/{variant}", cell, "ablation", rows)


def _leaves(table: dict[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    for first, noises in table.items():
        for noise, rates in noises.items():
            for rate, rows in rates.items():
                yield first, noise, rate, rows


def _table_target(name: str, cell: Cell, kind: str, rows: Mapping[str, Any]) -> Target:
    published = {
        row: tuple(number) if isinstance(number, list) else (number,)
        for row, number in rows.items()
    }
    return Target(name, cell.description, kind, {"noisy": cell}, published)


def _figures() -> Iterator[Target]:
    for number, panels in protocols()["figures"].items():
        for panel in panels:
            yield _figure(int(number), panel)


def _figure(number: int, panel: str) -> Target:
    name = "figure1" if number == 1 else f"figure{number}/{panel}"
    if number == 8:
        cells = samples_per_class(panel, protocols()["figure8"][panel])
        description = f"{protocols()['data'][panel]['name']}, clean labels"
        return Target(name, description, "figure", cells, figure=8)
    if number == 10:
        cell = Cell(*ABLATION, panel)
        return Target(name, cell.description, "figure", {"noisy": cell}, figure=10)
    data, noise, rate = panel.split("/")
    cell = Cell(data, noise, int(rate), "many-networks" if number == 6 else None)
    cells = {"noisy": cell}
    if number in (3, 5):
        cells["clean"] = Cell(data, noise, int(rate), "clean-subset")
    return Target(name, cell.description, "figure", cells, figure=number)


def samples_per_class(data: str, sizes: Sequence[int]) -> dict[str, Cell]:
    """Build the cells of figure 8 for a data set, by samples per class."""
    return {str(size): Cell(data, "clean", 0, per_class=size) for size in sizes}


def _additional_targets() -> Iterator[Target]:
    """Yield targets that the paper does not contain or mentions without a number."""
    cell = Cell("webvision50", "native", 20)
    yield Target("setup/webvision50", cell.description, "rules", {"noisy": cell})
    for panel in protocols()["ours"]["cells"]:
        data, noise, rate = panel.split("/")
        cell = Cell(data, noise, int(rate))
        yield Target(f"ours/{panel}", cell.description, "rules", {"noisy": cell})
    for variant in protocols()["ours"]["ablations"]:
        cell = Cell(*OUR_ABLATION, variant)
        name = f"ours/{'/'.join(map(str, OUR_ABLATION))}/{variant}"
        yield Target(name, cell.description, "rules", {"noisy": cell})
    cells = samples_per_class("cifar10", protocols()["figure8"]["cifar10"])
    yield Target("ours/cifar10/few-samples", "CIFAR-10, clean labels", "figure", cells, figure=8)
