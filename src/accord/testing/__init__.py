"""Contract tests for new rules and storage, and strategies that draw records.

Requires pytest and hypothesis: pip install 'accord[testing]'
"""

from accord.testing._contracts import RuleContract, SmallRecord, StorageContract, small_records

__all__ = ["RuleContract", "SmallRecord", "StorageContract", "small_records"]
