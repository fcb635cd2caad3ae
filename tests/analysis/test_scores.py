import itertools
from dataclasses import replace

import numpy as np
import pytest
import slow_rules
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy
from scipy.stats import chi2
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score

from accord import analysis
from accord.analysis import Changes, compare_rules
from accord.errors import ChoiceError, PredictionError, ProbabilitiesMissing, TruthMissing
from accord.rules import all_rules
from accord.store import ArrayReader, SampleInfo
from accord.testing import small_records
from accord.testing._contracts import reader_of

quickly = settings(max_examples=40)


@quickly
@given(small_records())
def test_accuracy_equals_that_of_scikit_learn(record):
    predicted, truth = record.labels[0, -1], record.truth
    measured = analysis.measure(predicted, truth, classes=record.classes)
    assert measured.accuracy == pytest.approx(accuracy_score(truth, predicted))
    present = np.unique(truth)
    expected = recall_score(truth, predicted, labels=present, average=None, zero_division=0)
    assert measured.balanced_accuracy == pytest.approx(expected.mean())
    np.testing.assert_allclose(np.array(measured.recall)[present], expected)
    assert np.isnan(np.delete(measured.recall, present)).all()


def test_balanced_accuracy_is_scikit_learns_where_every_class_occurs():
    truth, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    measured = analysis.measure(predicted, truth, classes=2)
    assert measured.balanced_accuracy == balanced_accuracy_score(truth, predicted)


def test_an_abstention_counts_as_wrong_but_not_among_the_labelled():
    measured = analysis.measure(np.array([0, -1, 1, -1]), np.array([0, 0, 0, 1]), classes=2)
    assert (measured.accuracy, measured.coverage, measured.selective_accuracy) == (0.25, 0.5, 0.5)
    nothing = analysis.measure(np.array([-1]), np.array([0]), classes=2)
    assert np.isnan(nothing.selective_accuracy)


def test_a_rule_that_labels_nothing_has_no_accuracy_among_the_labelled():
    rows = ArrayReader(np.array([[[0]], [[1]]], np.uint16), SampleInfo(1, 2, truth=np.array([0])))
    found = {one.rule: one for one in analysis.score(rows, ["consensus", "majority"])}
    assert (found["consensus"].coverage, found["consensus"].selective_accuracy) == (0.0, None)
    assert (found["majority"].coverage, found["majority"].selective_accuracy) == (1.0, None)


def test_labels_may_be_lists():
    assert analysis.measure([0, 1, 1], [0, 0, 1], classes=2).accuracy == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("predicted", "truth", "words"),
    [
        ([0], [0, 1], r"one label and one true class per sample.*got shapes \(1,\) and \(2,\)"),
        ([], [], "for at least one sample"),
        ([0, 1], [0, -1], r"true classes must lie in 0\.\.1 for 2 classes; got -1\.\.0.*Leave out"),
        ([0, 1], [0, 2], r"0\.\.1 for 2 classes; got 0\.\.2"),
    ],
)
def test_what_cannot_be_measured_is_refused(predicted, truth, words):
    with pytest.raises(PredictionError, match=words):
        analysis.measure(np.array(predicted, int), np.array(truth, int), classes=2)


@quickly
@given(small_records())
def test_scores_are_an_independent_count(record):
    rows = reader_of(record)
    scores = {one.rule: one for one in analysis.score(rows)}
    assert scores.keys() == all_rules().keys()
    for name in all_rules():
        if name != "single":
            expected = np.mean(np.array(slow_rules.BY_NAME[name](record)) == record.truth)
            assert scores[name].accuracy == pytest.approx(expected)
    per_network = (record.labels[:, -1] == record.truth).mean(axis=1)
    np.testing.assert_allclose(scores["single"].per_network, per_network)
    assert scores["single"].accuracy == pytest.approx(per_network.mean())


def test_only_rules_that_the_record_allows_are_scored_unless_named():
    rows = ArrayReader(np.zeros((1, 1, 2), np.uint8), SampleInfo(2, 2, truth=np.array([0, 1])))
    rules = [one.rule for one in analysis.score(rows)]
    fitted = ["before-overfit", "dawid-skene", "leave-one-out"]
    counted = ["max-agreement", "weighted-agreement"]
    assert rules == ["single", "consensus", "majority", *fitted, *counted, "oracle-best-epoch"]
    with pytest.raises(ProbabilitiesMissing, match="soft-agreement needs probabilities"):
        analysis.score(rows, ["soft-agreement"])
    with pytest.raises(ChoiceError, match="Did you mean 'majority'"):
        analysis.score(rows, ["majorities"])


def some_rows():
    labels = np.random.default_rng(0).integers(0, 3, (4, 5, 60))
    return ArrayReader(labels, SampleInfo(60, 3, truth=labels[0, 0]))


def test_scoring_reads_only_what_the_named_rules_read(epochs_read):
    analysis.score(some_rows(), ["single", "majority"])
    assert set(epochs_read) == {4}


def test_without_truth_nothing_is_scored():
    rows = ArrayReader(np.zeros((1, 1, 2), np.uint8), SampleInfo(2, 2))
    for score_one in (analysis.score, analysis.persistence, analysis.error_consensus_histogram):
        with pytest.raises(TruthMissing, match="the record has no true labels"):
            score_one(rows)


@quickly
@given(small_records())
def test_margins_follow_their_definitions(record):
    rows = reader_of(record)
    votes = record.labels.shape[0] * record.labels.shape[1]
    last = np.array(slow_rules.majority(record))
    for sample in range(rows.samples):
        flat = record.labels[:, :, sample].ravel()
        counts = np.bincount(flat, minlength=max(record.classes, 2))
        best, second = np.sort(counts)[::-1][:2]
        assert analysis.margin_of(rows)[sample] == pytest.approx((best - second) / votes)
        others = np.delete(counts, last[sample]).max()
        final = (counts[last[sample]] - others) / votes
        assert analysis.final_margin_of(rows)[sample] == pytest.approx(final)


@quickly
@given(small_records())
def test_histograms_count_every_sample_and_every_error_once(record):
    rows = reader_of(record)
    margins = analysis.final_margin_histogram(rows, bins=10)
    right = np.array(slow_rules.majority(record)) == record.truth
    assert margins.right.sum() == right.sum()
    assert margins.wrong.sum() == (~right).sum()
    wrong_pairs = (record.labels[:, -1] != record.truth).sum()
    assert analysis.error_consensus_histogram(rows).sum() == wrong_pairs


@quickly
@given(small_records())
def test_network_agreement_is_the_share_of_equal_pairs(record):
    rows = reader_of(record)
    if rows.networks < 2:
        with pytest.raises(ChoiceError, match="needs two; there is one"):
            analysis.network_agreement(rows)
        return
    pairs = list(itertools.combinations(record.labels, 2))
    expected = np.mean([first == second for first, second in pairs], axis=(0, 2))
    np.testing.assert_allclose(analysis.network_agreement(rows), expected)


def runs_by_definition(record):
    """Every run as (right, onset, length), walked epoch by epoch."""
    networks, epochs, samples = record.labels.shape
    for network in range(networks):
        for sample in range(samples):
            onset = 0
            for epoch in range(1, epochs + 1):
                here = record.labels[network, :, sample]
                if epoch == epochs or here[epoch] != here[onset]:
                    yield here[onset] == record.truth[sample], onset, epoch - onset
                    onset = epoch


@quickly
@given(small_records())
def test_persistence_finds_every_run(record):
    found = analysis.persistence(reader_of(record))
    epochs = record.labels.shape[1]
    expected = np.zeros((2, 2, epochs), int)
    for right, onset, length in runs_by_definition(record):
        expected[int(right), 0, onset] += 1
        expected[int(right), 1, length - 1] += 1
    np.testing.assert_array_equal(found.wrong_onsets, expected[0, 0])
    np.testing.assert_array_equal(found.wrong_lengths, expected[0, 1])
    np.testing.assert_array_equal(found.right_onsets, expected[1, 0])
    np.testing.assert_array_equal(found.right_lengths, expected[1, 1])
    lengths = [length for right, _, length in runs_by_definition(record) if right]
    if lengths:
        assert found.mean_right_length == pytest.approx(np.mean(lengths))
    else:
        assert np.isnan(found.mean_right_length)


def paired(gained, lost, samples):
    truth = np.zeros(samples, int)
    first, second = truth.copy(), truth.copy()
    first[:gained] = 1
    second[gained : gained + lost] = 1
    return analysis.paired_changes(first, second, truth)


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_paired_test_is_mcnemars(gained, lost):
    found = paired(gained, lost, 1000)
    assert (found.turned_right, found.turned_wrong) == (gained, lost)
    expected = chi2.sf((gained - lost) ** 2 / (gained + lost), 1) if gained + lost else 1.0
    assert found.p_value == pytest.approx(expected, rel=1e-6)
    assert found.low <= found.difference <= found.high


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_interval_excludes_0_where_the_paired_test_is_significant(gained, lost):
    found = paired(gained, lost, 400)
    assert (found.p_value < 0.05) == (not found.low <= 0 <= found.high)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (5, 0), (0, 3), (12, 7), (40, 60)])
def test_the_interval_ends_where_the_score_test_rejects(gained, lost):
    """Of each difference, the slow twin tries every share of lost samples."""
    samples = 100
    found = paired(gained, lost, samples)
    for end in (found.low, found.high):
        shares = np.linspace(max(0.0, -end), (1 - end) / 2 if end > -1 else 1, 200_001)[1:-1]
        kept = 1 - 2 * shares - end
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = (
                xlogy(gained, shares + end)
                + xlogy(lost, shares)
                + xlogy(samples - gained - lost, kept)
            )
        share = shares[np.nanargmax(likelihood)]
        scatter = np.sqrt(samples * (2 * share + end - end**2))
        assert abs(gained - lost - samples * end) / scatter == pytest.approx(1.96, abs=2e-3)


def test_the_interval_covers_the_true_difference_at_its_confidence():
    """Of 2,000 simulated comparisons with a known difference, about 95 % must cover it."""
    generator = np.random.default_rng(0)
    samples, gain, loss = 300, 0.06, 0.02
    covered = 0
    for _ in range(2000):
        kinds = generator.choice(3, size=samples, p=[gain, loss, 1 - gain - loss])
        found = analysis.paired_changes(
            (kinds == 0).astype(int), (kinds == 1).astype(int), np.zeros(samples, int)
        )
        covered += found.low <= gain - loss <= found.high
    assert 0.935 < covered / 2000 < 0.97


def test_an_impossible_confidence_is_refused():
    with pytest.raises(PredictionError, match="between 0 and 1; got 95"):
        analysis.paired_changes(np.zeros(1), np.zeros(1), np.zeros(1), confidence=95)


def test_changes_compare_two_rules_on_one_record():
    labels = np.array([[[0, 0], [0, 1], [1, 1]]], np.uint8)
    rows = ArrayReader(labels, SampleInfo(2, 2, truth=np.array([0, 1])))
    found = analysis.changes(rows, "majority", "max-agreement")
    assert (found.turned_right, found.turned_wrong, found.difference) == (1, 0, 0.5)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (1, 3, 3), (3, 1, 3), (3, 3, 1), (0, 0, 0)])
def test_labels_of_other_samples_are_not_paired(sizes):
    with pytest.raises(PredictionError, match="two labels and a true one per sample"):
        analysis.paired_changes(*(np.zeros(size, int) for size in sizes))


def test_lists_of_labels_are_paired():
    assert analysis.paired_changes([0, 1], [1, 1], [1, 1]).turned_right == 1


def too_many_classes():
    truth = np.arange(300) % 7
    labels = np.tile(truth, (5, 4, 1)).astype(np.uint16)
    return ArrayReader(labels, SampleInfo(300, 6000, truth=truth), name="wide")


def test_a_rule_that_a_record_is_too_large_for_is_left_out_with_the_reason():
    rows = too_many_classes()
    scored = {one.rule for one in analysis.score(rows)}
    assert "max-agreement" in scored
    assert "dawid-skene" not in scored
    reason = "its 6000 × 6000 confusion matrices would be too large"
    assert compare_rules(rows).left_out == {"before-overfit": reason, "dawid-skene": reason}


def test_a_rule_that_is_named_is_not_left_out():
    with pytest.raises(PredictionError, match="Use weighted-agreement"):
        analysis.score(too_many_classes(), ["dawid-skene"])


def test_one_network_has_no_matrices_to_be_too_large():
    labels = np.zeros((1, 4, 30), np.uint16)
    rows = ArrayReader(labels, SampleInfo(30, 20_000, truth=labels[0, 0]))
    assert compare_rules(rows).left_out == {}
    assert "dawid-skene" in {one.rule for one in analysis.score(rows)}


def test_a_difference_whose_interval_is_shown_from_zero_is_not_clear():
    changed = Changes(9, 2, 1000, 0.03, low=0.0004, high=0.02, confidence=0.95)
    assert not changed.significant
    assert replace(changed, low=0.0006).significant
