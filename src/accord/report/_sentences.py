"""Titles, captions and findings of the report."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from accord.analysis import (
    MAJORITY,
    MAX_AGREEMENT,
    PROBABILITY_AVERAGE,
    Audit,
    NetworkHealth,
    RiskCoverage,
    Summary,
    WithoutBad,
)
from accord.analysis._accuracy_curves import MAX_SUBSETS
from accord.analysis._audit._result import UNDECIDED, RankingScore
from accord.report._command_text import after_epochs, measured_name

MOST_SUSPECTS: Final = 20  # labels listed
MOST_NETWORKS: Final = 30  # maximum number of networks listed
RISKS: Final = (0.05, 0.01)  # whose coverage is shown
FEW: Final = 0.05  # of the samples, too few to determine a risk
RULE_NAMES: Final = {MAX_AGREEMENT: "max agreement", MAJORITY: "the majority vote"}
KINDS: Final = {
    "good": "",
    "random": "agrees with no other network beyond chance",
    "constant": "nearly all of its votes are for one class",
    "diverged": "once agreed as well as the others, and no longer does",
    "weak": "agrees with others, but less than half as much as they do",
}


def _accuracy_caption(summary: Summary) -> str:
    scored = summary.require_scored()
    first, second = (scored.curves[rule].accuracy for rule in (MAJORITY, MAX_AGREEMENT))
    best = scored.best_epoch
    labels = "these labels" if is_given(summary) else "the truth"
    return (
        "At each epoch, single is the mean of the networks and majority their vote; max-agreement "
        "counts all votes up to that epoch. The majority vote is best, "
        f"{_percent(first[best])}, {after_epochs(summary.overview, best)} (the diamond; finding it "
        f"requires {labels}) and ends at {_percent(first[-1])}; max agreement ends at "
        f"{_percent(second[-1])}."
    )


def _networks_caption(summary: Summary) -> str:
    first, second = (
        summary.require_scored().by_networks[rule] for rule in (MAJORITY, MAX_AGREEMENT)
    )
    largest = max(len(values) for values in first.accuracies)
    subsets = "all subsets" if largest < MAX_SUBSETS else f"up to {MAX_SUBSETS} subsets"
    return (
        f"The line is the mean over {subsets} of that many networks, the band one standard "
        "deviation to each side; ties go to the lower class. Max agreement over the "
        f"epochs of one network alone gives {_percent(second.mean[0])}; the majority vote of all "
        f"{first.sizes[-1]} gives {_percent(first.mean[-1])}."
    )


def _epochs_caption(summary: Summary) -> str:
    sweep = summary.require_scored().by_epochs
    enough = sweep.sizes[int(np.argmax(sweep.mean >= sweep.mean[-1] - 0.01))]
    return (
        "Max agreement on that many epochs at equal distances, the first and the last among "
        f"them (a single one is the first). {enough} of {sweep.sizes[-1]} are within one point of "
        "all."
    )


def _final_margin_caption(summary: Summary) -> str:
    histogram = summary.require_judged().final_margins
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


def _margin_caption(summary: Summary) -> str:
    margins = summary.margins
    few = margins[: len(margins) // 10].sum() / summary.overview.samples
    return (
        "Best minus second-best agreement of each sample: near 1, one class has almost all votes; "
        f"near 0, two share them. {_percent(few)} lie below 0.1: look at those first."
    )


def _error_consensus_caption(summary: Summary) -> str:
    counts = summary.require_judged().error_consensus
    if not counts.sum():
        return "At the last epoch no network predicts a wrong class."
    return (
        f"The {counts.sum():,} wrong predictions at the last epoch by the number of the "
        f"{len(counts)} networks that share the class. {_percent(counts[0] / counts.sum())} are "
        f"made by one network, which others may outvote; those of all {len(counts)} cannot be "
        "outvoted at that epoch."
    )


def _persistence_caption(summary: Summary) -> str:
    persistence = summary.require_judged().persistence
    means = ("right", persistence.mean_right_length), ("wrong", persistence.mean_wrong_length)
    lengths = [
        f"{name} ones last {mean:.1f} epochs on average"
        for name, mean in means
        if not np.isnan(mean)
    ]
    return (
        "A run is a stretch of epochs in which a network keeps predicting one class for a sample. "
        "Left: the share of predictions that begin one; the first epoch, where all do, is left "
        f"out. Right: the share of runs that last at least so long; {', '.join(lengths)}."
    )


def _agreement_caption(summary: Summary) -> str:
    assert summary.watch is not None
    values, alarm = summary.watch.agreement, summary.watch.alarm
    best = int(values.argmax())
    marked = "the last good epoch" if alarm else "the best epoch by majority vote"
    diamond = (
        f" The diamond is {marked}: the one whose majority vote is closest to the votes of all "
        "epochs together."
        if summary.watch.verdict
        else ""
    )
    return (
        "How often two networks predict the same class, over all pairs and samples; no true label "
        f"is used. It is highest, {_percent(values[best])}, "
        f"{after_epochs(summary.overview, best)}, and ends at {_percent(values[-1])}.{diamond}"
    )


def _reliability_caption(summary: Summary) -> str:
    judged = summary.require_judged()
    found = judged.reliability[MAX_AGREEMENT]
    mean = float(np.nansum(found.confidence * found.counts) / found.counts.sum())
    side = "underconfident" if judged.accuracy >= mean else "overconfident"
    averaged = (
        f" That of the mean probability of the last epoch is "
        f"{_points(judged.reliability[PROBABILITY_AVERAGE].error)}."
        if PROBABILITY_AVERAGE in judged.reliability
        else ""
    )
    return (
        "Labels by score; a larger dot stands for more samples. On the dotted line the score is "
        f"the probability of being right. Shares of votes are {side} here: {_percent(mean)} on "
        f"average, with {_percent(judged.accuracy)} right. ECE, the expected calibration error, is "
        f"the mean distance from the line: {_points(found.error)}.{averaged}"
    )


def _risk_coverage_caption(summary: Summary) -> str:
    risks = summary.require_judged().risks
    averaged = (
        ", or by mean probability for probability-average" if PROBABILITY_AVERAGE in risks else ""
    )
    return (
        "Only samples of high margin are answered: the lead of the best class over the "
        f"second{averaged}. From left to right more are answered, up to all, of which "
        f"{_percent(risks[MAX_AGREEMENT].risk[-1])} are wrong. The mean over all coverages (AURC) "
        f"is {_percent(risks[MAX_AGREEMENT].area)}."
    )


def _forgotten_caption(summary: Summary) -> str:
    judged = summary.require_judged()
    found = judged.forgetting
    gone = len(found.forgotten)
    if not gone:
        return "The last epoch is right wherever another epoch is: no sample was forgotten."
    best = found.best_epoch
    return (
        f"The share of the {gone:,} forgotten {'sample' if gone == 1 else 'samples'} that the "
        "majority vote of each epoch predicts right; at the last epoch that is none, by "
        f"definition. It is highest, {_percent(found.knew[best] / gone)}, "
        f"{after_epochs(summary.overview, best)}. Max agreement over all epochs is right on "
        f"{_percent(judged.remembered / gone)}."
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
    "reliability": "Accuracy by score",
    "risk-coverage": "Risk by coverage",
    "forgotten": "Forgotten samples by epoch",
}
CAPTIONS: Final[dict[str, Callable[[Summary], str]]] = {
    "accuracy": _accuracy_caption,
    "networks": _networks_caption,
    "epochs": _epochs_caption,
    "final-margin": _final_margin_caption,
    "margin": _margin_caption,
    "error-consensus": _error_consensus_caption,
    "persistence": _persistence_caption,
    "agreement": _agreement_caption,
    "reliability": _reliability_caption,
    "risk-coverage": _risk_coverage_caption,
    "forgotten": _forgotten_caption,
}


def is_given(summary: Summary) -> bool:
    """Check whether predictions are compared with labels that are only given."""
    return summary.overview.sample_info.reference == "given"


def title_of(name: str, summary: Summary) -> str:
    """Get the title of a figure, which names the labels that predictions are compared with."""
    return TITLES[name].replace("Accuracy", measured_name(summary.overview).capitalize())


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _points(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}points"


def overfit_finding(summary: Summary) -> dict[str, Any] | None:
    found = summary.watch
    if found is None:
        return None
    return {
        "verdict": found.verdict,
        "alarm": found.alarm,
        "reason": found.reason,
        "fall": f"{100 * found.fall:.1f}",
        "confidence": f"{100 * found.sure:.2f} %",
        "when": after_epochs(summary.overview, found.best_epoch),
    }


def label_finding(summary: Summary) -> dict[str, Any] | None:
    found = summary.audit
    if found is None:
        return {"refused": summary.audit_error} if summary.audit_error else None
    return {
        "refused": None,
        "flagged": f"{int(found.flagged.sum()):,}",
        "samples": f"{summary.overview.samples:,}",
        "rate": f"{100 * found.flagged.mean():.1f} %",
        "mean": f"{100 * found.noise_rate:.1f} %" if found.undecided > UNDECIDED else None,
        "score": None if found.score is None else _ranking_score(found, found.score),
        "notes": list(found.notes),
        "by_id": summary.overview.sample_info.ids is not None,
        "suspects": _suspects(summary, found),
    }


def _ranking_score(found: Audit, score: RankingScore) -> str:
    text = f"Scored against the true labels, which the audit did not use: AUROC {score.auroc:.3f}"
    if not found.flagged.any():
        return f"{text}."
    return (
        f"{text}; {100 * score.precision:.1f} % of the suspects are wrong, and "
        f"{100 * score.recall:.1f} % of the wrong labels are among them."
    )


def _suspects(summary: Summary, found: Audit) -> list[dict[str, Any]]:
    info = summary.overview.sample_info
    names = info.names
    return [
        {
            "sample": str(sample if info.ids is None else info.ids[sample]),
            "given": names[found.given[sample]],
            "proposed": names[found.proposed[sample]],
            "suspicion": f"{found.suspicion[sample]:.3f}",
            "log_odds": f"{found.log_odds[sample]:.1f}",
        }
        for sample in found.most_suspicious(MOST_SUSPECTS).tolist()
    ]


def coverage_at(curve: RiskCoverage, risk: float) -> float | None:
    """Find the largest coverage with a risk of at most `risk`.

    Coverages of very few samples are left out: there, any risk may be kept by chance.

    >>> curve = RiskCoverage(np.array([0.9, 0.5]), np.array([0.6, 1.0]), np.array([0.01, 0.1]))
    >>> coverage_at(curve, 0.05), coverage_at(curve, 0.001)
    (0.6, None)
    """
    kept = np.flatnonzero((curve.risk <= risk) & (curve.coverage >= FEW))
    return float(curve.coverage[kept[-1]]) if kept.size else None


def trust_finding(summary: Summary) -> dict[str, Any] | None:
    if summary.judged is None:
        return None
    risks = []
    for risk in RISKS:
        coverage = coverage_at(summary.judged.risks[MAX_AGREEMENT], risk)
        some = "none" if coverage is None else f"{100 * coverage:.1f} %"
        risks.append({"risk": f"{100 * risk:g} %", "answered": "all" if coverage == 1 else some})
    return {"risks": risks, "trained_on": summary.overview.trained_on}


def networks_finding(summary: Summary) -> dict[str, Any] | None:
    found = summary.networks
    if not found:
        return None
    shown = sorted(found, key=lambda one: (one.good, one.agreement))[:MOST_NETWORKS]
    accuracies = _accuracies(summary)
    return {
        "rows": [
            {
                "network": one.network,
                "kind": one.kind,
                "good": one.good,
                "why": KINDS[one.kind],
                "agreement": one.agreement,
                "at": min(1.0, max(0.0, one.agreement)),
                "accuracy": accuracies.get(one.network),
            }
            for one in sorted(shown, key=lambda one: (one.good, one.network))
        ],
        "networks": len(found),
        "scored": bool(accuracies),
        "sentence": _networks_sentence(found, comparable=summary.comparable),
        "left_out": _left_out(summary, summary.without_bad) if summary.without_bad else None,
    }


def _accuracies(summary: Summary) -> dict[int, float]:
    if summary.scored is None:
        return {}
    single = next(one for one in summary.scored.found.scores if one.per_network is not None)
    return dict(zip(summary.overview.numbers, single.per_network or (), strict=True))


def _networks_sentence(found: tuple[NetworkHealth, ...], *, comparable: bool) -> str:
    bad = [one for one in found if not one.good]
    if bad:
        named = ", ".join(f"network {one.network} ({one.kind})" for one in bad)
        does = "does" if len(bad) == 1 else "do"
        return f"{len(bad)} of {len(found)} {does} not vote with the rest: {named}."
    if not comparable:
        return (
            "No two networks agree beyond chance, so bad ones cannot be identified. "
            "Are they trained?"
        )
    if len(found) == 2:
        return "They vote together. If two networks disagreed, the bad one could not be identified."
    return f"All {len(found)} vote with the others."


def _left_out(summary: Summary, without_bad: WithoutBad) -> dict[str, Any]:
    return {
        "moved": f"{without_bad.moved:,}",
        "samples": f"{summary.overview.samples:,}",
        "keep": ",".join(map(str, without_bad.kept)),
        "accuracies": [
            {
                "rule": RULE_NAMES[rule],
                "before": f"{100 * before:.1f} %",
                "after": f"{100 * after:.1f} %",
            }
            for rule, (before, after) in without_bad.accuracies.items()
        ],
    }


def forgotten_finding(summary: Summary) -> dict[str, Any] | None:
    if summary.judged is None or summary.overview.epochs < 2:
        return None
    found, remembered = summary.judged.forgetting, summary.judged.remembered
    gone = len(found.forgotten)
    if not gone:
        return {"forgotten": None}
    return {
        "forgotten": f"{gone:,}",
        "samples": f"{summary.overview.samples:,}",
        "share": f"{100 * found.share:.1f} %",
        "remembered": f"{remembered:,}",
        "lost": f"{gone - remembered:,}",
        "rescued": f"{100 * remembered / gone:.1f} %",
    }
