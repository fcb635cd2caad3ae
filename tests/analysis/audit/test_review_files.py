import csv
import dataclasses
import json

import numpy as np
import pytest
from memorised import NAMES

from accord.analysis._audit._review import (
    Decisions,
    corrected_labels,
    review_queue,
)
from accord.analysis._audit._review_files import (
    check_writable,
    read_decisions,
    write_audit,
    write_labels,
    write_probabilities,
    write_queue,
)
from accord.data.noise import labels_from_file
from accord.errors import ChoiceError, RecordExists, RecordMismatch, SourceError, StorageError
from accord.store import SampleInfo


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def decide(path, text):
    """Write a .csv file of decisions as a person would."""
    path.write_text(text.replace(" ", "\n") + "\n")
    return path


def test_an_audit_is_written_for_other_tools(found, record, tmp_path):
    path = tmp_path / "audit.csv"
    write_audit(found, path, sample_info=record.sample_info)
    rows = read_rows(path)
    assert list(rows[0]) == [
        "sample", "id", "given", "given_name", "proposed", "proposed_name",
        "suspicion", "log_odds", "agreement_given", "agreement_proposed", "flagged",
    ]  # fmt: skip
    assert [int(row["sample"]) for row in rows] == found.ranking.tolist()
    worst, first = found.ranking[0], rows[0]
    assert first["id"] == f"image-{worst}"
    assert int(first["given"]) == found.given[worst]
    assert first["proposed_name"] == NAMES[found.proposed[worst]]
    for what in ("suspicion", "log_odds", "agreement_given", "agreement_proposed"):
        assert float(first[what]) == pytest.approx(getattr(found, what)[worst], abs=1e-6)
    assert [row["flagged"] for row in rows] == [str(int(f)) for f in found.flagged[found.ranking]]


def test_without_ids_and_names_there_are_no_such_columns(found, tmp_path):
    write_audit(found, tmp_path / "audit.csv", sample_info=SampleInfo(600, 5))
    assert list(read_rows(tmp_path / "audit.csv")[0])[:4] == [
        "sample", "given", "proposed", "suspicion",
    ]  # fmt: skip


def test_decisions_come_back_from_a_csv_queue(found, record, tmp_path):
    path, truth = tmp_path / "queue.csv", record.truth()
    write_queue(found, review_queue(found, 50), path, sample_info=record.sample_info)
    rows = read_rows(path)
    assert [row["decided"] for row in rows] == [""] * 50
    for row in rows[:40]:  # people decide on 40 of the 50, by name or number
        label = truth[int(row["sample"])]
        row["decided"] = f" {NAMES[label]}" if int(row["sample"]) % 2 else label
    write_rows(path, rows)
    decisions = read_decisions(path, sample_info=record.sample_info)
    assert decisions.samples.tolist() == sorted(found.ranking[:40].tolist())
    assert decisions.labels.tolist() == truth[decisions.samples].tolist()
    assert len(decisions) == 40


def test_decisions_come_back_by_ids_with_line_breaks(found, tmp_path):
    ids = np.array([f"image\r{sample}\n" for sample in range(600)])
    path, sample_info = tmp_path / "queue.csv", SampleInfo(600, 5, ids=ids)
    write_queue(found, found.ranking[:3], path, sample_info=sample_info)
    rows = read_rows(path)
    assert [row["id"] for row in rows] == ids[found.ranking[:3]].tolist()
    write_rows(path, [{"id": row["id"], "decided": "2"} for row in rows])
    assert read_decisions(path, sample_info=sample_info).samples.tolist() == sorted(
        found.ranking[:3].tolist()
    )


def test_a_link_leads_to_the_sample(found, record, tmp_path):
    queue = review_queue(found, 3)
    link = "https://host/{id}.png?at={sample}"
    write_queue(found, queue, tmp_path / "queue.csv", sample_info=record.sample_info, link=link)
    expected = [f"https://host/image-{sample}.png?at={sample}" for sample in queue]
    assert [row["link"] for row in read_rows(tmp_path / "queue.csv")] == expected
    write_queue(found, queue, tmp_path / "queue.json", sample_info=record.sample_info, link=link)
    tasks = json.loads((tmp_path / "queue.json").read_text())
    assert [task["data"]["image"] for task in tasks] == expected
    assert tasks[0]["predictions"][0]["result"][0]["to_name"] == "image"
    write_queue(found, queue, tmp_path / "queue.csv", sample_info=SampleInfo(600, 5), link="{id}")
    assert read_rows(tmp_path / "queue.csv")[0]["link"] == str(queue[0])
    for wrong in ("{name}", "{0}", "{", "{sample.__class__}", "{sample:>9}", "{id!r}", "{{id}}"):
        with pytest.raises(ChoiceError, match=r"may hold \{id\} and \{sample\}"):
            write_queue(
                found, queue, tmp_path / "q.csv", sample_info=record.sample_info, link=wrong
            )


def test_what_a_link_is_filled_with_is_quoted(found, tmp_path):
    sample_info = SampleInfo(600, 5, ids=np.full(600, "a b/ü#1?.x"))
    link = "https://h/{id}.png?at={sample}"
    write_queue(found, found.ranking[:1], tmp_path / "q.csv", sample_info=sample_info, link=link)
    filled = f"https://h/a%20b/%C3%BC%231%3F.x.png?at={found.ranking[0]}"
    assert read_rows(tmp_path / "q.csv")[0]["link"] == filled


def test_what_a_link_is_filled_with_is_not_filled_again(found, tmp_path):
    sample_info = SampleInfo(600, 5, ids=np.full(600, "{sample}{id}"))
    write_queue(
        found, found.ranking[:1], tmp_path / "q.csv", sample_info=sample_info, link="x/{id}"
    )
    assert read_rows(tmp_path / "q.csv")[0]["link"] == "x/%7Bsample%7D%7Bid%7D"


def test_a_queue_is_not_written_over_decisions(found, record, tmp_path):
    path, sample_info = tmp_path / "queue.csv", record.sample_info
    path.touch()
    write_queue(found, found.ranking[:3], path, sample_info=sample_info)
    write_queue(found, found.ranking[:4], path, sample_info=sample_info)  # nobody decided yet
    rows = read_rows(path)
    rows[1]["decided"] = "bee"
    write_rows(path, rows)
    before = path.read_bytes()
    with pytest.raises(RecordExists, match=r"queue\.csv: holds a decision\. Name another"):
        write_queue(found, found.ranking[:3], path, sample_info=sample_info)
    rows[2]["decided"] = "bee"
    write_rows(path, rows)
    with pytest.raises(RecordExists, match=r"2 decisions.* --decisions .*queue\.csv"):
        check_writable(path, "queue")
    assert len(before) < len(path.read_bytes())


@pytest.mark.parametrize("name", ["queue.csv", "queue.json"])
@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n", "[1]", "{", 'link,decided\n"x,1\n', "[" * 100_000, f"[{'9' * 5000}]"]
)
def test_a_queue_is_not_written_over_something_else(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(RecordExists, match=r"not a queue \(.*Name another one"):
        check_writable(tmp_path / name, "queue")
    assert (tmp_path / name).read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "sample,decided\n3,bee\n",
        "sample;decided\n3;bee\n",
        "sample\tdecided\n3\tbee\n",
        "Sample,Decided\n3,bee\n",
    ],
)
def test_audits_and_labels_are_not_written_over_decisions(found, record, tmp_path, text):
    path = tmp_path / "decided.csv"
    path.write_text(text)
    with pytest.raises(RecordExists, match=r"decided\.csv: (holds a decision|.* not an audit)"):
        write_audit(found, path, sample_info=record.sample_info)
    with pytest.raises(
        RecordExists, match=r"decided\.csv: (holds a decision|.* not a file of labels)"
    ):
        write_labels(found.given, path)
    assert path.read_text() == text


def test_audits_and_labels_are_written_over_their_like_and_over_an_empty_queue(
    found, record, tmp_path
):
    path = tmp_path / "file.csv"
    for sample_info in (record.sample_info, SampleInfo(600, 5), record.sample_info):
        write_audit(found, path, sample_info=sample_info)
    path.unlink()
    write_queue(found, found.ranking[:3], path, sample_info=record.sample_info)
    write_audit(found, path, sample_info=record.sample_info)
    path.unlink()
    for _ in range(2):
        write_labels(found.given, path)
    for columns in ("sample,given", "given,sample,proposed"):
        path.write_text(f"{columns}\n")
        with pytest.raises(RecordExists, match=r"this file exists and is not an audit"):
            write_audit(found, path, sample_info=record.sample_info)


def test_a_folder_is_not_written_over(tmp_path):
    (tmp_path / "queue.csv").mkdir()
    with pytest.raises(RecordExists, match=r"a folder of that name exists\. Name another file"):
        check_writable(tmp_path / "queue.csv", "queue")


@pytest.mark.parametrize("document", ["[" * 100_000, f"[{'9' * 5000}]"])
def test_json_that_no_reader_takes_is_refused(document, record, tmp_path):
    path = tmp_path / "export.json"
    path.write_text(document)
    with pytest.raises(SourceError, match=r"export\.json: cannot be read"):
        read_decisions(path, sample_info=record.sample_info)


def test_decisions_go_by_sample_or_id(record, tmp_path):
    path = tmp_path / "decided.csv"
    by_sample = read_decisions(
        decide(path, "sample,decided 5,bee 3,0"), sample_info=record.sample_info
    )
    by_id = read_decisions(
        decide(path, "id,decided image-5,1 image-3,ant"), sample_info=record.sample_info
    )
    for decisions in (by_sample, by_id):
        assert (decisions.samples.tolist(), decisions.labels.tolist()) == ([3, 5], [0, 1])


def test_a_row_may_end_in_empty_cells(record, tmp_path):
    path = decide(tmp_path / "decided.csv", "sample,decided 3,bee,, 4,cat")
    assert read_decisions(path, sample_info=record.sample_info).samples.tolist() == [3, 4]


def test_a_spreadsheets_byte_order_mark_is_no_part_of_a_name(record, tmp_path):
    path = tmp_path / "decided.csv"
    path.write_text("\ufeffsample,decided\n5,bee\n", encoding="utf-8")
    assert read_decisions(path, sample_info=record.sample_info).samples.tolist() == [5]


MISLEADING = ("4", "3", "2", "1", "0")


def test_where_names_are_other_classes_numbers_classes_go_by_name(tmp_path):
    sample_info = SampleInfo(9, 2, given=np.zeros(9, int), class_names=("1", "0"))
    path = decide(tmp_path / "decided.csv", "sample,given,decided 5,1,1 6,1,0")
    assert read_decisions(path, sample_info=sample_info).labels.tolist() == [0, 1]
    path = decide(tmp_path / "decided.csv", "sample,given,decided 5,0,1")
    with pytest.raises(RecordMismatch, match=r"given label 1 in the record \(by name: .*not 0"):
        read_decisions(path, sample_info=sample_info)
    sample_info = SampleInfo(9, 3, class_names=("1", "b", "c"))
    with pytest.raises(SourceError, match="'2' is none of the 3 classes"):
        read_decisions(
            decide(tmp_path / "decided.csv", "sample,decided 5,2"), sample_info=sample_info
        )


def test_to_copy_what_is_given_changes_nothing(found, record, tmp_path):
    sample_info = dataclasses.replace(record.sample_info, class_names=MISLEADING)
    write_queue(found, found.ranking[:9], tmp_path / "queue.csv", sample_info=sample_info)
    rows = read_rows(tmp_path / "queue.csv")
    assert "given_name" not in rows[0]
    for what, labels in (("given", found.given), ("proposed", found.proposed)):
        for row in rows:
            row["decided"] = row[what]
        write_rows(tmp_path / "decided.csv", rows)
        decisions = read_decisions(tmp_path / "decided.csv", sample_info=sample_info)
        np.testing.assert_array_equal(decisions.labels, labels[decisions.samples])


def test_names_that_are_their_own_numbers_mislead_nobody(found, record, tmp_path):
    sample_info = dataclasses.replace(record.sample_info, class_names=("0", "1", "2", "3", "4"))
    write_queue(found, found.ranking[:2], tmp_path / "queue.csv", sample_info=sample_info)
    row = read_rows(tmp_path / "queue.csv")[0]
    assert row["given"] == row["given_name"] == str(found.given[found.ranking[0]])


PADDED = (" <=50K", " >50K")


@pytest.mark.parametrize("decided", [" >50K", ">50K", " >50K ", "1"])
def test_blanks_around_a_name_are_no_matter(tmp_path, decided):
    path = tmp_path / "decided.csv"
    path.write_text(f"sample,decided\n5,{decided}\n")
    decisions = read_decisions(path, sample_info=SampleInfo(9, 2, class_names=PADDED))
    assert decisions.labels.tolist() == [1]


def test_blanks_alone_decide_nothing(record, tmp_path):
    path = tmp_path / "decided.csv"
    path.write_text("sample,decided\n5,  \n6,bee\n")
    assert read_decisions(path, sample_info=record.sample_info).samples.tolist() == [6]


def test_names_that_differ_in_blanks_only_are_distinguished(tmp_path):
    path = tmp_path / "decided.csv"
    path.write_text("sample,decided\n5,cat\n6, cat\n7,2\n")
    decisions = read_decisions(
        path, sample_info=SampleInfo(9, 3, class_names=(" cat", "cat", "dog"))
    )
    assert decisions.labels.tolist() == [1, 0, 2]


def test_blanks_do_not_hide_that_names_are_other_classes_numbers(tmp_path):
    sample_info = SampleInfo(9, 2, class_names=(" 1", " 0"))
    path = decide(tmp_path / "decided.csv", "sample,decided 5,1 6,0")
    assert read_decisions(path, sample_info=sample_info).labels.tolist() == [0, 1]


@pytest.mark.parametrize("names", [("cat", "cat", "dog"), (" cat", "cat ", "dog")])
def test_a_name_of_two_classes_decides_nothing(tmp_path, names):
    sample_info = SampleInfo(9, 3, class_names=names)
    path = decide(tmp_path / "decided.csv", "sample,decided 5,cat")
    with pytest.raises(SourceError, match=r"line 2: 'cat' is the name of classes 0 and 1.*number"):
        read_decisions(path, sample_info=sample_info)
    path = decide(tmp_path / "decided.csv", "sample,decided 5,1 6,dog")
    assert read_decisions(path, sample_info=sample_info).labels.tolist() == [1, 2]


def test_numbers_that_pandas_saved_beside_gaps_are_whole(tmp_path):
    path = decide(tmp_path / "decided.csv", "sample,decided 5,2.0 6, 7,0.0")
    assert read_decisions(path, sample_info=SampleInfo(9, 3)).labels.tolist() == [2, 0]
    named = SampleInfo(9, 3, class_names=("0.0", "2.0", "x"))
    assert read_decisions(path, sample_info=named).labels.tolist() == [1, 0]
    for text in ("1.5", "-1.0", "3.0", "1.0.0"):
        path = decide(tmp_path / "decided.csv", f"sample,decided 5,{text}")
        with pytest.raises(SourceError, match=rf"'{text}' is none of the 3 classes"):
            read_decisions(path, sample_info=SampleInfo(9, 3))


def test_another_encoding_is_refused_with_the_cure(record, tmp_path):
    path = tmp_path / "decided.csv"
    path.write_bytes("sample,decided\n5,é\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"decided\.csv: cannot be read: .*Save it as UTF-8$"):
        read_decisions(path, sample_info=record.sample_info)


def test_the_same_decision_twice_is_one(record, tmp_path):
    path = decide(tmp_path / "decided.csv", "sample,decided 5,bee 5,1")
    assert len(read_decisions(path, sample_info=record.sample_info)) == 1


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (
            "sample,decided 600,bee",
            RecordMismatch,
            r"line 2: samples must lie in 0\.\.599; got '600",
        ),
        (
            "sample,decided -1,bee",
            RecordMismatch,
            r"0\.\.599; got '-1'.*another record\?",
        ),
        ("id,decided image-600,bee", RecordMismatch, r"id 'image-600': not in the record"),
        ("sample,id,decided 3,image-4,bee", RecordMismatch, r"'image-4' is sample 4 .* not 3"),
        ("sample,decided 3,bee 4,be", SourceError, r"line 3: 'be' is none of the 5 classes.*'bee'"),
        ("sample,decided 3,5", SourceError, r"'5' is none of the 5 classes.*ant, bee, cat"),
        (
            "sample,decided 3,bee 3,cat",
            SourceError,
            r"sample 3 is decided as cat, and as bee before",
        ),
        ("sample,decided 3,", SourceError, r"holds no decision"),
        ("sample,decided", SourceError, r"holds no decision"),
        ("name,decided a,bee", SourceError, r"line 2 has neither a sample nor an id"),
        ("sample,label 3,bee", SourceError, r"a column 'decided'.*it has sample, label"),
        ("sample;decided 3;bee", SourceError, r"it has sample;decided.*commas between"),
        ("", SourceError, r"a column 'decided'"),
        ("sample,\tdecided 3,bee", SourceError, r"it has sample, \tdecided$"),
        ("sample,decided,decided 3,bee,cat", SourceError, r"it has 2 columns 'decided'\. Keep"),
        ("id,sample,id,decided image-3,3,x,bee", SourceError, r"it has 2 columns 'id'"),
        (
            "sample,decided 3,bee,cat",
            SourceError,
            r"line 2 has 3 cells for 2 columns.*in quotation",
        ),
        (
            'sample,link,decided 3,x,bee 4,"y,cat 5,z,bee',
            SourceError,
            r"the row of line 3 cannot be read: .*Is a quotation mark missing\?",
        ),
        ('sample,decided 3,"be"e', SourceError, r"the row of line 2 cannot be read"),
        ('sample,"decided 3,bee', SourceError, r"cannot be read: unexpected end"),
        (f"sample,decided {'9' * 5000},bee", RecordMismatch, r"samples must lie in 0\.\.599"),
    ],
)
def test_decisions_that_do_not_fit_are_refused(record, tmp_path, text, error, words):
    with pytest.raises(error, match=words):
        read_decisions(decide(tmp_path / "decided.csv", text), sample_info=record.sample_info)


def test_decisions_about_other_labels_are_refused(record, tmp_path):
    given = int(record.sample_info.given[3])
    path = decide(tmp_path / "decided.csv", f"sample,given,decided 3,{given},bee")
    read_decisions(path, sample_info=record.sample_info)
    other = NAMES[(given + 1) % 5]
    path = decide(tmp_path / "decided.csv", f"sample,given,decided 3,{other},bee")
    words = (
        f"sample 3 has the given label {NAMES[given]} in the record, not {other}.*another record"
    )
    with pytest.raises(RecordMismatch, match=words):
        read_decisions(path, sample_info=record.sample_info)


def test_ids_are_of_no_use_to_a_record_without(tmp_path):
    path = decide(tmp_path / "decided.csv", "id,decided a,0")
    with pytest.raises(RecordMismatch, match="id 'a': the record has no ids"):
        read_decisions(path, sample_info=SampleInfo(9, 2))


@pytest.mark.parametrize("name", ["missing.csv", "missing.json"])
def test_files_that_cannot_be_read_are_refused(record, tmp_path, name):
    with pytest.raises(SourceError, match="cannot be read"):
        read_decisions(tmp_path / name, sample_info=record.sample_info)
    (tmp_path / name).write_bytes(b"\xff\xfe{")
    with pytest.raises(SourceError, match="cannot be read"):
        read_decisions(tmp_path / name, sample_info=record.sample_info)


def test_endings_that_mean_nothing_are_refused(found, record, tmp_path):
    sample_info, queue = record.sample_info, review_queue(found)
    with pytest.raises(ChoiceError, match=r"an audit is written as \.csv; got '\.txt'"):
        write_audit(found, tmp_path / "a.txt", sample_info=sample_info)
    with pytest.raises(ChoiceError, match=r"a queue is written as \.csv or \.json"):
        write_queue(found, queue, tmp_path / "a.txt", sample_info=sample_info)
    with pytest.raises(ChoiceError, match=r"decisions are read from \.csv or \.json"):
        read_decisions(tmp_path / "a.txt", sample_info=sample_info)
    with pytest.raises(ChoiceError, match=r"labels are written as \.npz or \.npy or \.csv"):
        write_labels(found.given, tmp_path / "a.txt")
    with pytest.raises(ChoiceError, match=r"probabilities are written as \.npy"):
        write_probabilities(np.zeros((1, 1)), tmp_path / "a.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        write_labels(found.given, tmp_path / "file" / "labels.npz")


@pytest.mark.parametrize("ending", ["npz", "npy", "csv"])
def test_corrected_labels_are_what_a_spec_reads(found, tmp_path, ending):
    path, decisions = tmp_path / f"labels.{ending}", Decisions(np.array([3, 5]), np.array([4, 2]))
    labels = corrected_labels(found, decisions)
    write_labels(labels, path)
    read = labels_from_file(str(path), samples=600, classes=5)
    np.testing.assert_array_equal(read, labels)
    assert (read[3], read[5]) == (4, 2)


def test_probabilities_are_written_as_they_are(tmp_path):
    table = np.array([[0.25, 0.75]])
    write_probabilities(table, tmp_path / "table.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "table.npy"), table)


def test_suspicion_is_about_the_chance_of_a_wrong_label(found, record):
    wrong = record.sample_info.given != record.truth()
    assert found.suspicion.mean() == pytest.approx(wrong.mean(), abs=0.03)
