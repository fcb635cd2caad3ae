"""What a record tells with no true label: whether it overfits, and which labels look wrong."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from accord.analysis import Audit
from accord.analysis._audit._audit import UNDECIDED
from accord.analysis._audit._notes import audit_notes
from accord.analysis._curves import MAX_SUBSETS
from accord.errors import PredictionError, RecordError
from accord.report._cached_results import AVERAGE, FIRST, SECOND, Measured


def accuracy_caption(measured: Measured) -> str:
    """Say how the curves are counted, where the majority vote peaks and where both end."""
    first, second = (measured.curves[rule].accuracy for rule in (FIRST, SECOND))
    best = measured.best_epoch
    return (
        "At each epoch, single is the mean of the networks and majority their vote; max-agreement "
        "counts all votes up to that epoch. The majority vote is best, "
        f"{_percent(first[best])}, {epoch_words(measured, best)} (the diamond; only the truth "
        f"tells) and ends at {_percent(first[-1])}; max agreement ends at {_percent(second[-1])}."
    )


def networks_caption(measured: Measured) -> str:
    """Say what the band is, and what one network does with all its epochs."""
    first, second = (measured.by_networks[rule] for rule in (FIRST, SECOND))
    largest = max(len(values) for values in first.accuracies)
    subsets = "all subsets" if largest < MAX_SUBSETS else f"up to {MAX_SUBSETS} subsets"
    return (
        f"The line is the mean over {subsets} of that many networks, the band one standard "
        "deviation to each side; equal votes go to the smaller class. Max agreement over the "
        f"epochs of one network alone gives {_percent(second.mean[0])}; the majority vote of all "
        f"{first.sizes[-1]} gives {_percent(first.mean[-1])}."
    )


def epochs_caption(measured: Measured) -> str:
    """Say which epochs are taken, and how few come within a point of all."""
    sweep = measured.by_epochs
    enough = sweep.sizes[int(np.argmax(sweep.mean >= sweep.mean[-1] - 0.01))]
    return (
        "Max agreement on only so many epochs at equal distances, the first and the last among "
        f"them (a single one is the first). With {enough} of {sweep.sizes[-1]} it loses at most "
        "one point against all."
    )


def final_margin_caption(measured: Measured) -> str:
    """Say what a negative margin means, and how often it occurs on each side."""
    histogram = measured.final_margins
    below = histogram.edges[1:] <= 0
    right, wrong = (
        f"{_percent(side[below].sum() / side.sum())} of the {name}" if side.sum() else None
        for name, side in (("right", histogram.right), ("wrong", histogram.wrong))
    )
    found = " and ".join(part for part in (wrong, right) if part)
    return (
        "How far the class of the last majority vote leads over all epochs. Below 0 it trails "
        f"another class, which max agreement prefers: {found} ones. Upward: samples where that "
        "vote is right; downward: wrong; each as a share of its group."
    )


def margin_caption(measured: Measured) -> str:
    """Say what the ends of the axis mean."""
    few = measured.margins[: len(measured.margins) // 10].sum() / measured.record.samples
    return (
        "Best minus second-best agreement of each sample: near 1, one class has almost all votes; "
        f"near 0, two share them. {_percent(few)} lie below 0.1: look at those first."
    )


def error_consensus_caption(measured: Measured) -> str:
    """Say how many wrong predictions a network makes alone."""
    counts = measured.error_consensus
    if not counts.sum():
        return "At the last epoch no network predicts a wrong class: there is nothing to share."
    return (
        f"Of all {counts.sum():,} wrong predictions at the last epoch, the share whose class so "
        f"many of the {len(counts)} networks give. {_percent(counts[0] / counts.sum())} are one "
        f"network's own, which others may outvote; those of all {len(counts)} no vote at that "
        "epoch can undo."
    )


def persistence_caption(measured: Measured) -> str:
    """Say what a run is and how long right and wrong ones last."""
    persistence = measured.persistence
    told = [
        f"{name} ones last {mean:.1f} epochs on average"
        for name, mean in (
            ("right", persistence.mean_right_length),
            ("wrong", persistence.mean_wrong_length),
        )
        if not np.isnan(mean)
    ]
    return (
        "A run is a stretch of epochs in which a network keeps predicting one class for a sample. "
        "Left: the share of predictions that begin one; the first epoch, where all do, is left "
        f"out. Beside it: the share of runs that last so long or longer; {', '.join(told)}."
    )


def agreement_caption(measured: Measured) -> str:
    """Say where the networks agree most, and what is marked; true labels play no part in it."""
    values, found = measured.watch.agreement, measured.watch
    best = int(values.argmax())
    marked = "the epoch before overfit" if found.alarm else "the epoch that looks best"
    return (
        "How often two networks predict the same class, over all pairs and samples; no true label "
        f"is needed. It is highest, {_percent(values[best])}, {epoch_words(measured, best)} and "
        f"ends at {_percent(values[-1])}. The diamond is {marked}, chosen by how close its "
        "majority vote comes to what all epochs say together."
    )


def reliability_caption(measured: Measured) -> str:
    """Say how to read the diagonal, and on which side of it the share of votes lies."""
    found = measured.reliability[SECOND]
    says = float(np.nansum(found.confidence * found.counts) / found.counts.sum())
    right = float((measured.agreed.labels == measured.record.reader.truth()).mean())
    side = "modest" if right >= says else "bold"
    averaged = (
        f" The mean probability of the last epoch errs by "
        f"{_points(measured.reliability[AVERAGE].error)}."
        if AVERAGE in measured.reliability
        else ""
    )
    return (
        "Labels sorted by score; the larger a dot, the more samples. On the dotted line the score "
        f"is the chance of being right. Shares of votes are {side} here: {_percent(says)} on "
        f"average, where {_percent(right)} are right. ECE, the expected calibration error, is the "
        f"mean distance from the line: {_points(found.error)}.{averaged}"
    )


def risk_coverage_caption(measured: Measured) -> str:
    """Say what is answered first, and what leaving the least sure out buys."""
    curve = measured.risks[SECOND]
    averaged = (
        ", or by mean probability for probability-average" if AVERAGE in measured.risks else ""
    )
    return (
        "Only the surest samples are answered, by margin: the lead of the best class over the "
        f"second{averaged}. From left to right more are answered, up to all, of which "
        f"{_percent(curve.risk[-1])} are wrong. The mean over all coverages (AURC) is "
        f"{_percent(curve.area)}."
    )


def forgotten_caption(measured: Measured) -> str:
    """Say which epoch knew most of what was forgotten, and what max agreement makes of it."""
    found = measured.forgetting
    gone = len(found.forgotten)
    if not gone:
        return "What some epoch knew, the last one knows too: nothing was forgotten."
    best = found.best_epoch
    return (
        f"Of the {gone:,} forgotten {'sample' if gone == 1 else 'samples'}, those that the "
        "majority vote of each epoch knew; at "
        "the last epoch that is none, by definition. The most, "
        f"{_percent(found.knew[best] / gone)}, were known {epoch_words(measured, best)}. Max "
        f"agreement over all epochs is right on {_percent(measured.remembered / gone)}."
    )


TITLES: Final = {
    "accuracy": "Accuracy over training",
    "overfit": "Accuracy over training: one network, the majority vote, max agreement",
    "networks": "Accuracy by number of networks",
    "epochs": "Accuracy by number of epochs",
    "final-margin": "Final margin of right and wrong votes",
    "margin": "Margin of the samples",
    "error-consensus": "Error consensus",
    "persistence": "Onset and length of right and wrong runs",
    "agreement": "Agreement between networks",
    "reliability": "How often labels are right, by score",
    "risk-coverage": "What answering less often buys",
    "forgotten": "Which epochs knew what was forgotten",
}
CAPTIONS: Final[dict[str, Callable[[Measured], str]]] = {
    "accuracy": accuracy_caption,
    "networks": networks_caption,
    "epochs": epochs_caption,
    "final-margin": final_margin_caption,
    "margin": margin_caption,
    "error-consensus": error_consensus_caption,
    "persistence": persistence_caption,
    "agreement": agreement_caption,
    "reliability": reliability_caption,
    "risk-coverage": risk_coverage_caption,
    "forgotten": forgotten_caption,
}


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _points(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}points"


def epoch_words(measured: Measured, epoch: int) -> str:
    """Say when an epoch is: after how much training."""
    progress = round(measured.progress[epoch], 2)
    return f"after {progress:g} epoch{'' if progress == 1 else 's'} of training"


MOST_SUSPECTS: Final = 20  # labels that are listed


def overfit_finding(measured: Measured) -> dict[str, Any] | None:
    """Return the verdict on overfit; None where there is nothing to compare."""
    record = measured.record
    if record.networks < 2 or record.epochs < 2:
        return None
    found = measured.watch
    return {
        "alarm": found.alarm,
        "reason": found.reason,
        "fall": f"{100 * found.fall:.1f}",
        "sure": f"{100 * found.sure:.2f} %",
        "epoch": found.best_epoch,
        "when": epoch_words(measured, found.best_epoch),
        "trained_on": record.reader.sample_info.trained_on,
    }


def label_finding(measured: Measured) -> dict[str, Any] | None:
    """Return what an audit of the given labels found, or why there could be none.

    None where nobody could ask: no given labels were recorded, or of one network alone.
    """
    record = measured.record
    if record.given is None or record.networks < 2:
        return None
    try:
        found = measured.audit
    except (RecordError, PredictionError) as error:  # the latter of very many classes
        return {"refused": str(error)}
    flagged = int(found.flagged.sum())
    return {
        "refused": None,
        "flagged": f"{flagged:,}",
        "samples": f"{record.samples:,}",
        "rate": f"{100 * found.flagged.mean():.1f} %",
        "by_all": f"{100 * found.noise_rate:.1f} %" if found.undecided > UNDECIDED else None,
        "score": _score(found),
        "notes": audit_notes(found, record.reader.sample_info),
        "by_id": record.ids is not None,
        "suspects": _suspects(measured, found),
    }


def _score(found: Audit) -> str | None:
    if found.score is None:
        return None
    score = found.score
    said = f"Against the true labels, which had no say: AUROC {score.auroc:.3f}"
    if not found.flagged.any():
        return f"{said}."
    return (
        f"{said}; {100 * score.precision:.1f} % of the suspects are wrong, and "
        f"{100 * score.recall:.1f} % of the wrong labels are among them."
    )


def _suspects(measured: Measured, found: Audit) -> list[dict[str, Any]]:
    record = measured.record
    names = record.class_names or tuple(str(label) for label in range(record.classes))
    return [
        {
            "sample": str(sample if record.ids is None else record.ids[sample]),
            "given": names[found.given[sample]],
            "proposed": names[found.proposed[sample]],
            "suspicion": f"{found.suspicion[sample]:.3f}",
        }
        for sample in found.ranking[:MOST_SUSPECTS].tolist()
        if found.flagged[sample]
    ]
