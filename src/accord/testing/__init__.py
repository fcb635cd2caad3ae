"""Contract tests and Hypothesis strategies.

Requires pytest and hypothesis: pip install 'accord[testing]'
"""

from accord.testing._contracts import RuleContract, SmallRecord, StorageContract, small_records

__all__ = ["RuleContract", "SmallRecord", "StorageContract", "small_records"]
