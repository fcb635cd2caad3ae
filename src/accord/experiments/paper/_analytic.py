"""Targets that train no network: the theory and its toy, computed in seconds on a CPU."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from accord._version import __version__
from accord.experiments.paper._results import (
    NO_SCALE,
    PICTURES,
    Result,
    is_drawn,
    load_result,
    result_path,
    save_result,
)
from accord.experiments.paper._targets import Target
from accord.experiments.theory import run_theory
from accord.experiments.theory.toy import run_toy


def run_analytic(target: Target, out: Path) -> Result:
    """Compute and draw a target that trains no network; a stored result is kept."""
    known = load_result(out, target.name, NO_SCALE)
    if known is not None and is_drawn(out, target.name, NO_SCALE):
        save_result(known, out)  # the Markdown may be that of an earlier version
        return known
    numbers, draw = ANALYTIC[target.kind]()
    result = known or Result(
        target.name, target.description, NO_SCALE, 1, numbers=numbers, version=__version__
    )
    save_result(result, out)
    for suffix in PICTURES:
        draw(result_path(out, target.name, NO_SCALE).with_suffix(suffix))
    return result


def _theory() -> tuple[dict[str, Any], Callable[[Path], None]]:
    from accord.report import save_figure, theory_figure

    found = run_theory()
    return found.as_json(), partial(save_figure, theory_figure(found))


def _toy() -> tuple[dict[str, Any], Callable[[Path], None]]:
    from accord.report import save_figure, toy_figure

    found = run_toy()
    return found.as_json(), partial(save_figure, toy_figure(found))


ANALYTIC: Final = {"theory": _theory, "toy": _toy}  # by kind of target
