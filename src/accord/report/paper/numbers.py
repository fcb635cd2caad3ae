"""The numbers behind the paper's figures, measured on records; plain enough for JSON."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from accord import analysis
from accord.analysis.rescued import rescued, story
from accord.api import Record
from accord.report.measured import FIRST, MARGIN_BINS, SECOND
from accord.report.paper.material import Setting, check_settings, needs_of
from accord.report.paper.pictures import picture_of

Numbers = dict[str, Any]

SHOWN: Final = 3  # networks of figure 1


def figure_numbers(number: int, material: Setting | Sequence[Setting]) -> Numbers:
    """Measure all that a figure of the paper shows.

    Accuracies are shares from 0 to 1. `draw_numbers` turns the result into a picture, and so it
    does after a way through a JSON file.

    Args:
        number: the figure's number in the paper; 9 is a sketch and shows no record.
        material: a setting for each panel, or one alone.

    Returns:
        The figure's `figure` number and `title`, and one entry in `panels` for each panel.

    Raises:
        ChoiceError: no figure has that number, or a setting lacks a part that it needs.
        RecordError: a record has too few networks or epochs, or nothing to show.
        TruthMissing: a record has no true labels.

    >>> import accord
    >>> setting = Setting("CIFAR-10, 40 % symmetric noise", accord.open("example://cifar10-sym40"))
    >>> (panel,) = figure_numbers(2, setting)["panels"]
    >>> panel["name"], len(panel["wrong_predictions"])
    ('CIFAR-10, 40 % symmetric noise', 5)
    """
    settings = [material] if isinstance(material, Setting) else list(material)
    check_settings(number, settings)
    panels = (
        _by_samples_per_class(settings)
        if needs_of(number).samples_per_class
        else [{"name": one.name} | _facts(one.record) | MEASURES[number](one) for one in settings]
    )
    return {"figure": number, "title": needs_of(number).title, "panels": panels}


def _facts(record: Record) -> Numbers:
    return {"networks": record.networks, "epochs": record.epochs, "samples": record.samples}


def _illustration(setting: Setting) -> Numbers:
    record = setting.record
    rows = record.rows.select(networks=range(SHOWN))
    found = rescued(rows)
    sample = found.typical()
    told = story(rows, sample)
    truth = int(rows.truth()[sample])
    names = record.class_names or tuple(f"class {label}" for label in range(record.classes))
    seen = sorted({truth, *told.labels.ravel().tolist()})
    return {
        "sample": sample,
        "rescued": len(found.samples),
        "last_wrong": found.last_wrong,
        "truth": truth,
        "class_names": {str(label): names[label] for label in seen},
        "progress": list(record.progress),
        "numbers": list(rows.numbers),
        "predicted": told.labels.tolist(),
        "majority": told.majority.tolist(),
        "max_agreement": told.max_agreement.tolist(),
        "picture": picture_of(setting.pictures, sample, samples=record.samples),
    }


def _error_consensus(setting: Setting) -> Numbers:
    counts = analysis.error_consensus_histogram(setting.record.rows)
    return {"wrong_predictions": counts.tolist()}


def _final_margins(setting: Setting) -> Numbers:
    found = analysis.final_margin_histogram(setting.record.rows, bins=MARGIN_BINS)
    return {
        "edges": found.edges.tolist(),
        "right": found.right.tolist(),
        "wrong": found.wrong.tolist(),
    }


def _noisy_and_clean(setting: Setting) -> Numbers:
    rules = ("single", FIRST)
    return {"curves": _curves(setting.record, rules) | _clean_curves(setting, rules)}


def _against_oracle(setting: Setting) -> Numbers:
    curves = _curves(setting.record, ("single", FIRST, SECOND))
    return {"curves": curves | _clean_curves(setting, ("single",))}


def _clean_curves(setting: Setting, rules: Sequence[str]) -> Numbers:
    if setting.clean is None:
        return {}
    return {f"clean-{rule}": curve for rule, curve in _curves(setting.clean, rules).items()}


def _curves(record: Record, rules: Sequence[str]) -> Numbers:
    found = {rule: record.curve(rule) for rule in rules}
    return {
        rule: {"progress": list(curve.progress), "accuracy": curve.accuracy.tolist()}
        for rule, curve in found.items()
    }


def _by_networks(setting: Setting) -> Numbers:
    sweeps = {rule: setting.record.by_networks(rule) for rule in (FIRST, SECOND)}
    return {
        "sizes": list(sweeps[FIRST].sizes),
        "subsets": [len(values) for values in sweeps[FIRST].accuracies],
        "rules": {
            rule: {"mean": sweep.mean.tolist(), "deviation": sweep.spread.tolist()}
            for rule, sweep in sweeps.items()
        },
    }


def _by_epochs(setting: Setting) -> Numbers:
    sweep = setting.record.by_epochs(SECOND)
    (voted,) = setting.record.score([FIRST])
    return {
        "sizes": list(sweep.sizes),
        SECOND: sweep.mean.tolist(),
        FIRST: voted.accuracy,
    }


def _by_samples_per_class(settings: Sequence[Setting]) -> list[Numbers]:
    names = dict.fromkeys(setting.name for setting in settings)
    return [
        {"name": name} | _turned([one for one in settings if one.name == name]) for name in names
    ]


def _turned(settings: Sequence[Setting]) -> Numbers:
    ordered = sorted(settings, key=lambda one: one.samples_per_class or 0)
    found = [setting.record.changes(FIRST, SECOND) for setting in ordered]
    return {
        "samples_per_class": [setting.samples_per_class for setting in ordered],
        "samples": [one.samples for one in found],
        "turned_right": [one.turned_right / one.samples for one in found],
        "turned_wrong": [one.turned_wrong / one.samples for one in found],
        "p_value": [one.p_value for one in found],
    }


MEASURES: Final[dict[int, Callable[[Setting], Numbers]]] = {
    1: _illustration,
    2: _error_consensus,
    3: _noisy_and_clean,
    4: _final_margins,
    5: _against_oracle,
    6: _by_networks,
    7: _by_epochs,
    10: _against_oracle,
}
