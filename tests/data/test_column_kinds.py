"""The columns of a table are recognised by what they hold."""

import numpy as np
import pytest

from accord.data._column_kinds import choose_columns, find_label
from accord.data.readers.tables import load_table
from accord.errors import ChoiceError, SourceError

ROWS = 40
GENERATOR = np.random.default_rng(0)
COLUMNS = {
    "label": ["yes", "no"] * (ROWS // 2),
    "age": GENERATOR.integers(20, 60, ROWS),
    "height": GENERATOR.normal(size=ROWS).round(3),
    "town": GENERATOR.choice(["Ulm", "Bonn", "NA"], ROWS),
    "member": GENERATOR.choice(["True", "False"], ROWS),
    "children": GENERATOR.choice(["0", "1", "2", "3+"], ROWS),
    "joined": [f"2024-01-{1 + day % 28:02}" for day in range(ROWS)],
    "note": [f"this is note {GENERATOR.integers(99)} of all" for _ in range(ROWS)],
    "number": GENERATOR.permutation(10**6)[:ROWS],
    "code": [f"x{number:04}y" for number in GENERATOR.permutation(10**4)[:ROWS]],
    "constant": [7] * ROWS,
    "empty": ["NA"] * ROWS,
    "label_given": ["yes"] * ROWS,
    "customer_id": range(100, 100 + ROWS),
    "": range(ROWS),
}


@pytest.fixture
def table(tmp_path):
    def build(**columns):
        path = tmp_path / "mine.csv"
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
        return load_table(path, ".csv")

    return build


def test_each_column_is_recognised(table):
    kinds = choose_columns(table(**COLUMNS), "label")
    assert kinds.numbers == ["age", "height"]
    assert kinds.one_hot == ["town", "member", "children"]
    assert kinds.dates == ["joined"]
    assert kinds.words == ["note"]
    assert kinds.ids == "customer_id"
    assert kinds.exclude == {
        "ids (integers that are all different)": ["number"],
        "ids (texts that are all different)": ["code"],
        "constant": ["constant", "empty"],
        "labels before corrections": ["label_given"],
        "ids": [""],
    }
    assert "left out, as constant: constant, empty" in kinds.notes()
    assert kinds.options["exclude"] == ["number", "code", "constant", "empty", "label_given", ""]


def test_true_labels_are_no_feature(table):
    truth = ["yes", "yes"] * (ROWS // 2)
    kinds = choose_columns(table(label=COLUMNS["label"], truth=truth, age=COLUMNS["age"]), "label")
    assert (kinds.truth, kinds.numbers) == ("truth", ["age"])


def test_few_measured_integers_may_all_differ(table):
    label = ["a", "b"] * 4
    kinds = choose_columns(table(label=label, weight=[9, 2, 40, 7, 11, 3, 70, 5]), "label")
    assert kinds.numbers == ["weight"]
    with pytest.raises(SourceError, match=r"no column is left to learn from\. left out, as ids"):
        choose_columns(table(label=label, weight=range(8)), "label")


def test_repeated_ids_of_groups_are_categories(table):
    kinds = choose_columns(table(label=COLUMNS["label"], shop_id=[1, 2, 2, 5] * 10), "label")
    assert kinds.one_hot == ["shop_id"]


def test_a_column_of_numbers_with_a_mistake_is_refused(table):
    ages = [*range(59), "unknown"]
    with pytest.raises(SourceError, match=r"'age' holds numbers, but 1 cell .* line 61 has 'unkn"):
        choose_columns(table(label=["a", "b"] * 30, age=ages), "label")


@pytest.mark.parametrize("form", ["${:,}", "{} %", "{},5", "{} €"])
def test_numbers_that_are_not_plain_are_refused(table, form):
    amounts = [f'"{form.format(1000 + row)}"' for row in range(ROWS)]
    with pytest.raises(SourceError, match=r"'amount' holds numbers, but 40 .* Write plain numbers"):
        choose_columns(table(label=COLUMNS["label"], amount=amounts), "label")


@pytest.mark.parametrize("form", ["A/5 {}", "10.0.0.{}", "1,2,{}", "555-{}", "{} kg of rice"])
def test_texts_with_digits_are_no_numbers(table, form):
    cells = [f'"{form.format(1000 + row)}"' for row in range(ROWS)]
    columns = table(label=COLUMNS["label"], cells=cells, age=COLUMNS["age"])
    assert choose_columns(columns, "label").numbers == ["age"]


@pytest.mark.parametrize(
    "label", [np.arange(ROWS) / 7, range(ROWS), [f"t{n}" for n in range(ROWS)]]
)
def test_measurements_and_names_are_not_labels(table, label):
    with pytest.raises(SourceError, match=r"'label' holds 40 different values in 40 rows, too ma"):
        choose_columns(table(label=label, age=COLUMNS["age"]), "label")


def test_the_labels_are_found_by_name(table):
    assert find_label(table(Species=["a"], age=[1]), None) == "Species"
    assert find_label(table(Species=["a"], age=[1]), "age") == "age"
    with pytest.raises(ChoiceError, match=r"it is unknown which .* It has kind, age\.$"):
        find_label(table(kind=["a"], age=[1]), None)
    with pytest.raises(ChoiceError, match=r"target and class may both hold the labels"):
        find_label(table(target=["a"], **{"class": [1]}), None)
    with pytest.raises(ChoiceError, match=r"It has Adelie, 39\.1\. Is the header missing\?"):
        find_label(table(Adelie=["a"], **{"39.1": [1]}), None)
    with pytest.raises(SourceError, match=r"no column 'spezies'; it has species"):
        find_label(table(species=["a"]), "spezies")
