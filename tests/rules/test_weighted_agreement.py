import numpy as np
import pytest
from overfitting import memorised
from voting import accuracy, draw_rows

import accord
from accord.errors import ChoiceError, RecordMismatch, SourceError
from accord.kernels import margins
from accord.rules import _epoch_weights as weighted_votes
from accord.rules import weighted_agreement
from accord.rules._context import Context
from accord.rules._epoch_weights import (
    Likeness,
    best_agreement,
    disputed_samples,
    equal_weights,
    explained,
    independent_epochs,
    likeness_among,
    measure_likeness,
    power_weights,
    regression_weights,
    reliability,
    repetition,
)
from accord.rules.max_agreement import MaxAgreement
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import ArrayReader, SampleInfo
from accord.store import _record_reader as rows_module

FADING = (0.9, 0.9, 0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3)
RISING = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)


def test_good_epochs_outvote_many_that_repeat_a_bad_one():
    drawn = draw_rows(accuracies=FADING)
    repeated = [0, 1, 2] + [3] * 9
    rows = ArrayReader(drawn.read_labels(range(4), repeated, slice(None)), drawn.sample_info)
    assert accuracy(WeightedAgreement(), rows) > accuracy(MaxAgreement(), rows) + 0.1


def test_good_epochs_weigh_more():
    weights = WeightedAgreement().fit(draw_rows(accuracies=(0.9,) * 8 + (0.5,) * 8)).weights
    assert weights[:8].min() > 2 * weights[8:].max()
    assert weights.sum() == pytest.approx(1, abs=1e-5)


def test_the_bundled_record_is_predicted_better_than_by_max_agreement():
    record = accord.open("example://cifar10-sym40")
    weighted = accuracy(WeightedAgreement(), record.reader)
    assert weighted >= accuracy(MaxAgreement(), record.reader) + 0.004


def test_an_epoch_at_which_all_networks_predict_one_class_weighs_next_to_nothing():
    rows = draw_rows(accuracies=(0.8,) * 8)
    labels = rows.read_labels(range(4), range(8), slice(None)).copy()
    labels[:, 0] = 2
    weights = WeightedAgreement().fit(ArrayReader(labels, rows.sample_info)).weights
    assert weights[0] == 0


def test_weights_are_the_fourth_power_of_reliability_on_samples_in_dispute():
    rows = draw_rows(accuracies=RISING)
    labels = rows.read_labels(range(4), range(9), slice(None))
    found = margins(labels, classes=4)
    half = labels[:, :, found < np.median(found)]
    alone = ArrayReader(half, SampleInfo(half.shape[2], 4))
    expected = reliability(measure_likeness(alone).across) ** 4
    weights = WeightedAgreement().fit(rows).weights
    np.testing.assert_allclose(weights, expected / expected.sum(), atol=1e-6)
    np.testing.assert_allclose(power_weights(np.array([0.5, 1.0])), [1 / 17, 16 / 17], atol=1e-6)


@pytest.mark.parametrize(("share", "whole"), [(0.95, False), (0.94, True)])
def test_all_samples_count_where_disputed_ones_explain_nothing(monkeypatch, share, whole):
    rows = draw_rows(accuracies=RISING)
    plain = WeightedAgreement().fit(rows).weights
    monkeypatch.setattr(weighted_agreement, "explained", lambda across, found: share)
    weights = WeightedAgreement().fit(rows).weights
    expected = power_weights(reliability(measure_likeness(rows).across)) if whole else plain
    np.testing.assert_array_equal(weights, expected)
    assert whole == (weights != plain).any()


def test_epochs_of_two_poor_networks_are_not_weighed_by_chance():
    """Where their votes are in dispute they share next to nothing; 0.87 were right by that."""
    accuracies = (0.14, 0.26, *np.linspace(0.3, 0.6, 13))
    rows = draw_rows(accuracies=accuracies, networks=2, samples=200, classes=10, seed=7)
    assert accuracy(WeightedAgreement(), rows) > 0.98


def test_epochs_weigh_the_same_where_nothing_is_explained(monkeypatch):
    rows = draw_rows(accuracies=RISING)
    measured = iter([np.zeros(9)])  # and all samples are not measured
    monkeypatch.setattr(weighted_agreement, "reliability", lambda across: next(measured))
    np.testing.assert_array_equal(WeightedAgreement().fit(rows).weights, equal_weights(9))


def test_products_of_reliabilities_are_explained_and_noise_is_not():
    found = np.linspace(0.2, 0.9, 12)
    products = np.outer(found, found)
    assert explained(products, found) == pytest.approx(1)
    near = products + np.eye(12)  # epochs close to each other do not matter
    assert explained(near, found) == pytest.approx(1)
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(12, 12))
    assert explained(noise + noise.T, found) < 0.2
    far = np.abs(np.subtract.outer(np.arange(12), np.arange(12))) >= 3
    half = products * (1 + np.where(far, 0.5, 0))
    assert explained(half, found) == pytest.approx(1 - (0.5 / 1.5) ** 2)
    assert explained(np.zeros((12, 12)), found) == 0
    assert explained(noise[:2, :2], found[:2]) == 1
    assert explained(np.zeros((3, 3)), found[:3]) == 0


def test_epochs_without_reliability_weigh_the_same():
    np.testing.assert_array_equal(power_weights(np.zeros(3)), equal_weights(3))
    np.testing.assert_array_equal(power_weights(np.full(3, 1e-60)), equal_weights(3))


def test_epochs_after_an_early_overfit_weigh_nothing(monkeypatch):
    rows = draw_rows(accuracies=FADING)
    monkeypatch.setattr(weighted_agreement, "epochs_before_early_overfitting", lambda rows: 4)
    weights = WeightedAgreement().fit(rows).weights
    kept = Context(rows).select(epochs=range(4))
    alone = power_weights(reliability(likeness_among(kept, disputed_samples(kept)).across))
    np.testing.assert_array_equal(weights, [*alone, *[0] * 5])


def test_networks_that_memorise_early_are_predicted_from_earlier_epochs():
    rows = memorised()
    assert accuracy(WeightedAgreement(), rows) > accuracy(MaxAgreement(), rows) + 0.05


def test_two_classes_weigh_the_same_unless_networks_overfit_early(monkeypatch):
    rows = draw_rows(accuracies=RISING, classes=2)
    predicted = WeightedAgreement()(rows)
    np.testing.assert_array_equal(predicted.labels, MaxAgreement()(rows).labels)
    assert "two classes" in predicted.note
    np.testing.assert_array_equal(WeightedAgreement().fit(rows).weights, equal_weights(9))
    monkeypatch.setattr(weighted_agreement, "epochs_before_early_overfitting", lambda rows: 5)
    assert not WeightedAgreement().fit(rows).weights[5:].any()
    assert WeightedAgreement()(rows).note == ""


def test_one_class_has_its_own_note():
    rows = ArrayReader(np.zeros((2, 3, 4), np.uint8), SampleInfo(4, 1))
    assert WeightedAgreement()(rows).note.startswith("with one class there is nothing to compare")


def test_samples_are_in_dispute_below_the_median_margin():
    unanimous, close, split = [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]
    votes = np.array([unanimous, close, split, unanimous, unanimous]).T.reshape(2, 2, 5)
    rows = Context(ArrayReader(votes, SampleInfo(5, 2)))
    assert disputed_samples(rows).tolist() == [False, True, True, False, False]
    assert disputed_samples(rows.select(samples=slice(0, 3))).tolist() == [False, False, True]
    assert disputed_samples(rows.select(samples=slice(3, 5))).tolist() == [True, True]


def test_likeness_can_be_measured_among_some_samples(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows_module, "LEAST_BLOCK", 7)
    rows = draw_rows(accuracies=RISING, samples=100)
    among = np.arange(100) % 3 == 0
    labels = rows.read_labels(range(4), range(9), slice(None))[:, :, among]
    expected = measure_likeness(ArrayReader(labels, SampleInfo(labels.shape[2], 4)))
    found = likeness_among(Context(rows), among)
    for name in ("within", "across", "shares"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_repetition_is_one_for_the_same_votes_and_none_for_votes_drawn_apart():
    def repeated(labels, sample_info):
        return repetition(measure_likeness(ArrayReader(labels, sample_info)).within)

    guessed = draw_rows(accuracies=(0.25,) * 4, samples=20_000)
    for epochs, expected in (([0, 1, 2, 3], 0), ([0, 0, 0], 1), ([0, 0, 1, 1], 1 / 3), ([0], 1)):
        labels = guessed.read_labels(range(4), epochs, slice(None))
        assert repeated(labels, guessed.sample_info) == pytest.approx(expected, abs=0.01)
    rare = np.random.default_rng(0).random((2, 3, 20_000)) < 0.1
    assert repeated(rare.astype(np.uint8), SampleInfo(20_000, 2)) < 0.02
    assert repeated(np.zeros((2, 3, 4), np.uint8), SampleInfo(4, 2)) == 1


def test_best_agreement_is_that_of_two_networks_at_the_epoch_where_they_agree_most():
    rows = draw_rows(accuracies=(0.25, 0.8, 0.5), samples=20_000)
    # Right votes beyond chance, (0.8 - 0.25) / 0.75, of two networks at once.
    found = best_agreement(measure_likeness(rows))
    assert found == pytest.approx((0.55 / 0.75) ** 2, abs=0.02)
    alike = ArrayReader(np.zeros((2, 3, 4), np.uint8), SampleInfo(4, 2))
    assert best_agreement(measure_likeness(alike)) == 1


def test_likeness_of_labels_drawn_apart_is_none():
    likeness = measure_likeness(draw_rows(accuracies=(0.25,) * 3, samples=20_000))
    assert np.abs(likeness.across).max() < 0.01
    np.testing.assert_allclose(np.diag(likeness.within), 0.75, atol=0.01)
    np.testing.assert_allclose(likeness.shares, 0.25, atol=0.02)


def test_likeness_across_is_zero_for_one_network():
    assert not measure_likeness(draw_rows(networks=1)).across.any()


def test_reliability_is_the_factor_of_far_epochs_and_ignores_near_ones():
    factor = np.array([0.2, 0.5, 0.9, 0.9, 0.7, 0.6, 0.4, 0.3])
    across = np.outer(factor, factor) + 0.5 * np.eye(8)
    across += 0.2 * (np.abs(np.subtract.outer(range(8), range(8))) == 1)
    np.testing.assert_allclose(reliability(across), factor, atol=1e-3)


def test_reliability_of_networks_that_contradict_each_other_is_none():
    assert not reliability(-np.ones((5, 5))).any()


@pytest.mark.parametrize("epochs", [1, 2])
def test_reliability_of_one_or_two_epochs_is_their_own_likeness(epochs):
    across = np.diag([0.01, 0.64][:epochs])
    np.testing.assert_allclose(reliability(across), [0.1, 0.8][:epochs])


def test_weights_are_the_regression_with_a_ridge():
    within = np.array([[1.0, 0.5], [0.5, 1.0]])
    expected = np.linalg.solve(within + 0.3 * np.eye(2), [0.9, 0.6])
    found = regression_weights(within, np.array([0.9, 0.6]))
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-6)


def test_negative_weights_become_zero():
    weights = regression_weights(np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([1.0, 0.1]))
    np.testing.assert_array_equal(weights, [1, 0])


@pytest.mark.parametrize("nothing", [np.zeros((2, 2)), np.eye(2)])
def test_epochs_of_which_nothing_is_known_weigh_the_same(nothing):
    np.testing.assert_array_equal(regression_weights(nothing, np.zeros(2)), equal_weights(2))
    np.testing.assert_array_equal(regression_weights(0 * nothing, np.ones(2)), equal_weights(2))


def test_independent_epochs_are_counted():
    alone, alike = np.eye(4), np.ones((4, 4))
    weights = np.full(4, 0.25)
    assert independent_epochs(Likeness(alone, 0 * alone, alone), weights) == 4
    assert independent_epochs(Likeness(alike, 0 * alike, alone), weights) == 1
    assert independent_epochs(Likeness(alike + alone, alike, alone), weights) == 4
    assert independent_epochs(Likeness(alone, alone, alone), weights) == 1  # no errors at all
    opposed = alone - 0.2 * (alike - alone)
    assert independent_epochs(Likeness(opposed, 0 * alone, alone), weights) == 4  # not more


def test_one_network_is_max_agreement_with_a_note():
    rows = draw_rows(networks=1, accuracies=FADING)
    predicted = WeightedAgreement()(rows)
    np.testing.assert_array_equal(predicted.labels, MaxAgreement()(rows).labels)
    assert "single network" in predicted.note
    assert WeightedAgreement()(draw_rows()).note == ""
    with pytest.raises(ChoiceError, match=r"drawn: weighted-agreement .* there is one.*at least"):
        WeightedAgreement().fit(rows)


def test_one_epoch_is_the_majority():
    rows = draw_rows(accuracies=(0.6,))
    np.testing.assert_array_equal(WeightedAgreement()(rows).labels, MaxAgreement()(rows).labels)


@pytest.mark.parametrize("classes", [1, 3])
def test_all_samples_in_one_class_get_that_class(classes):
    labels = np.full((3, 4, 5), classes - 1, np.uint8)
    predicted = WeightedAgreement()(ArrayReader(labels, SampleInfo(5, classes)))
    np.testing.assert_array_equal(predicted.labels, classes - 1)
    np.testing.assert_array_equal(predicted.scores, 1)


def test_fewer_samples_than_classes_are_predicted():
    rows = draw_rows(samples=3, classes=4, accuracies=(1.0,) * 4)
    np.testing.assert_array_equal(WeightedAgreement()(rows).labels, [0, 1, 2])


def test_what_was_fitted_on_some_samples_predicts_others(tmp_path):
    first, second = draw_rows(accuracies=FADING), draw_rows(accuracies=FADING, seed=1)
    fitted = WeightedAgreement().fit(first)
    fitted.save(tmp_path / "weights.npz")
    loaded = WeightedAgreement.load(tmp_path / "weights.npz")
    np.testing.assert_array_equal(loaded.weights, fitted.weights)
    np.testing.assert_array_equal(loaded(second).labels, fitted(second).labels)
    np.testing.assert_array_equal(fitted(first).labels, WeightedAgreement()(first).labels)
    assert (loaded(second).labels != WeightedAgreement(equal_weights(9))(second).labels).any()


def test_scores_are_shares_of_all_weights():
    labels = np.array([[[0, 1], [0, 0]], [[0, 1], [0, 0]]])
    predicted = WeightedAgreement(np.array([3.0, 1.0]))(ArrayReader(labels, SampleInfo(2, 2)))
    np.testing.assert_array_equal(predicted.labels, [0, 1])
    np.testing.assert_array_equal(predicted.scores, [1, 0.75])


def test_other_epochs_than_fitted_are_refused():
    fitted = WeightedAgreement().fit(draw_rows())
    with pytest.raises(RecordMismatch, match=r"drawn: .* on 6 epochs; this record has 5.*same"):
        fitted(draw_rows(accuracies=(0.9,) * 5))


def test_what_cannot_be_saved_or_loaded_is_refused(tmp_path):
    path = tmp_path / "weights.npz"
    with pytest.raises(ChoiceError, match=r"not fitted\. Fit it first"):
        WeightedAgreement().save(path)
    with pytest.raises(ChoiceError, match=r"weights\.csv: .* \.npz file"):
        WeightedAgreement(equal_weights(2)).save(tmp_path / "weights.csv")
    with pytest.raises(SourceError, match=r"weights\.npz: not a readable"):
        WeightedAgreement.load(path)
    for junk in (b"", b"no archive", b"PK\x03\x04"):
        path.write_bytes(junk)
        with pytest.raises(SourceError, match="not a readable"):
            WeightedAgreement.load(path)
    np.savez(path, rule=np.array("dawid-skene"))
    with pytest.raises(SourceError, match="holds the rule dawid-skene, not weighted-agreement"):
        WeightedAgreement.load(path)
    np.savez(path, weights=np.ones(2))
    with pytest.raises(SourceError, match="but no fitted rule"):
        WeightedAgreement.load(path)
    np.savez(path, rule=np.array("weighted-agreement"))
    with pytest.raises(SourceError, match="needs weights"):
        WeightedAgreement.load(path)
    np.save(tmp_path / "plain.npy", np.zeros(2))
    with pytest.raises(SourceError, match="not a readable"):
        WeightedAgreement.load(tmp_path / "plain.npy")


def test_many_samples_are_counted_in_narrow_parts(monkeypatch):
    rows = draw_rows(accuracies=FADING, samples=100)
    whole = WeightedAgreement()(rows)
    monkeypatch.setattr(weighted_votes, "CELLS_AT_ONCE", 30 * rows.classes)
    parts = WeightedAgreement()(rows)
    np.testing.assert_array_equal(parts.labels, whole.labels)
