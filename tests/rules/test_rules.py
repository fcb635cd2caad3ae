import slow_rules

from accord.rules import all_rules
from accord.testing import RuleContract

for _name, _rule in all_rules().items():
    _class = f"Test{_name.title().replace('-', '')}"
    _members = {"rule": _rule, "by_definition": staticmethod(slow_rules.BY_NAME[_name])}
    globals()[_class] = type(_class, (RuleContract,), _members)
