"""Registry of rules."""

import functools
import importlib
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from accord.errors import ChoiceError, SourceError, suggest
from accord.rules._base import Rule
from accord.rules._fitted_rule import RULE, FittedRule, read_arrays

RECOMMENDED: Final = "recommended"  # stands for the rule that is
MODULES: Final = {
    "before_overfit": "BeforeOverfit",
    "consensus": "Consensus",
    "dawid_skene": "DawidSkene",
    "leave_one_out": "LeaveOneOut",
    "majority": "Majority",
    "max_agreement": "MaxAgreement",
    "oracle_best_epoch": "OracleBestEpoch",
    "probability_average": "ProbabilityAverage",
    "single": "Single",
    "soft_agreement": "SoftAgreement",
    "weighted_agreement": "WeightedAgreement",
}


@functools.cache
def all_rules() -> Mapping[str, Rule]:
    """Get all rules by name.

    >>> "max-agreement" in all_rules()
    True
    """
    rules: dict[str, Rule] = {}
    for module, name in MODULES.items():
        rule = getattr(importlib.import_module(f"accord.rules.{module}"), name)()
        rules[rule.name] = rule
    return MappingProxyType(rules)


def find_rule(name: str | Rule) -> Rule:
    """Find a rule by name.

    >>> find_rule("majorty")
    Traceback (most recent call last):
    accord.errors.ChoiceError: no rule is called 'majorty'. Did you mean 'majority'?
    """
    if isinstance(name, Rule):
        return name
    rules = all_rules()
    if name in rules:
        return rules[name]
    known = sorted([*rules, RECOMMENDED])
    raise ChoiceError(f"no rule is called {name!r}. {suggest(str(name), known)}")


def load_rule(path: str | os.PathLike[str]) -> FittedRule:
    """Load a fitted rule from a file.

    Raises:
        SourceError: the file is missing, damaged, or of no fitted rule.
    """
    name = str(read_arrays(path)[RULE])
    kind = type(all_rules().get(name))
    if not issubclass(kind, FittedRule):
        raise SourceError(f"{path}: no rule called {name!r} is fitted")
    return kind.load(path)
