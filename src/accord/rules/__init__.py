"""Rules for combining predictions.

A rule is one file of this package, named as on the command line, and one line in `_all_rules`.
`Context` holds what rules share while a command runs. A rule with parameters is a `FittedRule`,
which `load_rule` reads from a file. `recommend` chooses a rule from the votes alone.
"""

from accord.rules._all_rules import RECOMMENDED, all_rules, find_rule, load_rule
from accord.rules._analysis_context import Context
from accord.rules._base import ABSTAINED, Prediction, Rule
from accord.rules._fitted_rule import FittedRule
from accord.rules._overfitting import epochs_before_overfitting
from accord.rules._pair_agreement import network_agreement
from accord.rules._recommend import Recommendation, predict_recommended, recommend, resolve_rule

__all__ = [
    "ABSTAINED",
    "RECOMMENDED",
    "Context",
    "FittedRule",
    "Prediction",
    "Recommendation",
    "Rule",
    "all_rules",
    "epochs_before_overfitting",
    "find_rule",
    "load_rule",
    "network_agreement",
    "predict_recommended",
    "recommend",
    "resolve_rule",
]
