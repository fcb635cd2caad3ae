"""cleanlab accepts the table of an audit as `pred_probs`."""

import numpy as np
import pytest

from accord.analysis._audit._audit import audit, audit_probabilities
from accord.analysis._audit._review_files import write_probabilities
from accord.store import ArrayReader, SampleInfo

filters = pytest.importorskip("cleanlab.filter")
rank = pytest.importorskip("cleanlab.rank")

SAMPLES, CLASSES = 600, 5


@pytest.fixture(scope="module")
def record():
    """Networks that are right in 70 % of the cases, and then repeat the given label."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, CLASSES, SAMPLES)
    strange = (truth + generator.integers(1, CLASSES, SAMPLES)) % CLASSES
    given = np.where(generator.random(SAMPLES) < 0.3, strange, truth)
    shape = 4, 12, SAMPLES
    guess = np.where(generator.random(shape) < 0.7, truth, generator.integers(0, CLASSES, shape))
    by_heart = np.arange(12)[:, np.newaxis] >= generator.integers(6, 11, SAMPLES)
    labels = np.where(by_heart, given, guess).astype(np.uint8)
    return ArrayReader(labels, SampleInfo(SAMPLES, CLASSES, "train", truth, given))


@pytest.fixture(scope="module")
def table(record, tmp_path_factory):
    path = tmp_path_factory.mktemp("audit") / "table.npy"
    write_probabilities(audit_probabilities(record), path)
    return np.load(path)


def test_find_label_issues_takes_the_table(record, table):
    given, truth = record.sample_info.given, record.sample_info.truth
    issues = filters.find_label_issues(given, table, n_jobs=1)
    assert issues.shape == (SAMPLES,)
    assert (given != truth)[issues].mean() > 0.95


def test_label_quality_goes_with_suspicion(record, table):
    quality = rank.get_label_quality_scores(
        record.sample_info.given, table, method="normalized_margin"
    )
    suspicion = audit(record).suspicion
    assert (
        np.corrcoef(np.argsort(np.argsort(-quality)), np.argsort(np.argsort(suspicion)))[0, 1] > 0.9
    )
