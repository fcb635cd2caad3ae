"""Measures of trust against torchmetrics' own, on networks and epochs of a real record."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression
from torchmetrics.classification import (
    BinaryAUROC,
    BinaryCalibrationError,
    MulticlassAccuracy,
    MulticlassCalibrationError,
)

import accord
from accord.analysis._trust._calibration import calibration, calibration_of
from accord.analysis._trust._trust import abstain_below, risk_coverage

ROOT = Path(__file__).parents[1]
BINS = (1, 7, 13)  # whose edges no share of 375 votes hits: torchmetrics bins in single precision


@pytest.fixture(scope="module")
def record():
    return accord.open("example://cifar10-sym40")


@pytest.fixture(scope="module")
def agreement(record):
    return record.agreement()


def error_by_torchmetrics(shares, truth, *, bins, norm="l1"):
    metric = MulticlassCalibrationError(shares.shape[1], n_bins=bins, norm=norm)
    return float(metric(torch.from_numpy(shares), torch.from_numpy(truth.astype(np.int64))))


@pytest.mark.parametrize("bins", BINS)
def test_calibration_error_of_the_votes_is_torchmetrics(record, agreement, bins):
    found = calibration_of(record.predict(), record.truth, bins=bins)
    expected = error_by_torchmetrics(agreement, record.truth, bins=bins)
    assert found.error == pytest.approx(expected, abs=1e-5)
    worst = error_by_torchmetrics(agreement, record.truth, bins=bins, norm="max")
    assert found.largest_error == pytest.approx(worst, abs=1e-5)


def test_isotonic_confidence_is_calibrated_by_torchmetrics_too(record):
    right = record.predict().labels == record.truth
    margin = record.margin()
    steps = IsotonicRegression(out_of_bounds="clip").fit(margin[::2], right[::2])
    confidence = steps.predict(margin[1::2])
    metric = BinaryCalibrationError(n_bins=15)
    expected = float(
        metric(torch.from_numpy(confidence), torch.from_numpy(right[1::2].astype(int)))
    )
    # torchmetrics' binary error bins the chance of being right, as ours does.
    assert calibration(confidence, right[1::2]).error == pytest.approx(expected, abs=1e-6)
    assert expected < 0.03


def test_margins_rank_errors_better_than_the_last_votes(record):
    """AUROC for "the label is right", by torchmetrics, and the area under risk and coverage."""
    agreed, voted = record.predict(), record.predict("majority")
    curves, separated = [], []
    for labels, scores in ((agreed.labels, record.margin()), (voted.labels, voted.scores)):
        right = labels == record.truth
        metric = BinaryAUROC()
        separated.append(
            float(metric(torch.from_numpy(scores), torch.from_numpy(right.astype(int))))
        )
        curves.append(risk_coverage(scores, right).area)
    assert separated[0] > 0.85
    assert separated[0] > separated[1]
    assert curves[0] < 0.3 * curves[1]


def test_accuracy_among_the_answered_is_torchmetrics(record):
    prediction = record.predict()
    margin = record.margin()
    chosen = abstain_below(prediction, margin, 0.5)
    metric = MulticlassAccuracy(10, average="micro", ignore_index=None)
    answered = chosen.labels >= 0
    expected = float(
        metric(
            torch.from_numpy(chosen.labels[answered]),
            torch.from_numpy(record.truth[answered].astype(np.int64)),
        )
    )
    curve = risk_coverage(margin, prediction.labels == record.truth)
    at = int(np.flatnonzero(curve.thresholds >= 0.5)[-1])
    assert curve.coverage[at] == pytest.approx(answered.mean())
    assert 1 - curve.risk[at] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["sst2-sym20", "qnli-sym20"])
def test_votes_against_probabilities_of_the_same_networks(name):
    """Maximum softmax, deep-ensemble probability and mutual information, on the last epoch."""
    record = accord.open(ROOT / f"results/text/{name}.zip")
    last = record.probabilities[:, -1].astype(np.float64)  # (network, sample, class)
    mean = last.mean(axis=0)
    entropy = -(mean * np.log(mean + 1e-12)).sum(axis=1)
    own = -(last * np.log(last + 1e-12)).sum(axis=2).mean(axis=0)
    ensemble = mean.argmax(axis=1) == record.truth
    areas = {
        "maximum softmax": risk_coverage(
            last[0].max(axis=1), last[0].argmax(axis=1) == record.truth
        ).area,
        "ensemble probability": risk_coverage(mean.max(axis=1), ensemble).area,
        "mutual information": risk_coverage(-(entropy - own), ensemble).area,
        "margin": risk_coverage(record.margin(), record.predict().labels == record.truth).area,
    }
    assert areas["margin"] < areas["maximum softmax"]
    assert min(areas, key=lambda kind: areas[kind]) == "margin", areas
