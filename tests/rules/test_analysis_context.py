import pickle

import numpy as np
import pytest
from recorded import labels_of, write_record

from accord.errors import ChoiceError
from accord.rules._analysis_context import MEMORY, Context, memory_budget
from accord.store import ArrayReader, SampleInfo, open_reader
from accord.store._unpacked_reader import read_row


@pytest.fixture
def reader(tmp_path):
    return open_reader(write_record(tmp_path / "record", networks=3, epochs=4))


@pytest.fixture
def rows_read(monkeypatch):
    """The (network, epoch) of each row that is read from the record."""
    rows = []

    def count(storage, network, epoch, commit, **options):
        rows.append((network, epoch))
        return read_row(storage, network, epoch, commit, **options)

    monkeypatch.setattr("accord.store._unpacked_reader.read_row", count)
    return rows


def every_row(reader):
    return [(i, j) for i in range(reader.networks) for j in range(reader.epochs)]


def test_each_row_is_read_once_however_it_is_selected(reader, rows_read):
    context = Context(reader)
    context.last().read_labels([1], [0], slice(10))
    assert rows_read == [(1, 3)]
    for _ in range(2):
        list(context.blocks())
        list(context.select(networks=[2, 0], epochs=[3, 1]).blocks())
    assert sorted(rows_read) == every_row(reader)


def test_rows_that_exceed_the_budget_are_read_again(reader, rows_read):
    size = 3 * 4 * reader.samples
    for memory, passes in ((size, 1), (size - 1, 2)):
        rows_read.clear()
        context = Context(reader, memory=memory)
        for _ in range(2):
            list(context.blocks())
        assert len(rows_read) == passes * 12


@pytest.mark.parametrize("networks", [None, [1], [2, 0], [0, 2]])
@pytest.mark.parametrize("epochs", [None, [3], [0, 3, 1], slice(None, None, 2), [-1]])
@pytest.mark.parametrize("samples", [None, slice(5, 17)])
def test_a_selection_equals_that_of_the_reader(reader, networks, epochs, samples):
    expected, context = reader.select(networks, epochs, samples), Context(reader)
    selected = context.select(networks, epochs, samples)
    everything = range(expected.networks), range(expected.epochs), slice(2, None)
    np.testing.assert_array_equal(
        selected.read_labels(*everything), expected.read_labels(*everything)
    )
    assert selected.numbers == expected.numbers
    assert selected.networks_info() == expected.networks_info()
    assert selected is context.select(networks, epochs, samples)


def test_networks_are_selected_by_number(tmp_path):
    reader = open_reader(write_record(tmp_path / "record", networks=3), networks=[1, 2])
    view = Context(reader).select(networks=[2])
    assert view.numbers == (2,)
    np.testing.assert_array_equal(view.read_labels([0], [1], slice(None))[0, 0], labels_of(2, 1))
    with pytest.raises(ChoiceError, match="no network 0; there are 1, 2"):
        Context(reader).select(networks=[0])


def test_a_selection_of_everything_is_the_context_itself(reader):
    context = Context(reader)
    assert context.select(networks=(0, 1, 2), epochs=slice(None), samples=slice(0, 99)) is context
    assert context.select(networks=(0, 2, 1)) is not context


def test_a_result_is_computed_once_for_each_selection_and_its_arguments(reader):
    context, computed = Context(reader), []

    def count(context, factor):
        computed.append(factor)
        return factor * context.epochs

    assert [context.once(count, 1), context.once(count, 2), context.once(count, 1)] == [4, 8, 4]
    first = context.select(epochs=[0])
    assert first.once(count, 1) == context.select(epochs=[0]).once(count, 1) == 1
    assert computed == [1, 2, 1]


def test_a_reader_is_wrapped_and_a_context_is_not(reader):
    context = Context.of(reader)
    assert Context.of(context) is context


def test_arrays_are_not_copied():
    labels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    context = Context(ArrayReader(labels, SampleInfo(4, 24)))
    block = next(context.select(networks=[1], epochs=[0, 2]).blocks()).values
    assert np.shares_memory(block, labels)
    with pytest.raises(ValueError, match="read-only"):
        block[0] = 0


def test_a_context_can_be_sent_to_another_process(reader):
    context = Context(reader).select(networks=[1])
    context.once(np.size)
    copy = pickle.loads(pickle.dumps(context))
    np.testing.assert_array_equal(next(copy.blocks()).values[0, 2], labels_of(1, 2))


@pytest.mark.parametrize(
    ("text", "size"),
    [("", MEMORY), ("1000", 1000), ("2M", 2 << 20), ("1.5 GiB", 3 << 29), ("64kb", 1 << 16)],
)
def test_the_budget_is_a_size(monkeypatch, text, size):
    monkeypatch.setenv("ACCORD_MEMORY", text)
    assert memory_budget() == size


@pytest.mark.parametrize("text", ["much", "M", "-1", "1X", "nan", "inf"])
def test_another_budget_is_refused(monkeypatch, text):
    monkeypatch.setenv("ACCORD_MEMORY", text)
    with pytest.raises(ChoiceError, match="ACCORD_MEMORY must be a size such as 512M"):
        memory_budget()
