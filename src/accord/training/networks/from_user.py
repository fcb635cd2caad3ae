"""A user's own network, named as `module:function`."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from accord.errors import ChoiceError, suggest


def find_function(name: str) -> Callable[..., Any]:
    """Import a function; its module may lie in the working directory.

    Raises:
        ChoiceError: no such module, no such function, or not a function. What the module
            itself raises comes through as it is.
    """
    module_name, _, function_name = name.partition(":")
    module = _import_module(name, module_name)
    function: Callable[..., Any] | None = getattr(module, function_name, None)
    if not callable(function):
        functions = [one for one, value in vars(module).items() if callable(value)]
        raise ChoiceError(
            f"{name}: {module.__file__} has no function {function_name!r}. "
            f"{suggest(function_name, functions)}"
        )
    return function


def _import_module(name: str, module_name: str) -> ModuleType:
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise ChoiceError(
            f"{name}: {module_name!r} is not the name of a module. "
            "A network of your own is named as module:function, without .py and slashes."
        )
    try:
        with _working_directory_first():
            return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that the user's own one lacks is another matter: let it through.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ChoiceError(
            f"{name}: there is no module {module_name!r} in {Path.cwd()}, nor installed. "
            "Start from the folder in which it lies."
        ) from error


@contextmanager
def _working_directory_first() -> Iterator[None]:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(here)
