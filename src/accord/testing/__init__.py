"""Contract tests that a new rule or place inherits, and strategies that draw records.

Needs pytest and hypothesis: pip install 'accord[testing]'
"""

from accord.testing._contracts import PlaceContract, RuleContract, small_records

__all__ = ["PlaceContract", "RuleContract", "small_records"]
