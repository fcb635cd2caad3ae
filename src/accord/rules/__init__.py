"""One file per rule; each turns a whole record into one label per sample."""

import functools
import importlib
import inspect
import os
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeGuard

from accord.errors import ChoiceError, SourceError, suggest
from accord.rules._base import ABSTAINED, Definition, Prediction, Rule, predict_blocks
from accord.rules._fitted import RULE, FittedRule, read_arrays

__all__ = [
    "ABSTAINED",
    "Definition",
    "FittedRule",
    "Prediction",
    "Rule",
    "all_rules",
    "find_rule",
    "load_rule",
    "predict_blocks",
]


@functools.cache
def all_rules() -> Mapping[str, Rule]:
    """Return every rule by its name: all that the files of this package define.

    >>> "max-agreement" in all_rules()
    True
    """
    rules: dict[str, Rule] = {}
    for found in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{found.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and _is_whole(kind):
                rules[kind.name] = kind()
    return MappingProxyType(rules)


def _is_whole(kind: type) -> TypeGuard[type[Rule]]:
    return issubclass(kind, Rule) and not inspect.isabstract(kind)


def find_rule(name: str | Rule) -> Rule:
    """Return the rule of that name, or the rule itself; an error offers the nearest.

    >>> find_rule("majorty")
    Traceback (most recent call last):
    accord.errors.ChoiceError: no rule is called 'majorty'. Did you mean 'majority'?
    """
    if isinstance(name, Rule):
        return name
    rules = all_rules()
    if name in rules:
        return rules[name]
    raise ChoiceError(f"no rule is called {name!r}. {suggest(str(name), sorted(rules))}")


def load_rule(path: str | os.PathLike[str]) -> FittedRule:
    """Return the rule whose `save` wrote that file, with what it had learnt.

    Raises:
        SourceError: the file is missing, damaged, or not of a rule that learns.
    """
    name = str(read_arrays(path)[RULE])
    kind = type(all_rules().get(name))
    if not issubclass(kind, FittedRule):
        raise SourceError(f"{path}: no rule called {name!r} learns anything")
    return kind.load(path)
