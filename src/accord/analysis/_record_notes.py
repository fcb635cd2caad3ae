"""Notes on records whose votes cannot show what an analysis looks for."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accord.analysis._network_health import (
    CONSTANT,
    chance_error,
    last_quarter,
    measure_kappa,
    network_health,
)
from accord.errors import counted
from accord.rules import Context, find_rule
from accord.rules._overfitting import LEAST_FALL, smooth
from accord.rules._recommend import evenly_spaced
from accord.rules.majority import majority_by_epoch
from accord.store import RecordReader

MOST_NAMED: Final = 10  # networks in a note
KINDS: Final = {
    "constant": "constant: nearly all votes are for one class",
    "random": "at chance: no more votes than by chance are for the right class",
    "diverged": "diverged: agreement with the others is lost",
    "weak": "weak: agreement with the others is less than half of what is usual",
}
CHANCE_UNKNOWN: Final = 0.3  # with so few samples, a good network may look like a guessing one
GUESSING: Final = 0.1  # share of right votes beyond chance, 0..1; more is poor, not a guess
HARDLY: Final = 0.005  # accuracy gained by max agreement
FEW_EPOCHS: Final = 3  # votes from before overfitting cannot outnumber later ones
# Labels that follow a pattern are fitted within few epochs, single wrong ones after many. On
# development records, networks memorised 0.0 to 1.1 % of the labels late where these were right or
# made by rules, 7 % or more where at least 20 % were wrong at random.
EARLY: Final = 16  # epochs of training, the first half of which
MEMORISED_LATE: Final = 0.02  # of the votes
LEARNT: Final = 0.25  # of the labels of a class: as often a network predicts it that has learnt it
VOTES_MISSING: Final = (
    "some votes are missing: only rules that leave them out are scored, and networks are not "
    "compared"
)
NO_FALL: Final = (
    "the majority vote never falls, as the networks do not overfit: max agreement has hardly "
    "anything to improve. Use the recommended rule"
)
NONE_LATE: Final = (
    "hardly any label is memorised late: the networks fit the given labels from the first epochs "
    "on, or never, so their votes do not show which labels are wrong. Have these judged by "
    "networks that were not trained on them (accord train SPEC --cross-fit 5)"
)


def record_notes(reader: RecordReader) -> tuple[str, ...]:
    """List what makes the votes of a record uninformative, with what to do.

    Names networks that are identical, constant, bad or at chance, first epochs at which networks
    predict one class, records of one network or of few epochs, and networks that memorise nothing.
    At most 10,000 evenly spaced samples are looked at.

    >>> from accord.store import ArrayReader, SampleInfo
    >>> labels = np.random.default_rng(0).integers(0, 3, (1, 8, 50)).repeat(3, axis=0)
    >>> record_notes(ArrayReader(labels, SampleInfo(50, 3)))[0][:55]
    'all 3 networks predict the same classes at every epoch:'
    """
    if reader.has_missing:
        return (VOTES_MISSING,)
    context = Context.of(reader)
    return (*context.once(network_notes), *context.once(_memorisation_notes))


def network_notes(context: Context) -> tuple[str, ...]:
    """List what is wrong with the networks and epochs of a record."""
    some = context.once(evenly_spaced)
    groups = _copies(some)
    # Copies agree entirely, and make good networks look weak beside them.
    distinct = some.select(networks=[int(group[0]) for group in groups])
    return (*_name_copies(some, groups), *_bad_networks(distinct), *_epochs(some))


def _copies(context: Context) -> list[NDArray[np.intp]]:
    """Group the numbers of networks whose votes are all equal."""
    kappa, sizes = context.once(measure_kappa)
    only = np.where(sizes.max(axis=2) == context.samples, sizes.argmax(axis=2), -1)
    one_class = (only[:, np.newaxis] == only) & (only >= 0)  # there kappa is 0
    equal = ((kappa == 1) | one_class).all(axis=2) & ~one_class.all(axis=2)  # constant: not copies
    np.fill_diagonal(equal, True)
    first = equal.argmax(axis=1)  # the first network that each one equals
    return [np.array(context.numbers)[first == one] for one in np.unique(first)]


def _name_copies(context: Context, groups: list[NDArray[np.intp]]) -> Iterator[str]:
    if context.networks == 1:
        yield (
            "there is only one network: no other one outvotes its errors, and the agreement of "
            "networks is unknown. Record more, trained from other seeds"
        )
    elif len(groups) == 1:
        yield (
            f"all {context.networks} networks predict the same classes at every epoch: they are "
            "one network. Train them from different seeds or, if training is deterministic, on "
            "different samples"
        )
    else:
        for group in groups:
            if len(group) > 1:
                yield (
                    f"{_named(group)} predict the same classes at every epoch: one network votes "
                    f"{len(group)} times. {_leave_out(context, group[1:])}"
                )


def _bad_networks(context: Context) -> Iterator[str]:
    health, limit = context.once(network_health), chance_error(context)
    # Networks that agree with no other one are called good where none do.
    alone = [one.agreement <= limit for one in health]
    guessing = _at_chance(context, limit)
    kinds = np.array([one.kind for one in health], object)
    for at, one in enumerate(health):
        if alone[at] and one.commonest >= CONSTANT:
            kinds[at] = "constant"
        elif guessing[at]:
            kinds[at] = "random"
    if all(alone) and len(health) > 1 and (kinds == "good").all():
        yield (
            "no two networks agree beyond chance: they have learnt nothing, or their samples are "
            "in different orders. Check the training and the order"
        )
    for kind, meaning in KINDS.items():
        bad = np.array(context.numbers)[kinds == kind]
        if len(bad):
            cure = (
                "Check the training, and that predictions and labels are in the same order"
                if len(bad) == len(kinds)
                else _leave_out(context, bad)
            )
            yield f"{_named(bad)} {'is' if len(bad) == 1 else 'are'} {meaning}. {cure}"


def _at_chance(context: Context, limit: float) -> NDArray[np.bool_]:  # (network,)
    """Check which networks are right no more often than by chance at the end."""
    info, last = context.sample_info, last_quarter(context)
    # Networks that have memorised wrong labels are right on these at least.
    known = info.truth if info.given is None or not context.trained_on else info.given
    known = info.given if known is None else known
    if known is None or limit > CHANCE_UNKNOWN:
        return np.zeros(context.networks, bool)
    labels = known.astype(np.intp)
    right = np.zeros(context.networks)
    for block in context.blocks():
        right += (block.values[:, last] == labels[block.where]).sum(axis=2).mean(axis=1)
    _, sizes = context.once(measure_kappa)
    share = np.bincount(labels, minlength=context.classes) / context.samples
    chance = sizes[:, last].mean(axis=1) @ share / context.samples
    beyond = right / context.samples - chance
    return np.asarray((chance < 1) & (beyond <= min(limit, GUESSING) * (1 - chance)))


def _epochs(context: Context) -> Iterator[str]:
    _, sizes = context.once(measure_kappa)
    constant = sizes.max(axis=2) >= CONSTANT * context.samples  # (network, epoch)
    learnt = ~constant[:, last_quarter(context)].all(axis=1)
    begun = np.where(learnt, constant.cumprod(axis=1).sum(axis=1), 0)  # epochs, (network,)
    if begun.any():
        most, late = int(begun.max()), np.array(context.numbers)[begun > 0]
        yield (
            f"{_named(late)} predicted one class for nearly all samples in the first "
            f"{'epoch' if most == 1 else f'{most} epochs'}, where agreement means nothing. Use "
            f"--epochs {most}: to leave the beginning out"
        )
    if context.epochs <= FEW_EPOCHS:
        agreed = (
            "max agreement is the majority vote"
            if context.epochs == 1
            else "too few for max agreement to outvote overfitting"
        )
        yield (
            f"{'there is' if context.epochs == 1 else 'there are'} only "
            f"{counted(context.epochs, 'epoch')}: {agreed}. Record every epoch from the first on, "
            "or several in each (accord train: every = 0.1)"
        )


def _memorisation_notes(context: Context) -> tuple[str, ...]:
    late = context.once(memorised_late)
    if late is not None and late < MEMORISED_LATE:
        return (NONE_LATE,)
    return (NO_FALL,) if _never_falls(context) else ()


def _never_falls(context: Context) -> bool:
    """Check that the majority vote never falls and that max agreement is hardly better."""
    info = context.sample_info
    few = context.networks == 1 or context.epochs <= FEW_EPOCHS
    if few or context.trained_on or info.reference is None:
        return False
    some = context.once(evenly_spaced)
    _, sizes = some.once(measure_kappa)
    if (sizes.max(axis=2) >= CONSTANT * some.samples).all():  # constant networks learn nothing
        return False
    labels = some.reference_labels()
    by_epoch = (some.once(majority_by_epoch) == labels).mean(axis=1)
    agreed = float((some.once(find_rule("max-agreement")).labels == labels).mean())
    curve = smooth(by_epoch)
    falls = (np.maximum.accumulate(curve) - curve).max() >= LEAST_FALL
    return not falls and agreed < by_epoch[-1] + HARDLY


def memorised_late(context: Context) -> float | None:
    """Compute the share of votes that move to the given label late.

    None if networks were not trained on these labels, or if there are few epochs.

    These are votes at the last epoch, of networks that contradicted the label at half or more of
    the early epochs: half of all, or of 16 epochs of training if there are more, from the first
    one on at which the network predicts the class, and not for all samples: before, it
    contradicts right labels too.
    """
    some = context.once(evenly_spaced)
    given = some.sample_info.given
    if given is None or not context.trained_on or context.epochs <= FEW_EPOCHS:
        return None
    early = max(1, sum(at <= EARLY for at in context.networks_info()[0].progress) // 2)
    least = LEARNT * np.bincount(given, minlength=some.classes)
    _, sizes = some.once(measure_kappa)  # (network, epoch, class)
    learnt = (sizes >= least) & (sizes < CONSTANT * some.samples)
    begun = learnt.argmax(axis=1)  # (network, class)
    epochs, moved = np.arange(some.epochs)[:, np.newaxis], 0
    for block in some.blocks():
        labels = given[block.where]
        start = begun[:, np.newaxis, labels]
        counted = (epochs >= start) & (epochs < start + early)  # (network, epoch, sample)
        against = block.values != labels
        before = 2 * (against & counted).sum(axis=1) >= counted.sum(axis=1)
        moved += int((before & ~against[:, -1]).sum())
    return moved / (some.networks * some.samples)


def _named(numbers: NDArray[np.intp]) -> str:
    names = [str(number) for number in numbers[:MOST_NAMED]]
    if len(numbers) > MOST_NAMED:
        names.append(f"{len(numbers) - MOST_NAMED} more")
    if len(names) == 1:
        return f"network {names[0]}"
    return f"networks {', '.join(names[:-1])} and {names[-1]}"


def _leave_out(context: Context, bad: NDArray[np.intp]) -> str:
    kept = ",".join(str(number) for number in context.numbers if number not in bad)
    return f"Use --networks {kept} to leave {'it' if len(bad) == 1 else 'them'} out"
