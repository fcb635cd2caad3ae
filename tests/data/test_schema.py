"""Digests identify samples; labels are matched with the classes of a schema."""

import numpy as np
import pytest
from PIL import Image

from accord.data import InputSchema, Samples, read_samples
from accord.data._schema import match_labels
from accord.errors import SourceError

PHOTOS = InputSchema("image", ("cat", "dog"), 3, (6, 6), 10, (1.0,) * 3, (2.0,) * 3)


def draw(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def test_digests_differ_between_samples(tmp_path):
    for name in ("a.png", "b.png"):
        Image.fromarray(draw(6, 6, 3)).save(tmp_path / name)
    files = read_samples(tmp_path, PHOTOS)
    several = [
        Samples(draw(2, 3, 6, 6)),
        Samples(draw(2, 3, 6, 6)[::-1]),
        Samples(("a", "b")),
        Samples(("a", "c")),
        files,
        read_samples(tmp_path / "a.png", PHOTOS),
    ]
    assert len({one.digest() for one in several}) == 6
    assert Samples(draw(2, 3, 6, 6)).digest() == several[0].digest()
    before = files.digest()
    data = bytearray((tmp_path / "b.png").read_bytes())
    data[-1] ^= 1
    (tmp_path / "b.png").write_bytes(bytes(data))  # of the same name and size
    assert files.digest() != before
    assert several[0].sample_bytes == files.sample_bytes == 3 * 6 * 6
    assert Samples(np.ones((2, 4), np.float32)).sample_bytes == 16


@pytest.mark.parametrize(
    ("values", "class_names", "labels"),
    [
        (["dog", "cat"], ("cat", "dog"), [1, 0]),
        ([1, 0], ("cat", "dog"), [1, 0]),
        (["1", "0"], ("cat", "dog"), [1, 0]),
        ([2, 1], ("1", "2"), [1, 0]),
        (["2", "1"], ("1", "2"), [1, 0]),
        ([-1, 5], ("-1", "5"), [0, 1]),
    ],
)
def test_labels_are_indices_or_names_of_classes(values, class_names, labels):
    assert match_labels(np.array(values), class_names, where="x").tolist() == labels


@pytest.mark.parametrize(
    ("values", "class_names"), [(["eel"], ("cat", "dog")), ([0], ("1", "2")), (["2"], ("a", "b"))]
)
def test_other_labels_are_refused(values, class_names):
    with pytest.raises(SourceError, match=f"x: '{values[0]}' is not one of the run's 2 classes"):
        match_labels(np.array(values), class_names, where="x")
