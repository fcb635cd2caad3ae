from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from overfitting import draw_run, right_chances

from accord.analysis._dynamics import epochs_to_fuse, forgetting
from accord.errors import ChoiceError, PredictionError, TruthMissing
from accord.rules import find_rule
from accord.rules.majority import Majority
from accord.store import ArrayReader, SampleInfo
from accord.store import _record_reader as rows_module
from accord.testing import small_records
from accord.testing._contracts import reader_of

quickly = settings(max_examples=40)


@contextmanager
def small_blocks():
    """Read two samples at a time, so that a record makes several blocks."""
    before = rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK
    rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = 1, 2
    try:
        yield
    finally:
        rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = before


def known_by_definition(rows, labels):
    """Whether the majority knows each sample, epoch by epoch."""
    return np.array(
        [Majority()(rows.select(epochs=[epoch])).labels == labels for epoch in range(rows.epochs)]
    )


@quickly
@given(small_records())
def test_what_is_forgotten_follows_its_definition(record):
    rows = reader_of(record)
    with small_blocks():
        found = forgetting(rows)
    known = known_by_definition(rows, record.truth)
    expected = [s for s in range(rows.samples) if known[:, s].any() and not known[-1, s]]
    assert found.forgotten.tolist() == expected
    last = [max(e for e in range(rows.epochs) if known[e, s]) for s in expected]
    assert found.last_known.tolist() == last
    assert found.knew.tolist() == [int(known[e, expected].sum()) for e in range(rows.epochs)]
    for epoch in range(rows.epochs):
        was = known[epoch - 1] if epoch else np.zeros(rows.samples, bool)
        assert found.lost[epoch] == (was & ~known[epoch]).sum()
        assert found.gained[epoch] == (~was & known[epoch]).sum()
    assert found.share == len(expected) / rows.samples
    assert found.judged_by == "truth"


def test_networks_that_overfit_forget_and_good_epochs_knew():
    rows = draw_run(right_chances(40, end=0.4))
    found = forgetting(rows)
    assert found.share > 0.1
    assert found.best_epoch == int(np.argmax(found.knew))
    assert 5 < found.best_epoch < 30
    assert forgetting(draw_run(right_chances(40))).share < 0.03


def test_a_rule_can_stand_for_the_truth():
    rows = draw_run(right_chances(20, end=0.4))
    labels = rows.read_labels(range(5), range(20), slice(None))
    blind = ArrayReader(labels, SampleInfo(rows.samples, rows.classes))
    with pytest.raises(TruthMissing, match="no true labels"):
        forgetting(blind)
    found = forgetting(blind, judge="max-agreement")
    known = known_by_definition(blind, find_rule("max-agreement")(blind).labels)
    assert found.forgotten.tolist() == np.flatnonzero(known.any(axis=0) & ~known[-1]).tolist()
    assert found.judged_by == "max-agreement"


def fused_by_definition(rows, samples, labels, most):
    votes = [
        sum(
            np.eye(rows.classes, dtype=int)[rows.read_labels([n], [e], slice(None))[0, 0][samples]]
            for n in range(rows.networks)
        )
        for e in range(rows.epochs)
    ]

    def hits(epochs):
        return (sum(votes[e] for e in epochs).argmax(axis=1) == labels).sum()

    chosen = [rows.epochs - 1]
    while len(chosen) < most:
        best = max(range(rows.epochs), key=lambda e: hits([*chosen, e]))
        if hits([*chosen, best]) <= hits(chosen):
            break
        chosen.append(best)
    return chosen


@quickly
@given(small_records())
def test_fused_epochs_follow_their_definition(record):
    rows = reader_of(record)
    samples = list(range(rows.samples))[::-1]
    labels = record.truth[samples]
    expected = fused_by_definition(rows, samples, labels, 4)
    with small_blocks():
        assert epochs_to_fuse(rows, samples, labels, most=4) == expected


def test_fusing_repairs_what_was_forgotten():
    rows = draw_run(right_chances(40, end=0.4))
    labelled = np.arange(0, rows.samples, 2)
    chosen = epochs_to_fuse(rows, labelled, rows.truth()[labelled])
    fused = find_rule("max-agreement")(rows.select(epochs=sorted(set(chosen)))).labels
    last = Majority()(rows).labels
    rest = np.arange(1, rows.samples, 2)
    gain = (fused[rest] == rows.truth()[rest]).mean() - (last[rest] == rows.truth()[rest]).mean()
    assert gain > 0.1


def test_labelled_samples_may_be_a_mask():
    rows = draw_run(right_chances(40, end=0.4))
    mask = np.arange(rows.samples) % 3 == 1
    labels = rows.truth()[mask]
    expected = epochs_to_fuse(rows, np.flatnonzero(mask), labels)
    assert len(expected) > 1
    assert epochs_to_fuse(rows, mask, labels) == expected


@pytest.mark.parametrize(
    ("samples", "labels", "most", "kind", "words"),
    [
        ([], [], 3, ChoiceError, "needs labelled samples"),
        ([0], [0], 0, ChoiceError, "at least one epoch"),
        ([0, 1], [0], 3, PredictionError, "one label per labelled sample"),
        ([600], [0], 3, PredictionError, r"samples must lie in 0\.\.599; got 600\.\.600"),
        ([-1], [0], 3, PredictionError, r"samples must lie in 0\.\.599; got -1\.\.-1"),
        ([0], [5], 3, PredictionError, r"labels must lie in 0\.\.4 for 5 classes; got 5\.\.5"),
        ([0], [-1], 3, PredictionError, r"labels must lie in 0\.\.4"),
        (
            [True, False],
            [0, 0],
            3,
            PredictionError,
            r"mask .* must have shape \(600,\); got \(2,\)",
        ),
        ([0.5], [0], 3, PredictionError, r"whole numbers, or a mask; got float64"),
    ],
)
def test_what_cannot_be_fused_by_is_refused(samples, labels, most, kind, words):
    rows = draw_run(right_chances(4))
    with pytest.raises(kind, match=words):
        epochs_to_fuse(rows, samples, np.array(labels, int), most=most)
