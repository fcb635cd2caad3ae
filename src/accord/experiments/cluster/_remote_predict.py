"""Predict from large records on a cluster."""

import inspect
import os
from pathlib import Path
from typing import Final

import numpy as np

from accord.errors import ChoiceError
from accord.experiments.cluster._ray import Cluster, Plain, Resources, split_samples
from accord.rules import Prediction, Rule, all_rules, find_rule
from accord.store import PackedReader, RecordReader, open_reader
from accord.store import _record_format as layout

ONE_CPU: Final = Resources(cpus=1.0, gpus=0.0)
RETRIES: Final = 3


def predict_remotely(
    path: str | os.PathLike[str],
    rule: str | Rule = "max-agreement",
    *,
    address: str | None = None,
    blocks: int | None = None,
    ship: bool = False,
) -> Prediction:
    """Predict the labels of a record on a Ray cluster, with the result of `Record.predict`.

    Each task reads one range of samples. This saves reading only if the record is packed: of an
    unpacked record, every task reads every row.

    Args:
        path: of the record; a path that all nodes share, or a URL.
        rule: a rule that predicts each sample independently, or its name.
        address: None or "local" starts Ray on this machine; "auto", "HOST:PORT" or
            "ray://HOST:PORT" joins a cluster.
        blocks: the maximum number of ranges; by default the number of CPUs.
        ship: send this version of Accord to the nodes, which need only its dependencies.

    Raises:
        ChoiceError: no such rule, or one that needs all samples at once.
        ProbabilitiesMissing: the rule needs probabilities that were not recorded.
        ExtraMissing: ray is not installed.
        ClusterError: the cluster cannot be reached, or a task failed for good.
    """
    rule = find_rule(rule)
    by_sample = {name: type(one) for name, one in all_rules().items() if one.by_sample}
    if by_sample.get(rule.name) is not type(rule):
        raise ChoiceError(
            f"{rule.name} cannot predict ranges of samples independently. Predict on one machine "
            f"with Record.predict, or use {', '.join(by_sample)}."
        )
    reader = open_reader(path)
    if "probabilities" in rule.needs:
        reader.check_probabilities()
    with Cluster(address, ship=ship) as cluster:
        if blocks is None:
            blocks = max(1, int(sum(node.cpus for node in cluster.nodes())))
        tasks = [
            cluster.start(
                predict_range, _task(path, rule, reader, part), resources=ONE_CPU, retries=RETRIES
            )
            for part in split_samples(reader.samples, pieces=blocks, chunk=_chunk(reader, rule))
        ]
        parts = [cluster.result(task) for task in tasks]
    labels, scores = ([part[name] for part in parts] for name in ("labels", "scores"))
    return Prediction(np.concatenate(labels), np.concatenate(scores))


def predict_range(task: Plain) -> Plain:
    reader = open_reader(task["path"], common=True, networks=task["networks"])
    samples = slice(task["start"], task["stop"])
    rule = type(find_rule(task["rule"]))(**task["options"])
    predicted = rule(reader.select(epochs=range(task["epochs"]), samples=samples))
    return {"labels": predicted.labels, "scores": predicted.scores}


def _task(path: str | os.PathLike[str], rule: Rule, reader: RecordReader, part: slice) -> Plain:
    text = os.fspath(path)
    parameters = inspect.signature(type(rule)).parameters
    return {
        "path": text if "://" in text else str(Path(text).expanduser().absolute()),
        "rule": rule.name,
        "options": {name: value for name, value in vars(rule).items() if name in parameters},
        "networks": list(reader.numbers),
        "epochs": reader.epochs,  # the record may grow before a worker opens it
        "start": part.start,
        "stop": part.stop,
    }


def _chunk(reader: RecordReader, rule: Rule) -> int:
    if not isinstance(reader, PackedReader):
        return 1
    array = layout.PROBABILITIES if "probabilities" in rule.needs else layout.LABELS
    return reader.chunks(array)[2]
