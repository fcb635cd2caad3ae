"""Integration with scikit-learn."""

from accord.errors import missing_extra

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise missing_extra("accord.sklearn", "scikit-learn", extra="sklearn", cause=error) from error

from accord.sklearn._classifier import MaxAgreementClassifier
from accord.sklearn._module import ModuleClassifier
from accord.sklearn._recording import (
    open_recorder,
    record_epoch,
    record_partial_fit,
    record_stages,
    record_warm_start,
)

__all__ = [
    "MaxAgreementClassifier",
    "ModuleClassifier",
    "open_recorder",
    "record_epoch",
    "record_partial_fit",
    "record_stages",
    "record_warm_start",
]
