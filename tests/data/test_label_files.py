"""Labels are read from a file as they are, or not at all."""

import numpy as np
import pytest

from accord.data.noise import labels_from_file
from accord.errors import ChoiceError, PredictionError, SourceError

LABELS = np.array([2, 0, 1, 2])


def read(path, samples=4, classes=3):
    return labels_from_file(str(path), samples=samples, classes=classes).tolist()


def test_an_npy_file_holds_labels(tmp_path):
    np.save(tmp_path / "a.npy", LABELS)
    assert read(tmp_path / "a.npy") == LABELS.tolist()


def test_an_npz_file_holds_one_array_or_several_by_name(tmp_path):
    np.savez(tmp_path / "one.npz", anything=LABELS)
    np.savez(tmp_path / "two.npz", clean=LABELS, worse=LABELS[::-1])
    assert read(tmp_path / "one.npz") == LABELS.tolist()
    assert read(f"{tmp_path}/two.npz#worse") == LABELS[::-1].tolist()
    with pytest.raises(ChoiceError, match=r"two\.npz: holds several.*clean, worse: .*#clean"):
        read(tmp_path / "two.npz")
    with pytest.raises(ChoiceError, match=r"has no array 'bad'\. Name one of clean, worse"):
        read(f"{tmp_path}/two.npz#bad")


def test_a_torch_file_holds_labels_by_name(tmp_path, legacy_torch):
    (tmp_path / "a.pt").write_bytes(legacy_torch({"worse_label": LABELS, "clean_label": LABELS}))
    assert read(f"{tmp_path}/a.pt#worse_label") == LABELS.tolist()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("2\n0\n1\n2\n", ""),
        ("label\n2\n0\n1\n2\n", ""),
        ("\ufefflabel\r\n2\r\n0\r\n1\r\n2\r\n", "#label"),
        ("file,label\na,2\nb,0\nc,1\nd,2\n", "#label"),
        ("9,2\n9,0\n9,1\n9,2", "#1"),
    ],
)
def test_a_csv_file_may_have_a_header(tmp_path, text, name):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    assert read(f"{tmp_path}/a.csv{name}") == LABELS.tolist()


def test_other_counts_ranges_and_types_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", LABELS)
    with pytest.raises(PredictionError, match=r"one integer for each of 5 .*shape \(4,\)"):
        read(tmp_path / "a.npy", samples=5)
    with pytest.raises(PredictionError, match=r"0\.\.1 for 2 classes; got 0\.\.2.*from 1"):
        read(tmp_path / "a.npy", classes=2)
    (tmp_path / "a.csv").write_text("label\ncat\ndog\ncat\ndog\n")
    with pytest.raises(PredictionError, match=r"one integer for each of 4 samples; got <U"):
        read(tmp_path / "a.csv")


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(SourceError, match=r"no\.npy: cannot be read as npy: .*No such file"):
        read(tmp_path / "no.npy")
    (tmp_path / "a.npz").write_bytes(b"?")
    with pytest.raises(SourceError, match=r"a\.npz: cannot be read"):
        read(tmp_path / "a.npz")
    np.savez_compressed(tmp_path / "a.npz", labels=np.arange(1000))
    damaged = bytearray((tmp_path / "a.npz").read_bytes())
    damaged[200:260] = bytes(60)
    (tmp_path / "a.npz").write_bytes(damaged)
    with pytest.raises(SourceError, match=r"a\.npz: cannot be read as npz: .*decompressing"):
        read(tmp_path / "a.npz", samples=1000, classes=1000)
    (tmp_path / "a.csv").write_text("a,b\n1\n")
    with pytest.raises(SourceError, match=r"a\.csv: its rows have different numbers of cells"):
        read(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(SourceError, match=r"a\.csv: holds no labels"):
        read(tmp_path / "a.csv")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(SourceError, match=r"o\.npy: cannot be .* it holds pickled objects"):
        read(tmp_path / "o.npy")


def test_a_refused_pickle_is_named_once(tmp_path, legacy_torch):
    (tmp_path / "a.pt").write_bytes(legacy_torch({1j}))
    with pytest.raises(SourceError, match=r"^[^:]*a\.pt: refused to load `[^`]*`\. [^:]*$"):
        read(tmp_path / "a.pt")


def test_other_endings_are_refused():
    with pytest.raises(ChoiceError, match=r"read from \.npy, \.npz, \.csv, \.pt; got '\.txt'"):
        read("labels.txt")
