"""Every method that a comparison can name: where its networks come from and what it predicts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._record import Record
from accord.analysis import measure
from accord.baselines import npc
from accord.baselines.rog import predict_rog
from accord.errors import ChoiceError, PredictionError
from accord.experiments.comparison._runs import Runs, TrainedRun
from accord.kernels import winners
from accord.rules import all_rules, find_rule
from accord.rules._overfitting import epochs_before_overfit
from accord.training._settings import recipe_for
from accord.training.spec import Spec, network_specs

NOT_OF_MEMBERS: Final = ("swa", "ema", "rog", "npc")  # not to be had of a BatchEnsemble


@dataclass(frozen=True)
class Outcome:
    """How one method did, and what it costs."""

    accuracy: float
    coverage: float = 1.0  # of the samples, on which it does not abstain
    selective_accuracy: float | None = None  # on those
    single: float | None = None  # its networks one by one, last epoch
    with_max_agreement: float | None = None  # over its networks and their epochs
    passes: int = 1  # forward passes for one new sample
    training: float = 0.0  # networks trained for it alone, besides the shared ones
    disk: int = 0  # bytes of weights to keep for new samples
    epoch: int | None = None  # where it chooses one
    progress: float | None = None  # of that epoch: after how much training


@dataclass(frozen=True)
class Method:
    """One way to a prediction."""

    name: str
    says: str
    measure: Callable[[Runs], Outcome]
    validation: bool = False  # whether it needs samples that no network was trained on
    oracle: bool = False


def _outcome(run: TrainedRun, labels: NDArray[Any], *, passes: int, **more: Any) -> Outcome:
    found = measure(labels, run.record.reader.truth(), classes=run.record.classes)
    return Outcome(
        accuracy=found.accuracy,
        coverage=found.coverage,
        selective_accuracy=found.selective_accuracy if 0 < found.coverage < 1 else None,
        passes=passes,
        disk=passes * run.network_bytes // (run.spec.train.batch_ensemble or 1),
        **more,
    )


def _by_rule(name: str) -> Callable[[Runs], Outcome]:
    def of(runs: Runs) -> Outcome:
        run = runs["shared"]
        record, rule = run.record, find_rule(name)
        if name == "single":
            accuracy = record.score(["single"])[0].accuracy
            return Outcome(accuracy=accuracy, disk=run.network_bytes)
        epochs = 1 if rule.oracle or rule.reads == "last" else record.epochs
        if name == "before-overfit":
            epochs = epochs_before_overfit(record.reader) or record.epochs
        return _outcome(run, record.predict(name).labels, passes=epochs * record.networks)

    return of


def _early_stopping(runs: Runs) -> Outcome:
    """Stop where the networks' vote agrees best with held-out labels, wrong ones among them."""
    run = runs["shared"]
    held_out = run.record_of("validation")
    epoch = best_epoch(held_out)
    labels = run.record.select(epochs=[epoch]).predict("majority").labels
    progress = run.record.progress[epoch]
    return _outcome(run, labels, passes=run.record.networks, epoch=epoch, progress=progress)


def best_epoch(record: Record) -> int:
    """Return the epoch whose majority agrees best with the given labels; the first of equals."""
    right = np.zeros(record.epochs, np.int64)
    given = record.given if record.given is not None else record.reader.truth()
    for block in find_rule("majority").after_each_epoch(record.reader):
        right += (block.values == given[block.where]).sum(axis=1)
    return int(right.argmax())


def _from_features(name: str) -> Callable[[Runs], Outcome]:
    """Predict from each network's features, then vote."""

    def of(runs: Runs) -> Outcome:
        run = runs["shared"]
        try:
            labels = run.kept(name, lambda: _vote_from_features(name, run))
        except ChoiceError as error:  # of a network that has no such layers, not of the spec
            raise PredictionError(str(error)) from error
        networks = run.record.networks
        if name == "rog":
            return _outcome(run, labels, passes=networks)
        # NPC asks each network and a copy of it, which it trains for some epochs.
        epochs = npc.learning_epochs(len(run.material.splits["train"]))
        training = networks * epochs / run.spec.train.epochs
        return _outcome(run, labels, passes=2 * networks, training=training)

    return of


def _vote_from_features(name: str, run: TrainedRun) -> NDArray[np.intp]:
    tables = []
    for network, member in zip(run.networks(), network_specs(run.spec), strict=True):
        sees = partial(run.batches, member=member)
        bfloat16 = recipe_for(run.spec, member, run.device).bfloat16
        tables.append(
            predict_rog(network, run.material, sees, seed=member.seed, bfloat16=bfloat16)
            if name == "rog"
            else npc.predict_npc(network, sees, seed=member.seed, bfloat16=bfloat16)
        )
    said = np.stack([table.argmax(axis=1) for table in tables])
    return winners(said, classes=run.record.classes).labels


def _averaged(kind: str) -> Callable[[Runs], Outcome]:
    def of(runs: Runs) -> Outcome:
        run = runs["shared"]
        record = run.record_of(f"test-{kind}")
        single = record.score(["single"])[0].accuracy
        labels = record.predict("majority").labels
        more = {"single": single}
        if record.epochs > 1:
            more["with_max_agreement"] = record.score(["max-agreement"])[0].accuracy
        return _outcome(run, labels, passes=record.networks, **more)

    return of


def _snapshot(runs: Runs) -> Outcome:
    """Average one network's probabilities at the end of each cycle."""
    run = runs["snapshot"]
    cycle = run.spec.train.schedule.cycle or 1
    # Some moments may lie within a cycle, and the last cycle may be cut short.
    cycles = [progress / cycle for progress in run.record.progress]
    ends = [epoch for epoch, passed in enumerate(cycles) if passed == round(passed)]
    probabilities = np.zeros((run.record.samples, run.record.classes))
    for end in ends:
        probabilities += run.record.probabilities[0, end]
    labels = probabilities.argmax(axis=1)
    return _outcome(run, labels, passes=len(ends), training=1.0, **_beside(run))


def _trained_anew(name: str) -> Callable[[Runs], Outcome]:
    def of(runs: Runs) -> Outcome:
        run = runs[name]
        labels = run.record.predict("majority").labels
        networks = run.record.networks
        return _outcome(run, labels, passes=networks, training=float(networks), **_beside(run))

    return of


def _batch_ensemble(runs: Runs) -> Outcome:
    """Average the members' probabilities; they share one network's weights."""
    run = runs["batch-ensemble"]
    labels = run.record.predict("probability-average").labels
    members = run.record.networks
    # Every step passes each sample through every member: it costs what as many networks cost.
    return _outcome(run, labels, passes=members, training=float(members), **_beside(run))


def _beside(run: TrainedRun) -> dict[str, float]:
    single, agreed = run.record.score(["single", "max-agreement"])
    return {"single": single.accuracy, "with_max_agreement": agreed.accuracy}


def methods_for(spec: Spec) -> list[Method]:
    """Return the methods that can be measured for a spec, in the order of the table."""
    return [
        method
        for method in METHODS.values()
        if not (spec.train.batch_ensemble and method.name in NOT_OF_MEMBERS)
    ]


def _rules() -> list[Method]:
    first = ["single", "majority", "probability-average", "max-agreement", "soft-agreement"]
    rules = [find_rule(name) for name in [*first, *sorted(set(all_rules()) - set(first))]]
    return [
        Method(
            rule.name, (rule.__doc__ or "").splitlines()[0], _by_rule(rule.name), oracle=rule.oracle
        )
        for rule in rules
    ]


METHODS: Final[dict[str, Method]] = {
    method.name: method
    for method in [
        *_rules(),
        Method(
            "early-stopping",
            "Predict by majority at the epoch that agrees best with held-out noisy labels.",
            _early_stopping,
            validation=True,
        ),
        Method(
            "rog",
            "Fit a robust generative classifier on each network's features; vote.",
            _from_features("rog"),
            validation=True,
        ),
        Method(
            "npc",
            "Learn how each network's predictions are wrong, and calibrate them; vote.",
            _from_features("npc"),
        ),
        Method("swa", "Average each network's weights over its last epochs.", _averaged("swa")),
        Method("ema", "Average each network's weights over its steps.", _averaged("ema")),
        Method("snapshot", "Average one network at the ends of a cyclic rate.", _snapshot),
        Method("elr", "Train with early-learning regularisation.", _trained_anew("elr")),
        Method(
            "batch-ensemble",
            "Train members that share most of one network's weights.",
            _batch_ensemble,
        ),
        Method(
            "hyper-ensemble",
            "Train with learning rates from low to high.",
            _trained_anew("hyper-ensemble"),
        ),
    ]
}
