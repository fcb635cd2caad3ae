"""Numbers shown in a report.

`summarize` takes a context, which reads each row once and computes each fit once. Whatever needs
labels to compare with lies in `Scored`, whatever needs true ones in `Judged`; whatever compares
networks is None where there is one network alone.
"""

from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from accord.analysis._accuracy_curves import Curve, Sweep, by_epochs, by_networks, curve
from accord.analysis._audit._audit import audit
from accord.analysis._audit._result import Audit
from accord.analysis._dynamics import (
    Forgetting,
    MarginHistogram,
    Persistence,
    error_consensus_histogram,
    final_margin_histogram,
    forgetting,
    margin_of,
    persistence,
)
from accord.analysis._network_health import NetworkHealth, chance_error, network_health
from accord.analysis._record_notes import record_notes
from accord.analysis._scores import Scores, compare_rules, measure
from accord.analysis._trust._calibration import Calibration, calibration_of
from accord.analysis._trust._trust import RiskCoverage, risk_coverage
from accord.analysis._watch import Watch, watch
from accord.errors import PredictionError, RecordError, TruthMissing
from accord.rules import Context, Prediction, find_rule
from accord.store import RecordReader, SampleInfo

MAJORITY: Final = "majority"
MAX_AGREEMENT: Final = "max-agreement"
PROBABILITY_AVERAGE: Final = "probability-average"
CURVES: Final = ("single", MAJORITY, PROBABILITY_AVERAGE, "soft-agreement", MAX_AGREEMENT)
MARGIN_BINS: Final = 40


@dataclass(frozen=True)
class Overview:
    """Location, size and metadata of a record."""

    path: str
    numbers: tuple[int, ...]  # of the networks
    progress: tuple[float, ...]  # (epoch,), true epochs of the first network
    sample_info: SampleInfo
    has_probabilities: bool
    trained_on: bool  # whether the networks were trained on these samples

    @classmethod
    def of(cls, reader: RecordReader) -> "Overview":
        """Create the overview of a record."""
        progress = reader.networks_info()[0].progress
        info, has_probabilities = reader.sample_info, reader.has_probabilities
        return cls(
            reader.name, reader.numbers, progress, info, has_probabilities, reader.trained_on
        )

    @property
    def networks(self) -> int:
        """Number of networks."""
        return len(self.numbers)

    @property
    def epochs(self) -> int:
        """Number of epochs."""
        return len(self.progress)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.sample_info.samples

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.sample_info.classes


@dataclass(frozen=True)
class ClassRecall:
    """Recall of a class for two rules."""

    name: str
    samples: int
    majority: float
    max_agreement: float

    @property
    def change(self) -> float:
        """Difference in recall between max agreement and the majority vote."""
        return self.max_agreement - self.majority


@dataclass(frozen=True)
class Scored:
    """Results that depend on true labels, or on given ones of samples that are held out."""

    found: Scores  # of every rule that the record allows
    recalls: list[ClassRecall]  # of the classes that occur
    curves: dict[str, Curve]  # by rule
    by_networks: dict[str, Sweep]  # by rule: majority, max-agreement
    by_epochs: Sweep  # of max agreement

    @property
    def best_epoch(self) -> int:
        """Epoch with the most accurate majority vote."""
        return int(self.curves[MAJORITY].accuracy.argmax())


@dataclass(frozen=True)
class Judged:
    """Results that depend on true labels."""

    final_margins: MarginHistogram
    error_consensus: NDArray[np.intp]
    persistence: Persistence
    accuracy: float  # of max agreement
    reliability: dict[str, Calibration]  # by rule: max-agreement, perhaps probability-average
    risks: dict[str, RiskCoverage]  # the same
    forgetting: Forgetting
    remembered: int  # forgotten samples that max agreement predicts right


@dataclass(frozen=True)
class WithoutBad:
    """Effect of leaving out bad networks."""

    kept: tuple[int, ...]  # numbers of the good networks
    moved: int  # samples to which max agreement gives another class
    accuracies: dict[str, tuple[float, float]]  # rule -> (before, after), empty without truth


@dataclass(frozen=True)
class Summary:
    """Summary of a record for a report."""

    overview: Overview
    metadata: tuple[dict[str, Any], ...]  # (network,)
    margins: NDArray[np.intp]  # samples by margin, in equal bins from 0 to 1
    moved: int  # samples to which max agreement gives another class than the majority vote
    scored: Scored | None  # None without labels to compare with
    judged: Judged | None  # None without true labels
    watch: Watch | None  # None for one network or one epoch
    networks: tuple[NetworkHealth, ...]  # empty for one network
    comparable: bool  # whether any two networks agree beyond chance
    without_bad: WithoutBad | None  # None if no network is bad
    audit: Audit | None  # None without given labels, for one network, and if it was refused
    audit_error: str  # why the audit was refused, else empty
    notes: tuple[str, ...]  # on the record as a whole

    def require_scored(self) -> Scored:
        """Get the results that depend on labels to compare with.

        Raises:
            TruthMissing: the record has none.
        """
        return self.scored or self._raise()

    def require_judged(self) -> Judged:
        """Get the results that depend on true labels.

        Raises:
            TruthMissing: the record has no true labels.
        """
        return self.judged or self._raise()

    def _raise(self) -> NoReturn:
        raise TruthMissing(
            f"{self.overview.path}: the record has no true labels, which this figure requires. "
            "Pass them when recording: Recorder(…, truth=labels)"
        )


def summarize(reader: RecordReader) -> Summary:
    """Compute the summary of a record."""
    reader.check_complete("the report")
    context = Context.of(reader)
    overview, info = Overview.of(context), context.sample_info
    several = context.networks > 1
    majority, agreed = (context.once(find_rule(rule)) for rule in (MAJORITY, MAX_AGREEMENT))
    margins = context.once(margin_of)
    networks = context.once(network_health) if several else ()
    audited, audit_error = _audit(context)
    given = info.reference == "given" and not context.trained_on
    found = compare_rules(context) if given or info.truth is not None else None
    return Summary(
        overview=overview,
        metadata=tuple(one.metadata for one in context.networks_info()),
        margins=np.histogram(margins, MARGIN_BINS // 2, range=(0, 1))[0],
        moved=int((majority.labels != agreed.labels).sum()),
        scored=None if found is None else _score(context, found, majority, agreed),
        judged=None if info.truth is None else _judge(context, agreed, margins),
        watch=watch(context) if several and context.epochs > 1 else None,
        networks=networks,
        comparable=max((one.agreement for one in networks), default=0.0) > chance_error(context),
        without_bad=_leave_out(context, networks),
        audit=audited,
        audit_error=audit_error,
        notes=record_notes(context),
    )


def _score(context: Context, found: Scores, majority: Prediction, agreed: Prediction) -> Scored:
    return Scored(
        found=found,
        recalls=_recalls(context, majority, agreed),
        curves={name: curve(context, name) for name in CURVES if find_rule(name).allowed(context)},
        by_networks={rule: by_networks(context, rule) for rule in (MAJORITY, MAX_AGREEMENT)},
        by_epochs=by_epochs(context, MAX_AGREEMENT),
    )


def _judge(context: Context, agreed: Prediction, margins: NDArray[np.float64]) -> Judged:
    truth = context.truth()
    right = agreed.labels == truth
    reliability = {MAX_AGREEMENT: calibration_of(agreed, truth)}
    risks = {MAX_AGREEMENT: risk_coverage(margins, right)}
    if context.has_probabilities:
        averaged = context.once(find_rule(PROBABILITY_AVERAGE))
        reliability[PROBABILITY_AVERAGE] = calibration_of(averaged, truth)
        risks[PROBABILITY_AVERAGE] = risk_coverage(averaged.scores, averaged.labels == truth)
    forgotten = forgetting(context)
    return Judged(
        final_margins=final_margin_histogram(context, bins=MARGIN_BINS),
        error_consensus=error_consensus_histogram(context),
        persistence=persistence(context),
        accuracy=float(right.mean()),
        reliability=reliability,
        risks=risks,
        forgetting=forgotten,
        remembered=int(right[forgotten.forgotten].sum()),
    )


def _recalls(context: Context, majority: Prediction, agreed: Prediction) -> list[ClassRecall]:
    truth, classes = context.reference_labels(), context.classes
    first, second = (
        measure(one.labels, truth, classes=classes).recall for one in (majority, agreed)
    )
    sizes = np.bincount(truth, minlength=classes).tolist()
    recalls = zip(context.sample_info.names, sizes, first, second, strict=True)
    return [ClassRecall(*recall) for recall in recalls if recall[1]]


def _leave_out(context: Context, networks: tuple[NetworkHealth, ...]) -> WithoutBad | None:
    good = [one.network for one in networks if one.good]
    if len(good) == len(networks):
        return None
    kept, truth = context.select(networks=good), context.sample_info.truth
    labels = {
        rule: (context.once(find_rule(rule)).labels, kept.once(find_rule(rule)).labels)
        for rule in (MAX_AGREEMENT, MAJORITY)
    }
    before, after = labels[MAX_AGREEMENT]
    accuracies = {
        rule: (float((first == truth).mean()), float((second == truth).mean()))
        for rule, (first, second) in labels.items()
        if truth is not None
    }
    return WithoutBad(tuple(good), int((before != after).sum()), accuracies)


def _audit(context: Context) -> tuple[Audit | None, str]:
    if context.sample_info.given is None or context.networks < 2:
        return None, ""
    try:
        return audit(context), ""
    except (RecordError, PredictionError) as error:  # the latter for a great many classes
        return None, str(error)
