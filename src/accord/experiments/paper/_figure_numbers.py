"""Compute the numbers shown in the figures of the paper."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accord import analysis
from accord._record import Record
from accord.analysis import MAJORITY, MAX_AGREEMENT
from accord.analysis._dynamics import rescued, story
from accord.analysis._report_numbers import MARGIN_BINS
from accord.errors import ChoiceError, RecordError, RecordMismatch


@dataclass(frozen=True)
class Setting:
    """Setting of an experiment, shown in one panel.

    Figure 8 shows settings of the same name in one panel: a record per number of samples.
    """

    name: str  # such as "CIFAR-10, 40 % symmetric noise"
    record: Record
    clean: Record | None = None  # trained on the correctly labelled part of the same data
    samples_per_class: int | None = None  # of the training data
    pictures: NDArray[Any] | None = None  # (sample, height, width[, colour]), 0..255, or 0..1


Numbers = dict[str, Any]


class FigureNeeds(NamedTuple):
    title: str
    networks: int  # at least
    epochs: int  # at least
    measure: Callable[[Setting], Numbers] | None = None  # None: figure 8 has a panel per name
    clean: bool = False
    samples_per_class: bool = False
    single: bool = False  # one setting, not several


def check_settings(number: int, settings: Sequence[Setting]) -> None:
    if number not in NEEDS:
        known = ", ".join(map(str, NEEDS))
        raise ChoiceError(f"no figure {number} is drawn from records. There are: {known}")
    needs = NEEDS[number]
    if not settings:
        raise ChoiceError(f"figure {number} needs at least one setting; got none")
    if needs.single and len(settings) > 1:
        raise ChoiceError(f"figure {number} shows one setting; got {len(settings)}")
    for setting in settings:
        setting.record.reader.truth()
        _check_record(number, setting.record, needs)
        _check_clean(number, setting, needs)
    if needs.samples_per_class:
        _check_samples_per_class(number, settings)


def _check_record(number: int, record: Record, needs: FigureNeeds) -> None:
    for axis, least in (("networks", needs.networks), ("epochs", needs.epochs)):
        size = getattr(record, axis)
        if size < least:
            raise RecordError(
                f"{record.path}: figure {number} needs at least {least} {axis}; "
                f"the record holds {size}"
            )


def _check_clean(number: int, setting: Setting, needs: FigureNeeds) -> None:
    clean = setting.clean
    if clean is None:
        if needs.clean:
            raise ChoiceError(
                f"{setting.name}: figure {number} compares with networks trained on the clean "
                "subset. Give their record: Setting(…, clean=record)"
            )
        return
    if needs.clean:
        _check_record(number, clean, needs)
    if not np.array_equal(clean.reader.truth(), setting.record.reader.truth()):
        raise RecordMismatch(
            f"{clean.path}: the true labels of its {clean.samples} samples are not those of "
            f"{setting.record.path}. Both runs must be recorded on the same test samples"
        )


def _check_samples_per_class(number: int, settings: Sequence[Setting]) -> None:
    seen = set()
    for setting in settings:
        size = setting.samples_per_class
        if size is None or size < 1:
            raise ChoiceError(
                f"{setting.name}: figure {number} needs the number of training samples per "
                f"class; got {size}. Give it: Setting(…, samples_per_class=500)"
            )
        if (setting.name, size) in seen:
            raise ChoiceError(
                f"{setting.name}: figure {number} takes one record for each number of samples; "
                f"got two for {size}"
            )
        seen.add((setting.name, size))


MOST_PIXELS: Final = 64  # per side; larger pictures are subsampled


def picture_of(
    pictures: NDArray[Any] | None, sample: int, *, samples: int
) -> list[list[list[int]]] | None:
    """Convert an image to rows of [red, green, blue] in 0..255, or None without images.

    Args:
        pictures: (sample, height, width) in grey or (sample, height, width, 3) in colour;
            integers in 0..255, or fractions in 0..1.
        sample: the index of the image.
        samples: the expected number of images.

    >>> picture_of(np.ones((4, 1, 2)), 3, samples=4)
    [[[255, 255, 255], [255, 255, 255]]]
    """
    if pictures is None:
        return None
    shape, coloured = pictures.shape, pictures.ndim == 4 and pictures.shape[3] in {1, 3}
    if shape[:1] != (samples,) or not (len(shape) == 3 or coloured) or 0 in shape:
        raise ChoiceError(
            f"pictures must have the shape ({samples}, height, width) or "
            f"({samples}, height, width, 3); got {shape}. Does the colour axis come last?"
        )
    picture = np.asarray(pictures[sample])
    highest = 255 if np.issubdtype(picture.dtype, np.integer) else 1
    if not (picture.min() >= 0 and picture.max() <= highest):
        raise ChoiceError(
            f"pictures of {picture.dtype} must lie in 0..{highest}; "
            f"got {picture.min()}..{picture.max()}. Were they standardised for training?"
        )
    step = math.ceil(max(shape[1:3]) / MOST_PIXELS)
    thinned = np.asarray(np.rint(picture * (255 / highest)), np.uint8)[::step, ::step]
    flat = thinned.reshape(*thinned.shape[:2], -1)
    colours: list[list[list[int]]] = np.broadcast_to(flat, (*flat.shape[:2], 3)).tolist()
    return colours


def figure_numbers(number: int, settings: Setting | Sequence[Setting]) -> Numbers:
    """Compute the numbers shown in a figure of the paper as JSON.

    Accuracies are shares from 0 to 1. `draw_numbers` draws the result.

    Args:
        number: of the figure in the paper; figure 9 shows no record.
        settings: one per panel, or a single one.

    Returns:
        The `figure` number, its `title`, and one entry in `panels` per panel.

    Raises:
        ChoiceError: no figure has that number, or a setting lacks a required part.
        RecordError: a record has too few networks or epochs, or no sample to show.
        TruthMissing: a record has no true labels.

    >>> import accord
    >>> setting = Setting("CIFAR-10, 40 % symmetric noise", accord.open("example://cifar10-sym40"))
    >>> (panel,) = figure_numbers(2, setting)["panels"]
    >>> panel["name"], len(panel["wrong_predictions"])
    ('CIFAR-10, 40 % symmetric noise', 5)
    """
    settings = [settings] if isinstance(settings, Setting) else list(settings)
    check_settings(number, settings)
    panels: list[Numbers] = []
    measure = NEEDS[number].measure
    if measure is None:
        for name in dict.fromkeys(setting.name for setting in settings):
            changes = _changes([one for one in settings if one.name == name])
            panels.append({"name": name} | changes)
    else:
        for setting in settings:
            record = setting.record
            sizes = {one: getattr(record, one) for one in ("networks", "epochs", "samples")}
            panels.append({"name": setting.name} | sizes | measure(setting))
    return {"figure": number, "title": NEEDS[number].title, "panels": panels}


def _illustration(setting: Setting) -> Numbers:
    record = setting.record
    reader = record.reader.select(networks=record.reader.numbers[:3])
    samples = rescued(reader)
    sample = samples.typical()
    history = story(reader, sample)
    truth = int(reader.truth()[sample])
    names = record.class_names or tuple(f"class {label}" for label in range(record.classes))
    seen = sorted({truth, *history.labels.ravel().tolist()})
    return {
        "sample": sample,
        "rescued": len(samples.samples),
        "last_wrong": samples.last_wrong,
        "truth": truth,
        "class_names": {str(label): names[label] for label in seen},
        "progress": list(record.progress),
        "numbers": list(reader.numbers),
        "predicted": history.labels.tolist(),
        "majority": history.majority.tolist(),
        "max_agreement": history.max_agreement.tolist(),
        "picture": picture_of(setting.pictures, sample, samples=record.samples),
    }


def _error_consensus(setting: Setting) -> Numbers:
    counts = analysis.error_consensus_histogram(setting.record.reader)
    return {"wrong_predictions": counts.tolist()}


def _final_margins(setting: Setting) -> Numbers:
    found = analysis.final_margin_histogram(setting.record.reader, bins=MARGIN_BINS)
    return {
        "edges": found.edges.tolist(),
        "right": found.right.tolist(),
        "wrong": found.wrong.tolist(),
    }


def _over_training(setting: Setting, *, rules: Sequence[str], clean: Sequence[str]) -> Numbers:
    """Measure rules over training, including on networks trained on the clean subset."""
    curves: Numbers = {}
    parts = (("", setting.record, rules), ("clean-", setting.clean, clean))
    for prefix, record, chosen in parts:
        for rule in chosen:
            if record is None:
                continue
            curve = analysis.curve(record.reader, rule)
            curves[f"{prefix}{rule}"] = {
                "progress": list(curve.progress),
                "accuracy": curve.accuracy.tolist(),
            }
    return {"curves": curves}


_against_oracle = partial(
    _over_training, rules=("single", MAJORITY, MAX_AGREEMENT), clean=("single",)
)


def _by_networks(setting: Setting) -> Numbers:
    sweeps = {rule: setting.record.by_networks(rule) for rule in (MAJORITY, MAX_AGREEMENT)}
    return {
        "sizes": list(sweeps[MAJORITY].sizes),
        "subsets": [len(values) for values in sweeps[MAJORITY].accuracies],
        "rules": {
            rule: {"mean": sweep.mean.tolist(), "deviation": sweep.spread.tolist()}
            for rule, sweep in sweeps.items()
        },
    }


def _by_epochs(setting: Setting) -> Numbers:
    sweep = setting.record.by_epochs(MAX_AGREEMENT)
    (voted,) = setting.record.score([MAJORITY])
    return {
        "sizes": list(sweep.sizes),
        MAX_AGREEMENT: sweep.mean.tolist(),
        MAJORITY: voted.accuracy,
    }


def _changes(settings: Sequence[Setting]) -> Numbers:
    ordered = sorted(settings, key=lambda one: one.samples_per_class or 0)
    found = [setting.record.changes(MAJORITY, MAX_AGREEMENT) for setting in ordered]
    return {
        "samples_per_class": [setting.samples_per_class for setting in ordered],
        "samples": [one.samples for one in found],
        "turned_right": [one.turned_right / one.samples for one in found],
        "turned_wrong": [one.turned_wrong / one.samples for one in found],
        "p_value": [one.p_value for one in found],
    }


NEEDS: Final = {
    1: FigureNeeds("One sample that max agreement rescues", 3, 2, _illustration, single=True),
    2: FigureNeeds("Error consensus", 2, 1, _error_consensus),
    3: FigureNeeds(
        "Accuracy over training, on noisy labels and on the clean subset",
        networks=2,
        epochs=2,
        measure=partial(_over_training, rules=("single", MAJORITY), clean=("single", MAJORITY)),
        clean=True,
    ),
    4: FigureNeeds("Final margin of right and wrong votes", 1, 2, _final_margins),
    5: FigureNeeds("Max agreement over training", 2, 2, _against_oracle),
    6: FigureNeeds("Accuracy by number of networks", 2, 2, _by_networks),
    7: FigureNeeds("Accuracy by number of epochs", 1, 2, _by_epochs),
    8: FigureNeeds("What max agreement changes on clean data", 2, 2, samples_per_class=True),
    10: FigureNeeds("Max agreement over training, in other settings", 2, 2, _against_oracle),
}
