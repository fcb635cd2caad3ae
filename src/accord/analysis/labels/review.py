"""People decide on suspicious labels: the queue for them, their decisions, what these gain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.analysis.labels.audit import Audit
from accord.errors import ChoiceError


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
