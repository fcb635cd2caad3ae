"""New samples are read from what people have, or refused with the reason."""

import re

import numpy as np
import pytest
from PIL import Image

from accord.data import Dataset, Split
from accord.errors import ChoiceError, SourceError
from accord.inference import _sources as sources
from accord.inference._samples import Samples, to_grey
from accord.inference._sources import FORMATS, find_samples
from accord.training._input_schema import InputSchema
from accord.training.spec import parse_spec

PHOTOS = InputSchema("image", ("cat", "dog"), 3, (6, 6), 10, (1.0,) * 3, (2.0,) * 3)
GREY = InputSchema("image", ("cat", "dog"), 1, (6, 6), 10, (1.0,), (2.0,))
CUSTOMERS = InputSchema(
    "table", ("no", "yes"), 4, (1, 1), 10, (0.0,) * 4, (1.0,) * 4,
    columns=(("age", None), ("town", ("Bonn", "Ulm")), ("calls", None)),
)  # fmt: skip
TEXTS = InputSchema("text", ("bad", "good"), 1, (1, 1), 10)
PAIRS = InputSchema("text", ("entailment", "not_entailment"), 1, (1, 1), 10, pairs=True)


def spec_of(kind, *lines):
    return parse_spec(
        "\n".join(['name = "x"', "[data]", f'kind = "{kind}"', *lines, "[train]", "epochs = 1"])
    )


IMAGES = spec_of("image-folder", 'path = "photos"')
TABLE = spec_of("csv", 'path = "churn.csv"', 'label = "left"', 'ids = "id"', 'one_hot = ["town"]')
TEXT = spec_of("csv", 'path = "texts.csv"', 'text = "said"')


def draw(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def write_image(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


# Arrays


@pytest.mark.parametrize("name", ["inputs", "images", "test_inputs", "x_test"])
def test_an_npz_holds_images_under_any_usual_name(tmp_path, name):
    np.savez(tmp_path / "new.npz", **{name: draw(4, 3, 6, 6)})
    found = find_samples(tmp_path / "new.npz", IMAGES, PHOTOS)
    np.testing.assert_array_equal(found.inputs, draw(4, 3, 6, 6))
    assert found.truth is None
    assert found.name == str(tmp_path / "new.npz")


def test_labels_and_ids_come_along_as_numbers_or_names(tmp_path):
    arrays = {"inputs": draw(3, 3, 6, 6), "ids": np.array([7, 8, 9])}
    np.savez(tmp_path / "names.npz", **arrays, labels=np.array(["dog", "cat", "dog"]))
    np.savez(tmp_path / "numbers.npz", **arrays, y=np.array([[1], [0], [1]]),
             class_names=np.array(["cat", "dog"]))  # fmt: skip
    for name in ("names.npz", "numbers.npz"):
        found = find_samples(tmp_path / name, IMAGES, PHOTOS)
        assert found.truth.tolist() == [1, 0, 1]
        assert found.ids.tolist() == [7, 8, 9]


def test_channels_may_come_last_or_be_left_out(tmp_path):
    last = find_samples(draw(4, 6, 6, 3), IMAGES, PHOTOS)
    np.testing.assert_array_equal(last.inputs, draw(4, 6, 6, 3).transpose(0, 3, 1, 2))
    np.save(tmp_path / "grey.npy", draw(4, 6, 6))
    grey = find_samples(tmp_path / "grey.npy", IMAGES, GREY)
    assert grey.inputs.shape == (4, 1, 6, 6)


def test_where_both_would_do_channels_come_first():
    cube = InputSchema("image", ("cat", "dog"), 3, (3, 3), 10, (1.0,) * 3, (2.0,) * 3)
    np.testing.assert_array_equal(
        find_samples(draw(4, 3, 3, 3), IMAGES, cube).inputs, draw(4, 3, 3, 3)
    )


def test_rows_and_texts_may_be_given_as_they_are():
    rows = find_samples(np.ones((2, 4), np.int64), TABLE, CUSTOMERS).inputs
    assert (rows.dtype, rows.shape) == (np.float32, (2, 4))
    assert find_samples(["a", "b"], TEXT, TEXTS).inputs == ("a", "b")
    assert find_samples(np.array(["a", "b"]), TEXT, TEXTS).inputs == ("a", "b")
    assert find_samples([["a", "b"]], TEXT, PAIRS).inputs == (("a", "b"),)
    assert find_samples(np.array([["a", "b"]]), TEXT, PAIRS).inputs == (("a", "b"),)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"pictures": draw(2, 3, 6, 6)}, "holds pictures; the samples must be called one of inp"),
        ({"inputs": draw(0, 3, 6, 6)}, "holds no samples"),
        ({"inputs": draw(2, 3, 8, 8)}, "images of 3 × 8 × 8 .*; .* trained on images of 3 × 6 × 6"),
        ({"inputs": draw(2, 1, 6, 6)}, "holds images of 1 × 6 × 6"),
        ({"inputs": draw(2, 3, 6, 6) / 255}, "got float64 of shape .*scaled to 0..1"),
        ({"inputs": np.ones((2, 4))}, "holds rows of 4 numbers; the run's networks were trained"),
        ({"inputs": np.array(["a"])}, "holds texts; the run's"),
        ({"inputs": draw(2, 3, 6, 6), "labels": [1, 2]}, "in 0..1 for 2 classes; got 1..2"),
        ({"inputs": draw(2, 3, 6, 6), "labels": [-1, 1]}, "negative numbers mark samples"),
        ({"inputs": draw(2, 3, 6, 6), "labels": [1]}, "one label for each of the 2 samples"),
        ({"inputs": draw(1, 3, 6, 6), "labels": ["eel"]}, r"'eel' is none .* 2 classes \(cat, dog"),
        ({"inputs": draw(1, 3, 6, 6), "class_names": ["a", "b"]}, "other classes .a, b …. than"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "new.npz", **arrays)
    with pytest.raises(SourceError, match=f"new.npz: .*{words}"):
        find_samples(tmp_path / "new.npz", IMAGES, PHOTOS)


def test_a_file_that_is_no_array_is_named(tmp_path):
    (tmp_path / "new.npz").write_bytes(b"PK")
    with pytest.raises(SourceError, match=r"new\.npz: cannot be read as npz"):
        find_samples(tmp_path / "new.npz", IMAGES, PHOTOS)


@pytest.mark.parametrize("data", [b"", b"PK", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_no_npy_is_named(tmp_path, data):
    (tmp_path / "new.npy").write_bytes(data)
    with pytest.raises(SourceError, match=r"new\.npy: cannot be read as npy"):
        find_samples(tmp_path / "new.npy", IMAGES, PHOTOS)


def test_a_damaged_file_of_arrays_is_named(tmp_path):
    path = tmp_path / "new.npz"
    np.savez_compressed(path, images=draw(40, 6, 6, 3))
    data = bytearray(path.read_bytes())
    data[200:220] = bytes(20)
    path.write_bytes(bytes(data))
    with pytest.raises(SourceError, match=r"new\.npz: cannot be read as npz"):
        find_samples(path, IMAGES, PHOTOS)


def test_numbers_are_names_where_classes_are_named_by_other_numbers(tmp_path):
    stars = InputSchema("image", ("1", "2"), 3, (6, 6), 10, (1.0,) * 3, (2.0,) * 3)
    np.savez(tmp_path / "new.npz", images=draw(3, 3, 6, 6), labels=np.array([2, 1, 2]))
    found = find_samples(tmp_path / "new.npz", IMAGES, stars)
    assert found.truth.tolist() == [1, 0, 1]
    (tmp_path / "new.csv").write_text("a,b,label\n1,2,0\n3,4,1\n")
    rows = InputSchema("table", ("1", "2"), 2, (1, 1), 10, (1.0,) * 2, (2.0,) * 2)
    with pytest.raises(SourceError, match="'0' is none of the run's 2 classes"):
        find_samples(tmp_path / "new.csv", spec_of("npz", 'path = "x.npz"'), rows)


def test_numbers_must_be_finite():
    with pytest.raises(SourceError, match="the samples: holds numbers that are not finite"):
        find_samples(np.full((2, 4), np.nan), TABLE, CUSTOMERS)


# Images


def test_a_folder_of_images_has_no_labels(tmp_path):
    for name in ("b.png", "a.png", "deeper/c.png"):
        write_image(tmp_path / name, draw(6, 6, 3))
    found = find_samples(tmp_path, IMAGES, PHOTOS)
    assert found.ids.tolist() == ["a.png", "b.png", "deeper/c.png"]
    assert found.truth is None
    np.testing.assert_array_equal(found.part(slice(1, 2))[0], draw(6, 6, 3).transpose(2, 0, 1))


def test_folders_named_as_classes_are_labels(tmp_path):
    for name in ("dog/1.png", "dog/2.png", "cat/1.png"):
        write_image(tmp_path / name, draw(9, 9, 3))
    found = find_samples(tmp_path, IMAGES, PHOTOS)
    assert found.truth.tolist() == [0, 1, 1]
    write_image(tmp_path / "eel/1.png", draw(9, 9, 3))
    with pytest.raises(SourceError, match="named as the run's classes, and 'eel' is not"):
        find_samples(tmp_path, IMAGES, PHOTOS)


def test_images_beside_class_folders_are_refused(tmp_path):
    write_image(tmp_path / "cat/1.png", draw(9, 9, 3))
    write_image(tmp_path / "2.png", draw(9, 9, 3))
    with pytest.raises(SourceError, match="and 'images beside them' is not"):
        find_samples(tmp_path, IMAGES, PHOTOS)


def test_of_a_folder_laid_out_for_training_the_test_part_counts(tmp_path):
    for name in ("train/cat/1.png", "train/dog/1.png", "test/dog/7.png"):
        write_image(tmp_path / name, draw(9, 9, 3))
    found = find_samples(tmp_path, IMAGES, PHOTOS)
    assert (found.ids.tolist(), found.truth.tolist()) == (["dog/7.png"], [1])


def test_images_are_resized_as_the_run_resized_its_own(tmp_path):
    write_image(tmp_path / "a.png", draw(12, 24, 3))
    plain = find_samples(tmp_path / "a.png", IMAGES, PHOTOS)
    assert (plain.inputs.size, plain.inputs.resize, len(plain)) == (6, 6, 1)
    larger = InputSchema("image", ("cat", "dog"), 3, (6, 6), 10, (1.0,) * 3, (2.0,) * 3, resize=9)
    assert find_samples(tmp_path, IMAGES, larger).inputs.resize == 9


def test_a_file_that_is_no_image_is_refused_without_a_word_of_training(tmp_path):
    for name in ("cat/1.png", "dog/1.png"):
        for part in ("train", "test"):
            write_image(tmp_path / part / name, draw(9, 9, 3))
    (tmp_path / "test/dog/2.png").write_bytes(b"?")
    small = spec_of("image-folder", 'path = "photos"\nsize = 6\nresize = 6')
    for name in ("images", "run"):
        found = find_samples(tmp_path, small, PHOTOS, format=name)
        with pytest.raises(SourceError, match=r"2\.png: cannot .*Take it away: every file"):
            found.part(slice(None))


def test_networks_of_one_channel_see_grey(tmp_path):
    write_image(tmp_path / "a.png", draw(6, 6))
    found = find_samples(tmp_path, IMAGES, GREY)
    np.testing.assert_array_equal(found.inputs[0, 0], draw(6, 6))
    colour = np.array([255, 0, 0], np.uint8).reshape(1, 3, 1, 1)
    assert to_grey(colour).ravel() == [76]
    assert to_grey(colour[:, ::-1]).ravel() == [29]


def test_images_are_refused_where_they_do_not_fit(tmp_path):
    write_image(tmp_path / "a.png", draw(6, 6))
    with pytest.raises(SourceError, match="holds images; the run's networks were trained on texts"):
        find_samples(tmp_path / "a.png", TEXT, TEXTS)
    wide = InputSchema("image", ("cat", "dog"), 3, (6, 8), 10, (1.0,) * 3, (2.0,) * 3)
    with pytest.raises(SourceError, match="6 by 8 pixels, and files are cut to squares"):
        find_samples(tmp_path / "a.png", IMAGES, wide)


# Tables and texts


def test_columns_are_found_by_their_names_in_any_order(tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("id,calls,town,age,left\na,3,Ulm,40,yes\nb,1,Bonn,20,no\n")
    found = find_samples(file, TABLE, CUSTOMERS)
    assert found.inputs.tolist() == [[40, 0, 1, 3], [20, 1, 0, 1]]
    assert (found.truth.tolist(), found.ids.tolist()) == ([1, 0], ["a", "b"])
    file.write_text("town,age,calls\nUlm,40,3\n")
    unlabelled = find_samples(file, TABLE, CUSTOMERS)
    assert unlabelled.inputs.tolist() == [[40, 0, 1, 3]]
    assert unlabelled.truth is unlabelled.ids is None


def test_a_column_named_none_is_no_ids(tmp_path):
    (tmp_path / "new.csv").write_text("said,None\nfine,7\n")
    assert find_samples(tmp_path / "new.csv", TEXT, TEXTS).ids is None


def test_labels_of_a_table_may_be_numbers_of_classes(tmp_path):
    (tmp_path / "new.tsv").write_text("town\tage\tcalls\tleft\nUlm\t1\t2\t1\n")
    assert find_samples(tmp_path / "new.tsv", TABLE, CUSTOMERS).truth.tolist() == [1]


def test_a_run_without_named_columns_takes_them_in_their_order(tmp_path):
    plain = InputSchema("table", ("no", "yes"), 2, (1, 1), 10, (0.0,) * 2, (1.0,) * 2)
    (tmp_path / "new.csv").write_text("b,label,a\n1,no,2\n")
    found = find_samples(tmp_path / "new.csv", spec_of("npz", 'path = "x.npz"'), plain)
    assert (found.inputs.tolist(), found.truth.tolist()) == ([[1, 2]], [0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,town\n1,Ulm\n", "has no column 'calls', which the run's networks were trained on"),
        ("age,town,calls\n1,Jena,2\n", "'town' holds 'Jena', which no training sample had"),
        ("age,town,calls\nold,Ulm,2\n", "'age' holds what is no number"),
        ("age,town,calls\n", "holds no rows"),
        ("age,town,calls,left\n1,Ulm,2,maybe\n", "column 'left': 'maybe' is none of the run's"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path, text, words):
    (tmp_path / "new.csv").write_text(text)
    with pytest.raises(SourceError, match=f"new.csv: .*{words}"):
        find_samples(tmp_path / "new.csv", TABLE, CUSTOMERS)


def test_texts_come_from_lines_or_columns(tmp_path):
    (tmp_path / "new.txt").write_text("good film\n\nbad film\r\n")
    assert find_samples(tmp_path / "new.txt", TEXT, TEXTS).inputs == ("good film", "bad film")
    (tmp_path / "new.csv").write_text("said,label\nfine,good\n")
    found = find_samples(tmp_path / "new.csv", TEXT, TEXTS)
    assert (found.inputs, found.truth.tolist()) == (("fine",), [1])
    (tmp_path / "other.csv").write_text("sentence\nfine\n")
    glue = spec_of("npz", 'path = "x.npz"')
    assert find_samples(tmp_path / "other.csv", glue, TEXTS).inputs == ("fine",)
    with pytest.raises(SourceError, match="has no column said; it has sentence"):
        find_samples(tmp_path / "other.csv", TEXT, TEXTS)


def test_pairs_come_from_lines_with_a_tab_or_the_columns_of_glue(tmp_path):
    glue = spec_of("qnli", 'path = "glue"')
    (tmp_path / "new.txt").write_text("who?\tme\n")
    assert find_samples(tmp_path / "new.txt", glue, PAIRS).inputs == (("who?", "me"),)
    (tmp_path / "new.tsv").write_text('index\tquestion\tsentence\tlabel\n0\t"who\tme\t1\n')
    found = find_samples(tmp_path / "new.tsv", glue, PAIRS)
    assert (found.inputs, found.truth.tolist()) == ((('"who', "me"),), [1])
    (tmp_path / "new.txt").write_text("who?\tme\nwho\n")
    with pytest.raises(SourceError, match="text 2 has 1 parts; the run's networks read pairs"):
        find_samples(tmp_path / "new.txt", glue, PAIRS)


@pytest.mark.parametrize(
    ("texts", "traits", "words"),
    [
        ([("a", "b", "c")], PAIRS, "neither a text nor a pair"),
        (["a", ("b", "c")], TEXTS, "a mixture of pairs of texts and texts"),
        (["a", None], TEXTS, "a mixture of texts and what is neither"),
        ([1, 2], TEXTS, "neither a text nor a pair"),
    ],
)
def test_every_text_is_looked_at(texts, traits, words):
    with pytest.raises(SourceError, match=words):
        find_samples(texts, TEXT, traits)


def test_pairs_are_not_single_texts(tmp_path):
    with pytest.raises(SourceError, match=r"holds texts; .* trained on pairs of texts"):
        find_samples(["a"], TEXT, PAIRS)
    (tmp_path / "new.txt").write_text("")
    with pytest.raises(SourceError, match=r"new\.txt: holds no samples"):
        find_samples(tmp_path / "new.txt", TEXT, TEXTS)
    with pytest.raises(SourceError, match="holds texts; the run's networks were trained on images"):
        find_samples(tmp_path / "new.txt", IMAGES, PHOTOS)
    (tmp_path / "new.csv").write_text("a\n1\n")
    with pytest.raises(SourceError, match="is a table; the run's networks were trained on images"):
        find_samples(tmp_path / "new.csv", IMAGES, PHOTOS)


# The run's own layout, and names that tell nothing


def test_a_folder_in_the_runs_own_layout_gives_its_test_split(tmp_path):
    for name, samples in (("data_batch_1", 4), *((f"data_batch_{n}", 4) for n in range(2, 6)),
                          ("test_batch", 3)):  # fmt: skip
        rows = draw(samples, 3073)
        rows[:, 0] = np.arange(samples)
        rows.tofile(tmp_path / f"{name}.bin")
    cifar = spec_of("cifar10", 'path = "elsewhere"', "complete = false")
    names = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")  # noqa: E501  # fmt: skip
    traits = InputSchema("image", names, 3, (32, 32), 10, (1.0,) * 3, (2.0,) * 3)
    found = find_samples(tmp_path, cifar, traits)
    assert (found.inputs.shape, found.truth.tolist()) == ((3, 3, 32, 32), [0, 1, 2])
    other = InputSchema("image", names[::-1], 3, (32, 32), 10, (1.0,) * 3, (2.0,) * 3)
    with pytest.raises(SourceError, match=r"has 10 classes, airplane.*; the run has 10, truck"):
        find_samples(tmp_path, cifar, other)
    np.savez(tmp_path / "x.npz", train_inputs=draw(2, 3, 6, 6), train_labels=[0, 1],
             test_inputs=draw(1, 3, 6, 6), test_labels=[1], class_names=["cat", "dog"])  # fmt: skip
    own = spec_of("npz", 'path = "x.npz"')
    for format_ in (None, "run"):
        assert find_samples(tmp_path / "x.npz", own, PHOTOS, format=format_).truth.tolist() == [1]


def test_a_folder_of_images_that_the_run_was_trained_from_is_read_as_it_was(tmp_path, monkeypatch):
    write_image(tmp_path / "training/0_a.png", draw(6, 6, 3))
    spec = spec_of("animal10n", f'path = "{tmp_path}"')
    split = Split(draw(2, 3, 6, 6), np.array([0, 1]))
    dataset = Dataset(
        "animal10n", "image", ("cat", "dog"), train=split, test=split, notes=("left out 1 image",)
    )
    asked = []
    monkeypatch.setattr(sources, "read_dataset", lambda *some: asked.append(some) or dataset)
    found = find_samples(tmp_path, spec, PHOTOS)
    assert (found.truth.tolist(), found.notes) == ([0, 1], ("left out 1 image",))
    assert asked == [("animal10n", tmp_path)]
    below = spec_of("animal10n", f'path = "{tmp_path.name}"')
    rooted = below.model_copy(update={"root": str(tmp_path.parent)})
    assert find_samples(tmp_path, rooted, PHOTOS).truth.tolist() == [0, 1]
    write_image(tmp_path / "elsewhere/a.png", draw(6, 6, 3))
    assert find_samples(tmp_path / "elsewhere", spec, PHOTOS).truth is None


def test_what_a_name_does_not_tell_must_be_said(tmp_path):
    with pytest.raises(SourceError, match=r"nowhere: no such file or folder\."):
        find_samples(tmp_path / "nowhere", IMAGES, PHOTOS)
    (tmp_path / "new.dat").write_text("fine\n")
    with pytest.raises(ChoiceError, match=re.escape(".dat does not tell what it holds; known are")):
        find_samples(tmp_path / "new.dat", TEXT, TEXTS)
    found = find_samples(tmp_path / "new.dat", TEXT, TEXTS, format="txt")
    assert found.inputs == ("fine",)
    assert set(FORMATS) == {"npz", "npy", "images", "csv", "tsv", "parquet", "txt", "run"}


def test_digests_tell_samples_apart(tmp_path):
    for name in ("a.png", "b.png"):
        write_image(tmp_path / name, draw(6, 6, 3))
    files = find_samples(tmp_path, IMAGES, PHOTOS)
    several = [
        Samples(draw(2, 3, 6, 6)),
        Samples(draw(2, 3, 6, 6)[::-1]),
        Samples(("a", "b")),
        Samples(("a", "c")),
        files,
        find_samples(tmp_path / "a.png", IMAGES, PHOTOS),
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
