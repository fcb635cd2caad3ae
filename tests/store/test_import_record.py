"""Arrays and npz files become records; invalid ones are refused."""

import contextlib

import numpy as np
import pytest

from accord.errors import ChoiceError, RecordExists, SourceError
from accord.store import import_record, open_reader
from accord.store._import_arrays import ImportOptions, read_npz

LABELS = np.random.default_rng(0).integers(0, 4, (2, 3, 10))
LABELS[0, 0, 0] = 3


def save(tmp_path, **arrays):
    np.savez(tmp_path / "logs.npz", **arrays)
    return tmp_path / "logs.npz"


def imported(tmp_path, *, classes=None, **arrays):
    import_record(save(tmp_path, **arrays), tmp_path / "record", classes=classes)
    return open_reader(tmp_path / "record")


def test_everything_in_the_file_is_imported(tmp_path):
    probabilities = np.random.default_rng(0).dirichlet(np.ones(4), (2, 3, 10))
    probabilities = (probabilities + 2 * np.eye(4)[LABELS]) / 3
    rows = imported(
        tmp_path,
        labels=LABELS,
        truth=LABELS[0, 0],
        given=LABELS[0, 1],
        ids=np.arange(10),
        class_names=np.array(["a", "b", "c", "d"]),
        probabilities=probabilities,
    )
    whole = range(2), range(3), slice(None)
    np.testing.assert_array_equal(rows.read_labels(*whole), LABELS)
    np.testing.assert_array_equal(rows.read_probabilities(*whole), probabilities.astype(np.float16))
    np.testing.assert_array_equal(rows.sample_info.truth, LABELS[0, 0])
    np.testing.assert_array_equal(rows.sample_info.given, LABELS[0, 1])
    assert rows.sample_info.class_names == ("a", "b", "c", "d")
    assert rows.networks_info()[1].progress == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(("options", "split"), [({}, "test"), ({"split": "train"}, "train")])
def test_the_split_defaults_to_test(tmp_path, options, split):
    rows = imported(tmp_path, labels=LABELS, given=LABELS[0, 1], **options)
    assert rows.sample_info.split == split
    assert rows.sample_info.trained_on == (split == "train")


def test_classes_default_to_the_largest_label(tmp_path):
    path = save(tmp_path, labels=LABELS)
    for name, classes, expected in (("a", None, 4), ("b", 7, 7)):
        import_record(path, tmp_path / name, classes=classes)
        assert open_reader(tmp_path / name).classes == expected


def test_class_names_determine_the_number_of_classes(tmp_path):
    assert imported(tmp_path, labels=LABELS, class_names=np.array(list("abcdef"))).classes == 6


def test_classes_of_the_truth_are_counted(tmp_path):
    assert imported(tmp_path, labels=LABELS, truth=np.full(10, 8)).classes == 9


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            {"votes": LABELS, "others": LABELS},
            r"no array named 'labels'; it has votes \(2, 3, 10\), others.*--key NAME",
        ),
        (
            {"probabilities": LABELS},
            r"probabilities must have axes \(network, epoch, sample, class\).*got shape \(2, 3",
        ),
        (
            {"labels": LABELS, "probabilities": np.eye(4)[3 - LABELS]},
            "contradict each other: network 0, epoch 0, sample 0 has label 3, but class 0 has",
        ),
        ({"labels": LABELS.astype(np.uint64) + 2**63}, "at most 4294967296 classes; got 92"),
        ({"labels": LABELS[0]}, r"axes \(network, epoch, sample\).*got shape \(3, 10\)"),
        ({"labels": LABELS[:0]}, r"none empty; got shape \(0, 3, 10\)"),
        ({"labels": LABELS + 0.5}, r"labels must be whole numbers; got 3\.5"),
        ({"labels": LABELS.astype(str)}, "labels must be whole numbers; got <U"),
        ({"labels": np.full((1, 1, 2), np.nan)}, "every vote is missing"),
        ({"labels": LABELS, "truth": np.array(["a"] * 10)}, "truth must be whole numbers; got <U1"),
        ({"labels": LABELS, "class_names": np.array("a")}, r"class_names must be 1 name;"),
        (
            {"labels": LABELS, "class_names": np.array(["a", "b", "c", "a"])},
            "class_names must be unique; classes 0 and 3 are both named 'a'",
        ),
        ({"labels": LABELS, "split": np.arange(10)}, r"split must be a name.*got int64 of shape"),
        ({"labels": LABELS, "split": np.array("")}, "split must be a name"),
        (
            {"labels": LABELS, "split": np.array(["train"])},
            r"a name.*got <U5 of shape \(1,\)",
        ),
        ({"labels": LABELS, "probabilities": np.array(1.0)}, "probabilities must have axes"),
        ({"labels": LABELS - 1}, r"labels must lie in 0\.\.2 for 3 classes; got -1\.\.2"),
        (
            {"labels": LABELS, "truth": LABELS[0, 0, :9]},
            r"truth must have shape \(10,\).*got \(9,\)",
        ),
        (
            {"labels": LABELS, "class_names": np.array(["a", "b"])},
            r"0\.\.1 for 2 classes; got 0\.\.3",
        ),
        (
            {"labels": LABELS, "probabilities": np.ones((2, 3, 9, 4))},
            r"probabilities must have shape \(2, 3, 10, 4\)",
        ),
        (
            {"labels": LABELS, "probabilities": np.ones((2, 3, 10, 4))},
            "sum to 1 for every sample",
        ),
    ],
)
def test_bad_arrays_are_refused_with_the_file_named(tmp_path, arrays, words):
    with pytest.raises(SourceError, match=rf"logs\.npz: .*{words}"):
        imported(tmp_path, **arrays)
    assert not (tmp_path / "record").exists()


def test_pickled_objects_are_refused(tmp_path):
    with pytest.raises(SourceError, match="pickled objects, which are never loaded"):
        imported(tmp_path, labels=np.array([{"a": 1}], dtype=object))


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 broken"])
def test_other_files_are_refused_as_npz(tmp_path, content):
    (tmp_path / "logs.npz").write_bytes(content)
    with pytest.raises(SourceError, match="cannot be read as npz"):
        import_record(tmp_path / "logs.npz", tmp_path / "record")


def test_a_single_array_is_refused_as_npz(tmp_path):
    np.save(tmp_path / "logs.npy", LABELS)
    with pytest.raises(SourceError, match=r"logs\.npy: cannot be read as npz: it is not a zip"):
        import_record(tmp_path / "logs.npy", tmp_path / "record", format="npz")


def test_an_npz_damaged_anywhere_is_refused_or_read(tmp_path):
    path = tmp_path / "logs.npz"
    np.savez_compressed(path, labels=LABELS, truth=LABELS[0, 0])
    sound = path.read_bytes()
    for position in range(len(sound)):
        damaged = bytearray(sound)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        with contextlib.suppress(SourceError):
            read_npz(path, ImportOptions())


def test_a_missing_source_and_an_unknown_format_are_refused(tmp_path):
    with pytest.raises(SourceError, match="no such file"):
        import_record(tmp_path / "nothing.npz", tmp_path / "record")
    with pytest.raises(ChoiceError, match=r"no importer for 'mat'; choose one with --format: npz"):
        import_record(tmp_path / "logs.mat", tmp_path / "record")


@pytest.mark.parametrize("ending", ["", ".npz"])
def test_a_source_whose_name_is_too_long_is_refused_with_the_cure(tmp_path, ending):
    source = tmp_path / f"{'x' * 300}{ending}"
    with pytest.raises(SourceError, match=rf"x{{300}}{ending}: cannot read: .*shorten it"):
        import_record(source, tmp_path / "record")


def test_an_existing_record_is_not_overwritten(tmp_path):
    (tmp_path / "record").mkdir()
    with pytest.raises(RecordExists, match="exists; choose another"):
        imported(tmp_path, labels=LABELS)


def test_a_damaged_npz_is_named(tmp_path):
    np.savez_compressed(tmp_path / "cut.npz", labels=np.random.default_rng(0).integers(9, size=999))
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:200] + b"\xff" * 60 + whole[260:])
    with pytest.raises(SourceError, match=r"cut\.npz: cannot be read.*decompressing"):
        import_record(tmp_path / "cut.npz", tmp_path / "record")
