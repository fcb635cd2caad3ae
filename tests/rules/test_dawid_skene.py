import numpy as np
import pytest
import slow_rules
from voting import accuracy, draw_rows

import accord
from accord.errors import ChoiceError, PredictionError, RecordMismatch, SourceError
from accord.rules import _annotators as annotators
from accord.rules import _em as expectation
from accord.rules import dawid_skene as module
from accord.rules._analysis_context import Context
from accord.rules._annotators import VoteCounts, small_parts
from accord.rules._em import (
    group_epochs,
    vote_shares,
)
from accord.rules._epoch_weights import (
    measure_likeness,
    predict_weighted,
    regression_weights,
    reliability,
)
from accord.rules.before_overfit import BeforeOverfit
from accord.rules.dawid_skene import DawidSkene
from accord.rules.max_agreement import MaxAgreement
from accord.store import ArrayReader, Block, SampleInfo
from accord.store import _record_reader as rows_module
from accord.testing import SmallRecord

# Half of the later votes are for the next class: more than for the right one.
TURNED = {"accuracies": (0.9,) * 3 + (0.45,) * 6, "turns": 0.95, "samples": 1000}


def test_votes_for_the_wrong_class_become_evidence_for_the_right_one():
    rows = draw_rows(**TURNED)
    assert accuracy(DawidSkene(), rows) > 0.98
    assert accuracy(MaxAgreement(), rows) < 0.95


def test_the_bundled_record_is_predicted_better_than_by_max_agreement():
    rows = accord.open("example://cifar10-sym40").reader
    assert accuracy(DawidSkene(), rows) > accuracy(MaxAgreement(), rows)


def test_a_network_that_guesses_does_no_harm():
    rows = draw_rows(networks=5, **TURNED)
    labels = rows.read_labels(range(5), range(9), slice(None)).copy()
    labels[0] = np.random.default_rng(1).integers(0, 4, labels[0].shape)
    assert accuracy(DawidSkene(), ArrayReader(labels, rows.sample_info)) > 0.97


def test_annotators_are_found_as_they_were_drawn():
    rows = draw_rows(accuracies=(0.9, 0.6, 0.6, 0.6), turns=1, samples=4000)
    found = DawidSkene().fit(rows).annotators
    np.testing.assert_allclose(found.prior, 0.25, atol=0.01)
    expected = 0.6 * np.eye(4) + 0.4 * np.roll(np.eye(4), 1, axis=0)
    np.testing.assert_allclose(found.confusion[:, 2], np.stack([expected] * 4), atol=0.06)
    np.testing.assert_allclose(found.confusion.sum(axis=2), 1)


def test_scores_are_posteriors_and_a_sure_sample_has_one():
    predicted = DawidSkene()(draw_rows(accuracies=(0.95,) * 6))
    assert predicted.scores.max() == 1
    assert predicted.note == ""


def test_one_network_is_max_agreement_with_a_note():
    rows = draw_rows(networks=1)
    predicted = DawidSkene()(rows)
    np.testing.assert_array_equal(predicted.labels, MaxAgreement()(rows).labels)
    np.testing.assert_array_equal(predicted.scores, MaxAgreement()(rows).scores)
    assert "single network" in predicted.note
    with pytest.raises(ChoiceError, match="dawid-skene compares networks"):
        DawidSkene().fit(rows)


def test_one_epoch_is_enough():
    rows = draw_rows(networks=5, accuracies=(0.8,))
    assert accuracy(DawidSkene(), rows) >= accuracy(MaxAgreement(), rows) - 0.02


@pytest.mark.parametrize("classes", [1, 3])
def test_all_samples_in_one_class_get_that_class(classes):
    labels = np.full((3, 4, 5), classes - 1, np.uint8)
    predicted = DawidSkene()(ArrayReader(labels, SampleInfo(5, classes)))
    np.testing.assert_array_equal(predicted.labels, classes - 1)
    np.testing.assert_array_equal(predicted.scores, 1)


def test_a_class_that_nobody_predicts_gets_no_sample():
    drawn = draw_rows(accuracies=(0.8,) * 6)
    labels = drawn.read_labels(range(4), range(6), slice(None))
    rows = ArrayReader(labels, SampleInfo(600, 7, truth=drawn.truth()))
    assert DawidSkene()(rows).labels.max() == 3
    assert accuracy(DawidSkene(), rows) > 0.97


def test_fewer_samples_than_classes_are_predicted():
    rows = draw_rows(samples=3, classes=5, accuracies=(1.0,) * 4)
    np.testing.assert_array_equal(DawidSkene()(rows).labels, [0, 1, 2])


def test_a_hundred_classes_share_matrices_between_epochs():
    rows = draw_rows(classes=100, samples=1000, accuracies=(0.6,) * 12, turns=0.8)
    fitted = DawidSkene().fit(rows)
    assert fitted.annotators.confusion.shape == (4, 4, 100, 100)
    assert accuracy(fitted, rows) > 0.97


def test_more_matrices_than_memory_holds_are_refused_with_another_rule():
    with pytest.raises(PredictionError, match=r"5 networks × 4 groups.*20000 × 20000.*weighted-"):
        VoteCounts.empty(networks=5, classes=20_000, groups=np.arange(4))
    with pytest.raises(PredictionError, match=r"2 networks × 1 group of.* 6 GiB; the most is 4\."):
        VoteCounts.empty(networks=2, classes=20_000, groups=np.arange(1))


@pytest.mark.parametrize("seed", range(5))
def test_epochs_that_share_matrices_follow_the_definition_too(seed):
    rows = draw_rows(networks=3, accuracies=(0.5,) * 13, samples=40, turns=0.5, seed=seed)
    assert group_epochs(13, samples=40, classes=4).tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [
        *(3, 3, 3, 4)
    ]
    labels = rows.read_labels(range(3), range(13), slice(None))
    expected = slow_rules.dawid_skene(SmallRecord(labels, np.zeros(0), rows.truth(), 4))
    np.testing.assert_array_equal(DawidSkene()(rows).labels, expected)


def test_epochs_are_weighed_anew_by_how_often_they_are_right():
    rows = draw_rows(**TURNED)
    likeness = measure_likeness(rows)
    begun = regression_weights(likeness.within, reliability(likeness.across))
    arrived = DawidSkene().fit(rows).annotators.weights
    assert (arrived / arrived.sum())[:3].sum() > begun[:3].sum() + 0.05


def collapsing(monkeypatch):
    # With networks that guess and votes that hardly count, the largest class wins all.
    monkeypatch.setattr(expectation, "vote_shares", lambda weights, *_, boost: weights / 1000)
    return draw_rows(accuracies=(0.5,) * 5, samples=250)


def test_a_collapse_is_named_and_the_vote_it_began_with_stands_in(monkeypatch):
    rows = collapsing(monkeypatch)
    likeness = measure_likeness(rows)
    weights = regression_weights(likeness.within, reliability(likeness.across))
    predicted, weighted = DawidSkene()(rows), predict_weighted(rows, weights)
    np.testing.assert_array_equal(predicted.labels, weighted.labels)
    np.testing.assert_array_equal(predicted.scores, weighted.scores)
    assert "collapsed" in predicted.note
    assert "most samples of class" in predicted.note
    with pytest.raises(PredictionError, match=r"drawn: .*collapsed within .* Use weighted-agr"):
        DawidSkene().fit(rows)


def test_where_classes_change_places_votes_count_for_more(monkeypatch):
    rows, boosts = collapsing(monkeypatch), []

    def boosted(weights, likeness, networks, *, boost):
        boosts.append(boost)
        return weights / 1000 if boost < 4 else vote_shares(weights, likeness, networks)

    monkeypatch.setattr(expectation, "vote_shares", boosted)
    predicted = DawidSkene()(rows)
    assert sorted(set(boosts)) == [1, 2, 4]
    assert predicted.note == ""
    assert (predicted.labels == rows.truth()).mean() > 0.9


def test_a_search_that_does_not_converge_has_a_note(monkeypatch):
    monkeypatch.setattr(expectation, "MAX_ROUNDS", 1)
    rows = draw_rows(accuracies=(0.5,) * 6)
    assert "did not converge" in DawidSkene()(rows).note
    with pytest.raises(PredictionError, match=r"drawn: .*not converge within 1 .*Use weighted-"):
        DawidSkene().fit(rows)


def test_matrices_of_a_network_lean_on_all_networks():
    votes = np.array([[[[6.0, 0], [0, 2]]], [[[0, 2], [6, 0]]]])
    alone, shared = (VoteCounts(votes.copy(), np.zeros(1), np.array([6.0, 2.0])) for _ in range(2))
    np.testing.assert_allclose(alone.prior(), [0.75, 0.25])
    np.testing.assert_allclose(alone.confusion(shared=0)[0, 0], np.eye(2), atol=1e-9)
    matrix = shared.confusion(shared=2)[0, 0]
    np.testing.assert_allclose(matrix, [[7 / 8, 1 / 4], [1 / 8, 3 / 4]])


def test_reliability_is_what_is_right_beyond_chance():
    counts = VoteCounts(np.zeros((2, 2, 2, 2)), np.array([8.0, 3.0]), np.array([2.0, 2.0]))
    shares = np.array([[0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(counts.reliability(shares), [0.5, 0])


def test_what_was_fitted_on_some_samples_predicts_others(tmp_path):
    first, second = draw_rows(**TURNED), draw_rows(**TURNED, seed=1)
    fitted = DawidSkene().fit(first)
    fitted.save(tmp_path / "annotators.npz")
    loaded = DawidSkene.load(tmp_path / "annotators.npz")
    for name in ("prior", "confusion", "groups", "weights"):
        found, expected = (getattr(rule.annotators, name) for rule in (loaded, fitted))
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(fitted(first).labels, DawidSkene()(first).labels)
    np.testing.assert_array_equal(loaded(second).labels, fitted(second).labels)
    assert accuracy(loaded, second) > 0.98


def test_other_voters_than_fitted_are_refused(tmp_path):
    fitted = DawidSkene().fit(draw_rows())
    for what, rows in {
        "4 networks; this record has 5": draw_rows(networks=5),
        "6 epochs; this record has 7": draw_rows(accuracies=(0.9,) * 7),
        "4 classes; this record has 5": draw_rows(classes=5),
    }.items():
        with pytest.raises(RecordMismatch, match=f"drawn: dawid-skene was fitted on {what}"):
            fitted(rows)
    with pytest.raises(ChoiceError, match=r"not fitted\. Fit it first"):
        DawidSkene().save(tmp_path / "annotators.npz")
    with pytest.raises(SourceError, match="not a readable"):
        DawidSkene.load(tmp_path / "annotators.npz")


def test_a_record_beyond_the_budget_is_read_in_blocks_in_each_round(monkeypatch):
    rows, same = (draw_rows(accuracies=(0.5,) * 5, samples=100) for _ in range(2))
    whole, read = DawidSkene()(same), []
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows_module, "LEAST_BLOCK", 40)
    monkeypatch.setattr(annotators, "CELLS_AT_ONCE", 100)
    plain = rows.read
    monkeypatch.setattr(rows, "read", lambda *args: read.append(args[3]) or plain(*args))
    again = DawidSkene()(Context(rows, memory=0))
    assert len(read) > 9
    np.testing.assert_array_equal(again.labels, whole.labels)
    np.testing.assert_array_equal(again.scores, whole.scores)


def test_a_context_is_fitted_once(monkeypatch):
    context, fits = Context(draw_rows(networks=4, accuracies=(0.5,) * 5, classes=4)), []

    def start_counted(*args):
        fits.append(1)
        return predict_weighted(*args)

    monkeypatch.setattr(module, "predict_weighted", start_counted)
    fitted = DawidSkene().fit(context)
    for predicted in (DawidSkene()(context), BeforeOverfit()(context), fitted(context)):
        np.testing.assert_array_equal(
            predicted.scores, DawidSkene(fitted.annotators)(context).scores
        )
    assert fits == [1]


def test_posteriors_that_are_too_large_to_hold_are_counted_at_once(monkeypatch):
    rows = draw_rows(accuracies=(0.5,) * 5, samples=100)
    held = DawidSkene().fit(Context(rows))
    monkeypatch.setattr(expectation, "HELD_CELLS", 1)
    fused = DawidSkene().fit(Context(rows))
    for name, values in held.parameters().items():
        np.testing.assert_array_equal(fused.parameters()[name], values)


def test_annotators_that_are_too_large_to_keep_are_fitted_again(monkeypatch):
    rows = Context(draw_rows(accuracies=(0.5,) * 5, samples=100))
    kept = DawidSkene().fit(rows)
    monkeypatch.setattr(module, "KEPT_BYTES", 1)
    rows = Context(draw_rows(accuracies=(0.5,) * 5, samples=100))
    fitted = DawidSkene().fit(rows)
    assert rows.once(module.fit_dawid_skene).annotators is None
    np.testing.assert_array_equal(fitted.annotators.confusion, kept.annotators.confusion)


def test_parts_are_cut_to_a_small_table(monkeypatch):
    monkeypatch.setattr(annotators, "CELLS_AT_ONCE", 10)
    block = Block(5, 12, np.arange(7).reshape(1, 1, 7))
    parts = list(small_parts([block], classes=7))
    assert [part.where for part in parts] == [*(slice(at, at + 1) for at in range(5, 12))]
    assert [part.rows[0][0].tolist() for part in parts] == [[label] for label in range(7)]
