"""A run keeps what its samples have in common, so that new ones can be shown to its networks."""

import json
from dataclasses import replace

import numpy as np
import pytest

import accord
from accord.data import read_dataset
from accord.errors import SourceError
from accord.inference import infer
from accord.training import parse_spec, train
from accord.training._batches import channel_statistics
from accord.training._input_schema_file import (
    SCHEMA_FILE,
    load_input_schema,
    measure_input_schema,
    save_input_schema,
)
from accord.training._prepared_data import prepare_data

TEXT = """
name = "churn"
[data]
kind = "csv"
path = "PATH"
label = "left"
ids = "id"
one_hot = ["town"]
held_out = 0.5
[train]
networks = 2
network = "mlp"
options = { widths = [8] }
epochs = 3
optimizer = { kind = "adamw", lr = 0.01 }
[record]
checkpoints = "all"
"""
TOWNS = ("Ulm", "Bonn", "Jena")


def write_table(path):
    rows = [f"{n},{n % 40},{TOWNS[n % 3]},{1e3 * (n % 7)},{'yes' if n % 3 else 'no'}"
            for n in range(60)]  # fmt: skip
    path.write_text("\n".join(["id,age,town,calls,left", *rows]))
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A run on a table that is not there any more."""
    folder = tmp_path_factory.mktemp("traits")
    path = write_table(folder / "churn.csv")
    text = TEXT.replace("PATH", str(path))
    spec = parse_spec(text)
    test = prepare_data(spec).splits["test"]
    train(spec, folder / "run", source=text)
    path.unlink()
    return folder / "run", test


def test_a_table_is_known_by_the_names_and_values_of_its_columns(table):
    found = load_input_schema(table[0])
    assert found.columns == (("age", None), ("town", ("Bonn", "Jena", "Ulm")), ("calls", None))
    assert (found.kind, found.class_names, found.classes) == ("table", ("no", "yes"), 2)
    assert (found.shape, found.samples, found.pairs) == ((5, (1, 1)), 30, False)


def test_new_rows_get_the_labels_that_the_test_rows_got(table, tmp_path):
    run, test = table
    wanted = accord.open(run / "test").predict().labels
    np.testing.assert_array_equal(infer(run, test.inputs).labels, wanted)
    whole = write_table(tmp_path / "new.csv").read_text().splitlines()
    chosen = [whole[1 + int(number)].split(",") for number in test.ids]
    rows = [",".join((calls, town, age)) for _, age, town, calls, _ in chosen]
    (tmp_path / "new.csv").write_text("\n".join(["calls,town,age", *rows]))
    np.testing.assert_array_equal(infer(run, tmp_path / "new.csv").labels, wanted)


def test_columns_are_named_as_the_reader_takes_them(tmp_path):
    write_table(tmp_path / "train.csv")
    (tmp_path / "test.csv").write_text("id,age,town,calls,left\n1,2,Kiel,3,no\n")
    text = TEXT.replace("held_out = 0.5\n", "")
    folder = parse_spec(text.replace("PATH", str(tmp_path)))
    file = parse_spec(text.replace("PATH", str(tmp_path / "train.csv")).replace(
        'ids = "id"', 'ids = "id"\ntest = "test.csv"\nfeatures = ["calls", "age"]'))  # fmt: skip
    towns = ("town", ("Bonn", "Jena", "Kiel", "Ulm"))
    first, second = (measure_input_schema(prepare_data(spec)) for spec in (folder, file))
    assert first.columns == (("age", None), towns, ("calls", None))
    assert second.columns == (("calls", None), ("age", None), towns)
    assert first.channels == second.channels == 6


def test_the_scale_of_images_is_that_of_the_training_samples(tmp_path):
    spec = parse_spec('name = "x"\n[data]\nkind = "digits"\n[train]\nepochs = 1\n')
    material = prepare_data(spec)
    save_input_schema(tmp_path, measure_input_schema(material))
    mean, spread = load_input_schema(tmp_path).scale
    wanted = channel_statistics(read_dataset("digits").train.inputs)
    np.testing.assert_array_equal((mean, spread), wanted)
    assert (mean.dtype, spread.dtype) == (np.float32, np.float32)
    before = (tmp_path / SCHEMA_FILE).read_bytes()
    save_input_schema(tmp_path, measure_input_schema(material))
    assert (tmp_path / SCHEMA_FILE).read_bytes() == before
    assert load_input_schema(tmp_path / "nowhere") is None


def test_other_samples_than_a_run_began_with_are_refused(tmp_path):
    write_table(tmp_path / "own.csv")
    spec = parse_spec(TEXT.replace("PATH", str(tmp_path / "own.csv")))
    first = measure_input_schema(prepare_data(spec))
    save_input_schema(tmp_path, first)
    rounded = replace(first, mean=tuple(one * (1 + 1e-6) for one in first.mean))
    save_input_schema(tmp_path, rounded)  # another machine adds in another order
    other = [
        (replace(first, columns=first.columns[::-1]), "columns was .* and is"),
        (replace(first, spread=tuple(100 * one for one in first.spread)), "spread was"),
        (replace(first, mean=(*first.mean, 0.0)), "mean was"),
        (replace(first, samples=first.samples + 1), f"samples was {first.samples}, and is"),
    ]
    for traits, words in other:
        message = f"began with other training data: {words}.*: --overwrite"
        with pytest.raises(SourceError, match=message):
            save_input_schema(tmp_path, traits)


@pytest.mark.parametrize("change", ["[]", "{", '{"form": 2}', '{"form": 1, "kind": "image"}'])
def test_a_damaged_file_is_named(tmp_path, change):
    (tmp_path / SCHEMA_FILE).write_text(change)
    with pytest.raises(SourceError, match=r"samples\.json: cannot be read as an .*Remove it, and"):
        load_input_schema(tmp_path)


def test_texts_have_no_scale():
    class Texts:
        kind, class_names, classes, columns = "text", ("bad", "good"), 2, None

    class Some:
        dataset, shape, scale = Texts, (1, (1, 1)), None

        def __init__(self, *inputs):
            self.splits = {"train": type("Split", (), {"inputs": inputs})}

    single, pairs = (measure_input_schema(Some(*some)) for some in (("a", "b"), (("a", "b"),)))
    assert single.scale is single.columns is None
    assert (single.pairs, pairs.pairs) == (False, True)
    assert json.loads(json.dumps(single.mean)) is None
