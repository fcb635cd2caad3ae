"""What is measured of a cell's record: one accuracy in percent for each row of its table."""

from collections.abc import Callable, Mapping
from typing import Final

from accord.analysis import by_networks
from accord.api import Record
from accord.errors import ChoiceError

TableRows = dict[str, float]
PAPER_SIZE: Final = 5  # networks of the paper's ensembles


def measure(kind: str, record: Record, *, batch_ensemble: bool = False) -> TableRows:
    """Return the rows of a table for one record, in percent."""
    if kind == "ensemble":
        return _of_ensemble(record, "probability-average" if batch_ensemble else "majority")
    if kind not in MEASURES:
        raise ChoiceError(f"nothing is measured of {kind!r}; there are: {', '.join(MEASURES)}")
    return MEASURES[kind](record)


def _rules(record: Record) -> TableRows:
    """Score every rule that the record allows, those of the paper among them."""
    return {score.rule: 100 * score.accuracy for score in record.score()}


def _of_ensemble(record: Record, own: str) -> TableRows:
    original, agreed = record.score([own, "max-agreement"])
    return {"original": 100 * original.accuracy, "max-agreement": 100 * agreed.accuracy}


def _sizes(record: Record) -> TableRows:
    """Score max agreement of 5 networks, and both votes at their best size."""
    sweeps = {rule: by_networks(record.rows, rule) for rule in ("majority", "max-agreement")}
    agreed = sweeps["max-agreement"]
    five = min(PAPER_SIZE, record.networks) - 1
    rows = {"max-agreement-5": 100 * float(agreed.mean[five])}
    for rule, sweep in sweeps.items():
        best = int(sweep.mean.argmax())
        rows[f"{rule}-opt"] = 100 * float(sweep.mean[best])
        rows[f"{rule}-networks"] = float(sweep.sizes[best])
    return rows


def _elr(record: Record) -> TableRows:
    names = {"elr": "single", "elr-ensemble": "majority", "elr-max-agreement": "max-agreement"}
    scores = record.score(list(names.values()))
    return {row: 100 * score.accuracy for row, score in zip(names, scores, strict=True)}


def _ablation(record: Record) -> TableRows:
    """Score the best single network, the majority and max agreement."""
    single, majority, agreed = record.score(["single", "majority", "max-agreement"])
    best = max(single.per_network or (single.accuracy,))
    return {
        "single": 100 * best,
        "ensemble": 100 * majority.accuracy,
        "max-agreement": 100 * agreed.accuracy,
    }


MEASURES: Final[Mapping[str, Callable[[Record], TableRows]]] = {
    "rules": _rules,
    "sizes": _sizes,
    "elr": _elr,
    "ablation": _ablation,
}
