"""Majority votes and plain Dawid–Skene equal crowd-kit's, on the same votes."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import accord
from accord.kernels import count_votes
from accord.rules import find_rule
from accord.store import ArrayReader, SampleInfo

aggregation = pytest.importorskip("crowdkit.aggregation")
BENCHMARK = Path(__file__).parents[1] / "benchmarks/dawid_skene.py"
plain_dawid_skene = runpy.run_path(str(BENCHMARK))["plain_dawid_skene"]

# crowd-kit 1.4.2 calls pandas in a way that pandas 3.1 is to give up.
pytestmark = pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")

VOTERS, SAMPLES, CLASSES, ROUNDS = 15, 400, 5, 10


def drawn_votes(seed=0):
    """Voters with an accuracy of 1/3 to 2/3 that often vote for the next class."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, CLASSES, SAMPLES)
    chance = generator.random((VOTERS, SAMPLES))
    skill = generator.uniform(0.33, 0.66, (VOTERS, 1))
    guessed = generator.integers(0, CLASSES, (VOTERS, SAMPLES))
    wrong = np.where(chance < skill + 0.15, (truth + 1) % CLASSES, guessed)
    return np.where(chance < skill, truth, wrong), truth


def recorded_votes():
    """Every fifth epoch of the bundled record, and every twentieth of its samples."""
    record = accord.open("example://cifar10-sym40")
    labels = np.asarray(record.labels[:, ::5, ::20])
    return labels.reshape(-1, labels.shape[2]).astype(int), record.truth[::20]


@pytest.fixture(params=[drawn_votes, recorded_votes])
def votes(request):
    return request.param()


def as_table(labels):
    voters, samples = labels.shape
    return pd.DataFrame(
        {
            "task": np.tile(np.arange(samples), voters),
            "worker": np.repeat(np.arange(voters), samples),
            "label": labels.ravel(),
        }
    )


def by_crowd_kit(method, labels):
    return method.fit_predict(as_table(labels)).sort_index().to_numpy()


def majority_of(labels, classes):
    """Each voter is a network of one epoch."""
    rows = ArrayReader(labels[:, np.newaxis], SampleInfo(labels.shape[1], classes))
    return find_rule("majority")(rows).labels


def test_the_majority_is_crowd_kits(votes):
    """Equal votes go to the smaller class here, and to any of the equal ones there."""
    labels, truth = votes
    classes = int(max(labels.max(), truth.max())) + 1
    theirs = by_crowd_kit(aggregation.MajorityVote(), labels)
    ours = majority_of(labels, classes)
    counted = count_votes(labels, classes=classes)
    ranked = np.sort(counted, axis=1)
    tied = ranked[:, -1] == ranked[:, -2]
    assert tied.mean() < 0.1
    np.testing.assert_array_equal(ours[~tied], theirs[~tied])
    samples = np.arange(len(theirs))
    np.testing.assert_array_equal(counted[samples, ours], counted[samples, theirs])


def test_the_shares_of_votes_are_crowd_kits(votes):
    labels, truth = votes
    classes = int(max(labels.max(), truth.max())) + 1
    theirs = aggregation.MajorityVote().fit_predict_proba(as_table(labels))
    theirs = theirs.reindex(columns=range(classes), fill_value=0).sort_index().to_numpy()
    ours = count_votes(labels, classes=classes) / len(labels)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("rounds", [1, ROUNDS])
def test_dawid_and_skenes_method_is_crowd_kits(votes, rounds):
    labels, truth = votes
    classes = int(max(labels.max(), truth.max())) + 1
    ours = plain_dawid_skene(labels, classes=classes, rounds=rounds).argmax(axis=1)
    # With this tolerance it never stops before `rounds`; it starts from the shares of votes too.
    theirs = by_crowd_kit(aggregation.DawidSkene(n_iter=rounds, tol=-np.inf), labels)
    assert np.mean(ours == theirs) >= 0.999


def test_the_methods_differ_where_it_matters():
    """On synthetic votes the method changes many labels, so equal labels are informative."""
    labels, truth = drawn_votes()
    ours = plain_dawid_skene(labels, classes=CLASSES, rounds=ROUNDS).argmax(axis=1)
    moved = majority_of(labels, CLASSES) != ours
    assert moved.mean() > 0.02
    assert np.mean(ours == truth) > np.mean(majority_of(labels, CLASSES) == truth)
