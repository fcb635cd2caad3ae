"""Calling a builder by name, with options that someone wrote into a spec."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from accord.errors import AccordError, ChoiceError, suggest

Built = TypeVar("Built")


def call_builder(
    builder: Callable[..., Built],
    *,
    name: str,
    facts: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Built:
    """Call a builder with the facts that it takes, and with all of the options.

    Raises:
        ChoiceError: an option that the builder does not take, or one that it lacks; or, of a
            builder that comes with Accord, a value that it cannot take.

    >>> def build(*, classes, width=4):
    ...     return classes * width
    >>> call_builder(build, name="mine", facts={"classes": 2, "size": 8}, options={"width": 3})
    6
    >>> call_builder(build, name="mine", facts={"classes": 2}, options={"widht": 3})
    Traceback (most recent call last):
    accord.errors.ChoiceError: mine has no option 'widht'. Did you mean 'width'?
    """
    parameters = inspect.signature(builder).parameters
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    known = [one for one in parameters if one not in facts]
    for option in options:
        if not takes_all and option not in known:
            raise ChoiceError(f"{name} has no option {option!r}. {suggest(option, known)}")
    wanted = {fact: value for fact, value in facts.items() if takes_all or fact in parameters}
    try:
        bound = inspect.signature(builder).bind(**wanted, **options)
    except TypeError as error:
        raise ChoiceError(
            f"{name} cannot be built from {', '.join([*wanted, *options])}: {error}. "
            "A builder may take classes, channels and size; anything else must be an option."
        ) from error
    try:
        return builder(*bound.args, **bound.kwargs)
    except (TypeError, ValueError, RuntimeError) as error:
        # Of someone's own builder the whole story is wanted, of ours the option that it names.
        if ":" in name or not options or isinstance(error, AccordError):
            raise
        raise ChoiceError(
            f"{name} cannot be built with {_told(options)}: {error}. "
            "Is a value of the wrong kind, or out of range?"
        ) from error


def _told(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{option}={value!r}" for option, value in options.items())
