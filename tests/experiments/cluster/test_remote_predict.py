"""Prediction on a cluster, one task per range of samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process_cluster import InProcessCluster
from recorded import labels_of, write_record

import accord
from accord._recorder import Recorder
from accord.errors import (
    ChoiceError,
    ProbabilitiesMissing,
    RecordMissing,
)
from accord.experiments.cluster import _remote_predict, predict_remotely
from accord.experiments.cluster._ray import (
    Resources,
)
from accord.experiments.cluster._remote_predict import predict_range
from accord.rules import all_rules
from accord.rules.consensus import Consensus
from accord.rules.max_agreement import MaxAgreement
from accord.store import pack_record

ONE = Resources(cpus=1.0, gpus=0.0)
BY_SAMPLE = {
    "consensus",
    "majority",
    "max-agreement",
    "probability-average",
    "single",
    "soft-agreement",
}


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A record with probabilities, as written and packed."""
    folder = tmp_path_factory.mktemp("records")
    for network in range(3):
        with Recorder(
            folder / "rows", network=network, samples=23, classes=5, probabilities=True
        ) as recorder:
            for epoch in range(4):
                generator = np.random.default_rng([network, epoch])
                recorder.record(generator.multinomial(4, [0.2] * 5, 23) / 4)
    pack_record(folder / "rows", folder / "packed")
    return folder


@settings(max_examples=40)
@given(st.sampled_from(sorted(BY_SAMPLE)), st.integers(1, 30), st.sampled_from(["rows", "packed"]))
def test_ranges_together_are_the_whole_prediction(record, name, pieces, form):
    expected = accord.open(record / form).predict(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_remote_predict, "Cluster", InProcessCluster)
        found = predict_remotely(record / form, name, blocks=pieces)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert (found.labels.dtype, found.note) == (expected.labels.dtype, expected.note)


def test_default_is_one_range_per_cpu(here, record):
    predict_remotely(record / "rows", address="auto", ship=True)
    assert here[0].options == {"address": "auto", "ship": True}
    assert [(one[1]["start"], one[1]["stop"]) for one in here[0].started] == [
        (0, 6),
        (6, 12),
        (12, 18),
        (18, 23),
    ]
    assert here[0].started[0][2:] == (ONE, _remote_predict.RETRIES)


def test_ranges_of_a_packed_record_are_whole_chunks(here, tmp_path, monkeypatch):
    monkeypatch.setattr("accord.store._packed.LABELS_PER_CHUNK", 50)
    write_record(tmp_path / "rows", networks=2, epochs=5)
    pack_record(tmp_path / "rows", tmp_path / "packed")
    predict_remotely(tmp_path / "packed", blocks=3)
    assert [one[1]["start"] for one in here[0].started] == [0, 20]


def test_rules_keep_their_options(here, record):
    strict = Consensus(least=3, threshold=0.5)
    expected = accord.open(record / "rows").predict(strict)
    found = predict_remotely(record / "rows", strict)
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert (found.labels == -1).any()
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("name", sorted(set(all_rules()) - BY_SAMPLE))
def test_rules_that_need_all_samples_raise(record, name):
    with pytest.raises(ChoiceError, match=rf"{name} cannot predict ranges.*Record\.predict"):
        predict_remotely(record / "rows", name)


def test_user_defined_rule_raises(record):
    class Mine(MaxAgreement):
        pass

    with pytest.raises(ChoiceError, match="cannot predict ranges of samples"):
        predict_remotely(record / "rows", Mine())


def test_growing_record_is_predicted_as_it_was(tmp_path, monkeypatch):
    path = write_record(tmp_path / "record", networks=2, epochs=3, truth=labels_of(9, 9))
    expected = accord.open(path).predict().labels

    class Growing(InProcessCluster):
        def nodes(self):
            write_record(path, networks=1, epochs=9)
            write_record(path, networks=3, epochs=4)
            return super().nodes()

    monkeypatch.setattr(_remote_predict, "Cluster", Growing)
    np.testing.assert_array_equal(predict_remotely(path).labels, expected)


def test_missing_input_raises_before_a_cluster_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(
        _remote_predict, "Cluster", lambda *_, **__: pytest.fail("started a cluster")
    )
    path = write_record(tmp_path / "record")
    for rule in ("soft-agreement", Consensus(threshold=0.5)):
        with pytest.raises(ProbabilitiesMissing, match="the record has labels only"):
            predict_remotely(path, rule)
    with pytest.raises(RecordMissing, match="no such file or folder"):
        predict_remotely(tmp_path / "nowhere")


def test_paths_are_made_absolute_and_urls_are_not(here, record, monkeypatch):
    monkeypatch.chdir(record)
    predict_remotely("rows")
    assert here[0].started[0][1]["path"] == str(record / "rows")
    predict_remotely("example://cifar10-sym40", blocks=1)
    assert here[1].started[0][1]["path"] == "example://cifar10-sym40"
    assert predict_range(here[0].started[0][1])["labels"].shape == (6,)
