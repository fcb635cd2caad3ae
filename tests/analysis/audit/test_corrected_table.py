"""A table comes back with its labels corrected, and everything else as it was."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord.analysis import write_corrected_list, write_corrected_table
from accord.errors import ChoiceError, RecordExists, RecordMismatch, SourceError
from accord.store import SampleInfo

# Quoted cells, an empty line, two kinds of line ends, no last one, blanks and a byte order mark.
TABLE = (
    '\ufeff"na""me", kind ,note\r\n'
    'ann,"a, b","two\r\nlines, ""quoted"""\r\n'
    "\n"
    " bob ,b,1.50\n"
    'cat,b,""\n'
    "dan,a c,x"
)
NAMES = ("a c", "a, b", "b")
INFO = SampleInfo(
    3, 3, given=np.array([1, 2, 0]), class_names=NAMES, ids=np.array([2, 5, 7])
)  # the third row was held out
LABELS = np.array([1, 0, 2])


@pytest.fixture
def source(tmp_path):
    (tmp_path / "mine.csv").write_bytes(TABLE.encode())
    return tmp_path / "mine.csv"


def correct(source, out="fixed.csv", info=INFO, labels=LABELS, **options):
    options = {"source": source, "label": " kind ", "sample_info": info, **options}
    return write_corrected_table(labels, source.parent / out, **options)


def test_all_bytes_but_the_labels_stay_and_the_old_labels_are_kept(source):
    found = correct(source)
    assert (source.parent / "fixed.csv").read_bytes().decode() == (
        '\ufeff"na""me", kind ,note, kind _given\r\n'
        'ann,"a, b","two\r\nlines, ""quoted""","a, b"\r\n'
        "\n"
        " bob ,a c,1.50,b\n"
        'cat,b,"",b\n'
        "dan,b,x,a c"
    )
    assert (found.rows, found.samples, found.changed) == (4, 3, 2)
    assert found.given == " kind _given"
    correct(source)  # written again


def test_a_name_with_a_delimiter_is_quoted(source):
    correct(source, labels=np.array([1, 1, 0]))
    assert ' bob ,"a, b",1.50,b\n' in (source.parent / "fixed.csv").read_text("utf-8")


def test_cells_of_a_tsv_are_parted_by_tabs(source):
    path = source.with_suffix(".tsv")
    path.write_text("kind\tnote\nb\tone, two\n")
    info = SampleInfo(1, 2, given=np.array([1]), class_names=("a", "b"), ids=np.array([2]))
    correct(path, "fixed.tsv", info, np.array([0]), label="kind")
    assert (path.parent / "fixed.tsv").read_text() == "kind\tnote\tkind_given\na\tone, two\tb\n"


def test_a_parquet_file_keeps_its_types_and_metadata(tmp_path):
    kind = pa.array([3, None, 1], pa.int8())
    table = pa.table({"kind": kind, "kind_given": ["x", "y", "z"], "when": pa.array([1, 2, 3])})
    table = table.replace_schema_metadata({"mine": "yes"})
    pq.write_table(table, tmp_path / "mine.parquet")
    info = SampleInfo(2, 2, given=np.array([1, 0]), class_names=("1", "3"), ids=np.array([0, 2]))
    labels = np.array([0, 0])
    options = {"info": info, "labels": labels, "label": "kind", "lines": True}
    assert correct(tmp_path / "mine.parquet", "a.parquet", **options).given == "kind_given2"
    found = pq.read_table(tmp_path / "a.parquet")
    assert found.column("kind").to_pylist() == [1, None, 1]
    assert found.column("kind_given2").to_pylist() == [3, None, 1]
    assert found.schema.field("kind").type == pa.int8()
    assert found.drop_columns(["kind", "kind_given2"]).equals(table.drop_columns(["kind"]))
    assert found.schema.metadata[b"mine"] == b"yes"


@pytest.mark.parametrize("ids", [None, np.arange(4), np.array(["ann", " bob ", "cat", "dan"])])
def test_rows_are_found_by_position_or_id(source, ids):
    info = SampleInfo(4, 3, given=np.array([1, 2, 2, 0]), class_names=NAMES, ids=ids)
    assert correct(source, info=info, labels=np.array([1, 2, 2, 2])).changed == 1
    assert (source.parent / "fixed.csv").read_text("utf-8").endswith("dan,b,x,a c")


def test_the_column_of_ids_may_be_known(source):
    info = SampleInfo(2, 3, given=np.array([0, 1]), class_names=NAMES, ids=np.array(["dan", "ann"]))
    assert correct(source, info=info, labels=np.array([2, 1]), ids='na"me').changed == 1
    with pytest.raises(SourceError, match="no column 'names'"):
        correct(source, info=info, labels=np.array([2, 1]), ids="names")


@pytest.mark.parametrize(
    ("text", "options", "error", "words"),
    [
        (TABLE, {"label": "kind"}, SourceError, "no column 'kind'; it has na\"me,  kind , note"),
        (TABLE, {"out": "a.parquet"}, ChoiceError, r"has the ending of its source; .*'\.csv'"),
        (TABLE, {"out": "mine.csv"}, RecordExists, "is the source itself"),
        (TABLE, {"out": "other.csv"}, RecordExists, "exists, with other columns than the correct"),
        (TABLE.replace(",b,1", ",q,1"), {}, RecordMismatch, r"at line 5: 'q' in the file, 'b' in"),
        (TABLE[:42], {}, SourceError, r"line 2 cannot be read: is a quotation mark missing\?"),
        (TABLE + ",y", {}, SourceError, r"line 7 has 4 cells, the header 3"),
        ("", {}, SourceError, "holds no rows"),
        (TABLE, {"info": SampleInfo(3, 3)}, RecordMismatch, "has no given labels to correct"),
    ],
)
def test_another_table_is_refused(source, text, options, error, words):
    source.write_bytes(text.encode())
    (source.parent / "other.csv").write_text("mine,all mine\n1,2\n")
    with pytest.raises(error, match=words):
        correct(source, **options)
    assert source.read_bytes() == text.encode()
    assert not (source.parent / "fixed.csv").exists()


def test_images_are_listed_by_their_paths(tmp_path):
    info = SampleInfo(
        2,
        2,
        given=np.array([0, 1]),
        class_names=("cat", "dog"),
        ids=np.array(["a/1.png", "b/2.png"]),
    )
    assert write_corrected_list(np.array([1, 1]), tmp_path / "a.csv", sample_info=info) == 1
    text = "path,given,corrected\na/1.png,cat,dog\nb/2.png,dog,dog\n"
    assert (tmp_path / "a.csv").read_text() == text
    write_corrected_list(np.array([1, 1]), tmp_path / "a.csv", sample_info=info)
    (tmp_path / "a.csv").write_text("mine\n1\n")
    with pytest.raises(RecordExists, match="exists, with other columns"):
        write_corrected_list(np.array([1, 1]), tmp_path / "a.csv", sample_info=info)
