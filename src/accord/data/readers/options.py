"""The types of readers' options, held against their annotations."""

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from accord.errors import ChoiceError

WORDS: Final = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def check_types(kind: str, options: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Refuse an option whose value is not of its type.

    Args:
        kind: the reader's name.
        options: what it was given, as TOML or a caller writes it.
        hints: the type of each.

    Raises:
        ChoiceError: a value is of another type.

    >>> check_types("csv", {"held_out": "0.2"}, {"held_out": float | None})
    Traceback (most recent call last):
    accord.errors.ChoiceError: csv: held_out must be a number; got '0.2'
    """
    for name, value in options.items():
        if not _is_of(value, hints[name]):
            raise ChoiceError(f"{kind}: {name} must be {_in_words(hints[name])}; got {value!r}")


def _is_of(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_is_of(value, one) for one in get_args(hint))
    if get_origin(hint) is Sequence:
        listed = isinstance(value, list | tuple)
        return listed and all(_is_of(one, get_args(hint)[0]) for one in value)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else get_origin(hint) or hint)


def _in_words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        words = [_in_words(one) for one in get_args(hint) if one is not NoneType]
        return " or ".join(dict.fromkeys(words))
    if get_origin(hint) is Sequence:
        return f"a list of which each is {_in_words(get_args(hint)[0])}"
    return WORDS.get(hint, "a path")
