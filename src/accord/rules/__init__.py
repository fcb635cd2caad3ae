"""One file per rule; each turns a whole record into one label per sample."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from accord.errors import ChoiceError, suggest
from accord.rules.rule import ABSTAINED, Definition, Prediction, Rule, predict_blocks

__all__ = [
    "ABSTAINED",
    "Definition",
    "Prediction",
    "Rule",
    "all_rules",
    "find_rule",
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
            if kind.__module__ == module.__name__ and issubclass(kind, Rule) and kind is not Rule:
                rules[kind.name] = kind()
    return MappingProxyType(rules)


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
