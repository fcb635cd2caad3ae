import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from memorised import memorised_rows

from accord.analysis._audit import _posterior as true_classes
from accord.analysis._audit._evidence import Evidence, gather_evidence, measure_contradiction
from accord.analysis._audit._posterior import (
    LEAST_VOICES,
    Habits,
    count_voices,
    first_chances,
    learn_habits,
    soften,
    tell_classes,
    update_habits,
    weigh_candidates,
)


@st.composite
def small_cases(draw):
    """Evidence on a few samples, chances and habits, all of them random."""
    samples, classes = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kept = min(5, classes)
    candidates = np.array([generator.permutation(classes)[:kept] for _ in range(samples)])
    evidence = Evidence(
        candidates=candidates,
        shares=generator.dirichlet(np.ones(kept + 1), samples)[:, :kept],
        predicted=np.ones(classes, bool),
        believed=float(generator.uniform(0.1, 1)),
        votes=20,
    )
    habits = Habits(
        given=generator.dirichlet(np.ones(classes**2)).reshape(classes, classes),
        said=generator.dirichlet(np.ones(classes), classes),
        by_heart=float(generator.uniform(0.1, 0.9)),
        voices=float(generator.uniform(1, 9)),
    )
    return evidence, generator.dirichlet(np.ones(kept), samples), habits


def chances_by_definition(evidence, habits):
    """Multiply, for each candidate, the chance of the label and of all votes."""
    told = []
    for classes, shares in zip(evidence.candidates, evidence.shares, strict=True):
        label, logs = classes[0], []
        for true in classes:
            log = math.log(habits.given[true, label])
            for said, share in zip(classes, shares, strict=True):
                chance = (1 - habits.by_heart) * habits.said[true, said]
                chance += habits.by_heart * (said == label)
                log += evidence.believed * habits.voices * share * math.log(chance)
            logs.append(log)
        told.append([1 / sum(math.exp(other - log) for other in logs) for log in logs])
    return told


@drawn(small_cases())
def test_chances_equal_their_definition(case):
    evidence, _, habits = case
    np.testing.assert_allclose(
        weigh_candidates(evidence, habits), chances_by_definition(evidence, habits), rtol=1e-9
    )


def in_each_row(table):
    classes = len(table)
    right = sum(table[c, c] for c in range(classes)) / table.sum()
    for true, said in np.ndindex(table.shape):
        table[true, said] += right if true == said else (1 - right) / (classes - 1)
    return table / table.sum(axis=1, keepdims=True)


def habits_by_definition(habits, evidence, chances):
    """Count sample by sample; return the habits, and what the voices are counted from."""
    classes, samples = len(habits.said), len(evidence)
    given, seen, by_heart = np.zeros((classes,) * 2), np.zeros((classes,) * 2), 0.0
    for s, true in np.ndindex(chances.shape):
        true_class, label = evidence.candidates[s, true], evidence.candidates[s, 0]
        given[true_class, label] += chances[s, true]
        for said, share in zip(evidence.candidates[s], evidence.shares[s], strict=True):
            vote, insight = chances[s, true] * share, 1.0
            if said == label:
                chance = (1 - habits.by_heart) * habits.said[true_class, said]
                insight = chance / (chance + habits.by_heart)
            seen[true_class, said] += vote * insight
            by_heart += vote * (1 - insight)
    prior = (given.sum(axis=1) + 1 / classes) / (samples + 1)
    by_heart /= evidence.shares.sum()
    return in_each_row(given) * prior[:, np.newaxis], in_each_row(seen), by_heart


def voices_by_definition(said, by_heart, evidence, chances):
    """Compare how much one vote would scatter with how much the shares do."""
    of_one = of_all = 0.0
    for s, true in np.ndindex(chances.shape):
        mean = (1 - by_heart) * said[evidence.candidates[s, true]]
        mean[evidence.candidates[s, 0]] += by_heart
        shares = np.zeros(len(mean))
        shares[evidence.candidates[s]] = evidence.shares[s]
        of_one += chances[s, true] * (1 - (mean**2).sum())
        of_all += chances[s, true] * ((shares - mean) ** 2).sum()
    return of_one / of_all


@drawn(small_cases())
def test_habits_equal_their_definition(case):
    evidence, chances, habits = case
    found = update_habits(habits, evidence, chances)
    given, said, by_heart = habits_by_definition(habits, evidence, chances)
    np.testing.assert_allclose(found.given, given, rtol=1e-5)
    np.testing.assert_allclose(found.said, said, rtol=1e-5)
    assert found.given.sum() == pytest.approx(1)
    assert found.by_heart == pytest.approx(by_heart)
    voices = voices_by_definition(found.said, found.by_heart, evidence, chances)
    assert found.voices == pytest.approx(min(20, max(LEAST_VOICES, voices)))


@pytest.mark.parametrize("voices", [4, 15])
def test_independent_votes_are_counted(voices):
    generator = np.random.default_rng(0)
    said = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]])
    truth = generator.integers(0, 3, 5000)
    shares = np.array([generator.multinomial(voices, said[true]) for true in truth]) / voices
    given, votes = np.diag(np.bincount(truth).astype(float)), np.zeros((3, 3))
    np.add.at(votes, truth, shares)
    told = count_voices(said, 0.0, given=given, votes=votes, shares=shares)
    assert told == pytest.approx(voices, rel=0.03)


def evidence_of(record):
    given = record.sample_info.given
    return gather_evidence(record, given, measure_contradiction(record, given))


def test_habits_are_learnt_without_the_truth():
    record = memorised_rows(samples=6000, directed=True, rate=0.4)
    habits = learn_habits(evidence_of(record), classes=5)
    planted = np.zeros((5, 5))
    np.add.at(planted, (record.truth(), record.sample_info.given), 1 / 6000)
    np.testing.assert_allclose(habits.given, planted, atol=0.01)
    assert (habits.said.argmax(axis=1) == np.arange(5)).all()
    assert 0 < habits.by_heart < 0.5


def test_votes_that_cannot_scatter_are_no_more_than_they_are():
    record = memorised_rows(samples=50)
    evidence = dataclasses.replace(evidence_of(record), votes=7)
    evidence.shares[:] = np.eye(5)[0]
    chances = np.tile(np.eye(5)[0], (50, 1))
    even = np.full((5, 5), 1.0)
    assert update_habits(Habits(even, even, 0.0, 1.0), evidence, chances).voices == 7


def test_first_chances_are_shares_with_a_vote_for_the_label():
    evidence = Evidence(
        candidates=np.array([[1, 0, 2]]),
        shares=np.array([[0.25, 0.5, 0.25]]),
        predicted=np.ones(3, bool),
        believed=0.8,
        votes=4,
    )
    np.testing.assert_allclose(first_chances(evidence), [[0.4, 0.4, 0.2]])
    nothing = dataclasses.replace(evidence, believed=0.0, shares=np.zeros((1, 3)))
    np.testing.assert_array_equal(tell_classes(nothing, classes=3), [[1, 0, 0]])


def test_the_rounds_end_when_little_changes(monkeypatch):
    evidence, rounds = evidence_of(memorised_rows()), []
    plain = true_classes.update_habits
    monkeypatch.setattr(
        true_classes, "update_habits", lambda *asked: rounds.append(asked) or plain(*asked)
    )
    learn_habits(evidence, classes=5)
    assert 2 <= len(rounds) < 10
    *_, before, last = [chances for _, _, chances in rounds]
    assert np.abs(last - before).sum() >= 0.02 * 600
    final = weigh_candidates(evidence, plain(*rounds[-1]))
    assert np.abs(final - last).sum() < 0.02 * 600
    monkeypatch.setattr(true_classes, "CLOSE", 0.0)
    monkeypatch.setattr(true_classes, "MOST_ROUNDS", 4)
    rounds.clear()
    learn_habits(evidence, classes=5)
    assert len(rounds) == 4


def test_habits_are_learnt_from_some_samples_and_used_on_all_in_parts(monkeypatch):
    evidence = evidence_of(memorised_rows(samples=900))
    monkeypatch.setattr(true_classes, "LEAST_FITTED", 300)
    monkeypatch.setattr(true_classes, "FITTED_PER_CLASS", 60)
    monkeypatch.setattr(true_classes, "SAMPLES_AT_ONCE", 70)
    habits = learn_habits(evidence.part(slice(None, None, 3)), classes=5)
    power = 1 / math.sqrt(evidence.believed * habits.voices)
    expected = soften(weigh_candidates(evidence, habits), power)
    np.testing.assert_allclose(tell_classes(evidence, classes=5), expected, rtol=1e-12)
    monkeypatch.setattr(true_classes, "FITTED_PER_CLASS", 180)
    habits = learn_habits(evidence, classes=5)
    power = 1 / math.sqrt(evidence.believed * habits.voices)
    expected = soften(weigh_candidates(evidence, habits), power)
    np.testing.assert_allclose(tell_classes(evidence, classes=5), expected, rtol=1e-12)


def test_few_voices_do_not_sharpen_the_odds(monkeypatch):
    evidence = dataclasses.replace(evidence_of(memorised_rows()), believed=0.2)
    habits = Habits(np.full((5, 5), 1 / 25), np.full((5, 5), 0.2), 0.1, 3.0)
    monkeypatch.setattr(true_classes, "learn_habits", lambda *_, **__: habits)
    expected = weigh_candidates(evidence, habits)
    np.testing.assert_allclose(tell_classes(evidence, classes=5), expected, rtol=1e-12)


@drawn(
    st.lists(st.floats(0.001, 1), min_size=2, max_size=5),
    st.floats(0.1, 1),
)
def test_softened_odds_are_a_power_of_the_odds(weights, power):
    chances = np.array([weights]) / sum(weights)
    softened = soften(chances, power)
    assert softened.sum() == pytest.approx(1)
    odds, before = ((1 - c[0, 0]) / c[0, 0] for c in (softened, chances))
    assert odds == pytest.approx(before**power)
    np.testing.assert_allclose(softened[0, 1:] * chances[0, 1], chances[0, 1:] * softened[0, 1])


def test_a_certain_label_stays_certain():
    certain = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(soften(certain, 0.5), certain)
