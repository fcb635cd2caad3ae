"""Notes on the limitations of an audit."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from accord.analysis._audit._result import LEAST_FINAL_AGREEMENT, UNDECIDED, Audit
from accord.errors import listed
from accord.store import SampleInfo

TOGETHER: Final = 0.05  # of labels contradicted together at one epoch; above chance and errors
MOST_NAMED: Final = 10  # classes in a note
SPARED: Final = 0.01  # of all labels, ignored below
# Of 52 small records, only the five whose networks were right on 55 to 64 % of unseen samples
# exceed this and end below LEAST_FINAL_AGREEMENT; their noise rates are 10 to 35 points too high.
MOST_UNSURE: Final = 0.075  # of labels misjudged, by their own posteriors
LEAST_EXCESS: Final = 3.0  # standard errors beyond chance
CROSS_FIT: Final = "accord train SPEC --cross-fit 5"
FITTED: Final = (
    "nothing can be concluded about wrong labels: the networks contradict few labels, and fit them "
    "from the first epochs on. Either nearly all labels are right, or wrong ones follow a pattern "
    "that networks learn at once, as labels made by rules do; then the noise rate is far too low "
    "and the ranking may be arbitrary. Have the labels judged by networks that were not trained on "
    "them: "
    f"{CROSS_FIT}"
)
UNINFORMATIVE: Final = (
    "no epoch is informative: at none do two networks contradict a label with the same class more "
    "often than by chance. No label is flagged, and the order of the ranking is arbitrary. Either "
    "the networks have learnt nothing yet, or no label is wrong"
)


def audit_notes(audit: Audit, sample_info: SampleInfo) -> list[str]:
    """List the limitations of an audit."""
    if audit.beyond_chance == 0:
        return [UNINFORMATIVE]
    if audit.fitted_at_once:
        return [FITTED, *_not_predicted(audit, sample_info)]
    notes = [
        _held_out(audit, sample_info),
        *_not_predicted(audit, sample_info),
        _begins_late(audit),
        next(_inconclusive(audit), None) or _spared(audit, sample_info),
    ]
    return [note for note in notes if note is not None]


def _ranking(audit: Audit) -> str:
    if audit.excess >= LEAST_EXCESS:
        return "the ranking is more reliable"
    return (
        "the ranking may be arbitrary, as two networks contradict a label with the same class "
        "hardly more often than by chance"
    )


def _held_out(audit: Audit, sample_info: SampleInfo) -> str | None:
    if audit.cross_fitted:
        return (
            "networks that were not trained on a sample judge its label. Wherever they err, right "
            "labels are flagged too, and patterns among wrong labels are repeated: the noise rate "
            "may be far off. Review the first of the ranking; do not take proposals unseen"
        )
    if sample_info.trained_on:
        return None
    unsure = "" if audit.excess >= LEAST_EXCESS else f"; {_ranking(audit)}"
    return (
        f"the samples of the record belong to the {sample_info.split} split, on which networks "
        "were not trained. Wherever networks err, right labels are flagged too, so the noise rate "
        f"is too high{unsure}. If networks were trained on them, record them with "
        'split="train"'
    )


def _not_predicted(audit: Audit, sample_info: SampleInfo) -> Iterator[str]:
    if audit.never_predicted:
        names, labels, are = _labels_of(audit.never_predicted, audit, sample_info)
        yield (
            f"no network ever predicts {names}: {labels} could not be audited and {are} ranked last"
        )
    late = tuple(label for label in audit.unpredicted if label not in audit.never_predicted)
    if late:
        names, labels, are = _labels_of(late, audit, sample_info)
        yield (
            f"at the informative epochs no network predicts {names}: {labels} {are} ranked by the "
            "votes of other epochs, and none is flagged"
        )


def _labels_of(
    classes: tuple[int, ...], audit: Audit, sample_info: SampleInfo
) -> tuple[str, str, str]:
    names = listed([sample_info.names[label] for label in classes], most=MOST_NAMED)
    samples = int(np.isin(audit.given, classes).sum())
    these = "this class" if len(classes) == 1 else "these classes"
    if samples == 1:
        return names, "the only label of this class", "is"
    return names, f"the {samples} labels of {these}", "are"


def _begins_late(audit: Audit) -> str | None:
    if not audit.begins_late:
        return None
    begun = (
        f"recording began at epoch {audit.first_epoch:g}"
        if audit.first_epoch > 1
        else "networks contradict the same labels from the first epoch on, as if trained before"
    )
    return (
        f"{begun}: wrong labels memorised before then are not found, and the noise rate may be far "
        "too low. Record from the first epoch on, and more often (accord train: every = 0.1)"
    )


def _inconclusive(audit: Audit) -> Iterator[str]:
    ranking, rate = _ranking(audit), 100 * audit.noise_rate
    if audit.informative_epochs == 1:
        yield (
            f"only one epoch is informative: {ranking}, and the noise rate may be far too low. "
            "Record more epochs"
        )
    if audit.beyond_chance >= TOGETHER and audit.noise_rate < audit.beyond_chance / 2:
        yield (
            "at the most informative epoch networks contradict "
            f"{100 * audit.beyond_chance:.0f} in 100 labels together, and {rate:.0f} in 100 are "
            "flagged: either the networks make the same errors that early, or the noise rate is "
            f"far too low. The votes do not show which; {ranking}, except where labels were made "
            "by rules. Review some labels, record more epochs, or have the labels judged by "
            f"networks that were not trained on them: {CROSS_FIT}"
        )
    if audit.too_hard:
        yield (
            "the networks have settled, and predict "
            f"{100 * audit.final_agreement:.0f} in 100 given labels only. Either the others are "
            "wrong, or their samples are too hard for these networks, which then contradict right "
            f"labels together: the votes do not show which. The noise rate of {rate:.1f} % may be "
            "far too high. Review some labels before you correct any, or train larger networks, "
            "for longer"
        )
    elif audit.final_agreement < LEAST_FINAL_AGREEMENT and audit.undecided > MOST_UNSURE:
        yield (
            "the networks underfit: at the last epoch they predict "
            f"{100 * audit.final_agreement:.0f} in 100 given labels, and contradict right ones "
            f"too. The noise rate of {rate:.1f} % may be far too high; {ranking}. Train longer, or "
            "train larger networks"
        )
    if audit.undecided > UNDECIDED:
        yield (
            f"the votes are inconclusive: by their own posteriors, {100 * audit.undecided:.0f} in "
            f"100 labels are misjudged. The noise rate of {rate:.1f} % is the mean posterior and "
            f"may be far off; {ranking}"
        )


def _spared(audit: Audit, sample_info: SampleInfo) -> str | None:
    sizes = np.bincount(audit.given, minlength=audit.classes)
    agreed = np.bincount(audit.given, audit.agreement_given, minlength=audit.classes)
    flagged = np.bincount(audit.given, audit.flagged, minlength=audit.classes)
    contradicted = np.flatnonzero((agreed < sizes / 2) & (flagged == 0))
    classes = np.setdiff1d(contradicted, audit.unpredicted)
    if sizes[classes].sum() < SPARED * len(audit):
        return None
    names, labels, _ = _labels_of(tuple(classes.tolist()), audit, sample_info)
    return (
        f"networks mostly contradict {names}, and none of {labels} is flagged: either they have "
        "not learnt the class, or most of these labels are wrong. The votes do not show which. "
        "Review some of them"
    )
