"""CSV text of any rows reads back as the same rows."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from accord._files import csv_text

CELLS = st.text(st.sampled_from('ab,"\r\n \t;é'), max_size=6)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=8))
def test_what_is_written_is_read_again(rows):
    text = csv_text(["one", "other"], rows)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["one", "other"],
        *map(list, rows),
    ]


def test_csv_lines_end_in_a_newline():
    assert csv_text(["id", "score"], [("a", 0.5), ("b\r\n", None)]) == (
        'id,score\na,0.5\n"b\r\n",\n'
    )
