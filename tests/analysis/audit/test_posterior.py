import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from memorised import memorised_rows

from accord.analysis._audit import _posterior as posterior_module
from accord.analysis._audit._evidence import Evidence, collect_evidence, measure_contradiction
from accord.analysis._audit._posterior import (
    LEAST_EFFECTIVE_VOTES,
    ErrorRates,
    candidate_posteriors,
    class_posteriors,
    count_effective_votes,
    fit_rates,
    initial_posteriors,
    soften,
    update_rates,
)


@st.composite
def small_cases(draw):
    """Evidence on a few samples, posteriors and rates, all of them random."""
    samples, classes = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kept = min(5, classes)
    candidates = np.array([generator.permutation(classes)[:kept] for _ in range(samples)])
    evidence = Evidence(
        candidates=candidates,
        shares=generator.dirichlet(np.ones(kept + 1), samples)[:, :kept],
        predicted=np.ones(classes, bool),
        vote_weight=float(generator.uniform(0.1, 1)),
        votes=20,
    )
    rates = ErrorRates(
        given=generator.dirichlet(np.ones(classes**2)).reshape(classes, classes),
        predicted=generator.dirichlet(np.ones(classes), classes),
        memorised=float(generator.uniform(0.1, 0.9)),
        effective_votes=float(generator.uniform(1, 9)),
    )
    return evidence, generator.dirichlet(np.ones(kept), samples), rates


def posteriors_by_definition(evidence, rates):
    """Multiply, for each candidate, the chance of the label and of all votes."""
    document = []
    for classes, shares in zip(evidence.candidates, evidence.shares, strict=True):
        label, logs = classes[0], []
        for true in classes:
            log = math.log(rates.given[true, label])
            for predicted, share in zip(classes, shares, strict=True):
                chance = (1 - rates.memorised) * rates.predicted[true, predicted]
                chance += rates.memorised * (predicted == label)
                log += evidence.vote_weight * rates.effective_votes * share * math.log(chance)
            logs.append(log)
        document.append([1 / sum(math.exp(other - log) for other in logs) for log in logs])
    return document


@drawn(small_cases())
def test_posteriors_equal_their_definition(case):
    evidence, _, rates = case
    np.testing.assert_allclose(
        candidate_posteriors(evidence, rates), posteriors_by_definition(evidence, rates), rtol=1e-9
    )


def in_each_row(table):
    classes = len(table)
    right = sum(table[c, c] for c in range(classes)) / table.sum()
    for true, predicted in np.ndindex(table.shape):
        table[true, predicted] += right if true == predicted else (1 - right) / (classes - 1)
    return table / table.sum(axis=1, keepdims=True)


def rates_by_definition(rates, evidence, posteriors):
    """Count sample by sample; return the rates, and the counts for the effective votes."""
    classes, samples = len(rates.predicted), len(evidence)
    given, seen, memorised = np.zeros((classes,) * 2), np.zeros((classes,) * 2), 0.0
    for s, true in np.ndindex(posteriors.shape):
        true_class, label = evidence.candidates[s, true], evidence.candidates[s, 0]
        given[true_class, label] += posteriors[s, true]
        for predicted, share in zip(evidence.candidates[s], evidence.shares[s], strict=True):
            vote, insight = posteriors[s, true] * share, 1.0
            if predicted == label:
                chance = (1 - rates.memorised) * rates.predicted[true_class, predicted]
                insight = chance / (chance + rates.memorised)
            seen[true_class, predicted] += vote * insight
            memorised += vote * (1 - insight)
    prior = (given.sum(axis=1) + 1 / classes) / (samples + 1)
    memorised /= evidence.shares.sum()
    return in_each_row(given) * prior[:, np.newaxis], in_each_row(seen), memorised


def effective_votes_by_definition(predicted, memorised, evidence, posteriors):
    """Compare how much one vote would scatter with how much the shares do."""
    of_one = of_all = 0.0
    for s, true in np.ndindex(posteriors.shape):
        mean = (1 - memorised) * predicted[evidence.candidates[s, true]]
        mean[evidence.candidates[s, 0]] += memorised
        shares = np.zeros(len(mean))
        shares[evidence.candidates[s]] = evidence.shares[s]
        of_one += posteriors[s, true] * (1 - (mean**2).sum())
        of_all += posteriors[s, true] * ((shares - mean) ** 2).sum()
    return of_one / of_all


@drawn(small_cases())
def test_rates_equal_their_definition(case):
    evidence, posteriors, rates = case
    found = update_rates(rates, evidence, posteriors)
    given, predicted, memorised = rates_by_definition(rates, evidence, posteriors)
    np.testing.assert_allclose(found.given, given, rtol=1e-5)
    np.testing.assert_allclose(found.predicted, predicted, rtol=1e-5)
    assert found.given.sum() == pytest.approx(1)
    assert found.memorised == pytest.approx(memorised)
    effective_votes = effective_votes_by_definition(
        found.predicted, found.memorised, evidence, posteriors
    )
    assert found.effective_votes == pytest.approx(
        min(20, max(LEAST_EFFECTIVE_VOTES, effective_votes))
    )


@pytest.mark.parametrize("effective_votes", [4, 15])
def test_independent_votes_are_counted(effective_votes):
    generator = np.random.default_rng(0)
    predicted = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]])
    truth = generator.integers(0, 3, 5000)
    shares = (
        np.array([generator.multinomial(effective_votes, predicted[true]) for true in truth])
        / effective_votes
    )
    given, votes = np.diag(np.bincount(truth).astype(float)), np.zeros((3, 3))
    np.add.at(votes, truth, shares)
    document = count_effective_votes(predicted, 0.0, given=given, votes=votes, shares=shares)
    assert document == pytest.approx(effective_votes, rel=0.03)


def evidence_of(record):
    given = record.sample_info.given
    return collect_evidence(record, given, measure_contradiction(record, given).weights)


def test_rates_are_fitted_without_the_truth():
    record = memorised_rows(samples=6000, directed=True, rate=0.4)
    rates = fit_rates(evidence_of(record), classes=5)
    planted = np.zeros((5, 5))
    np.add.at(planted, (record.truth(), record.sample_info.given), 1 / 6000)
    np.testing.assert_allclose(rates.given, planted, atol=0.01)
    assert (rates.predicted.argmax(axis=1) == np.arange(5)).all()
    assert 0 < rates.memorised < 0.5


def test_votes_that_cannot_scatter_are_no_more_than_they_are():
    record = memorised_rows(samples=50)
    evidence = dataclasses.replace(evidence_of(record), votes=7)
    evidence.shares[:] = np.eye(5)[0]
    posteriors = np.tile(np.eye(5)[0], (50, 1))
    even = np.full((5, 5), 1.0)
    assert update_rates(ErrorRates(even, even, 0.0, 1.0), evidence, posteriors).effective_votes == 7


def test_initial_posteriors_are_shares_with_a_vote_for_the_label():
    evidence = Evidence(
        candidates=np.array([[1, 0, 2]]),
        shares=np.array([[0.25, 0.5, 0.25]]),
        predicted=np.ones(3, bool),
        vote_weight=0.8,
        votes=4,
    )
    np.testing.assert_allclose(initial_posteriors(evidence), [[0.4, 0.4, 0.2]])
    nothing = dataclasses.replace(evidence, vote_weight=0.0, shares=np.zeros((1, 3)))
    np.testing.assert_array_equal(class_posteriors(nothing), [[1, 0, 0]])


def test_the_rounds_end_when_little_changes(monkeypatch):
    evidence, rounds = evidence_of(memorised_rows()), []
    plain = posterior_module.update_rates
    monkeypatch.setattr(
        posterior_module, "update_rates", lambda *wanted: rounds.append(wanted) or plain(*wanted)
    )
    fit_rates(evidence, classes=5)
    assert 2 <= len(rounds) < 10
    *_, before, last = [posteriors for _, _, posteriors in rounds]
    assert np.abs(last - before).sum() >= 0.02 * 600
    final = candidate_posteriors(evidence, plain(*rounds[-1]))
    assert np.abs(final - last).sum() < 0.02 * 600
    monkeypatch.setattr(posterior_module, "CLOSE", 0.0)
    monkeypatch.setattr(posterior_module, "MOST_ROUNDS", 4)
    rounds.clear()
    fit_rates(evidence, classes=5)
    assert len(rounds) == 4


def test_rates_are_fitted_on_some_samples_and_used_on_all_in_parts(monkeypatch):
    evidence = evidence_of(memorised_rows(samples=900))
    monkeypatch.setattr(posterior_module, "LEAST_FITTED", 300)
    monkeypatch.setattr(posterior_module, "FITTED_PER_CLASS", 60)
    monkeypatch.setattr(posterior_module, "SAMPLES_AT_ONCE", 70)
    rates = fit_rates(evidence.part(slice(None, None, 3)), classes=5)
    power = 1 / math.sqrt(evidence.vote_weight * rates.effective_votes)
    expected = soften(candidate_posteriors(evidence, rates), power)
    np.testing.assert_allclose(class_posteriors(evidence), expected, rtol=1e-12)
    monkeypatch.setattr(posterior_module, "FITTED_PER_CLASS", 180)
    rates = fit_rates(evidence, classes=5)
    power = 1 / math.sqrt(evidence.vote_weight * rates.effective_votes)
    expected = soften(candidate_posteriors(evidence, rates), power)
    np.testing.assert_allclose(class_posteriors(evidence), expected, rtol=1e-12)


def test_few_effective_votes_do_not_sharpen_the_odds(monkeypatch):
    evidence = dataclasses.replace(evidence_of(memorised_rows()), vote_weight=0.2)
    rates = ErrorRates(np.full((5, 5), 1 / 25), np.full((5, 5), 0.2), 0.1, 3.0)
    monkeypatch.setattr(posterior_module, "fit_rates", lambda *_, **__: rates)
    expected = candidate_posteriors(evidence, rates)
    np.testing.assert_allclose(class_posteriors(evidence), expected, rtol=1e-12)


@drawn(
    st.lists(st.floats(0.001, 1), min_size=2, max_size=5),
    st.floats(0.1, 1),
)
def test_softened_odds_are_a_power_of_the_odds(weights, power):
    posteriors = np.array([weights]) / sum(weights)
    softened = soften(posteriors, power)
    assert softened.sum() == pytest.approx(1)
    odds, before = ((1 - c[0, 0]) / c[0, 0] for c in (softened, posteriors))
    assert odds == pytest.approx(before**power)
    np.testing.assert_allclose(
        softened[0, 1:] * posteriors[0, 1], posteriors[0, 1:] * softened[0, 1]
    )


def test_a_certain_label_stays_certain():
    certain = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(soften(certain, 0.5), certain)
