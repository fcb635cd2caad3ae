"""Rank errors by votes and by probabilities, on the same networks.

python benchmarks/trust.py RECORD …

Each RECORD holds true labels and probabilities. From the last epoch: the largest softmax of one
network (mean over the networks), the mean probability of a deep ensemble, and the mutual
information between label and network. From all epochs: max agreement's share of votes and its
margin, and the score of the recommended rule. torchmetrics measures the AUROC of right against
wrong labels and the expected calibration error, before and after isotonic calibration fitted on
every other sample. The area under the risk-coverage curve is Accord's.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from torchmetrics.classification import BinaryAUROC, BinaryCalibrationError

import accord
from accord.analysis._trust._trust import risk_coverage

Values = NDArray[np.float64]
BINS = 15


@dataclass(frozen=True)
class Answers:
    """One method that predicts labels and their confidence."""

    name: str
    labels: NDArray[Any]  # (sample,)
    scores: Values  # (sample,), higher is more confident


def main() -> None:
    for path in sys.argv[1:]:
        record = accord.open(path)
        truth = record.reader.truth()
        print(f"\n{path}: {record.networks} networks, {record.epochs} epochs\n")
        print("| score | accuracy | AUROC | risk and coverage | ECE | calibrated |")
        print("|---|---|---|---|---|---|")
        alone = [measure(one, truth) for one in of_single_networks(record)]
        print_row("one network's largest softmax", np.mean(alone, axis=0))
        for one in of_all_networks(record):
            print_row(one.name, measure(one, truth))


def of_single_networks(record: accord.Record) -> Iterator[Answers]:
    for shares in last_probabilities(record):
        yield Answers("softmax", shares.argmax(axis=1), shares.max(axis=1))


def of_all_networks(record: accord.Record) -> Iterator[Answers]:
    probabilities = last_probabilities(record)
    mean = probabilities.mean(axis=0)
    labels = mean.argmax(axis=1)
    yield Answers("mean probability", labels, mean.max(axis=1))
    yield Answers("mutual information", labels, -mutual_information(probabilities))
    agreed = record.predict("max-agreement")
    assert agreed.scores is not None
    yield Answers("max agreement's share", agreed.labels, agreed.scores)
    yield Answers("max agreement's margin", agreed.labels, record.margin())
    best = record.predict("recommended")
    assert best.scores is not None
    yield Answers(f"{record.recommend().rule}, recommended", best.labels, best.scores)


def last_probabilities(record: accord.Record) -> Values:  # (network, sample, class)
    rows = record.reader.last()
    values = rows.read_probabilities(range(rows.networks), [0], slice(None))[:, 0].astype(float)
    return np.asarray(values / values.sum(axis=-1, keepdims=True))  # stored in half precision


def mutual_information(each: Values) -> Values:
    """Return the entropy of the mean minus the mean entropy of the networks (sample,)."""
    return np.asarray(entropy(each.mean(axis=0)) - entropy(each).mean(axis=0))


def entropy(shares: Values) -> Values:
    return np.asarray(-(shares * np.log(np.maximum(shares, 1e-12))).sum(axis=-1))


def measure(answers: Answers, truth: NDArray[Any]) -> tuple[float, ...]:
    right = answers.labels == truth
    ranks = np.unique(answers.scores, return_inverse=True)[1] / len(
        right
    )  # BinaryAUROC requires 0..1
    separated = float(BinaryAUROC()(torch.from_numpy(ranks), torch.from_numpy(right.astype(int))))
    area = risk_coverage(answers.scores, right).area
    in_range = answers.scores.min() >= 0 and answers.scores.max() <= 1 + 1e-9
    plain = calibration_error(answers.scores, right) if in_range else float("nan")
    steps = IsotonicRegression(out_of_bounds="clip").fit(answers.scores[::2], right[::2])
    calibrated = calibration_error(steps.predict(answers.scores[1::2]), right[1::2])
    return 100 * float(right.mean()), separated, area, plain, calibrated


def calibration_error(confidence: Values, right: NDArray[np.bool_]) -> float:
    metric = BinaryCalibrationError(n_bins=BINS)
    clipped = torch.from_numpy(np.clip(confidence, 0, 1))
    return float(metric(clipped, torch.from_numpy(right.astype(int))))


def print_row(name: str, measured: Any) -> None:
    accuracy, *rest = measured
    cells = [f"{accuracy:.2f}", *("" if np.isnan(one) else f"{one:.3f}" for one in rest)]
    print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
