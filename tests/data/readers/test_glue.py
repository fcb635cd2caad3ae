"""GLUE tasks are read from TSV or Parquet, with every character of their texts."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord.data import read_dataset
from accord.errors import SourceError


def read(kind, tree, **more):
    path, options = tree(kind)
    return read_dataset(kind, path, **options, **more)


def test_mnli_is_tested_on_both_dev_sets(tree):
    dataset = read("mnli", tree)
    assert dataset.class_names == ("entailment", "neutral", "contradiction")
    assert dataset.train.inputs[0] == ('An "open quote', "It is train")
    assert dataset.train.inputs[1] == ("Both\rends\u2028here", "Yes")
    assert dataset.train.labels.tolist() == [2, 0]
    assert [hypothesis for _, hypothesis in dataset.test.inputs] == [
        *("It is dev_matched", "Yes"),
        *("It is dev_mismatched", "Yes"),
    ]
    assert dataset.test.ids.tolist()[1:3] == ["dev_matched:1", "dev_mismatched:0"]


def test_one_text_and_pairs(tree):
    assert read("sst2", tree).train.inputs == ('a "fine train ', "bad ")
    assert read("sst2", tree).test.labels.tolist() == [1, 0]
    assert read("qnli", tree).test.inputs[0] == ("Who?", "He, in dev.")
    assert read("qnli", tree).class_names == ("entailment", "not_entailment")


def test_incomplete_rows_of_qqp_are_left_out_and_noted(tree):
    dataset = read("qqp", tree)
    assert dataset.train.inputs == (("Why?", "How so?"), ("Who?", "When?"))
    assert dataset.train.labels.tolist() == [1, 0]
    assert dataset.notes == (
        "train.tsv: left out 1 row with missing cells",
        "dev.tsv: left out 1 row with missing cells",
    )


def test_incomplete_rows_of_other_tasks_are_refused(tree):
    path, options = tree("sst2")
    (path / "train.tsv").write_text("sentence\tlabel\ngood\t1\nbroken\nbad\t0\n")
    with pytest.raises(SourceError, match=r"train\.tsv: line 3 has fewer cells than .* 2"):
        read_dataset("sst2", path, **options)


def test_parquet_shards_are_read_in_order(tmp_path):
    folder = tmp_path / "mnli"
    folder.mkdir()

    def write(name, premises, labels):
        table = {"premise": premises, "hypothesis": ["so"] * len(premises), "label": labels}
        pq.write_table(pa.table({**table, "idx": labels}), folder / f"{name}.parquet")

    write("train-00001-of-00002", ["c"], [1])
    write("train-00000-of-00002", ["a", "b"], [0, 2])
    write("validation_matched-00000-of-00001", ["d"], [1])
    write("validation_mismatched-00000-of-00001", ["e"], [2])
    write("test_matched-00000-of-00001", ["f"], [-1])
    dataset = read_dataset("mnli", tmp_path, complete=False)
    assert dataset.train.inputs == (("a", "so"), ("b", "so"), ("c", "so"))
    assert dataset.train.labels.tolist() == [0, 2, 1]
    assert dataset.test.labels.tolist() == [1, 2]


def test_other_files_may_be_named_and_shares_held_out(tree):
    path, options = tree("qnli")
    rows = "".join(f"{i}\tq{i}\ts\t{'not_' * (i % 2)}entailment\n" for i in range(10))
    (path / "mine.tsv").write_text("index\tquestion\tsentence\tlabel\n" + rows)
    named = read_dataset("qnli", path, train="mine.tsv", test="train.tsv", **options)
    assert (len(named.train), named.test.inputs[0][1]) == (10, "He, in train.")
    divided = read_dataset("qnli", path, train="mine.tsv", held_out=0.2)
    assert (len(divided.train), divided.test.labels.tolist()) == (8, [0, 1])


def test_hidden_labels_are_refused(tree):
    path, options = tree("sst2")
    with pytest.raises(SourceError, match=r"test\.tsv: no column label; .*test on dev"):
        read_dataset("sst2", path, test="test.tsv", **options)
    (path / "dev.tsv").write_text("sentence\tlabel\ngood\t1\nbad\t-1\n")
    with pytest.raises(SourceError, match=r"dev\.tsv: row 2 has label '-1'; labels are negative"):
        read_dataset("sst2", path, **options)


def test_the_error_for_a_missing_file_lists_every_spelling(tree):
    path, options = tree("mnli")
    (path / "dev_mismatched.tsv").unlink()
    words = r"Looked for: dev_mismatched\.tsv, .*validation_mismatched-\*\.parquet.*MNLI/"
    with pytest.raises(SourceError, match=words):
        read_dataset("mnli", path, **options)


def test_an_empty_file_is_refused(tree):
    path, options = tree("sst2")
    (path / "dev.tsv").write_text("sentence\tlabel\n")
    with pytest.raises(SourceError, match=r"dev\.tsv: holds no rows"):
        read_dataset("sst2", path, **options)
