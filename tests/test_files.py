"""Files are written whole, read with named errors, and CSV text reads back unchanged."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord._files import csv_text, open_csv, partial_file, write_file
from accord.errors import SourceError

CELLS = st.text(st.sampled_from('ab,"\r\n \t;é'), max_size=6)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=8))
def test_csv_text_reads_back_unchanged(rows):
    text = csv_text(["one", "other"], rows)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["one", "other"],
        *map(list, rows),
    ]


def test_csv_lines_end_in_a_newline():
    assert csv_text(["id", "score"], [("a", 0.5), ("b\r\n", None)]) == (
        'id,score\na,0.5\n"b\r\n",\n'
    )


def test_cells_of_any_length_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("id\n" + "x" * 200_000)
    with open_csv(tmp_path / "a.csv") as reader:
        assert [len(row[0]) for row in reader] == [2, 200_000]
    assert csv.field_size_limit() < 200_000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, r"a\.csv: cannot be read: .*No such file"),
        (b"\xff", r"a\.csv: cannot be read: .*utf-8"),
        (b'a\nb\n"c', r"a\.csv: line 3 cannot be read: .*Double a quotation mark"),
    ],
)
def test_unreadable_csv_files_are_named(tmp_path, data, words):
    path = tmp_path / "a.csv"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(SourceError, match=words), open_csv(path) as reader:
        list(reader)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    write_file(tmp_path / "new/a", b"one")
    write_file(tmp_path / "new/a", b"two")
    assert (tmp_path / "new/a").read_bytes() == b"two"
    with pytest.raises(KeyError, match="stop"), partial_file(tmp_path / "b", b"data"):
        raise KeyError("stop")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
