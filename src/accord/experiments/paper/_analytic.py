"""Reproduce what trains no network: seconds on a CPU, always the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from accord._version import __version__
from accord.experiments.paper._results import (
    PICTURES,
    THOUGHT,
    Result,
    is_drawn,
    load_result,
    result_path,
    save_result,
)
from accord.experiments.paper._targets import Target
from accord.experiments.theory import run_theory
from accord.experiments.theory.toy import run_toy


def think(target: Target, out: Path) -> Result:
    """Reproduce a target that trains no network; what was kept before stays, and is drawn."""
    known = load_result(out, target.name, THOUGHT)
    if known is not None and is_drawn(out, target.name, THOUGHT):
        save_result(known, out)  # its text may say more than it did
        return known
    numbers, save = THOUGHTS[target.kind]()
    result = known or Result(
        target.name, target.says, THOUGHT, 1, numbers=numbers, version=__version__
    )
    save_result(result, out)
    for ending in PICTURES:
        save(result_path(out, target.name, THOUGHT).with_suffix(ending))
    return result


def _theory() -> tuple[dict[str, Any], Callable[[Path], None]]:
    from accord.report._theory_figures import save_theory

    found = run_theory()
    return found.as_json(), lambda path: save_theory(found, path)


def _toy() -> tuple[dict[str, Any], Callable[[Path], None]]:
    from accord.report._theory_figures import save_toy

    found = run_toy()
    return found.as_json(), lambda path: save_toy(found, path)


THOUGHTS: Final = {"theory": _theory, "toy": _toy}
