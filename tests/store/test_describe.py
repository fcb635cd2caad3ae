"""A record can be described while others write into it."""

from pathlib import Path

import pytest

from accord.store import describe, pack_record


def size_of(path):
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def test_the_size_is_that_of_all_files(record):
    assert describe(record).size == size_of(record) > 0


def test_the_size_of_a_record_in_one_file_is_the_files(record, tmp_path):
    pack_record(record, tmp_path / "packed.zip")
    assert describe(tmp_path / "packed.zip").size == (tmp_path / "packed.zip").stat().st_size


@pytest.mark.parametrize("moment", ["before it is looked at", "after it was looked at"])
def test_a_file_that_a_writer_renames_meanwhile_is_no_error(record, monkeypatch, moment):
    before = size_of(record)
    part = record / "row.part"
    part.write_bytes(b"12345")

    def listed(self, pattern, *, rglob=Path.rglob):
        for file in list(rglob(self, pattern)):
            if file == part and moment == "before it is looked at":
                part.unlink()
            yield file
            if file == part:
                part.unlink(missing_ok=True)

    monkeypatch.setattr(Path, "rglob", listed)
    assert describe(record).size == before + (5 if moment == "after it was looked at" else 0)
