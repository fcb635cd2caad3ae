"""Arrays are imported with axes in any order."""

import itertools

import numpy as np
import pytest

import accord
from accord.errors import ChoiceError, SourceError
from accord.store import import_arrays, import_record

LABELS = np.random.default_rng(0).integers(0, 4, (2, 3, 10))
LABELS[0, 0, 0] = 3
LOGITS = np.random.default_rng(1).normal(0, 3, (2, 3, 10, 4))
AXES = ("network", "epoch", "sample")


def moved(values, axes):
    named = (*AXES, "class")
    return values.transpose([named.index(axis) for axis in axes])


def imported(source, tmp_path, **options):
    import_record(source, tmp_path / "record", **options)
    return accord.open(tmp_path / "record")


def refused(source, tmp_path, words, kind=SourceError, **options):
    with pytest.raises(kind, match=words):
        import_record(source, tmp_path / "record", **options)
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize("axes", list(itertools.permutations(AXES)))
def test_axes_come_in_any_order(tmp_path, axes):
    np.savez(tmp_path / "logs.npz", votes=moved(LABELS, axes), other=[1])
    found = imported(tmp_path / "logs.npz", tmp_path, axes=",".join(axes), key="votes")
    np.testing.assert_array_equal(found.labels[:], LABELS)
    import_arrays(tmp_path / "again", moved(LABELS, axes), axes=axes)
    np.testing.assert_array_equal(accord.open(tmp_path / "again").labels[:], LABELS)


@pytest.mark.parametrize(
    "axes",
    [(*AXES, "class"), ("class", "sample", "epoch", "network"), ("sample", "class", *AXES[:2])],
)
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_logits_and_probabilities_have_an_axis_of_classes(tmp_path, axes, ending):
    powers = np.exp(LOGITS)
    tables = powers / powers.sum(axis=-1, keepdims=True)
    for kind, values in (("logits", LOGITS), ("probabilities", tables)):
        path = tmp_path / f"{kind[:3]}.{ending}"
        (np.save if ending == "npy" else np.savez)(path, moved(values, axes))
        read = import_record(path, tmp_path / kind[:3], axes=axes)
        stored = ", stored as probabilities" if kind == "logits" else ""
        assert read == f"{kind} of 2 networks, 3 epochs, 10 samples, 4 classes{stored}"
        record = accord.open(tmp_path / kind[:3])
        np.testing.assert_array_equal(record.labels[:], LOGITS.argmax(axis=-1))
        np.testing.assert_allclose(record.probabilities[:], tables, atol=1e-3)


@pytest.mark.parametrize("name", ["probabilities", "logits"])
def test_tables_of_a_known_name_need_no_labels(tmp_path, name):
    tables = np.full((2, 3, 10, 4), 0.1) + 0.6 * np.eye(4)[LABELS]
    tables *= 1 if name == "probabilities" else 0.9  # in 0..1, but not of sum 1
    np.savez(tmp_path / "logs.npz", truth=LABELS[0, 0], **{name: tables})
    found = imported(tmp_path / "logs.npz", tmp_path)
    np.testing.assert_array_equal(found.labels[:], LABELS)
    assert found.probabilities[:].max() < (0.75 if name == "probabilities" else 0.4)


def test_axes_that_an_array_lacks_have_size_one(tmp_path):
    for axes, values in (("sample,network", LABELS[:, 0].T), ("epoch,sample", LABELS[0])):
        np.save(tmp_path / "logs.npy", values)
        import_record(tmp_path / "logs.npy", tmp_path / axes, axes=axes)
        found = accord.open(tmp_path / axes).labels[:]
        np.testing.assert_array_equal(found, LABELS[:, :1] if "network" in axes else LABELS[:1])


@pytest.mark.parametrize(
    ("arrays", "key"),
    [
        ({"network_0": LABELS[0], "network_1": LABELS[1], "truth": LABELS[0, 0]}, None),
        ({"arr_0": LABELS[0], "arr_1": LABELS[1]}, None),
        ({"seed_1": LABELS[1], "seed_0": LABELS[0], "arr_0": LABELS}, "seed_{network}"),
        ({"arr_0": LABELS}, None),
    ],
)
def test_each_network_may_have_an_array(tmp_path, arrays, key):
    np.savez(tmp_path / "logs.npz", **arrays)
    found = imported(tmp_path / "logs.npz", tmp_path, key=key)
    np.testing.assert_array_equal(found.labels[:], LABELS)


def test_arrays_of_networks_are_numbered_by_their_names(tmp_path):
    np.savez(tmp_path / "logs.npz", network_10=LABELS[1].T, network_9=LABELS[0].T)
    found = imported(tmp_path / "logs.npz", tmp_path, axes="sample,epoch")
    assert found.reader.numbers == (9, 10)
    np.testing.assert_array_equal(found.labels[:], LABELS)


def test_a_list_of_arrays_is_one_network_each(tmp_path):
    import_arrays(tmp_path / "plain", list(LABELS))
    import_arrays(tmp_path / "moved", [one.T for one in LABELS], axes="sample,epoch")
    for name in ("plain", "moved"):
        np.testing.assert_array_equal(accord.open(tmp_path / name).labels[:], LABELS)


def test_labels_without_a_zero_are_pointed_out(tmp_path):
    assert import_arrays(tmp_path / "from-one", LABELS + 1).endswith("are they counted from 1?")
    assert import_arrays(tmp_path / "from-zero", LABELS).endswith("4 classes")


def test_an_axis_of_samples_that_is_too_short_is_pointed_out(tmp_path):
    read = import_arrays(tmp_path / "moved", LABELS.transpose(2, 0, 1))
    assert read.endswith("few samples: are the axes in another order? --axes sample,network,epoch")


def test_labels_may_be_names_of_classes(tmp_path):
    names = np.array(["owl", "cat", "dog", "emu"])
    np.savez(tmp_path / "logs.npz", labels=names[LABELS], class_names=names)
    record = imported(tmp_path / "logs.npz", tmp_path)
    np.testing.assert_array_equal(record.labels[:], LABELS)
    truth = names[LABELS[0, 0]].tolist()
    gaps = np.ma.masked_array(names[LABELS], LABELS == 2)
    import_arrays(tmp_path / "again", gaps, truth=truth, class_names=names)
    again = accord.open(tmp_path / "again")
    np.testing.assert_array_equal(again.labels[:].filled(2), LABELS)
    np.testing.assert_array_equal(again.truth, LABELS[0, 0])
    refused(
        tmp_path / "logs.npz", tmp_path / "none", "got 'emu'", class_names=["owl", "cat", "dog"]
    )


# Choices that do not fit


@pytest.mark.parametrize(
    ("options", "words", "kind"),
    [
        ({"axes": "sample,net"}, "axes must name the axes.*got 'sample,net'", ChoiceError),
        ({"axes": "network,epoch"}, "got 'network,epoch'", ChoiceError),
        ({"axes": "sample,sample,epoch"}, "each once", ChoiceError),
        ({"key": "p"}, r"no array named 'p'; it has labels \(10, 2, 3\)", SourceError),
        ({"format": "files"}, "files needs --pattern, and no other takes it", ChoiceError),
        ({"pattern": "a{network}", "format": "npz"}, "files needs --pattern", ChoiceError),
        ({}, "truth has 10 values, but the axis sample has 3. Are the axes in", SourceError),
        (
            {"format": "mat"},
            "(?s)no importer for 'mat'.*--axes sample,network,epoch --key",
            ChoiceError,
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, options, words, kind):
    labels = LABELS.transpose(2, 0, 1)
    np.savez(tmp_path / "logs.npz", labels=labels, truth=LABELS[0, 0])
    refused(tmp_path / "logs.npz", tmp_path, words, kind, **options)


def test_an_unknown_source_is_refused_with_the_layouts_that_work(tmp_path):
    (tmp_path / "logs.mat").write_bytes(b"")
    with pytest.raises(ChoiceError) as caught:
        import_record(tmp_path / "logs.mat", tmp_path / "record")
    for name in ("network_0", "seed{network}/epoch_{epoch}.npy", "network,epoch,sample,label"):
        assert name in str(caught.value)


def test_what_is_known_of_samples_may_come_as_arguments(tmp_path):
    np.save(tmp_path / "logs.npy", LABELS)
    ids = [f"s{i}" for i in range(10)]
    found = imported(tmp_path / "logs.npy", tmp_path, truth=LABELS[0, 0], ids=ids, given=None)
    assert found.ids.tolist() == ids
    with pytest.raises(TypeError, match="unexpected argument 'thruth'"):
        import_record(tmp_path / "logs.npy", tmp_path / "other", thruth=LABELS[0, 0])
