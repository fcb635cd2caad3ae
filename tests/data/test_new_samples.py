"""New samples are read in the form that networks were trained on, or refused with the reason."""

import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from accord.data import READERS, SAMPLE_FORMATS, InputSchema, Layout, read_samples
from accord.data._new_samples import to_grey
from accord.errors import ChoiceError, SourceError

PHOTOS = InputSchema("image", ("cat", "dog"), 3, (6, 6), 10, (1.0,) * 3, (2.0,) * 3)
GREY = InputSchema("image", ("cat", "dog"), 1, (6, 6), 10, (1.0,), (2.0,))
CUSTOMERS = InputSchema(
    "table", ("no", "yes"), 4, (1, 1), 10, (0.0,) * 4, (1.0,) * 4,
    columns=(("age", None), ("town", ("Bonn", "Ulm")), ("calls", None)),
)  # fmt: skip
TEXTS = InputSchema("text", ("bad", "good"), 1, (1, 1), 10)
PAIRS = InputSchema("text", ("entailment", "not_entailment"), 1, (1, 1), 10, pairs=True)


IMAGES = Layout("image-folder")
TABLE = Layout("csv", {"label": "left", "ids": "id", "one_hot": ["town"]})
TEXT = Layout("csv", {"text": "review"})
ARRAYS = Layout("npz")


def draw(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def write_image(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


# Arrays


@pytest.mark.parametrize("name", ["inputs", "images", "test_inputs", "x_test"])
def test_an_npz_may_name_its_images_in_several_ways(tmp_path, name):
    np.savez(tmp_path / "new.npz", **{name: draw(4, 3, 6, 6)})
    found = read_samples(tmp_path / "new.npz", PHOTOS, layout=IMAGES)
    np.testing.assert_array_equal(found.inputs, draw(4, 3, 6, 6))
    assert (found.truth, found.ids.tolist()) == (None, [0, 1, 2, 3])
    assert found.name == str(tmp_path / "new.npz")


def test_labels_are_class_indices_or_class_names(tmp_path):
    arrays = {"inputs": draw(3, 3, 6, 6), "ids": np.array([7, 8, 9])}
    np.savez(tmp_path / "names.npz", **arrays, labels=np.array(["dog", "cat", "dog"]))
    np.savez(tmp_path / "numbers.npz", **arrays, y=np.array([[1], [0], [1]]),
             class_names=np.array(["cat", "dog"]))  # fmt: skip
    for name in ("names.npz", "numbers.npz"):
        found = read_samples(tmp_path / name, PHOTOS, layout=IMAGES)
        assert (found.truth, found.given.tolist()) == (None, [1, 0, 1])
        assert found.ids.tolist() == [7, 8, 9]


def test_labels_are_true_where_the_layout_is_verified_or_they_are_called_truth(tmp_path):
    inputs = draw(2, 3, 6, 6)
    np.savez(tmp_path / "labels.npz", inputs=inputs, labels=[1, 0])
    np.savez(tmp_path / "truth.npz", inputs=inputs, labels=[1, 1], truth=[0, 1])
    found = read_samples(tmp_path / "labels.npz", PHOTOS, layout=replace(IMAGES, verified=True))
    assert (found.truth.tolist(), found.given) == ([1, 0], None)
    found = read_samples(tmp_path / "truth.npz", PHOTOS, layout=IMAGES)
    assert (found.truth.tolist(), found.given) == ([0, 1], None)


def test_channels_may_be_last_or_missing(tmp_path):
    last = read_samples(draw(4, 6, 6, 3), PHOTOS, layout=IMAGES)
    np.testing.assert_array_equal(last.inputs, draw(4, 6, 6, 3).transpose(0, 3, 1, 2))
    np.save(tmp_path / "grey.npy", draw(4, 6, 6))
    grey = read_samples(tmp_path / "grey.npy", GREY, layout=IMAGES)
    assert grey.inputs.shape == (4, 1, 6, 6)


def test_channels_are_first_where_the_shape_does_not_decide():
    cube = InputSchema("image", ("cat", "dog"), 3, (3, 3), 10, (1.0,) * 3, (2.0,) * 3)
    np.testing.assert_array_equal(
        read_samples(draw(4, 3, 3, 3), cube, layout=IMAGES).inputs, draw(4, 3, 3, 3)
    )


def test_features_and_texts_may_be_given_as_values():
    rows = read_samples(np.ones((2, 4), np.int64), CUSTOMERS, layout=TABLE).inputs
    assert (rows.dtype, rows.shape) == (np.float32, (2, 4))
    assert read_samples(["a", "b"], TEXTS, layout=TEXT).inputs == ("a", "b")
    assert read_samples(np.array(["a", "b"]), TEXTS, layout=TEXT).inputs == ("a", "b")
    assert read_samples([["a", "b"]], PAIRS, layout=TEXT).inputs == (("a", "b"),)
    assert read_samples(np.array([["a", "b"]]), PAIRS, layout=TEXT).inputs == (("a", "b"),)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"pictures": draw(2, 3, 6, 6)}, "holds pictures; the samples must be called one of inp"),
        ({"inputs": draw(0, 3, 6, 6)}, "holds no samples"),
        ({"inputs": draw(2, 3, 8, 8)}, "images of 3 × 8 × 8 .*; .* trained on images of 3 × 6 × 6"),
        ({"inputs": draw(2, 1, 6, 6)}, "holds images of 1 × 6 × 6"),
        ({"inputs": draw(2, 3, 6, 6) / 255}, "got float64 of shape .*scaled to 0..1"),
        ({"inputs": np.ones((2, 4))}, "holds rows of 4 numbers; the networks were trained"),
        ({"inputs": np.array(["a"])}, "holds texts; the networks"),
        ({"inputs": draw(2, 3, 6, 6), "labels": [1, 2]}, "in 0..1 for 2 classes; got 1..2"),
        ({"inputs": draw(2, 3, 6, 6), "labels": [-1, 1]}, "negative numbers mark samples"),
        ({"inputs": draw(2, 3, 6, 6), "labels": [1]}, "one label for each of the 2 samples"),
        (
            {"inputs": draw(1, 3, 6, 6), "labels": ["eel"]},
            r"'eel' is not one .* 2 classes \(cat, dog",
        ),
        (
            {"inputs": draw(1, 3, 6, 6), "class_names": ["a", "b"]},
            "has other classes .a, b …. than",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "new.npz", **arrays)
    with pytest.raises(SourceError, match=f"new.npz: .*{words}"):
        read_samples(tmp_path / "new.npz", PHOTOS, layout=IMAGES)


def test_a_file_that_is_not_an_npz_is_named(tmp_path):
    (tmp_path / "new.npz").write_bytes(b"PK")
    with pytest.raises(SourceError, match=r"new\.npz: cannot be read as npz"):
        read_samples(tmp_path / "new.npz", PHOTOS, layout=IMAGES)


@pytest.mark.parametrize("data", [b"", b"PK", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_not_an_npy_is_named(tmp_path, data):
    (tmp_path / "new.npy").write_bytes(data)
    with pytest.raises(SourceError, match=r"new\.npy: cannot be read as npy"):
        read_samples(tmp_path / "new.npy", PHOTOS, layout=IMAGES)


def test_a_damaged_file_of_arrays_is_named(tmp_path):
    path = tmp_path / "new.npz"
    np.savez_compressed(path, images=draw(40, 6, 6, 3))
    data = bytearray(path.read_bytes())
    data[200:220] = bytes(20)
    path.write_bytes(bytes(data))
    with pytest.raises(SourceError, match=r"new\.npz: cannot be read as npz"):
        read_samples(path, PHOTOS, layout=IMAGES)


def test_numbers_are_names_where_classes_are_named_by_other_numbers(tmp_path):
    stars = InputSchema("image", ("1", "2"), 3, (6, 6), 10, (1.0,) * 3, (2.0,) * 3)
    np.savez(tmp_path / "new.npz", images=draw(3, 3, 6, 6), labels=np.array([2, 1, 2]))
    found = read_samples(tmp_path / "new.npz", stars, layout=IMAGES)
    assert found.given.tolist() == [1, 0, 1]
    (tmp_path / "new.csv").write_text("a,b,label\n1,2,0\n3,4,1\n")
    rows = InputSchema("table", ("1", "2"), 2, (1, 1), 10, (1.0,) * 2, (2.0,) * 2)
    with pytest.raises(SourceError, match="'0' is not one of the run's 2 classes"):
        read_samples(tmp_path / "new.csv", rows, layout=ARRAYS)


def test_numbers_must_be_finite():
    with pytest.raises(SourceError, match="the samples: holds numbers that are not finite"):
        read_samples(np.full((2, 4), np.nan), CUSTOMERS, layout=TABLE)


# Images


def test_a_folder_of_images_has_no_labels(tmp_path):
    for name in ("b.png", "a.png", "deeper/c.png"):
        write_image(tmp_path / name, draw(6, 6, 3))
    found = read_samples(tmp_path, PHOTOS, layout=IMAGES)
    assert found.ids.tolist() == ["a.png", "b.png", "deeper/c.png"]
    assert found.truth is None
    np.testing.assert_array_equal(found.part(slice(1, 2))[0], draw(6, 6, 3).transpose(2, 0, 1))


def test_folders_named_as_classes_are_labels(tmp_path):
    for name in ("dog/1.png", "dog/2.png", "cat/1.png"):
        write_image(tmp_path / name, draw(9, 9, 3))
    found = read_samples(tmp_path, PHOTOS, layout=IMAGES)
    assert found.given.tolist() == [0, 1, 1]
    write_image(tmp_path / "eel/1.png", draw(9, 9, 3))
    with pytest.raises(SourceError, match="have the names of classes, and 'eel' is not"):
        read_samples(tmp_path, PHOTOS, layout=IMAGES)


def test_images_beside_class_folders_are_refused(tmp_path):
    write_image(tmp_path / "cat/1.png", draw(9, 9, 3))
    write_image(tmp_path / "2.png", draw(9, 9, 3))
    with pytest.raises(SourceError, match="and 'images beside them' is not"):
        read_samples(tmp_path, PHOTOS, layout=IMAGES)


def test_a_folder_with_a_training_part_gives_its_test_part(tmp_path):
    for name in ("train/cat/1.png", "train/dog/1.png", "test/dog/7.png"):
        write_image(tmp_path / name, draw(9, 9, 3))
    found = read_samples(tmp_path, PHOTOS, layout=IMAGES)
    assert (found.ids.tolist(), found.given.tolist()) == (["dog/7.png"], [1])


def test_images_are_resized_as_the_run_resized_its_own(tmp_path):
    write_image(tmp_path / "a.png", draw(12, 24, 3))
    plain = read_samples(tmp_path / "a.png", PHOTOS, layout=IMAGES)
    assert (plain.inputs.size, plain.inputs.resize, len(plain)) == (6, 6, 1)
    larger = InputSchema("image", ("cat", "dog"), 3, (6, 6), 10, (1.0,) * 3, (2.0,) * 3, resize=9)
    assert read_samples(tmp_path, larger, layout=IMAGES).inputs.resize == 9


def test_the_error_for_a_damaged_image_names_the_fix_for_inference(tmp_path):
    for name in ("cat/1.png", "dog/1.png"):
        for part in ("train", "test"):
            write_image(tmp_path / part / name, draw(9, 9, 3))
    (tmp_path / "test/dog/2.png").write_bytes(b"?")
    small = Layout("image-folder", {"size": 6, "resize": 6})
    for name in ("images", "run"):
        found = read_samples(tmp_path, PHOTOS, layout=small, format=name)
        with pytest.raises(SourceError, match=r"2\.png: cannot .*Remove the file: every file"):
            found.part(slice(None))


def test_images_become_grey_for_networks_of_one_channel(tmp_path):
    write_image(tmp_path / "a.png", draw(6, 6))
    found = read_samples(tmp_path, GREY, layout=IMAGES)
    np.testing.assert_array_equal(found.inputs[0, 0], draw(6, 6))
    colour = np.array([255, 0, 0], np.uint8).reshape(1, 3, 1, 1)
    assert to_grey(colour).ravel() == [76]
    assert to_grey(colour[:, ::-1]).ravel() == [29]


def test_images_are_refused_for_other_kinds_and_shapes(tmp_path):
    write_image(tmp_path / "a.png", draw(6, 6))
    with pytest.raises(SourceError, match="holds images; the networks were trained on texts"):
        read_samples(tmp_path / "a.png", TEXTS, layout=TEXT)
    wide = InputSchema("image", ("cat", "dog"), 3, (6, 8), 10, (1.0,) * 3, (2.0,) * 3)
    with pytest.raises(SourceError, match="6 by 8 pixels, and image files are cropped"):
        read_samples(tmp_path / "a.png", wide, layout=IMAGES)


# Tables and texts


def test_columns_are_found_by_their_names_in_any_order(tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("id,calls,town,age,left\na,3,Ulm,40,yes\nb,1,Bonn,20,no\n")
    found = read_samples(file, CUSTOMERS, layout=TABLE)
    assert found.inputs.tolist() == [[40, 0, 1, 3], [20, 1, 0, 1]]
    assert (found.given.tolist(), found.ids.tolist()) == ([1, 0], ["a", "b"])
    file.write_text("town,age,calls\nUlm,40,3\n")
    unlabelled = read_samples(file, CUSTOMERS, layout=TABLE)
    assert unlabelled.inputs.tolist() == [[40, 0, 1, 3]]
    assert unlabelled.truth is unlabelled.given is None
    assert unlabelled.ids.tolist() == [2]


def test_a_column_named_none_does_not_hold_ids(tmp_path):
    (tmp_path / "new.csv").write_text("review,None\nfine,7\n")
    assert read_samples(tmp_path / "new.csv", TEXTS, layout=TEXT).ids.tolist() == [2]


def test_labels_of_a_table_may_be_numbers_of_classes(tmp_path):
    (tmp_path / "new.tsv").write_text("town\tage\tcalls\tleft\nUlm\t1\t2\t1\n")
    assert read_samples(tmp_path / "new.tsv", CUSTOMERS, layout=TABLE).given.tolist() == [1]


def test_a_run_without_named_columns_takes_them_in_their_order(tmp_path):
    plain = InputSchema("table", ("no", "yes"), 2, (1, 1), 10, (0.0,) * 2, (1.0,) * 2)
    (tmp_path / "new.csv").write_text("b,label,a\n1,no,2\n")
    found = read_samples(tmp_path / "new.csv", plain, layout=ARRAYS)
    assert (found.inputs.tolist(), found.given.tolist()) == ([[1, 2]], [0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,town\n1,Ulm\n", "has no column 'calls', which the networks were trained on"),
        (
            "age,town,calls\n1,Jena,2\n",
            "'town' holds 'Jena', a value that is not in the training data: Bonn, Ulm",
        ),
        ("age,town,calls\nold,Ulm,2\n", "column 'age', line 2 is not a number: 'old'"),
        ("age,town,calls\n", "holds no rows"),
        ("age,town,calls,left\n1,Ulm,2,maybe\n", "column 'left': 'maybe' is not one of the run's"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path, text, words):
    (tmp_path / "new.csv").write_text(text)
    with pytest.raises(SourceError, match=f"new.csv: .*{words}"):
        read_samples(tmp_path / "new.csv", CUSTOMERS, layout=TABLE)


def test_texts_come_from_lines_or_columns(tmp_path):
    (tmp_path / "new.txt").write_text("good film\n\nbad film\r\n")
    assert read_samples(tmp_path / "new.txt", TEXTS, layout=TEXT).inputs == (
        "good film",
        "bad film",
    )
    (tmp_path / "new.csv").write_text("review,label\nfine,good\n")
    found = read_samples(tmp_path / "new.csv", TEXTS, layout=TEXT)
    assert (found.inputs, found.given.tolist()) == (("fine",), [1])
    (tmp_path / "other.csv").write_text("sentence\nfine\n")
    glue = ARRAYS
    assert read_samples(tmp_path / "other.csv", TEXTS, layout=glue).inputs == ("fine",)
    with pytest.raises(SourceError, match="has no column review; it has sentence"):
        read_samples(tmp_path / "other.csv", TEXTS, layout=TEXT)


def test_pairs_come_from_lines_with_a_tab_or_the_columns_of_glue(tmp_path):
    glue = Layout("qnli")
    (tmp_path / "new.txt").write_text("\nwho?\tme\n")
    found = read_samples(tmp_path / "new.txt", PAIRS, layout=glue)
    assert (found.inputs, found.ids.tolist()) == ((("who?", "me"),), [2])
    (tmp_path / "new.tsv").write_text('index\tquestion\tsentence\tlabel\n0\t"who\tme\t1\n')
    found = read_samples(tmp_path / "new.tsv", PAIRS, layout=glue)
    assert (found.inputs, found.given.tolist()) == ((('"who', "me"),), [1])
    assert found.ids.tolist() == [2]
    (tmp_path / "new.txt").write_text("who?\tme\nwho\n")
    with pytest.raises(SourceError, match="line 2 has 1 parts; the networks were trained on pairs"):
        read_samples(tmp_path / "new.txt", PAIRS, layout=glue)


@pytest.mark.parametrize(
    ("texts", "traits", "words"),
    [
        ([("a", "b", "c")], PAIRS, "neither texts nor pairs"),
        (["a", ("b", "c")], TEXTS, "a mixture of pairs of texts and texts"),
        (["a", None], TEXTS, "a mixture of neither texts nor pairs of texts and texts"),
        ([1, 2], TEXTS, "neither texts nor pairs"),
    ],
)
def test_every_text_is_checked(texts, traits, words):
    with pytest.raises(SourceError, match=words):
        read_samples(texts, traits, layout=TEXT)


def test_texts_are_refused_for_other_kinds(tmp_path):
    with pytest.raises(SourceError, match=r"holds texts; .* trained on pairs of texts"):
        read_samples(["a"], PAIRS, layout=TEXT)
    (tmp_path / "new.txt").write_text("")
    with pytest.raises(SourceError, match=r"new\.txt: holds no samples"):
        read_samples(tmp_path / "new.txt", TEXTS, layout=TEXT)
    with pytest.raises(SourceError, match="holds texts; the networks were trained on images"):
        read_samples(tmp_path / "new.txt", PHOTOS, layout=IMAGES)
    (tmp_path / "new.csv").write_text("a\n1\n")
    with pytest.raises(SourceError, match="holds a table; the networks were trained on images"):
        read_samples(tmp_path / "new.csv", PHOTOS, layout=IMAGES)


# The training layout, and unknown endings


def test_a_folder_in_the_training_layout_gives_its_test_split(tmp_path):
    for name, samples in (("data_batch_1", 4), *((f"data_batch_{n}", 4) for n in range(2, 6)),
                          ("test_batch", 3)):  # fmt: skip
        rows = draw(samples, 3073)
        rows[:, 0] = np.arange(samples)
        rows.tofile(tmp_path / f"{name}.bin")
    cifar = Layout("cifar10", {"complete": False})
    names = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")  # noqa: E501  # fmt: skip
    traits = InputSchema("image", names, 3, (32, 32), 10, (1.0,) * 3, (2.0,) * 3)
    found = read_samples(tmp_path, traits, layout=cifar)
    assert (found.inputs.shape, found.truth.tolist()) == ((3, 3, 32, 32), [0, 1, 2])
    other = InputSchema("image", names[::-1], 3, (32, 32), 10, (1.0,) * 3, (2.0,) * 3)
    with pytest.raises(SourceError, match=r"has 10 classes, airplane.*; the run has 10, truck"):
        read_samples(tmp_path, other, layout=cifar)
    np.savez(tmp_path / "x.npz", train_inputs=draw(2, 3, 6, 6), train_labels=[0, 1],
             test_inputs=draw(1, 3, 6, 6), test_labels=[1], class_names=["cat", "dog"])  # fmt: skip
    own = ARRAYS
    for format_ in (None, "run"):
        assert read_samples(
            tmp_path / "x.npz", PHOTOS, layout=own, format=format_
        ).given.tolist() == [1]


def test_the_folder_of_the_training_images_is_read_in_its_published_layout(tmp_path):
    for name in ("training/0_a.png", "training/1_b.png", "testing/1_c.png", "more/d.png"):
        write_image(tmp_path / name, draw(6, 6, 3))
    names = READERS["animal10n"].read(tmp_path, complete=False).class_names
    schema = InputSchema("image", names, 3, (6, 6), 10, (1.0,) * 3, (2.0,) * 3)
    layout = Layout("animal10n", {"complete": False, "size": 6, "resize": 6}, tmp_path)
    found = read_samples(tmp_path, schema, layout=layout)
    assert (found.truth.tolist(), found.ids.tolist()) == ([1], ["testing/1_c.png"])
    assert read_samples(tmp_path / "more", schema, layout=layout).truth is None


def test_notes_of_the_reader_are_kept(tmp_path):
    for name in ("train/cat/1.png", "train/dog/1.png", "test/cat/1.png", "test/dog/1.png"):
        write_image(tmp_path / name, draw(6, 6, 3))
    (tmp_path / "notes.md").write_text("not an image")
    layout = Layout("image-folder", {"size": 6, "resize": 6})
    found = read_samples(tmp_path, PHOTOS, layout=layout, format="run")
    assert found.notes == ("left out 1 file without an image's ending: notes.md",)


def test_an_unknown_ending_needs_a_format(tmp_path):
    with pytest.raises(SourceError, match=r"nowhere: no such file or folder\."):
        read_samples(tmp_path / "nowhere", PHOTOS, layout=IMAGES)
    (tmp_path / "new.dat").write_text("fine\n")
    with pytest.raises(ChoiceError, match=re.escape(".dat belongs to no format; known are")):
        read_samples(tmp_path / "new.dat", TEXTS, layout=TEXT)
    found = read_samples(tmp_path / "new.dat", TEXTS, layout=TEXT, format="txt")
    assert found.inputs == ("fine",)
    assert set(SAMPLE_FORMATS) == {"npz", "npy", "images", "csv", "tsv", "parquet", "txt", "run"}
