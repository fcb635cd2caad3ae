"""Options are compared with the signature of the function that takes them."""

import functools
import re
from collections.abc import Sequence

import pytest

from accord._options import check_options, option_names
from accord.errors import ChoiceError


def read(path, *, label: str = "label", columns: str | Sequence[str] = (), share: float = 0.5):
    raise NotImplementedError


def resize(dataset, *, size: int | None = None):
    raise NotImplementedError


class Loss:
    def __init__(self, *, classes: int, beta: float, strength: "float" = 1.0):
        pass


def build(classes, **anything):
    raise NotImplementedError


def test_options_are_the_arguments_that_are_neither_given_nor_held_by_a_partial():
    assert option_names(read, resize, given=["path", "dataset"]) == [
        "label", "columns", "share", "size",
    ]  # fmt: skip
    assert option_names(functools.partial(read, label="y"), given=["path"]) == ["columns", "share"]
    assert option_names(build, given=["classes"]) == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"label": "y", "columns": "x", "share": 1},
        {"columns": ["a", "b"], "size": None},
        {"columns": ("a",), "size": 3},
    ],
)
def test_options_of_the_annotated_types_pass(options):
    check_options("csv", options, read, resize, given=["path", "dataset"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"labl": "y"}, "csv has no option 'labl'. Did you mean 'label'?"),
        ({"xyz": "y"}, "csv has no option 'xyz'. There are: label, columns, share, size"),
        ({"path": "x"}, "csv: path cannot be set by an option."),
        ({"share": "0.5"}, "csv: share must be of type float; got '0.5'"),
        ({"share": True}, "csv: share must be of type float; got True"),
        ({"size": 1.5}, "csv: size must be of type int | None; got 1.5"),
        ({"columns": ["a", 1]}, "csv: columns must be of type str | Sequence[str]; got ['a', 1]"),
    ],
)
def test_other_options_are_refused(options, words):
    with pytest.raises(ChoiceError, match=re.escape(words)):
        check_options("csv", options, read, resize, given=["path", "dataset"])


def test_an_option_without_a_default_is_required():
    with pytest.raises(ChoiceError, match=re.escape("elr needs beta.")):
        check_options("elr", {"strength": 2}, Loss, given=["classes"])
    with pytest.raises(ChoiceError, match="elr: strength must be of type float; got 'x'"):
        check_options("elr", {"beta": 0.5, "strength": "x"}, Loss, given=["classes"])


def test_a_function_of_any_keywords_takes_any_option():
    check_options("mine:build", {"depth": 3}, build, given=["classes"])


def test_types_are_left_to_functions_that_check_them():
    check_options("csv", {"share": "0.5"}, read, given=["path"], types=False)
