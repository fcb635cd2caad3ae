"""The paper's theory of overfit and disagreement in linear regression, measured."""

from accord.analysis.theory.deep import FallsTogether, falls_together
from accord.analysis.theory.descent import Descent, descend, disagreement_of, rises
from accord.analysis.theory.lemmas import (
    ContractionEvidence,
    LimitEvidence,
    SignEvidence,
    check_contraction,
    check_limit,
    check_signs,
)
from accord.analysis.theory.regression import Regression, draw_regression
from accord.analysis.theory.run import Story, TheoryResult, run_theory, tell_story
from accord.analysis.theory.theorem import (
    SETTINGS,
    Outcome,
    Setting,
    balance,
    count_overfit,
    descend_setting,
    draw_setting,
    everyone_overfits,
    first_order,
)

__all__ = [
    "SETTINGS",
    "ContractionEvidence",
    "Descent",
    "FallsTogether",
    "LimitEvidence",
    "Outcome",
    "Regression",
    "Setting",
    "SignEvidence",
    "Story",
    "TheoryResult",
    "balance",
    "check_contraction",
    "check_limit",
    "check_signs",
    "count_overfit",
    "descend",
    "descend_setting",
    "disagreement_of",
    "draw_regression",
    "draw_setting",
    "everyone_overfits",
    "falls_together",
    "first_order",
    "rises",
    "run_theory",
    "tell_story",
]
