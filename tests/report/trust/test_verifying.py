"""What people verified comes back as it was drawn; a spoilt file is refused."""

import csv
import re

import numpy as np
import pytest

from accord.analysis import choose_to_verify, verified_accuracy
from accord.analysis._trust._verification_files import read_verification, write_verification
from accord.errors import ChoiceError, RecordExists, RecordMismatch, SourceError
from accord.store import make_sample_info

NAMES = [f"kind {label}" for label in range(4)]


@pytest.fixture
def queue(hard, tmp_path):
    """A file to decide in, the draw that it holds, and the facts it is about."""
    sample_info = make_sample_info(samples=1000, classes=4, ids=[f"i{n}" for n in range(1000)])
    sampling = choose_to_verify(hard.predict().scores, 60)
    write_verification(sampling, tmp_path / "queue.csv", sample_info=sample_info)
    return tmp_path / "queue.csv", sampling, sample_info


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def rewrite(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def decide(path, truth, change=None):
    rows = rows_of(path)
    for row in rows:
        row["decided"] = str(truth[int(row["sample"])])
    rewrite(path, rows if change is None else change(rows))


def test_the_file_holds_the_draw_and_not_what_was_predicted(queue):
    path, sampling, _ = queue
    rows = rows_of(path)
    assert list(rows[0]) == ["sample", "id", "stratum", "stratum_samples", "drawn", "decided"]
    drawn = np.bincount(sampling.strata)
    assert [int(row["drawn"]) for row in rows] == drawn[sampling.strata].tolist()
    assert [int(row["sample"]) for row in rows] == sampling.samples.tolist()
    assert rows[0]["id"] == f"i{sampling.samples[0]}"
    assert [int(row["stratum"]) for row in rows] == sampling.strata.tolist()
    assert {row["stratum_samples"] for row in rows} == {"200"}
    assert {row["decided"] for row in rows} == {""}


@pytest.mark.parametrize("change", [None, lambda rows: rows[::-1]])
def test_decisions_give_the_accuracy_in_whatever_order(queue, hard, change):
    path, sampling, sample_info = queue
    decide(path, hard.truth, change)
    verified = read_verification(path, sample_info=sample_info)
    for rule in ("max-agreement", "majority"):
        prediction = hard.predict(rule)
        right = (prediction.labels == hard.truth)[sampling.samples]
        assert verified.accuracy(prediction) == verified_accuracy(right, sampling)
    wide = verified.accuracy(prediction, confidence=0.99)
    assert wide.confidence == 0.99


def test_strata_of_unequal_size_keep_their_sizes(hard, tmp_path):
    path, sample_info = (
        tmp_path / "queue.csv",
        make_sample_info(samples=998, classes=4, class_names=NAMES),
    )
    sampling = choose_to_verify(hard.predict().scores[:998], 40)
    assert len(set(sampling.sizes.tolist())) == 2
    write_verification(sampling, path, sample_info=sample_info)
    assert "id" not in rows_of(path)[0]

    def last_first(rows):
        return sorted(rows, key=lambda row: -int(row["stratum"]))

    decide(path, [NAMES[label] for label in hard.truth], last_first)
    read = read_verification(path, sample_info=sample_info)
    np.testing.assert_array_equal(read.sampling.sizes, sampling.sizes)
    np.testing.assert_array_equal(read.sampling.strata, sampling.strata)
    np.testing.assert_array_equal(read.labels, hard.truth[sampling.samples])


def test_decisions_are_not_overwritten(queue, hard):
    path, sampling, sample_info = queue
    write_verification(sampling, path, sample_info=sample_info)  # nobody has decided yet
    decide(path, hard.truth, lambda rows: [rows[0], *(row | {"decided": " "} for row in rows[1:])])
    before = path.read_bytes()
    with pytest.raises(RecordExists, match=r"holds a decision of people.*--verified"):
        write_verification(sampling, path, sample_info=sample_info)
    assert path.read_bytes() == before


def test_decisions_behind_a_quote_that_is_left_open_are_not_overwritten(queue):
    path, sampling, sample_info = queue
    text = 'sample,id,decided\n3,"i3,2\n'
    path.write_text(text)
    with pytest.raises(RecordExists, match=r"no queue \(.*row of line 2 cannot be read"):
        write_verification(sampling, path, sample_info=sample_info)
    assert path.read_text() == text


@pytest.mark.parametrize("change", [lambda text: text.replace(",", ";"), str.title])
def test_decisions_in_another_form_are_not_overwritten(queue, hard, change):
    path, sampling, sample_info = queue
    decide(path, hard.truth)
    path.write_text(change(path.read_text()))
    before = path.read_bytes()
    with pytest.raises(RecordExists, match=r"queue\.csv: there is a file that is no queue"):
        write_verification(sampling, path, sample_info=sample_info)
    assert path.read_bytes() == before


def test_empty_rows_at_the_end_are_no_samples(queue, hard):
    path, _, sample_info = queue
    decide(path, hard.truth)
    path.write_text(path.read_text() + ",,,,,\n, ,,,,,,\n")
    assert len(read_verification(path, sample_info=sample_info).labels) == 60


def test_an_undecided_sample_is_counted(queue, hard):
    path, _, sample_info = queue
    decide(
        path, hard.truth, lambda rows: [*rows[:-2], *(row | {"decided": ""} for row in rows[-2:])]
    )
    with pytest.raises(SourceError, match=r"2 of 60 samples are not decided.*Decide them too"):
        read_verification(path, sample_info=sample_info)


def test_a_file_of_another_record_is_refused(queue, hard):
    path, _, _ = queue
    decide(path, hard.truth)
    other = make_sample_info(samples=1001, classes=4, ids=[f"i{n}" for n in range(1001)])
    with pytest.raises(RecordMismatch, match=r"strata have 1000 samples; the record has 1001"):
        read_verification(path, sample_info=other)
    with pytest.raises(RecordMismatch, match=r"the record has no ids"):
        read_verification(path, sample_info=make_sample_info(samples=1000, classes=4))


def another(rows):
    drawn = {row["sample"] for row in rows}
    sample = next(number for number in range(1000) if str(number) not in drawn)
    return rows[0] | {"sample": str(sample), "id": f"i{sample}"}


def only(rows, **changed):
    return [row | changed for row in rows]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda rows: [{k: v for k, v in row.items() if k != "stratum"} for row in rows],
            "it has no stratum. Decide in the file that",
        ),
        (lambda rows: only(rows, stratum="x"), "must be whole numbers"),
        (lambda rows: rows[1:], "18 samples of stratum 0 were drawn, and fewer are there: 17. "),
        (lambda rows: [*rows, another(rows)], "were drawn, and more are there: "),
        (lambda rows: only(rows, sample=""), "must be whole numbers"),
        (lambda rows: only(rows, stratum="1"), "strata must be 0, 1 … with one size each"),
        (lambda rows: [rows[0] | {"stratum_samples": "9"}, *rows[1:]], "Were rows changed"),
        (
            lambda rows: (
                [row for row in rows if row["stratum"] != "0"]
                + [row for row in rows if row["stratum"] == "0"][:1]
            ),
            "2 samples or more",
        ),
    ],
)
def test_a_spoilt_file_is_refused(queue, hard, change, told):
    path, _, sample_info = queue
    decide(path, hard.truth, change)
    with pytest.raises(SourceError, match=re.escape(told)):
        read_verification(path, sample_info=sample_info)


def test_files_are_csv(queue, tmp_path):
    _, sampling, sample_info = queue
    with pytest.raises(ChoiceError, match=r"a queue is written as \.csv; got '\.json'"):
        write_verification(sampling, tmp_path / "queue.json", sample_info=sample_info)
    with pytest.raises(ChoiceError, match=r"verified samples are read from \.csv; got '\.json'"):
        read_verification(tmp_path / "queue.json", sample_info=sample_info)


def test_a_file_that_cannot_be_read_is_told(queue, tmp_path):
    _, sampling, sample_info = queue
    with pytest.raises(SourceError, match=r"gone\.csv: cannot be read"):
        read_verification(tmp_path / "gone.csv", sample_info=sample_info)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(RecordExists, match=r"bytes\.csv: .* no queue.* Name another one"):
        write_verification(sampling, tmp_path / "bytes.csv", sample_info=sample_info)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(RecordExists, match=r"folder\.csv: there is a folder.* Name another file"):
        write_verification(sampling, tmp_path / "folder.csv", sample_info=sample_info)
