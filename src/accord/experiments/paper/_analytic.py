"""Reproduce targets that require no training."""

from pathlib import Path
from typing import Final

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

ANALYTIC: Final = ("theory", "toy")  # kinds of targets


def run_analytic(target: Target, out: Path) -> Result:
    """Compute and draw a target that requires no training, keeping any stored result."""
    known = load_result(out, target.name, NO_SCALE)
    if known is not None and is_drawn(out, target.name, NO_SCALE):
        save_result(known, out)  # the Markdown may be that of an earlier version
        return known
    from accord.report import save_figure, theory_figure, toy_figure

    if target.kind == "theory":
        theory = run_theory()
        numbers, figure = theory.as_json(), theory_figure(theory)
    else:
        toy = run_toy()
        numbers, figure = toy.as_json(), toy_figure(toy)
    result = known or Result(
        target.name, target.description, NO_SCALE, 1, numbers=numbers, version=__version__
    )
    save_result(result, out)
    for suffix in PICTURES:
        save_figure(figure, result_path(out, target.name, NO_SCALE).with_suffix(suffix))
    return result
