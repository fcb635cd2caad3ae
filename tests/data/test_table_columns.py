"""Columns become numbers by what the training rows have shown."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord.data import InputSchema, Layout, read_dataset, read_samples
from accord.data._dataset import Encoding
from accord.data._table_columns import WORDS_WIDTH, find_date_format, shared_spread
from accord.errors import SourceError

# As palmerpenguins ships its table: text, NA for missing values.
PENGUINS = """species,island,bill_length_mm,body_mass_g,sex
Adelie,Torgersen,39.1,3750,male
Adelie,Torgersen,NA,3800,female
Gentoo,Biscoe,46.1,NA,NA
Gentoo,Biscoe,50,5700,male
Adelie,Dream,40.3,3250,female
Gentoo,Biscoe,48.7,4450,female
"""
FILLED = {"label": "species", "one_hot": ["island", "sex"], "missing": "fill"}


@pytest.fixture
def write(tmp_path):
    def write(text=PENGUINS, name="mine.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def read(path, **options):
    return read_dataset("csv", path, **{"test": path.name, **options})


def schema_of(dataset):
    return InputSchema(
        "table", dataset.class_names, dataset.train.inputs.shape[1], (1, 1), 6,
        columns=dataset.columns,
    )  # fmt: skip


def test_missing_values_are_filled_and_marked(write):
    dataset = read(write(), **FILLED)
    assert dataset.columns == (
        ("island", Encoding("one-hot", ("Biscoe", "Dream", "Torgersen"), fill="Biscoe")),
        ("bill_length_mm", Encoding("number", fill=pytest.approx(46.1), marked=True)),
        ("body_mass_g", Encoding("number", fill=3800, marked=True)),
        ("sex", Encoding("one-hot", ("female", "male"), fill="female", marked=True)),
    )
    rows = np.round(dataset.train.inputs, 1).tolist()
    assert rows[1] == pytest.approx([0, 0, 1, 46.1, 1, 3800, 0, 1, 0, 0])
    assert rows[2] == pytest.approx([1, 0, 0, 46.1, 0, 3800, 1, 1, 0, 1])


def test_test_rows_teach_nothing(write):
    write("species,island,bill_length_mm,body_mass_g,sex\nAdelie,Home,9000,9000,male\n", "new.csv")
    dataset = read(write(), **FILLED, test="new.csv")
    assert dataset.columns == read(write(), **FILLED).columns
    assert dataset.test.inputs[0, :3].tolist() == [0, 0, 0]
    assert dataset.notes == (
        "test rows: column 'island': 1 cell with a value that no training row has, encoded as "
        "none of the known ones: Home",
    )
    held = read_dataset("csv", write(), held_out=0.5, **FILLED)
    assert len(held.train) == 3
    known = {name: how.values for name, how in held.columns if how.kind == "one-hot"}
    lines = write().read_text().splitlines()
    assert known["island"] == tuple(sorted({lines[i - 1].split(",")[1] for i in held.train.ids}))


def test_new_rows_are_encoded_alike_and_what_is_new_is_counted(write):
    schema = schema_of(read(write(), **FILLED))
    layout = Layout("csv", FILLED)
    same = read_samples(write(), schema, layout=layout)
    np.testing.assert_array_equal(same.inputs, read(write(), **FILLED).train.inputs)
    new = "island,bill_length_mm,body_mass_g,sex\n?,39,1,male\nMars,null,2, MALE\n"
    samples = read_samples(write(new, "new.csv"), schema, layout=layout)
    assert samples.inputs[0, :3].tolist() == [1, 0, 0]
    assert samples.inputs[1, :3].tolist() == [0, 0, 0]
    assert [note.partition(", ")[0] for note in samples.notes] == [
        "column 'island': 1 missing cell",
        "column 'island': 1 cell with a value that no training row has",
        "column 'sex': 1 cell with a value that no training row has",
    ]


def test_missing_values_of_parquet_are_no_new_values(tmp_path):
    table = pa.table({"flag": [True, False, True], "label": ["a", "b", "a"]})
    pq.write_table(table, tmp_path / "a.parquet")
    options = {"one_hot": ["flag"], "missing": "fill"}
    dataset = read_dataset("parquet", tmp_path / "a.parquet", test="a.parquet", **options)
    assert dict(dataset.columns)["flag"].values == ("False", "True")
    pq.write_table(pa.table({"flag": [None, True]}), tmp_path / "new.parquet")
    layout = Layout("parquet", options)
    samples = read_samples(tmp_path / "new.parquet", schema_of(dataset), layout=layout)
    assert samples.inputs.tolist() == [[0, 1], [0, 1]]
    assert len(samples.notes) == 1
    assert "filled with the most frequent value, True" in samples.notes[0]


def test_missing_labels_of_new_rows_are_not_compared(write):
    schema = schema_of(read(write(), **FILLED))
    path = write(PENGUINS.replace("Gentoo,Biscoe,50", "NA,Biscoe,50"), "new.csv")
    samples = read_samples(path, schema, layout=Layout("csv", FILLED))
    assert (samples.truth, samples.given) == (None, None)
    assert samples.notes == ("1 row of 6 have no 'species': predictions are not compared",)


def test_dates_become_days_and_their_place_in_week_and_year(write):
    path = write("day,label\n2024-01-31,a\n2023-12-25 18:00,b\n,a\n")
    dataset = read(path, dates=["day"], missing="fill")
    assert dataset.train.inputs[:2].tolist() == [[19753, 2, 30, 0, 0], [19716.75, 0, 358, 18, 0]]
    assert dataset.train.inputs[2].tolist() == [19734.875, 4, 11, 21, 1]
    with pytest.raises(SourceError, match=r"column 'day', line 4 is empty\. Fill such cells, or"):
        read(path, dates=["day"])
    with pytest.raises(SourceError, match=r"line 3: 'soon' is not a date, or not one of the same"):
        read(write("day,label\n2024-01-31,a\nsoon,b\n"), dates=["day"])
    schema = schema_of(dataset)
    layout = Layout("csv", {"dates": ["day"], "missing": "fill"})
    with pytest.raises(SourceError, match=r"line 2 is not a date as in the training rows \(ISO"):
        read_samples(write("day\n31.1.2024\n", "new.csv"), schema, layout=layout)


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["2024-01-31", "2024-01-31T12:00:00+01:00"], "ISO 8601"),
        (["31.1.2024", "1.2.2024"], "%d.%m.%Y"),
        (["1/31/2024", "2/1/2024"], "%m/%d/%Y"),
        (["31/1/2024 10:30", "2/1/2024 11:00"], "%d/%m/%Y %H:%M"),
        (["2024-01-31", "1.2.2024"], None),
        ([], None),
    ],
)
def test_a_column_of_dates_has_one_format(cells, form):
    assert find_date_format(cells) == form


def test_words_are_weighed_by_their_rarity_and_hashed(write):
    text = 'note,label\n"The cat sat, the cat",a\nthe dog,b\nNA,a\n'
    dataset = read(write(text), words=["note"], missing="fill")
    cat, dog, nothing = dataset.train.inputs
    assert dataset.train.inputs.shape == (3, WORDS_WIDTH)
    assert np.linalg.norm(cat) == pytest.approx(1)
    assert np.linalg.norm(nothing) == 0
    (common,) = np.flatnonzero((cat != 0) & (dog != 0))
    assert np.count_nonzero(cat) == 3
    assert np.count_nonzero(dog) == 2
    weights = dict(dataset.columns)["note"].weights
    assert weights[common] == pytest.approx(1)  # both texts have it
    assert max(weights) == pytest.approx(np.log(3) + 1, abs=1e-4)


def test_the_words_of_a_column_share_a_scale():
    columns = (("age", None), ("note", Encoding("words", weights=(1.0, 1.0))), ("town", ("a",)))
    spread = shared_spread(columns, np.array([5, 3, 4, 2], np.float32))
    assert spread.tolist() == pytest.approx([5, 12.5**0.5, 12.5**0.5, 2])


def test_columns_are_left_out(write):
    dataset = read(write(), **FILLED, exclude=["sex", "body_mass_g"])
    assert [name for name, _ in dataset.columns] == ["island", "bill_length_mm"]


def test_rows_without_a_label_are_refused_or_left_out(write):
    path = write(PENGUINS.replace("Gentoo,Biscoe,50", "?,Biscoe,50"))
    with pytest.raises(
        SourceError, match=r"line 5 has no 'species' \(it holds '\?'\).*--drop-unlabelled"
    ):
        read(path, **FILLED)
    dataset = read(path, **FILLED, unlabelled="drop")
    assert dataset.train.ids.tolist() == [2, 3, 4, 6, 7]
    assert dataset.notes[0] == "left out 1 row without 'species': line 5"
    assert read(path, label="species", features=[], one_hot=["island"]).classes == 3  # "?" is one
