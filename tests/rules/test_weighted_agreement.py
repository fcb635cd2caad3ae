import numpy as np
import pytest
from overfitting import memorised
from voting import FADING, RISING, accuracy, draw_rows

import accord
from accord.errors import ChoiceError, RecordMismatch, SourceError
from accord.kernels import margins
from accord.rules import weighted_agreement
from accord.rules._analysis_context import Context
from accord.rules._epoch_weights import (
    disputed_samples,
    equal_weights,
    likeness_among,
    measure_likeness,
    power_weights,
    reliability,
)
from accord.rules.max_agreement import MaxAgreement
from accord.rules.weighted_agreement import WeightedAgreement
from accord.store import ArrayReader, SampleInfo


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
