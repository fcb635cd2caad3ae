"""Contract tests and Hypothesis strategies.

Requires pytest and hypothesis: pip install 'accord[testing]'
"""

from accord.errors import missing_extra

try:
    from accord.testing._contracts import RuleContract, SmallRecord, StorageContract, small_records
except ModuleNotFoundError as error:
    raise missing_extra(
        "accord.testing", "pytest and hypothesis", extra="testing", cause=error
    ) from error

__all__ = ["RuleContract", "SmallRecord", "StorageContract", "small_records"]
