"""Epochs after the networks' agreement fell do not count; without a fall, all do."""

import numpy as np
import pytest
from overfitting import draw_run, memorised, right_chances

from accord.errors import ChoiceError
from accord.rules import find_rule, load_rule
from accord.rules._overfitting import epochs_before_overfitting
from accord.rules._recommend import recommend
from accord.rules.before_overfit import BeforeOverfit
from accord.rules.dawid_skene import DawidSkene
from accord.store import ArrayReader, SampleInfo

RULE = BeforeOverfit()


def accuracy(rule, rows):
    return float((find_rule(rule)(rows).labels == rows.truth()).mean())


def test_the_epochs_after_the_fall_do_not_count():
    rows = memorised()
    before = epochs_before_overfitting(rows)
    assert 5 <= before <= 20
    predicted = RULE(rows)
    expected = DawidSkene()(rows.select(epochs=range(before)))
    np.testing.assert_array_equal(predicted.labels, expected.labels)
    np.testing.assert_array_equal(predicted.scores, expected.scores)
    assert predicted.note.startswith(f"from the first {before} of 40 epochs")


def test_it_is_right_where_a_vote_over_all_epochs_is_not():
    rows = memorised(classes=2)
    assert accuracy("before-overfit", rows) > accuracy("max-agreement", rows) + 0.05


def test_it_is_recommended_where_agreement_fell_early():
    rows = memorised()
    assert recommend(rows).rule == "before-overfit"
    assert recommend(rows.select(epochs=range(6))).rule != "before-overfit"


def test_what_is_fitted_predicts_other_samples_from_the_same_epochs(tmp_path):
    rows = memorised()
    some, others = (rows.select(samples=part) for part in (slice(0, 400), slice(400, None)))
    fitted, before = RULE.fit(some), epochs_before_overfitting(some)
    assert np.count_nonzero(fitted.annotators.weights[before:]) == 0
    fitted.save(tmp_path / "rule.npz")
    predicted = load_rule(tmp_path / "rule.npz")(others)
    expected = DawidSkene().fit(some.select(epochs=range(before)))(
        others.select(epochs=range(before))
    )
    np.testing.assert_array_equal(predicted.labels, expected.labels)
    np.testing.assert_array_equal(predicted.scores, expected.scores)
    assert predicted.note == ""


def test_what_is_fitted_counts_all_epochs_where_agreement_has_not_fallen():
    rows = draw_run(right_chances())
    fitted, expected = RULE.fit(rows), DawidSkene().fit(rows)
    np.testing.assert_array_equal(fitted.annotators.weights, expected.annotators.weights)
    assert fitted.name == "before-overfit"
    with pytest.raises(ChoiceError, match="before-overfit compares networks"):
        RULE.fit(rows.select(networks=[0]))


def test_without_a_fall_all_epochs_count():
    rows = draw_run(right_chances())
    predicted, expected = RULE(rows), DawidSkene()(rows)
    np.testing.assert_array_equal(predicted.labels, expected.labels)
    assert predicted.note == expected.note


def test_one_network_has_nobody_to_agree_with():
    rows = memorised().select(networks=[2])
    assert "single network" in RULE(rows).note


def test_too_many_classes_leave_it_out_as_they_do_dawid_skene():
    rows = ArrayReader(np.zeros((2, 6, 3), np.uint16), SampleInfo(3, 60_000))
    assert RULE.left_out(rows) == DawidSkene().left_out(rows) != ""


def test_untrained_networks_that_predict_one_class_have_not_agreed_before_overfitting():
    """At first all predict one class, then they learn: full agreement, which means nothing."""
    generator = np.random.default_rng(0)
    networks, epochs, samples, classes = 5, 24, 500, 5
    truth = generator.integers(classes, size=samples)
    chances = np.concatenate([np.zeros(6), np.linspace(0.3, 0.6, epochs - 6)])[:, np.newaxis]
    shape = networks, epochs, samples
    labels = np.where(
        generator.random(shape) < chances, truth, generator.integers(classes, size=shape)
    )
    labels[:, :6] = np.where(generator.random((networks, 6, samples)) < 0.98, 2, 0)
    rows = ArrayReader(labels, SampleInfo(samples, classes, truth=truth))
    assert epochs_before_overfitting(rows) is None
    chosen = recommend(rows).rule
    assert chosen != "before-overfit"
    assert accuracy(chosen, rows) >= accuracy("max-agreement", rows) > 0.9
