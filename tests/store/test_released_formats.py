"""Records of every released format still open; tests/data holds a small one of each."""

import json
from pathlib import Path

import numpy as np
import pytest
from recorded import labels_of, write_record

from accord.store import _record_format as layout
from accord.store import check_record, open_reader

FORMATS = sorted(Path(__file__).parents[1].glob("data/format-*"))


@pytest.mark.parametrize("folder", FORMATS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("form", ["rows", "packed.zip"])
def test_a_record_of_every_format_opens(folder, form):
    rows = open_reader(folder / form)
    expected = [[labels_of(network, epoch) for epoch in range(2)] for network in range(2)]
    np.testing.assert_array_equal(rows.read_labels([0, 1], [0, 1], slice(None)), expected)
    np.testing.assert_array_equal(rows.truth(), labels_of(9, 9))
    assert rows.sample_info.class_names == ("a", "b", "c", "d", "e")
    assert rows.networks_info()[1].metrics == ({"loss": 1.0}, {"loss": 0.5})
    assert check_record(folder / form).findings == ()


def test_the_newest_format_has_such_a_record():
    assert FORMATS[-1].name == f"format-{layout.FORMAT}"


def test_what_is_written_today_has_the_same_files(tmp_path):
    write_record(tmp_path / "rows", epochs=2, truth=labels_of(9, 9), class_names=list("abcde"))
    kept = FORMATS[-1] / "rows"
    names = [
        sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())
        for root in (kept, tmp_path / "rows")
    ]
    assert names[0] == names[1]
    for name in names[0]:
        if name.endswith("zarr.json") and "/" in name and "network" not in name.split("/")[-2]:
            old, new = (
                json.loads((root / name).read_bytes()) for root in (kept, tmp_path / "rows")
            )
            assert new.pop("dimension_names")  # optional, and younger than the kept record
            assert old == new
