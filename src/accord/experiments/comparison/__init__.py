"""Compare max agreement with other methods.

`_runs` derives the specs and trains them, `_methods` lists the methods, each measured on one run,
and `_compare` repeats and summarises.
"""

from accord.experiments.comparison._compare import (
    Comparison,
    MethodResult,
    compare,
    comparison_json,
    comparison_text,
)
from accord.experiments.comparison._methods import METHODS, Measurement, Method

__all__ = [
    "METHODS",
    "Comparison",
    "Measurement",
    "Method",
    "MethodResult",
    "compare",
    "comparison_json",
    "comparison_text",
]
