"""Contract tests and Hypothesis strategies.

Requires pytest and hypothesis: pip install 'accord[testing]'
"""

from accord.errors import missing_extra

try:
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
except ImportError as error:
    raise missing_extra(
        "accord.testing", "pytest and hypothesis", extra="testing", cause=error
    ) from error

from accord.testing._contracts import RuleContract, SmallRecord, StorageContract, small_records

__all__ = ["RuleContract", "SmallRecord", "StorageContract", "small_records"]
