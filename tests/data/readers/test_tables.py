"""Tables and texts are read; errors name the row and the column."""

import csv
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord.data import read_dataset
from accord.errors import ChoiceError, ExtraMissing, SourceError

TABLE = """age,colour,label,clean,id
1.5,red,10,10,a
2,blue,9,10,b
-3e2,red,9,9,c
4,blue,10,10,d
"""


@pytest.fixture
def write(tmp_path):
    def write(text=TABLE, name="mine.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
        return tmp_path / name

    return write


ROLES = {"one_hot": ["colour"], "truth": "clean", "ids": "id"}


def test_a_table_is_read_column_by_column(write):
    dataset = read_dataset("csv", write(), test="mine.csv", **ROLES)
    assert dataset.kind == "table"
    assert dataset.train.inputs.tolist() == [[1.5, 0, 1], [2, 1, 0], [-300, 0, 1], [4, 1, 0]]
    assert dataset.train.inputs.dtype == np.float32
    assert dataset.class_names == ("9", "10")  # whole numbers sort by value
    assert dataset.train.labels.tolist() == [1, 0, 0, 1]
    assert dataset.train.truth.tolist() == [1, 1, 0, 1]
    assert dataset.train.ids.tolist() == ["a", "b", "c", "d"]
    assert dataset.columns == (("age", None), ("colour", ("blue", "red")))


def test_rows_are_known_by_their_lines_in_the_file(write):
    path = write('text,label\n"two\nlines",1\n\n"and\r\nthree\n",0\nlast,1\nnot quite,0\n')
    lines = path.read_text("utf-8").split("\n")
    dataset = read_dataset("csv", path, text="text", test="mine.csv")
    assert dataset.train.ids.tolist() == [2, 5, 8, 9]
    for text, line in zip(dataset.train.inputs, dataset.train.ids, strict=True):
        assert text.split("\n")[0].strip() in lines[line - 1]
    rest, held = (
        getattr(read_dataset("csv", path, text="text", held_out=0.5), part)
        for part in ("train", "test")
    )
    assert sorted([*rest.ids.tolist(), *held.ids.tolist()]) == [2, 5, 8, 9]


def test_rows_of_parquet_are_counted_from_0(tmp_path):
    pq.write_table(pa.table({"age": [1.0, 2.0], "label": ["a", "b"]}), tmp_path / "a.parquet")
    dataset = read_dataset("parquet", tmp_path / "a.parquet", test="a.parquet")
    assert dataset.train.ids.tolist() == [0, 1]


def test_a_share_is_held_out(write):
    dataset = read_dataset("csv", write(), held_out=0.5, **ROLES)
    assert (len(dataset.train), len(dataset.test)) == (2, 2)
    assert sorted([*dataset.train.ids, *dataset.test.ids]) == ["a", "b", "c", "d"]


def test_texts_and_pairs_of_texts(write):
    path = write('review,reply,label\n"Good, ""very"" good\nindeed",yes,pos\nbad,no,neg\n')
    dataset = read_dataset("csv", path, text="review", test="mine.csv")
    assert dataset.kind == "text"
    assert dataset.train.inputs == ('Good, "very" good\nindeed', "bad")
    assert dataset.class_names == ("neg", "pos")
    assert dataset.columns is None
    pairs = read_dataset("csv", path, text=["review", "reply"], test="mine.csv")
    assert pairs.train.inputs[1] == ("bad", "no")
    with pytest.raises(
        ChoiceError, match="one text or a pair of texts; got columns review, reply, label"
    ):
        read_dataset("csv", path, text=["review", "reply", "label"], test="mine.csv")


def test_features_may_be_named(write):
    dataset = read_dataset("csv", write(), features=["age"], test="mine.csv")
    assert dataset.train.inputs.tolist() == [[1.5], [2], [-300], [4]]
    both = read_dataset("csv", write(), features=["age"], one_hot=["colour"], test="mine.csv")
    assert both.train.inputs.shape == (4, 3)


def test_one_column_may_be_named_without_a_list(write):
    listed, plain = (
        read_dataset("csv", write(), test="mine.csv", features=age, one_hot=colour)
        for age, colour in ((["age"], ["colour"]), ("age", "colour"))
    )
    np.testing.assert_array_equal(listed.train.inputs, plain.train.inputs)
    assert plain.train.inputs.shape == (4, 3)


@pytest.mark.parametrize("name", ["label", "clean"])
@pytest.mark.parametrize("others", [{}, {"features": ["age"]}])
@pytest.mark.parametrize("option", ["features", "one_hot", "text"])
def test_the_labels_are_not_a_feature(write, option, others, name):
    options = {**others, option: ["age", name], "truth": "clean", "test": "mine.csv"}
    with pytest.raises(ChoiceError, match=f"{option} names '{name}', which holds the labels"):
        read_dataset("csv", write(), **options)


@pytest.mark.parametrize("option", ["features", "one_hot", "text"])
def test_a_column_is_named_once(write, option):
    with pytest.raises(ChoiceError, match=f"{option} names 'age' twice"):
        read_dataset("csv", write(), test="mine.csv", **{option: ["age", "age"]})


def test_a_cell_may_be_a_long_document(write):
    limit = csv.field_size_limit()
    path = write(f"text,label\n{'a' * (limit + 1)},1\nb,0\n")
    dataset = read_dataset("csv", path, text="text", test="mine.csv")
    assert len(dataset.train.inputs[0]) == limit + 1
    assert csv.field_size_limit() == limit


def test_two_signs_are_not_a_number(write):
    classes = read_dataset("csv", write("age,label\n1,--1\n2,2\n"), test="mine.csv").class_names
    assert classes == ("--1", "2")


@pytest.mark.parametrize("gap", ["\n", "\t"])
def test_a_quotation_mark_left_open_in_a_tsv_is_refused(write, gap):
    rows = f'text\tlabel\n"good{gap}film"\t1\nfine\t0\n'
    with pytest.raises(SourceError, match=r"a cell of line \d holds a tab or a newline"):
        read_dataset("tsv", write(rows, "a.tsv"), text="text", test="a.tsv")


def test_values_of_the_test_file_have_a_one_hot_column(write):
    path = write("colour,label\nred,1\nblue,0\n")
    write("colour,label\ngreen,1\n", "test.csv")
    dataset = read_dataset("csv", path, test="test.csv", one_hot=["colour"])
    assert dataset.train.inputs.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert dataset.test.inputs.tolist() == [[0, 1, 0]]


def test_a_test_file_need_not_repeat_the_truth(write):
    write("age,label\n1,10\n", "test.csv")
    path = write()
    dataset = read_dataset("csv", path, features=["age"], truth="clean", test="test.csv")
    assert (dataset.train.truth is None, dataset.test.truth is None) == (False, True)


def test_the_file_may_have_another_ending(write):
    path = write(TABLE, "mine.data")
    assert len(read_dataset("csv", path, held_out=0.5, **ROLES).train) == 2


def test_parquet_holds_the_same_as_csv(write, tmp_path):
    table = {"age": [1.5, 2, -300, 4], "colour": ["red", "blue", "red", "blue"]}
    table |= {"label": [10, 9, 9, 10], "clean": [10, 10, 9, 10], "id": list("abcd")}
    pq.write_table(pa.table(table), tmp_path / "mine.parquet")
    text = read_dataset("csv", write(), test="mine.csv", **ROLES)
    ours = read_dataset("parquet", tmp_path / "mine.parquet", test="mine.parquet", **ROLES)
    np.testing.assert_array_equal(ours.train.inputs, text.train.inputs)
    np.testing.assert_array_equal(ours.train.labels, text.train.labels)
    assert ours.class_names == text.class_names


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            TABLE,
            {"features": ["colour"]},
            r"'colour', line 2 is not a number: 'red'.*one_hot=\['colour'\]",
        ),
        ("age,label\n1,a\n,b\n", {}, r"column 'age', line 3 is empty\. Fill"),
        ("age,label\n1,a\n2,\n", {}, r"line 3 has no 'label'"),
        (
            "age,label\n1,a\n2,a\n",
            {},
            r"all 2 rows of column 'label' hold 'a'\. A classifier needs",
        ),
        ("age,label\n1,a\nnan,b\n", {}, r"numbers that are not finite"),
        ("age,class\n1,a\n2,b\n", {}, r"no column 'label'; it has age, class"),
        ("age,label\n1,a\n2,b,c\n", {}, r"line 3 has 3 cells, the header 2"),
        ("age,age,label\n1,1,a\n", {}, r"two columns have the same name"),
        ("age,label\n", {}, r"mine\.csv: holds no rows"),
        ("", {}, r"mine\.csv: holds no rows"),
        ("label\na\nb\n", {}, r"no columns besides the labels"),
        ("age,label\n1,a\n2,b\n", {"one_hot": ["town"]}, r"no column 'town'; it has age, label"),
        ("age;label\n1;a\n", {}, r"the header is one cell, 'age;label'\. Are columns separated"),
        (",age,label\n0,1,a\n1,2,b\n", {}, r"a column has no name\. Is it the index that pandas"),
        ('age,label\n1,"a\n', {}, r"mine\.csv: line 2 cannot be read: unexpected end of data"),
    ],
)
def test_errors_name_the_place(write, text, options, words):
    with pytest.raises(SourceError, match=words):
        read_dataset("csv", write(text), test="mine.csv", **options)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"age,label\n\xff,a\n")
    with pytest.raises(SourceError, match=r"a\.csv: cannot be read: 'utf-8' .*Save it as UTF-8"):
        read_dataset("csv", tmp_path / "a.csv", held_out=0.5)


def test_empty_cells_of_parquet_are_refused(tmp_path):
    table = pa.table({"age": [1.0, None, 2.0, 3.0], "label": ["a", "b", "a", "b"]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"column 'age', row 1 is empty"):
        read_dataset("parquet", tmp_path / "a.parquet", held_out=0.5)
    (tmp_path / "b.parquet").write_bytes(b"?")
    with pytest.raises(SourceError, match=r"b\.parquet: cannot be read as Parquet"):
        read_dataset("parquet", tmp_path / "b.parquet", held_out=0.5)


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_missing_label_is_refused(tmp_path, nothing):
    table = pa.table({"age": [1.0, 2.0, 3.0], "label": [0.0, 1.0, nothing]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet: row 2 has no 'label'"):
        read_dataset("parquet", tmp_path / "a.parquet", held_out=0.5)


def test_a_missing_text_is_empty(tmp_path):
    table = pa.table({"one": ["a", None], "two": [None, "b"], "label": ["x", "y"]})
    pq.write_table(table, tmp_path / "a.parquet")
    options = {"test": "a.parquet", "text": ["one", "two"]}
    dataset = read_dataset("parquet", tmp_path / "a.parquet", **options)
    assert dataset.train.inputs == (("a", ""), ("", "b"))


def test_a_class_without_training_samples_is_refused(write):
    write("age,label\n1,unheard\n", "test.csv")
    with pytest.raises(SourceError, match=r"test\.csv: column 'label' holds classes .*: unheard"):
        read_dataset("csv", write(), features=["age"], test="test.csv")


def test_a_file_without_a_test_set_is_refused(write):
    path = write()
    with pytest.raises(ChoiceError, match=r"no test set.*test='test\.csv'.*held_out=0\.2"):
        read_dataset("csv", path)
    with pytest.raises(ChoiceError, match="a file to test on or a share to hold out, not both"):
        read_dataset("csv", path, test="test.csv", held_out=0.2)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"?")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExtraMissing, match=r"a\.parquet.*pip install 'accord\[parquet\]'"):
        read_dataset("parquet", tmp_path / "a.parquet", held_out=0.5)
