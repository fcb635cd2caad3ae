"""What a figure of the paper is made from: settings, each with its records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accord.api import Record
from accord.errors import ChoiceError, RecordError, RecordMismatch


@dataclass(frozen=True)
class Setting:
    """One setting of an experiment, which becomes one panel.

    In figure 8, settings of one name become one panel: a record for each number of samples.
    """

    name: str  # such as "CIFAR-10, 40 % symmetric noise"
    record: Record
    clean: Record | None = None  # trained on the correctly labelled part of the same data
    samples_per_class: int | None = None  # of the training data
    pictures: NDArray[Any] | None = None  # (sample, height, width[, colour]), 0..255, or 0..1


class Needs(NamedTuple):
    """What a figure asks of each setting."""

    title: str
    networks: int
    epochs: int
    clean: bool = False
    samples_per_class: bool = False
    alone: bool = False  # one setting, not several


NEEDS: Final = {
    1: Needs("One sample that max agreement rescues", 3, 2, alone=True),
    2: Needs("Error consensus", 2, 1),
    3: Needs("Accuracy over training, on noisy labels and on the clean subset", 2, 2, clean=True),
    4: Needs("Final margin of right and wrong votes", 1, 2),
    5: Needs("Max agreement over training", 2, 2),
    6: Needs("Accuracy by number of networks", 2, 2),
    7: Needs("Accuracy by number of epochs", 1, 2),
    8: Needs("What max agreement changes on clean data", 2, 2, samples_per_class=True),
    10: Needs("Max agreement over training, in other settings", 2, 2),
}


def needs_of(number: int) -> Needs:
    """Return what a figure asks of its settings; refuse one that shows no record."""
    if number not in NEEDS:
        known = ", ".join(map(str, NEEDS))
        raise ChoiceError(f"no figure {number} is drawn from records. There are: {known}")
    return NEEDS[number]


def check_settings(number: int, settings: Sequence[Setting]) -> None:
    """Refuse settings from which a figure cannot be drawn, and say what is missing.

    Raises:
        ChoiceError: no figure has that number, or a setting lacks a part that it needs.
        RecordError: a record has too few networks or epochs.
        RecordMismatch: the clean run was recorded on other samples.
        TruthMissing: a record has no true labels.
    """
    needs = needs_of(number)
    if not settings:
        raise ChoiceError(f"figure {number} needs at least one setting; got none")
    if needs.alone and len(settings) > 1:
        raise ChoiceError(f"figure {number} shows one setting; got {len(settings)}")
    for setting in settings:
        setting.record.rows.truth()
        _check_record(number, setting.record, needs)
        _check_clean(number, setting, needs)
    if needs.samples_per_class:
        _check_samples_per_class(number, settings)


def _check_record(number: int, record: Record, needs: Needs) -> None:
    for what, least in (("networks", needs.networks), ("epochs", needs.epochs)):
        there = getattr(record, what)
        if there < least:
            raise RecordError(
                f"{record.path}: figure {number} needs at least {least} {what}; "
                f"the record holds {there}"
            )


def _check_clean(number: int, setting: Setting, needs: Needs) -> None:
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
    if not np.array_equal(clean.rows.truth(), setting.record.rows.truth()):
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
