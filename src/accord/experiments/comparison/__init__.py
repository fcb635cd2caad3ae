"""Max agreement against its rivals, on one set of trained networks."""

from accord.experiments.comparison._compare import (
    Comparison,
    Summary,
    compare,
    comparison_json,
    comparison_text,
)
from accord.experiments.comparison._methods import METHODS, Method, Outcome

__all__ = [
    "METHODS",
    "Comparison",
    "Method",
    "Outcome",
    "Summary",
    "compare",
    "comparison_json",
    "comparison_text",
]
