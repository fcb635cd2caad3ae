"""Methods for comparisons."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accord._record import Record
from accord.analysis import measure
from accord.analysis._trust._unknown_noise import fit_agreement_model
from accord.errors import ChoiceError, PredictionError
from accord.experiments.comparison._runs import SHARED, FinishedRun
from accord.kernels import winners
from accord.rules import all_rules, epochs_before_overfitting, find_rule
from accord.training import network_specs

NOT_FOR_BATCH_ENSEMBLES: Final = ("swa", "ema", "rog", "npc")


@dataclass(frozen=True)
class Measurement:
    """Accuracy and cost of a method in one repetition."""

    accuracy: float
    coverage: float = 1.0  # share of samples on which it does not abstain
    selective_accuracy: float | None = None  # on those samples
    single: float | None = None  # of its networks one by one, at the last epoch
    with_max_agreement: float | None = None  # over its own networks and epochs
    passes: int = 1  # forward passes for a new sample
    training: float = 0.0  # networks trained for this method only
    disk: int = 0  # bytes of weights needed for new samples
    epoch: int | None = None  # if it selects one
    progress: float | None = None  # of that epoch
    reference: str = "truth"  # labels that predictions are compared with, or "given"
    corrected: float | None = None  # accuracy estimated from labels that are only given
    low: float | None = None  # 95 % interval of that
    high: float | None = None


@dataclass(frozen=True)
class Method:
    """Method for predicting the test samples."""

    name: str
    description: str
    measure: Callable[[FinishedRun], Measurement]
    validation: bool = False  # whether it needs samples that no network was trained on
    oracle: bool = False
    run: str = SHARED  # a key of SPECS: the run that it measures


def _measurement(
    run: FinishedRun, labels: NDArray[Any], *, passes: int, **more: Any
) -> Measurement:
    found = measure(labels, run.record.reader.reference_labels(), classes=run.record.classes)
    return Measurement(
        **_correct(run, found.accuracy, found.coverage),
        accuracy=found.accuracy,
        coverage=found.coverage,
        selective_accuracy=found.selective_accuracy if 0 < found.coverage < 1 else None,
        passes=passes,
        disk=passes * run.network_bytes // (run.spec.train.batch_ensemble or 1),
        **more,
    )


def _correct(run: FinishedRun, accuracy: float, coverage: float = 1.0) -> dict[str, Any]:
    """Estimate the accuracy where the labels are only given."""
    if run.record.reference != "given":
        return {}
    try:
        model = run.record.reader.once(fit_agreement_model)
    except PredictionError:  # the votes do not determine it
        return {"reference": "given"}
    one = model.correct(accuracy, coverage=coverage)
    return {"reference": "given", "corrected": one.value, "low": one.low, "high": one.high}


def _rule(name: str, run: FinishedRun) -> Measurement:
    record, rule = run.record, find_rule(name)
    if name == "single":
        accuracy = record.score(["single"])[0].accuracy
        return Measurement(accuracy, disk=run.network_bytes, **_correct(run, accuracy))
    epochs = 1 if rule.oracle or rule.reads == "last" else record.epochs
    if name == "before-overfit":
        epochs = epochs_before_overfitting(record.reader) or record.epochs
    return _measurement(run, record.reader.once(rule).labels, passes=epochs * record.networks)


def _early_stopping(run: FinishedRun) -> Measurement:
    epoch = best_epoch(run.open_record("validation"))
    labels = run.record.select(epochs=[epoch]).predict("majority").labels
    progress = run.record.progress[epoch]
    return _measurement(run, labels, passes=run.record.networks, epoch=epoch, progress=progress)


def best_epoch(record: Record) -> int:
    """Find the first epoch whose majority agrees best with the given labels."""
    right = np.zeros(record.epochs, np.int64)
    given = record.given if record.given is not None else record.reader.truth()
    for block in find_rule("majority").after_each_epoch(record.reader):
        right += (block.values == given[block.where]).sum(axis=1)
    return int(right.argmax())


def _from_features(name: str, run: FinishedRun) -> Measurement:
    networks = run.record.networks
    try:
        labels = run.stored_labels(name, partial(vote_from_features, name, run))
    except ChoiceError as error:  # the network lacks the layers; the spec itself is valid
        raise PredictionError(str(error)) from error
    if name == "rog":
        return _measurement(run, labels, passes=networks)
    from accord.baselines import npc

    # NPC evaluates each network and a copy that it trains for some epochs.
    epochs = npc.learning_epochs(len(run.data.splits["train"]))
    training = networks * epochs / run.spec.train.epochs
    return _measurement(run, labels, passes=2 * networks, training=training)


def vote_from_features(name: str, run: FinishedRun) -> NDArray[np.intp]:
    from accord.baselines import npc
    from accord.baselines.rog import predict_rog
    from accord.training._build_networks import recipe_for

    tables = []
    for network, spec in zip(run.load_networks(), network_specs(run.spec), strict=True):
        batches = partial(run.batches, network=spec)
        bfloat16 = recipe_for(run.spec, spec, run.device).bfloat16
        tables.append(
            predict_rog(network, run.data, batches, seed=spec.seed, bfloat16=bfloat16)
            if name == "rog"
            else npc.predict_npc(network, batches, seed=spec.seed, bfloat16=bfloat16)
        )
    labels = np.stack([table.argmax(axis=1) for table in tables])
    return winners(labels, classes=run.record.classes).labels


def _averaged(kind: str, run: FinishedRun) -> Measurement:
    record = run.open_record(f"test-{kind}")
    labels = record.predict("majority").labels
    more = {"single": record.score(["single"])[0].accuracy}
    if record.epochs > 1:
        more["with_max_agreement"] = record.score(["max-agreement"])[0].accuracy
    return _measurement(run, labels, passes=record.networks, **more)


def _snapshot(run: FinishedRun) -> Measurement:
    cycle = run.spec.train.schedule.cycle or 1
    # Epochs recorded within a cycle do not count, nor does a last cycle that is cut short.
    cycles = [progress / cycle for progress in run.record.progress]
    ends = [epoch for epoch, passed in enumerate(cycles) if passed == round(passed)]
    probabilities = np.zeros((run.record.samples, run.record.classes))
    for end in ends:
        probabilities += run.record.probabilities[0, end]
    labels = probabilities.argmax(axis=1)
    return _measurement(run, labels, passes=len(ends), training=1.0, **_reference_scores(run))


def _separate_run(rule: str, run: FinishedRun) -> Measurement:
    # Each step of a BatchEnsemble passes every sample through every member: it costs as much as
    # that many networks.
    labels, networks = run.record.predict(rule).labels, run.record.networks
    return _measurement(
        run, labels, passes=networks, training=float(networks), **_reference_scores(run)
    )


def _reference_scores(run: FinishedRun) -> dict[str, float]:
    single, agreed = run.record.score(["single", "max-agreement"])
    return {"single": single.accuracy, "with_max_agreement": agreed.accuracy}


def _rule_methods() -> list[Method]:
    first = ["single", "majority", "probability-average", "max-agreement", "soft-agreement"]
    rules = [find_rule(name) for name in [*first, *sorted(set(all_rules()) - set(first))]]
    return [
        Method(
            rule.name,
            (rule.__doc__ or "").splitlines()[0],
            partial(_rule, rule.name),
            oracle=rule.oracle,
        )
        for rule in rules
    ]


METHODS: Final[dict[str, Method]] = {
    method.name: method
    for method in [
        *_rule_methods(),
        Method(
            "early-stopping",
            "Predict by majority at the epoch that agrees best with held-out noisy labels.",
            _early_stopping,
            validation=True,
        ),
        Method(
            "rog",
            "Fit a robust generative classifier on each network's features; vote.",
            partial(_from_features, "rog"),
            validation=True,
        ),
        Method(
            "npc",
            "Learn how each network's predictions are wrong, and calibrate them; vote.",
            partial(_from_features, "npc"),
        ),
        Method(
            "swa", "Average each network's weights over its last epochs.", partial(_averaged, "swa")
        ),
        Method("ema", "Average each network's weights over its steps.", partial(_averaged, "ema")),
        Method(
            "snapshot",
            "Average one network at the ends of a cyclic rate.",
            _snapshot,
            run="snapshot",
        ),
        Method(
            "elr",
            "Train with early-learning regularisation.",
            partial(_separate_run, "majority"),
            run="elr",
        ),
        Method(
            "batch-ensemble",
            "Train members that share most of one network's weights.",
            partial(_separate_run, "probability-average"),
            run="batch-ensemble",
        ),
        Method(
            "hyper-ensemble",
            "Train with learning rates from low to high.",
            partial(_separate_run, "majority"),
            run="hyper-ensemble",
        ),
    ]
}
