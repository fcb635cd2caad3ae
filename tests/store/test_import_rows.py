"""Rows of labels, probabilities or logits are told apart, checked and stacked; votes may miss."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accord
from accord.analysis._record_notes import record_notes
from accord.errors import PredictionError, RecordExists, VotesMissing
from accord.rules import all_rules
from accord.store import check_record, describe, import_arrays, open_reader, pack_record
from accord.store._import_rows import kind_of, stack_rows

LABELS = np.random.default_rng(0).integers(0, 4, (2, 3, 10))
LABELS[0, 0, 0] = 3
LOGITS = np.random.default_rng(1).normal(0, 3, (2, 3, 10, 4))
WHOLE = range(2), range(3), slice(None)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# The kind of an array


def test_the_kind_of_a_table_follows_from_its_entries():
    assert kind_of("a", np.array([3, 0, 1])) == "labels"
    assert kind_of("a", np.array([3.0, 0.0])) == "labels"
    assert kind_of("a", softmax(LOGITS[0, 0])) == "probabilities"
    assert kind_of("a", np.eye(3)) == "probabilities"
    assert kind_of("a", LOGITS[0, 0]) == "logits"
    assert kind_of("a", np.array([[0.5, 1.5]])) == "logits"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array([[0.2, 0.3], [0.5, 0.5]]), r"x: all entries lie in 0\.\.1, but .* 0\.5\.\.1"),
        (np.array([[1, 0], [0, 1]]), "x: a table of int64 is ambiguous"),
        (np.array([[0.1], [0.9]]), r"x: .*got shape \(2, 1\)"),
        (np.zeros((2, 2, 2)), r"x: .*got shape \(2, 2, 2\)"),
        (np.array([]), r"x: .*got shape \(0,\)"),
        (np.zeros((0, 3)), r"x: .*got shape \(0, 3\)"),
        (np.array([0.5, 1.0]), r"x: labels must be whole numbers; got 0\.5.*axis of classes"),
        (np.array([[np.nan, 1.0]]), "x: has NaN or infinity"),
    ],
)
def test_ambiguous_tables_are_refused(values, words):
    with pytest.raises(PredictionError, match=words):
        kind_of("x", values)


@given(st.data())
def test_labels_are_those_of_the_largest_entry_before_rounding(data):
    logits = np.array(
        data.draw(
            st.lists(st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=3), min_size=1)
        )
    )
    logits[0, 0] = -5.0  # not a probability
    gathered = stack_rows([[("a", logits)]])
    by_definition = [max(range(3), key=lambda c: row[c]) for row in logits]
    np.testing.assert_array_equal(gathered.labels[0, 0], by_definition)
    np.testing.assert_allclose(gathered.probabilities[0, 0], softmax(logits), atol=1e-3)


# Arrays in memory


@pytest.mark.parametrize("values", [LABELS, LABELS.tolist(), [list(one) for one in LABELS]])
def test_arrays_are_imported(tmp_path, values):
    import_arrays(tmp_path / "record", values, truth=LABELS[0, 0], class_names=list("abcde"))
    rows = open_reader(tmp_path / "record")
    np.testing.assert_array_equal(rows.read_labels(*WHOLE), LABELS)
    assert (rows.classes, rows.sample_info.split) == (5, "test")
    np.testing.assert_array_equal(rows.sample_info.truth, LABELS[0, 0])


def test_arrays_of_probabilities_are_imported(tmp_path):
    options = {"split": "train", "given": LABELS[0, 0], "ids": range(10), "truth": None}
    import_arrays(tmp_path / "record", softmax(LOGITS), **options)
    rows = open_reader(tmp_path / "record")
    np.testing.assert_array_equal(rows.read_labels(*WHOLE), LOGITS.argmax(axis=-1))
    assert rows.sample_info.split == "train"
    assert rows.sample_info.truth is None
    np.testing.assert_array_equal(rows.sample_info.ids, np.arange(10))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "at least one network"),
        ([[]], "at least one epoch"),
        ([[[0, 1]], [[0, 1], [1, 1]]], "the same number of epochs; got 1, 2"),
        ([[[0, 1], [0, 1, 1]]], r"network 0, epoch 1: has shape \(3,\), but network 0, epoch 0"),
        ([0, 1], "not iterable"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, values, words):
    with pytest.raises((PredictionError, TypeError), match=words):
        import_arrays(tmp_path / "record", values)
    assert not (tmp_path / "record").exists()


def test_arrays_do_not_overwrite_and_unknown_arguments_are_refused(tmp_path):
    with pytest.raises(TypeError, match="unexpected argument 'thruth'"):
        import_arrays(tmp_path / "record", LABELS, thruth=LABELS[0, 0])
    (tmp_path / "record").mkdir()
    with pytest.raises(RecordExists, match="exists; choose another"):
        import_arrays(tmp_path / "record", LABELS)


# Missing votes

GAPS = np.random.default_rng(2).random((2, 3, 10)) < 0.3
GAPS[:, :, 4] = True  # nobody votes for this sample
VOTES = np.ma.masked_array(LABELS, GAPS)


def slow_winner(votes, classes):  # of one sample, None where missing
    counts = [sum(vote == label for vote in votes) for label in range(classes)]
    return counts.index(max(counts)) if any(counts) else -1


def with_gaps(tmp_path, **options):
    import_arrays(tmp_path / "gaps", VOTES, truth=LABELS[0, 0], **options)
    return accord.open(tmp_path / "gaps")


def test_masked_elements_and_nan_are_missing_votes(tmp_path):
    record = with_gaps(tmp_path)
    np.testing.assert_array_equal(record.labels[:].mask, GAPS)
    np.testing.assert_array_equal(record.labels[:].filled(9), VOTES.filled(9))
    np.testing.assert_array_equal(record.labels[1, -1].filled(9), VOTES[1, -1].filled(9))
    import_arrays(tmp_path / "nan", np.where(GAPS, np.nan, LABELS))
    again = accord.open(tmp_path / "nan").labels[:]
    np.testing.assert_array_equal(again.filled(9), VOTES.filled(9))
    assert (record.labels == record.truth).mean() == (LABELS[0, 0] == VOTES).mean()
    with pytest.raises(VotesMissing, match=r"record\.labels\[:\] is a masked array"):
        np.asarray(record.labels)


def test_a_list_of_masked_rows_is_imported(tmp_path):
    import_arrays(tmp_path / "gaps", [[list(epoch) for epoch in one] for one in VOTES])
    np.testing.assert_array_equal(accord.open(tmp_path / "gaps").labels[:].mask, GAPS)


@given(data=st.data())
def test_counts_leave_missing_votes_out(tmp_path_factory, data):
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * 3))
    classes = data.draw(st.integers(1, 3))
    cell = st.one_of(st.none(), st.integers(0, classes - 1))
    flat = data.draw(st.lists(cell, min_size=math.prod(shape), max_size=math.prod(shape)))
    flat[0] = 0  # a record needs a vote
    votes = np.reshape(np.array(flat, object), shape)
    path = tmp_path_factory.mktemp("record") / "gaps"
    masked = np.ma.masked_array([[[v or 0 for v in e] for e in n] for n in votes], votes == None)  # noqa: E711
    import_arrays(path, masked, classes=classes)
    record = accord.open(path)
    columns = votes.reshape(-1, shape[2]).T.tolist(), votes[:, -1].T.tolist()
    for rule, cells in zip(("max-agreement", "majority"), columns, strict=True):
        found = record.predict(rule)
        labels = [slow_winner(column, classes) for column in cells]
        assert found.labels.tolist() == labels
        cast = [[vote for vote in column if vote is not None] for column in cells]
        shares = [
            c.count(label) / len(c) if c else 0 for c, label in zip(cast, labels, strict=True)
        ]
        np.testing.assert_allclose(found.scores, shares)


def test_missing_rows_of_probabilities_do_not_count(tmp_path):
    tables = softmax(LOGITS)
    masked = np.ma.masked_array(tables, np.broadcast_to(GAPS[..., None], tables.shape))
    import_arrays(tmp_path / "gaps", masked)
    record = accord.open(tmp_path / "gaps")
    half = tables.astype(np.float16).astype(float) * ~GAPS[..., None]
    for rule, part, cast in (
        ("soft-agreement", half.sum(axis=(0, 1)), ~GAPS),
        ("probability-average", half[:, -1].sum(axis=0), ~GAPS[:, -1:]),
    ):
        count = cast.sum(axis=(0, 1))
        found = record.predict(rule)
        np.testing.assert_array_equal(found.labels, np.where(count, part.argmax(axis=-1), -1))
        np.testing.assert_allclose(found.scores, part.max(axis=-1) / np.maximum(count, 1))


def test_rules_that_need_every_vote_refuse_by_name(tmp_path):
    record = with_gaps(tmp_path)
    skipping = {"max-agreement", "majority", "soft-agreement", "probability-average"}
    for name in all_rules().keys() - skipping:
        with pytest.raises(VotesMissing, match=f"some votes are missing, and {name} requires all"):
            record.predict(name)
    assert {one.rule for one in record.score()} == {"majority", "max-agreement"}
    assert record.recommend().rule == "max-agreement"
    assert record_notes(record.reader)[0].startswith("some votes are missing: only rules")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("audit", "the audit requires"),
        ("watch", "detecting overfitting requires"),
        ("margin", "the margin requires"),
        ("final_margin", "the final margin requires"),
        ("persistence", "persistence requires"),
        ("forgetting", "forgetting requires"),
        ("network_health", "the health of networks requires"),
        ("agreement", "the agreement by class requires"),
        ("fit", "dawid-skene requires"),
    ],
)
def test_analyses_that_need_every_vote_refuse_by_name(tmp_path, method, words):
    record = with_gaps(tmp_path)
    with pytest.raises(VotesMissing, match=f"gaps: some votes are missing, and {words}"):
        getattr(record, method)()
    with pytest.raises(VotesMissing, match="this requires all of them"):
        next(record.reader.blocks())


def test_curves_and_sweeps_leave_missing_votes_out(tmp_path):
    record = with_gaps(tmp_path)
    truth = record.truth
    for rule in ("max-agreement", "majority"):
        after = [record.select(epochs=slice(0, e + 1)).predict(rule).labels for e in range(3)]
        expected = [(labels == truth).mean() for labels in after]
        np.testing.assert_allclose(record.curve(rule).accuracy, expected)
        one = [(record.select(networks=[n]).predict(rule).labels == truth).mean() for n in (0, 1)]
        np.testing.assert_allclose(record.by_networks(rule).accuracies[0], one)


def test_missing_votes_survive_selection_packing_and_little_memory(tmp_path, monkeypatch):
    record = with_gaps(tmp_path)
    some = record.select(networks=[1], epochs=[0, 2])
    np.testing.assert_array_equal(some.labels[:].filled(9), VOTES[1:, ::2].filled(9))
    pack_record(tmp_path / "gaps", tmp_path / "copy.zip", epochs=slice(1, None))
    copy = accord.open(tmp_path / "copy.zip")
    np.testing.assert_array_equal(copy.labels[:].filled(9), VOTES[:, 1:].filled(9))
    assert describe(tmp_path / "copy.zip").missing == GAPS[:, 1:].mean()
    expected = record.predict().labels
    monkeypatch.setenv("ACCORD_MEMORY", "1")
    np.testing.assert_array_equal(accord.open(tmp_path / "gaps").predict().labels, expected)


def test_a_record_with_as_many_classes_as_a_byte_holds_keeps_missing_votes_apart(tmp_path):
    votes = np.ma.masked_array([[[255, 0, 255]]], [[[False, False, True]]])
    import_arrays(tmp_path / "wide", votes, classes=256)
    assert accord.open(tmp_path / "wide").labels[0, 0].tolist() == [255, 0, None]
    assert accord.open(tmp_path / "wide").predict().labels.tolist() == [255, 0, -1]


def test_check_finds_damaged_missing_votes(tmp_path):
    with_gaps(tmp_path)
    assert check_record(tmp_path / "gaps").findings == ()
    root = tmp_path / "gaps/zarr.json"
    text = root.read_text()
    root.write_text(text.replace(f'"missing_votes": {GAPS.sum()}', '"missing_votes": 3'))
    found = check_record(tmp_path / "gaps")
    assert [one.text for one in found.findings] == [
        f"zarr.json states 3 missing votes; missing has {GAPS.sum()}"
    ]
    root.write_text(text)
    chunk = tmp_path / "gaps/missing/c.0.0.0"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert (
        "the marks of missing votes cannot be read"
        in check_record(tmp_path / "gaps").findings[0].text
    )
    chunk.unlink()
    assert not check_record(tmp_path / "gaps").sound


def test_a_record_whose_missing_votes_were_deleted_is_refused(tmp_path):
    with_gaps(tmp_path)
    (tmp_path / "gaps/missing/zarr.json").rename(tmp_path / "kept")
    with pytest.raises(accord.AccordError, match="format 2 must have an array missing"):
        open_reader(tmp_path / "gaps")
    (tmp_path / "kept").rename(tmp_path / "gaps/missing/zarr.json")
    root = tmp_path / "gaps/zarr.json"
    root.write_text(root.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(accord.AccordError, match="format 1 must not have an array missing"):
        open_reader(tmp_path / "gaps")


def test_minus_one_is_no_missing_vote(tmp_path):
    with pytest.raises(PredictionError, match=r"0\.\.3 for 4 classes; got -1\.\.3.*as NaN"):
        import_arrays(tmp_path / "record", np.where(GAPS, -1, LABELS))
    with pytest.raises(PredictionError, match="every vote is missing"):
        import_arrays(tmp_path / "record", np.full((1, 1, 3), np.nan))
