"""Validate options against function signatures."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from accord.errors import ChoiceError, suggest


def option_names(*functions: Callable[..., Any], given: Collection[str] = ()) -> list[str]:
    """List the names of the options that functions accept.

    Args:
        functions: a `functools.partial` takes no option that it already holds.
        given: the arguments that do not come from the user.
    """
    return [name for one in functions for name in _parameters(one, given)]


def check_options(
    name: str,
    options: Mapping[str, Any],
    *functions: Callable[..., Any],
    given: Collection[str] = (),
    types: bool = True,
) -> None:
    """Check that functions can be called with the given options.

    Args:
        name: what the functions read or build, to begin the message with.
        options: values by name, as TOML or a caller writes them.
        functions: what takes them, each some.
        given: the arguments that do not come from the user, and are no options.
        types: compare the values with the annotations. Not for functions that users
            wrote, whose annotations may promise less than they accept.
    """
    if reserved := sorted(set(given) & set(options)):
        raise ChoiceError(f"{name}: {', '.join(reserved)} cannot be set by an option.")
    known = {key: value for one in functions for key, value in _parameters(one, given).items()}
    takes_any = any(
        one.kind is one.VAR_KEYWORD
        for function in functions
        for one in inspect.signature(function).parameters.values()
    )
    for option in options:
        if option not in known and not takes_any:
            raise ChoiceError(f"{name} has no option {option!r}. {suggest(option, known)}")
    missing = [one.name for one in known.values() if one.default is one.empty]
    if missing := [option for option in missing if option not in options]:
        raise ChoiceError(f"{name} needs {' and '.join(missing)}.")
    if types:
        hints: dict[str, Any] = {}
        for function in functions:
            made = getattr(function, "func", function)  # of a functools.partial
            hints |= get_type_hints(made.__init__ if inspect.isclass(made) else made)
        for option, value in options.items():
            _check_type(f"{name}: {option}", value, hints.get(option, Any))


def _parameters(
    function: Callable[..., Any], given: Collection[str]
) -> dict[str, inspect.Parameter]:
    held = getattr(function, "keywords", {})  # of a functools.partial
    return {
        name: one
        for name, one in inspect.signature(function).parameters.items()
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and name not in held
        and name not in given
    }


def _check_type(what: str, value: Any, hint: Any) -> None:
    try:
        # Strict, as TOML distinguishes 1, true and "1"; only an integer is accepted as a float.
        TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError:
        wanted = inspect.formatannotation(hint).replace("collections.abc.", "")
        raise ChoiceError(f"{what} must be of type {wanted}; got {value!r}") from None
