"""What a reader should know before trusting an audit."""

from typing import Final

import numpy as np

from accord.analysis._audit._audit import UNDECIDED, Audit
from accord.store import SampleInfo

TOGETHER: Final = 0.05  # of labels contradicted together at one epoch: more than chance and errors
MOST_NAMED: Final = 10  # classes in a note
SPARED: Final = 0.01  # of all labels: fewer, given classes that networks contradict, change no rate
# Of 52 small records, the five whose networks were right on 55 to 64 % of unseen samples lie beyond
# both, with rates that are 10 to 35 points too high; no other does.
LEARNT: Final = 0.9  # of the given labels, at the last epoch: fewer, if networks learn little
UNSURE: Final = 0.075  # of labels judged wrongly, by their own suspicions
SURE: Final = 3.0  # standard errors beyond chance: with fewer, random votes would look the same
NONE_COUNTS: Final = (
    "no epoch counts: at none do two networks contradict a label with the same class more often "
    "than by chance. No label is flagged, and the order of the ranking means nothing. Either the "
    "networks have learnt nothing yet, or there is nothing to find"
)


def audit_notes(audit: Audit, sample_info: SampleInfo) -> list[str]:
    """Return what a reader should know before trusting an audit, one sentence each."""
    if audit.beyond_chance == 0:
        return [NONE_COUNTS]
    notes = [
        _held_out(audit, sample_info),
        _never_predicted(audit, sample_info),
        _unpredicted(audit, sample_info),
        _begins_late(audit),
        _one_epoch(audit)
        or _few_flagged(audit)
        or _weak(audit)
        or _undecided(audit)
        or _spared(audit, sample_info),
    ]
    return [note for note in notes if note is not None]


def class_name(label: int, sample_info: SampleInfo) -> str:
    """Return a class's name, or its number where classes have no names."""
    return str(label) if sample_info.class_names is None else sample_info.class_names[label]


def _ranking(audit: Audit) -> str:
    """Say what the order is worth: nothing, where the votes may be random ones."""
    if audit.excess >= SURE:
        return "the ranking holds"
    return (
        "the order of the ranking may mean nothing, as two networks contradict a label with the "
        "same class hardly more often than by chance"
    )


def _held_out(audit: Audit, sample_info: SampleInfo) -> str | None:
    if sample_info.trained_on:
        return None
    return (
        f"the record says that its samples are of the "
        f"{sample_info.split} split: no training samples. "
        "Networks contradict right labels there too, wherever they err, and more are flagged than "
        f"are wrong; {_ranking(audit)}. If networks were trained on them, record them with "
        'split="train"'
    )


def _never_predicted(audit: Audit, sample_info: SampleInfo) -> str | None:
    if not audit.never_predicted:
        return None
    names, labels, are = _labels_of(audit.never_predicted, audit, sample_info)
    return f"no network ever predicts {names}: {labels} could not be judged and {are} ranked last"


def _unpredicted(audit: Audit, sample_info: SampleInfo) -> str | None:
    late = tuple(label for label in audit.unpredicted if label not in audit.never_predicted)
    if not late:
        return None
    names, labels, are = _labels_of(late, audit, sample_info)
    return (
        f"at the epochs that count, no network predicts {names}: {labels} {are} ranked by the "
        "votes of other epochs, and none is flagged"
    )


def _labels_of(
    classes: tuple[int, ...], audit: Audit, sample_info: SampleInfo
) -> tuple[str, str, str]:
    names = ", ".join(class_name(label, sample_info) for label in classes[:MOST_NAMED])
    if len(classes) > MOST_NAMED:
        names += f" and {len(classes) - MOST_NAMED} more"
    samples = int(np.isin(audit.given, classes).sum())
    if samples == 1:
        return names, "the one label given so", "is"
    return names, f"the {samples} labels given so", "are"


def _one_epoch(audit: Audit) -> str | None:
    if np.count_nonzero(audit.weights) != 1:
        return None
    return (
        f"the votes of one epoch alone count: {_ranking(audit)}, and the number of wrong labels "
        "may be far too low. Record more epochs"
    )


def _begins_late(audit: Audit) -> str | None:
    if not audit.begins_late:
        return None
    begun = (
        f"the votes begin at epoch {audit.first_epoch:g}"
        if audit.first_epoch > 1
        else "all networks contradict the same labels from the first epoch on, as if trained before"
    )
    return (
        f"{begun}: wrong labels that were known by heart by then are not found, and their number "
        "may be far too low. Record from the first epoch on, and more often (accord train: "
        "every = 0.1)"
    )


def _weak(audit: Audit) -> str | None:
    if audit.learnt >= LEARNT or audit.undecided <= UNSURE:
        return None
    return (
        f"networks learn little here: at the last epoch they say {100 * audit.learnt:.0f} in 100 "
        "given labels, and contradict right ones too. The noise rate of "
        f"{100 * audit.noise_rate:.1f} % may be far too high; {_ranking(audit)}. Train longer, or "
        "larger networks"
    )


def _undecided(audit: Audit) -> str | None:
    if audit.undecided <= UNDECIDED:
        return None
    return (
        f"the votes hardly tell: of 100 labels, {100 * audit.undecided:.0f} are judged wrongly, by "
        f"their own suspicions. Their mean puts the noise rate at {100 * audit.noise_rate:.1f} %, "
        f"which may be far off; {_ranking(audit)}"
    )


def _few_flagged(audit: Audit) -> str | None:
    if audit.beyond_chance < TOGETHER or audit.noise_rate >= audit.beyond_chance / 2:
        return None
    return (
        f"networks contradict {100 * audit.beyond_chance:.0f} in 100 labels together at the epoch "
        f"that tells most, and {100 * audit.noise_rate:.0f} in 100 are flagged: either they were "
        "wrong alike that early, or the number of wrong labels is far too low. The votes do not "
        f"tell which; {_ranking(audit)}. Review some, or record more epochs"
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
        f"networks mostly contradict {names}, and none of {labels} is flagged: either they do not "
        "know the class, or most of these labels are wrong, and the votes do not tell which. "
        "Review some of them"
    )
