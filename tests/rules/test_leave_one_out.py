import numpy as np
import pytest
import slow_rules
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from voting import accuracy, draw_late_starts, draw_restarts, draw_rows

import accord
from accord.errors import ChoiceError, PredictionError, RecordMismatch, SourceError
from accord.rules import leave_one_out as module
from accord.rules import load_rule
from accord.rules.leave_one_out import LeaveOneOut, nonnegative_solution
from accord.rules.majority import Majority
from accord.rules.max_agreement import MaxAgreement
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import ArrayReader, SampleInfo
from accord.testing import SmallRecord

MEMORISING = {"accuracies": (0.6, 0.8, 0.9, 0.9, 0.6, 0.5, 0.5), "samples": 1000}
# Half of the later votes are for the next class: more than for the right one.
TURNED = {"accuracies": (0.9,) * 3 + (0.45,) * 6, "turns": 0.95, "samples": 1000}


def labels_of(rows):
    return rows.read_labels(range(rows.networks), range(rows.epochs), slice(None))


@pytest.mark.parametrize("drawn", [{"classes": 3}, {"turns": 0.9}, {"accuracies": (0.3, 0.8, 0.5)}])
@pytest.mark.parametrize("seed", range(3))
def test_it_equals_its_definition_on_more_samples_than_cells(drawn, seed):
    rows = draw_rows(networks=3, samples=150, seed=seed, **drawn)
    record = SmallRecord(labels_of(rows), None, None, rows.classes)
    assert LeaveOneOut()(rows).labels.tolist() == slow_rules.leave_one_out(record)


def test_epochs_at_which_networks_memorised_count_less():
    rows = draw_rows(**MEMORISING)
    assert accuracy(LeaveOneOut(), rows) >= accuracy(MaxAgreement(), rows)
    weights = LeaveOneOut().fit(rows).evidence.weights
    assert weights[[2, 3]].min() > 2 * weights[[0, 4, 5, 6]].max()


def test_votes_for_the_wrong_class_become_evidence_for_the_right_one():
    rows = draw_rows(**TURNED)
    assert accuracy(LeaveOneOut(), rows) > 0.98
    assert accuracy(MaxAgreement(), rows) < 0.95


def test_first_epochs_that_predict_one_class_do_no_harm():
    """All networks agree fully there, which is no evidence."""
    late = draw_rows(networks=5, accuracies=(0.5, 0.6, 0.7, 0.7, 0.7, 0.7))
    labels = np.concatenate([np.zeros((5, 4, 600), np.uint8), labels_of(late)], axis=1)
    rows = ArrayReader(labels, late.sample_info)
    assert accuracy(LeaveOneOut(), rows) >= accuracy(LeaveOneOut(), late) - 0.005
    assert LeaveOneOut().fit(rows).evidence.weights[:4].max() == 0


@pytest.mark.parametrize(
    "rows", [draw_late_starts(), draw_restarts(at_chance=True), draw_restarts(at_chance=False)]
)
def test_epochs_before_networks_learn_or_after_a_restart_do_no_harm(rows):
    found = accuracy(LeaveOneOut(), rows)
    assert found >= max(accuracy(MaxAgreement(), rows), accuracy(Majority(), rows)) - 0.005


def test_epochs_after_a_restart_that_predict_one_class_have_no_weight():
    weights = LeaveOneOut().fit(draw_restarts(at_chance=False)).evidence.weights
    assert weights[[0, 4, 5]].max() == 0


def test_where_targets_are_wrong_distant_epochs_count(monkeypatch):
    """Networks share early mistakes, which confirm targets from the same epochs."""
    generator = np.random.default_rng(0)
    truth = np.arange(2000) % 30
    votes = (truth + generator.integers(1, 30, (5, 24, 2000))) % 30
    votes = np.where(generator.random(votes.shape) < 0.4, truth, votes)
    mistaken = np.where(generator.random(2000) < 0.5, generator.integers(0, 30, 2000), truth)
    sharing = np.array([0.6] * 8 + [0.1] * 16)[:, None]
    votes = np.where(generator.random(votes.shape) < sharing, mistaken, votes).astype(np.uint8)

    def weight_of_later_epochs():
        fitted = LeaveOneOut().fit(ArrayReader(votes, SampleInfo(2000, 30)))
        return fitted.evidence.weights[8:].sum()

    assert weight_of_later_epochs() > 0.4
    monkeypatch.setattr(module, "BLOCK_CLASSES", 1e9)  # only targets count
    assert weight_of_later_epochs() < 0.2


def test_the_bundled_record_is_predicted_better_than_by_max_agreement():
    rows = accord.open("example://cifar10-sym40").reader
    assert accuracy(LeaveOneOut(), rows) > accuracy(MaxAgreement(), rows)


def test_one_network_is_max_agreement_with_a_note():
    rows = draw_rows(networks=1)
    predicted = LeaveOneOut()(rows)
    np.testing.assert_array_equal(predicted.labels, MaxAgreement()(rows).labels)
    assert "no other network" in predicted.note
    with pytest.raises(ChoiceError, match="leave-one-out compares networks"):
        LeaveOneOut().fit(rows)


def test_networks_that_never_agree_have_equal_weights():
    labels = np.array([[[0, 1], [0, 1]], [[1, 0], [1, 0]]], np.uint8)
    rows = ArrayReader(labels, SampleInfo(2, classes=2))
    np.testing.assert_array_equal(LeaveOneOut().fit(rows).evidence.weights, [0.5, 0.5])


def test_a_fitted_rule_predicts_other_samples_of_other_networks(tmp_path):
    rows = draw_rows(networks=6, **TURNED)
    first, last = slice(None, 500), slice(500, None)
    fitted = LeaveOneOut().fit(rows.select(networks=[0, 1, 2], samples=first))
    fitted.save(tmp_path / "rule.npz")
    loaded = load_rule(tmp_path / "rule.npz")
    others = rows.select(networks=[3, 4, 5], samples=last)
    np.testing.assert_array_equal(loaded(others).labels, fitted(others).labels)
    assert (loaded(others).labels == others.truth()).mean() > 0.97
    with pytest.raises(RecordMismatch, match="fitted on 9 epochs; this record has 8"):
        loaded(others.select(epochs=range(8)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("weights", np.array([np.nan]), "weights must be finite"),
        ("weights", np.zeros(9), "weights must not all be 0"),
        ("confusion", np.zeros((9, 4, 4)), "confusion must be square and above 0"),
        ("confusion", np.ones((9, 4, 3)), "confusion must be square"),
        ("confusion", np.ones(9), "confusion must be numbers of shape"),
        ("groups", np.full(9, 9), "groups must be whole numbers in 0"),
    ],
)
def test_other_parameters_are_refused(name, value, message):
    arrays = dict(LeaveOneOut().fit(draw_rows(**TURNED)).parameters())
    with pytest.raises(SourceError, match=message):
        LeaveOneOut.from_arrays({**arrays, name: value})


def test_a_large_record_is_fitted_on_evenly_spaced_samples(monkeypatch):
    """Every fifth one: of four classes in turn, every fourth sample has the same."""
    rows = draw_rows(**TURNED)
    monkeypatch.setattr(module, "FIT_SAMPLES", 300)
    monkeypatch.setattr(module, "FIT_VOTES", 1)
    predicted = LeaveOneOut()(rows)
    assert predicted.note == "fitted on one in 5 samples"
    fifths = ArrayReader(labels_of(rows)[:, :, ::5], SampleInfo(200, classes=4))
    np.testing.assert_array_equal(predicted.labels, LeaveOneOut().fit(fifths)(rows).labels)
    assert (predicted.labels == rows.truth()).mean() > 0.95


def test_with_many_classes_epochs_only_have_weights(monkeypatch):
    rows = draw_rows(**MEMORISING)
    weights = LeaveOneOut().fit(rows).evidence.weights
    monkeypatch.setattr(module, "MAX_CLASSES", 3)
    predicted = LeaveOneOut()(rows)
    assert predicted.note == module.MANY_CLASSES
    np.testing.assert_allclose(predicted.scores, WeightedAgreement(weights)(rows).scores, atol=0.1)
    with pytest.raises(PredictionError, match=r"at most 3 classes; got 4\. Fit weighted"):
        LeaveOneOut().fit(rows)


def test_neighbouring_epochs_share_a_weight_beyond_the_most_bins(monkeypatch):
    rows = draw_rows(accuracies=np.repeat([0.9, 0.5], 6), samples=300)
    monkeypatch.setattr(module, "MAX_BINS", 4)
    monkeypatch.setattr(module, "BLOCKS", 2)
    weights = LeaveOneOut().fit(rows).evidence.weights.reshape(4, 3)
    assert (weights == weights[:, :1]).all()
    assert weights.sum() == pytest.approx(1, abs=1e-4)
    means = labels_of(rows).reshape(4, 4, 3, 300)
    votes = np.stack([(means == c).mean(axis=(0, 2)) for c in range(4)])  # (class, bin, sample)
    expected = sum(np.cov(one, bias=True) for one in votes)
    found = module._vote_moments(labels_of(rows), 4)
    np.testing.assert_allclose(found.covariance, expected, atol=1e-12)


def test_distant_reliability_is_that_of_blocks_of_epochs(monkeypatch):
    """Whatever the order of networks, samples and the number of bins."""
    rows = draw_rows(accuracies=np.repeat([0.4, 0.9, 0.8, 0.6], 3), samples=300, classes=3)
    labels = labels_of(rows)
    _, across, _ = slow_rules.likeness(labels, 3)
    monkeypatch.setattr(module, "BLOCKS", 4)
    blocks = across.reshape(4, 3, 4, 3).mean(axis=(1, 3))
    for bins in (12, 4):
        monkeypatch.setattr(module, "MAX_BINS", bins)
        found = module._vote_moments(labels[::-1, :, ::-1], 3).distant
        scale = slow_rules.reliability(blocks) / found
        np.testing.assert_allclose(scale, scale[0], rtol=1e-9)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_solution_equals_that_of_scipy(seed, size):
    generator = np.random.default_rng(seed)
    votes = generator.normal(size=(size, 2 * size))
    matrix = votes @ votes.T + 0.01 * np.eye(size)
    right = generator.normal(size=size)
    factor = np.linalg.cholesky(matrix)
    expected = nnls(factor.T, np.linalg.solve(factor, right))[0]
    np.testing.assert_allclose(nonnegative_solution(matrix, right), expected, atol=1e-8)


@pytest.mark.parametrize(
    "networks",
    [
        ["011111 111101 000000 100100", "111110 011110 010100 110101"],
        ["33 21 00", "31 30 12", "21 20 10"],
    ],
)
def test_what_rounding_leaves_of_zero_has_no_weight(networks):
    """Votes that agree exactly as often as by chance."""
    labels = np.array([[list(map(int, row)) for row in rows.split()] for rows in networks])
    classes = int(labels.max()) + 1
    found = LeaveOneOut()(ArrayReader(labels, SampleInfo(labels.shape[2], classes)))
    record = SmallRecord(labels, None, None, classes)
    assert found.labels.tolist() == slow_rules.leave_one_out(record)
