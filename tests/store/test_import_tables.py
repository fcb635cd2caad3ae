"""Tables with one row per vote are imported in any order of rows."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accord
from accord.errors import ChoiceError, SourceError
from accord.store import import_record

LABELS = np.random.default_rng(0).integers(0, 4, (2, 3, 5))
NAMES = ["owl", "cat", "dog", "ant"]  # not in order
HEADER = ("network", "epoch", "sample", "label")
AUM = (
    *("sample_id", "num_measurements", "target_logit", "target_val"),
    *("other_logit", "other_val", "margin", "aum"),
)


def rows_of(labels=LABELS, *, names=None):
    for place, label in np.ndenumerate(labels):
        yield (*place, names[label] if names else label)


def write(path, rows, header=HEADER):
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    path.write_text(text.getvalue(), newline="")
    return path


def imported(tmp_path, rows, header=HEADER, **options):
    read = import_record(
        write(tmp_path / "votes.csv", rows, header), tmp_path / "record", **options
    )
    return accord.open(tmp_path / "record"), read


def refused(tmp_path, rows, words, header=HEADER, kind=SourceError, **options):
    with pytest.raises(kind, match=words):
        imported(tmp_path, rows, header, **options)
    assert not (tmp_path / "record").exists()


@given(order=st.permutations(range(LABELS.size)))
def test_the_order_of_rows_does_not_matter(tmp_path_factory, order):
    rows = list(rows_of())
    record, read = imported(tmp_path_factory.mktemp("table"), [rows[i] for i in order])
    np.testing.assert_array_equal(record.labels[:], LABELS)
    assert record.ids.tolist() == [0, 1, 2, 3, 4]
    assert record.progress == (1.0, 2.0, 3.0)
    assert read == "labels of 2 networks, 3 epochs, 5 samples, 4 classes"


def test_labels_may_be_names_and_ids_texts(tmp_path):
    rows = [(n, e, f"image {9 - s}", name) for n, e, s, name in rows_of(names=NAMES)]
    record, _ = imported(tmp_path, rows)
    assert record.class_names == tuple(sorted(NAMES))
    assert record.ids.tolist() == [f"image {5 + s}" for s in range(5)]
    expected = np.array([sorted(NAMES).index(name) for name in NAMES])[LABELS][:, :, ::-1]
    np.testing.assert_array_equal(record.labels[:], expected)


def test_numbers_of_networks_epochs_and_samples_are_sorted_by_value(tmp_path):
    rows = [(n + 9, 5 * e + 5, s + 8, label) for n, e, s, label in rows_of()]
    record, _ = imported(tmp_path, rows[::-1])
    assert record.reader.numbers == (9, 10)
    assert record.progress == (5.0, 10.0, 15.0)
    assert record.ids.tolist() == [8, 9, 10, 11, 12]
    np.testing.assert_array_equal(record.labels[:], LABELS)


def test_names_of_networks_are_kept(tmp_path):
    record, _ = imported(tmp_path, [("ba"[n], *rest) for n, *rest in rows_of()])
    assert [info.metadata for info in record.networks_info] == [{"name": "a"}, {"name": "b"}]
    np.testing.assert_array_equal(record.labels[:], LABELS[::-1])


def test_truth_and_given_labels_come_in_columns(tmp_path):
    rows = [(*row[:3], row[3], row[2] % 4, 3 - row[2] % 4) for row in rows_of()]
    record, _ = imported(tmp_path, rows, (*HEADER, "truth", "given"), classes=6)
    assert record.truth.tolist() == [0, 1, 2, 3, 0]
    assert record.given.tolist() == [3, 2, 1, 0, 3]
    assert record.classes == 6


def test_parquet_and_tsv_hold_the_same(tmp_path):
    rows = list(rows_of(names=NAMES))
    imported(tmp_path, rows)
    table = dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(table), tmp_path / "votes.parquet")
    (tmp_path / "votes.tsv").write_text("\n".join("\t".join(map(str, r)) for r in (HEADER, *rows)))
    for ending in ("parquet", "tsv"):
        import_record(tmp_path / f"votes.{ending}", tmp_path / ending)
        same = accord.open(tmp_path / ending), accord.open(tmp_path / "record")
        np.testing.assert_array_equal(same[0].labels[:], same[1].labels[:])
        assert same[0].class_names == same[1].class_names
    table["label"][7] = None
    pq.write_table(pa.table(table), tmp_path / "gap.parquet")
    import_record(tmp_path / "gap.parquet", tmp_path / "gap")
    assert np.flatnonzero(accord.open(tmp_path / "gap").labels[:].mask.ravel()).tolist() == [7]


def test_an_empty_cell_is_a_missing_vote(tmp_path):
    rows = list(rows_of())
    rows[7] = (*rows[7][:3], "")
    record, read = imported(tmp_path, rows)
    assert np.flatnonzero(record.labels[:].mask.ravel()).tolist() == [7]
    assert read.endswith("; 3.3 % of the votes are missing")


def test_crowd_votes_may_lack_rows(tmp_path):
    rows = [("ann", "t1", "yes"), ("bob", "t2", "no"), ("ann", "t2", "yes"), ("eve", "t3", "no")]
    record, _ = imported(tmp_path, rows, ("worker", "task", "label"))
    assert record.class_names == ("no", "yes")
    assert record.labels[:, 0].tolist() == [[1, 1, None], [None, 0, None], [None, None, 0]]
    assert record.predict().labels.tolist() == [1, 0, 0]


def test_rows_that_training_did_not_write_are_refused(tmp_path):
    words = "no row of network 1, epoch 2, sample 4 .1 of 30 are absent.. Was the run interrupted"
    refused(tmp_path, list(rows_of())[:-1], words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: [*rows, rows[3]], "line 32 has the same network.*as line 5; 1 row too many"),
        (lambda rows: [*rows, (0, "x", 1, 2)], "line 32 has epoch 'x'; expected a number"),
        (lambda rows: [*rows, (0, "1.0", 1, 2)], "line 32 has epoch 1.0; others have 1"),
        (lambda rows: [*rows, (0, 1, "", 2)], "line 32 has no sample"),
        (lambda rows: [*rows, (0, 1, 2)], "line 32 has 3 cells; the header has 4"),
        (lambda rows: [*rows[:-1], (1, 2, 4, -1)], "line 31 has label -1. Leave the cell empty"),
        (lambda rows: [("01", *rows[0][1:]), *[(1, *r[1:]) for r in rows[1:]]], "01 and 1 have"),
        (lambda _: [], "has a header, but no rows"),
    ],
)
def test_bad_rows_are_refused_by_line(tmp_path, change, words):
    refused(tmp_path, change(list(rows_of())), rf"votes\.csv: .*{words}")


def test_contradicting_truth_is_refused_by_line(tmp_path):
    rows = [(*row, 0) for row in rows_of()]
    rows[11] = (*rows[11][:4], 1)
    refused(tmp_path, rows, "line 13 has no truth, or another than an", (*HEADER, "truth"))


def test_numbers_and_names_of_classes_do_not_mix(tmp_path):
    rows = [(*row, "cat") for row in rows_of()]
    refused(tmp_path, rows, "label has numbers and truth has names of", (*HEADER, "truth"))


def test_large_numbers_of_workers_are_names(tmp_path):
    rows = [(2_000_000, "q", 1), (1_500_000, "q", 0)]
    record, _ = imported(tmp_path, rows, ("worker", "task", "label"))
    assert record.reader.numbers == (0, 1)
    assert [info.metadata["name"] for info in record.networks_info] == ["1500000", "2000000"]
    assert record.labels[:, 0, 0].tolist() == [0, 1]


def test_unknown_columns_are_refused_with_the_expected_ones(tmp_path):
    refused(tmp_path, [(1, 2)], "no column 'sample'; it has a, b. Expected network", ("a", "b"))
    refused(tmp_path, rows_of(), "csv has neither axes", kind=ChoiceError, axes="sample")


# AUM


def aum_rows(logits, given):  # (epoch, sample, class), as the package aum computes them
    for sample, target in enumerate(given):
        for epoch, row in enumerate(logits[:, sample]):
            others = np.where(np.arange(len(row)) == target, -np.inf, row)
            other = int(others.argmax())
            values = (target, row[target], other, row[other], row[target] - row[other], 0.0)
            yield f"s{sample}", epoch + 1, *values


def test_aum_records_hold_the_predictions_and_the_given_labels(tmp_path):
    logits = np.random.default_rng(3).integers(-3, 4, (2, 3, 6, 4)).astype(float)  # with ties
    given_labels = [0, 1, 2, 3, 3, 0]
    for network, one in enumerate(logits):
        folder = tmp_path / f"aum/run{network}"
        folder.mkdir(parents=True)
        write(folder / "full_aum_records.csv", aum_rows(one, given_labels), AUM)
    import_record(tmp_path / "aum", tmp_path / "both")
    record = accord.open(tmp_path / "both")
    np.testing.assert_array_equal(record.labels[:], logits.argmax(axis=-1))
    assert record.given.tolist() == given_labels
    assert (record.split, record.truth) == ("train", None)
    assert record.ids.tolist() == [f"s{sample}" for sample in range(6)]
    import_record(tmp_path / "aum/run1/full_aum_records.csv", tmp_path / "one")
    np.testing.assert_array_equal(accord.open(tmp_path / "one").labels[:], record.labels[1:])


def test_faulty_aum_records_are_refused(tmp_path):
    (tmp_path / "aum").mkdir()
    rows = list(aum_rows(np.zeros((2, 3, 4)), [0, 1, 2]))
    path = tmp_path / "aum/full_aum_records.csv"
    for change, words in (
        (rows[:-1], "no row of network 0, epoch 2, sample s2"),
        ([*rows[:2], ("s1", 1, 0, "nan", 1, 2, 0, 0)], "line 4: the logits are nan and 2"),
        ([*rows[:2], ("s1", 1, 0)], "line 4: .*Was the file truncated"),
        ([*rows[:-1], ("s2", 2, 0, 1, 1, 2, 0, 0)], "line 7 has no given, or another"),
    ):
        write(path, change, AUM)
        with pytest.raises(SourceError, match=words):
            import_record(tmp_path / "aum", tmp_path / "record")
    write(tmp_path / "aum_values.csv", [("s0", 1.5)], ("sample_id", "aum"))
    with pytest.raises(SourceError, match=r"aum_values\.csv has no predictions"):
        import_record(tmp_path / "aum_values.csv", tmp_path / "record", format="aum")
