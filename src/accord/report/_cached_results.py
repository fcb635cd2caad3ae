"""What a report shows of a record, each measured once, when it is first asked for."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord import analysis
from accord._record import Record
from accord.rules import Prediction, find_rule

FIRST, SECOND = "majority", "max-agreement"  # the two rules that are compared
AVERAGE: Final = "probability-average"  # what the last epoch's ensemble finds most probable
CURVES: Final = ("single", FIRST, AVERAGE, "soft-agreement", SECOND)
MARGIN_BINS: Final = 40


@dataclass(frozen=True)
class ClassRecall:
    """How much of one class two rules find."""

    name: str
    samples: int
    first: float
    second: float

    @property
    def change(self) -> float:
        """The second rule's recall minus the first's."""
        return self.second - self.first


@dataclass(frozen=True)
class Measured:
    """A record and what was measured on it so far."""

    record: Record

    @cached_property
    def progress(self) -> tuple[float, ...]:
        """The true epoch of each recorded one."""
        return self.record.progress

    @cached_property
    def scores(self) -> list[analysis.Score]:
        """Every rule that the record allows."""
        return self.record.score()

    @cached_property
    def recommended(self) -> str:
        """The rule to use, chosen without looking at the truth."""
        return self.record.recommend().rule

    @cached_property
    def changes(self) -> analysis.Changes:
        """Max agreement against the majority vote, sample by sample."""
        return self.record.changes(FIRST, SECOND)

    @cached_property
    def curves(self) -> dict[str, analysis.Curve]:
        """Accuracy after each epoch, by rule."""
        allowed = (name for name in CURVES if find_rule(name).allowed(self.record.reader))
        return {name: self.record.curve(name) for name in allowed}

    @cached_property
    def best_epoch(self) -> int:
        """Where the majority vote is most accurate, which only the truth tells."""
        return int(self.curves[FIRST].accuracy.argmax())

    @cached_property
    def by_networks(self) -> dict[str, analysis.Sweep]:
        """Accuracy by ensemble size, of the two rules compared."""
        return {name: self.record.by_networks(name) for name in (FIRST, SECOND)}

    @cached_property
    def by_epochs(self) -> analysis.Sweep:
        """Accuracy of max agreement by number of equally spaced epochs."""
        return self.record.by_epochs(SECOND)

    @cached_property
    def final_margins(self) -> analysis.MarginHistogram:
        """Final margins where the last majority vote is right, and where it is wrong."""
        return analysis.final_margin_histogram(self.record.reader, bins=MARGIN_BINS)

    @cached_property
    def margins(self) -> NDArray[np.intp]:
        """Samples by margin, in equal bins from 0 to 1."""
        return np.histogram(self.record.margin(), MARGIN_BINS // 2, range=(0, 1))[0]

    @cached_property
    def error_consensus(self) -> NDArray[np.intp]:
        """Wrong predictions of the last epoch by how many networks share each."""
        return analysis.error_consensus_histogram(self.record.reader)

    @cached_property
    def persistence(self) -> analysis.Persistence:
        """Onsets and lengths of right and wrong runs."""
        return self.record.persistence()

    @cached_property
    def watch(self) -> analysis.Watch:
        """Whether overfit has set in; needs two networks."""
        return self.record.watch()

    @cached_property
    def audit(self) -> analysis.Audit:
        """Which given labels look wrong; needs them, and two networks."""
        return self.record.audit()

    @cached_property
    def agreed(self) -> Prediction:
        """What max agreement predicts."""
        return self.record.predict(SECOND)

    @cached_property
    def reliability(self) -> dict[str, analysis.Calibration]:
        """How often labels are right by their share of votes, or by their mean probability."""
        truth = self.record.reader.truth()
        found = {SECOND: analysis.calibration_of(self.agreed, truth)}
        if self.record.reader.has_probabilities:
            found[AVERAGE] = self.record.calibration(AVERAGE)
        return found

    @cached_property
    def risks(self) -> dict[str, analysis.RiskCoverage]:
        """Wrong labels among those answered: from a margin on, or from a mean probability on."""
        truth = self.record.reader.truth()
        right = self.agreed.labels == truth
        found = {SECOND: analysis.risk_coverage(self.record.margin(), right)}
        if self.record.reader.has_probabilities:
            averaged = self.record.predict(AVERAGE)
            found[AVERAGE] = analysis.risk_coverage(averaged.scores, averaged.labels == truth)
        return found

    @cached_property
    def members(self) -> tuple[analysis.NetworkHealth, ...]:
        """Whether each network votes with the others."""
        return self.record.network_health()

    @cached_property
    def forgetting(self) -> analysis.Forgetting:
        """What the majority vote knew at some epoch and does not know at the last one."""
        return self.record.forgetting()

    @cached_property
    def remembered(self) -> int:
        """How many of the forgotten samples max agreement predicts right."""
        gone = self.forgetting.forgotten
        return int((self.agreed.labels[gone] == self.record.reader.truth()[gone]).sum())

    @cached_property
    def moved(self) -> int:
        """How many samples max agreement gives another class than the majority vote."""
        first, second = (self.record.predict(rule).labels for rule in (FIRST, SECOND))
        return int((first != second).sum())

    @cached_property
    def recalls(self) -> list[ClassRecall]:
        """Recall of every class that occurs, with both rules."""
        truth, classes = self.record.reader.truth(), self.record.classes
        first, second = (
            analysis.measure(self.record.predict(rule).labels, truth, classes=classes).recall
            for rule in (FIRST, SECOND)
        )
        names = self.record.class_names or tuple(str(label) for label in range(classes))
        sizes = np.bincount(truth, minlength=classes).tolist()
        rows = zip(names, sizes, first, second, strict=True)
        return [ClassRecall(*row) for row in rows if row[1]]
