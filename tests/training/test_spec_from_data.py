"""Data without a spec get one that trains."""

import numpy as np
import pytest
from PIL import Image

from accord.errors import ChoiceError, SourceError
from accord.training import load_spec, spec_from_data, train
from accord.training._prepared_data import prepare_data
from accord.training._spec_from_data import is_data

PENGUINS = """species,island,bill_length_mm,sex,rowid
Adelie,Torgersen,39.1,male,1
Adelie,Torgersen,NA,female,2
Gentoo,Biscoe,46.1,NA,3
Gentoo,Biscoe,50,male,4
Adelie,Dream,40.3,female,5
Gentoo,Biscoe,48.7,female,6
Gentoo,Biscoe,48.8,female,7
Gentoo,Biscoe,48.2,male,8
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my penguins.csv").write_text(PENGUINS)
    return tmp_path


def test_a_table_is_trained_without_a_spec(folder):
    spec, notes = spec_from_data((folder / "my penguins.csv").relative_to(folder))
    assert spec.name == "my-penguins"
    assert spec.root == str(folder)
    assert spec.data.options == {
        "label": "species",
        "one_hot": ["island", "sex"],
        "ids": "rowid",
        "missing": "fill",
        "held_out": 0.2,
    }
    assert (spec.train.network, spec.record.splits) == ("mlp", ("test", "train"))
    assert notes[0] == "8 rows, labels: species (Gentoo: 5, Adelie: 3)"
    assert notes[-1] == "5 × mlp, 40 epochs, 20 % of the samples held out to test"
    small = spec.model_copy(
        update={"train": spec.train.model_copy(update={"networks": 1, "epochs": 1})}
    )
    assert not train(small, folder / "run").failed
    assert load_spec(folder / "run/spec.toml").digest() == small.digest()


def test_cross_fitting_holds_nothing_out(folder):
    spec, _ = spec_from_data(folder / "my penguins.csv", cross_fit=2)
    assert (spec.data.cross_fit, spec.data.options["held_out"]) == (2, 0)
    assert spec.record.probabilities
    assert spec.record.splits == ("train",)
    assert len(prepare_data(spec).splits["train"]) == 8


def test_rows_without_labels_may_be_left_out(folder):
    (folder / "a.csv").write_text(PENGUINS.replace("Adelie,Dream", "NA,Dream"))
    spec, notes = spec_from_data(folder / "a.csv", label="species", drop_unlabelled=True)
    assert notes[0] == "8 rows, labels: species (Gentoo: 5, Adelie: 2)"
    assert len(prepare_data(spec).splits["train"]) == 6


def test_a_folder_of_tables_has_its_own_test_split(folder):
    for part in ("train", "test"):
        (folder / f"{part}.csv").write_text(PENGUINS)
    spec, _ = spec_from_data(folder)
    assert (spec.data.kind, "held_out" in spec.data.options) == ("csv", False)
    assert len(prepare_data(spec).splits["test"]) == 8


@pytest.mark.parametrize(
    ("side", "network", "size"), [(20, "small-cnn", 20), (90, "resnet18", 112)]
)
def test_images_get_a_network_of_their_size(folder, side, network, size):
    for number in range(6):
        file = folder / "photos" / "ab"[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (side + number, side)).save(file)
    spec, notes = spec_from_data(folder / "photos")
    assert (spec.data.kind, spec.train.network) == ("image-folder", network)
    assert spec.data.options["size"] == size
    assert notes[0] == f"6 images of {size} × {size} pixels, labels: folders (a: 3, b: 3)"
    assert len(prepare_data(spec).splits["test"]) == 1


@pytest.mark.parametrize(
    ("shape", "dtype", "network"), [((8, 3), "f4", "mlp"), ((8, 9, 9), "u1", "small-cnn")]
)
def test_arrays_get_a_network_of_their_shape(folder, shape, dtype, network):
    np.savez(folder / "a.npz", inputs=np.zeros(shape, dtype), labels=np.arange(8) % 2)
    spec, _ = spec_from_data(folder / "a.npz")
    assert (spec.train.network, spec.data.options) == (network, {"held_out": 0.2})
    assert len(prepare_data(spec).splits["test"]) == 2


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("none.csv", {}, SourceError, "no such file or folder"),
        ("a.csv.gz", {}, ChoiceError, r"expected a spec \(\.toml\), a table"),
        ("texts.npz", {}, SourceError, r"holds texts\. Write them as a column of a \.csv"),
        ("other.npz", {}, SourceError, "holds what; expected inputs and labels"),
        ("texts.npz", {"label": "y"}, ChoiceError, "--label and --drop-unlabelled are for tables"),
        ("empty", {}, SourceError, "holds no images, and no train.csv"),
    ],
)
def test_other_data_are_refused(folder, name, options, error, words):
    (folder / "a.csv.gz").touch()
    (folder / "empty").mkdir()
    np.savez(folder / "texts.npz", inputs=np.array(["a", "b"]), labels=np.arange(2))
    np.savez(folder / "other.npz", what=np.arange(2))
    assert is_data(folder / name)
    with pytest.raises(error, match=words):
        spec_from_data(folder / name, **options)
