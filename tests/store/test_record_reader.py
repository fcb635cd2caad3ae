"""Subsets of networks, epochs and samples behave like records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import CLASSES, SAMPLES, labels_of, write_record

from accord._recorder import Recorder
from accord.errors import ChoiceError, ProbabilitiesMissing
from accord.store import ArrayReader, SampleInfo, open_reader, pack_record
from accord.store import _record_reader as rows_module

LABELS = np.arange(2 * 3 * 10, dtype=np.uint8).reshape(2, 3, 10)
TABLES = np.arange(2 * 3 * 10 * 4).reshape(2, 3, 10, 4).astype(np.float16)
FACTS = SampleInfo(
    samples=10,
    classes=100,
    truth=np.arange(10),
    given=np.arange(10) + 1,
    ids=np.arange(10) * 10,
    class_names=("one",),
)


def rows(**options):
    return ArrayReader(LABELS, FACTS, **options)


def test_a_range_cuts_all_arrays_of_the_samples():
    cut = rows().select(samples=slice(3, 7))
    assert (cut.samples, cut.classes, cut.epochs, cut.numbers) == (4, 100, 3, (0, 1))
    np.testing.assert_array_equal(cut.truth(), [3, 4, 5, 6])
    np.testing.assert_array_equal(cut.sample_info.given, [4, 5, 6, 7])
    np.testing.assert_array_equal(cut.sample_info.ids, [30, 40, 50, 60])
    assert cut.sample_info.class_names == ("one",)
    assert cut.networks_info() == rows().networks_info()
    assert (
        ArrayReader(LABELS, SampleInfo(10, 100)).select(samples=slice(3)).sample_info.truth is None
    )


def test_a_range_of_samples_combines_with_networks_and_epochs():
    cut = rows(probabilities=TABLES).select([1], [-1, 0], slice(-4, None))
    np.testing.assert_array_equal(
        cut.read_labels([0], [0, 1], slice(1, 3)), LABELS[1:, [2, 0], 7:9]
    )
    np.testing.assert_array_equal(cut.read_probabilities([0], [1], slice(None)), TABLES[1:, :1, 6:])
    assert cut.has_probabilities
    with pytest.raises(ProbabilitiesMissing, match="the record has labels only"):
        rows().select(samples=slice(2)).check_probabilities()


@given(st.integers(0, 9), st.integers(1, 10), st.integers(1, 5))
def test_the_blocks_of_a_range_cover_its_samples(start, size, step):
    cut = rows().select(samples=slice(start, start + size))
    before = rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK
    rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = 1, step
    try:
        blocks = list(cut.blocks())
    finally:
        rows_module.BLOCK_BYTES, rows_module.LEAST_BLOCK = before
    together = np.concatenate([block.values for block in blocks], axis=2)
    np.testing.assert_array_equal(together, LABELS[:, :, start : start + size])
    assert [block.start for block in blocks] == list(range(0, cut.samples, step))


def test_a_range_of_a_range_is_a_range():
    cut = rows().select(samples=slice(2, 8)).select(samples=slice(1, 3))
    np.testing.assert_array_equal(cut.read_labels([0], [0], slice(None))[0, 0], [3, 4])
    np.testing.assert_array_equal(cut.truth(), [3, 4])


def test_ranges_work_on_stored_records(tmp_path):
    record = write_record(tmp_path / "record", truth=labels_of(9, 9))
    pack_record(record, tmp_path / "packed")
    for path in (record, tmp_path / "packed"):
        cut = open_reader(path).select(samples=slice(30, None))
        assert (cut.samples, cut.classes) == (SAMPLES - 30, CLASSES)
        labels = cut.read_labels([1], [2], slice(None))[0, 0]
        np.testing.assert_array_equal(labels, labels_of(1, 2)[30:])


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (slice(5, 5), "no sample is selected; there are 10"),
        (slice(10, None), "no sample is selected; there are 10"),
        (slice(0, 10, 2), "a range without steps"),
    ],
)
def test_empty_ranges_and_steps_are_refused(samples, words):
    with pytest.raises(ChoiceError, match=words):
        rows().select(samples=samples)


@pytest.mark.parametrize(
    ("split", "given", "trained_on"),
    [
        ("train", None, True),
        ("train", [0, 1], True),
        ("part", [0, 1], True),
        ("part", None, False),
        ("validation", [0, 1], False),
        ("test", [0, 1], False),
        ("test", None, False),
    ],
)
def test_samples_were_trained_on_if_given_labels_are_known_and_they_were_not_held_out(
    split, given, trained_on
):
    known = None if given is None else np.array(given)
    assert SampleInfo(2, 3, split=split, given=known).trained_on is trained_on


def test_selected_networks_keep_their_probabilities(tmp_path):
    likely = np.array([[0.75, 0.25], [0.25, 0.75]])
    for network, keep in enumerate((True, False, True)):
        about = {"network": network, "samples": 2, "classes": 2, "probabilities": keep}
        with Recorder(tmp_path / "run", **about) as recorder:
            recorder.record(likely)
    record = open_reader(tmp_path / "run")
    chosen = record.select(networks=[2, 0])
    assert not record.has_probabilities
    assert chosen.has_probabilities
    (block,) = chosen.probability_blocks()
    np.testing.assert_array_equal(block.values, [[likely], [likely]])
    assert not record.select(networks=[0, 1]).has_probabilities
    with pytest.raises(ProbabilitiesMissing, match=r"only some networks have them.*: 0, 2"):
        record.check_probabilities()
    with pytest.raises(ProbabilitiesMissing, match="only some networks"):
        record.read_probabilities([1], [0], slice(None))
