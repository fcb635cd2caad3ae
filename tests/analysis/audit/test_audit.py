import dataclasses
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given as drawn
from hypothesis import strategies as st
from memorised import memorised_rows

from accord.analysis._audit import _evidence as evidence_module
from accord.analysis._audit import _posterior as posterior_module
from accord.analysis._audit._audit import (
    audit,
    audit_probabilities,
    epoch_weights,
    suspect_unpredicted,
)
from accord.analysis._audit._evidence import (
    STEPS,
    Contradiction,
    beyond_chance,
    collect_evidence,
    discriminant_weights,
    integer_weights,
    measure_contradiction,
    split_votes,
    weigh_votes,
)
from accord.analysis._audit._notes import audit_notes
from accord.analysis._audit._posterior import class_posteriors
from accord.analysis._audit._result import score_ranking
from accord.analysis._trust._noisy_accuracy import corrected_accuracy
from accord.errors import ChoiceError, PredictionError, RecordError
from accord.kernels import count_votes, equally_spaced
from accord.store import ArrayReader, SampleInfo
from accord.store import _record_reader as rows


def with_facts(record, **sample_info):
    labels = record.read_labels(range(record.networks), range(record.epochs), slice(None))
    return ArrayReader(
        labels, dataclasses.replace(record.sample_info, **sample_info), name="memorised"
    )


def labels_of(record):
    return record.read_labels(range(record.networks), range(record.epochs), slice(None))


@st.composite
def small_records(draw):
    networks, epochs, samples, classes = (
        draw(st.integers(low, high)) for low, high in ((2, 4), (1, 4), (2, 9), (2, 6))
    )
    seed = draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, (networks, epochs, samples)).astype(np.uint8)
    return labels, generator.integers(0, classes, samples), classes


def contradiction_by_definition(labels, given, classes):
    """Everything counted pair by pair and sample by sample, for one epoch."""
    networks, samples = labels.shape
    pairs = list(combinations(range(networks), 2))
    both = same = apart_both = apart_same = 0.0
    for one, other in pairs:
        against = [
            (labels[one, s], labels[other, s])
            for s in range(samples)
            if labels[one, s] != given[s] and labels[other, s] != given[s]
        ]
        both += len(against)
        same += sum(a == b for a, b in against)
        for label in given:
            posteriors = [contradicting(labels[n], given, label, classes) for n in (one, other)]
            apart_both += sum(posteriors[0].values()) * sum(posteriors[1].values())
            apart_same += sum(posteriors[0][c] * posteriors[1][c] for c in range(classes))
    total = len(pairs) * samples
    share = sum(labels[n, s] != given[s] for n in range(networks) for s in range(samples))
    return (
        share / (networks * samples),
        both / total,
        same / total,
        apart_same / total,
        apart_same / apart_both if apart_both else 0.0,
    )


def contradicting(votes, given, label, classes):
    """The chance that a network contradicts a label with each class, if samples are all alike."""
    alike = [vote for vote, g in zip(votes, given, strict=True) if g == label]
    rate = sum(vote != label for vote in alike) / len(alike)
    predicted = [vote for vote, g in zip(votes, given, strict=True) if vote != g and vote != label]
    return {c: rate * predicted.count(c) / max(1, len(predicted)) for c in range(classes)}


@drawn(small_records())
def test_contradiction_equals_its_definition(record):
    labels, given, classes = record
    found = measure_contradiction(ArrayReader(labels, SampleInfo(len(given), classes)), given)
    worths = []
    for epoch in range(labels.shape[1]):
        share, both, same, apart, alike = contradiction_by_definition(
            labels[:, epoch], given, classes
        )
        assert found.share[epoch] == pytest.approx(share)
        assert found.both[epoch] == pytest.approx(both)
        assert found.same[epoch] == pytest.approx(same)
        assert found.alike[epoch] == pytest.approx(alike)
        beyond = beyond_chance(
            *(np.array([value]) for value in (same, apart)),
            alike=np.array([alike]),
            share=np.array([share]),
        )
        assert found.beyond[epoch] == pytest.approx(beyond[0], abs=1e-9)
        assert found.chance[epoch] == pytest.approx(same - beyond[0], abs=1e-9)
        worths.append(found.beyond[epoch] ** 2 / both if both else 0)
    best = max(worths) or 1
    weights = [
        worth * (worth / best) ** alike for worth, alike in zip(worths, found.alike, strict=True)
    ]
    np.testing.assert_allclose(found.weights, weights)


@drawn(small_records())
def test_classes_that_do_not_occur_change_nothing(record):
    labels, given, classes = record
    spread = np.arange(classes) * 7 + 3  # more classes than samples
    wide = ArrayReader(spread[labels], SampleInfo(len(given), 7 * classes + 3))
    wider = ArrayReader(spread[labels], SampleInfo(len(given), 1000))
    found, more = (measure_contradiction(rows, spread[given]) for rows in (wide, wider))
    expected = measure_contradiction(ArrayReader(labels, SampleInfo(len(given), classes)), given)
    for field in dataclasses.fields(expected):
        for one in (found, more):
            np.testing.assert_allclose(
                getattr(one, field.name), getattr(expected, field.name), atol=1e-12
            )


def test_classes_that_do_not_occur_are_not_counted():
    record = memorised_rows(samples=50)
    wide = ArrayReader(labels_of(record), SampleInfo(50, 50_000))
    tracemalloc.start()
    measure_contradiction(wide, record.sample_info.given)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        most < 4 * 8 * 50_000
    )  # tables (network, epoch, class) of all would be 48 times that each


def test_informative_epochs_lie_between_random_and_memorised_votes():
    record = memorised_rows()
    found = measure_contradiction(record, record.sample_info.given)
    assert found.weights.argmax() in range(2, 6)
    assert integer_weights(found.weights).max() == STEPS
    assert integer_weights(found.weights)[2:6].min() > STEPS / 2
    assert integer_weights(found.weights)[:2].tolist() == [0, 0]
    assert integer_weights(found.weights)[-1] == 0
    assert (np.diff(found.weights[6:11]) < 0).all()


def test_only_some_samples_of_a_large_record_are_looked_at(monkeypatch):
    record = memorised_rows(samples=1200)
    monkeypatch.setattr(evidence_module, "MOST_SAMPLES", 400)
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1)  # several blocks, whose starts no step divides
    monkeypatch.setattr(rows, "LEAST_BLOCK", 70)
    some = measure_contradiction(record, record.sample_info.given)
    labels, given = labels_of(record)[:, :, ::3], record.sample_info.given[::3]
    monkeypatch.undo()
    expected = measure_contradiction(ArrayReader(labels, SampleInfo(400, 5)), given)
    for field in dataclasses.fields(some):
        np.testing.assert_array_equal(getattr(some, field.name), getattr(expected, field.name))


def discriminant_by_definition(labels, candidates, posteriors):
    """Fisher's discriminant, sample by sample; weights of at least 0 by scipy."""
    _, epochs, samples = labels.shape
    lead, means = np.zeros((samples, epochs)), np.zeros((2, epochs))
    for s in range(samples):
        best = candidates[s, 1 + np.argmax(posteriors[s, 1:])]
        for votes in labels[:, :, s]:
            lead[s] += 1.0 * (votes == candidates[s, 0]) - (votes == best)
    lead /= len(labels)
    chances = np.stack([posteriors[:, 0], 1 - posteriors[:, 0]])
    for kind, chance in enumerate(chances):
        means[kind] = np.average(lead, axis=0, weights=chance)
    scatter = np.zeros((epochs, epochs))
    for s, kind in np.ndindex(samples, 2):
        apart = lead[s] - means[kind]
        scatter += chances[kind, s] * np.outer(apart, apart) / samples
    scatter += 0.3 * np.trace(scatter) / epochs * np.eye(epochs)
    root = np.linalg.cholesky(scatter).T  # |root w - right|² = w'scatter w - 2 w'(difference) + …
    return scipy.optimize.nnls(root, np.linalg.solve(root.T, means[0] - means[1]))[0]


def test_discriminant_weights_equal_their_definition():
    record = memorised_rows()
    given = record.sample_info.given
    evidence = collect_evidence(record, given, measure_contradiction(record, given).weights)
    posteriors = class_posteriors(evidence)
    found = discriminant_weights(record, evidence.candidates, posteriors)
    expected = discriminant_by_definition(labels_of(record), evidence.candidates, posteriors)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert found[2:6].min() > 0
    assert found[-2:].tolist() == [0, 0]


def test_discriminants_replace_contradiction_the_more_the_more_classes_there_are():
    record = memorised_rows()
    given = record.sample_info.given
    contradiction = measure_contradiction(record, given)
    weights, alike = contradiction.weights, contradiction.alike
    evidence = collect_evidence(record, given, weights)
    found = np.zeros(12)
    some = np.flatnonzero(integer_weights(weights))
    found[some] = discriminant_weights(
        record.select(epochs=some.tolist()), evidence.candidates, class_posteriors(evidence)
    )
    new = (1 - alike) ** 20
    expected = new * found / found.sum() + (1 - new) * weights / weights.sum()
    both = epoch_weights(record, given, contradiction)
    np.testing.assert_allclose(both / both.sum(), expected / expected.sum(), atol=1e-6)
    assert both.sum() == pytest.approx(weights.sum())
    two = memorised_rows(classes=2)
    alone = measure_contradiction(two, two.sample_info.given)
    np.testing.assert_array_equal(epoch_weights(two, two.sample_info.given, alone), alone.weights)


def test_epochs_that_separate_nothing_have_no_discriminant():
    record = memorised_rows(samples=50)
    candidates = np.stack([record.sample_info.given, record.sample_info.given ^ 1], axis=1)
    certain = np.tile([1.0, 0.0], (50, 1))
    assert discriminant_weights(record, candidates, certain).tolist() == [0] * 12


def test_some_of_many_informative_epochs_are_kept(monkeypatch):
    record = memorised_rows(epochs=24)
    found = measure_contradiction(record, record.sample_info.given)
    all_steps = integer_weights(found.weights)
    useful = np.flatnonzero(all_steps)
    monkeypatch.setattr(evidence_module, "MOST_EPOCHS", 5)
    kept = np.flatnonzero(integer_weights(found.weights))
    assert kept.tolist() == useful[equally_spaced(len(useful), 5)].tolist()
    assert integer_weights(found.weights)[kept].tolist() == all_steps[kept].tolist()
    assert audit(record).score.auroc > 0.95


@drawn(st.integers(1, 6), st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_alternatives_are_the_classes_with_the_most_votes(samples, classes, seed):
    generator = np.random.default_rng(seed)
    table, given = (
        generator.integers(0, 4, (samples, classes)),
        generator.integers(0, classes, samples),
    )
    most = int(generator.integers(1, classes))
    own, alternatives, votes = split_votes(table, given, most)
    for s in range(samples):
        others = [c for c in range(classes) if c != given[s]]
        best = sorted(others, key=lambda c: (-table[s, c], c))[:most]
        assert alternatives[s].tolist() == sorted(best)
        assert votes[s].tolist() == [table[s, c] for c in sorted(best)]
        assert own[s] == table[s, given[s]]


def test_votes_too_many_for_small_keys_are_split_all_the_same():
    table = np.array([[2**30, 0, 2**30 + 1, 5]])
    own, alternatives, votes = split_votes(table, np.array([3]), 2)
    assert (own.tolist(), alternatives.tolist(), votes.tolist()) == (
        [5],
        [[0, 2]],
        [[2**30, 2**30 + 1]],
    )


def test_epochs_that_weigh_nothing_are_not_read(monkeypatch):
    record, read = memorised_rows(), []
    plain = record.read
    monkeypatch.setattr(
        record, "read", lambda *wanted: read.append(list(wanted[2])) or plain(*wanted)
    )
    steps = np.array([0, 2, 0, 1] + [0] * 8)
    ((where, table),) = weigh_votes(record, steps)
    assert (where, read) == (slice(0, 600), [[1, 3]])
    expected = 2 * count_votes(labels_of(record)[:, 1], classes=5)
    np.testing.assert_array_equal(table, expected + count_votes(labels_of(record)[:, 3], classes=5))
    ((_, table),) = weigh_votes(record, 0 * steps)
    assert not table.any()


def test_wrong_labels_are_found_and_corrected():
    record = memorised_rows()
    found, wrong = audit(record), record.sample_info.given != record.truth()
    assert found.score.auroc > 0.99
    assert found.score.precision > 0.95
    assert found.score.recall > 0.95
    assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.02)
    assert (found.proposed == record.truth()).mean() > 0.97
    assert wrong[found.ranking[:100]].all()
    assert len(found) == 600


def test_an_audit_is_one_story():
    record = memorised_rows()
    found, given = audit(record), record.sample_info.given
    np.testing.assert_array_equal(found.given, given)
    np.testing.assert_array_equal(found.flagged, found.proposed != given)
    np.testing.assert_array_equal(found.flagged, found.suspicion > 0.5)
    assert (np.diff(found.suspicion[found.ranking]) <= 0).all()
    assert sorted(found.ranking) == list(range(600))
    assert found.confusion.sum() == 600
    assert found.confusion[3, 1] == ((given == 3) & (found.proposed == 1)).sum()
    assert found.noise_rates[2] == found.flagged[given == 2].mean()
    assert found.weights.sum() == pytest.approx(1)
    kept = ~found.flagged
    np.testing.assert_array_equal(found.agreement_proposed[kept], found.agreement_given[kept])
    assert (found.agreement_given + found.agreement_proposed)[~kept].max() <= 1
    assert (found.agreement_proposed > found.agreement_given)[~kept].mean() > 0.6


def test_posteriors_share_the_suspicion_among_the_alternatives():
    record = memorised_rows(classes=7)
    found = audit(record)
    table = found.posteriors()
    assert table.shape == (600, 7)
    for s in range(600):
        expected = np.zeros(7)
        for label, share in zip(found.candidates[s, 1:], found.shares[s], strict=True):
            expected[label] = found.suspicion[s] * share
        expected[found.given[s]] = 1 - found.suspicion[s]
        np.testing.assert_array_equal(table[s], expected)
    np.testing.assert_allclose(table.sum(axis=1), 1)
    np.testing.assert_array_equal(
        table.argmax(axis=1)[found.flagged], found.proposed[found.flagged]
    )
    np.testing.assert_array_equal(found.posteriors(slice(100, 200)), table[100:200])


def test_log_odds_rank_labels_whose_suspicion_rounds_to_one():
    found = audit(memorised_rows())
    sharp = dataclasses.replace(found, log_odds=40 * found.log_odds)
    assert (sharp.suspicion == 1).sum() > 50
    np.testing.assert_array_equal(sharp.ranking, found.ranking)
    odds = np.where(found.log_odds > 0, 0.6 * found.log_odds, found.log_odds)
    np.testing.assert_allclose(np.log(found.suspicion / (1 - found.suspicion)), odds)


@pytest.mark.parametrize("most", [12, 60])
def test_short_lists_hold_few_samples_of_each_pair_of_classes(most):
    found, listed, pairs = audit(memorised_rows(directed=True)), [], {}
    kinds = {(found.given[s], found.proposed[s]) for s in np.flatnonzero(found.flagged)}
    largest = max(3, -(-most // len(kinds)))
    for s in found.ranking:
        pair = found.given[s], found.proposed[s]
        if found.flagged[s] and pairs.get(pair, 0) < largest and len(listed) < most:
            pairs[pair] = pairs.get(pair, 0) + 1
            listed.append(s)
    assert found.most_suspicious(most).tolist() == listed
    assert max(pairs.values()) == largest


def test_equal_suspicion_goes_to_the_first_sample():
    record = memorised_rows(samples=40)
    labels, given = (np.tile(values, 2) for values in (labels_of(record), record.sample_info.given))
    found = audit(ArrayReader(labels, SampleInfo(80, 5, given=given)))
    ranked = found.ranking.tolist()
    assert all(ranked.index(s) < ranked.index(s + 40) for s in range(40))


def test_the_truth_is_not_used():
    record = memorised_rows()
    one, other = audit(record), audit(with_facts(record, truth=None))
    np.testing.assert_array_equal(one.suspicion, other.suspicion)
    assert other.score is None
    assert (
        audit(with_facts(record, truth=record.sample_info.given)).score is None
    )  # nothing is wrong
    assert (
        audit(with_facts(record, truth=(record.sample_info.given + 1) % 5)).score is None
    )  # all is


def test_the_order_of_networks_and_epochs_does_not_matter():
    record = memorised_rows()
    found = audit(record)
    turned = audit(record.select(networks=[2, 0, 3, 1], epochs=range(11, -1, -1)))
    np.testing.assert_allclose(found.suspicion, turned.suspicion, rtol=1e-12)
    np.testing.assert_allclose(found.weights, turned.weights[::-1], rtol=1e-12)


def test_reading_in_small_parts_changes_nothing(monkeypatch):
    record = memorised_rows()
    late = np.arange(600) >= 20  # from then on, nobody predicts class 4
    labels = np.where(late & (labels_of(record) == 4), 0, labels_of(record))
    record = ArrayReader(labels, record.sample_info).select()
    whole, table = audit(record), audit_probabilities(record)
    assert whole.unpredicted == ()
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows, "LEAST_BLOCK", 70)
    monkeypatch.setattr(evidence_module, "CELLS_AT_ONCE", 100)
    parts = audit(record)
    np.testing.assert_array_equal(whole.suspicion, parts.suspicion)
    np.testing.assert_array_equal(whole.proposed, parts.proposed)
    np.testing.assert_array_equal(table, audit_probabilities(record))


def test_each_row_is_read_once_if_all_fit_in_memory(monkeypatch):
    record, reads = memorised_rows().select(), []

    def read(array, networks, epochs, samples):
        reads.extend((network, epoch) for network in networks for epoch in epochs)
        return type(record).read(record, array, networks, epochs, samples)

    monkeypatch.setattr(record, "read", read)
    expected = audit(memorised_rows())
    np.testing.assert_array_equal(audit(record).suspicion, expected.suspicion)
    assert sorted(reads) == [(network, epoch) for network in range(4) for epoch in range(12)]


def test_right_labels_that_are_learnt_at_once_are_left_alone():
    record = memorised_rows(rate=0.0)
    found = audit(record)
    assert found.noise_rate < 0.01
    assert found.score is None


def test_random_votes_flag_no_label():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 5, (4, 12, 600)).astype(np.uint8)
    found = audit(ArrayReader(labels, SampleInfo(600, 5, given=generator.integers(0, 5, 600))))
    assert found.noise_rate < 0.01
    assert found.suspicion.max() < 0.5


def test_votes_that_never_agree_beyond_chance_leave_every_label_alone():
    given = np.array([0, 1] * 20)
    labels = np.stack([np.full((3, 40), 2), np.full((3, 40), 3)])  # each its own class
    found = audit(ArrayReader(labels, SampleInfo(40, 4, given=given)))
    assert not found.flagged.any()
    assert found.weights.tolist() == [1 / 3] * 3
    assert found.unpredicted == (0, 1)
    np.testing.assert_array_equal(
        audit_probabilities(ArrayReader(labels, SampleInfo(40, 4, given=given))),
        np.tile([0, 0, 0.5, 0.5], (40, 1)),
    )


def test_evidence_is_each_candidates_share_of_the_weighted_votes():
    record = memorised_rows(classes=7)
    given = record.sample_info.given.astype(np.uint8)
    weights = epoch_weights(record, given, measure_contradiction(record, given))
    evidence, shares = collect_evidence(record, given, weights), audit_probabilities(record)
    assert evidence.candidates.shape == (600, 5)
    np.testing.assert_array_equal(evidence.candidates[:, 0], given)
    found = np.take_along_axis(shares, evidence.candidates, axis=1)
    np.testing.assert_allclose(evidence.shares, found)
    left_out = shares.copy()
    np.put_along_axis(left_out, evidence.candidates, 0, axis=1)
    assert (left_out.max(axis=1) <= evidence.shares[:, 1:].min(axis=1)).all()
    total = weights.sum()
    assert evidence.vote_weight == pytest.approx(total / (total + 0.1))
    assert evidence.votes == 4 * np.count_nonzero(integer_weights(weights))


def test_suspicion_is_the_chance_of_all_other_classes():
    record = memorised_rows()
    given, found = record.sample_info.given, audit(record)
    weights = epoch_weights(record, given, measure_contradiction(record, given))
    evidence = collect_evidence(record, given, weights)
    posteriors = class_posteriors(evidence)
    odds = (1 - posteriors[:, 0]) / posteriors[:, 0]
    odds = np.where(odds > 1, odds**0.6, odds)
    np.testing.assert_allclose(found.suspicion, odds / (1 + odds), atol=1e-9)
    best = evidence.candidates[np.arange(600), 1 + posteriors[:, 1:].argmax(axis=1)]
    np.testing.assert_array_equal(found.proposed, np.where(found.flagged, best, given))
    np.testing.assert_array_equal(found.agreement_given, evidence.shares[:, 0])
    kept = evidence.shares[evidence.candidates == found.proposed[:, np.newaxis]]
    np.testing.assert_array_equal(found.agreement_proposed, kept)


def wavering_rows(seed=0):
    """Votes as on few samples of which two in five are called the next class: networks do it too.

    A network calls four in ten samples the next class at random, and ever more by their label.
    """
    generator = np.random.default_rng(seed)
    networks, epochs, samples, classes = 5, 20, 3000, 6
    truth = generator.integers(0, classes, samples)
    given = (truth + (generator.random(samples) < 0.4)) % classes
    taken_in = generator.random(samples) * 0.8  # how easily, the same for all networks
    wavering = generator.random((networks, epochs, samples)) < taken_in
    votes = (truth + wavering) % classes
    memorised = generator.random(votes.shape) < np.linspace(0, 0.8, epochs)[:, np.newaxis]
    votes = np.where(memorised, given, votes)
    sample_info = SampleInfo(samples, classes, "train", truth, given)
    return ArrayReader(votes.astype(np.uint8), sample_info, name="wavering")


def test_labels_of_which_many_go_one_way_are_counted_though_networks_go_that_way_too():
    record = wavering_rows()
    found, wrong = audit(record), record.sample_info.given != record.truth()
    assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.05)
    assert found.score.auroc > 0.97
    actual = np.zeros((6, 6), int)
    np.add.at(actual, (record.sample_info.given, record.truth()), 1)
    assert np.abs(found.confusion - actual).sum() / 2 < 0.08 * len(found)


@pytest.mark.parametrize("every", [2, 3])
def test_every_second_epoch_suffices(every):
    for record in (memorised_rows(epochs=24), wavering_rows()):
        found = audit(record.select(epochs=range(0, record.epochs, every)))
        wrong = record.sample_info.given != record.truth()
        assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.07)
        assert found.score.auroc > 0.95


def test_two_networks_are_enough():
    for record in (memorised_rows(), wavering_rows()):
        found = audit(record.select(networks=[0, 1]))
        wrong = record.sample_info.given != record.truth()
        assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.05)
        assert found.score.auroc > 0.95


def test_one_epoch_ranks_labels_and_accuses_few():
    record = memorised_rows(samples=3000)
    wrong = record.sample_info.given != record.truth()
    for networks in (range(4), [0, 1]):
        found = audit(record.select(networks=networks, epochs=[4]))
        assert found.score.auroc > 0.94
        assert found.noise_rate < wrong.mean() + 0.02
        assert found.weights.tolist() == [1.0]


def test_one_epoch_of_random_votes_flags_hardly_anything():
    assert audit(memorised_rows(samples=3000).select(epochs=[0])).noise_rate < 0.01


@pytest.mark.parametrize("directed", [False, True])
def test_a_hundred_classes_of_forty_samples_are_distinguished(directed):
    record = memorised_rows(classes=100, samples=4000, directed=directed)
    found, wrong = audit(record), record.sample_info.given != record.truth()
    assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.03)
    assert found.score.auroc > 0.99
    assert (found.proposed == record.truth()).mean() > 0.96
    rates = np.bincount(record.sample_info.given, wrong) / np.bincount(record.sample_info.given)
    assert np.abs(found.noise_rates - rates).mean() < 0.03


def test_more_classes_than_alternatives_are_handled():
    record = memorised_rows(classes=40, samples=2000)
    found = audit(record)
    assert found.score.auroc > 0.99
    assert (found.proposed == record.truth()).mean() > 0.97


def test_two_classes_have_one_alternative():
    record = memorised_rows(classes=2)
    assert audit(record).score.auroc > 0.98


@drawn(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=12))
def test_a_ranking_is_scored_as_defined(pairs):
    scores = np.array([score for score, _ in pairs], float)
    wanted = np.array([wrong for _, wrong in pairs])
    if wanted.all() or not wanted.any():
        return
    found = score_ranking(scores, wanted, scores > 1)
    duels = [(a > b) + (a == b) / 2 for a in scores[wanted] for b in scores[~wanted]]
    assert found.auroc == pytest.approx(np.mean(duels))
    precisions = [wanted[scores >= score].mean() for score in scores[wanted]]
    assert found.average_precision == pytest.approx(np.mean(precisions))
    assert found.recall == (scores[wanted] > 1).mean()
    if (scores > 1).any():
        assert found.precision == wanted[scores > 1].mean()
    else:
        assert np.isnan(found.precision)


def test_probabilities_are_weighted_shares_of_votes():
    record = memorised_rows()
    table = audit_probabilities(record)
    assert (table.shape, table.dtype) == ((600, 5), np.float64)
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
    contradiction = measure_contradiction(record, record.sample_info.given)
    steps = integer_weights(epoch_weights(record, record.sample_info.given, contradiction))
    predicted = labels_of(record)[:, :, 7]
    expected = [((predicted == c) * steps).sum() / (4 * steps.sum()) for c in range(5)]
    np.testing.assert_allclose(table[7], expected)


def test_a_test_record_is_refused():
    record = with_facts(memorised_rows(), given=None, split="test")
    for look in (audit, audit_probabilities):
        with pytest.raises(RecordError, match=r"record of the test split holds none.*training"):
            look(record)


def test_labels_of_one_class_are_refused():
    record = with_facts(memorised_rows(), given=np.full(600, 3))
    with pytest.raises(RecordError, match=r"all samples have the given label 3.*right labels"):
        audit(record)


def test_one_network_is_refused():
    with pytest.raises(ChoiceError, match=r"compares networks, and there is one\. Record another"):
        audit(memorised_rows(networks=1))


def test_a_record_that_begins_after_memorisation_is_refused():
    record = memorised_rows()
    with pytest.raises(RecordError, match=r"agree with all given.*cannot be found.*first epoch on"):
        audit(record.select(epochs=[11]))
    audit(record.select(epochs=[5, 11]))


def test_a_share_of_labels_known_by_heart_is_never_rounded_up():
    given = np.arange(3000) % 5
    labels = np.tile(given, (2, 1, 1)).astype(np.uint8)
    labels[0, 0, 0] = 1
    with pytest.raises(RecordError, match=r"agree with 99\.9 % or more of the given labels"):
        audit(ArrayReader(labels, SampleInfo(3000, 5, given=given)))


def test_one_sample_is_singular():
    with pytest.raises(RecordError, match="the only sample has the given label 2"):
        audit(ArrayReader(np.zeros((2, 3, 1), int), SampleInfo(1, 5, given=np.array([2]))))


def test_a_class_that_nobody_predicts_is_not_judged():
    record = memorised_rows()
    labels = np.where(labels_of(record) == 4, 0, labels_of(record))
    found = audit(ArrayReader(labels, record.sample_info))
    assert found.unpredicted == (4,)
    mute = record.sample_info.given == 4
    assert not found.flagged[mute].any()
    assert set(found.ranking[-mute.sum() :]) == set(np.flatnonzero(mute))
    assert found.noise_rates[4] == 0


def test_a_class_that_is_never_given_does_no_harm():
    record = memorised_rows(classes=5)
    wider = ArrayReader(labels_of(record), dataclasses.replace(record.sample_info, classes=9))
    found = audit(wider)
    assert found.unpredicted == ()
    assert np.isnan(found.noise_rates[8])
    assert found.score.auroc > 0.99


def test_tables_that_do_not_fit_are_refused():
    samples = 600_000
    sample_info = SampleInfo(samples, 1000, given=np.arange(samples) % 2)
    with pytest.raises(PredictionError, match="the largest is 4 GiB"):
        audit_probabilities(ArrayReader(np.zeros((2, 1, samples), np.uint16), sample_info))


def test_classes_that_do_not_occur_take_no_room():
    record = memorised_rows(classes=10)
    spread = np.arange(10) * 3000 + 17
    sample_info = {"truth": spread[record.truth()], "given": spread[record.sample_info.given]}
    wide = ArrayReader(spread[labels_of(record)], SampleInfo(600, 30_000, "train", **sample_info))
    found, expected = audit(wide), audit(record)
    np.testing.assert_allclose(
        found.suspicion, expected.suspicion, atol=0.02
    )  # alternatives without votes differ
    np.testing.assert_array_equal(found.proposed, spread[expected.proposed])
    assert found.noise_rates[17] == expected.noise_rates[0]
    with pytest.raises(PredictionError, match="the largest is 4 GiB"):
        _ = found.confusion


def test_so_many_classes_that_their_tables_do_not_fit_are_refused(monkeypatch):
    record = memorised_rows(classes=40, samples=2000)
    monkeypatch.setattr(posterior_module, "LARGEST", posterior_module.TABLES * 8 * 40**2)
    audit(record)
    monkeypatch.setattr(posterior_module, "LARGEST", posterior_module.TABLES * 8 * 40**2 - 1)
    with pytest.raises(PredictionError, match=r"40 classes would take.*fewer than 39 classes"):
        audit(record)


def test_all_tables_are_counted():
    record = memorised_rows(classes=400, samples=1600)
    tracemalloc.start()
    audit(record)
    most = tracemalloc.get_traced_memory()[1] / (8 * 400**2)
    tracemalloc.stop()
    assert posterior_module.TABLES - 1 < most < posterior_module.TABLES + 2


def one_sided_rows(classes=2, samples=3000, rate=0.4, seed=0):
    """Votes that are right 17 times in 20, then by heart; a part of class 0 is given as class 1."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, classes, samples)
    given = np.where((truth == 0) & (generator.random(samples) < rate), 1, truth)
    shape = 4, 20, samples
    votes = np.where(generator.random(shape) < 0.85, truth, generator.integers(0, classes, shape))
    final_agreement = 8 + 11 * generator.random((4, 1, samples))
    votes = np.where(np.arange(20)[:, np.newaxis] > final_agreement, given, votes)
    sample_info = SampleInfo(samples, classes, "train", truth, given)
    return ArrayReader(votes.astype(np.uint8), sample_info, name="one-sided")


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6])
@pytest.mark.parametrize("classes", [2, 3])
def test_wrong_labels_of_one_class_are_counted_among_few_classes(classes, rate):
    record = one_sided_rows(classes, rate=rate)
    found, wrong = audit(record), record.sample_info.given != record.truth()
    assert found.score.auroc > 0.99
    assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.02)
    assert audit_notes(found, record.sample_info) == []


def soon_by_heart_rows(rate, epochs=30):
    """Votes on two classes, right four times in five until all networks know the label by heart."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 2, 3000)
    given = np.where(generator.random(3000) < rate, 1 - truth, truth)
    votes = np.where(generator.random((4, epochs, 3000)) < 0.8, truth, 1 - truth)
    final_agreement = 2 + generator.exponential(6, 3000)
    votes = np.where(np.arange(epochs)[:, np.newaxis] > final_agreement, given, votes)
    return ArrayReader(votes.astype(np.uint8), SampleInfo(3000, 2, "train", truth, given))


@pytest.mark.parametrize("rate", [0.2, 0.3, 0.4])
def test_two_classes_are_audited_though_most_epochs_are_memorised(rate):
    record = soon_by_heart_rows(rate)
    found = audit(record)
    wrong = record.sample_info.given != record.truth()
    assert found.noise_rate == pytest.approx(wrong.mean(), abs=0.05)
    (note,) = audit_notes(found, record.sample_info)
    assert note.startswith("the votes are inconclusive: by their own posteriors, ")


def weak_rows(memorised=0):
    """Networks that are lured by wrong classes, often the same, until they know all by heart."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 10, 1500)
    given = np.where(generator.random(1500) < 0.2, generator.integers(0, 10, 1500), truth)
    lured = (truth + generator.integers(1, 10, 1500)) % 10
    easy = generator.random((4, 20, 1500)) < generator.random(1500) ** 0.7
    votes = np.where(easy, truth, lured)
    begun = generator.random((4, 20, 1500)) < np.linspace(0.1, 2, 20)[:, np.newaxis]
    votes = np.where(begun, votes, generator.integers(0, 10, (4, 20, 1500)))
    votes[:, 20 - memorised :] = given
    return ArrayReader(votes.astype(np.uint8), SampleInfo(1500, 10, "train", truth, given))


def test_a_note_warns_that_underfitting_raises_the_noise_rate():
    record = weak_rows()
    found = audit(record)
    last = record.read_labels(range(4), [19], slice(None))
    assert found.final_agreement == pytest.approx((last == found.given).mean())
    assert found.noise_rate > 0.35  # where 18 % are wrong
    (note,) = audit_notes(found, record.sample_info)
    assert note.startswith("the networks underfit: at the last epoch they predict ")
    assert f"{100 * found.final_agreement:.0f} in 100" in note
    assert f"{100 * found.noise_rate:.1f} % may be far too high" in note
    notes = audit_notes(audit(weak_rows(memorised=1)), record.sample_info)
    assert not any("learn little" in note for note in notes)


def test_networks_that_do_not_learn_wrong_labels_are_not_weak():
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 10, 3000)
    given = np.where(generator.random(3000) < 0.4, generator.integers(0, 10, 3000), truth)
    votes = np.where(generator.random((4, 20, 3000)) < 0.9, truth, (truth + 1) % 10)
    record = ArrayReader(votes.astype(np.uint8), SampleInfo(3000, 10, "train", truth, given))
    found = audit(record)
    assert found.final_agreement < 0.7
    assert not any("learn little" in note for note in audit_notes(found, record.sample_info))


def test_the_noise_rate_is_the_mean_posterior_where_too_many_labels_are_undecided():
    doubtful, clear = audit(soon_by_heart_rows(0.4)), audit(memorised_rows())
    against = 1 / (1 + np.exp(-doubtful.log_odds))
    assert doubtful.undecided == pytest.approx(np.minimum(against, 1 - against).mean())
    assert doubtful.undecided > 0.1 > clear.undecided
    assert doubtful.noise_rate == against.mean() > doubtful.flagged.mean()
    assert clear.noise_rate == clear.flagged.mean()
    of_class = doubtful.given == 1
    assert doubtful.noise_rates[1] == pytest.approx(against[of_class].mean())


def test_epochs_by_heart_count_for_less_the_fewer_classes_there_are():
    for classes, least, most in ((2, 0.05, 0.3), (10, 0.3, 0.7)):
        share = np.array([0.4, 0.2])
        seen = Contradiction(share, share, share, 0 * share, np.full(2, 1 / (classes - 1)), share)
        assert least < seen.weights[1] / seen.weights[0] < most


def test_random_votes_of_two_classes_flag_no_label():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, (4, 30, 1000)).astype(np.uint8)
    found = audit(ArrayReader(labels, SampleInfo(1000, 2, given=generator.integers(0, 2, 1000))))
    assert found.noise_rate == 0
    assert found.beyond_chance < 0.05


def test_rates_that_correct_an_accuracy():
    record = wavering_rows()
    found, truth = audit(record), record.truth()
    rates, given = found.label_confusion, record.sample_info.given
    np.testing.assert_allclose(rates.sum(axis=1), 1)
    planted = np.zeros((6, 6))
    np.add.at(planted, (truth, given), 1 / np.bincount(truth)[truth])
    np.testing.assert_allclose(rates, planted, atol=0.1)
    predicted = np.where(np.arange(3000) % 5, truth, (truth + 2) % 6)
    assert corrected_accuracy(predicted, given, rates).value == pytest.approx(0.8, abs=0.05)


def test_counts_and_columns_are_not_taken_for_rates():
    found, given = audit(wavering_rows()), wavering_rows().sample_info.given
    for wrong in (found.confusion, found.confusion.T, found.label_confusion.T):
        with pytest.raises(PredictionError, match=r"\(class, given label\) with rows that sum"):
            corrected_accuracy(given, given, wrong)


def test_labels_of_a_class_that_nothing_is_taken_for_count_as_right():
    record = memorised_rows()
    wider = ArrayReader(labels_of(record), dataclasses.replace(record.sample_info, classes=7))
    np.testing.assert_array_equal(audit(wider).label_confusion[5:], np.eye(7)[5:])


GIVEN = np.array([2, 2, 0, 3, 2])


def votes():
    """Two networks, three epochs; class 2 is predicted at the last two, class 3 never."""
    return np.array(
        [
            [[0, 0, 0, 0, 0], [2, 0, 0, 0, 0], [2, 0, 0, 1, 0]],
            [[0, 0, 0, 0, 0], [2, 2, 0, 0, 0], [2, 0, 0, 1, 2]],
        ]
    )


def test_labels_are_suspicious_by_the_votes_since_their_class_is_predicted():
    found = suspect_unpredicted(
        ArrayReader(votes(), SampleInfo(5, 4)), GIVEN, np.array([2, 3]), rate=0.1
    )
    against = np.array([0, 3 / 4, 3 / 4])  # of the votes at two epochs
    np.testing.assert_allclose(found[[0, 1, 4]], 0.1 * against / against.mean())
    assert np.isnan(found[[2, 3]]).all()


def test_no_such_label_is_flagged():
    found = suspect_unpredicted(
        ArrayReader(votes(), SampleInfo(5, 4)), GIVEN, np.array([2]), rate=0.9
    )
    assert found[[0, 1, 4]].tolist() == [0, 0.5, 0.5]


def test_labels_that_nobody_contradicts_are_not_suspicious():
    labels = np.full((2, 3, 5), 2)
    found = suspect_unpredicted(
        ArrayReader(labels, SampleInfo(5, 4)), GIVEN, np.array([2]), rate=0.9
    )
    assert found[[0, 1, 4]].tolist() == [0, 0, 0]


def test_blocks_make_no_difference(monkeypatch):
    record = memorised_rows().select()
    given, classes = record.sample_info.given, np.array([1, 3])
    whole = suspect_unpredicted(record, given, classes, rate=0.2)
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows, "LEAST_BLOCK", 70)
    np.testing.assert_array_equal(whole, suspect_unpredicted(record, given, classes, rate=0.2))


def late_class_rows():
    """Class 4 is predicted first when all other labels are memorised."""
    record = memorised_rows(samples=2000)
    labels = record.read_labels(range(4), range(12), slice(None)).copy()
    labels[:, :11][labels[:, :11] == 4] = 0
    generator = np.random.default_rng(0)
    given, truth = record.sample_info.given, record.truth()
    taught = (given == 4) & ((truth == 4) | (generator.random(2000) < 0.2))
    labels[:, 11] = np.where((given == 4) & ~taught, 0, given)
    return ArrayReader(labels, record.sample_info)


def test_a_class_that_is_learnt_late_is_ranked_by_later_votes():
    record = late_class_rows()
    found, given = audit(record), record.sample_info.given
    assert (found.unpredicted, found.never_predicted) == ((4,), ())
    of_class = given == 4
    assert not found.flagged[of_class].any()
    wrong = (given != record.truth())[of_class]
    suspicion = found.suspicion[of_class]
    assert suspicion[wrong].mean() > 2 * suspicion[~wrong].mean()
    assert 0 < suspicion.mean() < found.flagged.mean()


def test_such_labels_are_as_often_wrong_as_all_others(monkeypatch):
    rates = []

    def remember(*args, rate):
        rates.append(rate)
        return suspect_unpredicted(*args, rate=rate)

    monkeypatch.setattr("accord.analysis._audit._audit.suspect_unpredicted", remember)
    record = late_class_rows()
    found = audit(record)
    assert rates == [found.flagged[record.sample_info.given != 4].mean()]


def test_where_there_are_no_others_nothing_is_suspected():
    """All predict class 0, which no label is, until all are memorised."""
    given = np.arange(40) % 2 + 1
    labels = np.zeros((2, 3, 40), int)
    labels[:, 1:] = given
    found = audit(ArrayReader(labels, SampleInfo(40, 3, split="train", given=given)))
    assert found.unpredicted == (1, 2)
    assert found.suspicion.max() < 1e-300
