"""Predict from a very large record on a cluster, one task for each range of samples."""

import inspect
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from accord.errors import ChoiceError
from accord.experiments.cluster._cluster import Cluster, Plain, Share, cut_samples
from accord.rules import Prediction, Rule, all_rules, find_rule
from accord.store import RecordReader, open_reader
from accord.store import _layout as layout
from accord.store._recorded import PackedReader

ONE_CPU: Final = Share(cpus=1.0, gpus=0.0)
RETRIES: Final = 3


def predict_remotely(
    path: str | os.PathLike[str],
    rule: str | Rule = "max-agreement",
    *,
    address: str | None = None,
    blocks: int | None = None,
    ship: bool = False,
) -> Prediction:
    """Combine a record into one label per sample on a Ray cluster: what `Record.predict` gives.

    Each task reads its own range of samples and no other. That saves reading if the record is
    packed; of one that recorders wrote, every task reads every row.

    Args:
        path: the record, on a path that all nodes see, or its URL.
        rule: one that looks at one sample at a time, by name or itself.
        address: None or "local" starts Ray on this machine; "auto", "HOST:PORT" or
            "ray://HOST:PORT" joins a cluster.
        blocks: how many ranges to cut the samples into, at most; by default one for each CPU.
        ship: send this Accord along to nodes that have its dependencies and not itself.

    Raises:
        ChoiceError: no such rule, or one that looks at all samples together.
        ProbabilitiesMissing: the rule needs what was not recorded.
        ExtraMissing: ray is not installed.
        ClusterError: the cluster cannot be reached, or a task failed for good.
    """
    rule = find_rule(rule)
    _check_rule(rule)
    rows = open_reader(path)
    if "probabilities" in rule.needs:
        rows.check_probabilities()
    with Cluster(address, ship=ship) as cluster:
        if blocks is None:
            blocks = max(1, int(sum(node.cpus for node in cluster.nodes())))
        cuts = cut_samples(rows.samples, pieces=blocks, chunk=_chunk(rows, rule))
        tasks = [
            cluster.start(
                predict_range, _given(path, rule, rows, cut), share=ONE_CPU, retries=RETRIES
            )
            for cut in cuts
        ]
        parts = [cluster.result(task) for task in tasks]
    labels, scores = ([part[what] for part in parts] for what in ("labels", "scores"))
    return Prediction(np.concatenate(labels), np.concatenate(scores))


def predict_range(given: Plain) -> Plain:
    """Predict the samples of one range; what a worker does."""
    rows = open_reader(given["path"], common=True, networks=given["networks"])
    cut = slice(given["start"], given["stop"])
    rule = type(find_rule(given["rule"]))(**given["options"])
    predicted = rule(rows.select(epochs=range(given["epochs"]), samples=cut))
    return {"labels": predicted.labels, "scores": predicted.scores}


def _given(
    path: str | os.PathLike[str], rule: Rule, rows: RecordReader, cut: slice
) -> dict[str, Any]:
    text = os.fspath(path)
    return {
        "path": text if "://" in text else str(Path(text).expanduser().absolute()),
        "rule": rule.name,
        "options": _options(rule),
        "networks": list(rows.numbers),
        "epochs": rows.epochs,  # the record may have grown when a worker opens it
        "start": cut.start,
        "stop": cut.stop,
    }


def _options(rule: Rule) -> dict[str, Any]:
    taken = inspect.signature(type(rule)).parameters
    return {name: value for name, value in vars(rule).items() if name in taken}


def _chunk(rows: RecordReader, rule: Rule) -> int:
    if not isinstance(rows, PackedReader):
        return 1
    array = layout.PROBABILITIES if "probabilities" in rule.needs else layout.LABELS
    return rows.chunks(array)[2]


def _check_rule(rule: Rule) -> None:
    known = {name: type(one) for name, one in all_rules().items() if one.by_sample}
    if known.get(rule.name) is not type(rule):
        raise ChoiceError(
            f"{rule.name} cannot be used on a range of samples: it may look at all of them "
            f"together. Predict on one machine with Record.predict, or use {', '.join(known)}."
        )
