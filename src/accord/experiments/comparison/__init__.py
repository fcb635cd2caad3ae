"""Max agreement against its rivals, on one set of trained networks."""

from accord.experiments.comparison.compare import Comparison, Summary, compare
from accord.experiments.comparison.methods import METHODS, Method, Outcome
from accord.experiments.comparison.table import comparison_json, comparison_text

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
