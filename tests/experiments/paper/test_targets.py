"""Every cell and every figure of the paper has a name."""

import tomllib
from collections import Counter
from importlib.resources import files

import pytest

from accord.errors import ChoiceError
from accord.experiments.paper import all_targets, find_targets
from accord.experiments.paper._protocols import Cell


def leaves(table, name, depth):
    if not depth:
        yield name, table
        return
    for key, value in table.items():
        yield from leaves(value, f"{name}/{key}", depth - 1)


def published():
    text = files("accord.experiments.paper").joinpath("published.toml").read_text("utf-8")
    for name, table in tomllib.loads(text).items():
        yield from leaves(table, name, {"table6": 1}.get(name, 3))


def test_every_published_cell_is_a_target():
    cells = dict(published())
    assert len(cells) == 24 + 7 + 8 + 8 + 3 + 4
    for name, rows in cells.items():
        target = all_targets()[name]
        numbers = (
            rows if isinstance(rows, dict) else {"original": rows[0], "max-agreement": rows[1]}
        )
        assert target.published.keys() == numbers.keys()
        for row, value in numbers.items():
            assert list(target.published[row]) == (value if isinstance(value, list) else [value])


def test_published_numbers():
    assert all_targets()["table1/cifar10/sym/40"].published["max-agreement"] == (90.0, 0.1)
    assert all_targets()["table2/cifar100/sym/40"].published["rog"] == (55.6,)
    assert all_targets()["table3/hyper-ensemble/asym/20"].published["original"] == (71.2,)
    assert all_targets()["table6/different-optimizer"].published["ensemble"] == (42.6,)


def test_every_figure_is_a_target():
    panels = Counter(name.split("/")[0] for name in all_targets() if name.startswith("figure"))
    assert panels == {
        "figure1": 1,
        "figure2": 3,
        "figure3": 2,
        "figure4": 3,
        "figure5": 4,
        "figure6": 2,
        "figure7": 4,
        "figure8": 3,
        "figure9": 1,
        "figure10": 2,
    }
    assert {"theory", "setup/webvision50"} < all_targets().keys()


def test_cells_follow_the_names():
    assert dict(all_targets()["table4/cifar10/asym/20"].cells) == {
        "noisy": Cell("cifar10", "asym", 20, "many-networks")
    }
    assert all_targets()["figure6/cifar10/asym/20"].cells["noisy"].variant == "many-networks"
    figure = all_targets()["figure5/cifar100/sym/20"]
    assert figure.figure == 5
    assert figure.cells["noisy"] == Cell("cifar100", "sym", 20)
    assert figure.cells["clean"] == Cell("cifar100", "sym", 20, "clean-subset")
    assert all_targets()["table6/transfer-learning"].description.startswith(
        "CIFAR-100, 40 % symmetric"
    )
    few = all_targets()["figure8/cifar100"].cells
    assert {cell.per_class for cell in few.values()} == {int(role) for role in few}


def test_prefix_selects_every_target_below_it():
    names = [target.name for target in find_targets(["figure6", "theory", "figure6/"])]
    assert names == ["figure6/cifar10/asym/20", "figure6/cifar100/sym/40", "theory"]
    assert not any(target.name.startswith("figure10") for target in find_targets(["figure1"]))


def test_unknown_target_raises_with_the_nearest_name():
    with pytest.raises(ChoiceError, match=r"'table1/cifar10/sym/41'.*'table1/cifar10/sym/40'\?"):
        find_targets(["table1/cifar10/sym/41"])


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("tabel1", "table1"),
        ("figure11", "figure1"),
        ("table1/cifar1", "table1/cifar10"),
        ("cifar10/sym/40", "table1/cifar10/sym/40"),
    ],
)
def test_unknown_group_raises_with_the_nearest_name(name, near):
    with pytest.raises(ChoiceError, match=rf"'{name}'\. Did you mean '{near}'\?"):
        find_targets([name])


def test_unrelated_name_raises_with_the_top_level_groups():
    words = r"There are: table1, table2, .*, figure9, theory, setup, ours$"
    with pytest.raises(ChoiceError, match=words) as caught:
        find_targets(["xyz"])
    assert "/" not in str(caught.value)
