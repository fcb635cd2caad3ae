"""Check what people decided against the record it is about."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._audit._audit import Audit
from accord.errors import ChoiceError, RecordMismatch, SourceError, suggest
from accord.store import SampleInfo


@dataclass(frozen=True)
class Decisions:
    """The labels that people decided on, for some of the samples."""

    samples: NDArray[np.intp]  # (decision,), ascending, none twice
    labels: NDArray[np.intp]  # (decision,)

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True)
class Gain:
    """What reviewing some labels finds: wrong labels for each label that people look at."""

    reviewed: int
    expected: float  # wrong labels for each label reviewed, as the audit expects
    by_chance: float  # the same if labels were reviewed in random order
    changed: int | None = None  # decisions for another label than the given one
    as_proposed: int | None = None  # of those, decisions for the proposed label
    right: int | None = None  # decisions for the true label, where the truth is known

    @property
    def actual(self) -> float | None:
        """Wrong labels found for each label reviewed, once people have decided."""
        return None if self.changed is None else self.changed / self.reviewed


def review_queue(audit: Audit, most: int | None = None) -> NDArray[np.intp]:
    """Return the samples to look at, the most suspicious first.

    Args:
        audit: what `audit` found.
        most: how many; by default all that are flagged.

    Raises:
        ChoiceError: `most` is not positive.
    """
    if most is not None and most < 1:
        raise ChoiceError(f"at least one label must be reviewed; got {most}")
    return audit.ranking[: int(audit.flagged.sum()) if most is None else most]


def expected_gain(audit: Audit, queue: NDArray[np.intp]) -> Gain:
    """Tell what reviewing these samples should find."""
    expected = float(audit.suspicion[queue].mean()) if len(queue) else 0.0
    return Gain(len(queue), expected=expected, by_chance=audit.noise_rate)


def measure_gain(audit: Audit, decisions: Decisions, truth: NDArray[Any] | None = None) -> Gain:
    """Tell what people found, against what was expected of the samples they decided on."""
    samples, labels = decisions.samples, decisions.labels
    changed = labels != audit.given[samples]
    planned = expected_gain(audit, samples)
    return Gain(
        reviewed=planned.reviewed,
        expected=planned.expected,
        by_chance=planned.by_chance,
        changed=int(changed.sum()),
        as_proposed=int((changed & (labels == audit.proposed[samples])).sum()),
        right=None if truth is None else int((labels == truth[samples]).sum()),
    )


def corrected_labels(
    audit: Audit, decisions: Decisions | None = None, *, proposals: bool = False
) -> NDArray[np.intp]:  # (sample,)
    """Return the labels to train on next.

    Args:
        audit: what `audit` found.
        decisions: what people decided; it goes before what is proposed.
        proposals: whether to take the proposed labels where nobody decided.

    Three samples, of which one was flagged and another one decided on:

    >>> found = np.array([0, 1, 1]), np.array([0, 1, 0])  # given and proposed
    >>> from types import SimpleNamespace
    >>> audit = SimpleNamespace(given=found[0], proposed=found[1])
    >>> corrected_labels(audit, Decisions(np.array([0]), np.array([1])), proposals=True)
    array([1, 1, 0])
    """
    labels = (audit.proposed if proposals else audit.given).copy()
    if decisions is not None:
        labels[decisions.samples] = decisions.labels
    return labels


MOST_DIGITS: Final = 18  # of a sample's position


@dataclass(frozen=True)
class Said:
    """One decision as a file states it, each part as text; None where it has no such part."""

    where: str  # the line or task, for messages
    decided: str
    sample: str | None = None
    id: str | None = None
    given: str | None = None


def names_mislead(sample_info: SampleInfo) -> bool:
    """Tell whether a class is named as another one is numbered, so that numbers mean nothing.

    >>> names_mislead(SampleInfo(9, 2, class_names=("1", "0")))
    True
    >>> names_mislead(SampleInfo(9, 2, class_names=("0", "1")))
    False
    """
    numbers = {str(number) for number in range(sample_info.classes)}
    names = ((number, name.strip()) for number, name in enumerate(sample_info.class_names or ()))
    return any(name in numbers and name != str(number) for number, name in names)


def check_decisions(said: Iterable[Said], sample_info: SampleInfo, *, name: str) -> Decisions:
    """Turn what a file states into samples and classes of a record.

    Classes go by their names or numbers, samples by their positions or ids. Where a class is
    named as another one is numbered, classes go by their names alone. Blanks around a name
    matter only where names differ in nothing else. A number may end in .0, as in columns with
    gaps that pandas saved.

    Raises:
        RecordMismatch: a sample or id is not in the record, or its given label differs.
        SourceError: a class is unknown or one of two of that name, or a sample is decided
            twice, differently; or there is no decision at all.
    """
    reader = _Reader(sample_info, name)
    found: dict[int, int] = {}
    for one in said:
        sample, label = reader.sample(one), reader.label(one.decided, one.where)
        reader.check_given(one, sample)
        if found.setdefault(sample, label) != label:
            raise SourceError(
                f"{name}: {one.where}: sample {sample} was decided before, as "
                f"{reader.show(found[sample])}; now it is {reader.show(label)}. "
                "Agree on one, and remove the other."
            )
    if not found:
        raise SourceError(f"{name}: there is no decision in it. Was it saved before the review?")
    samples = np.array(sorted(found), np.intp)
    return Decisions(samples, np.array([found[int(sample)] for sample in samples], np.intp))


class _Reader:
    def __init__(self, sample_info: SampleInfo, name: str) -> None:
        self.sample_info = sample_info
        self.name = name
        names = sample_info.class_names or ()
        self.by_name = names_mislead(sample_info)
        numbers = () if self.by_name else range(sample_info.classes)
        # What is said more exactly comes last, and replaces what is not.
        self.classes = _numbered(name.strip() for name in names)
        self.classes |= {str(number): [number] for number in numbers}
        self.classes |= _numbered(names)
        ids: Any = () if sample_info.ids is None else sample_info.ids.tolist()
        self.ids = {str(text): sample for sample, text in enumerate(ids)}

    def sample(self, said: Said) -> int:
        by_id = None if said.id is None else self._by_id(said)
        if said.sample is None:
            if by_id is None:
                raise SourceError(f"{self.name}: {said.where} names no sample: no sample, no id")
            return by_id
        by_position = self._by_position(said.sample, said.where)
        if by_id is not None and by_id != by_position:
            raise self._other(
                said.where, f"id {said.id!r} is sample {by_id} of the record, not {by_position}"
            )
        return by_position

    def label(self, text: str, where: str) -> int:
        said = (text, text.strip(), _whole(text))
        found = next((self.classes[one] for one in said if one in self.classes), None)
        if found is None:
            names = self.sample_info.class_names or self.classes
            raise SourceError(
                f"{self.name}: {where}: {text!r} is none of the "
                f"{self.sample_info.classes} classes. "
                f"{suggest(text, names)}"
            )
        if len(found) > 1:
            numbers = " and ".join(str(number) for number in found)
            raise SourceError(
                f"{self.name}: {where}: {text!r} names the classes {numbers}. Write the number."
            )
        return found[0]

    def check_given(self, said: Said, sample: int) -> None:
        given = self.sample_info.given
        if said.given is None or given is None:
            return
        there = int(given[sample])
        if said.given != self.show(there) and (self.by_name or said.given != str(there)):
            only = " (by name: its classes are named as others are numbered)" * self.by_name
            raise self._other(
                said.where,
                f"sample {sample} is given {self.show(there)} in the record{only}, "
                f"not {said.given}",
            )

    def show(self, label: int) -> str:
        names = self.sample_info.class_names
        return str(label) if names is None else names[label]

    def _by_id(self, said: Said) -> int:
        if said.id not in self.ids:
            have = "there is none such" if self.ids else "the record has no ids"
            raise self._other(said.where, f"id {said.id!r}: {have}")
        return self.ids[said.id]

    def _by_position(self, text: str, where: str) -> int:
        last = self.sample_info.samples - 1
        # int() refuses thousands of digits with an error of its own.
        if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) > last:
            raise self._other(where, f"samples must lie in 0..{last}; got {text!r}")
        return int(text)

    def _other(self, where: str, problem: str) -> RecordMismatch:
        return RecordMismatch(
            f"{self.name}: {where}: {problem}. Are these decisions about another record?"
        )


def _whole(text: str) -> str:
    """Return a number without a .0 at its end; any other text as it is."""
    return re.sub(r"^\s*(\d+)\.0+\s*$", r"\1", text)


def _numbered(names: Iterable[str]) -> dict[str, list[int]]:
    """Return the numbers of the classes of each name, which should be one."""
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, []).append(number)
    return numbers
