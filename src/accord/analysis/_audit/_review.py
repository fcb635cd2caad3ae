"""Review of suspicious labels."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._audit._result import Audit
from accord.errors import ChoiceError, RecordMismatch, SourceError, suggest
from accord.store import SampleInfo


@dataclass(frozen=True)
class Decisions:
    """Labels assigned to samples in a review."""

    samples: NDArray[np.intp]  # (decision,), ascending and unique
    labels: NDArray[np.intp]  # (decision,)

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True)
class Gain:
    """Number of wrong labels found per reviewed label."""

    reviewed: int
    expected: float  # wrong labels for each label reviewed, by the suspicions
    by_chance: float  # the same for labels in random order
    changed: int | None = None  # decisions that differ from the given label
    as_proposed: int | None = None  # of those, decisions that equal the proposed label
    right: int | None = None  # decisions that equal the true label, where known

    @property
    def actual(self) -> float | None:
        """Actual number of wrong labels found per reviewed label."""
        return None if self.changed is None else self.changed / self.reviewed


def review_queue(audit: Audit, most: int | None = None) -> NDArray[np.intp]:
    """Select the most suspicious samples for review.

    Args:
        audit: from `audit`.
        most: size of the queue; by default all flagged samples.

    Raises:
        ChoiceError: `most` is not positive.
    """
    if most is not None and most < 1:
        raise ChoiceError(f"at least one label must be reviewed; got {most}")
    return audit.ranking[: int(audit.flagged.sum()) if most is None else most]


def expected_gain(audit: Audit, queue: NDArray[np.intp]) -> Gain:
    """Compute the expected gain of reviewing samples."""
    expected = float(audit.suspicion[queue].mean()) if len(queue) else 0.0
    return Gain(len(queue), expected=expected, by_chance=audit.noise_rate)


def measure_gain(audit: Audit, decisions: Decisions, truth: NDArray[Any] | None = None) -> Gain:
    """Compute the expected and the actual gain of a review."""
    samples, labels = decisions.samples, decisions.labels
    changed = labels != audit.given[samples]
    return replace(
        expected_gain(audit, samples),
        changed=int(changed.sum()),
        as_proposed=int((changed & (labels == audit.proposed[samples])).sum()),
        right=None if truth is None else int((labels == truth[samples]).sum()),
    )


def corrected_labels(
    audit: Audit, decisions: Decisions | None = None, *, proposals: bool = False
) -> NDArray[np.intp]:  # (sample,)
    """Apply the corrections to the given labels.

    Args:
        audit: from `audit`.
        decisions: of people; they take precedence over proposals.
        proposals: whether to use the proposed labels of undecided samples.

    Three samples, one flagged and another one decided:

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


MOST_DIGITS: Final = 18  # of a sample position
NAMING: Final = ("sample", "id", "given")  # parts that identify the label


@dataclass(frozen=True)
class RawDecision:
    where: str  # line or task, for messages
    decided: str
    sample: str | None = None
    id: str | None = None
    given: str | None = None


def names_mislead(sample_info: SampleInfo) -> bool:
    """Check whether a class is named after the number of another class.

    >>> names_mislead(SampleInfo(9, 2, class_names=("1", "0")))
    True
    >>> names_mislead(SampleInfo(9, 2, class_names=("0", "1")))
    False
    """
    numbers = {str(number) for number in range(sample_info.classes)}
    names = ((number, name.strip()) for number, name in enumerate(sample_info.class_names or ()))
    return any(name in numbers and name != str(number) for number, name in names)


def check_decisions(raw: Iterable[RawDecision], sample_info: SampleInfo, *, name: str) -> Decisions:
    """Validate raw decisions and convert them to samples and classes.

    Classes are given by name or number, samples by position or id. If a class has the number of
    another class as its name, classes are given by name only. Blanks around a name matter only
    where names differ in nothing else. A number may end in .0, as pandas saves columns with gaps.
    """
    parser = _Parser(sample_info, name)
    found: dict[int, int] = {}
    for one in raw:
        sample, label = parser.sample(one), parser.label(one.decided, one.where)
        parser.check_given(one, sample)
        if found.setdefault(sample, label) != label:
            raise SourceError(
                f"{name}: {one.where}: sample {sample} is decided as {parser.names[label]}, and "
                f"as {parser.names[found[sample]]} before. Agree on one, and remove the other."
            )
    if not found:
        raise SourceError(f"{name}: it holds no decision. Was it saved before the review?")
    samples = np.array(sorted(found), np.intp)
    return Decisions(samples, np.array([found[int(sample)] for sample in samples], np.intp))


class _Parser:
    def __init__(self, sample_info: SampleInfo, name: str) -> None:
        self.sample_info = sample_info
        self.name, self.names = name, sample_info.names
        names = sample_info.class_names or ()
        self.by_name = names_mislead(sample_info)
        numbers = () if self.by_name else range(sample_info.classes)
        # Later entries are more specific, and replace earlier ones.
        self.classes = _numbered(name.strip() for name in names)
        self.classes |= {str(number): [number] for number in numbers}
        self.classes |= _numbered(names)
        ids: Any = () if sample_info.ids is None else sample_info.ids.tolist()
        self.ids = {str(text): sample for sample, text in enumerate(ids)}

    def sample(self, raw: RawDecision) -> int:
        by_id = None
        if raw.id is not None:
            if raw.id not in self.ids:
                have = "not in the record" if self.ids else "the record has no ids"
                raise self._other(raw.where, f"id {raw.id!r}: {have}")
            by_id = self.ids[raw.id]
        if raw.sample is None:
            if by_id is None:
                raise SourceError(f"{self.name}: {raw.where} has neither a sample nor an id")
            return by_id
        by_position = self._by_position(raw.sample, raw.where)
        if by_id is not None and by_id != by_position:
            raise self._other(
                raw.where, f"id {raw.id!r} is sample {by_id} of the record, not {by_position}"
            )
        return by_position

    def label(self, text: str, where: str) -> int:
        whole = re.sub(r"^\s*(\d+)\.0+\s*$", r"\1", text)
        spellings = (text, text.strip(), whole)
        found = next((self.classes[one] for one in spellings if one in self.classes), None)
        if found is None:
            names = self.sample_info.class_names or self.classes
            raise SourceError(
                f"{self.name}: {where}: {text!r} is none of the {self.sample_info.classes} "
                f"classes. {suggest(text, names)}"
            )
        if len(found) > 1:
            numbers = " and ".join(map(str, found))
            raise SourceError(
                f"{self.name}: {where}: {text!r} is the name of classes {numbers}. Use the number."
            )
        return found[0]

    def check_given(self, raw: RawDecision, sample: int) -> None:
        given = self.sample_info.given
        if raw.given is None or given is None:
            return
        there = int(given[sample])
        shown = self.names[there]
        if raw.given != shown and (self.by_name or raw.given != str(there)):
            only = " (by name: a class has the number of another as its name)" * self.by_name
            raise self._other(
                raw.where,
                f"sample {sample} has the given label {shown} in the record{only}, not {raw.given}",
            )

    def _by_position(self, text: str, where: str) -> int:
        last = self.sample_info.samples - 1
        # int() raises another error for thousands of digits.
        if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) > last:
            raise self._other(where, f"samples must lie in 0..{last}; got {text!r}")
        return int(text)

    def _other(self, where: str, problem: str) -> RecordMismatch:
        return RecordMismatch(
            f"{self.name}: {where}: {problem}. Do these decisions belong to another record?"
        )


def _numbered(names: Iterable[str]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, []).append(number)
    return numbers
