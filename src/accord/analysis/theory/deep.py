"""Whether the networks of a record agree less where they overfit."""

from dataclasses import dataclass

import numpy as np

from accord.analysis.curves import curve
from accord.errors import ChoiceError
from accord.rules.overfit.equal_pairs import network_agreement
from accord.store import Rows


@dataclass(frozen=True)
class FallsTogether:
    """How many epochs lower accuracy, agreement, or both, each against the epoch before."""

    epochs: int  # that have one before them
    accuracy_falls: int
    both_fall: int
    agreement_falls: int

    @property
    def share(self) -> float | None:
        """The share of the epochs of falling accuracy in which agreement falls too."""
        return self.both_fall / self.accuracy_falls if self.accuracy_falls else None

    @property
    def share_elsewhere(self) -> float | None:
        """The share of all other epochs in which agreement falls."""
        others = self.epochs - self.accuracy_falls
        return (self.agreement_falls - self.both_fall) / others if others else None


def falls_together(rows: Rows) -> FallsTogether:
    """Count the epochs where the networks' mean accuracy falls, and where agreement does.

    Agreement is how often two networks predict the same class, as `network_agreement` has it.

    Raises:
        ChoiceError: there is only one network, or one epoch.
        TruthMissing: the record has no true labels.
    """
    if rows.epochs < 2:
        raise ChoiceError(f"{rows.name}: a fall needs two epochs; there is one")
    accuracy = np.diff(curve(rows, "single").accuracy) < 0
    agreement = np.diff(network_agreement(rows)) < 0
    return FallsTogether(
        epochs=rows.epochs - 1,
        accuracy_falls=int(accuracy.sum()),
        both_fall=int((accuracy & agreement).sum()),
        agreement_falls=int(agreement.sum()),
    )
